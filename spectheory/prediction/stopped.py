r"""Calls whose length the draft decides (§11), along a text.

A stopping rule reads what was drafted and the draft's pmfs. So given the text a call with i accepted drafts was not
stopped before the i-th along the text, and

.. math:: P(\tau \ge i \mid x, n)
    = \prod_{j \le i} a_{n,j} \cdot 1[\text{drafts } 1..i \text{ of } x \text{ are drafted}]

with the rule's own survival in place of the product (exact). Where drafts differ from the text, the text does not show
how many more were drafted. Likelihood ratios say it on average: with v(n) the expected calls that start at n,

.. math:: E[\text{calls that draft } j \text{ tokens or more}]
    = E_x \sum_n v(n) \prod_{l<j} \rho_{n,l} \cdot 1[\text{draft } j \text{ of } x \text{ is drafted}]

without bias, since v(n) depends on the text before n alone (:mod:`spectheory.prediction.drafted_lengths`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.drafting import StoppingRule
from spectheory.drafting.stopping import TopBelow
from spectheory.errors import SettingError, TraceError
from spectheory.prediction.drafted_lengths import Drafted, DraftedLengths
from spectheory.verification import Columns, PathRule
from spectheory.verification.by_start import along_calls, lacking

Floats = NDArray[np.float64]


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


def surely_stopped(columns: Columns, stop: StoppingRule, k: int, along: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether any token at the last draft of a call from each start would stop it, ``[N]``; `along` are the drafts.

    A rule that keeps the token that stops it reads that token's probability, which the largest one bounds.

    Examples
    --------
    >>> from spectheory.drafting import read_stop
    >>> columns = {"log_draft": np.log([0.9, 0.1, 0.3]), "draft_top": np.array([0.9, 0.9, 0.3])}
    >>> surely_stopped(columns, read_stop("token<0.4"), 2, np.array([2, 1, 1])).tolist()
    [False, False, True]
    """
    if not stop.keeps or lacking(columns, [TopBelow.reads]):
        return np.zeros(len(along), bool)
    below = along_calls(columns, k, lambda at: (at[TopBelow.reads] < stop.threshold).astype(np.float64), fill=0.0) > 0
    return np.asarray((along > 0) & below[np.arange(len(along)), np.maximum(along, 1) - 1])


def lengths_of_calls(shared: Drafted, stop: StoppingRule, columns: Columns) -> tuple[NDArray[np.int64], DraftedLengths]:
    """The tokens that a call from each start drafts along the text, ``[N]``, and the calls of each text by them."""
    along = drafted_along(columns, stop, shared.k).sum(axis=1)
    sure = surely_stopped(columns, stop, shared.k, along)
    return along, shared.lengths_of_calls(along, keeps=stop.keeps, sure=sure)


def check_stops(rule: PathRule, stop: StoppingRule, columns: Columns, sampling: Sampling | None = None) -> None:
    """Refuse drafts that no model makes, and columns that the stopping rule reads and that are not there.

    At temperature 0 that is ``draft_top`` for every rule: the other columns know q alone, which is one token there.
    """
    if rule.grows or not rule.uses_draft:
        raise SettingError(
            f"{rule.label} is asked for with {stop}",
            limit="a stopping rule reads the pmfs of a draft that a model makes",
            remedy="use a rule whose drafts a model makes, as token or block",
        )
    greedy = sampling is not None and sampling.temperature == 0
    if greedy:
        stop.check_temperature(0)
    if missing := lacking(columns, [stop.reads, *([TopBelow.reads] if greedy else [])]):
        where = " at temperature 0" if greedy else ""
        other = "" if greedy else ", or stop by token, which needs log-probabilities alone"
        raise TraceError(
            f"{stop} cannot be predicted{where}: the trace has no {missing[0]}",
            limit=f"a threshold of {stop.name} is compared with it{where}",
            remedy=f"measure the pair again{other}",
        )


def stopped_survival(rule: PathRule, stop: StoppingRule, k: int, columns: Columns) -> Floats:
    r"""P(tau >= i) of a call of at most k drafts that starts at each position, ``[N, k]`` (§11, exact).

    .. math:: P(\tau \ge i \mid x) = P_{rule}(\tau \ge i \mid x)\, 1[\text{drafts } 1..i \text{ are drafted along } x]
    """
    check_stops(rule, stop, columns)
    return rule.path_survival(columns, k) * drafted_along(columns, stop, k)
