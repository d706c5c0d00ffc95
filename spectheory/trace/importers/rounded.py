"""Counts recovered from the rounded means and shares that logs print."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import TextError
from spectheory.trace.calls import MOST_DRAFTS

NUMBER = r"\d+(?:\.\d+)?"
"""Pattern of a number as logs print it."""
SLACK = 1e-9
"""Of halves in decimal that double precision cannot hold."""
MOST_TRIED = 20_000
"""Numbers of calls that are tried one by one; of a longer range so many, evenly: one fits beside another there."""


def half_unit(digits: int) -> float:
    """How far a number that is printed with so many digits after the point may be from its value."""
    return 0.5 * 10.0**-digits


def calls_of(accepted: int, length: float, digits: int, drafted: int, k: int | None) -> tuple[int | None, bool]:
    """Calls from ``length = 1 + accepted / calls``, and whether they are certain; None if nothing was accepted.

    Every call with all of its k drafts, drafted / k, is preferred where the rounded length allows it.
    """
    full = drafted // k if k and drafted % k == 0 else None
    if accepted == 0:
        return full, full is not None
    unit = half_unit(digits)
    low = math.ceil(accepted / (length - 1 + unit) - SLACK)
    most = math.floor(accepted / (length - 1 - unit) + SLACK) if length - 1 > unit else drafted
    high = min(most, drafted)  # a call that is counted drafts a token at least
    if low > high:
        raise TextError(
            f"a mean length of {length:g} with {accepted} accepted tokens fits no number of calls",
            limit="length = 1 + accepted / calls",
            remedy="check the line for other counts",
        )
    if full is not None and low <= full <= high:
        return full, True
    best = round(accepted / (length - 1)) if length > 1 else high
    return min(max(best, low), high), low == high


def calls_within(
    accepted: int, drafted: int, length: tuple[float, int], shares: tuple[Sequence[float], int]
) -> NDArray[np.int64]:
    """Every number of calls that fits what was printed: `length` and `shares` with their digits after the point.

    n calls accept whole numbers c_i of drafts at position i, none of more than one before, c_i / n rounds to the i-th
    share, and all c_i add up to the accepted tokens. Each call drafts 1 to k tokens, k the number of shares.
    """
    values, unit = np.array(shares[0]), half_unit(shares[1]) + SLACK
    above = length[0] - 1
    ends = (accepted / (above + half_unit(length[1])), accepted / max(above - half_unit(length[1]), SLACK))
    full, most_calls = max(-(-drafted // len(values)), 1), max(drafted, 1)
    low, high = (max(full, int(ends[0])), min(most_calls, int(ends[1]) + 1)) if accepted else (full, most_calls)
    n = np.arange(low, high + 1, max((high - low) // MOST_TRIED, 1))
    least = np.ceil(np.multiply.outer(n, values - unit) - SLACK).clip(min=0)
    most = np.floor(np.multiply.outer(n, values + unit) + SLACK).clip(max=n[:, None])
    most = np.minimum.accumulate(most, axis=1)
    fits = np.all(least <= most, axis=1) & (least.sum(axis=1) <= accepted) & (accepted <= most.sum(axis=1))
    fits &= abs(1 + accepted / n - length[0]) <= half_unit(length[1]) + SLACK
    return n[fits]


def shares_of(
    shares: Sequence[float], digits: int, calls: int | None, accepted: int
) -> tuple[tuple[float, ...], float]:
    """Shares as counts over calls, and how far they may be off.

    They are exact where calls are so few that one count alone fits each share, and these give the accepted tokens.
    """
    if not shares:
        return (), 0.0
    if calls and 2 * half_unit(digits) * calls <= 1:
        counts = [round(share * calls) for share in shares]
        fits = all(
            abs(count / calls - share) <= half_unit(digits) + SLACK for count, share in zip(counts, shares, strict=True)
        )
        if fits and sum(counts) == accepted:
            return tuple(count / calls for count in counts), 0.0
    return tuple(shares), half_unit(digits)


def longest_of(length: float, rate: float, digits: int) -> tuple[int | None, bool]:
    """The k that follows from tokens per call and an acceptance rate, and whether the rate counts the bonus token.

    The rate is (length - 1) / k, or length / (k + 1); None unless one k alone fits within rounding.
    """
    unit = half_unit(digits)
    fits = []
    for counted, above in ((False, length - 1), (True, length)):
        if rate > unit and above > unit:
            low, high = (above - unit) / (rate + unit), (above + unit) / (rate - unit)
            whole = [
                n
                for n in range(math.ceil(low - SLACK), min(math.floor(high + SLACK), MOST_DRAFTS + 1) + 1)
                if n > counted
            ]
            fits += [(n - counted, counted) for n in whole]
    return fits[0] if len({k for k, _ in fits}) == 1 else (None, False)
