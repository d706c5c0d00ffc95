"""Files written atomically, files with one writer at a time, and text read up to a size."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import shorten
from typing import Any

from spectheory.errors import OutputError, TextError, argument

MOST_BYTES = 1 << 28
"""Largest text that is read: far larger than any configuration, table of latencies or file of prompts."""

_FIRST = 1 << 16
"""Bytes that are checked before the rest is read."""


def cache_folder() -> Path:
    """Where measurements of unnamed folders and compiled proofs are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spectheory"


def read_text(path: Path, *, encoding: str = "utf-8", most: int = MOST_BYTES) -> str:
    """The text of a file; an ``OSError`` if it has more than `most` bytes, or zero bytes in the first block
    (``/dev/zero``).
    """
    if path.is_fifo():
        raise OSError(errno.EINVAL, "is a pipe, which may have no writer", str(path))
    with path.open("rb") as file:
        content = file.read(min(_FIRST, most + 1))
        if len(content) == _FIRST and b"\0" in content:
            raise OSError(errno.EINVAL, "holds zero bytes, which no text has", str(path))
        content += file.read(most + 1 - len(content))
    if len(content) > most:
        raise OSError(errno.EFBIG, f"larger than {most >> 20} MiB", str(path))
    return content.decode(encoding)


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file under a temporary name; rename it to `path` when complete and on the disk; folders are
    made. A device or a pipe is written to as it is: renaming would put a file in its place.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            write(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        with partial.open("rb+") as file:
            os.fsync(file.fileno())  # otherwise a power cut may leave half of the content under the name
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise _unwritable(path, error) from error


@contextlib.contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Keep other runs from writing `path` while the block runs; the lock of a killed run is free again.

    The lock is a hidden file next to `path`, which is removed at the end.
    """
    beside = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _opened(beside, path)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
        os.close(file)


def lock(file: int) -> bool:
    """Lock an open file for this process where the system supports it; False if another run holds the lock."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _opened(beside: Path, path: Path) -> int:
    """The lock file, open and locked."""
    while True:
        file = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        if not lock(file):
            os.close(file)
            raise OutputError(
                f"{path} is in use",
                limit="one run at a time writes it",
                remedy=f"wait for it, or choose another {argument('file', '--out')}",
            )
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), beside.stat()):
                return file
        os.close(file)  # the run that held it has removed it


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{path} cannot be written ({error.strerror or error})",
        limit="needs a writable folder with room",
        remedy=f"choose another {argument('file', '--out')}",
    )


DEEPEST = 64
"""Lists in lists, or objects in objects, that are read; no log of a tool has more than ten."""


def loaded_json(text: str | bytes) -> Any:
    """What a JSON text holds; a ``RecursionError`` if it is nested deeper than :data:`DEEPEST`.

    The parser alone takes hundreds of levels, which copying and comparing what was read do not.
    """
    text = text if isinstance(text, str) else text.decode()
    content = json.loads(text)
    level: list[Any] = [[content]] if text.count("[") + text.count("{") > DEEPEST else []
    for _ in range(DEEPEST + 1):
        parts = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for each in parts for part in each if isinstance(part, dict | list)]
    if level:
        raise RecursionError("nested too deep")
    return content


def parsed_json(text: str | bytes, where: str) -> Any:
    """What a JSON text holds; a ``TextError`` if it is none, is nested too deep, or has a number of too many digits."""
    try:
        return loaded_json(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else shorten(str(error), 120)
        raise TextError(
            f"{where} is not JSON ({reason})", limit="needs whole objects", remedy="check that the log is not cut off"
        ) from error


_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Unicode's marks of direction, which turn the text around them."""
STEERING = dict.fromkeys({*range(0x20), *range(0x7F, 0xA0), *_MARKS} - {ord("\t"), ord("\n")}, "?")
"""Characters that a terminal or a browser obeys, and what stands for them."""


def strip_control_characters(text: str) -> str:
    r"""The text without what steers a terminal, or turns the words around it.

    Examples
    --------
    >>> strip_control_characters("a model\x1b[2J")
    'a model?[2J'
    """
    return text.translate(STEERING)
