r"""Limits of a trace: the most that calls could give (§5, §7, §12).

Over a whole decoding (§12): the fewest calls of any lossless rule that judges one chain a call.

*Rules*: every call outputs a sample of the target and leaves the text after it a fresh sample, and its drafts are one
chain drawn from q. Its length, the rule and their choice may depend on everything before.

*A draft model* (B7): in expectation over target-sampled text, no such rule needs fewer calls than block verification
with the longest chain.

*Drafts by start* (§10) escape B7. With :math:`M_{n,i}` block verification's survival of a call from n,

.. math:: L(n) = 1 + \sum_{i=0}^{k} (M_{n,i} - M_{n,i+1}) \min_{j \le i} L(n+j+1),
    \qquad M_{n,0} = 1,\ M_{n,k+1} = 0,

and L = 0 from the end on: no such rule has P(tau >= i | text, history) above :math:`M_{n,i}`, so L(0) is a lower bound
on its calls for every text. It need not be attained. Argmax drafts, copied drafts and trees are not bound by either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats
from spectheory.drafting import Shape
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound, tunstall_bound
from spectheory.limits.claims import BY_START, WHOLE_DECODING, LimitClaim
from spectheory.prediction.means import MeanLaws, _means_of, columns_of
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.paths import calls_of_chains, tokens_left, visits_of
from spectheory.prediction.shape_calls import ShapeCalls, survival_of
from spectheory.prediction.text_limit import TextLimit, Visits
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.verification import BlockVerification, PathRule, RankRule
from spectheory.verification.by_start import deepest, within

_LENGTHS_AT_ONCE = 16
"""Chain lengths that one pass over the texts serves."""


def _claim_of(trace: Trace) -> LimitClaim:
    """Which limit holds for the draft of a trace: B7 for a draft model, L for drafts by start."""
    return WHOLE_DECODING if deepest(trace.columns) is None else BY_START


def fewest_calls(
    trace: Trace, ks: Sequence[int], *, prefill_emits_token: bool = False, block: Mapping[int, Floats] | None = None
) -> dict[int, Floats]:
    """Lower bound on the calls of each text with chains of at most k drafts, ``[texts]`` by k (§12, B7 or L).

    Under B7 it is block verification's value, a bound in expectation over the texts; under L one for every text. There
    is none for given text, which is no sample of the target, for recorded lengths, and for chains longer than a draft
    is recorded by start. `block` has the expected calls of block verification by k, as far as they are known.
    """
    ks = [k for k in ks if k <= within(trace.columns, k)]
    if not ks or trace.recorded or trace.provenance.get("origin") == GIVEN_TEXT:
        return {}
    known = block if block and _claim_of(trace) is WHOLE_DECODING else {}
    if known.keys() >= set(ks):
        return {k: known[k] for k in ks}
    names = columns_of(BlockVerification(), [], trace.columns)
    by_block = [_fewest(block, ks, _claim_of(trace), prefill_emits_token) for block in trace.blocks(names)]
    return {k: np.concatenate([of_block[k] for of_block in by_block]) for k in ks}


def _fewest(block: Trace, ks: Sequence[int], limit: LimitClaim, prefill: bool) -> dict[int, Floats]:
    """Those of the texts of a block."""
    survival = BlockVerification().path_survival(block.columns, max(ks))
    if limit is BY_START:
        return least_calls(survival, block.lengths, ks, prefill_emits_token=prefill)
    by_k = calls_of_chains(survival, block.lengths, ks, prefill_emits_token=prefill)
    return {k: calls.expected for k, calls in by_k.items()}


def least_calls(
    survival: Floats, lengths: NDArray[np.int64], ks: Sequence[int], *, prefill_emits_token: bool = False
) -> dict[int, Floats]:
    """L(0) of each text for chains of at most k drafts, ``[texts]`` by k (§12/L, lower bound for every text).

    `survival` ``[N, K]`` is block verification's by start, :math:`M_{n,i}`, with K at least the largest k; entries past
    the end of a text are ignored. With `prefill_emits_token` it is 1 + L(1). Linear in text times depth.

    Examples
    --------
    A call from 0 drafts right, wrong; from 1 right, right; from 2 and 3 wrong. Block verification takes 3 calls;
    rejecting all drafts of the first call takes 2:

    >>> survival = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> least_calls(survival, np.array([4]), [2])[2]
    array([2.])
    """
    prefill, depth = int(prefill_emits_token), max(ks)
    order = np.argsort(-lengths, kind="stable")
    inside = np.arange(1, depth + 1) < tokens_left(lengths)[:, None]
    masses = -np.diff(np.where(inside, survival[:, :depth], 0.0), axis=1, prepend=1.0, append=0.0)
    by_k: dict[int, Floats] = {}
    wanted = sorted(set(ks))
    for group in (wanted[at : at + _LENGTHS_AT_ONCE] for at in range(0, len(wanted), _LENGTHS_AT_ONCE)):
        calls = np.zeros((len(group), len(lengths)))
        for texts, ahead in _backwards(masses, lengths[order], np.cumsum(lengths)[order], np.array(group), prefill):
            calls[:, order[texts]] = ahead[texts].T
        by_k |= dict(zip(group, calls + prefill, strict=True))
    return by_k


def _backwards(
    masses: Floats, lengths: NDArray[np.int64], ends: NDArray[np.int64], ks: NDArray[np.int64], first: int
) -> Iterator[tuple[slice, Floats]]:
    """L after `first` tokens, ``[texts, ks]``, and the place of the texts that are in it; the longest texts first.

    `masses` ``[N, depth + 1]`` are M_i - M_{i+1}. Drafts beyond a chain's k count as its k-th.
    """
    depth = masses.shape[1] - 1
    low = np.zeros((len(lengths), len(ks), depth + 1))  # least L after 1, 2, ... tokens more
    before = np.arange(len(ks))[:, None] * (depth + 1) + np.clip(np.arange(depth + 1) - 1, 0, ks[:, None] - 1)
    as_long = len(lengths) - np.searchsorted(lengths[::-1], np.arange(1, lengths.max(initial=0) + first + 2))
    counts = as_long.tolist()
    for left, (texts, begun, longer) in enumerate(zip(counts, counts[first:], counts[first + 1 :], strict=False), 1):
        new = 1.0 + np.vecdot(low[:texts], masses.take(ends[:texts] - left, 0)[:, None])
        low = low[:texts].reshape(texts, -1).take(before, 1)
        low[..., 0] = new
        np.minimum(low, new[..., None], out=low)
        if longer < begun:
            yield slice(longer, begun), new


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

    def of(self, rule: PathRule, shape: Shape, laws: MeanLaws) -> Limits:
        """The limits of one rule and shape: T1 with the rule's own ranks."""
        limits = self
        if rule.grows:  # its ranks are of no fixed tree
            limits = replace(limits, iid_channel=None)
        if isinstance(rule, RankRule):
            with suppress(TraceError):  # one rank may be known without the law of the others
                limits = replace(limits, iid_channel=_channel(laws.known(rule), shape.nodes))
        return limits


