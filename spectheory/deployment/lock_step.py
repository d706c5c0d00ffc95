"""The best chain length of lock-step batches, whose rounds wait for the slowest text (§12, C3, C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spectheory.checks import instance, several
from spectheory.cost import AffineCost, Roofline
from spectheory.cost.served import ServedCost
from spectheory.deployment.batches import ChainCalls, check_batches
from spectheory.distributions import Floats
from spectheory.drafting import Chain
from spectheory.drafting.tree import at_least_one
from spectheory.prediction.lock_step import plainly_unfinished, rounds_of_draws, unfinished
from spectheory.prediction.shape_calls import calls_by_shape, survival_of
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.verification import PathRule
from spectheory.verification.by_start import within
from spectheory.verification.registry import path_rule

Costs = Roofline | AffineCost | ServedCost
MOST_TOGETHER = 1024
"""Texts of the largest lock-step batch that a plan has: the cost is asked for every number of live texts."""


@dataclass(frozen=True)
class LockStepChoice:
    """The best chain of a lock-step batch at one context length; k is 0 where plain decoding is fastest.

    `batch` texts, drawn from the trace's with replacement, begin together and each leaves when it has ended. `rounds`
    are the expected calls of the slowest (exact for such batches), with one round for each; `waiting` is that over the
    mean calls of a text. `speedup` compares the seconds of whole batches with plain decoding of the same batches (the
    cost model's values: an estimate); `tokens_per_second` are output tokens of all texts.
    """

    batch: int
    context: float
    k: int
    rounds: float
    waiting: float
    speedup: float
    tokens_per_second: float


@dataclass(frozen=True)
class _Setting:
    """A chain, or plain decoding, and P(unfinished) by rounds."""

    calls: ChainCalls
    unfinished: Floats


def lock_step_lengths(
    trace: Trace,
    rule: PathRule,
    cost: Costs,
    *,
    ks: Sequence[int],
    batches: Sequence[int],
    contexts: Sequence[float],
    prefill_emits_token: bool = False,
) -> list[LockStepChoice]:
    """The chain length of the shortest lock-step batch at each context and batch (§12 for rounds, C3 for seconds).

    A round of m live texts takes what `cost` says of m texts; its own batch and context do not matter. The seconds of a
    batch are the expected ones: rounds with m live texts are counted exactly. `ks` beyond what the trace records by
    start are left out. With `prefill_emits_token` the prompt's pass emits the first token, and is on neither side;
    texts without another token have no choice.

    Examples
    --------
    >>> from spectheory.cost import AffineTime
    >>> from spectheory.verification import TokenVerification
    >>> cost = AffineCost(AffineTime(0.02, 0.0001), AffineTime(0.002, 0.00001))
    >>> trace = Trace.from_log_probabilities([([-1.0] * n, [-1.5] * n) for n in (20, 60, 40)])
    >>> choices = lock_step_lengths(trace, TokenVerification(), cost, ks=range(1, 7), batches=[1, 32], contexts=[0])
    >>> [(c.batch, c.k, round(c.rounds, 1), round(c.speedup, 2)) for c in choices]
    [(1, 3, 18.6, 1.63), (32, 2, 34.7, 1.27)]
    """
    check_batches(cost)
    rule = path_rule(rule)
    rule.require(a_trace(trace).columns)
    instance("prefill_emits_token", prefill_emits_token, bool, remedy="True where the prompt's pass emits a token")
    ks = [at_least_one("k", k) for k in several("ks", ks, remedy="range(1, 17) is one")]
    batches = [at_least_one("batch", batch) for batch in several("batches", batches, remedy="[1, 8, 64] is one")]
    contexts = several("contexts", contexts, remedy="[0, 1024] is one")
    tokens = float((trace.lengths - int(prefill_emits_token)).mean())
    if not batches or not tokens:
        return []
    settings = _settings(trace, rule, ks, prefill_emits_token)
    choices = []
    for context in contexts:
        models = [_at(cost, live, context) for live in range(1, max(batches) + 1)]
        times = [np.array([each.calls.seconds(model) for model in models]) for each in settings]
        choices += [_best(settings, times, batch, context, tokens) for batch in batches]
    return choices


def _at(cost: Costs, batch: int, context: float) -> Costs:
    changed: Any = {"batch": batch, "context": context}
    return replace(cost, **changed)


def _settings(trace: Trace, rule: PathRule, ks: Sequence[int], prefilled: bool) -> list[_Setting]:
    """Plain decoding, then chains by their length."""
    first = np.zeros(len(trace), bool)
    first[np.cumsum(trace.lengths) - trace.lengths] = prefilled
    lengths = trace.lengths - int(prefilled)
    settings = [_Setting(ChainCalls(), plainly_unfinished(lengths))]
    chains = [Chain(k) for k in sorted(ks) if k <= within(trace.columns, k)]
    if not chains:
        return settings
    survival = survival_of(rule, chains[-1], trace.columns)[0][~first]
    for each in calls_by_shape(trace, rule, chains, prefill_emits_token=prefilled):
        number = float((each.calls.expected - int(prefilled)).sum())
        calls = ChainCalls(each.shape, float(lengths.sum()) / number, float(each.calls.full.sum()) / number)
        settings.append(_Setting(calls, unfinished(survival[:, : calls.k], lengths)))
    return settings


def _best(
    settings: Sequence[_Setting], times: Sequence[Floats], batch: int, context: float, tokens: float
) -> LockStepChoice:
    """The setting whose batches take the fewest seconds; plain decoding comes first."""
    plain, best = None, None
    for each, seconds in zip(settings, times, strict=True):
        rounds = rounds_of_draws(each.unfinished, batch)[1:]
        total = float(rounds @ seconds[:batch])
        plain = total if plain is None else plain
        if best is None or plain / total > best.speedup:
            waiting = float(rounds.sum() / each.unfinished.sum(axis=0).mean())
            best = LockStepChoice(
                batch, context, each.calls.k, float(rounds.sum()), waiting, plain / total, batch * tokens / total
            )
    assert best is not None
    return best
