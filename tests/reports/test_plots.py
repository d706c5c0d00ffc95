"""Figures: colours and markers that everybody tells apart, and what was measured and planned of a pair."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib import rcParams

from spectheory import plan
from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.intervals import Interval
from spectheory.plots import tokens_per_call
from spectheory.plots.measured import _latencies, acceptance
from spectheory.plots.style import LOOKS, MARKERS, PALETTE, _new_figure, looks_of
from spectheory.trace import TextInfo, Trace
from spectheory.verification.registry import BUILT_IN, DEFAULT_RULES, DEFAULT_TREE_RULES, VALIDATED_RULES

APART = 12.0
"""Least distance of two colours of a figure, five times what is just noticeable, as markers are small."""

SEEN = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
LAB = np.array([[0, 116, 0], [500, -500, 0], [0, 200, -200]])


def lab(colour: str, vision: str) -> np.ndarray:
    """L*a*b* of a colour as it is seen; the white point is that of the three primaries."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(SEEN[vision] @ linear, 0, 1) / XYZ.sum(axis=1)
    return LAB @ np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29) - [16, 0, 0]


def distance(one: str, other: str, vision: str) -> float:
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


@pytest.mark.parametrize("vision", SEEN)
def test_every_two_colours_are_told_apart(vision: str) -> None:
    near = {(a, b): d for a, b in combinations(PALETTE, 2) if (d := distance(PALETTE[a], PALETTE[b], vision)) < APART}
    assert near == {}
    assert all(distance(colour, "#FFFFFF", vision) > 2 * APART for colour in PALETTE.values()), "on white"


def test_the_simulation_sees_what_is_hard_to_tell_apart() -> None:
    """Negative control: red and green of one brightness, and blue and green, each for the eyes that mix them up."""
    for one, other, vision in (("#D55E00", "#A6761D", "protanopia"), ("#CC79A7", "#8FA0A7", "deuteranopia")):
        assert distance(one, other, vision) < APART < distance(one, other, "normal")
    assert distance("#0072B2", "#00757A", "tritanopia") < APART < distance("#0072B2", "#00757A", "normal")
    assert distance("#000000", "#FFFFFF", "normal") == pytest.approx(100, abs=0.01)


def test_no_two_rules_share_a_marker() -> None:
    assert len(BUILT_IN) <= len(MARKERS), "append a marker to MARKERS"
    assert len({look.marker for look in LOOKS.values()}) == len(BUILT_IN)
    assert all(rule.colour in PALETTE for rule in BUILT_IN)


def test_rules_that_are_drawn_by_default_have_their_own_colours() -> None:
    trees = [kind[0] for kind in DEFAULT_TREE_RULES]
    for together in ((*DEFAULT_RULES, *trees), (*VALIDATED_RULES, *trees)):
        looks = looks_of({rule.name: rule for rule in together}.values())
        assert {name: LOOKS[name] for name in looks} == looks
        assert len({look.colour for look in looks.values()}) == len(looks)


def test_measured_shares_add_up_and_passes_are_in_milliseconds() -> None:
    known = {"log_target": np.full(8, -0.7), "log_draft": np.full(8, -0.7), "total_variation": np.linspace(0.0, 0.9, 8)}
    left, right = _new_figure((8, 4)).subplots(1, 2)
    acceptance(left, Trace(known, (TextInfo("1", 8),)))
    assert np.isclose(sum(patch.get_height() for patch in left.patches), 100)
    assert left.texts[0].get_text() == "mean 0.550"
    second = Interval.exact
    _latencies(right, LatencyTable({1: second(0.01), 4: second(0.02)}, {1: second(0.001), 2: second(0.002)}, 64))
    target = next(line for line in right.get_lines() if len(line.get_xdata()) == 2)
    np.testing.assert_allclose(target.get_ydata(), [10, 20])


def test_a_plot_draws_into_the_axes_of_another_figure() -> None:
    """Also of a part of a figure; settings and the other axes stay as they are."""
    trace = Trace.from_log_probabilities([([-1.0] * 30, [-1.2] * 30)] * 3)
    whole: Any = _new_figure((9, 4))
    left, right = whole.subfigures(1, 2)
    mine, other = left.subplots(), right.subplots()
    before = dict(rcParams)
    artists = tokens_per_call(mine, plan(trace, ConstantRatio(0.1)))
    assert {artist.axes for artist in artists} == {mine}
    assert "token verification" in [text.get_text() for text in mine.texts]
    assert not other.has_data()
    assert dict(rcParams) == before
