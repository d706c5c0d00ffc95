r"""Calls whose length earlier calls decide (§18), along a text.

With z the state of a policy, k(z) its drafts and :math:`z'(z, \tau)` the state after :math:`\tau` accepted ones, the
expected calls from position n are

.. math:: C(n, z) = 1 + \sum_{\tau \le k(z)} P(\tau \mid n, k(z))\, C(n + \tau + 1, z'(z, \tau)),

exact given the text where the states are few. A moving average has too many: its calls are replayed along the texts
with drawn acceptances, which is exact where every draft is accepted or refused for certain, and else an estimate. A
threshold that moves is replayed at temperature 0, where the draft's first choices and their probabilities are known:
calls are exact, and what a call drafts after a refused token is between none and all that fit.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.drafting import Chain
from spectheory.drafting.history import LengthPolicy
from spectheory.errors import TraceError
from spectheory.prediction.answer import ByHistory
from spectheory.prediction.over_prompts import reach
from spectheory.prediction.paths import by_text
from spectheory.prediction.prediction import of_calls
from spectheory.prediction.shape_calls import ShapeCalls, by_parallel_head, drafted
from spectheory.prediction.stopped import DraftedLengths, rooms
from spectheory.trace import Trace
from spectheory.verification import PathRule
from spectheory.verification.by_start import within

Floats = NDArray[np.float64]
REPLAYS = 32
"""Of every text, where acceptances are drawn."""


def _by_history(
    trace: Trace,
    rule: PathRule,
    policy: LengthPolicy,
    cost: CostModel | None = None,
    *,
    prefill_emits_token: bool = False,
    seed: int = 0,
) -> ByHistory:
    """Calls, drafted tokens and speed-up of a policy with a memory (§18; exact given the texts, or replayed).

    Ranges are 95% over prompts. The longest chain of the policy is no deeper than the trace records its draft.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.drafting.history import Heuristic
    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-1.0] * 60, [-1.2] * 60)] * 2)
    >>> answer = _by_history(trace, TokenVerification(), Heuristic(most=8), ConstantRatio(0.05))
    >>> print(answer.prediction.tokens_per_call, answer.error)
    3.871 0.0
    """
    trace = trace.in_memory()
    most = within(trace.columns, policy.most)
    policy = replace(policy, most=most)
    survival = np.ascontiguousarray(rule.path_survival(trace.columns, most))
    if policy.finite:
        (counts, full), error = _exactly(survival, trace, policy, int(prefill_emits_token)), 0.0
        longest = counts
    else:
        counts, longest, full, error = _replayed(survival, trace, policy, int(prefill_emits_token), seed)
    least, greatest = (np.cumsum(each[:, ::-1], axis=1)[:, ::-1] for each in (counts, longest))
    lengths = DraftedLengths(least[:, 0], full, *(least[:, 1:], greatest[:, 1:]) * 2)
    shape = drafted(rule, Chain(most), parallel=by_parallel_head(trace.provenance))
    first = by_text(survival[:, 0], trace.lengths)
    calls = ShapeCalls(shape, shape, lengths.text_calls(prefill_emits_token), first, lengths=[(shape, lengths)])
    return ByHistory(policy, of_calls(trace, rule, calls, cost, prefill_emits_token=prefill_emits_token), error)


def _exactly(survival: Floats, trace: Trace, policy: LengthPolicy, prefill: int) -> tuple[Floats, Floats]:
    """Expected calls of each text by the tokens that they draft, ``[texts, most + 1]``, and those that accept all."""
    from spectheory.kernels.path_calls import policy_calls

    most = survival.shape[1]
    states, places, moves = [policy.start], {policy.start: 0}, list[list[int]]()
    for state in states:  # grows as states are reached
        moves.append([])
        for accepted in range(policy.drafts(state) + 1):
            reached = policy.after(state, accepted)
            if reached not in places:
                places[reached] = len(states)
                states.append(reached)
            moves[-1].append(places[reached])
    after = np.zeros((len(states), most + 1), np.int64)
    for at, reached_from in enumerate(moves):
        after[at, : len(reached_from)] = reached_from
    drafts = np.array([policy.drafts(state) for state in states])
    counts, full = np.zeros((len(trace.lengths), most + 1)), np.zeros(len(trace.lengths))
    policy_calls(survival, trace.lengths, rooms(trace, most), drafts, after, prefill, counts, full)
    return counts, full


def _known_by(policy: type[LengthPolicy], trace: Trace) -> bool:
    """Whether a trace has what a policy reads: probabilities of first choices, at temperature 0."""
    greedy = trace.sampling is not None and trace.sampling.temperature == 0
    return policy.reads is None or (greedy and policy.reads in trace.columns)


def _replayed(
    survival: Floats, trace: Trace, policy: LengthPolicy, prefill: int, seed: int
) -> tuple[Floats, Floats, Floats, float]:
    """The same by replays, texts in their order, with the fewest tokens that each call may draft and with the most; and
    the error of tokens per call.
    """
    if not _known_by(type(policy), trace):
        raise TraceError(
            f"the policy {policy.name} is asked of a trace without {policy.reads} at temperature 0",
            limit="elsewhere the probability of a refused draft is unknown",
            remedy="measure a draft model at temperature 0, or ask for another policy",
        )
    sure = np.asarray(trace.columns[policy.reads]) if policy.reads else np.ones(len(survival))
    certain = bool(np.all((survival == 0) | (survival == 1)))
    replays, most = 1 if certain else REPLAYS, survival.shape[1]
    rng, room = np.random.default_rng(seed), rooms(trace, most)
    counts, full = np.zeros((2, replays, len(trace.lengths), most + 1)), np.zeros((replays, len(trace.lengths)))
    for replay in range(replays):
        state, end = policy.start, 0
        for text, length in enumerate(trace.lengths.tolist()):
            n, end = end + prefill, end + length
            state = state if policy.kept else policy.start
            while n < end:
                k = policy.drafts(state)
                fits = sure[n : n + min(k, room[n], end - n)].tolist()
                ends = next((j for j, each in enumerate(fits, 1) if policy.stops(state, each)), None)
                accepted = int((survival[n, : len(fits) if ends is None else ends] > rng.random()).sum())
                drafted = k if ends is None else ends
                # After a refused token the draft goes on by a text of its own, whose probabilities are unknown.
                open_ended = policy.reads and accepted < len(fits) and accepted + 1 != ends
                least, longest = (accepted + 1, k) if open_ended and accepted < drafted else (drafted, drafted)
                counts[0, replay, text, min(least, room[n])] += 1
                counts[1, replay, text, min(longest, room[n])] += 1
                full[replay, text] += accepted == drafted > 0 and end - n - 1 > drafted
                state = policy.after(state, accepted, fits[: min(accepted + 1, drafted)])
                n += accepted + 1
    error, calls = 0.0, counts[0].sum(axis=(1, 2))
    if not certain and calls.all():
        tokens = (trace.lengths - prefill).sum() / calls
        error = reach(replays - 1) * float(tokens.std(ddof=1)) / math.sqrt(replays)
    return *counts.mean(axis=1), full.mean(axis=0), error
