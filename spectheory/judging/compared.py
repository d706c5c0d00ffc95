"""Compare two runs: what changed, how much of it the texts explain, what is wrong with the output, what it is worth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.checks import instance, instances, several, shown, whole
from spectheory.cost import CostModel, LatencyTable
from spectheory.cost.model import reads_besides
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.errors import SettingError, SpectheoryError, argument
from spectheory.intervals import Interval, weakest
from spectheory.judging.counting import counting_of
from spectheory.judging.difference import Difference, Noise, Speedups, difference, variance
from spectheory.judging.judgement import Judgement, align_texts, judge
from spectheory.judging.runs import Evidence, Run, Side, Stated, expected_run, keys, side_of, starts_known, two_runs
from spectheory.prediction.over_prompts import deviation, reach
from spectheory.prediction.plan_answer import named_rules
from spectheory.trace import Trace
from spectheory.trace.calls import MOST_DRAFTS, CallLog
from spectheory.trace.reading import given_trace
from spectheory.verification.matching import ArgmaxDraft


def compare(
    one: Evidence | Stated | str | Path,
    other: Evidence | Stated | str | Path,
    *,
    k: int | None = None,
    rule: str = "token",
    texts: Sequence[Trace | str | Path] = (),
    costs: Iterable[CostModel] = (),
    names: tuple[str, str] = ("the first run", "the second run"),
) -> Difference:
    """Compare two runs: what they accept at each position, and tokens per call (95% intervals over prompts).

    Each run is a trace, a log of calls, counters, or the JSON of `predict` or `plan`, or the path of one: two drafts,
    two settings, an engine before and after an upgrade, or what a trace expects against what a server counted. Runs
    that share prompts are compared prompt by prompt. Intervals are for prompts drawn independently (Student's t);
    totals without prompts are taken to be as clustered as the other run, or else as independent calls, which is a lower
    bound of their noise. Answers have no positions: tokens per call and speed-ups alone are compared.

    Parameters
    ----------
    one, other
        What is compared; differences are the second less the first.
    k
        Drafts per call, where both are traces. A log or counters say it themselves, and both runs need the same: with
        another k calls start elsewhere, and every position differs without any fault.
    rule
        The rule of traces.
    texts
        Two traces, of the texts of the one and of the other log. They separate a harder text from the rest: a weaker
        draft or a fault of the engine. A third one, of the other log's texts with the draft of the first trace,
        separates a weaker draft too. Each log's output is then judged (:func:`~spectheory.judging.judge`).
    costs
        Two cost models, for speed-ups over plain decoding: of the one run and of the other. Latencies that were
        measured differently (machine, batch, cached tokens, target) give no ratio.
    names
        What the runs are called in messages.

    Raises
    ------
    SettingError
        Runs of different k, or texts without logs.
    TextError
        Counts without positions.

    Examples
    --------
    >>> from spectheory.trace.counters import Counters
    >>> answer = compare(Counters(calls=400, survival=(0.8,)), Counters(calls=400, survival=(0.7,)))
    >>> round(answer.tokens.z, 2), answer.differs(answer.tokens)
    (-3.29, True)
    """
    check_words(rule, names)
    texts = several(argument("texts"), texts, remedy="name two traces, or none")
    models = instances(argument("costs"), costs, CostModel, remedy="spectheory.cost.ConstantRatio(0.05) is one")
    k = None if k is None else whole(argument("k"), k, most=MOST_DRAFTS, remedy="give the drafts per call")
    sides = side_of(one), side_of(other)
    runs = two_runs(names, sides, k=k, rule=rule)
    answer = replace(difference(*runs), speedups=_speedups(runs, sides, models))
    return _explained(answer, sides, texts, rule) if texts else answer


def check_words(rule: str, names: tuple[str, str]) -> None:
    """Check the name of a rule, and what two runs are called."""
    instance(argument("rule"), rule, str, remedy="token is one")
    named_rules([rule])
    if not isinstance(names, tuple) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise SettingError(f"names is {shown(names)}", limit="needs two texts", remedy="leave it out")


def _speedups(runs: tuple[Run, Run], sides: tuple[Side, Side], costs: Sequence[CostModel]) -> Speedups | None:
    """As two answers state them, or by two cost models."""
    one, other = sides
    answers = isinstance(one, Stated) or isinstance(other, Stated)
    if costs and (len(costs) != 2 or answers):
        raise SettingError(
            f"{len(costs)} cost models are given",
            limit="two are needed, of two runs that are no answers",
            remedy="give one of each run, or none",
        )
    if costs:
        return _speedups_of_costs(*runs, costs[0], costs[1])
    if isinstance(one, Stated) and isinstance(other, Stated):
        return _stated_speedups(one, other, (runs[0].name, runs[1].name))
    return None


def _explained(
    answer: Difference, sides: tuple[Side, Side], texts: Sequence[Trace | str | Path], rule: str
) -> Difference:
    """The parts of each change that texts and drafts make, and the rest, which is compared prompt by prompt."""
    logs = [side for side in sides if isinstance(side, CallLog)]
    if len(logs) != len(sides):
        raise SettingError(
            f"{argument('texts')} is given with a run that is no log of calls",
            limit="texts are of the requests of a log",
            remedy="leave it out, or log each request's calls",
        )
    if len(texts) not in (2, 3):
        raise SettingError(
            f"{len(texts)} traces of texts are given",
            limit="two, of the texts of two logs of calls, separate texts from the rest; a third separates the draft",
            remedy="name the trace of each log's own texts, in the order of the logs",
        )
    traces = [given_trace(trace) for trace in texts]
    where_starts_are_known = all(map(starts_known, logs))
    expected = []
    for trace, log in zip(traces, [*logs, logs[1]], strict=False):
        counting, aligned = counting_of(log, answer.k), align_texts(trace, log)
        its_rule = _rule_of(log, rule)
        expected.append(expected_run("", aligned, its_rule, counting, whole=where_starts_are_known, prompts=keys(log)))
    first, second = expected[0], expected[-1]
    pairs = [(answer.one, first), (answer.other, expected[1])]
    gaps = [run.shares - expectation.shares for run, expectation in pairs]
    variance = sum(((run.influence - expectation.influence) ** 2).sum(axis=0) for run, expectation in pairs)
    slack, certain = first.slack + expected[1].slack, np.zeros(answer.k + 1)
    return replace(
        answer,
        texts=Noise(certain, math.inf, slack).changes(first.shares, second.shares),
        draft=Noise(certain, math.inf, 0.0).changes(second.shares, expected[1].shares) if len(texts) == 3 else (),
        rest=Noise(np.sqrt(variance), min(answer.one.freedom, answer.other.freedom), slack).changes(*gaps),
        with_drafts=len(texts) == 2 and _other_drafts(*traces),
        judged=tuple(_judged(log, trace, rule) for log, trace in zip(logs, traces, strict=False)),
    )


def _rule_of(log: CallLog, rule: str) -> str:
    """At temperature 0 a draft is accepted where its first choice is the text's token, under every rule that drafts."""
    drafts = all(one.uses_draft for one in named_rules([rule]) or ())
    return ArgmaxDraft.name if log.temperature == 0 and drafts else rule


def _judged(log: CallLog, trace: Trace, rule: str) -> Judgement | str:
    """What the log's calls and its output say of the rule, or why it cannot be judged."""
    try:
        return judge(log, trace, rules=[rule])
    except SpectheoryError as error:
        return str(error)


def _other_drafts(one: Trace, other: Trace) -> bool:
    """Whether two traces are of different drafts, as far as they say."""
    prints: list[Any] = [(trace.provenance.get("draft") or {}).get("fingerprint") for trace in (one, other)]
    return None not in prints and prints[0] != prints[1]


_TIMED = {
    "hardware": "machine",
    "batch": "batch",
    "context": "cached tokens",
    "target": "target",
}
"""What two timings must share: their plain steps are the unit of both speed-ups."""


def _speedups_of_costs(one: Run, other: Run, first: CostModel, second: CostModel) -> Speedups:
    r"""Both speed-ups, each with its own costs (C2), and their ratio (95% over prompts and times together).

    .. math:: \frac{S_B}{S_A} = \frac{\tau_B}{\tau_A} \cdot \frac{r_A}{r_B}

    with :math:`r` the time of a call in plain steps of the same timing. Prompts that both runs share, and times of one
    table, enter the errors of the ratio once.
    """
    clustering = np.maximum(one.clustering, other.clustering)

    def gained(cost: CostModel, run: Run) -> tuple[float, Floats, Interval]:
        gain, times = math.log(_gain(cost, run)), _moved(cost, run)
        error = math.sqrt(float(run.variance(clustering)[0] / run.shares[0] ** 2 + times @ times))
        return gain, times, _around(gain, error, run.freedom)

    (gain, times, speedup), (its_gain, its_times, its_speedup) = gained(first, one), gained(second, other)
    refused = _timed_otherwise(_timed(first), _timed(second), (one.name, other.name))
    if refused:
        return Speedups(speedup, its_speedup, None, refused)
    moved = its_times - times if first == second else np.concatenate([times, its_times])
    error = math.sqrt(float(variance(one, other, (one.shares[0], other.shares[0]))[0] + moved @ moved))
    return Speedups(speedup, its_speedup, _around(its_gain - gain, error, min(one.freedom, other.freedom)))


def _stated_speedups(one: Stated, other: Stated, names: tuple[str, str]) -> Speedups | None:
    """Speed-ups as two answers state them; their errors are taken as independent. None where one states none."""
    first, second = one.speedup, other.speedup
    if first is None or second is None:
        return None
    if refused := _timed_otherwise(one.provenance, other.provenance, names):
        return Speedups(first, second, None, refused)
    kind = weakest(first.kind, second.kind)
    if kind != "statistical":
        ends = second.low / first.high, second.best / first.best, second.high / first.low
        return Speedups(first, second, Interval(*ends, kind))
    error = math.hypot(deviation(first.low, first.high), deviation(second.low, second.high))
    return Speedups(first, second, _around(math.log(second.best / first.best), error, math.inf))


def _timed_otherwise(one: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str]) -> str:
    """In which respects two timings differ, as a sentence; empty where they do not, as far as they say."""
    apart = [
        f"{word}: {_short(one[key])} and {_short(other[key])}"
        for key, word in _TIMED.items()
        if key in one and key in other and _same(one[key]) != _same(other[key])
    ]
    if not apart:
        return ""
    return f"Speed-ups are not compared: {names[0]} and {names[1]} were timed differently ({'; '.join(apart)})."


