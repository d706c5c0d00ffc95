"""Charts of an engine's counts: tokens per call and speed-up at every k, and which k were counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path

from spectheory.intervals import Interval
from spectheory.judging.readings import ReadingAtK, Readings
from spectheory.judging.several_k import Together, TogetherAtK
from spectheory.plots.chart import Chart, Dot, Series, write_curves
from spectheory.plots.prediction import DRAFTED, PLAIN, PREDICTED
from spectheory.plots.style import BLACK, DISTINCT, Look

AtK = ReadingAtK | TogetherAtK
COUNTED, _COUNTED = "counted", Look(BLACK, "D")


def readings_charts(logs: Mapping[str, Readings], joint: Together | None = None) -> list[Chart]:
    """Tokens per call and, with costs, speed-ups: of each log, or of those that are read `joint` together."""
    rows: dict[str, Sequence[AtK]] = {name: log.rows for name, log in logs.items()}
    if joint is not None and not joint.doubtful:
        rows = {"all counts together": joint.rows}
    charts = [_chart("tokens", "Tokens per target call", "tokens per target call", rows, lambda at: at.tokens_per_call)]
    if all(at.speedup for each in rows.values() for at in each):
        charts.append(_chart("speedup", "Speed-up", PREDICTED, rows, _speedup, PLAIN))
    return charts


def _speedup(at: AtK) -> Interval:
    assert at.speedup is not None
    return at.speedup


def _counted(at: AtK) -> bool:
    return at.counted if isinstance(at, TogetherAtK) else at.basis == COUNTED


def _chart(
    name: str,
    title: str,
    up: str,
    rows: Mapping[str, Sequence[AtK]],
    value: Callable[[AtK], Interval],
    reference: tuple[float, str] | None = None,
) -> Chart:
    """A line over k for each log, and the k that it counted as a line of their own."""
    series, dots = [], []
    for each, look in zip(rows, cycle(DISTINCT), strict=False):
        known = f"{each}: {COUNTED}"
        series += [Series(each, look, each, dashed=True), Series(known, _COUNTED)]
        dots += [Dot(each, Interval.exact(at.k), value(at), each) for at in rows[each]]
        dots += [Dot(known, Interval.exact(at.k), value(at), known) for at in rows[each] if _counted(at)]
    return Chart(
        name,
        title,
        DRAFTED,
        up,
        tuple(one for one in series if any(dot.series == one.name for dot in dots)),
        tuple(dots),
        words="Diamonds: counted at this k. Dashed: read for a shorter or longer k; the band holds both readings "
        "(matches renew at each miss, or the same shares are summed) and the error of counting.",
        heading=f"{title}; diamonds: counted, dashed: read for another k",
        reference=reference,
    )


def write_readings(logs: Mapping[str, Readings], joint: Together | None, folder: Path) -> list[Path]:
    """Write ``tokens`` and, with costs, ``speedup``."""
    return write_curves({chart.name: chart for chart in readings_charts(logs, joint)}, folder)
