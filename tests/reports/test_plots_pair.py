"""Figures of one pair: what was measured, and what was planned from it."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rcParams

from spectheory import plan
from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.intervals import Interval
from spectheory.plots import tokens_per_call
from spectheory.plots.measured import acceptance, latencies
from spectheory.plots.style import new_figure
from spectheory.trace import TextInfo, Trace


def test_measured_shares_add_up_and_passes_are_in_milliseconds() -> None:
    known = {"log_target": np.full(8, -0.7), "log_draft": np.full(8, -0.7), "total_variation": np.linspace(0.0, 0.9, 8)}
    left, right = new_figure((8, 4)).subplots(1, 2)
    acceptance(left, Trace(known, (TextInfo("1", 8),)))
    assert np.isclose(sum(patch.get_height() for patch in left.patches), 100)
    assert left.texts[0].get_text() == "mean 0.550"
    second = Interval.exact
    latencies(right, LatencyTable({1: second(0.01), 4: second(0.02)}, {1: second(0.001), 2: second(0.002)}, 64))
    target = next(line for line in right.get_lines() if len(line.get_xdata()) == 2)
    np.testing.assert_allclose(target.get_ydata(), [10, 20])


def test_a_plot_draws_into_the_axes_of_another_figure() -> None:
    """Also of a part of a figure; settings and the other axes stay as they are."""
    trace = Trace.from_log_probabilities([([-1.0] * 30, [-1.2] * 30)] * 3)
    whole: Any = new_figure((9, 4))
    left, right = whole.subfigures(1, 2)
    mine, other = left.subplots(), right.subplots()
    before = dict(rcParams)
    artists = tokens_per_call(mine, plan(trace, ConstantRatio(0.1)))
    assert {artist.axes for artist in artists} == {mine}
    assert "token verification" in [text.get_text() for text in mine.texts]
    assert not other.has_data()
    assert dict(rcParams) == before
