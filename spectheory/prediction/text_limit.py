"""Limits over starts of calls: B6 with a threshold for each half of the prompts, and bounds on one call (§7, §12).

Each half has the threshold of the other, so that B6 stays a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from spectheory import kernels
from spectheory.distributions import Floats
from spectheory.intervals import Interval
from spectheory.limits.several_chains import several_chain_terms
from spectheory.limits.text import best_threshold, surprisal_walks, threshold_terms
from spectheory.prediction.over_prompts import HALVES, Prompts, ratio
from spectheory.prediction.paths import by_text, tokens_left
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.trace.sample import of_texts, spread
from spectheory.verification.by_start import Columns, along_calls, within

Visits = Callable[[Trace], Floats] | None
"""Expected calls that start at each position of a block of texts, ``[N]``; None where starts count alike."""
_SHARE_OF_STARTS = 1 / 8
"""Starts with room for a call that a limit needs, of all positions: fewer are those near the prompts alone."""


class StartsByPosition:
    """Starts of calls along a text, chosen by position alone: where k tokens might follow.

    Which starts count must not depend on what follows: a text counts as long as it might have become, which is its own
    length for a text that was cut, the longest text's for one that ended.
    """

    def __init__(self, prompts: Prompts, trace: Trace) -> None:
        self._prompts, self._trace, self._longest = prompts, trace, int(trace.lengths.max())
        self._known = not (trace.recorded or trace.provenance.get("origin") == GIVEN_TEXT)

    def rooms(self, block: Trace) -> NDArray[np.int64]:
        """Tokens that might follow each position of some of the texts, its own included, ``[N]``."""
        lengths, left = block.lengths, tokens_left(block.lengths)
        return left + np.repeat(self._possible(block) - lengths, lengths)

    def enough(self, k: int) -> bool:
        """Whether starts with room for k are enough, and the text is a sample of the target."""
        starts = np.clip(self._possible(self._trace) - k + 1, 0, self._trace.lengths)
        return self._known and int(starts.sum()) >= max(1, _SHARE_OF_STARTS * len(self._trace))

    def with_room(self, k: int) -> NDArray[np.bool_] | None:
        """The starts ``[N]``; None where they are too few, or where text is no sample of the target."""
        return self.rooms(self._trace) >= k if self.enough(k) else None

    def mean(self, values: Floats, weights: Floats, k: int) -> Interval:
        """The mean over starts of tokens of a call with k drafts, each start weighed, with its 95% interval."""
        above, below = self._prompts.sum_rows(values * weights), self._prompts.sum_rows(weights)
        return ratio(above, below, limits=(1.0, k + 1.0))

    def _possible(self, block: Trace) -> NDArray[np.int64]:
        ended = np.array([text.ended for text in block.texts])
        return np.where(ended, self._longest, block.lengths)


class TextLimit:
    """B6 of a trace at some numbers of nodes, `ks`; None where too few starts have room for them.

    A threshold is chosen on a sample of one half of the prompts (:mod:`spectheory.trace.sample`), used on the other.
    """

    def __init__(self, prompts: Prompts, trace: Trace, ks: Sequence[int]) -> None:
        self._prompts, self._trace, self._starts = prompts, trace, StartsByPosition(prompts, trace)
        self._ks = [k for k in sorted(set(ks)) if self._starts.enough(k)]
        self._half = 1 - np.minimum(prompts.folds(HALVES), 1)

    def at(self, k: int) -> Interval | None:
        """B6 at k nodes over starts that count alike."""
        return self._alike.get(k)

    def means(self, asked: Sequence[tuple[int, Visits]], names: Collection[str] | None = ()) -> list[Interval | None]:
        """B6 at numbers of nodes, over starts weighed by the calls that start there; `names` are columns they read.

        Visits depend on the text before a start alone, so they leave B6 a bound for a call from such starts.
        """
        above, below = np.zeros((2, len(asked), len(self._half)))
        done = 0
        for block in self._trace.blocks(names) if self._ks else ():
            here = slice(done, done := done + len(block.texts))
            values, room = self._values(block, self._half[here]), self._starts.rooms(block)
            for place, (k, visits) in enumerate(asked):
                if k in self._ks:
                    weights = np.where(room >= k, visits(block) if visits else 1.0, 0.0)
                    above[place, here] = by_text(values[:, self._ks.index(k)] * weights, block.lengths)
                    below[place, here] = by_text(weights, block.lengths)
        return [self._mean(*each) for each in zip((k for k, _ in asked), above, below, strict=True)]

    def _mean(self, k: int, above: Floats, below: Floats) -> Interval | None:
        if not below.any():
            return None
        most = k + 1.0
        mean = ratio(self._prompts.sum(above), self._prompts.sum(below), limits=(1.0, most))
        return Interval(min(mean.low, most), min(mean.best, most), min(mean.high, most), mean.kind)

    @cached_property
    def _alike(self) -> dict[int, Interval | None]:
        return dict(zip(self._ks, self.means([(k, None) for k in self._ks]), strict=True))

    @cached_property
    def _thresholds(self) -> Floats:
        """The threshold of each half, chosen on the other, ``[2, ks]``."""
        chosen = spread(self._trace.lengths, self._half)
        sample = of_texts(self._trace, chosen, ())
        half, room = np.repeat(self._half[chosen], sample.lengths), self._starts.rooms(sample)
        walks = surprisal_walks(-sample.columns["log_target"], sample.lengths, self._ks[-1])[0]
        thresholds = np.array([[math.log(k) for k in self._ks]] * 2)
        for side in range(2):
            for place, k in enumerate(self._ks):
                if (rows := (half != side) & (room >= k)).any():
                    thresholds[side, place] = best_threshold(walks[rows, :k], k)
        return thresholds

    def _values(self, block: Trace, half: NDArray[np.int64]) -> Floats:
        """B6's value at each start, tokens per call, ``[N, ks]``."""
        values = np.zeros((len(block), len(self._ks)))
        surprisals, beyond = -block.columns["log_target"], np.array(self._ks) * np.exp(-self._thresholds) + 1
        if kernels.pays(len(block)):
            from spectheory.kernels.path_calls import text_terms

            text_terms(surprisals, block.lengths, half, self._thresholds, np.array(self._ks), values)
        else:
            walks, rows = surprisal_walks(surprisals, block.lengths, self._ks[-1])[0], np.repeat(half, block.lengths)
            for side in range(2):
                for place, k in enumerate(self._ks):
                    inside = rows == side
                    values[inside, place] = threshold_terms(walks[inside, :k], self._thresholds[side, place])
        return values + np.repeat(beyond[half], block.lengths, axis=0)


