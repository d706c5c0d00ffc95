"""Tokens per call at every k of a draft of first choices, from the accepted tokens of each call (§10)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectheory.intervals import Interval
from spectheory.trace.calls import CallLog, Request

Bools = NDArray[np.bool_]


def _first_choice_bounds(log: CallLog, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Fewest and most calls of each request with chains of k, ``[requests]``; None without accepted tokens per call.

    A draft of first choices proposes one token at each position of the text, and it either is the text's token or not.
    A call says which: accepted tokens are, the first one refused is not, and the token after k accepted ones was not
    drafted. With n tokens present, a call of k drafts ends after the first position beyond n that is no match, or after
    n + k + 1. That end grows with n and with every match, so calls for the text fall with each further match: taking
    every undrafted token as no match and as a match bounds the calls at every other k, and gives the counted ones at
    the log's own.

    Certain for drafts that depend on the text alone and propose first choices (argmax drafts at any temperature, every
    rule at temperature 0); an estimate of unknown error for sampled drafts and for heads that read hidden states.
    """
    drafted = log.k is not None or all(each.drafted for each in log.requests)
    if not (log.requests and drafted and all(each.accepted for each in log.requests)):
        return None
    pairs = [_matches(each, log.k) for each in log.requests]
    fewest, most = ([_calls_of(row[side], k) for row in pairs] for side in (1, 0))
    return np.array(fewest), np.array(most)


def _matches(request: Request, k: int | None) -> tuple[Bools, Bools]:
    """Whether each token of the request's calls matches the draft, at least and at most.

    A last call that accepted tokens may end with the text, without a token of its own: fewest calls leave it out.
    """
    least: list[bool] = []
    most: list[bool] = []
    for accepted, drafted in zip(request.accepted, request.drafted or [k or 0] * len(request.accepted), strict=True):
        least += [True] * accepted + [False]
        most += [True] * accepted + [accepted >= drafted]
    whole = len(most) - (request.accepted[-1] > 0)
    return np.array(least), np.array(most[:whole])


def _calls_of(match: Bools | Sequence[bool], k: int) -> int:
    """Calls of k drafts over a text whose tokens match or not; the first call starts before the first token.

    Examples
    --------
    >>> _calls_of([True, True, False, True], 1), _calls_of([True, True, False, True], 3)
    (3, 2)
    """
    ends = [*np.flatnonzero(~np.asarray(match, dtype=bool)).tolist()]
    position, calls, at = 0, 0, 0
    while position < len(match):
        while at < len(ends) and ends[at] < position:
            at += 1
        stop = ends[at] if at < len(ends) else len(match)
        position = min(position + k, stop) + 1
        calls += 1
    return calls


def first_choices(log: CallLog | None, k: int) -> Interval | None:
    """Ends of tokens per call for first choices: the tokens of all calls over their number.

    They are certain of such a draft that reads the text alone; a log does not say whether its draft is one.
    """
    calls = _first_choice_bounds(log, k) if log else None
    if log is None or calls is None:
        return None
    tokens = sum(sum(each.accepted) + len(each.accepted) for each in log.requests)
    low, high = tokens / float(calls[1].sum()), tokens / float(calls[0].sum())
    return Interval(low, (low + high) / 2, high, "estimate")
