"""What a draft shape is (S1): a tree whose nodes are ranks, each at a depth below its parent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from operator import index
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectheory.checks import instance, whole
from spectheory.distributions import as_integers
from spectheory.drafting.schedules import SEQUENTIAL, Cut, Schedule
from spectheory.drafting.stopping import StoppingRule
from spectheory.errors import SettingError, ShapeError

Ints = NDArray[np.int32]
MOST_NODES = 2**24
"""Nodes of a shape: about a gigabyte where they are listed one by one."""
_LARGEST = 2**31 - 2
"""Ranks and parents are 32-bit integers."""
_SHOWN = 16
"""Ranks of a path that an error shows."""


_PATHS_SHOWN = 8
"""Nodes of a tree that a heading writes out."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Shape(ABC):
    """What a call drafts: a tree of ranks whose root, the text so far, is no node; how it is drafted, where it stops.

    `schedule` gives the draft's passes, and `stop` is a rule that may end a chain before its last token (§11); `nodes`
    and `passes` are then those of a call that is not stopped.

    `name` is what the tree is called, and how a shape made from its size alone (`Sized`) is written on the command
    line; `form` says how other shapes are written, with an example. `fixed`: whether every call drafts the same ranks,
    so that there is a :meth:`tree`. `is_chain`: whether it is a chain of first candidates, which every rule takes.
    """

    schedule: Schedule = SEQUENTIAL
    stop: StoppingRule | None = None

    name: ClassVar[str]
    form: ClassVar[str] = ""
    fixed: ClassVar[bool] = True
    is_chain: ClassVar[bool] = False

    def __post_init__(self) -> None:
        instance("schedule", self.schedule, Schedule, remedy="spectheory.drafting.Sequential() is a draft model")
        if self.stop is not None:
            instance("stop", self.stop, StoppingRule, remedy="spectheory.drafting.read_stop('token<0.4') is one")
        if not self.is_chain and (self.stop is not None or self.schedule.chains_only):
            raise SettingError(
                f"{self.name} is given {self.stop or type(self.schedule).__name__}",
                limit="only a chain is stopped, or copied from the text",
                remedy="use spectheory.drafting.Chain(4, ...)",
            )
        if self.is_chain:
            self.schedule.checked(self.nodes)

    def by(self, schedule: Schedule) -> Self:
        """The same tree in other passes.

        Examples
        --------
        >>> from spectheory.drafting import Chain, Parallel
        >>> Chain(3).by(Parallel()).passes
        (3,)
        """
        made = copy(self)
        object.__setattr__(made, "schedule", schedule)
        Shape.__post_init__(made)
        return made

    def cut(self, drafted: int) -> Self:
        """The call of a chain that drafts so many of its tokens.

        Where the token that stops is not kept, the pass that looked at it was made too. Without a stopping rule the
        length is known before the call: one of no drafts makes no pass, and a parallel head's is on that many tokens.

        Examples
        --------
        >>> from spectheory.drafting import Chain, read_stop
        >>> [len(Chain(4, stop=read_stop(stop)).cut(2).passes) for stop in ("token<0.4", "top<0.4")]
        [2, 3]
        """
        drafted = whole("drafted", drafted, least=0, most=self.nodes, remedy="use 0 or more")
        if self.stop is None:
            return self.by(Cut(drafted, self.schedule.passes(self.inner[:drafted]) if drafted else ()))
        looked = min(drafted + (not self.stop.keeps), self.nodes)
        return self.by(Cut(drafted, self.schedule.stopped(self.inner, looked)))

    @classmethod
    def parsed(cls, text: str) -> Shape | None:
        """The shape that `text` writes; None if it is not written so."""
        return None

    @property
    def family(self) -> str:
        """What shapes that differ in size alone share, for a heading; the paths of one that stands for itself."""
        paths = self.tree().paths
        written = ",".join("-".join(map(str, path)) for path in paths[:_PATHS_SHOWN])
        return f"{written},... {len(paths)} nodes" if len(paths) > _PATHS_SHOWN else written

    @property
    def listed(self) -> list[tuple[int, ...]] | None:
        """The ranks from the root to each node; None of a chain, and where every call drafts others."""
        return self.tree().paths if self.fixed and not self.is_chain else None

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.tree().nodes

    @property
    def depth(self) -> int:
        """The most drafts that can be accepted."""
        return self.tree().depth

    @property
    def inner(self) -> tuple[int, ...]:
        """The nodes of each depth that have children, the root first."""
        return self.tree().inner

    @property
    def passes(self) -> tuple[int, ...]:
        """Tokens of each draft pass."""
        return self.schedule.passes(self.inner)

    @property
    def verified(self) -> Mapping[int, float]:
        """Share of calls by the tokens of the target's pass: all of them nodes + 1 unless drafts vary in length."""
        return self.schedule.verified(self.nodes)

    @property
    def max_rank(self) -> int:
        """The largest rank at any node."""
        return self.tree().max_rank

    @abstractmethod
    def tree(self) -> Tree:
        """The shape node by node."""

    def __repr__(self) -> str:
        """What it was made from, without defaults."""
        made = (
            f"{field.name}={value!r}"
            for field in sorted(fields(self), key=lambda field: field.kw_only is True)
            if (value := getattr(self, field.name)) is not field.default
        )
        return f"{type(self).__name__}({', '.join(made)})"


