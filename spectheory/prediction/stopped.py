r"""Calls whose length the draft decides (§11), along a text.

A stopping rule reads what was drafted and the draft's pmfs. So given the text a call with i accepted drafts was not
stopped before the i-th along the text, and

.. math:: P(\tau \ge i \mid x, n)
    = \prod_{j \le i} a_{n,j} \cdot 1[\text{drafts } 1..i \text{ of } x \text{ are drafted}]

with the rule's own survival in place of the product (exact). Where drafts differ from the text, the text does not show
how many more were drafted. Likelihood ratios say it on average: with v(n) the expected calls that start at n,

.. math:: E[\text{calls that draft } j \text{ tokens or more}]
    = E_x \sum_n v(n) \prod_{l<j} \rho_{n,l} \cdot 1[\text{draft } j \text{ of } x \text{ is drafted}]

without bias, since v(n) depends on the text before n alone.

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

from spectheory.distributions import Floats, Sampling
from spectheory.drafting import StoppingRule
from spectheory.drafting.stopping import TopBelow
from spectheory.errors import SettingError, TraceError
from spectheory.prediction.paths import TextCalls, tokens_left, visits_of
from spectheory.trace import Trace
from spectheory.verification import Columns, PathRule, PositionRule
from spectheory.verification.by_start import along_calls, log_ratio, missing

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
        arrays = (getattr(self, field.name) for field in fields(self))
        return type(self)(*(np.where(inside if of.ndim == 1 else inside[:, None], of, 0.0) for of in arrays))

    def text_calls(self, prefill_emits_token: bool) -> TextCalls:
        """The calls without their lengths; the prompt's own pass counts as one."""
        return TextCalls(self.calls + float(prefill_emits_token), self.full, np.full_like(self.calls, np.nan))


def _log_weights(rule: PathRule, columns: Columns) -> Floats:
    """Log of the probability that the text's token is drafted over that of its output, ``[N]``.

    Of drawn drafts that is log q - log p; a first choice is drafted for certain.
    """
    if rule.drafts != "chosen":
        return log_ratio(columns)
    assert isinstance(rule, PositionRule)
    with np.errstate(divide="ignore"):
        chosen = np.log(rule.accepted_at(columns))
    return chosen if rule.output == "first choice" else np.asarray(chosen - columns["log_target"])


def rooms(trace: Trace, k: int) -> Integers:
    """The most tokens that a call from each position drafts, ``[N]``: k, and one less than its text could still get."""
    spare = np.minimum(trace.most_tokens - trace.lengths, k)
    return np.minimum(tokens_left(trace.lengths) - 1 + np.repeat(spare, trace.lengths), k)


def weights_along(trace: Trace, rule: PathRule, k: int) -> Floats:
    """Products of the first 0, ..., k - 1 ratios q/p from each start, 1 past the end of a text, ``[N, k]``.

    Raises :class:`~spectheory.errors.TraceError` where one is infinite or undefined.
    """
    left = tokens_left(trace.lengths)
    weights = np.ones((len(left), k))
    if k > 1:
        logs = along_calls(trace.columns, k - 1, lambda at: _log_weights(rule, at), fill=0.0)
        logs = np.where(np.arange(k - 1) < left[:, None], logs, 0.0)
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


class Drafted:
    """What all stopping rules of one trace, verification rule and most drafts k share: survival and weights.

    Raises :class:`~spectheory.errors.TraceError` where a likelihood ratio is infinite or undefined.
    """

    def __init__(self, trace: Trace, rule: PathRule, k: int, *, prefill_emits_token: bool = False) -> None:
        self.lengths, self.k, self.prefill = trace.lengths, k, prefill_emits_token
        self.left = tokens_left(trace.lengths)
        self.rows = np.arange(len(self.left))
        self.room = rooms(trace, k)
        self.survival = rule.path_survival(trace.columns, k)
        self.offsets = np.cumsum(self.lengths) - self.lengths
        self.of_text = np.repeat(np.arange(len(self.lengths)), self.lengths)
        self.weights = weights_along(trace, rule, k)

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


