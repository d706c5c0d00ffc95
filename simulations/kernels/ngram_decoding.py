"""Token verification over an automaton of contexts, as n-gram models have them, one draw per token.

Calls depend on where texts go and what is accepted, not on the tokens' names: the tables of a Markov chain
(:mod:`simulations.kernels.markov_decoding`), whose outcomes are told the state that follows in place of the token,
serve its loop. A Markov chain is the automaton in which token y leads to state y.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from simulations.draws.acceptance import Rows, acceptance_law, acceptance_rows
from simulations.draws.alias import Alias, alias
from simulations.draws.streams import Words
from simulations.kernels.markov_decoding import LANES, calls_of_rows, lane_streams
from simulations.models.chains import CallCounts, checked_stream
from simulations.models.positions import paired_rows, whole_number
from spectheory.distributions import validate_pmf
from spectheory.errors import ShapeError


class Tables(NamedTuple):
    """Tables of every state, whose outcomes are twice the next state, plus one if accepted; and of the first state."""

    rows: Rows
    start: Alias


def ngram_calls(
    target: Any, draft: Any, following: Any, initial: Any, *, length: int, k: int, texts: int, state: Words
) -> CallCounts:
    """Calls of token verification, over whole texts.

    Calls, lanes and draws are those of :func:`~simulations.kernels.markov_decoding.token_calls`: per text its first
    state, then one uniform per token.

    - ``following``, ``[S, V]``: the state after each state and token.

    Returns CallCounts: calls by accepted drafts, texts by calls.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> same, stay = np.full((2, 3), 1 / 3), [[0, 0, 0], [1, 1, 1]]
    >>> ngram_calls(same, same, stay, [1, 0], length=7, k=2, texts=100, state=words(1)).accepted
    array([100,   0, 200])
    """
    tables = ngram_tables(target, draft, following, initial)
    return tabled_calls(tables, length=length, k=k, texts=texts, state=state)


def tabled_calls(tables: Tables, *, length: int, k: int, texts: int, state: Words) -> CallCounts:
    """The same with tables made beforehand (:func:`ngram_tables`), for many runs over one pair."""
    drafts, size, runs = (whole_number(*each) for each in (("k", k), ("length", length), ("texts", texts)))
    lanes = lane_streams(checked_stream(state), min(LANES, runs))
    return calls_of_rows(*tables, lanes, length=size, k=drafts, texts=runs)


def ngram_tables(target: Any, draft: Any, following: Any, initial: Any) -> Tables:
    """Check an automaton and make its tables; parameters and errors as in :func:`ngram_calls`.

    A law is off by less than max(S, V)^2/2^59 (or 2^-53 if that is larger), and so is the chance of a draw that a table
    in floats would decide otherwise.
    """
    p, q = paired_rows(target, draft)
    start = np.ascontiguousarray(validate_pmf(np.asarray(initial, dtype=np.float64), "initial"))
    after = np.asarray(following)
    if start.shape != p.shape[:1]:
        raise ShapeError(
            f"initial has shape {start.shape}", limit=f"the automaton has {len(p)} states", remedy="give one pmf [S]"
        )
    if after.shape != p.shape or after.dtype.kind not in "iu" or after.min() < 0 or after.max() >= len(p):
        raise ShapeError(
            f"following is a {after.dtype} array of shape {after.shape}",
            limit=f"must be {p.shape} of states 0 to {len(p) - 1}",
            remedy="give the state after each state and token",
        )
    return Tables(_relabelled(acceptance_rows(acceptance_law(p, q)), after.astype(np.int64)), alias(start))


def _relabelled(rows: Rows, following: Any) -> Rows:
    """The tables with the state that follows in every token's place; outcomes may need more bits, and get them."""
    state = np.repeat(np.arange(len(following)), np.diff(rows.begin))
    outcomes = (1 << rows.bits) - 1
    bits = max(rows.bits, (2 * len(following) - 1).bit_length())
    dropped = max(0, 2 * bits - 63 - int(np.log2(rows.unit)))
    columns = rows.columns >> 2 * rows.bits >> dropped
    for outcome in (rows.columns >> rows.bits & outcomes, rows.columns & outcomes):
        columns = columns << bits | 2 * following[state, outcome >> 1] + (outcome & 1)
    return Rows(columns, rows.begin, bits, rows.unit * 2.0**dropped)
