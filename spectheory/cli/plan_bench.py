"""``spectheory plan --bench``: k by concurrency and context for a server that `vllm bench serve` timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from spectheory.cli.answer import Page, View, show
from spectheory.cli.console import ready_folder
from spectheory.cli.inputs import checked_rules
from spectheory.cli.options import PlanOptions, recorded_files
from spectheory.deployment.served import TimedServer, plan_server
from spectheory.engines.vllm.bench import read_runs
from spectheory.errors import SettingError
from spectheory.pages.deployment import served_charts
from spectheory.reports.served import served_report
from spectheory.trace import Trace
from spectheory.trace.reading import evidence_file, read_files


def run_bench_plan(question: PlanOptions) -> None:
    """Answer for the server and show the answer."""
    if question.out:
        ready_folder(question.out)
    answer = plan_server(timed_server(question), question.batch, question.context, tpot=question.tpot)
    page = Page.asked(question.report, "Plan for a server", lambda: served_charts(answer.choices))
    file = question.out / "plan.json" if question.out else None
    show(served_report(answer), as_json=question.json, file=file, page=page, view=View.of(question))


def timed_server(question: PlanOptions) -> TimedServer:
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
