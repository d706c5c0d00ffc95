"""Every draft shape (S1), and how each is written on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import ClassVar, Self

import numpy as np

from spectheory.checks import instance
from spectheory.drafting.tree import MOST_NODES, Shape, Tree, _integers_of, at_least_one
from spectheory.errors import SettingError, ShapeError
from spectheory.extensions import is_address, load_class


@dataclass(frozen=True, repr=False)
class Grown(Shape):
    """The `nodes` most confident drafts among those that `depth` passes of a draft reach, `top` below each node (§10).

    Each call grows a new tree. A node's confidence is the product of the draft's probabilities along its path. The
    first pass gives the `top` most probable tokens. Every later pass reads the `top` most confident nodes of the
    deepest level and gives the `top` most probable tokens below each. Of all nodes the `nodes` most confident are
    verified; of equal ones the shallower, then those found first. They are connected, since no node is more confident
    than its parent.

    Probabilities are those of the draft's logits at temperature 1, without filters, whatever the sampling of the text:
    so engines grow their trees. Nothing in the tree is random. Its ranks change from call to call, so it has no
    :meth:`tree`.

    Examples
    --------
    >>> shape = Grown(16, 4, 5)
    >>> shape.nodes, shape.depth, shape.passes, str(shape)
    (16, 5, (1, 4, 4, 4, 4), 'grown 16x4x5')
    """

    kept: int
    top: int
    levels: int

    name: ClassVar[str] = "grown"
    form: ClassVar[str] = "grown trees as grown:16x4x5"
    fixed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in (("nodes", self.kept), ("top", self.top), ("depth", self.levels)):
            at_least_one(name, value)
        candidates = self.top + (self.levels - 1) * self.top**2
        if candidates > MOST_NODES or self.kept > candidates:
            raise SettingError(
                f"a grown tree of {self.kept} nodes, top {self.top}, depth {self.levels} is asked for",
                limit=f"its passes find {candidates} nodes, at most {MOST_NODES}",
                remedy="keep fewer nodes, or search wider or deeper",
            )
        super().__post_init__()

    @classmethod
    def parsed(cls, text: str) -> Grown | None:
        """Nodes, top and depth, as grown:16x4x5."""
        name, colon, numbers = text.partition(":")
        return cls.sized_as(numbers) if colon and name == cls.name else None

    @classmethod
    def sized_as(cls, text: str) -> Grown:
        """The shape of nodes, top and depth as 16x4x5.

        Examples
        --------
        >>> Grown.sized_as("8x2x3").passes
        (1, 2, 2)
        """
        numbers = _integers_of(instance("the size", text, str, remedy="16x4x5 is one"), "x")
        if numbers is None or len(numbers) != 3:
            raise SettingError(
                f"a grown tree is written {text!r}", limit="needs NODESxTOPxDEPTH", remedy="write it as 16x4x5"
            )
        return cls(*numbers)

    @property
    def size(self) -> str:
        """Nodes, top and depth as they are written."""
        return f"{self.kept}x{self.top}x{self.levels}"

    @property
    def written(self) -> str:
        """How it is written on the command line."""
        return f"{self.name}:{self.size}"

    @property
    def family(self) -> str:
        """Its size: trees of other sizes are measured one by one."""
        return self.size

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.kept

    @property
    def depth(self) -> int:
        """Levels, the most drafts that can be accepted."""
        return self.levels

    @property
    def inner(self) -> tuple[int, ...]:
        """The nodes that are read: one token first, then `top` of each depth."""
        return grown_passes(self.top, self.levels)

    @property
    def max_rank(self) -> int:
        """The largest rank at any node."""
        return self.top

    def tree(self) -> Tree:
        """Refused: each call has another tree."""
        raise ShapeError(
            f"{self} has no fixed tree", limit="each call grows another", remedy="use the rule grown, or a fixed tree"
        )

    def __str__(self) -> str:
        """Short form for tables."""
        return f"{self.name} {self.size}"


def grown_passes(top: int, depth: int) -> tuple[int, ...]:
    """Tokens of each draft pass: one token first, then `top`.

    Examples
    --------
    >>> grown_passes(3, 3)
    (1, 3, 3)
    """
    return (1, *(top,) * (depth - 1))


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
        branching = _integers_of(text, "x") if not {",", "-"} & set(text) else None
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
            what = (
                f"branching is {'empty' if isinstance(self.branching, tuple | list) else type(self.branching).__name__}"
            )
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
        whole = shape.parsed(text)
        if whole:
            return [whole]
    raise SettingError(f"shape {text!r} is unknown", limit=f"there are {written(*more)}", remedy="name one")