def call_terms(columns: Columns, k: int, chains: int = 1) -> Floats:
    r"""Terms of the bound on the accepted drafts of a call from each start, ``[N, k]`` (§7; of several chains §12).

    With one chain :math:`\min(1, \prod_{l \le i} \rho_{n+l})`. The mean over target-sampled text of the sum of a row
    is an upper bound for a call of any lossless verification of drafts drawn from q. The terms are no survival
    function, and no bound over several calls; argmax drafts may exceed it. Terms past the end of a text carry no
    meaning.

    Examples
    --------
    >>> call_terms({"log_target": np.log([0.5, 0.5]), "log_draft": np.log([0.25, 1.0])}, 2)[0]
    array([0.5, 1. ])
    """
    target, draft = (along_calls(columns, k, itemgetter(name), fill=0.0) for name in ("log_target", "log_draft"))
    return several_chain_terms(target, draft, chains)


def one_call_bound(prompts: Prompts, trace: Trace, ks: Sequence[int], *, chains: int = 1) -> dict[int, Interval]:
    """Tokens of one call with i.i.d. chains of k drafts, any lossless verification, by k: estimate of an upper bound.

    It is averaged over all starting positions that have room for k tokens, so consecutive calls may exceed it; the
    limit of a whole decoding is :mod:`spectheory.prediction.trace_limits`. Sizes are missing where texts have too
    few such starts or are no samples of the target, and beyond the drafts that are recorded by start.

    Examples
    --------
    >>> trace = Trace.from_log_probabilities([([-0.7, -0.4] * 16, [-1.6, -0.9] * 16)] * 4)
    >>> [round(one_call_bound(Prompts(trace.texts), trace, [1], chains=k)[1].best, 4) for k in (1, 2)]
    [1.5066, 1.8488]
    """
    starts = StartsByPosition(prompts, trace)
    rooms = {k: starts.with_room(k) for k in ks if k <= within(trace.columns, k)}
    known = {k: whole for k, whole in rooms.items() if whole is not None}
    if not known:
        return {}
    deepest = max(known)
    terms = call_terms(trace.columns, deepest, chains)
    # No draft beyond the end of a text that ended by itself is accepted.
    inside = np.arange(deepest) < tokens_left(trace.lengths)[:, None]
    accepted = np.cumsum(np.where(inside, terms, 0.0), axis=1)
    return {k: starts.mean(accepted[:, k - 1] + 1, whole.astype(np.float64), k) for k, whole in known.items()}
