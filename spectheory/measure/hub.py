"""Access to transformers and its hub: no output on the terminal, no long waits, no bare tracebacks."""

from __future__ import annotations

import contextlib
import os
import socket
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import constants as hub
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.utils import logging as hub_logging
from transformers.utils import logging as transformers_logging

from spectheory.errors import NOT_NUMBERS, ModelError, SpectheoryError
from spectheory.measure.folder import is_local

_KNOWN = {
    "for this kind of AutoModel": ("needs a causal language model", "choose a decoder-only model"),
    "does not recognize this architecture": (
        "needs an architecture that transformers has",
        "use a later transformers, or choose another model",
    ),
    "device_map": ("the device map cannot be used", "use --device, or what the message says"),
}
"""Limit and remedy for messages of transformers that are not about missing or damaged files."""


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
    return _short(" ".join(str(error).split())) or type(error).__name__


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
    found = Path(source) / name if is_local(source) else try_to_load_from_cache(str(source), name, revision=revision)
    return Path(found) if isinstance(found, str | Path) and Path(found).is_file() else None


def pickled(source: str | Path, revision: str | None) -> bool:
    """Whether the loaded weights are pickled; transformers prefers safetensors where both exist."""
    safe, unsafe = (
        any(file_of(source, f"{name}{end}", revision) for end in ("", ".index.json"))
        for name in ("model.safetensors", "pytorch_model.bin")
    )
    return unsafe and not safe


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


def _short(reason: str, most: int = 200) -> str:
    """A reason in at most so many letters: whole sentences, or a mark where it is cut."""
    if len(reason) <= most:
        return reason
    sentences, end, _ = reason[:most].rpartition(". ")
    return sentences if end else f"{reason[: most - 3]}..."
