"""The text of the built-in pair: the sources of Python's standard library, split by file.

Every Python has this text, so the recipe in :mod:`benchmarks.training.train` runs offline. The hash of a file's path
decides whether it is held out, so the split needs no list, and a new file changes no other.
"""

from __future__ import annotations

import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HELD_OUT_ONE_IN = 20
"""One file in this many is held out."""


@dataclass(frozen=True)
class SourceFile:
    """One source file: its path relative to the standard library (POSIX form) and its text."""

    path: str
    text: str

    @property
    def held_out(self) -> bool:
        """Whether the file is held out: decided by the SHA-256 of its path alone."""
        digest = hashlib.sha256(self.path.encode()).digest()
        return int.from_bytes(digest[:8], "big") % HELD_OUT_ONE_IN == 0


def standard_library(root: Path | None = None) -> list[SourceFile]:
    """Every UTF-8 ``.py`` file of the standard library, by path; no third-party packages and tables (``encodings``)."""
    root = root or Path(sysconfig.get_paths()["stdlib"])
    files = []
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if {"site-packages", "dist-packages", "encodings"} & set(relative.parts):
            continue
        try:
            files.append(SourceFile(relative.as_posix(), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return files