def _gain(cost: CostModel, run: Run) -> float:
    """Tokens per call times plain steps per call."""
    survival = run.shares[1:]
    late = reads_besides(cost, float(survival.sum()), float(survival[-1]))
    return float(run.shares[0] * cost.speedup(Interval.exact(1.0), Chain(run.k), late).best)


def _moved(cost: CostModel, run: Run) -> Floats:
    """By how much one standard deviation of each independent error of the times moves the logarithm of the speed-up."""
    ends = [(_gain(low, run), _gain(high, run)) for low, high in cost.errors()]
    return np.array([math.log(high / low) / (2 * reach(math.inf)) for low, high in ends])


def _around(logarithm: float, error: float, freedom: float) -> Interval:
    """A value with its 95% interval, from its logarithm."""
    half = reach(freedom) * error
    low, best, high = (math.exp(logarithm + way * half) for way in (-1, 0, 1))
    return Interval(low, best, high, "statistical")


def _timed(cost: CostModel) -> dict[str, Any]:
    """What a table says of how it was measured."""
    return {**cost.provenance, "context": cost.context} if isinstance(cost, LatencyTable) else {}


def _same(value: Any) -> Any:
    """What of a description decides: of a model its weights and number type."""
    if isinstance(value, Mapping) and "fingerprint" in value:
        return value["fingerprint"], value.get("dtype")
    return value


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        named = [value[key] for key in ("name", "dtype") if key in value] or list(value.values())
        return ", ".join(map(str, named))
    return str(value)
