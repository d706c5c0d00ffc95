"""Shapes that are made from their size alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectheory.drafting.tree import Shape, at_least_one


@dataclass(frozen=True)
class Sized(Shape):
    """A shape of k drafted tokens (k >= 1), made from k alone."""

    k: int

    sized: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", at_least_one("k", self.k))

    @property
    def family(self) -> str:
        """Its name."""
        return self.name

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.k

    def __str__(self) -> str:
        """Short form for tables."""
        return f"{self.name} k={self.k}"
