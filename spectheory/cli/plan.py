"""``spectheory plan``: which draft, rule and shape to deploy, what it gives, and what to paste into other tools."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from spectheory.answers.plan import ExportJson
from spectheory.checks import in_range
from spectheory.cli.answer import print_json, ready_page, show
from spectheory.cli.console import ready_folder, remark
from spectheory.cli.inputs import checked_rules, in_commands, remark_engines_left_out
from spectheory.cli.options import PlanOptions, recorded_files
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
from spectheory.deployment import Load
from spectheory.deployment.deployment import plan
from spectheory.deployment.engines import check_one_names_rules
from spectheory.deployment.exports import Acceptance, counted_acceptance, export_named, planned_acceptance
from spectheory.deployment.served import TimedServer, acceptance_of_server, plan_server
from spectheory.engines.vllm.bench import read_runs
from spectheory.errors import SettingError
from spectheory.pages.deployment import deployment_parts, served_charts
from spectheory.plots.deployment import write_plan
from spectheory.prediction.plan_answer import named_stops
from spectheory.reports import deployment_report
from spectheory.reports.served import served_report
from spectheory.trace import Trace
from spectheory.trace.reading import evidence_file, read_files

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
        return _export(question)
    if question.bench:
        return _plan_server(question)
    rules = checked_rules(question.rule)
    check_one_names_rules(rules, question.engine)
    if question.out:
        ready_folder(question.out)
    if counts := counted(named, question):
        return show_readings(question, counts, "plan", _costs_of_counts(question))
    check_shared(question, len(named) or len(BUILT_IN))
    drafts = [draft_at(name, path, question) for name, path in named]
    drafts = drafts or list(built_in(question))
    with working("comparing settings"):
        answer = plan(
            drafts,
            rules=rules,
            stops=question.stop or (),
            k_max=question.k_max,
            nodes=question.nodes,
            passes_alone=question.passes_alone,
            load=load_of(question),
            engines=question.engine,
        )
    remark_engines_left_out(question.engine, answer.engines)
    show(
        deployment_report(answer, trace=in_commands(question.trace)),
        question,
        "plan",
        figures=partial(write_plan, answer),
        title="Plan",
        parts=partial(deployment_parts, answer),
    )


def _costs_of_counts(question: PlanOptions) -> tuple[Roofline, Load] | None:
    """The roofline of an engine that counted, and the load; counts do not say what drafted."""
    if question.hardware is None:
        return None
    draft = question.draft_architecture
    return roofline(question, architecture_of(draft, "of the counts") if draft else None), load_of(question)


def _export(question: PlanOptions) -> None:
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
    remark(f"{export.meaning}. From: {words}.")


def _acceptance(question: PlanOptions, by_batch: bool) -> tuple[Acceptance, str]:
    """Acceptance by position, and k by batch where costs know batches; with words for a remark."""
    if question.bench:
        return acceptance_of_server(_timed_server(question), by_batch=by_batch, contexts=question.context)
    named = sources(question)
    if counts := counted(named, question):
        return counted_acceptance({name: each for name, (_, each) in counts.items()})
    check_shared(question, len(named) or len(BUILT_IN))
    drafts = [draft_at(name, path, question) for name, path in named] or list(built_in(question))
    return planned_acceptance(drafts, checked_rules(question.rule), k_max=question.k_max, by_batch=by_batch)


# A server that `vllm bench serve` timed


def _plan_server(question: PlanOptions) -> None:
    """K by concurrency and context."""
    if question.out:
        ready_folder(question.out)
    answer = plan_server(_timed_server(question), question.batch, question.context, tpot=question.tpot)
    parts = partial(served_charts, answer.choices)
    show(served_report(answer), question, "plan", title="Plan for a server", parts=parts)


def _timed_server(question: PlanOptions) -> TimedServer:
    """The runs and the trace that options name, fitted."""
    if question.traces:
        raise SettingError(
            "--bench is given with --trace", limit="timed runs are of one draft", remedy="name its trace alone"
        )
    runs = [run for path in question.bench or () for file in _files(path) for run in read_runs(file)]
    rules = checked_rules(question.rule) or []
    if len(rules) > 1:
        raise SettingError(f"{len(rules)} rules are given", limit="a server has one", remedy="keep the server's --rule")
    files = recorded_files(question)
    trace = read_files([evidence_file(files[0]), *files[1:]]) if files else None
    if trace is not None and not isinstance(trace, Trace):
        raise SettingError(
            f"{files[0]} holds counts of an engine",
            limit="--bench has counts of its own",
            remedy="name a trace, or none",
        )
    return TimedServer.of(runs, trace and replace(trace, lists=()), *rules, k_max=question.k_max)


def _files(path: Path) -> list[Path]:
    """The results of a folder, printed blocks where it has no JSON; or the file itself."""
    if not path.is_dir():
        return [path]
    results = sorted(path.glob("*.json")) or sorted(path.glob("*.txt"))
    if not results:
        raise SettingError(f"{path} holds no results", limit="needs .json of --save-result", remedy="check the folder")
    return results
