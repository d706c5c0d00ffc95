"""Shapes that are made from their size alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectheory.drafting.tree import Shape, at_least_one


@dataclass(frozen=True)
class Sized(Shape):
    """A shape that its size says all about: k drafted tokens, at least 1."""

    k: int

    sized: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", at_least_one("k", self.k))

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.k

    def __str__(self) -> str:
        """Short form for tables."""
        return f"{self.name} k={self.k}"
