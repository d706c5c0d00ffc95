"""Plain speculative decoding: one draft after the other (S1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from spectheory.drafting.sized import Sized
from spectheory.drafting.tree import Tree


@dataclass(frozen=True)
class Chain(Sized):
    """k tokens drafted one after the other: the shape of plain speculative decoding (S1).

    Examples
    --------
    >>> Chain(4).nodes, Chain(4).depth, Chain(4).passes
    (4, 4, (1, 1, 1, 1))
    """

    name: ClassVar[str] = "chain"

    @property
    def depth(self) -> int:
        """Draft passes per call, the most drafts that can be accepted."""
        return self.k

    @property
    def passes(self) -> tuple[int, ...]:
        """K passes on one token each."""
        return (1,) * self.k

    @property
    def max_rank(self) -> int:
        """1: one candidate per position."""
        return 1

    def of_length(self, k: int) -> Self:
        """The same with another number of tokens.

        Examples
        --------
        >>> Chain(4).of_length(2)
        Chain(k=2)
        """
        return type(self)(k)

    @property
    def listed(self) -> None:
        """None: its size says all."""

    def tree(self) -> Tree:
        """The shape node by node."""
        return Tree(np.arange(-1, self.k - 1, dtype=np.int32), np.ones(self.k, dtype=np.int32))
