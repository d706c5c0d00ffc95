"""Files that appear when whole: written under a temporary name, then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from spectheory.errors import OutputError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make a file, and give it its name `path` when it is complete; folders are made as needed.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(partial)
        partial.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise OutputError(
            f"{path} cannot be written ({error.strerror or error})",
            limit="needs a writable folder with room",
            remedy="choose another --out",
        ) from error
