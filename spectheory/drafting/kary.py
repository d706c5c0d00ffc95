"""Trees whose nodes of one depth have as many children each (S1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import ClassVar

import numpy as np

from spectheory.drafting.tree import MOST_NODES, Shape, Tree, at_least_one, integers_of
from spectheory.errors import SettingError


@dataclass(frozen=True)
class KAry(Shape):
    """Every node of depth d - 1 has ``branching[d - 1]`` children: SpecInfer's expansion (S1; ``miao2024specinfer``).

    Examples
    --------
    >>> shape = KAry((1, 1, 3, 1))
    >>> shape.nodes, shape.depth, shape.passes
    (8, 4, (1, 1, 1, 3))
    """

    branching: tuple[int, ...]

    name: ClassVar[str] = "k-ary"
    form: ClassVar[str] = "k-ary ones as 2x2x1"

    @classmethod
    def parsed(cls, text: str) -> KAry | None:
        """Children per node at each depth, as 2x2x1."""
        branching = integers_of(text, "x") if not {",", "-"} & set(text) else None
        return cls(branching) if branching else None

    @property
    def family(self) -> str:
        """The children per node, as 2x2x1."""
        return "x".join(map(str, self.branching))

    def __post_init__(self) -> None:
        try:
            branching = tuple(self.branching)
        except TypeError:
            branching = ()
        if not branching:
            what = f"branching is {'empty' if isinstance(self.branching, Sequence) else type(self.branching).__name__}"
            raise SettingError(what, limit="needs one number per depth", remedy="(2, 2) is one")
        nodes, width = 0, 1
        for depth, b in enumerate(branching, start=1):
            width *= at_least_one("branching", b)
            nodes += width
            if nodes > MOST_NODES:
                raise SettingError(
                    f"branching has {nodes} nodes down to depth {depth}", limit=f"at most {MOST_NODES}", remedy="cut it"
                )
        object.__setattr__(self, "branching", tuple(map(int, branching)))

    @property
    def widths(self) -> tuple[int, ...]:
        """Nodes at each depth."""
        return tuple(accumulate(self.branching, mul))

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return sum(self.widths)

    @property
    def depth(self) -> int:
        """The most drafts that can be accepted."""
        return len(self.branching)

    @property
    def passes(self) -> tuple[int, ...]:
        """All nodes of a depth have children, but for the last depth."""
        return (1, *self.widths[:-1])

    @property
    def max_rank(self) -> int:
        """The widest branching."""
        return max(self.branching)

    def tree(self) -> Tree:
        """The shape node by node, depth by depth."""
        parents, ranks, above = [], [], np.array([-1])
        for b in self.branching:
            parents.append(np.repeat(above, b))
            ranks.append(np.tile(np.arange(1, b + 1), len(above)))
            start = sum(map(len, parents[:-1]))
            above = np.arange(start, start + len(parents[-1]))
        return Tree(np.concatenate(parents).astype(np.int32), np.concatenate(ranks).astype(np.int32))

    def __str__(self) -> str:
        """Short form for tables."""
        return "k-ary " + "x".join(map(str, self.branching))
