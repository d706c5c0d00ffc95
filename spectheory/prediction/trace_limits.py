"""Limits of a trace: the most that a call could give (§5, §7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain, Shape
from spectheory.errors import TraceError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound, tunstall_bound
from spectheory.limits.branching import best_threshold, surprisal_walks, threshold_terms
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.paths import one_call_terms, tokens_left
from spectheory.trace import GIVEN_TEXT, RECORDED_RANKS, Trace
from spectheory.verification import PathRule, RankRule
from spectheory.verification.by_start import AtDepth, along_calls, log_ratio, within

_SHARE_OF_STARTS = 1 / 8
"""Starts with room for a call that a limit needs, of all positions: fewer are those near the prompts alone."""


@dataclass(frozen=True)
class Limits:
    """Limits on tokens per call for one number of draft nodes; all count the recovered or bonus token.

    The first two are estimates of bounds on one call along target-sampled text, averaged over all starting positions.
    Consecutive calls start where the last one ended, and may exceed them where such starts are easy. The other two are
    idealised values, which real text may exceed.

    - `one_call`: any lossless verification of a chain drawn from the draft (§7); argmax drafts are not drawn.
    - `text`: B6, drafts that do not sample (independent of the target's randomness), without an i.i.d. assumption.
    - `iid_branching`: B2', the same if conditional pmfs are i.i.d.
    - `iid_channel`: T1 if ranks are i.i.d. along the text: ranks of the rule itself, or of recursive rejection for a
      rule without ranks. Ranks beyond 8, or beyond those recorded, count as one. Of drafts by start the ranks are those
      of a call's first draft (§10).
    """

    one_call: Interval | None = None
    text: Interval | None = None
    iid_branching: float | None = None
    iid_channel: float | None = None

    def of(self, rule: PathRule, shape: Shape, trace: Trace) -> Limits:
        """The limits of one rule and shape: no one-call bound but for chains, T1 with the rule's own ranks."""
        own = self
        if not isinstance(shape, Chain):
            own = replace(own, one_call=None)
        if rule.grows:  # its ranks are of no fixed tree
            own = replace(own, iid_channel=None)
        if isinstance(rule, RankRule):
            with suppress(TraceError):  # one rank may be known without the law of the others
                law = rule.rank_law(AtDepth(trace.columns, 1), rule.known_ranks(trace.columns, RECORDED_RANKS))
                own = replace(own, iid_channel=_channel(law, shape.nodes))
        return own

    def as_dict(self) -> dict[str, Any]:
        """The limits as a JSON-ready dictionary."""
        return {name: value.as_dict() if isinstance(value, Interval) else value for name, value in vars(self).items()}


def limits_of(prompts: Prompts, trace: Trace, ks: Sequence[int]) -> dict[int, Limits]:
    """The limits at each number of draft nodes."""
    measured = _on_text(prompts, trace, ks)
    return {k: _limits_at(trace, k, *measured.get(k, (None, None))) for k in ks}


def _on_text(prompts: Prompts, trace: Trace, ks: Sequence[int]) -> dict[int, tuple[Interval | None, Interval]]:
    """The one-call bound and B6, over starts chosen by position alone: k tokens might follow them.

    Where too few positions are such starts there is none, and no one-call bound beyond the drafts that are recorded.
    """
    if trace.recorded or trace.provenance.get("origin") == GIVEN_TEXT:
        return {}
    deepest = max(ks)
    drafted = within(trace.columns, deepest)
    terms, _ = one_call_terms(along_calls(trace.columns, drafted, log_ratio, fill=0.0), trace.lengths)
    walks, _ = surprisal_walks(-trace.columns["log_target"], trace.lengths, deepest)
    left = tokens_left(trace.lengths)
    position = np.repeat(trace.lengths, trace.lengths) - left
    # No draft beyond the end of a text that ended by itself is accepted.
    one_call = np.cumsum(np.where(np.arange(drafted) < left[:, None], terms, 0.0), axis=1)
    # Which starts count must not depend on what follows: a text counts as long as it might have become.
    room = np.repeat(_possible_lengths(trace), trace.lengths)
    # The threshold of each half of the prompts comes from the other half, so that B6 stays a bound.
    half = np.repeat(prompts.folds(2) == 0, trace.lengths)
    found = {}
    for k in set(ks):
        whole = position + k <= room
        if whole.sum() < max(1, _SHARE_OF_STARTS * len(trace)):
            continue
        starts, most = prompts.sum_rows(whole), (1.0, k + 1.0)
        of_call = None
        if k <= drafted:
            of_call = ratio(prompts.sum_rows(np.where(whole, one_call[:, k - 1] + 1, 0.0)), starts, limits=most)
        of_text = ratio(prompts.sum_rows(_cross_fitted(walks[:, :k], whole, half, k)), starts, limits=most)
        found[k] = of_call, _cut(of_text, k + 1.0)
    return found


def _possible_lengths(trace: Trace) -> NDArray[np.int64]:
    """Tokens each text could have had: its own for a text that was cut, the longest text's for one that ended."""
    ended = np.array([text.ended for text in trace.texts])
    return np.where(ended, trace.lengths.max(), trace.lengths)


def _cross_fitted(
    walks: NDArray[np.float64], whole: NDArray[np.bool_], half: NDArray[np.bool_], capacity: int
) -> NDArray[np.float64]:
    """B6's value at each start, tokens per call, with the threshold chosen on the other half of the prompts."""
    values = np.zeros(len(walks))
    for side in (half, ~half):
        chosen_on, used_on = whole & ~side, whole & side
        t = best_threshold(walks[chosen_on], capacity) if chosen_on.any() else math.log(capacity)
        values[used_on] = threshold_terms(walks[used_on], t) + capacity * math.exp(-t) + 1
    return values


def _limits_at(trace: Trace, k: int, one_call: Interval | None, text: Interval | None) -> Limits:
    columns = trace.columns
    branching = channel = None
    if "target_entropy" in columns:
        mu, mu2 = float(columns["target_entropy"].mean()), float(columns["target_second_moment"].mean())
        branching = branching_bound(mu, max(mu2, mu * mu), k) + 1
    if "rejection_rank" in columns:
        channel = _channel(columns["rejection_rank"], k)  # of drafts by start: those of the first draft
    return Limits(one_call, text, branching, channel)


def _channel(rank_law: NDArray[np.float64], k: int) -> float:
    """T1 with the mean law of the ranks, those beyond the recorded ones lumped."""
    law = rank_law.mean(axis=0)
    law = np.append(law, max(0.0, 1 - law.sum()))
    return tunstall_bound(-float(np.sum(law[law > 0] * np.log(law[law > 0]))), len(law), k)


def _cut(interval: Interval, most: float) -> Interval:
    return Interval(min(interval.low, most), min(interval.best, most), min(interval.high, most), interval.kind)