def _visits_of_calls(rule: PathRule, shape: Shape, prefill: bool) -> Visits:
    """The calls of a rule with a shape."""

    def of(block: Trace) -> Floats:
        survival, _ = survival_of(rule, shape, block.columns)
        return visits_of(survival, block.lengths, prefill_emits_token=prefill)

    return of


class TraceLimits:
    """The limits of rules and shapes on one trace; what depends on neither is computed once for all plans."""

    def __init__(self, trace: Trace) -> None:
        self._prompts, self._trace, self.laws = Prompts(trace.texts), trace, MeanLaws(trace)
        self._text: dict[int, Interval | None] = {}

    @classmethod
    def shared(cls, limits: TraceLimits | None, trace: Trace) -> TraceLimits:
        """Those of earlier plans, if there were any; of another trace they are refused."""
        if limits is not None and limits._trace is not trace:
            raise SettingError(
                "limits of another trace are passed on",
                limit="plans share the limits of one trace",
                remedy="pass spectheory.prediction.trace_limits.TraceLimits(trace) with that trace, or none",
            )
        return limits or cls(trace)

    def of(
        self, pairs: Sequence[tuple[PathRule, ShapeCalls]], *, prefill_emits_token: bool = False
    ) -> list[tuple[Limits, Interval | None]]:
        """The limits of each rule and shape, and its regret: the share of calls beyond those of the limit of a chain.

        `prefill_emits_token` as in predictions.
        """
        at_calls = self._find_text(pairs, prefill_emits_token)
        chains = sorted({calls.shape.nodes for _, calls in pairs if calls.shape.is_chain})
        block = {
            calls.shape.nodes: calls.calls.expected
            for rule, calls in pairs
            if type(rule) is BlockVerification and calls.shape.is_chain and not calls.shape.stop
        }
        fewest = fewest_calls(self._trace, chains, prefill_emits_token=prefill_emits_token, block=block)
        limits = []
        for rule, calls in pairs:
            of_pair = self._means.limits(calls.shape.nodes, self._text[calls.shape.nodes])
            of_pair = of_pair.of(rule, calls.shape, self.laws)
            if calls.starts:
                of_pair = replace(of_pair, text=at_calls[rule, calls.starts])
            limits.append(self._with_decoding(of_pair, rule, calls, fewest))
        return limits

    def _find_text(
        self, pairs: Sequence[tuple[PathRule, ShapeCalls]], prefill: bool
    ) -> dict[tuple[PathRule, Shape], Interval | None]:
        """Find B6 at all numbers of nodes, and return it over the starts of calls of drafts that do not sample."""
        sizes = sorted({calls.shape.nodes for _, calls in pairs} - self._text.keys())
        by_start = list(dict.fromkeys((rule, calls.starts) for rule, calls in pairs if calls.starts))
        asked: list[tuple[int, Visits]] = [(k, None) for k in sizes]
        asked += [(shape.nodes, _visits_of_calls(rule, shape, prefill)) for rule, shape in by_start]
        names = [columns_of(rule, [shape], self._trace.columns) for rule, shape in by_start]
        limits = TextLimit(self._prompts, self._trace, [k for k, _ in asked]).means(asked, _together(names))
        self._text |= zip(sizes, limits, strict=False)
        return dict(zip(by_start, limits[len(sizes) :], strict=True))

    def _with_decoding(
        self, limits: Limits, rule: PathRule, shape_calls: ShapeCalls, fewest: Mapping[int, Floats]
    ) -> tuple[Limits, Interval | None]:
        """The limits with that of whole decodings, and the regret of a rule that it binds."""
        nodes = shape_calls.shape.nodes
        if nodes not in fewest or not shape_calls.shape.is_chain:
            return limits, None
        tokens, least = self._prompts.sum(self._trace.lengths), self._prompts.sum(fewest[nodes])
        most = ratio(tokens, least, limits=(1.0, nodes + 1.0))
        limit = _claim_of(self._trace)
        limits = replace(limits, decoding=most) if limit is WHOLE_DECODING else replace(limits, decoding_by_start=most)
        regret = ratio(self._prompts.sum(shape_calls.calls.expected), least) + (-1.0)
        return limits, regret if limit.key in rule.bound_by else None

    @cached_property
    def _means(self) -> _Means:
        return _Means.of(self._trace)


