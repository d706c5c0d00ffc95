"""``spectheory plan --bench``: k by concurrency and context for a server that `vllm bench serve` timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spectheory.cli.answer import View, show
from spectheory.cli.console import ready_folder
from spectheory.cli.options import PlanOptions, recorded_files
from spectheory.cli.page import Page
from spectheory.cli.shapes import read_rules
from spectheory.cost.served import ServedCost, ServedFit, fit_server
from spectheory.deployment import LockStepChoice, batch_ranges, lock_step_lengths
from spectheory.deployment.exports import Acceptance
from spectheory.deployment.served import (
    ServedChoice,
    Tokens,
    as_run,
    counted_survival,
    measured_at,
    served_choices,
    step_time,
    tokens_of_runs,
    tokens_of_trace,
)
from spectheory.engines.vllm.bench import read_runs
from spectheory.errors import SettingError
from spectheory.pages.deployment import served_charts
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.reports.served import ServedAnswer, served_report
from spectheory.trace import Trace
from spectheory.trace.counters import BenchRun
from spectheory.trace.reading import evidence_file, read_files
from spectheory.verification import PathRule, TokenVerification

OF_RUNS = "counted by the runs themselves, whose calls the intervals take as independent"


@dataclass(frozen=True)
class Served:
    """What a plan for a server rests on: runs, their fit, and tokens per call of a trace's rule or of the runs."""

    runs: Sequence[BenchRun]
    fit: ServedFit
    tokens: Sequence[Tokens]
    trace: Trace | None
    rule: PathRule

    def acceptance(self, k: int) -> tuple[float, ...]:
        """Survival at the starts of calls of k drafts; without a trace as the runs counted it."""
        if self.trace is not None:
            return tuple(survival_at_starts(self.trace, self.rule, k).tolist())
        return counted_survival(self.runs, k)


def run_bench_plan(question: PlanOptions) -> None:
    """Answer for the server and show the answer."""
    if question.out:
        ready_folder(question.out)
    served = served_of(question)
    choices = _choices(question, served)
    basis = f"{served.rule.name} verification on the trace, exact for its texts" if served.trace else OF_RUNS
    together, texts = _lock_step(served, choices), len(served.trace.texts) if served.trace else 0
    report = served_report(ServedAnswer(choices, served.tokens, served.fit, served.runs, basis, together, texts))
    page = Page.asked(question.report, "Plan for a server", lambda: served_charts(choices))
    file = question.out / "plan.json" if question.out else None
    show(report, as_json=question.json, file=file, page=page, view=View.of(question))


def served_of(question: PlanOptions) -> Served:
    """Read the runs, fit them, and find tokens per call."""
    if question.traces:
        raise SettingError(
            "--bench is given with --trace", limit="timed runs are of one draft", remedy="name its trace alone"
        )
    runs = [run for path in question.bench or () for file in _files(path) for run in read_runs(file)]
    fit = fit_server([step_time(run) for run in runs])
    ks = [k for k in fit.ks if k <= question.k_max]
    if not ks:
        raise SettingError(f"--k-max is {question.k_max}", limit=f"runs have k = {fit.ks[0]} alone", remedy="raise it")
    rules = read_rules(question.rule) or [TokenVerification()]
    if len(rules) > 1:
        raise SettingError(f"{len(rules)} rules are given", limit="a server has one", remedy="keep the server's --rule")
    files = recorded_files(question)
    if not files:
        return Served(runs, fit, tokens_of_runs(runs, ks), None, rules[0])
    found = read_files([evidence_file(files[0]), *files[1:]])
    if not isinstance(found, Trace):
        raise SettingError(
            f"{files[0]} holds counts of an engine",
            limit="--bench has counts of its own",
            remedy="name a trace, or none",
        )
    trace = replace(found, lists=())
    return Served(runs, fit, tokens_of_trace(trace, rules[0], ks), trace, rules[0])


def acceptance_of_server(question: PlanOptions, by_batch: bool) -> tuple[Acceptance, str]:
    """For an export: acceptance at the best k of the smallest concurrency, and k by batch; with words for a remark."""
    served = served_of(question)
    (least, most), contexts = served.fit.batches, _contexts(question, served)
    if by_batch and least > 1:
        raise SettingError(
            f"the runs begin at concurrency {least:g}",
            limit="k by batch begins at 1",
            remedy="add runs at concurrency 1",
        )
    every = range(1, most + 1) if by_batch else [least]
    choices = served_choices(served.fit, served.tokens, every, contexts[:1])
    k = choices[0].k or served.tokens[-1].k
    of = f"{served.rule.name} verification" if served.trace else "counted by the runs"
    words = f"{of}, k = {k}, context {contexts[0]:.0f}"
    return Acceptance(served.acceptance(k), tuple(batch_ranges(choices)) if by_batch else ()), words


def _choices(question: PlanOptions, served: Served) -> list[ServedChoice]:
    batches, _ = measured_at(served.fit.runs, served.fit)
    asked = sorted(set(question.batch or batches))
    chosen = served_choices(served.fit, served.tokens, asked, _contexts(question, served))
    return [as_run(choice, served.runs, served.fit) for choice in chosen]


def _lock_step(served: Served, choices: Sequence[ServedChoice]) -> list[LockStepChoice]:
    """Lock-step batches of the same sizes, where the runs timed every number of live texts and a trace has texts."""
    if served.trace is None or served.fit.batches[0] > 1:
        return []
    batches, contexts = (sorted({getattr(choice, name) for choice in choices}) for name in ("batch", "context"))
    cost, ks = ServedCost(served.fit, 1, contexts[0]), [each.k for each in served.tokens]
    return lock_step_lengths(
        served.trace, served.rule, cost, ks=ks, batches=batches, contexts=contexts, prefill_emits_token=True
    )


def _contexts(question: PlanOptions, served: Served) -> list[float]:
    return [float(each) for each in sorted(set(question.context or measured_at(served.fit.runs, served.fit)[1]))]


def _files(path: Path) -> list[Path]:
    """The results of a folder, printed blocks where it has no JSON; or the file itself."""
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.json")) or sorted(path.glob("*.txt"))
    if not found:
        raise SettingError(f"{path} holds no results", limit="needs .json of --save-result", remedy="check the folder")
    return found
