"""Calls by where they start, and lost calls by class of token and by id (§13)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.intervals import Interval
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.where_classes import classes_by_frequency, classes_by_string
from spectheory.prediction.where_text import COSTLIEST, named
from spectheory.trace import Trace
from spectheory.trace.strings import TokenStrings

Floats = NDArray[np.float64]
BINS = 8
"""Bins of positions at most."""


@dataclass(frozen=True)
class Group:
    """Some tokens of the texts, and the calls that start, or are lost, at them.

    `calls` are expected; `share` is their share of all such calls. `rate` is tokens per call for calls that start
    there with room for all their drafts (for all calls, where none has); of classes of tokens it is lost calls per
    token.
    """

    name: str
    tokens: int
    calls: float
    share: Interval
    rate: Interval


def positions(trace: Trace) -> NDArray[np.int64]:
    """The place of each token in its text, from 0."""
    lengths = trace.lengths
    return np.arange(len(trace)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def contexts(trace: Trace) -> NDArray[np.int64] | None:
    """Tokens before each token, the prompt's included; None where a prompt's length is not known."""
    known = [text.prompt_tokens for text in trace.texts]
    prompts = [tokens for tokens in known if tokens is not None]
    return positions(trace) + np.repeat(prompts, trace.lengths) if len(prompts) == len(known) else None


def started(prompts: Prompts, starts: CallStarts, places: NDArray[np.int64] | None) -> Iterator[Group]:
    """Bins of equal width, a power of two, with the calls that start in each."""
    if places is None:
        return
    width = 1
    while (int(places.max()) - int(places.min())) // width >= BINS:
        width *= 2
    bins = places // width
    for number in np.unique(bins).tolist():
        inside = bins == number
        calls, whole = prompts.sum_rows(starts.visits * inside), starts.counted * inside
        if calls[0] > 0:
            share = ratio(calls, prompts.sum_rows(starts.visits), limits=(0.0, 1.0))
            among = whole if whole.any() else starts.visits * inside
            limits = (1.0, starts.survival.shape[1] + 1.0)
            rate = ratio(prompts.sum_rows(among * starts.tokens), prompts.sum_rows(among), limits=limits)
            name = f"{number * width}-{(number + 1) * width - 1}" if width > 1 else str(number)
            yield Group(name, int(inside.sum()), float(calls[0]), share, rate)


def lost_by_class(prompts: Prompts, lost: Floats, trace: Trace, strings: TokenStrings | None) -> Iterator[Group]:
    """The calls lost at the tokens of each class."""
    if "token" not in trace.columns:
        return
    tokens = np.asarray(trace.columns["token"], dtype=np.int64)
    firsts = np.cumsum(trace.lengths) - trace.lengths
    of_token, names = classes_by_string(tokens, firsts, strings) if strings else classes_by_frequency(tokens)
    for number, name in enumerate(names):
        yield _lost(prompts, lost, of_token == number, name)


def lost_by_id(prompts: Prompts, lost: Floats, trace: Trace, strings: TokenStrings | None) -> Iterator[Group]:
    """The ids at which most calls are lost."""
    if "token" not in trace.columns:
        return
    tokens = np.asarray(trace.columns["token"], dtype=np.int64)
    ids, which = np.unique(tokens, return_inverse=True)
    sums = np.bincount(which, lost, len(ids))
    for place in np.argsort(-sums, kind="stable")[:COSTLIEST].tolist():
        if sums[place] > 0:
            yield _lost(prompts, lost, which == place, named(int(ids[place]), strings))


def _lost(prompts: Prompts, lost: Floats, inside: NDArray[np.bool_], name: str) -> Group:
    calls, every = prompts.sum_rows(lost * inside), prompts.sum_rows(lost)
    share = ratio(calls, every, limits=(0.0, 1.0)) if every[0] > 0 else Interval.estimate(0.0)
    rate = ratio(calls, prompts.sum_rows(inside), limits=(0.0, 1.0))
    return Group(name, int(inside.sum()), float(calls[0]), share, rate)
