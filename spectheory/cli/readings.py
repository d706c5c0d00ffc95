"""Counts of an engine in place of a trace: what `predict` and `plan` answer then."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from spectheory.checks import in_range
from spectheory.cli.answer import show
from spectheory.cli.inputs import read_latencies, refuse_idle
from spectheory.cli.options import LATENCY_FILE, OF_ROOFLINES, Question
from spectheory.cli.what_if import show_of_chains
from spectheory.cost import ConstantRatio, CostModel, LatencyTable, Roofline
from spectheory.deployment import Load
from spectheory.errors import SettingError
from spectheory.judging.readings import readings
from spectheory.judging.several_k import alike, together
from spectheory.plots.readings import readings_charts, write_readings
from spectheory.reports import readings_report
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.reading import evidence_file

if TYPE_CHECKING:
    from spectheory.pages import Part

Counts: TypeAlias = Counters | CallLog
TAKEN = {"rule", "trace", "logprobs", "draft_log", "traces", "k_max", "c", "latency", "passes_alone", "out"}
TAKEN |= {"json", "all", "explain", "report", "what_if"}
WITH_ROOFLINES = {"hardware", *OF_ROOFLINES}
LONGEST = 256


def show_readings(
    question: Question,
    logs: Mapping[str, tuple[Path, Counts]],
    name: str,
    loaded: tuple[Roofline, Load] | None = None,
) -> None:
    """Readings of each log, by name; `name` is that of the JSON file in the folder asked for.

    With a roofline and a load they are planned with these.
    """
    refuse_idle(question, TAKEN | (WITH_ROOFLINES if loaded else set()), "an engine's counts", "measure the pair")
    in_range("--k-max", question.k_max, LONGEST)
    if question.rule and len(question.rule) > 1:
        raise SettingError(
            f"{len(question.rule)} rules given with an engine's counts",
            limit="an engine runs one",
            remedy="name that one",
        )
    rule, (roofline, load) = question.rule[0] if question.rule else "", loaded or (None, None)

    def cost_of(path: Path, counts: Counts) -> CostModel | None:
        return roofline or _cost(question, path, counts)

    by_name = {
        each: readings(counts, cost_of(path, counts), k_max=question.k_max, rule=rule, load=load)
        for each, (path, counts) in logs.items()
    }
    if getattr(question, "what_if", None):
        (only,) = by_name.values()
        return show_of_chains(question, only.rows[: only.k], counted=True)
    several = [counts for _, counts in logs.values()]
    first = next(iter(logs.values()))
    joint = together(several, cost_of(*first), k_max=question.k_max) if alike(several) else None

    def parts() -> list[Part]:
        from spectheory.pages.vega import curves

        return [curves(chart) for chart in readings_charts(by_name, joint)]

    figures = partial(write_readings, by_name, joint)
    show(readings_report(by_name, joint), question, name, figures=figures, title="Readings", parts=parts)


def _cost(question: Question, path: Path, counts: Counts) -> CostModel | None:
    if question.c is not None and question.latency:
        raise SettingError("--c and --latency are both given", limit="one cost model", remedy="leave one out")
    if question.c is not None:
        return ConstantRatio(question.c)
    beside = evidence_file(path).with_name(LATENCY_FILE)
    if not (question.latency or beside.exists()):
        return None
    table: LatencyTable = read_latencies(question.latency or beside, counts.provenance)
    return table if question.passes_alone else table.looped
