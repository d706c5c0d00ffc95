"""``spectheory compare``, ``gate`` and ``noise``: two runs, counts and what is expected of them, a run and chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectheory.cli.answer import ready_page, show
from spectheory.cli.console import ready_folder
from spectheory.cli.options import LATENCY_FILE, CompareOptions, GateOptions, NoiseOptions
from spectheory.cli.statuses import Status
from spectheory.cost import LatencyTable
from spectheory.judging import compare
from spectheory.judging.acceptance_gate import gate
from spectheory.judging.chance import noise
from spectheory.reports.difference import difference_report, gate_report, noise_report
from spectheory.trace.reading import evidence_file

if TYPE_CHECKING:
    from spectheory.pages import Part


def run_compare(question: CompareOptions) -> None:
    """Answer the question and show the answer."""
    ready_page(question.report)
    if question.out:
        ready_folder(question.out)
    runs = one, other = question.one, question.other
    files = [evidence_file(run).with_name(LATENCY_FILE) for run in runs]
    answer = compare(
        one,
        other,
        k=question.k,
        rule=question.rule,
        texts=question.texts or (),
        costs=[LatencyTable.read(file).looped for file in files] if all(file.exists() for file in files) else [],
        names=(one.name, other.name) if one.name != other.name else (str(one), str(other)),
    )

    def parts() -> list[Part]:
        from spectheory.pages.judgement import difference_charts

        return [*difference_charts(answer)]

    show(difference_report(answer), question, "difference", title="Comparison", parts=parts)


def run_gate(question: GateOptions) -> int:
    """Show whether an engine's counts passed; the status says so too."""
    names = (str(question.expect), str(question.counts))
    answer = gate(question.counts, question.expect, rule=question.rule, alarm=question.alarm, names=names)
    show(gate_report(answer), question)
    return Status.DONE if answer.passed else Status.DISAGREEMENT


def run_noise(question: NoiseOptions) -> None:
    """Show what chance alone makes of runs of this size."""
    answer = noise(
        question.counted,
        requests=question.requests,
        calls=question.calls,
        k=question.k,
        rule=question.rule,
        name=question.counted.name,
    )
    show(noise_report(answer), question)
