"""``spectheory plan`` with ``--steps``, or ``--bench`` and ``--budget``: which drafts of a batch to verify."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from spectheory.checks import in_range
from spectheory.cli.answer import ready_page, show
from spectheory.cli.console import ready_folder
from spectheory.cli.inputs import checked_rules, refuse_idle
from spectheory.cli.options import PlanOptions, recorded_files
from spectheory.cli.progress import working
from spectheory.cost.served import GRAPH_SIZES
from spectheory.deployment.budgets import plan_budgets
from spectheory.deployment.served import TimedServer
from spectheory.deployment.step_times import ServedSteps, StepTimes, read_steps
from spectheory.errors import SettingError
from spectheory.plots.budgets import write_budgets
from spectheory.reports.budgets import budgets_report
from spectheory.trace import Trace
from spectheory.trace.reading import evidence_file, read_files
from spectheory.trace.timed import timed_runs

LONGEST_CHAIN = 256
_SHOWN = {"json", "out", "report", "all", "explain"}
_TAKEN = _SHOWN | {"trace", "logprobs", "draft_log", "rule", "k_max", "batch", "tpot", "steps", "bench", "budget"}


def _run_budgets(question: PlanOptions) -> None:
    """Answer the question and show the answer."""
    if question.steps and (question.bench or question.budget):
        other = "--bench" if question.bench else "--budget"
        raise SettingError(f"--steps and {other} are given", limit="one source of step times", remedy="leave one out")
    source = "--steps" if question.steps else "--budget"
    limit = "a budget is planned from a trace and the times of steps"
    taken = _TAKEN | {"context", "graph_size"} if question.bench else _TAKEN
    refuse_idle(question, taken, source, f"plan without {source}", limit)
    rules = checked_rules(question.rule) or []
    if len(rules) > 1:
        raise SettingError(f"{len(rules)} rules are given", limit="a server has one", remedy="keep the server's --rule")
    in_range("--k-max", question.k_max, LONGEST_CHAIN)
    ready_page(question.report)
    if question.out:
        ready_folder(question.out)
    trace = _trace(question, source)
    with working("comparing budgets"):
        steps, most = _steps(question)
        k_max = min(question.k_max, most)
        answer = plan_budgets(trace, steps, *rules, batches=question.batch, k_max=k_max, tpot=question.tpot)
    show(
        budgets_report(answer),
        question,
        "plan",
        figures=partial(write_budgets, answer),
        title="Budgets over a batch",
    )


def _trace(question: PlanOptions, source: str) -> Trace:
    files = recorded_files(question)
    if not files:
        raise SettingError(
            f"{source} is given without a trace",
            limit="what is accepted is read along texts",
            remedy="name a trace, as builtin:",
        )
    trace = read_files([evidence_file(files[0]), *files[1:]])
    if not isinstance(trace, Trace):
        raise SettingError(
            f"{files[0]} holds counts of an engine",
            limit="a budget needs the acceptance at every start",
            remedy="measure the pair, or import a trace",
        )
    return replace(trace, lists=())


def _steps(question: PlanOptions) -> tuple[StepTimes, int]:
    """The times of steps, and the longest chain that they know."""
    if question.steps:
        return read_steps(question.steps), question.k_max
    if not question.bench:
        raise SettingError(
            "--budget is given without --bench", limit="step times come from runs", remedy="add --bench, or use --steps"
        )
    runs = [run for path in question.bench for run in timed_runs(path)]
    server = TimedServer.of(runs, sizes=sorted(set(question.graph_size or GRAPH_SIZES)))
    contexts = server.contexts(question.context)
    if question.context and len(question.context) > 1:
        raise SettingError(
            f"{len(question.context)} contexts are given", limit="a budget is planned for one", remedy="keep one"
        )
    return ServedSteps(server.fit, contexts[0]), server.fit.ks[-1]
