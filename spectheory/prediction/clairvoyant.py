r"""The most that any adaptive draft length could give (§11): lengths chosen with the output known.

With tau the accepted drafts of a call that drafts up to K tokens, no call outputs more than tau + 1 tokens, and one
that accepts L drafts has drafted L or more. So the least time from position n to the end of a text is

.. math:: T(n) = E_\tau\Bigl[\min_{L \le \tau} t(L) + T(n + L + 1)\Bigr],
    \qquad t(L) = \min_{l \ge L} t_d(l) + t_p(l + 1),

with t_d and t_p the draft's and the target's share of a call on l drafts. No length that the draft, the text so far or
a learned model decides takes less on average over the same calls, whatever decides it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import CostModel
from spectheory.cost.model import Ends
from spectheory.drafting import Chain
from spectheory.drafting.schedules import Cut
from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import Prompts, deviation, interval
from spectheory.prediction.shape_calls import by_parallel_head, drafted
from spectheory.trace import Trace
from spectheory.verification import PathRule

Floats = NDArray[np.float64]


def least_seconds(
    survival: Floats, lengths: NDArray[np.int64], times: Floats, carried: Floats | None = None, *, first: int = 0
) -> Floats:
    """T at the first call of each text, ``[texts]`` (§11, exact; a lower bound on the time of every adaptive length).

    `survival` ``[N, K]`` is P(tau >= i) at each position, `times` ``[K + 1]`` what a call takes that drafts 0, ..., K
    tokens. `carried` ``[K + 1]`` is what accepting so many adds to the next call that drafts. Calls start after `first`
    tokens.

    Examples
    --------
    Every draft is accepted, and drafting costs a tenth: one call drafts all that is left.

    >>> least_seconds(np.ones((4, 3)), np.array([4]), 1 + 0.1 * np.arange(4)).round(12).tolist()
    [1.3]
    """
    k = survival.shape[1]
    least = np.minimum.accumulate(times[::-1])[::-1]
    more = np.zeros((k + 1, 1)) if carried is None else carried[:, None]
    order = np.argsort(-lengths, kind="stable")
    ends, sorted_lengths = np.cumsum(lengths)[order], lengths[order]
    ahead = np.zeros((int(lengths.max()) + 1, len(lengths)))  # by tokens left: none left, no time
    for left in range(1, len(ahead)):
        active = int(np.searchsorted(-sorted_lengths, -left, side="right"))
        after = np.maximum(left - 1 - np.arange(k + 1), 0)
        # Calls without drafts to the end of the text never pay what is carried.
        each = least[:, None] + np.minimum(more + ahead[after, :active], after[:, None] * times[0])
        best = np.minimum.accumulate(each, axis=0)
        reached = survival[ends[:active] - left].T
        ahead[left, :active] = best[0] + np.einsum("ia,ia->a", reached, np.diff(best, axis=0))
    found = np.empty(len(lengths))
    found[order] = ahead[np.maximum(sorted_lengths - first, 0), np.arange(len(lengths))]
    return found


def clairvoyant_speedup(
    trace: Trace,
    rule: PathRule,
    k: int,
    cost: CostModel,
    errors: Sequence[Ends] = (),
    *,
    prefill_emits_token: bool = False,
) -> Interval:
    """Upper bound on the speed-up of every adaptive length of at most k drafts with this rule (95% over prompts).

    It is exact for the texts of the trace and these times; `errors` are those of the times, ``cost.errors()``.
    """
    survival = rule.path_survival(trace.columns, k)
    prompts, first = Prompts(trace.texts), int(prefill_emits_token)
    chain = drafted(rule, Chain(k), parallel=by_parallel_head(trace.provenance))

    def per_token(model: CostModel) -> Floats:
        """Plain steps over an output token's time, on all prompts and without each."""
        seconds = least_seconds(survival, trace.lengths, *call_seconds(model, chain), first=first)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(prompts.sum(trace.lengths - first) * model.target_step().best / prompts.sum(seconds))

    of_times = sum(deviation(*(float(per_token(end)[0]) for end in ends)) ** 2 for ends in errors)
    return interval(per_token(cost), prompts.sum(trace.lengths - first), other_variance=of_times)


def call_seconds(cost: CostModel, chain: Chain) -> tuple[Floats, Floats]:
    """What a call takes that drafts 0, ..., k tokens, and what accepting so many adds to the next one that drafts.

    Both are ``[k + 1]``. A call on no drafts makes no draft pass, and a parallel head's pass is on no more tokens than
    are drafted. Only a head's next pass reads all that was accepted; here as a line through 0, below what any pays.
    """
    depths = range(1, chain.k + 1)
    chains = [chain.by(Cut(0, ())), *map(chain.of_length, depths)]
    times = np.array([cost.call(each).best for each in chains])
    if not cost.reads_accepted:
        return times, np.zeros(len(times))
    passes = chains[1:2] if chains[-1].passes[0] == 1 else chains[1:]  # a first pass on one token, whatever follows
    slopes = [
        (cost.call(each, float(accepted)).best - alone) / accepted
        for each, alone in zip(passes, times[1:].tolist(), strict=False)
        for accepted in depths
    ]
    return times, min(slopes) * np.arange(len(times))
