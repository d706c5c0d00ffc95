r"""How many tokens the calls of a text draft where the draft decides (§11): estimates with certain bounds.

With v(n) the expected calls from n, L(n) the length drafted along the text and :math:`w_{n,i} = \prod_{l \le i}
\rho_{n,l}`, two estimates of the calls that draft j tokens or more have the right mean over texts of the target:

.. math:: \sum_n v(n)\, w_{n,j-1} \, 1[L(n) \ge j] \qquad\text{and}\qquad
    \sum_n v(n)\, 1[j \le r(n)] \bigl(1 - w_{n,L(n)}\, 1[L(n) < j]\bigr)

r(n) is the *room* of a call, as in our decoders and other engines: the least of k and one less than the tokens that the
text could still get. Drafts end with an end-of-text token. The first adds up calls that draft on, the second takes away
those that stop, each with the weight of the drafts that decide: those before the L-th where any token stops there, as
where the draft's largest probability is below the threshold. Where the draft can leave what the target can output, the
first misses the calls that do, and the second counts them as never stopped: they then are a lower and an upper
estimate. Certain for each text are the calls whose accepted drafts say it: :math:`P(\tau \ge j - 1)` of the starts with
:math:`L \ge j` draft j tokens, and :math:`P(\tau = L)` of those with L < j do not, :math:`P(\tau \ge L - 1)` where any
L-th token stops; none drafts more than its room.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import TraceError
from spectheory.prediction.call_system import TextCalls, tokens_left
from spectheory.prediction.paths import visits_of
from spectheory.trace import Trace
from spectheory.verification import Columns, PathRule, PositionRule
from spectheory.verification.by_start import along_calls, log_ratio

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class DraftedLengths:
    """Calls of each text by the tokens that they draft, given the text.

    `calls` and `full` ``[texts]`` are exact: expected calls, and those after which the draft's next pass is on two
    tokens. The others ``[texts, k]`` are expected calls that draft 1, ..., k tokens or more: `going` and `stopping` the
    two estimates of the module, `low` and `high` certain bounds.
    """

    calls: Floats
    full: Floats
    going: Floats
    stopping: Floats
    low: Floats
    high: Floats

    def __add__(self, other: Self) -> Self:
        """Of two groups of texts: each is 0 at the texts of the other."""
        return type(self)(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def of_texts(self, inside: NDArray[np.bool_]) -> Self:
        """The same with 0 for all other texts."""
        held = (getattr(self, field.name) for field in fields(self))
        return type(self)(*(np.where(inside if of.ndim == 1 else inside[:, None], of, 0.0) for of in held))

    def text_calls(self, prefill_emits_token: bool) -> TextCalls:
        """The calls without their lengths; the prompt's own pass counts as one."""
        return TextCalls(self.calls + float(prefill_emits_token), self.full, np.full_like(self.calls, np.nan))


def draft_inside_target(rule: PathRule, trace: Trace) -> bool:
    """Whether the target is known to output all that the draft drafts: no filter, no temperature 0."""
    sampling = trace.sampling
    if sampling is None or sampling.temperature == 0 or rule.output != "sample":
        return False
    return sampling.top_k is None and sampling.top_p in (None, 1.0) and not sampling.min_p


def log_weights(rule: PathRule, columns: Columns) -> Floats:
    """Log of the probability that the text's token is drafted over that of its output, ``[N]``.

    Of drawn drafts that is log q - log p; a first choice is drafted for certain.
    """
    if rule.drafts != "chosen":
        return log_ratio(columns)
    assert isinstance(rule, PositionRule)
    with np.errstate(divide="ignore"):
        chosen = np.log(rule.accepted_at(columns))
    return chosen if rule.output == "first choice" else np.asarray(chosen - columns["log_target"])


