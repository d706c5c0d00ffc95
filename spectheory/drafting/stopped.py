"""Chains that a stopping rule may end before their last draft, and the calls that they make (§11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from spectheory.checks import instance
from spectheory.drafting.chain import Chain
from spectheory.drafting.stopping import StoppingRule


@dataclass(frozen=True)
class Stopped(Chain):
    """A chain of at most k tokens that a stopping rule may end earlier (§11).

    `passes` and `nodes` are those of a call that is not stopped; :meth:`cut` gives those of a call that drafts fewer
    tokens. A `parallel` head drafts all k in one pass, whatever is then verified.

    Examples
    --------
    >>> from spectheory.drafting.stopping import TokenBelow
    >>> shape = Stopped(8, TokenBelow(0.4))
    >>> str(shape), shape.nodes, shape.depth
    ('chain k=8, token<0.4', 8, 8)
    """

    stop: StoppingRule
    parallel: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        instance("parallel", self.parallel, bool, remedy="False is a draft model")
        instance("stop", self.stop, StoppingRule, remedy="read_stop('token<0.4') is one")

    @property
    def passes(self) -> tuple[int, ...]:
        """K passes on one token each, or one on k."""
        return (self.k,) if self.parallel else super().passes

    def cut(self, drafted: int) -> Cut:
        """The call that drafts so many tokens, 0 to k.

        Where the token that stops is not kept, the pass that looked at it was made too.

        Examples
        --------
        >>> from spectheory.drafting.stopping import TokenBelow, TopBelow
        >>> [len(Stopped(4, stop).cut(2).passes) for stop in (TokenBelow(0.4), TopBelow(0.4))]
        [2, 3]
        """
        looked = min(drafted + (not self.stop.keeps), self.k)
        return Cut(self.k, drafted, self.passes if self.parallel else (1,) * looked)

    def of_length(self, k: int) -> Self:
        """The same rule with another most."""
        return type(self)(k, self.stop, self.parallel)

    def __str__(self) -> str:
        """Short form for tables."""
        return f"{super().__str__()}, {self.stop}"


@dataclass(frozen=True)
class Cut(Chain):
    """A call of a chain of at most k tokens that drafts so many, with the passes that it makes.

    Examples
    --------
    >>> Cut(4, 2, (1, 1, 1)).verified
    {3: 1.0}
    """

    drafted: int
    made: tuple[int, ...]

    @property
    def passes(self) -> tuple[int, ...]:
        """Those that were made."""
        return self.made

    @property
    def verified(self) -> Mapping[int, float]:
        """The target's pass is on what was drafted and one token more."""
        return {self.drafted + 1: 1.0}
