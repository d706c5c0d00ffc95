"""What a draft shape is (S1): the nodes that a call drafts and verifies, each a rank at a depth, below its parent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from spectheory.checks import whole

if TYPE_CHECKING:
    from spectheory.drafting.tree import Tree

MOST_NODES = 2**24
"""Nodes of a shape: about a gigabyte where they are listed one by one."""


class Shape(ABC):
    """What a call drafts: a tree of ranks whose root, the text so far, is no node.

    Attributes
    ----------
    name : str
        What it is called, and how a shape that has a size alone is written on the command line.
    form : str
        How other shapes are written, with an example.
    sized : bool
        Whether it is made from its size alone: ``Shape(k)``.
    """

    name: ClassVar[str]
    form: ClassVar[str] = ""
    sized: ClassVar[bool] = False

    @classmethod
    def parsed(cls, text: str) -> Shape | None:
        """The shape that `text` writes; None if it is not written so."""
        return None

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""

    @property
    def verified(self) -> Mapping[int, float]:
        """Share of calls by the tokens of the target's pass: all of them nodes + 1 unless drafts vary in length."""
        return {self.nodes + 1: 1.0}

    @property
    @abstractmethod
    def depth(self) -> int:
        """The most drafts that can be accepted."""

    @property
    @abstractmethod
    def passes(self) -> tuple[int, ...]:
        """Tokens of each draft pass: the nodes of a depth that have children, the root first."""

    @property
    @abstractmethod
    def max_rank(self) -> int:
        """The largest rank at any node."""

    @abstractmethod
    def tree(self) -> Tree:
        """The shape node by node."""


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


def at_least_one(name: str, value: int) -> int:
    """A number of nodes, depths or candidates, at least 1 and at most :data:`MOST_NODES`, as an int."""
    return whole(name, value, most=MOST_NODES, remedy="no draft means plain decoding")


def integers_of(text: str, separator: str) -> tuple[int, ...] | None:
    """Integers as they are written between separators; None if they are not."""
    try:
        return tuple(map(int, text.split(separator)))
    except ValueError:
        return None
