"""A chain that is copied from the text: no model drafts it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from spectheory.distributions import as_numpy
from spectheory.drafting.chain import Chain
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError

_ROUNDING = 1e-9
"""How far the sum of shares may be off 1."""


@dataclass(frozen=True)
class Copied(Chain):
    """At most k tokens copied from the text (prompt lookup): a chain to the target that costs no draft pass.

    Where the text has nothing or less to copy, a call verifies fewer tokens than k + 1. What it costs is the mean over
    calls. `shares` are the shares of calls that copy 0, 1, ..., k tokens; empty: every call copies k.

    Examples
    --------
    >>> Copied(4).nodes, Copied(4).depth, Copied(4).passes
    (4, 4, ())
    >>> str(Copied(4))
    'chain k=4'
    >>> Copied(2, (0.5, 0.0, 0.5)).verified
    {1: 0.5, 3: 0.5}
    """

    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.shares, tuple) and not self.shares:
            return
        shares = as_numpy(self.shares, "shares of calls", SettingError)
        right = (shares >= 0).all() and math.isclose(shares.sum(), 1, rel_tol=_ROUNDING)
        if not right or shares.shape != (self.k + 1,):
            raise SettingError(
                f"shares of calls are {self.shares}",
                limit=f"needs {self.k + 1} numbers >= 0 of sum 1",
                remedy="say how many calls copy 0, 1, ... tokens",
            )
        object.__setattr__(self, "shares", tuple(shares.tolist()))

    @property
    def passes(self) -> tuple[int, ...]:
        """None."""
        return ()

    @property
    def verified(self) -> Mapping[int, float]:
        """Share of calls by the tokens of the target's pass."""
        if not self.shares:
            return super().verified
        return {copied + 1: share for copied, share in enumerate(self.shares) if share > 0}

    def of_length(self, k: int) -> Self:
        """The same calls with at most k tokens; longer than now, those that copy all would all copy more (an estimate).

        Examples
        --------
        >>> calls = Copied(2, (0.5, 0.25, 0.25))
        >>> calls.of_length(1).shares, calls.of_length(3).shares
        ((0.5, 0.5), (0.5, 0.25, 0.0, 0.25))
        """
        below = self.shares[: min(at_least_one("k", k), self.k)]
        return type(self)(k, (*below, *(0.0,) * (k - len(below)), 1 - sum(below)) if self.shares else ())
