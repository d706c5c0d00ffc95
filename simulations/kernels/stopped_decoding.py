"""Token verification of chains that a stopping rule ends (§11), over texts of Markov chains in step."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Floats
from simulations.models.pairs import Chains

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Stops(NamedTuple):
    """Where drafting stops: after which state and drafted token, ``[V, V]``; whether that token is kept."""

    at: Bools
    keeps: bool


def stops_of(draft: Floats, rule: str | None) -> Stops:
    """The table of a stopping rule as it is written, ``token<0.4``, ``top<0.6`` or ``entropy>2``; None never stops.

    Examples
    --------
    >>> stops_of(np.array([[0.7, 0.3]]), "token<0.4")
    Stops(at=array([[False,  True]]), keeps=True)
    """
    if rule is None:
        return Stops(np.zeros(draft.shape, dtype=bool), True)
    name, threshold = re.split("[<>]", rule)
    positive = np.where(draft > 0, draft, 1.0)
    at = {
        "token": draft < float(threshold),
        "top": draft.max(axis=1, keepdims=True) < float(threshold),
        "entropy": -(positive * np.log(positive)).sum(axis=1, keepdims=True) > float(threshold),
    }[name]
    return Stops(np.broadcast_to(at, draft.shape), name == "token")


def stopped_calls(
    chains: Chains, stops: Stops, *, length: int, k: int, texts: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Calls and drafted tokens of each text, ``[texts]``; with m tokens to go a call drafts at most m - 1."""
    target, draft = chains.target[0], chains.draft[0]
    excess = np.maximum(target - draft, 0.0)
    tables = {"p": _cdf(target), "q": _cdf(draft), "excess": _cdf(np.where(excess.any(1)[:, None], excess, target))}
    last = _drawn(np.broadcast_to(_cdf(chains.initial), (texts, len(draft))), rng)
    place, calls, drafted = (np.zeros(texts, dtype=np.int64) for _ in range(3))
    while (going := np.flatnonzero(place < length)).size:
        states, drafts = _drafts(last[going], np.minimum(k, length - 1 - place[going]), k, tables["q"], stops, rng)
        count = (drafts >= 0).sum(axis=1)
        ratios = target[states, drafts] / draft[states, drafts]
        refused = (drafts >= 0) & (rng.random(drafts.shape) >= ratios)
        accepted = np.where(refused.any(axis=1), refused.argmax(axis=1), count)
        rows = np.arange(len(going))  # the state before the last token: after all drafts, or before the refused one
        after = np.where(count > 0, drafts[rows, np.maximum(count, 1) - 1], states[:, 0])
        before = np.where(accepted < count, states[rows, np.minimum(accepted, k - 1)], after)
        law = np.where((accepted < count)[:, None], tables["excess"][before], tables["p"][before])
        last[going] = _drawn(law, rng)
        place[going] += accepted + 1
        calls[going] += 1
        drafted[going] += count
    return calls, drafted


def _drafts(state: Ints, room: Ints, k: int, cdf: Floats, stops: Stops, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """States before the drafts, and the drafts, ``[texts, k]`` each; -1 where nothing is drafted."""
    states, drafts = np.zeros((len(state), k), dtype=np.int64), np.full((len(state), k), -1)
    on = room > 0
    for i in range(k):
        token = _drawn(cdf[state], rng)
        on = on & (i < room) & (stops.keeps | ~stops.at[state, token])
        states[:, i], drafts[:, i] = state, np.where(on, token, -1)
        ended = stops.at[state, token]
        state = np.where(on, token, state)
        on = on & ~(stops.keeps & ended)
    return states, drafts


def _cdf(pmf: Floats) -> Floats:
    return np.asarray(np.cumsum(pmf, axis=-1) / pmf.sum(axis=-1, keepdims=True))


def _drawn(cdf: Floats, rng: np.random.Generator) -> Ints:
    """A token of each row, by inversion."""
    return np.asarray((cdf <= rng.random(len(cdf))[:, None]).sum(axis=1))
