"""Intervals keep their order, their kind and their meaning under sums and products."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import theorem
from spectheory import Interval
from spectheory.intervals import Kind

KINDS: tuple[Kind, ...] = ("exact", "bound", "statistical")


def intervals(kind: Kind) -> st.SearchStrategy[Interval]:
    """Non-negative intervals of one kind; exact ones have no width."""
    ends = st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(sorted)
    if kind == "exact":
        return ends.map(lambda e: Interval.exact(e[0]))
    return ends.map(lambda e: Interval(e[0], e[1], e[2], kind))


any_interval = st.sampled_from(KINDS).flatmap(intervals)


@theorem
@given(any_interval, any_interval, st.floats(0, 1), st.floats(0, 1))
def test_a_product_holds_every_product(a: Interval, b: Interval, s: float, t: float) -> None:
    """X in A and y in B: xy in AB, and the kind of AB is the weaker of the two."""
    product = a * b
    x, y = a.low + s * (a.high - a.low), b.low + t * (b.high - b.low)
    assert product.low * (1 - 1e-15) <= x * y <= product.high * (1 + 1e-15)
    assert product.best == a.best * b.best
    assert product.kind == max(a.kind, b.kind, key=KINDS.index)
    assert b * a == product


@theorem
@given(any_interval, st.floats(-10, 10), st.floats(0, 10))
def test_known_numbers_shift_and_scale(a: Interval, shift: float, factor: float) -> None:
    """A + c and a c move all three ends and keep the kind."""
    assert a + shift == Interval(a.low + shift, a.best + shift, a.high + shift, a.kind)
    assert a * factor == Interval(a.low * factor, a.best * factor, a.high * factor, a.kind)


def test_an_exact_value_is_one_number() -> None:
    assert Interval.exact(2.5) == Interval(2.5, 2.5, 2.5, "exact")
    assert str(Interval.exact(2.5)) == "2.500"
    assert str(Interval(1, 1.5, 2, "bound")) == "1.500 [1.000, 2.000]"


def test_an_interval_survives_json() -> None:
    interval = Interval(1.0, 1.5, 2.0, "statistical")
    assert Interval(**json.loads(json.dumps(interval.as_dict()))) == interval


@pytest.mark.parametrize(
    ("low", "best", "high", "kind"),
    [
        (1, 0.5, 2, "bound"),
        (0, 3, 2, "bound"),
        (2, 1, 0, "statistical"),
        (0, math.nan, 1, "bound"),
        (math.nan, math.nan, math.nan, "exact"),
        (0, 0.5, 1, "exact"),
    ],
)
def test_disorder_is_refused(low: float, best: float, high: float, kind: Kind) -> None:
    with pytest.raises(ValueError, match=r"needs low <= best <= high|means no width|must be a number"):
        Interval(low, best, high, kind)


def test_an_estimate_may_have_a_range() -> None:
    ranged = Interval(1.0, 1.5, 2.0, "estimate")
    assert ranged * Interval.exact(2.0) == Interval(2.0, 3.0, 4.0, "estimate")
    assert ranged * Interval.estimate(2.0) == Interval.estimate(3.0)
    assert ranged.short() == "1.50±0.50"


def test_signs_do_not_mix() -> None:
    with pytest.raises(ValueError, match="must be >= 0 in a product"):
        Interval(-1, 0, 1, "bound") * 2
    with pytest.raises(ValueError, match="must be >= 0 in a product"):
        Interval.exact(1) * -1
