"""Every draft shape (S1), and how each is written on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import ClassVar, Self

import numpy as np

from spectheory.drafting.grown import Grown
from spectheory.drafting.tree import MOST_NODES, Shape, Tree, at_least_one, integers_of
from spectheory.errors import SettingError
from spectheory.extensions import is_address, load_class


@dataclass(frozen=True, repr=False)
class Sized(Shape):
    """A shape of k drafted tokens (k >= 1), made from k alone."""

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", at_least_one("k", self.k))
        super().__post_init__()

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


@dataclass(frozen=True, repr=False)
class Chain(Sized):
    """k tokens, each below the one before: the shape of plain speculative decoding (S1), with a `stop` of §11.

    Examples
    --------
    >>> Chain(4).nodes, Chain(4).depth, Chain(4).passes
    (4, 4, (1, 1, 1, 1))
    >>> from spectheory.drafting import read_stop
    >>> shape = Chain(8, stop=read_stop("token<0.4"))
    >>> str(shape), shape.nodes, shape.depth
    ('chain k=8, token<0.4', 8, 8)
    """

    name: ClassVar[str] = "chain"
    is_chain: ClassVar[bool] = True

    @property
    def depth(self) -> int:
        """The most drafts that can be accepted."""
        return self.k

    @property
    def inner(self) -> tuple[int, ...]:
        """The root and all tokens but the last."""
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
        k = at_least_one("k", k)
        return type(self)(k, schedule=self.schedule.of_length(k), stop=self.stop)

    def tree(self) -> Tree:
        """The shape node by node."""
        return Tree(np.arange(-1, self.k - 1, dtype=np.int32), np.ones(self.k, dtype=np.int32))

    def __str__(self) -> str:
        """Short form for tables."""
        return super().__str__() if self.stop is None else f"{super().__str__()}, {self.stop}"


@dataclass(frozen=True, repr=False)
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
    def inner(self) -> tuple[int, ...]:
        """The root alone."""
        return (1,)

    @property
    def max_rank(self) -> int:
        """K candidates."""
        return self.k

    def tree(self) -> Tree:
        """The shape node by node."""
        return Tree(np.full(self.k, -1, dtype=np.int32), np.arange(1, self.k + 1, dtype=np.int32))


@dataclass(frozen=True, repr=False)
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
        super().__post_init__()

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
    def inner(self) -> tuple[int, ...]:
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


SHAPES: tuple[type[Shape], ...] = (Chain, Batch, KAry, Tree, Grown)
"""A new shape's file is listed here and nowhere else."""


def written(*more: str) -> str:
    """How shapes are written, in words; `more` are names that the caller reads itself.

    Examples
    --------
    >>> written()
    'chain, batch, k-ary ones as 2x2x1, paths as 1,2,1-1 and grown trees as grown:16x4x5'
    """
    *ways, last = [
        *(shape.name for shape in SHAPES if issubclass(shape, Sized)),
        *more,
        *(shape.form for shape in SHAPES if shape.form),
    ]
    return f"{', '.join(ways)} and {last}"


def sized_shape(text: str) -> type[Sized] | None:
    """The shape that is written by its name and made from its size; None for others."""
    known = [load_class(text, Shape)] if is_address(text) else [s for s in SHAPES if s.name == text]  # type: ignore[type-abstract]
    return next((shape for shape in known if issubclass(shape, Sized)), None)


def read_shape(text: str, sizes: Sequence[int], *more: str) -> list[Shape]:
    """The shapes that a text writes: one of each size where it leaves the size open.

    A class of the user is written as ``module:Class``. `more` are names that the caller reads itself, for the error.

    Examples
    --------
    >>> [str(shape) for text in ("batch", "2x2", "1,2,1-1") for shape in read_shape(text, [1, 2])]
    ['batch k=1', 'batch k=2', 'k-ary 2x2', 'tree 1 2 1-1']
    """
    sized = sized_shape(text)
    if sized:
        return [sized(k) for k in sizes]
    if is_address(text):
        return [load_class(text, Shape)()]  # type: ignore[type-abstract]
    for shape in SHAPES:
        found = shape.parsed(text)
        if found:
            return [found]
    raise SettingError(f"shape {text!r} is unknown", limit=f"there are {written(*more)}", remedy="name one")
