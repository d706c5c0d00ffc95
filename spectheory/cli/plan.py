"""``spectheory plan``: which draft, rule and shape to deploy, what it gives, and what to paste."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spectheory.checks import in_range
from spectheory.cli.answer import View, show
from spectheory.cli.console import answers, ready_folder
from spectheory.cli.options import PlanOptions
from spectheory.cli.page import Page, ready_page
from spectheory.cli.plan_bench import run_bench_plan
from spectheory.cli.plan_costs import check_costs, check_shared
from spectheory.cli.plan_export import run_export
from spectheory.cli.plan_inputs import BUILT_IN, built_in, counted, draft_at, sources
from spectheory.cli.progress import working
from spectheory.cli.readings import show_readings
from spectheory.cli.shapes import read_rules
from spectheory.deployment import (
    BATCHES,
    Draft,
    EngineSettings,
)
from spectheory.deployment.whole import DEFAULT_CONTEXT, Deployment, plan
from spectheory.errors import SettingError
from spectheory.harmless import harmless
from spectheory.pages.deployment import deployment_charts
from spectheory.plots.deployment import write_batches, write_ranking
from spectheory.prediction.whole import named_stops
from spectheory.reports import deployment_report
from spectheory.verification import PathRule

LONGEST_CHAIN, LARGEST_TREE = 256, 1024


def run_plan(question: PlanOptions) -> None:
    """Answer the question and show the answer."""
    named = sources(question)
    named_stops(question.stop or ())
    check_costs(question)
    in_range("--k-max", question.k_max, LONGEST_CHAIN)
    in_range("--nodes-max", question.nodes, LARGEST_TREE)
    if question.stop and (question.export is not None or question.bench):
        raise SettingError(
            "--stop is given with --bench or --export",
            limit="both are about chains of a fixed length",
            remedy="leave one of them out",
        )
    ready_page(question.report)
    if question.export is not None:
        return run_export(question)
    if question.bench:
        return run_bench_plan(question)
    rules = read_rules(question.rule)
    if question.out:
        ready_folder(question.out)
    if counts := counted(named, question):
        return show_readings(question, counts, "plan")
    check_shared(question, len(named) or len(BUILT_IN))
    drafts = [draft_at(name, path, question) for name, path in named]
    answer = _answer(question, drafts or list(built_in(question)), rules)
    report = deployment_report(answer)
    out = question.out
    file = out / "plan.json" if out else None
    show(
        report,
        as_json=question.json,
        file=file,
        figures=lambda: _figures(answer, out) if out else [],
        page=Page.asked(question.report, "Plan", lambda: deployment_charts(answer, rules, question.k_max)),
        view=View.of(question),
    )
    if question.all and not question.json:
        _paste(answer.engines)


def _answer(question: PlanOptions, drafts: list[Draft], rules: list[PathRule] | None) -> Deployment:
    with working("comparing settings"):
        return plan(
            drafts,
            rules=rules,
            stops=question.stop or (),
            k_max=question.k_max,
            nodes=question.nodes,
            passes_alone=question.passes_alone,
            batches=question.batch or BATCHES,
            contexts=question.context or [DEFAULT_CONTEXT],
        )


def _paste(engines: Sequence[EngineSettings]) -> None:
    """Settings as they stand: lines to be pasted are not wrapped."""
    for settings in engines:
        without = "" if settings.candidate.prediction.rule.uses_draft else ", no draft model"
        answers.print(f"\n{settings.engine} {settings.version}{without}", style="bold", highlight=False)
        if not settings.pays:
            answers.print("Does not pay under this engine's rule; the fastest setting would be:", highlight=False)
        print(harmless(settings.paste))
        for line in settings.remarks:
            answers.print(line, style="dim", highlight=False, markup=False)


def _figures(answer: Deployment, out: Path) -> list[Path]:
    written = write_ranking(answer.ranking, out)
    return [*written, *write_batches(answer.batches, answer.lock_step, out)] if answer.batches else written
