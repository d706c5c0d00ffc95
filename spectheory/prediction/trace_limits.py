"""Limits of a trace: the most that calls could give (§5, §7, §12)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain, Shape
from spectheory.errors import TraceError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound, tunstall_bound
from spectheory.limits.branching import best_threshold, surprisal_walks, threshold_terms
from spectheory.limits.claims import WHOLE_DECODING
from spectheory.prediction.decoding_limit import claim_of, fewest_calls
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.paths import tokens_left
from spectheory.prediction.shape_calls import ShapeCalls
from spectheory.trace import GIVEN_TEXT, RECORDED_RANKS, Trace
from spectheory.verification import PathRule, RankRule
from spectheory.verification.by_start import AtDepth

Floats = NDArray[np.float64]
_SHARE_OF_STARTS = 1 / 8
"""Starts with room for a call that a limit needs, of all positions: fewer are those near the prompts alone."""


@dataclass(frozen=True)
class Limits:
    """Limits on tokens per call for one number of draft nodes; all count the recovered or bonus token.

    The first two are upper bounds over whole decodings, in expectation over target-sampled text, for lossless rules
    with fresh continuation that judge one chain drawn from the draft (§12). Argmax drafts, copied ones and trees are
    not bound by them. A trace has one of the two:

    - `decoding`: B7, what block verification gives with this draft model.
    - `decoding_by_start`: L, for drafts by start, which escape B7; it need not be attained.

    The others are about drafts of other kinds:

    - `text`: B6, drafts that do not sample (independent of the target's randomness), without an i.i.d. assumption: an
      estimate of a bound on one call, averaged over all starting positions, or over the starts of the rule's own calls
      if its drafts do not sample. Calls of other such drafts start elsewhere, and may exceed it.
    - `iid_branching`: B2', the same if conditional pmfs are i.i.d.; real text may exceed it.
    - `iid_channel`: T1 if ranks are i.i.d. along the text, which real text may exceed: ranks of the rule itself, or of
      recursive rejection for a rule without ranks. Ranks beyond 8, or beyond those recorded, count as one. Of drafts by
      start the ranks are those of a call's first draft (§10).
    """

    decoding: Interval | None = None
    decoding_by_start: Interval | None = None
    text: Interval | None = None
    iid_branching: float | None = None
    iid_channel: float | None = None

    def of(self, rule: PathRule, shape: Shape, trace: Trace) -> Limits:
        """The limits of one rule and shape: T1 with the rule's own ranks."""
        own = self
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


class StartsByPosition:
    """Starts of calls along a text, chosen by position alone: where k tokens might follow.

    Which starts count must not depend on what follows: a text counts as long as it might have become, which is its own
    length for a text that was cut, the longest text's for one that ended.
    """

    def __init__(self, prompts: Prompts, trace: Trace) -> None:
        self._prompts, ended = prompts, np.array([text.ended for text in trace.texts])
        possible = np.where(ended, trace.lengths.max(), trace.lengths)
        position = np.repeat(trace.lengths, trace.lengths) - tokens_left(trace.lengths)
        self._room = np.repeat(possible, trace.lengths) - position
        self._known = not (trace.recorded or trace.provenance.get("origin") == GIVEN_TEXT)

    def with_room(self, k: int) -> NDArray[np.bool_] | None:
        """The starts ``[N]``; None where they are too few, or where text is no sample of the target."""
        whole = self._room >= k
        enough = self._known and whole.sum() >= max(1, _SHARE_OF_STARTS * len(whole))
        return whole if enough else None

    def mean(self, values: Floats, weights: Floats, k: int) -> Interval:
        """The mean over starts of tokens of a call with k drafts, each start weighed, with its 95% interval."""
        above, below = self._prompts.sum_rows(values * weights), self._prompts.sum_rows(weights)
        return ratio(above, below, limits=(1.0, k + 1.0))


class TextLimit:
    """B6 along the texts of a trace, each half of the prompts with the threshold of the other, so it stays a bound."""

    def __init__(self, prompts: Prompts, trace: Trace, deepest: int) -> None:
        self._starts, self._trace, self._deepest = StartsByPosition(prompts, trace), trace, deepest
        self._half = np.repeat(prompts.folds(2) == 0, trace.lengths)

    @cached_property
    def _walks(self) -> Floats:
        return surprisal_walks(-self._trace.columns["log_target"], self._trace.lengths, self._deepest)[0]

    def at(self, k: int, visits: Floats | None = None) -> Interval | None:
        """B6 at k nodes over starts that count alike, or by the calls `visits` ``[N]`` that start there.

        Visits depend on the text before a start alone, so they leave B6 a bound for a call from such starts.
        """
        whole = self._starts.with_room(k)
        if whole is None:
            return None
        weights = whole.astype(np.float64) if visits is None else np.where(whole, visits, 0.0)
        if not weights.any():
            return None
        return _cut(self._starts.mean(_cross_fitted(self._walks[:, :k], whole, self._half, k), weights, k), k + 1.0)


class TraceLimits:
    """The limits of each rule and shape that are predicted from a trace; `prefill_emits_token` as in predictions."""

    def __init__(
        self, prompts: Prompts, trace: Trace, found: Sequence[ShapeCalls], *, prefill_emits_token: bool = False
    ) -> None:
        self._prompts, self._trace = prompts, trace
        self._text = TextLimit(prompts, trace, max(calls.shape.nodes for calls in found))
        chains = {calls.shape.nodes for calls in found if isinstance(calls.shape, Chain)}
        self._fewest = fewest_calls(trace, sorted(chains), prefill_emits_token=prefill_emits_token)
        self._of_nodes: dict[int, Limits] = {}

    def of(self, rule: PathRule, found: ShapeCalls) -> tuple[Limits, Interval | None]:
        """The limits of one rule and shape, and its regret: the share of calls beyond those of the limit of a chain."""
        nodes = found.shape.nodes
        if nodes not in self._of_nodes:
            self._of_nodes[nodes] = _limits_at(self._trace, nodes, self._text.at(nodes))
        own = self._of_nodes[nodes].of(rule, found.shape, self._trace)
        if found.visits is not None:
            own = replace(own, text=self._text.at(nodes, found.visits))
        if nodes not in self._fewest or not isinstance(found.shape, Chain):
            return own, None
        tokens, least = self._prompts.sum(self._trace.lengths), self._prompts.sum(self._fewest[nodes])
        most = ratio(tokens, least, limits=(1.0, nodes + 1.0))
        limit = claim_of(self._trace)
        own = replace(own, decoding=most) if limit is WHOLE_DECODING else replace(own, decoding_by_start=most)
        regret = ratio(self._prompts.sum(found.calls.expected), least) + (-1.0)
        return own, regret if limit.key in rule.bound_by else None


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


def _limits_at(trace: Trace, k: int, text: Interval | None) -> Limits:
    """B6 as it is found, and the idealised values."""
    columns = trace.columns
    branching = channel = None
    if "target_entropy" in columns:
        mu, mu2 = float(columns["target_entropy"].mean()), float(columns["target_second_moment"].mean())
        branching = branching_bound(mu, max(mu2, mu * mu), k) + 1
    if "rejection_rank" in columns:
        channel = _channel(columns["rejection_rank"], k)  # of drafts by start: those of the first draft
    return Limits(text=text, iid_branching=branching, iid_channel=channel)


def _channel(rank_law: NDArray[np.float64], k: int) -> float:
    """T1 with the mean law of the ranks, those beyond the recorded ones lumped."""
    law = rank_law.mean(axis=0)
    law = np.append(law, max(0.0, 1 - law.sum()))
    return tunstall_bound(-float(np.sum(law[law > 0] * np.log(law[law > 0]))), len(law), k)


def _cut(interval: Interval, most: float) -> Interval:
    return Interval(min(interval.low, most), min(interval.best, most), min(interval.high, most), interval.kind)
