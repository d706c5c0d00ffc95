"""A model's files, in a folder or the hub's cache: whether they are complete, what they say, and loading quietly."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import urllib.parse
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import torch
from huggingface_hub import constants as hub
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.utils import logging as hub_logging
from safetensors import safe_open
from transformers.utils import logging as transformers_logging

from spectheory.errors import FOREIGN, NOT_NUMBERS, ModelError, SpectheoryError

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


def _weight_files(folder: Path) -> list[Path]:
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
    if Path(source).is_file():  # a model in one file, as GGUF
        content = json.dumps(_content(Path(source)))
    elif is_local(source):
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


_KNOWN = {
    "for this kind of AutoModel": ("needs a causal language model", "choose a decoder-only model"),
    "does not recognize this architecture": (
        "needs an architecture that transformers has",
        "use a later transformers, or choose another model",
    ),
    "device_map": ("the device map cannot be used", "use --device, or what the message says"),
}
"""Limit and remedy for messages of transformers that are not about missing or damaged files."""


_LONGEST = 200
"""Letters of a reason."""


def guarded(source: str | Path, part: str, load: Callable[[], Any]) -> Any:
    """Run a loader of transformers; any exception becomes a one-line ModelError."""
    try:
        return load()
    except BaseException as error:  # readers of foreign files raise OSError, KeyError, SafetensorError and others
        reason = reason_of_foreign(error)
        if "trust_remote_code" in str(error):
            raise ModelError(
                f"{str(source)!r} needs its own code to load its {part}",
                limit="code that comes with a model is never run",
                remedy="use a model that transformers supports by itself",
            ) from error
        if "Weights only load failed" in reason:  # torch's own advice is to load them anyway
            reason = f"is damaged or {NOT_NUMBERS}"
        known = next((known for said, known in _KNOWN.items() if said in reason), None)
        if known:
            limit, remedy = known
        elif is_local(source):
            limit, remedy = f"needs a folder with readable {part}", "save or download the model again"
        else:
            limit, remedy = "no folder has that name, and the hub did not have it", "check the name and the connection"
        raise ModelError(
            f"{part} of {str(source)!r} cannot be loaded ({reason})", limit=limit, remedy=remedy
        ) from error


def reason_of_foreign(error: BaseException) -> str:
    """Why foreign code failed, in one line; raises again what is not its failure."""
    panic = type(error).__name__ == "PanicException"  # of a library in Rust; it is no Exception
    if isinstance(error, MemoryError | SpectheoryError) or not (panic or isinstance(error, Exception)):
        raise error
    reason = " ".join(str(error).split()) or type(error).__name__
    if len(reason) <= _LONGEST:
        return reason
    sentences, end, _ = reason[:_LONGEST].rpartition(". ")  # whole sentences, or a mark where it is cut
    return sentences if end else f"{reason[: _LONGEST - 3]}..."


def hub_answers() -> bool:
    """Whether the hub's name resolves; without a network its client would retry for minutes."""
    if os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        return True  # the proxy resolves names
    try:
        socket.getaddrinfo(urllib.parse.urlsplit(hub.ENDPOINT).hostname, None)
    except OSError:
        return False
    return True


def file_of(source: str | Path, name: str, revision: str | None) -> Path | None:
    """Path of a loaded model's file, in its folder or the hub's cache; None if it has no such file."""
    path = Path(source) / name if is_local(source) else try_to_load_from_cache(str(source), name, revision=revision)
    return Path(path) if isinstance(path, str | Path) and Path(path).is_file() else None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress transformers' progress bars and advice while the block runs."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    hub_verbosity = hub_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    hub_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        hub_logging.set_verbosity(hub_verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def moving_rope(config: Any) -> tuple[str, int] | None:
    """The kind of rope whose frequencies move, and the length of text up to which they stay; None if they are fixed.

    transformers takes other frequencies once a text grows beyond a length (longrope, dynamic), and turns only the
    tokens read from then on by them: logits would depend on the pieces in which a text is read.
    """
    said = getattr(config, "rope_parameters", None) or {}
    ropes = [said, *said.values()] if isinstance(said, Mapping) else []  # some models have one for each type of layer
    kinds = {rope.get("rope_type"): rope for rope in ropes if isinstance(rope, Mapping)}
    if "longrope" in kinds:
        return "longrope", int(kinds["longrope"]["original_max_position_embeddings"])
    if "dynamic" in kinds and not kinds["dynamic"].get("alpha"):  # alpha stretches them once and for all
        return "dynamic", int(config.max_position_embeddings)
    return None


def weight_map(source: str | Path, revision: str | None) -> dict[str, str]:
    """The file of each weight of a folder or a model on the hub, by the weight's name.

    As by transformers, the first of the usual files counts; of a folder without any, all files of weights.
    """
    usual = ((file, read) for name, read in _READERS.items() if (file := _fetched(source, name, revision)))
    others = [(path, _safe) for path in _weight_files(Path(source))] if is_local(source) else []
    first = next(usual, None)

    def read_all() -> dict[str, str]:
        return {name: file for path, read in ([first] if first else others) for name, file in read(path).items()}

    return guarded(source, "weights", read_all)


def read_weights(source: str | Path, revision: str | None, names: Mapping[str, str]) -> dict[str, torch.Tensor]:
    """Tensors of a folder or a model on the hub, by other names: `names` are those in its files. No code is run."""

    def tensors() -> dict[str, torch.Tensor]:
        files, read = weight_map(source, revision), dict[str, torch.Tensor]()
        for name in sorted({files[theirs] for theirs in names.values()}):
            here = {ours: theirs for ours, theirs in names.items() if files[theirs] == name}
            path = _fetched(source, name, revision)
            assert path is not None
            if path.suffix == ".bin":
                loaded = _pickled(path, "cpu")
                read |= {ours: loaded[theirs] for ours, theirs in here.items()}
            else:
                with safe_open(path, framework="pt") as file:
                    read |= {ours: file.get_tensor(theirs) for ours, theirs in here.items()}
        return read

    return guarded(source, "weights", tensors)


def _fetched(source: str | Path, name: str, revision: str | None) -> Path | None:
    """A model's file as :func:`file_of`, downloaded where the hub has it and this machine does not."""
    here = file_of(source, name, revision)
    if here is not None or is_local(source) or not hub_answers():
        return here

    def download() -> Path | None:
        with contextlib.suppress(EntryNotFoundError):
            return Path(hf_hub_download(str(source), name, revision=revision))
        return None

    return guarded(source, name, download)


def _pickled(file: Path, device: str) -> dict[str, torch.Tensor]:
    """Tensors of a pickle, read without running its code."""
    content = torch.load(file, map_location=device, weights_only=True, mmap=zipfile.is_zipfile(file))
    return {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}


def _indexed(file: Path) -> dict[str, str]:
    return dict(json.loads(file.read_text(encoding="utf-8"))["weight_map"])


def _safe(file: Path) -> dict[str, str]:
    with safe_open(file, framework="pt") as weights:
        return dict.fromkeys(weights.keys(), file.name)


_READERS = {
    "model.safetensors": _safe,
    "model.safetensors.index.json": _indexed,
    "pytorch_model.bin": lambda file: dict.fromkeys(_pickled(file, "meta"), file.name),
    "pytorch_model.bin.index.json": _indexed,
}
"""Files that name all weights; the first that is there is read, as by transformers."""
