"""The best chain length for each concurrency and context of a server that was timed (C3, C4; §7 for tokens)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectheory.cost.model import CostModel
from spectheory.cost.served import GRAPH_SIZES, ServedCost, ServedFit, StepTime, fit_server
from spectheory.deployment.batches import batch_ranges
from spectheory.deployment.crossover import Crossover, crossovers
from spectheory.deployment.exports import Acceptance, BestK
from spectheory.deployment.load import Load, LoadAnswer, LoadPoint
from spectheory.deployment.lock_step import LockStepChoice, lock_step_lengths
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TextError, argument
from spectheory.intervals import Interval, Kind
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.prediction.call_times import speedup
from spectheory.prediction.over_prompts import Prompts, deviation, ratio, reach
from spectheory.prediction.renewal import read_at, spread_of_calls, tokens_counted
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.trace import Trace
from spectheory.trace.timed import TimedRun
from spectheory.verification import PathRule
from spectheory.verification.registry import path_rule

OF_RUNS = "counted by the runs themselves, whose calls the intervals take as independent"
_NEAR = 0.1
"""Contexts closer than this, in proportion, are one setting."""


@dataclass(frozen=True)
class Tokens:
    """Tokens per call of chains of k drafts, and the speed-up that they give with a cost.

    `reading`: they are read from the counts of a longer chain, whose calls start elsewhere (an estimate, §14).
    """

    k: int
    per_call: Interval
    speedup: Callable[[CostModel], Interval]
    reading: bool = False


@dataclass(frozen=True)
class ServedChoice:
    """The best chain for one concurrency and context; k is 0 where plain decoding is fastest.

    `speedup` is over plain decoding there (95%, over the runs' residuals and counts and, with a trace, prompts),
    `per_second` the output tokens of all sequences. `reading` as in :class:`Tokens`. `ran` is the speed-up of runs at
    this very k, concurrency and context over plain ones there, as timed, with the error of a run that the fit's
    residuals show; None where there are none.
    """

    batch: int
    context: float
    k: int
    tokens_per_call: float
    speedup: Interval
    per_second: float
    reading: bool = False
    ran: Interval | None = None

    @property
    def agrees(self) -> bool:
        """Whether what runs at this very setting gave, if there are any, is as near to the fit as the wider of both
        intervals reaches: a fit of many runs is narrower than the noise of one.
        """
        if self.ran is None:
            return True
        halves = (math.log(each.high / each.low) / 2 for each in (self.speedup, self.ran))
        return abs(math.log(self.ran.best / self.speedup.best)) <= max(halves)

    @property
    def certain(self) -> bool:
        """Whether the interval is above 1, and that of runs at this very setting too: speculating pays."""
        known = [self.speedup, *([self.ran] if self.ran else [])]
        return self.k > 0 and all(one.kind == "statistical" and one.low > 1 for one in known)


def _tokens_of_trace(trace: Trace, rule: PathRule, ks: Sequence[int]) -> list[Tokens]:
    """Tokens per call on the texts of a trace (§7, exact for them); the first token is the prompt's pass."""
    prompts, decoded = Prompts(trace.texts), trace.lengths - 1
    rows = []
    for each in calls_by_shape(trace, rule, [Chain(k) for k in ks], prefill_emits_token=True):

        def gain(cost: CostModel, each: Any = each) -> Interval:
            gained = speedup(prompts, each, decoded, 1, cost, tuple(cost.errors()))
            return gained or Interval.exact(1.0)

        per_call = ratio(prompts.sum(decoded), prompts.sum(each.calls.expected - 1))
        rows.append(Tokens(each.shape.nodes, per_call, gain))
    return rows


def _tokens_of_runs(runs: Sequence[TimedRun], ks: Sequence[int]) -> list[Tokens]:
    """Tokens per call that the runs counted (§13), those past the end of a text left out.

    For a k that did not run it is a reading of the next longer one's counts (§14), with the same share past the end;
    without survival by position k that did not run are left out. Intervals take calls as independent, which is a lower
    bound of the noise; without counts of calls there is none (an estimate).
    """
    rows = []
    for k in ks:
        same = _counted_with(runs, k)
        if not all(run.survival for run in same):
            if k in {run.k for run in runs}:
                per_call = _mean_tokens(same)
                rows.append(Tokens(k, per_call, _gain_of(k, per_call)))
            continue
        ran, calls = same[0].k, sum(run.calls or 1 for run in same)
        # Of all tokens that calls gave, those past the end of a text are no output.
        counted = _counted_survival(runs, ran)
        output = _weighted(same, lambda run: run.tokens_per_call or 1.0) / (1 + sum(counted))
        spread = spread_of_calls(counted, calls)
        per_call = (read_at(counted, k, spread) if k != ran else tokens_counted(counted, calls)) * output
        rows.append(Tokens(k, per_call, _gain_of(k, per_call), k != ran))
    return rows


def _mean_tokens(same: Sequence[TimedRun]) -> Interval:
    """The mean over runs of one k. With counts of calls 95%, the variance of a call at its largest, a(k - a)."""
    unknown = [run.name or f"k = {run.k}" for run in same if run.tokens_per_call is None]
    if unknown:
        raise TextError(
            f"run {unknown[0]} has no tokens per call",
            limit="times alone give no speed-up",
            remedy=f"name a trace of the pair with {argument('trace', 'TRACE')}",
        )
    mean = _weighted(same, lambda run: run.tokens_per_call or 1.0)
    k, calls = same[0].k, [run.counted_calls for run in same]
    if None in calls:
        return Interval(mean, mean, mean, "estimate")
    half = reach(np.inf) * math.sqrt(max((mean - 1) * (k + 1 - mean), 0.0) / max(sum(each or 0 for each in calls), 1))
    return Interval(max(mean - half, 1.0), mean, min(mean + half, k + 1.0), "statistical")


def _weighted(runs: Sequence[TimedRun], value: Callable[[TimedRun], float]) -> float:
    """The mean over the calls of runs; runs that do not count them weigh alike."""
    return float(np.average([value(run) for run in runs], weights=[run.counted_calls or 1.0 for run in runs]))


def _counted_survival(runs: Sequence[TimedRun], k: int) -> tuple[float, ...]:
    """P(accepted >= i), i = 1..k, pooled over the calls of ``_counted_with``; none where runs did not count it."""
    same = _counted_with(runs, k)
    if not all(run.survival for run in same):
        return ()
    return tuple(_weighted(same, lambda run, i=i: run.survival[i]) for i in range(k))  # type: ignore[misc]


def _counted_with(runs: Sequence[TimedRun], k: int) -> list[TimedRun]:
    """The runs of this k, or of the next longer one."""
    nearest = min(run.k for run in runs if run.k >= k)
    return [run for run in runs if run.k == nearest]


def _served_choices(
    fit: ServedFit, tokens: Sequence[Tokens], batches: Sequence[int], contexts: Sequence[float]
) -> list[ServedChoice]:
    """The chain length of the largest speed-up at each context and batch; 0 where none exceeds 1."""
    return [_best(ServedCost(fit, batch, context), tokens) for context in contexts for batch in batches]


def _as_run(choice: ServedChoice, runs: Sequence[TimedRun], fit: ServedFit) -> ServedChoice:
    """The choice with what runs at its very setting gave: time per output token without drafts over that with them."""
    at = [run for run in runs if run.batch == choice.batch and abs(run.context - choice.context) <= _NEAR * run.context]
    plain, drafted = ([run for run in at if run.k == k and run.token_seconds] for k in (0, choice.k))
    if not (choice.k and plain and drafted):
        return choice
    without, with_drafts = (
        float(np.average([run.token_seconds or 0.0 for run in each], weights=[run.decoded or 1.0 for run in each]))
        for each in (plain, drafted)
    )
    gained, half = without / with_drafts, fit.reach * fit.error * math.sqrt(1 / len(plain) + 1 / len(drafted))
    return replace(choice, ran=Interval(gained * math.exp(-half), gained, gained * math.exp(half), "statistical"))


def _measured_at(runs: Sequence[StepTime], fit: ServedFit) -> tuple[list[int], list[float]]:
    """Concurrencies within the fit's range, and contexts, one for each group of nearly equal ones."""
    least, most = fit.batches
    contexts: list[list[float]] = []
    for context in sorted(run.context for run in runs):
        if contexts and context <= contexts[-1][0] * (1 + _NEAR):
            contexts[-1].append(context)
        else:
            contexts.append([context])
    means = [sum(group) / len(group) for group in contexts]
    return sorted({run.batch for run in runs if least <= run.batch <= most}), means


def _best(cost: ServedCost, tokens: Sequence[Tokens]) -> ServedChoice:
    plain = cost.target_step().best
    best = ServedChoice(cost.batch, cost.context, 0, 1.0, Interval.exact(1.0), cost.batch / plain)
    for each in tokens:
        gained = each.speedup(cost)
        if gained.best > best.speedup.best:
            per_second = cost.batch * gained.best / plain
            best = ServedChoice(cost.batch, cost.context, each.k, each.per_call.best, gained, per_second, each.reading)
    return best


def _gain_of(k: int, per_call: Interval) -> Callable[[CostModel], Interval]:
    """The speed-up with tokens per call as counted: the interval is of the times and of the counts."""
    counting, counted = deviation(per_call.low, per_call.high), per_call.low < per_call.high

    def ratio_of(model: CostModel) -> float:
        return per_call.best * model.target_step().best / model.call(Chain(k)).best

    def gain(cost: CostModel) -> Interval:
        best = ratio_of(cost)
        ends: Iterator[tuple[float, ...]] = (tuple(map(ratio_of, pair)) for pair in cost.errors())
        half = reach(np.inf) * math.sqrt(counting**2 + sum(deviation(low, high) ** 2 for low, high in ends))
        kind: Kind = "statistical" if counted else "estimate"
        return Interval(best * math.exp(-half), best, best * math.exp(half), kind)

    return gain


# The whole answer


@dataclass(frozen=True)
class TimedServer:
    """What a plan for a server rests on: runs, their fit, and tokens per call of a trace's rule or of the runs."""

    runs: Sequence[TimedRun]
    fit: ServedFit
    tokens: Sequence[Tokens]
    trace: Trace | None
    rule: PathRule

    @classmethod
    def of(
        cls,
        runs: Sequence[TimedRun],
        trace: Trace | None = None,
        rule: PathRule | str = "token",
        *,
        k_max: int = 16,
        law: str | None = None,
        sizes: Sequence[int] = GRAPH_SIZES,
    ) -> TimedServer:
        """Fit the runs, and find tokens per call of a rule on a trace; without a trace they are those of the runs.

        `law` is that of the step times, one of ``spectheory.cost.served.LAWS``; by default the one that predicts runs
        left out best. `sizes` are the tokens of CUDA graphs that a step is padded to.
        """
        rule = path_rule(rule)
        fit = fit_server([run.step for run in runs], law=law, sizes=sizes)
        ks = [k for k in fit.ks if k <= k_max]
        if not ks:
            raise SettingError(
                f"{argument('k_max')} is {k_max}", limit=f"runs have k = {fit.ks[0]} alone", remedy="raise it"
            )
        tokens = _tokens_of_runs(runs, ks) if trace is None else _tokens_of_trace(trace, rule, ks)
        return cls(runs, fit, tokens, trace, rule)

    def contexts(self, asked: Sequence[float] | None) -> list[float]:
        """The contexts of a plan: those asked for, or those of the runs."""
        return sorted({float(each) for each in asked or _measured_at(self.fit.runs, self.fit)[1]})


@dataclass(frozen=True)
class ServedAnswer:
    """A plan for a server: the choices, the tokens they rest on, the fit, and its runs in the fit's order.

    `basis` says where tokens per call come from, in words. `lock_step` are the choices for lock-step batches drawn from
    so many `texts`; none where there is no trace, or a shrinking batch leaves what the runs timed. `load` has what is
    within a target, where one was given, `crossovers` the contexts at which the best speed-up passes 1.
    """

    choices: Sequence[ServedChoice]
    tokens: Sequence[Tokens]
    fit: ServedFit
    runs: Sequence[TimedRun]
    basis: str
    lock_step: Sequence[LockStepChoice] = ()
    texts: int = 0
    load: LoadAnswer | None = None
    crossovers: Sequence[Crossover] = ()


def plan_server(
    server: TimedServer,
    batches: Sequence[int] | None = None,
    contexts: Sequence[float] | None = None,
    *,
    tpot: float | None = None,
    ttft: float | None = None,
) -> ServedAnswer:
    """The best length for every concurrency and context, by default those of the runs.

    `tpot` and `ttft` are the longest times per output token and to the first one, in milliseconds: the answer's `load`
    has the largest concurrency of the runs' range at which each length meets them, at the first context. Times to first
    tokens are means of the runs at that context, waiting included, on a line between their concurrencies; of a length
    that did not run those of the next longer one (an estimate).
    """
    fit, trace, rule = server.fit, server.trace, server.rule
    sizes, cached = sorted(set(batches or _measured_at(fit.runs, fit)[0])), server.contexts(contexts)
    chosen = _served_choices(fit, server.tokens, sizes, cached)
    choices = [_as_run(choice, server.runs, fit) for choice in chosen]
    together: list[LockStepChoice] = []
    if trace is not None and fit.batches[0] <= 1:  # the runs timed every number of live texts
        ks, cost = [each.k for each in server.tokens], ServedCost(fit, 1, cached[0])
        together = lock_step_lengths(trace, rule, cost, ks=ks, batches=sizes, contexts=cached, prefill_emits_token=True)
    basis = f"{rule.name} verification on the trace, exact for its texts" if trace else OF_RUNS
    texts = len(trace.texts) if trace else 0
    load = None if tpot is None and ttft is None else _within(server, cached[0], tpot, ttft)
    turns = crossovers(fit, server.tokens, sizes)
    return ServedAnswer(choices, server.tokens, fit, server.runs, basis, together, texts, load, turns)


def _within(server: TimedServer, context: float, tpot: float | None, ttft: float | None) -> LoadAnswer:
    """The largest concurrency within the targets, of plain decoding and of each length."""
    (least, most), targets = server.fit.batches, []
    runs = [run for run in server.runs if abs(run.context - context) <= _NEAR * context]
    load = Load(tpot=tpot) if ttft is None else _timed_requests(server, runs, context, tpot, ttft)
    for k, tokens in [(0, 1.0), *((each.k, each.per_call.best) for each in server.tokens)]:
        for batch in range(most, least - 1, -1):
            first = _first_token(runs, k, batch)
            point = _point_at(ServedCost(server.fit, batch, context), k, tokens, first)
            if (tpot is None or point.tpot <= tpot) and (ttft is None or (first is not None and first <= ttft)):
                targets.append(point)
                break
    return LoadAnswer(load, (), (), targets)


def _timed_requests(
    server: TimedServer, runs: Sequence[TimedRun], context: float, tpot: float | None, ttft: float
) -> Load:
    """The targets, of requests as long as those that the runs at this context sent."""
    if not runs:
        known = ", ".join(f"{each:.0f}" for each in server.contexts(None))
        raise SettingError(
            f"no run has context {context:.0f}",
            limit="times to first tokens are those of runs at one context",
            remedy=f"name one of {known} with {argument('contexts', '--context')}",
        )
    weights = [run.requests or 1 for run in runs]
    prompts, outputs = (
        round(float(np.average([getattr(run, name) or 1.0 for run in runs], weights=weights)))
        for name in ("prompt_tokens", "output_tokens")
    )
    return Load(tpot=tpot, ttft=ttft, prompt_tokens=prompts, output_tokens=outputs)


def _first_token(runs: Sequence[TimedRun], k: int, batch: int) -> float | None:
    """Mean milliseconds to a first token; None outside the concurrencies that ran."""
    longer = [run for run in runs if (run.k >= k if k else not run.k) and run.ttft is not None]
    same = [(run.batch, run.ttft or 0.0) for run in longer if run.k == min(each.k for each in longer)]
    at = sorted({concurrency for concurrency, _ in same})
    if not at or not at[0] <= batch <= at[-1]:
        return None
    return 1e3 * float(np.interp(batch, at, [np.mean([time for b, time in same if b == each]) for each in at]))


def _point_at(cost: ServedCost, k: int, tokens: float, first: float | None) -> LoadPoint:
    plain = cost.target_step().best
    step = cost.call(Chain(k)).best / tokens if k else plain
    return LoadPoint(cost.batch, k, tokens, 1e3 * step, first, cost.batch / step, None, None, plain / step)


def acceptance_of_server(
    server: TimedServer, *, by_batch: bool, contexts: Sequence[float] | None = None
) -> tuple[Acceptance, str]:
    """For an export: acceptance at the best k of the smallest concurrency, and k by batch; with words for a remark."""
    (least, most), (context, *_) = server.fit.batches, server.contexts(contexts)
    if by_batch and least > 1:
        raise SettingError(
            f"the runs begin at concurrency {least:g}",
            limit="k by batch begins at 1",
            remedy="add runs at concurrency 1",
        )
    every = range(1, most + 1) if by_batch else [least]
    choices = _served_choices(server.fit, server.tokens, every, [context])
    table: list[ServedChoice] = []
    if by_batch:
        sizes, _ = _measured_at(server.fit.runs, server.fit)
        table = _served_choices(server.fit, server.tokens, sizes, server.contexts(contexts))
    k = choices[0].k or server.tokens[-1].k
    if server.trace is None:
        of, kind, survival = "counted by the runs", "counted", _counted_survival(server.runs, k)
    else:
        of, kind = f"{server.rule.name} verification", "exact"
        survival = tuple(survival_at_starts(server.trace, server.rule, k).tolist())
    words = f"{of}, k = {k}, context {context:.0f}"
    rows = tuple(BestK(at.batch, at.context, at.k, at.speedup) for at in table)
    return Acceptance(survival, tuple(batch_ranges(choices)) if by_batch else (), kind, rows), words
