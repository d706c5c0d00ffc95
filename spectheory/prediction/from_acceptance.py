"""What an acceptance rate alone says of tokens per call and speed-up: for each k the range of all texts (C6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spectheory.checks import real, whole
from spectheory.cost import ConstantRatio, iid_tokens_per_call, required_acceptance
from spectheory.drafting import Chain
from spectheory.errors import argument
from spectheory.intervals import Interval
from spectheory.limits.mean_acceptance import (
    least_tokens_per_call,
    most_tokens_per_call,
    tokens_per_call_between,
)
from spectheory.prediction.guessed_ratio import GUESSES

LONGEST = 256


@dataclass(frozen=True)
class AtLength:
    """A chain of k drafts.

    `tokens_per_call` holds every text with this acceptance; its `best` is the idealised value of i.i.d. acceptances
    (C1). `speedups` are at each of the c asked for, or nothing.
    """

    k: int
    tokens_per_call: Interval
    speedups: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class FromAcceptance:
    """The ranges of all texts with an acceptance rate, and the lengths worth trying.

    `acceptance` is what was given: the mean over positions of the text, or accepted over drafted tokens if every call
    drafted `counted_k`. `cs` are half the c given, the c, and twice that; of free drafts 0 alone.
    """

    acceptance: float
    counted_k: int | None
    cs: tuple[float, ...]
    rows: tuple[AtLength, ...]

    @property
    def safest(self) -> AtLength:
        """The length with the largest speed-up that is sure at the c given, of equal ones the likeliest best; without
        c the longest.
        """
        if not self.cs:
            return self.rows[-1]
        return max(self.rows, key=lambda row: (self.gain(row).low, self.gain(row).best))

    @property
    def likeliest(self) -> AtLength:
        """The length with the largest speed-up if acceptances are i.i.d. (idealised)."""
        return max(self.rows, key=lambda row: self.gain(row).best) if self.cs else self.rows[-1]

    @property
    def c(self) -> float:
        """The c given."""
        return self.cs[len(self.cs) // 2]

    def gain(self, row: AtLength) -> Interval:
        """The speed-up of a length at the c given."""
        return row.speedups[len(self.cs) // 2]


def from_acceptance(
    acceptance: float, c: float | None = None, *, k_max: int = 16, counted_k: int | None = None
) -> FromAcceptance:
    """Tokens per call and speed-up of chains of 1 to `k_max` drafts, from an acceptance rate and nothing else (C6).

    `acceptance` is the mean acceptance over the positions of a text, as E[1 - TV] of token verification. With
    `counted_k` it is accepted over drafted tokens as engines print it, where every call drafted so many: then tokens
    per call at that k are 1 + k times the rate, and ranges hold all texts that have them. Ranges assume a rule that
    decides each position alone, in the same way at every depth (token verification, matching), and leave out the last
    call of a text and the error of the rate itself. From a mean acceptance the lower ends hold for block verification
    too, in the mean over texts that the target samples (B7); with `counted_k` they do not. Speed-ups are for a draft
    step of `c` target steps, of half and of twice as many, and for verification in the time of a plain step (C1).

    Raises
    ------
    SettingError
        A rate outside [0, 1], a negative c, or a k that is not in 1..256.

    Examples
    --------
    >>> row = from_acceptance(0.8, 0.05).rows[6]
    >>> row.k, [round(end, 2) for end in (row.tokens_per_call.low, row.tokens_per_call.best, row.tokens_per_call.high)]
    (7, [3.33, 4.16, 5.0])
    >>> from_acceptance(0.8, counted_k=1).rows[0].tokens_per_call
    Interval(low=1.8, best=1.8, high=1.8, kind='exact')
    """
    rate = real(
        argument("acceptance"),
        acceptance,
        lambda share: 0 <= share <= 1,
        limit="must be in [0, 1]",
        remedy="0.8 is one",
    )
    longest = whole(argument("k_max"), k_max, most=LONGEST, remedy="16 is the default")
    ratio = 0.0 if c is None else ConstantRatio(c).c
    costs = [] if c is None else [ConstantRatio(factor * ratio) for factor in (GUESSES if ratio else [1.0])]
    ends: Callable[[int], tuple[float, float]]
    if counted_k is None:
        alpha, ends = rate, lambda k: (least_tokens_per_call(rate, k), most_tokens_per_call(rate, k))
    else:
        drafted = whole(argument("counted_k"), counted_k, most=LONGEST, remedy="the number that every call drafted")
        counted = 1 + drafted * rate
        alpha = required_acceptance(counted, drafted, 0.0)
        ends = partial(tokens_per_call_between, counted, drafted)
    rows = []
    for k in range(1, longest + 1):
        (low, high), idealised = ends(k), iid_tokens_per_call(alpha, k)
        tokens = Interval.exact(low) if low == high else Interval(low, min(max(idealised, low), high), high, "bound")
        rows.append(AtLength(k, tokens, tuple(cost.speedup(tokens, Chain(k)) for cost in costs)))
    return FromAcceptance(rate, counted_k, tuple(cost.c for cost in costs), tuple(rows))
