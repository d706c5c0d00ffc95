"""Shapes whose tokens are all drafted in one pass (§10)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spectheory.drafting.chain import Chain
from spectheory.drafting.grown import Grown
from spectheory.drafting.stopped import Stopped
from spectheory.drafting.tree import Shape, Tree, a_shape


@dataclass(frozen=True)
class Parallel(Chain):
    """A chain of k tokens that a parallel head drafts in one pass, on k tokens (§10).

    Examples
    --------
    >>> Parallel(4).nodes, Parallel(4).depth, Parallel(4).passes
    (4, 4, (4,))
    >>> str(Parallel(4))
    'chain k=4'
    """

    @property
    def passes(self) -> tuple[int, ...]:
        """One pass on k tokens."""
        return (self.k,)


@dataclass(frozen=True, eq=False)
class ParallelTree(Tree):
    """A tree whose nodes a parallel head drafts in one pass: those of one depth share a pmf (§10).

    Examples
    --------
    >>> from spectheory.drafting import KAry
    >>> in_one_pass(KAry((2, 2))).passes
    (2,)
    """

    @property
    def passes(self) -> tuple[int, ...]:
        """One pass on as many tokens as the tree is deep."""
        return (self.depth,)


@dataclass(frozen=True)
class ParallelGrown(Grown):
    """A tree grown from the marginals of one pass (§10).

    Examples
    --------
    >>> in_one_pass(Grown(16, 4, 5)).passes
    (5,)
    """

    @property
    def passes(self) -> tuple[int, ...]:
        """One pass on as many tokens as there are levels."""
        return (self.levels,)


def in_one_pass(shape: Shape) -> Shape:
    """The shape as a parallel head drafts it.

    Examples
    --------
    >>> in_one_pass(Chain(3))
    Parallel(k=3)
    """
    if isinstance(shape, Stopped):
        return replace(shape, parallel=True)
    if isinstance(shape, Chain):
        return Parallel(shape.k)
    if isinstance(shape, Grown):
        return ParallelGrown(shape.kept, shape.top, shape.levels)
    tree = a_shape(shape).tree()
    return ParallelTree.trusted(tree.parents, tree.ranks)
