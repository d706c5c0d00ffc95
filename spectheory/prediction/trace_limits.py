"""Limits of a trace: the most that calls could give (§5, §7, §12)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Chain, Shape
from spectheory.errors import TraceError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound, tunstall_bound
from spectheory.limits.claims import WHOLE_DECODING
from spectheory.prediction.decoding_limit import claim_of, fewest_calls
from spectheory.prediction.means import MeanLaws, mean_of
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.shape_calls import ShapeCalls
from spectheory.prediction.text_limit import TextLimit
from spectheory.trace import Trace
from spectheory.verification import PathRule, RankRule

Floats = NDArray[np.float64]


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
        own = self
        if rule.grows:  # its ranks are of no fixed tree
            own = replace(own, iid_channel=None)
        if isinstance(rule, RankRule):
            with suppress(TraceError):  # one rank may be known without the law of the others
                own = replace(own, iid_channel=_channel(laws.known(rule), shape.nodes))
        return own

    def as_dict(self) -> dict[str, Any]:
        """The limits as a JSON-ready dictionary."""
        return {name: value.as_dict() if isinstance(value, Interval) else value for name, value in vars(self).items()}


class TraceLimits:
    """The limits of each rule and shape that are predicted from a trace; `prefill_emits_token` as in predictions."""

    def __init__(
        self,
        prompts: Prompts,
        trace: Trace,
        found: Sequence[tuple[PathRule, ShapeCalls]],
        *,
        prefill_emits_token: bool = False,
    ) -> None:
        self._prompts, self._trace, self.laws = prompts, trace, MeanLaws(trace)
        sizes = {calls.shape.nodes for _, calls in found}
        text = TextLimit(prompts, trace, sorted(sizes))
        chains = {calls.shape.nodes for _, calls in found if isinstance(calls.shape, Chain)}
        self._fewest = fewest_calls(trace, sorted(chains), prefill_emits_token=prefill_emits_token)
        means = _Means.of(trace)
        self._of_nodes = {nodes: means.limits(nodes, text.at(nodes)) for nodes in sizes}
        self._at_calls: dict[tuple[PathRule, Shape], Interval | None] = {}
        for rule in {rule for rule, calls in found if calls.starts}:
            shapes = [calls.starts for other, calls in found if other == rule and calls.starts]
            at_calls = text.at_calls(rule, shapes, prefill_emits_token)
            self._at_calls |= {(rule, shape): limit for shape, limit in zip(shapes, at_calls, strict=True)}

    def of(self, rule: PathRule, found: ShapeCalls) -> tuple[Limits, Interval | None]:
        """The limits of one rule and shape, and its regret: the share of calls beyond those of the limit of a chain."""
        nodes = found.shape.nodes
        own = self._of_nodes[nodes].of(rule, found.shape, self.laws)
        if found.starts:
            own = replace(own, text=self._at_calls[rule, found.starts])
        if nodes not in self._fewest or not isinstance(found.shape, Chain):
            return own, None
        tokens, least = self._prompts.sum(self._trace.lengths), self._prompts.sum(self._fewest[nodes])
        most = ratio(tokens, least, limits=(1.0, nodes + 1.0))
        limit = claim_of(self._trace)
        own = replace(own, decoding=most) if limit is WHOLE_DECODING else replace(own, decoding_by_start=most)
        regret = ratio(self._prompts.sum(found.calls.expected), least) + (-1.0)
        return own, regret if limit.key in rule.bound_by else None


@dataclass(frozen=True)
class _Means:
    """What the idealised values need: mean moments of the target's surprisal, and the mean law of i.i.d. ranks."""

    moments: Floats | None
    ranks: Floats | None

    @classmethod
    def of(cls, trace: Trace) -> _Means:
        """Those that the trace has; of drafts by start the ranks are those of the first draft."""
        names = ("target_entropy", "target_second_moment")
        found = [mean_of(trace, [name], itemgetter(name)) for name in names if "target_entropy" in trace.columns]
        law = "rejection_rank"
        ranks = mean_of(trace, [law], itemgetter(law)) if law in trace.columns else None
        return cls(np.array(found) if found else None, ranks)

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
