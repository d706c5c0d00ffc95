"""``spectheory judge``: an engine's output and counts against expectation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from spectheory.checks import in_range
from spectheory.cli.answer import ready_page, show
from spectheory.cli.console import ready_folder
from spectheory.cli.inputs import checked_rules
from spectheory.cli.options import JudgeOptions, PairOptions
from spectheory.cli.predict import LONGEST_CHAIN
from spectheory.cli.progress import loading_torch
from spectheory.cli.statuses import Status
from spectheory.drafting import read_stop
from spectheory.errors import SettingError, TextError
from spectheory.judging.causes import Reread
from spectheory.judging.counting import counted, counting_of
from spectheory.judging.judgement import LOG_IDS, judge, stated
from spectheory.pages.judgement import judgement_parts
from spectheory.reports import judgement_report
from spectheory.reports.base import Report
from spectheory.trace import Trace, read_evidence
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters

SETTINGS = ("temperature", "top_k", "top_p", "min_p", "engine_dtype")


def run_judge(question: JudgeOptions, pair: PairOptions) -> int:
    """Judge and show the answer; the status says whether counts and output agree with a rule."""
    in_range("--k", question.k, LONGEST_CHAIN)
    rules = checked_rules(question.rule) or ()
    stop = None if question.stop is None else read_stop(question.stop)
    if question.out:
        ready_folder(question.out)
    ready_page(question.report)
    traces, log, counters = _evidence(question)
    if log is None and counters is None:
        raise TextError(
            "there are no calls to judge", limit="a trace has only the expected calls", remedy="add the engine's log"
        )
    if log is None or not any(request.output for request in log.requests):
        raise TextError(
            "nothing can be judged without token ids of the output",
            limit="rules are judged on the engine's own texts",
            remedy=f"{LOG_IDS}, or read the counts: spectheory predict",
        )
    log = stated(log, **{name: getattr(question, name) for name in SETTINGS})
    counted(log, counting_of(log, question.k).k, counters)  # refuses what cannot be judged before the models load
    reread = None if traces else _reader(log, pair, question.k)
    answer = judge(log, *traces, rules=rules, k=question.k, counters=counters, reread=reread, stop=stop)
    report, usual = judgement_report(answer), PairOptions()
    if reread and (pair.target == usual.target or pair.draft == usual.draft):
        report = _after(f"Judged against {pair.target} and {pair.draft} (--target, --draft).", report)
    show(report, question, "judgement", title="Judgement", parts=partial(judgement_parts, answer))
    return Status.DISAGREEMENT if answer.refuted or answer.output_refuted or answer.doubtful else Status.DONE


def _evidence(question: JudgeOptions) -> tuple[list[Trace], CallLog | None, Counters | None]:
    """The files by what they hold: a trace at most, all calls as one log, all totals as one."""
    contents = [read_evidence(path) for path in question.files]
    traces = [each.in_memory() for each in contents if isinstance(each, Trace)]
    logs = [each for each in contents if isinstance(each, CallLog)]
    totals = [each for each in contents if isinstance(each, Counters)]
    for trace in traces:
        trace.require_scores("a judgement")
    if len(traces) > 1:
        raise SettingError(f"{len(traces)} traces are given", limit="one of the same texts", remedy="leave one out")
    return traces, CallLog.join(logs) if logs else None, Counters.join(totals) if totals else None


def _after(said: str, report: Report) -> Report:
    """The report after a sentence that comes first."""
    brief = report.brief and replace(report.brief, verdict=[said, *report.brief.verdict])
    return replace(report, headline=f"{said} {report.headline}", brief=brief)


def _reader(log: CallLog, pair: PairOptions, k: int | None) -> Reread:
    """What reads the engine's texts with both models."""
    loading_torch("spectheory.cli.loading")
    from spectheory.cli.loading import load_named
    from spectheory.measure.judged import check_ids, judged_trace

    check_ids(log)
    return partial(judged_trace, load_named(pair), log, k=k)
