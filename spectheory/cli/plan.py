"""``spectheory plan``: which draft, rule and shape to deploy, what it gives, and what to paste into other tools."""

from __future__ import annotations

from pathlib import Path

from spectheory.answers.plan import ExportJson
from spectheory.checks import in_range
from spectheory.cli.answer import Page, View, print_json, ready_page, show
from spectheory.cli.console import ready_folder, remarks
from spectheory.cli.inputs import checked_rules, in_commands, remark_engines_left_out
from spectheory.cli.options import PlanOptions
from spectheory.cli.plan_bench import run_bench_plan, timed_server
from spectheory.cli.plan_inputs import (
    BUILT_IN,
    architecture_of,
    built_in,
    check_costs,
    check_shared,
    counted,
    draft_at,
    load_of,
    roofline,
    sources,
)
from spectheory.cli.progress import working
from spectheory.cli.readings import show_readings
from spectheory.cost import Roofline
from spectheory.deployment import Draft, Load
from spectheory.deployment.deployment import Deployment, plan
from spectheory.deployment.engines import check_one_names_rules
from spectheory.deployment.exports import Acceptance, counted_acceptance, export_named, planned_acceptance
from spectheory.deployment.served import acceptance_of_server
from spectheory.errors import SettingError
from spectheory.pages.deployment import deployment_parts
from spectheory.plots.deployment import write_batches, write_ranking
from spectheory.prediction.plan_answer import named_stops
from spectheory.reports import deployment_report

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
    rules = checked_rules(question.rule)
    check_one_names_rules(rules, question.engine)
    if question.out:
        ready_folder(question.out)
    if counts := counted(named, question):
        return show_readings(question, counts, "plan", _costs_of_counts(question))
    check_shared(question, len(named) or len(BUILT_IN))
    drafts = [draft_at(name, path, question) for name, path in named]
    answer = _answer(question, drafts or list(built_in(question)), rules)
    remark_engines_left_out(question.engine, answer.engines)
    report = deployment_report(answer, trace=in_commands(question.trace))
    out = question.out
    file = out / "plan.json" if out else None
    show(
        report,
        as_json=question.json,
        file=file,
        figures=lambda: _figures(answer, out) if out else [],
        page=Page.asked(question.report, "Plan", lambda: deployment_parts(answer)),
        view=View.of(question),
    )


def _costs_of_counts(question: PlanOptions) -> tuple[Roofline, Load] | None:
    """The roofline of an engine that counted, and the load; counts do not say what drafted."""
    if question.hardware is None:
        return None
    draft = question.draft_architecture
    return roofline(question, architecture_of(draft, "of the counts") if draft else None), load_of(question)


def _answer(question: PlanOptions, drafts: list[Draft], rules: list[str] | None) -> Deployment:
    with working("comparing settings"):
        return plan(
            drafts,
            rules=rules,
            stops=question.stop or (),
            k_max=question.k_max,
            nodes=question.nodes,
            passes_alone=question.passes_alone,
            load=load_of(question),
            engines=question.engine,
        )


def _figures(answer: Deployment, out: Path) -> list[Path]:
    written = write_ranking(answer.ranking, out)
    return [*written, *write_batches(answer.batches, answer.lock_step, out)] if answer.batches else written


def run_export(question: PlanOptions) -> None:
    """Print the options; say on stderr what they are of."""
    if question.report:
        raise SettingError(
            "--report is given with --export", limit="an export has no page", remedy="leave one out, or plan again"
        )
    export = export_named(question.export or "")
    acceptance, words = _acceptance(question, export.by_batch)
    options = export.of(acceptance)
    if question.json:
        named = {"export": export.name, "of": words, "options": options, "text": export.text(options)}
        print_json(ExportJson.view(acceptance, **named))
        return
    print(export.text(options))
    remarks.print(f"{export.meaning}. From: {words}.", markup=False)


def _acceptance(question: PlanOptions, by_batch: bool) -> tuple[Acceptance, str]:
    """Acceptance by position, and k by batch where costs know batches; with words for a remark."""
    if question.bench:
        return acceptance_of_server(timed_server(question), by_batch=by_batch, contexts=question.context)
    named = sources(question)
    if counts := counted(named, question):
        return counted_acceptance({name: each for name, (_, each) in counts.items()})
    check_shared(question, len(named) or len(BUILT_IN))
    drafts = [draft_at(name, path, question) for name, path in named] or list(built_in(question))
    return planned_acceptance(drafts, checked_rules(question.rule), k_max=question.k_max, by_batch=by_batch)
