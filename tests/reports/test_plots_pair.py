"""Figures of one pair: what was measured, and what was planned from it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib import rcParams

from spectheory import plan
from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.deployment import BatchChoice, Draft
from spectheory.deployment.ranking import rank_drafts
from spectheory.intervals import Interval
from spectheory.plots import tokens_per_call
from spectheory.plots.deployment import batches, ranking
from spectheory.plots.measured import acceptance, latencies
from spectheory.plots.style import new_figure
from spectheory.trace import TextInfo, Trace


def test_a_ranking_shows_every_candidate_in_order() -> None:
    drafts = [
        Draft(name, Trace.from_log_probabilities([([-1.0] * 30, [-1.0 - gap] * 30)] * 2), ConstantRatio(c))
        for name, gap, c in (("small", 0.4, 0.05), ("large", 0.1, 0.15))
    ]
    ranked = rank_drafts(drafts)
    ax = new_figure((8, 4)).subplots()
    ranking(ax, ranked)
    rows = zip((label.get_text() for label in ax.get_yticklabels()), ranked.candidates, strict=True)
    assert all(f"draft {c.draft.name}, {row}" == c.setting for row, c in rows)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["draft model “large”", "draft model “small”"]
    shown = [text.get_text() for text in ax.texts]
    assert shown[:-1] == [f"{c.speedup.best:.2f}x" for c in ranked.candidates]
    assert ax.yaxis_inverted(), "the fastest on top"


def test_sizes_of_batches_do_not_run_into_each_other() -> None:
    sizes = [1, 8, 1000, 1024, 2000, 4096]
    left, right = new_figure((8.4, 3.6)), new_figure((8.4, 3.6))
    for figure, given in ((left, sizes), (right, [2**i for i in range(9)])):
        batches(figure, [BatchChoice(size, 0, 2, 2.0, 1.5, 100.0) for size in given])
        figure.draw_without_rendering()
        labels = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
        assert all(one.x1 < other.x0 for one, other in pairwise(labels))
        assert all(float(tick).is_integer() for tick in figure.axes[0].get_yticks())
    assert [label.get_text() for label in right.axes[0].get_xticklabels()] == [str(2**i) for i in range(9)]


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