class Drafted:
    """What all stopping rules of one trace, verification rule and most drafts k share: survival and weights.

    Raises :class:`~spectheory.errors.TraceError` where a likelihood ratio is infinite or undefined.
    """

    def __init__(self, trace: Trace, rule: PathRule, k: int, *, prefill_emits_token: bool = False) -> None:
        self.lengths, self.k, self.prefill = trace.lengths, k, prefill_emits_token
        self.left = tokens_left(trace.lengths)
        self.rows = np.arange(len(self.left))
        spare = np.minimum(trace.most_tokens - trace.lengths, k)
        self.room = np.minimum(self.left - 1 + np.repeat(spare, trace.lengths), k)
        self.survival = rule.path_survival(trace.columns, k)
        self.offsets = np.cumsum(self.lengths) - self.lengths
        self.of_text = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.weights = self._weights(trace, rule)

    def _weights(self, trace: Trace, rule: PathRule) -> Floats:
        """Products of the first 0, ..., k - 1 ratios from each start, ``[N, k]``."""
        weights = np.ones((len(self.left), self.k))
        if self.k > 1:
            logs = along_calls(trace.columns, self.k - 1, lambda at: log_weights(rule, at), fill=0.0)
            logs = np.where(np.arange(self.k - 1) < self.left[:, None], logs, 0.0)
            with np.errstate(over="ignore", invalid="ignore"):
                weights[:, 1:] = np.exp(np.cumsum(logs, axis=1))
        if not np.isfinite(weights).all():
            row, depth = np.argwhere(~np.isfinite(weights))[0].tolist()
            text, position = trace.locate(row)
            raise TraceError(
                f"the likelihood ratio of {depth} drafts from token {position + 1} of text {text.id!r} is "
                f"{weights[row, depth]:g}",
                limit="drafted tokens are estimated with finite ratios q/p",
                remedy="measure the pair with the settings that made the text",
            )
        return weights

    def lengths_of_calls(
        self, along: Integers, *, keeps: bool, sure: NDArray[np.bool_] | None = None
    ) -> DraftedLengths:
        """The calls of texts along which calls from each start draft `along` ``[N]`` tokens, if there is room; where it
        is `sure` the last of them ends the draft whatever it is.
        """
        k, most = self.k, np.minimum(self.room, self.left)
        looked = np.minimum(along if sure is None else along - sure, most)
        along = np.minimum(along, most)
        stopped = self.survival * (np.arange(k) < along[:, None])
        visits = visits_of(stopped, self.lengths, prefill_emits_token=self.prefill)
        whole = np.where(along > 0, self.survival[self.rows, np.maximum(along, 1) - 1], 1.0) * visits
        calls = self._by_text(visits)
        unread = ((along == k) | keeps) & (along > 0) & (self.left > along + 1)
        drafts_on = np.arange(k) < along[:, None]
        accepted = np.concatenate([np.ones((len(along), 1)), self.survival[:, :-1]], axis=1)
        decided = self.weights[self.rows, np.minimum(looked, k - 1)] * visits
        ends = np.where(looked > 0, self.survival[self.rows, np.maximum(looked, 1) - 1], 1.0) * visits
        return DraftedLengths(
            calls=calls,
            full=self._by_text(np.where(unread, whole, 0.0)),
            going=self._by_text(visits[:, None] * self.weights * drafts_on),
            stopping=calls[:, None] - self._shorter(decided, along) - self._shorter(visits - decided, self.room),
            low=self._by_text(visits[:, None] * accepted * drafts_on),
            high=calls[:, None] - self._shorter(ends, along) - self._shorter(visits - ends, self.room),
        )

    def _by_text(self, values: Floats) -> Floats:
        """Sums over each text."""
        return np.asarray(np.add.reduceat(values, self.offsets, axis=0))

    def _shorter(self, values: Floats, along: Integers) -> Floats:
        """Sums over the starts of each text with `along` below 1, ..., k, ``[texts, k]``."""
        places = self.of_text * (self.k + 1) + along
        counted = np.bincount(places, values, len(self.lengths) * (self.k + 1)).reshape(-1, self.k + 1)
        return np.asarray(np.cumsum(counted, axis=1)[:, :-1])
