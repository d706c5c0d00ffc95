"""How the tokens of a call are drafted (§10): one pass for each depth, one pass for all, or copied from the text."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from spectheory.distributions import as_numpy
from spectheory.errors import SettingError

_ROUNDING = 1e-9
"""How far the sum of shares may be off 1."""


class Schedule(ABC):
    """The passes in which a call's tree is drafted, and the tokens that the target then reads.

    `inner` are the nodes of each depth that have children, the root first. `chains_only`: whether it drafts no tree.
    """

    chains_only: ClassVar[bool] = False

    @abstractmethod
    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """Tokens of each draft pass."""

    def stopped(self, inner: tuple[int, ...], looked: int) -> tuple[int, ...]:
        """Tokens of each draft pass of a call that looks at so many positions of a chain (§11)."""
        return self.passes(inner)[:looked]

    def verified(self, nodes: int) -> Mapping[int, float]:
        """Share of calls by the tokens of the target's pass: all of them nodes + 1 unless drafts vary in length."""
        return {nodes + 1: 1.0}

    def of_length(self, k: int) -> Schedule:
        """That of a chain of k tokens."""
        return self

    def checked(self, nodes: int) -> Self:
        """Itself; a number of nodes that it does not draft is refused."""
        return self


@dataclass(frozen=True)
class Sequential(Schedule):
    """One pass for each depth, on the nodes that have children: a draft model, or an autoregressive head.

    Examples
    --------
    >>> from spectheory.drafting import KAry
    >>> KAry((2, 2), schedule=Sequential()).passes
    (1, 2)
    """

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """As many as the tree is deep."""
        return inner


SEQUENTIAL = Sequential()


@dataclass(frozen=True)
class Parallel(Schedule):
    """One pass on as many tokens as the tree is deep: a parallel head, whose nodes of one depth share a pmf (§10).

    Examples
    --------
    >>> from spectheory.drafting import Chain, Grown, KAry
    >>> [shape.passes for shape in (Chain(4, schedule=Parallel()), KAry((2, 2), schedule=Parallel()))]
    [(4,), (2,)]
    >>> Grown(16, 4, 5, schedule=Parallel()).passes
    (5,)
    """

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """One."""
        return (len(inner),)

    def stopped(self, inner: tuple[int, ...], looked: int) -> tuple[int, ...]:
        """The same pass, whatever is then verified."""
        return self.passes(inner)


@dataclass(frozen=True)
class Copied(Schedule):
    """Copied from the text (prompt lookup): a chain to the target that costs no draft pass.

    Where the text has nothing or less to copy, a call verifies fewer tokens than k + 1. What it costs is the mean over
    calls. `shares` are the shares of calls that copy 0, 1, ..., k tokens; empty: every call copies k.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> shape = Chain(2, schedule=Copied((0.5, 0.0, 0.5)))
    >>> str(shape), shape.passes, shape.verified
    ('chain k=2', (), {1: 0.5, 3: 0.5})
    """

    shares: tuple[float, ...] = ()

    chains_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.shares, tuple) and not self.shares:
            return
        shares = as_numpy(self.shares, "shares of calls", SettingError)
        if shares.ndim != 1 or not (shares >= 0).all() or not math.isclose(shares.sum(), 1, rel_tol=_ROUNDING):
            raise self._refused(shares.size if shares.ndim == 1 else "k + 1")
        object.__setattr__(self, "shares", tuple(shares.tolist()))

    def checked(self, nodes: int) -> Self:
        """Itself; shares of chains of another length are refused."""
        if self.shares and len(self.shares) != nodes + 1:
            raise self._refused(nodes + 1)
        return self

    def _refused(self, number: int | str) -> SettingError:
        return SettingError(
            f"shares of calls are {self.shares}",
            limit=f"needs {number} numbers >= 0 of sum 1",
            remedy="say how many calls copy 0, 1, ... tokens",
        )

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """None."""
        return ()

    def verified(self, nodes: int) -> Mapping[int, float]:
        """Share of calls by the tokens of the target's pass."""
        shares = {copied + 1: share for copied, share in enumerate(self.shares) if share > 0}
        return shares or super().verified(nodes)

    def of_length(self, k: int) -> Self:
        """The same calls with at most k tokens; longer than now, those that copy all would all copy more (an estimate).

        Examples
        --------
        >>> from spectheory.drafting import Chain
        >>> shape = Chain(2, schedule=Copied((0.5, 0.25, 0.25)))
        >>> shape.of_length(1).schedule, shape.of_length(3).schedule
        (Copied(shares=(0.5, 0.5)), Copied(shares=(0.5, 0.25, 0.0, 0.25)))
        """
        below = self.shares[: min(k, len(self.shares) - 1)] if self.shares else ()
        return replace(self, shares=(*below, *(0.0,) * (k - len(below)), 1 - sum(below)) if self.shares else ())

    def only(self, copied: int, k: int) -> Schedule:
        """That of those calls of k tokens that copy so many."""
        return Copied(tuple(float(each == copied) for each in range(k + 1)))


@dataclass(frozen=True)
class CopiedElse(Copied):
    """Copied where a lookup finds something, else drafted as `other` says: `shares[0]` is that of these calls.

    The passes are those of a call that copies nothing: the time of the whole shape is an upper bound of the mean.

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> shape = Chain(2, schedule=CopiedElse((0.5, 0.25, 0.25)))
    >>> shape.passes, shape.verified
    ((1, 1), {3: 0.75, 2: 0.25})
    """

    other: Schedule = SEQUENTIAL

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """Those of a call that copies nothing."""
        return self.other.passes(inner)

    def verified(self, nodes: int) -> Mapping[int, float]:
        """Share of calls by the tokens of the target's pass; one that copies nothing drafts the whole chain."""
        tokens = {nodes + 1: self.shares[0] + self.shares[-1]} if self.shares else {nodes + 1: 1.0}
        return tokens | {copied + 1: share for copied, share in enumerate(self.shares[:-1]) if copied and share > 0}

    def only(self, copied: int, k: int) -> Schedule:
        """That of those calls of k tokens that copy so many."""
        return super().only(copied, k) if copied else self.other


@dataclass(frozen=True)
class Cut(Schedule):
    """A call that drafts so many tokens of a chain, with the passes that it makes (§11).

    Examples
    --------
    >>> from spectheory.drafting import Chain
    >>> Chain(4, schedule=Cut(2, (1, 1, 1))).verified
    {3: 1.0}
    """

    tokens: int
    made: tuple[int, ...]

    chains_only: ClassVar[bool] = True

    def passes(self, inner: tuple[int, ...]) -> tuple[int, ...]:
        """Those that were made."""
        return self.made

    def verified(self, nodes: int) -> Mapping[int, float]:
        """The target's pass is on what was drafted and one token more."""
        return {self.tokens + 1: 1.0}
