"""Charts of two runs side by side: acceptance by position, and each difference with its interval."""

from __future__ import annotations

from spectheory.intervals import Interval
from spectheory.judging.difference import Difference
from spectheory.pages.vega import VegaChart, curves, rows
from spectheory.plots.chart import Chart, Dot, Series, series_in
from spectheory.plots.style import BLUE, ORANGE, Look

BEYOND, WITHIN = "beyond noise", "within noise"


def difference_charts(answer: Difference) -> list[VegaChart]:
    """The charts of a comparison; of runs without positions the differences alone."""
    return [*([curves(_positions(answer))] if len(answer.changes) > 1 else []), rows(_differences(answer))]


def _positions(answer: Difference) -> Chart:
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
    looks = {BEYOND: Look(ORANGE, "s"), WITHIN: Look(BLUE, "o")}
    dots = tuple(
        Dot(
            BEYOND if answer.differs(change) else WITHIN,
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
