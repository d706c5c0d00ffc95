"""What is said in plain sentences, before any chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Lines:
    """A title and a sentence for each line."""

    kind: ClassVar[str] = "lines"
    name: str
    title: str
    lines: Sequence[str]
