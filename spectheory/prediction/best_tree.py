"""What may be asked for: a shape, or the best tree of a size, which is searched for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from spectheory.drafting import Shape, Tree
from spectheory.drafting.tree import at_least_one


@dataclass(frozen=True)
class BestTree:
    """Asks for the best draft tree of a size that a local search finds, for each rule (S4).

    The tree is found on the texts of all prompts, of a large trace on a sample of them; its score comes from trees that
    were found on other prompts than those they are scored on. Ranks go up to 8, or to what is recorded. Optimality is
    not guaranteed. `max_depth` limits the draft passes of a call; `drafted_as` is the shape that an engine drafts for
    the tree, if its passes are not the tree's own.

    Examples
    --------
    >>> str(BestTree(8))
    'best tree of 8'
    """

    nodes: int
    max_depth: int | None = None
    drafted_as: Callable[[Tree], Shape] | None = None

    fixed: ClassVar[bool] = True
    is_chain: ClassVar[bool] = False
    stop: ClassVar[None] = None

    def __post_init__(self) -> None:
        for name, value in (("nodes", self.nodes), ("max depth", self.max_depth)):
            if value is not None:
                at_least_one(name, value)

    @property
    def family(self) -> str:
        """What such trees are called in a heading."""
        return f"tree ≤{self.max_depth}" if self.max_depth else "tree"

    def __str__(self) -> str:
        """Short form for tables."""
        return f"best tree of {self.nodes}" + (f", depth {self.max_depth}" if self.max_depth else "")


Wanted = Shape | BestTree
"""A shape, or one to be found."""
