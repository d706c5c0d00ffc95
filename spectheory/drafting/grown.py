"""A tree that the draft's confidences grow anew at each call, as in EAGLE-2 (§10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from spectheory.checks import instance
from spectheory.drafting.tree import MOST_NODES, Shape, Tree, at_least_one, integers_of
from spectheory.errors import SettingError, ShapeError


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
        found = self.top + (self.levels - 1) * self.top**2
        if found > MOST_NODES or self.kept > found:
            raise SettingError(
                f"a grown tree of {self.kept} nodes, top {self.top}, depth {self.levels} is asked for",
                limit=f"its passes find {found} nodes, at most {MOST_NODES}",
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
        numbers = integers_of(instance("the size", text, str, remedy="16x4x5 is one"), "x")
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