def drafted_along(columns: Columns, stop: StoppingRule, k: int) -> NDArray[np.bool_]:
    """Whether a call from each start drafts its i-th token, if the drafts before it equal the text, ``[N, k]``.

    Examples
    --------
    >>> from spectheory.drafting import read_stop
    >>> columns = {"log_draft": np.log([0.9, 0.1, 0.9])}
    >>> drafted_along(columns, read_stop("token<0.4"), 3).tolist()[0]
    [True, True, False]
    """
    stops = along_calls(columns, k, lambda at: stop.stops(at).astype(np.float64), fill=0.0) > 0
    going = np.logical_and.accumulate(~stops, axis=1)
    if not stop.keeps:
        return np.asarray(going)
    return np.concatenate([np.ones((len(going), 1), bool), going[:, :-1]], axis=1)


def _surely_stopped(columns: Columns, stop: StoppingRule, k: int, along: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether any token at the last draft of a call from each start would stop it, ``[N]``; `along` are the drafts.

    A rule that keeps the token that stops it reads that token's probability, which the largest one bounds.

    Examples
    --------
    >>> from spectheory.drafting import read_stop
    >>> columns = {"log_draft": np.log([0.9, 0.1, 0.3]), "draft_top": np.array([0.9, 0.9, 0.3])}
    >>> _surely_stopped(columns, read_stop("token<0.4"), 2, np.array([2, 1, 1])).tolist()
    [False, False, True]
    """
    if not stop.keeps or missing(columns, [TopBelow.reads]):
        return np.zeros(len(along), bool)
    below = along_calls(columns, k, lambda at: (at[TopBelow.reads] < stop.threshold).astype(np.float64), fill=0.0) > 0
    return np.asarray((along > 0) & below[np.arange(len(along)), np.maximum(along, 1) - 1])


def lengths_of_calls(shared: Drafted, stop: StoppingRule, columns: Columns) -> tuple[NDArray[np.int64], DraftedLengths]:
    """The tokens that a call from each start drafts along the text, ``[N]``, and the calls of each text by them."""
    along = drafted_along(columns, stop, shared.k).sum(axis=1)
    sure = _surely_stopped(columns, stop, shared.k, along)
    return along, shared.lengths_of_calls(along, keeps=stop.keeps, sure=sure)


def check_stops(rule: PathRule, stop: StoppingRule, columns: Columns, sampling: Sampling | None = None) -> None:
    """Refuse drafts that no model makes, and columns that the stopping rule reads and that are not there.

    At temperature 0 that is ``draft_top`` for every rule: the other columns know q alone, which is one token there.
    """
    if not rule.can_stop:
        raise SettingError(
            f"{rule.label} is asked for with {stop}",
            limit="a stopping rule reads the pmfs of a draft that a model makes",
            remedy="use a rule whose drafts a model makes, as token or block",
        )
    greedy = sampling is not None and sampling.temperature == 0
    if greedy:
        stop.check_temperature(0)
    if lacks := missing(columns, [stop.reads, *([TopBelow.reads] if greedy else [])]):
        where = " at temperature 0" if greedy else ""
        other = "" if greedy else ", or stop by token, which needs log-probabilities alone"
        raise TraceError(
            f"{stop} cannot be predicted{where}: the trace has no {lacks[0]}",
            limit=f"a threshold of {stop.name} is compared with it{where}",
            remedy=f"measure again, with a draft that gives it{other}",
        )


def stopped_survival(rule: PathRule, stop: StoppingRule, k: int, columns: Columns) -> Floats:
    r"""P(tau >= i) of a call of at most k drafts that starts at each position, ``[N, k]`` (§11, exact).

    .. math:: P(\tau \ge i \mid x) = P_{rule}(\tau \ge i \mid x)\, 1[\text{drafts } 1..i \text{ are drafted along } x]
    """
    check_stops(rule, stop, columns)
    return rule.path_survival(columns, k) * drafted_along(columns, stop, k)
