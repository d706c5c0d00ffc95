"""Several candidates for one position (S1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spectheory.drafting.sized import Sized
from spectheory.drafting.tree import Tree


@dataclass(frozen=True)
class Batch(Sized):
    """k candidates for one position (S1).

    Examples
    --------
    >>> Batch(4).nodes, Batch(4).depth, Batch(4).passes
    (4, 1, (1,))
    """

    name: ClassVar[str] = "batch"

    @property
    def depth(self) -> int:
        """1: a single position is drafted."""
        return 1

    @property
    def passes(self) -> tuple[int, ...]:
        """One pass on one token."""
        return (1,)

    @property
    def max_rank(self) -> int:
        """K candidates."""
        return self.k

    def tree(self) -> Tree:
        """The shape node by node."""
        return Tree(np.full(self.k, -1, dtype=np.int32), np.arange(1, self.k + 1, dtype=np.int32))