def a_shape(shape: Shape) -> Shape:
    """Check that an argument is a shape."""
    return instance("shape", shape, Shape, remedy="spectheory.drafting.Chain(4) is one")


@dataclass(frozen=True, eq=False, repr=False)
class Tree(Shape):
    """Any draft tree, by the parent and the rank of each node (S1).

    `parents` ``[nodes]`` is each node's parent, -1 for the root; a parent comes before its children. `ranks`
    ``[nodes]`` counts from 1 among the candidates at a position; siblings differ.

    Examples
    --------
    >>> tree = Tree.from_paths([(1,), (2,), (1, 1)])
    >>> tree.nodes, tree.depth, tree.passes
    (3, 2, (1, 1))
    >>> str(tree)
    'tree 1 2 1-1'
    """

    parents: Ints
    ranks: Ints

    name: ClassVar[str] = "tree"
    form: ClassVar[str] = "paths as 1,2,1-1"

    @classmethod
    def parsed(cls, text: str) -> Tree | None:
        """Ranks from the root to each node, as 1,2,1-1."""
        paths = [_integers_of(path, "-") for path in text.split(",")] if {",", "-"} & set(text) else [None]
        return cls.from_paths([path for path in paths if path]) if all(paths) else None

    def __post_init__(self) -> None:
        parents, ranks = _integers("parents", self.parents), _integers("ranks", self.ranks)
        if parents.ndim != 1 or parents.shape != ranks.shape or not len(parents):
            raise ShapeError(
                f"parents {parents.shape} and ranks {ranks.shape}",
                limit="needs two flat arrays of one length, at least one node",
                remedy="use spectheory.drafting.Tree.from_paths",
            )
        early = (parents < -1) | (parents >= np.arange(len(parents)))
        if early.any():
            node = int(np.argmax(early))
            raise ShapeError(
                f"the parent of node {node} is {parents[node]}",
                limit="must be -1 or an earlier node",
                remedy="number parents before their children",
            )
        if ranks.min() < 1:
            raise ShapeError(f"a rank is {ranks.min()}", limit="must be >= 1", remedy="count ranks from 1")
        siblings = np.sort(parents.astype(np.int64) * (int(ranks.max()) + 1) + ranks)
        twice = siblings[1:] == siblings[:-1]
        if twice.any():
            parent, rank = divmod(int(siblings[int(np.argmax(twice))]), int(ranks.max()) + 1)
            raise ShapeError(
                f"node {parent} has two children of rank {rank}", limit="siblings differ in rank", remedy="drop one"
            )
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "ranks", ranks)
        super().__post_init__()

    @classmethod
    def from_paths(cls, paths: Sequence[Sequence[int]]) -> Tree:
        """The tree whose nodes are these paths of ranks, in any order.

        Examples
        --------
        >>> Tree.from_paths([(1, 2), (1,)]).paths
        [(1,), (1, 2)]
        """
        try:
            ordered = sorted((tuple(map(index, path)) for path in paths), key=lambda path: (len(path), path))
        except (TypeError, RuntimeError):  # torch raises the last for tensors without numbers
            raise ShapeError(
                "the paths are no list of paths",
                limit="needs ranks from the root to each node",
                remedy="[(1,), (1, 2)]",
            ) from None
        place: dict[tuple[int, ...], int] = {(): -1}
        for number, path in enumerate(ordered):
            if path in place or path[:-1] not in place:
                shown = "-".join(map(str, path[:_SHOWN])) + ("-..." if len(path) > _SHOWN else "")
                raise ShapeError(
                    f"path {shown or '()'} " + ("comes twice or is empty" if path in place else "has no parent"),
                    limit="every node but the root once, and its parent too",
                    remedy="add the shorter path",
                )
            place[path] = number
        parents = [place[path[:-1]] for path in ordered]
        return cls(np.array(parents, dtype=np.int32), np.array([path[-1] for path in ordered]))

    @classmethod
    def trusted(cls, parents: Ints, ranks: Ints) -> Tree:
        """The tree of arrays that are known to be right: nothing is checked."""
        tree = object.__new__(cls)
        object.__setattr__(tree, "parents", parents)
        object.__setattr__(tree, "ranks", ranks)
        return tree

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return len(self.parents)

    @cached_property
    def depths(self) -> Ints:
        """Depth of each node, 1 below the root."""
        depths = np.ones(self.nodes, dtype=np.int32)
        above = self.parents.copy()
        inside = above >= 0
        while inside.any():  # each node looks twice as far up as before
            depths[inside] += depths[above[inside]]
            above[inside] = above[above[inside]]
            inside = above >= 0
        return depths

    @cached_property
    def levels(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """Per depth: the nodes there, and the places of their parents among the nodes one depth higher."""
        order = np.argsort(self.depths, kind="stable")
        counts = np.bincount(self.depths)[1:]
        starts = np.cumsum(counts) - counts
        place = np.empty(self.nodes, dtype=np.int64)
        place[order] = np.arange(self.nodes) - np.repeat(starts, counts)
        parts = np.split(order, starts[1:])
        return tuple((nodes, np.where(self.parents[nodes] >= 0, place[self.parents[nodes]], 0)) for nodes in parts)

    @property
    def depth(self) -> int:
        """The most drafts that can be accepted."""
        return int(self.depths.max())

    @property
    def max_rank(self) -> int:
        """The largest rank at any node."""
        return int(self.ranks.max())

    @cached_property
    def inner(self) -> tuple[int, ...]:
        """The nodes of each depth that have children, the root first."""
        inner = np.unique(self.parents[self.parents >= 0])
        return (1, *np.bincount(self.depths[inner], minlength=1)[1:].tolist())

    @property
    def paths(self) -> list[tuple[int, ...]]:
        """The ranks from the root to each node."""
        paths: list[tuple[int, ...]] = []
        for parent, rank in zip(self.parents.tolist(), self.ranks.tolist(), strict=True):
            paths.append((*paths[parent], rank) if parent >= 0 else (rank,))
        return paths

    def tree(self) -> Tree:
        """Itself."""
        return self

    def __eq__(self, other: object) -> bool:
        """Whether both have the same nodes, however numbered, in the same passes."""
        if not isinstance(other, Tree) or self.schedule != other.schedule:
            return False
        return sorted(self.paths) == sorted(other.paths)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.paths)))

    def __str__(self) -> str:
        """Short form for tables: all paths of a small tree, else its size."""
        if self.nodes > 8:
            return f"tree of {self.nodes} nodes, depth {self.depth}"
        return "tree " + " ".join("-".join(map(str, path)) for path in self.paths)


def _integers(name: str, values: ArrayLike) -> Ints:
    array = as_integers(values, name)
    if (np.abs(array) > _LARGEST).any():
        raise ShapeError(f"{name} reach beyond {_LARGEST}", limit="needs 32-bit integers", remedy="cut the tree")
    return array.astype(np.int32, copy=False)


def at_least_one(name: str, value: int) -> int:
    """A number of nodes, depths or candidates, at least 1 and at most :data:`MOST_NODES`, as an int."""
    return whole(name, value, most=MOST_NODES, remedy="count from 1")


def _integers_of(text: str, separator: str) -> tuple[int, ...] | None:
    """Integers as they are written between separators; None if they are not."""
    try:
        return tuple(map(int, text.split(separator)))
    except ValueError:
        return None
