"""A model's folder: whether it is complete, and a hash of its content."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from spectheory.errors import FOREIGN, ModelError

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
"""Names of the number of layers in configurations."""


def is_local(source: str | Path) -> bool:
    """Whether `source` is a path of this machine rather than a name on the hub."""
    text = str(source)
    looks_like_path = isinstance(source, Path) or text.startswith((".", "~", os.sep)) or text.count("/") > 1
    return looks_like_path or Path(text).exists()


def check_folder(source: str | Path, revision: str | None = None) -> None:
    """Check that a local model folder is there and has all its files; hub names pass."""
    if not is_local(source):
        return
    folder = Path(source)
    if not folder.is_dir():
        reason = "is a file" if folder.exists() else "does not exist"
        raise ModelError(
            f"{str(source)!r} {reason}", limit="needs a model folder or a name on the hub", remedy="check the path"
        )
    if revision is not None:
        raise ModelError(
            f"revision {revision!r} is given for the folder {str(source)!r}",
            limit="only models on the hub have revisions",
            remedy="leave the revision out, or name the model on the hub",
        )
    absent = [] if (folder / "config.json").is_file() else ["config.json"]
    weights = _weight_files(folder)
    if not weights:
        absent.append("weights (*.safetensors)")
    absent += [
        shard for index in folder.glob("*.index.json") for shard in _shards(index) if not (folder / shard).is_file()
    ]
    if absent:
        raise ModelError(
            f"{str(source)!r} lacks {', '.join(absent[:3])}",
            limit="needs config.json and every weight file",
            remedy="save or download the model again",
        )
    _check_layers(folder)


def _check_layers(folder: Path) -> None:
    """Refuse fewer than one layer, which would fail later; other settings are left to transformers."""
    try:
        config = json.loads((folder / "config.json").read_text())
        sizes = {**config, **config.get("text_config", {})}
    except (OSError, *FOREIGN):
        return
    for name in _LAYERS:
        if isinstance(sizes.get(name), int) and sizes[name] < 1:
            raise ModelError(
                f"{str(folder)!r}: config.json has {name} = {sizes[name]}",
                limit="a model has at least one layer",
                remedy="correct the file, or save or download the model again",
            )


def _weight_files(folder: Path) -> list[Path]:
    return sorted(path for pattern in _WEIGHTS for path in folder.glob(pattern))


def _shards(index: Path) -> list[str]:
    try:
        return sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (OSError, *FOREIGN) as error:
        raise ModelError(
            f"{str(index)!r} cannot be read ({error})",
            limit="needs a map of weights to files",
            remedy="save or download the model again",
        ) from error


_WHOLE, _PIECE, _PIECES = 1 << 26, 1 << 14, 64
"""Files of up to `_WHOLE` bytes are hashed whole; of larger files, `_PIECES` pieces of `_PIECE` bytes each."""


def fingerprint_of(source: str | Path, config: Any) -> str:
    """Hash of configuration and weights (of files beyond 64 MiB pieces, and the time of their last change); a hub's
    commit.
    """
    if is_local(source):
        folder = Path(source)
        weights = [(path.name, _content(path)) for path in _weight_files(folder)]
        content = (folder / "config.json").read_text() + json.dumps(weights)
    else:
        content = f"{source} {getattr(config, '_commit_hash', None)}"
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _content(path: Path) -> list[object]:
    """Size and hash of a file, and the time of its last change if only pieces of it are read."""
    size, digest = path.stat().st_size, hashlib.sha256()
    with path.open("rb") as file:
        if size <= _WHOLE:
            digest.update(file.read())
            return [size, digest.hexdigest()]
        for number in range(_PIECES):
            file.seek(number * (size - _PIECE) // (_PIECES - 1))
            digest.update(file.read(_PIECE))
    return [size, digest.hexdigest(), path.stat().st_mtime_ns // 10**6]
