"""Charts of a judgement and of a comparison: each rule's calls, and accepted drafts by position, of one run or two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from spectheory.intervals import Interval
from spectheory.judging.comparison import Comparison
from spectheory.judging.difference import Difference
from spectheory.judging.judgement import Judgement
from spectheory.judging.standing import FALSE_ALARMS, Standing
from spectheory.pages.page import Lines, Part
from spectheory.pages.vega import QUIET, VegaChart, alt, choice, curves, data, ends, numbers, rounded, rows, specified
from spectheory.plots.chart import Chart, Dot, Series, series_in
from spectheory.plots.style import BLUE, ORANGE, Look
from spectheory.reports.judgement import shown

REACH = 1.96
"""Standard deviations of a 95% interval."""
FITS, REFUTED = "fits", "refuted"
_EXPECTED = (
    "Expected: the path theorem for the engine's own texts, exact given them; the interval is the 95% of the normal "
    "limit. Verdicts rest on exact p-values or upper bounds of them."
)


def judgement_parts(answer: Judgement) -> list[Part]:
    """The causes of what was refuted, if there are any, and the charts."""
    causes = [f"{each.cause}: {each.sentence}" for each in answer.causes]
    parts: list[Part] = [Lines("causes", "What may explain the counts", causes)] if causes else []
    parts.append(_calls(answer))
    if any(one.positions for one in answer.standings):
        parts.append(_positions(answer.standings, shown(answer).rule))
    return parts


def _calls(answer: Judgement) -> VegaChart:
    counted = answer.standings[0].calls.counted
    looks = {FITS: Look(BLUE, "o"), REFUTED: Look(ORANGE, "s")}
    dots = tuple(
        Dot(
            REFUTED if one.refuted else FITS,
            _interval(one.calls),
            Interval.exact(place),
            ", ".join([one.rule, *one.same]),
            says=f"z = {one.calls.z:+.1f}",
        )
        for place, one in enumerate(answer.standings)
    )
    chart = Chart(
        "calls",
        "Calls: expected by rule, and counted",
        "calls",
        "",
        series_in(looks, dots),
        dots,
        words=f"Expected calls of each rule with their 95% intervals; the broken line is the {counted} calls that the "
        "engine counted. A rule is refuted by all its counts together, so one whose calls fit may be.",
        assumes=(_EXPECTED, f"The rule that runs is refuted with probability {FALSE_ALARMS:g} at most."),
        reference=(counted, "counted"),
    )
    return rows(chart)


def _positions(standings: Sequence[Standing], first: str) -> VegaChart:
    placed = [row for one in standings for row in _rows(one)]
    base = data(placed).transform_filter("datum.rule == rule")
    tips = ["position:O", "counted:Q", *numbers("best", "low", "high", form=".1f"), *numbers("z", form="+.2f")]
    base = base.encode(x=alt.X("position:O", title="position i in a call", axis=alt.Axis(labelAngle=0)), tooltip=tips)
    y = alt.Y("low:Q", title="calls that accept at least i drafts", scale=alt.Scale(zero=True))
    arms = base.mark_rule(strokeWidth=10, opacity=0.35, color="var(--blue)").encode(y=y, y2="high:Q")
    expected = base.mark_tick(width=26, thickness=2, color="var(--blue)").encode(y="best:Q")
    counted = base.mark_point(filled=True, size=60, opacity=1, color="var(--orange)").encode(y="counted:Q")
    z = base.mark_text(baseline="bottom", color=QUIET, fontSize=12).encode(y=alt.value(-6), text="words:N")
    named = choice("rule", "rule", list(dict.fromkeys(row["rule"] for row in placed)), first)
    return VegaChart(
        "positions",
        "Accepted drafts by position",
        "Calls that accept at least i drafts: orange dots are counted, blue bars expected with their 95% intervals. "
        "The numbers above are z, the difference of counted and expected in standard deviations.",
        specified(alt.layer(arms, expected, counted, z).add_params(named)),
        [_EXPECTED, "Where acceptance past the end of a text is unknown, bars reach from the lowest to the highest."],
    )


def _rows(one: Standing) -> Iterator[dict[str, Any]]:
    for number, each in enumerate(one.positions, start=1):
        z = rounded(max(min(each.z, 99.0), -99.0))
        said = {"rule": one.rule, "position": number, "counted": each.counted, "z": z, "words": f"{each.z:+.1f}"}
        yield {**ends(_interval(each)), **said}


def _interval(one: Comparison) -> Interval:
    """What is expected: its middle, and its 95% interval."""
    reach = REACH * one.deviation
    return Interval(max(0.0, one.low - reach), (one.low + one.high) / 2, one.high + reach, "statistical")


# Two runs

BEYOND_NOISE, WITHIN_NOISE = "beyond noise", "within noise"


def difference_charts(answer: Difference) -> list[VegaChart]:
    """The charts of a comparison; of runs without positions the differences alone."""
    return [*([curves(_shares(answer))] if len(answer.changes) > 1 else []), rows(_differences(answer))]


def _shares(answer: Difference) -> Chart:
    runs = {answer.one.name: "one", answer.other.name: "other"}
    return Chart(
        "positions",
        "Acceptance by position, of both runs",
        "position i in a call",
        "share of calls that accept at least i drafts",
        tuple(Series(name, look) for name, look in zip(runs, (Look(BLUE, "o"), Look(ORANGE, "s")), strict=False)),
        tuple(
            Dot(name, Interval.exact(place), Interval.exact(getattr(change, side)), name)
            for name, side in runs.items()
            for place, change in enumerate(answer.changes[1:], 1)
        ),
        words=f"The share of calls that accept at least i of k = {answer.k} drafts, as counted or as expected.",
    )


def _differences(answer: Difference) -> Chart:
    looks = {BEYOND_NOISE: Look(ORANGE, "s"), WITHIN_NOISE: Look(BLUE, "o")}
    dots = tuple(
        Dot(
            BEYOND_NOISE if answer.differs(change) else WITHIN_NOISE,
            change.difference,
            Interval.exact(place),
            change.what,
            says=f"{change.difference.best:+.3f}",
        )
        for place, change in enumerate(answer.changes)
    )
    return Chart(
        "differences",
        "Differences",
        f"{answer.other.name} less {answer.one.name}",
        "",
        series_in(looks, dots),
        dots,
        words="Tokens per call, and the share of calls that accept a position: the second run less the first, with 95% "
        "intervals. On the broken line both are equal.",
        reference=(0.0, "equal"),
    )
