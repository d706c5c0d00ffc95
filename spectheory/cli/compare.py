"""``spectheory compare``: two runs against each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.cli.answer import Page, View, ready_page, show
from spectheory.cli.console import ready_folder
from spectheory.cli.options import LATENCY_FILE, CompareOptions
from spectheory.cost import LatencyTable
from spectheory.judging import compare
from spectheory.reports.difference import difference_report
from spectheory.trace.reading import evidence_file

if TYPE_CHECKING:
    from spectheory.pages import Part


def run_compare(question: CompareOptions) -> None:
    """Answer the question and show the answer."""
    ready_page(question.report)
    if question.out:
        ready_folder(question.out)
    answer = compare(
        question.one,
        question.other,
        k=question.k,
        rule=question.rule,
        texts=question.texts or (),
        costs=_costs(question.one, question.other),
        names=_names(question.one, question.other),
    )
    file = question.out / "difference.json" if question.out else None

    def parts() -> list[Part]:
        from spectheory.pages.difference import difference_charts

        return [*difference_charts(answer)]

    page = Page.asked(question.report, "Comparison", parts)
    show(difference_report(answer), as_json=question.json, file=file, page=page, view=View.of(question))


def _names(one: Path, other: Path) -> tuple[str, str]:
    """What the runs are called: the last parts of their paths, where these differ."""
    return (one.name, other.name) if one.name != other.name else (str(one), str(other))


def _costs(*runs: Path) -> list[LatencyTable]:
    """The latencies beside both runs; none if one has none."""
    files = [evidence_file(run).with_name(LATENCY_FILE) for run in runs]
    return [LatencyTable.read(file).looped for file in files] if all(file.exists() for file in files) else []
