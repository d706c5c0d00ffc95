"""How seconds are held against tables, on numbers made by hand."""

from __future__ import annotations

import dataclasses

import numpy as np

from spectheory.cost import LatencyTable
from spectheory.drafting import Chain, Copied, KAry
from spectheory.intervals import Interval
from spectheory.measure.decoders import Call
from spectheory.measure.validation.runs import Run
from spectheory.measure.validation.times import (
    CallTime,
    Known,
    budget,
    by_table,
    made_by_table,
    speedup,
)


def test_a_part_is_what_it_says() -> None:
    """One cause at a time: only its own part of the budget is not zero."""
    table = CallTime(np.array([0.5]), np.array([1.1]), np.array([0.1]), 0.05)

    def parts(made: CallTime = table, timed: CallTime = table, trace: float = 2.0, counted: float = 2.0) -> list[str]:
        tokens = np.array([[trace], [2.0], [counted]])
        found = budget(*tokens, table, made, timed)
        miss = np.log(speedup(tokens[2], timed) / speedup(tokens[0], table))
        assert np.isclose(sum(found.values()), miss, atol=1e-12)
        return [name for name, part in found.items() if abs(part[0]) > 1e-12]

    slower = {
        name: dataclasses.replace(table, **{name: np.array([1.3])}) for name in ("drafting", "verifying", "overhead")
    }
    assert parts() == []
    assert parts(trace=2.5) == ["texts"]
    assert parts(counted=2.5) == ["acceptance"]
    for name, timed in slower.items():
        assert parts(timed=timed) == [name]
    assert parts(made=slower["drafting"], timed=slower["drafting"]) == ["cut"]
    assert parts(timed=dataclasses.replace(table, plain=0.2)) == ["plain"]


def test_calls_as_made_by_the_table() -> None:
    """By hand: three drafts in full, then a first pass on two tokens, then a text that ends after one draft."""
    second = Interval.exact
    table = LatencyTable({1: second(2.0), 4: second(5.0)}, {1: second(1.0), 2: second(1.5)}, context=8)
    calls = [Call(3, 3, 3, "bonus", 0, 0, 0), Call(3, 3, 1, "recovered", 0, 0, 0), Call(1, 1, 0, "recovered", 0, 0, 0)]
    made = made_by_table(table, Chain(3), [Run((0,) * 7, 3, 1.0, tuple(calls))] * 2)
    np.testing.assert_allclose(made.drafting, (3.0 + 3.5 + 1.0) / 3 / 2)
    np.testing.assert_allclose(made.verifying, (5.0 + 5.0 + 3.0) / 3 / 2)
    narrow = made_by_table(table, KAry((2, 1)), [Run((0,) * 2, 1, 1.0, (Call(2, 2, 1, "recovered", 0, 0, 0),))] * 2)
    np.testing.assert_allclose(narrow.drafting, 2.0 / 2)  # a draft with a single token: both passes are on one
    calls = [Call(3, 3, 3, "bonus", 0, 0, 0), Call(1, 1, 0, "recovered", 0, 0, 0), Call(0, 0, 0, "plain", 0, 0, 0)]
    copied = made_by_table(table, Chain(3, schedule=Copied()), [Run((0,) * 6, 3, 1.0, tuple(calls))] * 2)
    np.testing.assert_array_equal(copied.drafting, 0.0)
    np.testing.assert_allclose(copied.verifying, (5.0 + 3.0 + 2.0) / 3 / 2)
    one, shares = np.ones(2), np.array([0.0, 1.0])
    shape = by_table(table, Known(Chain(3, schedule=Copied()), one, shares, {4: shares, 1: 1 - shares}))
    np.testing.assert_array_equal(shape.drafting, 0.0)
    np.testing.assert_allclose(shape.verifying, [1.0, 2.5])
    shape = by_table(table, Known(Chain(3), one, shares, {4: one}))
    np.testing.assert_allclose(shape.drafting, [1.5, 1.75])
    np.testing.assert_allclose(shape.verifying, 2.5)
