"""A model's folder: whether it is complete, and a hash of its content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from spectheory.errors import FOREIGN, ModelError

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_MOST = {
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers"), 1024),
    "num_labels": 1 << 20,
}
"""The largest numbers in config.json of which transformers makes lists; models have up to about 130 layers."""


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
    if pipes := [path.name for path in sorted(folder.iterdir()) if path.is_fifo()]:
        raise ModelError(
            f"{str(source)!r}: {pipes[0]} is a pipe", limit="needs files", remedy="save or download the model again"
        )
    absent = [] if (folder / "config.json").is_file() else ["config.json"]
    weights = weight_files(folder)
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


def check_counts(config: Mapping[str, Any], name: str) -> None:
    """Refuse counts of layers and labels that no model has, before anything is built of so many parts."""
    for part in (config, *(value for value in config.values() if isinstance(value, Mapping))):
        for field, most in _MOST.items():
            count = part.get(field)
            if type(count) is int and not 1 <= count <= most:
                raise ModelError(
                    f"{name!r}: config.json has {field} = {brief(count)}",
                    limit=f"a model has 1 to {most}",
                    remedy="correct the file, or save or download the model again",
                )


def weight_files(folder: Path) -> list[Path]:
    """The files of a folder that hold weights."""
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
        weights = [(path.name, _content(path)) for path in weight_files(folder)]
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
