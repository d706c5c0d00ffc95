"""The text of the built-in pair: the sources of Python's standard library, split by file.

Every Python has this text, so the recipe in :mod:`spectheory.pairs.train` runs offline anywhere. A file belongs
to the held-out part when the hash of its path says so: the split needs no list, and adding a file moves no other.
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
    """Read every UTF-8 ``.py`` file of the standard library, sorted by path.

    Left out: installed third-party packages, files that are not UTF-8, and ``encodings`` (tables, not prose).
    """
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