def _together(names: Iterable[list[str] | None]) -> set[str] | None:
    """The columns of several readings; None where one of them may read any."""
    known: set[str] = set()
    for each in names:
        if each is None:
            return None
        known.update(each)
    return known


@dataclass(frozen=True)
class _Means:
    """What the idealised values need: mean moments of the target's surprisal, and the mean law of i.i.d. ranks."""

    moments: Floats | None
    ranks: Floats | None

    @classmethod
    def of(cls, trace: Trace) -> _Means:
        """Those that the trace has; of drafts by start the ranks are those of the first draft."""
        moments, law = ["target_entropy", "target_second_moment"], "rejection_rank"
        names = [*(moments if {*moments} <= set(trace.columns) else []), *([law] if law in trace.columns else [])]
        means = dict(zip(names, _means_of(trace, names, [itemgetter(name) for name in names]), strict=True))
        return cls(np.array([means[name] for name in moments]) if moments[0] in means else None, means.get(law))

    def limits(self, k: int, text: Interval | None) -> Limits:
        """B6 as it is found, and the idealised values."""
        branching = channel = None
        if self.moments is not None:
            mu, mu2 = self.moments.tolist()
            branching = branching_bound(mu, max(mu2, mu * mu), k) + 1
        if self.ranks is not None:
            channel = _channel(self.ranks, k)
        return Limits(text=text, iid_branching=branching, iid_channel=channel)


def _channel(law: Floats, k: int) -> float:
    """T1 with the mean law of the ranks, those beyond the recorded ones lumped."""
    law = np.append(law, max(0.0, 1 - law.sum()))
    return tunstall_bound(-float(np.sum(law[law > 0] * np.log(law[law > 0]))), len(law), k)
