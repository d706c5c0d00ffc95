"""Single drafts, the draft's top k, and k-SEQ, as the papers state them: A1, A4, R7 and R5."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from simulations.draws.alias import alias, drawn
from simulations.draws.streams import Stream
from simulations.reference.candidates import Judged

Floats = NDArray[np.float64]


class Verified(NamedTuple):
    """What came of one draft token.

    Attributes
    ----------
    accepted : bool
        Whether the draft is the output.
    output : int
        The draft, or what took its place.
    """

    accepted: bool
    output: int


def token_verification(p: Floats, q: Floats, stream: Stream) -> Verified:
    """Accept with probability min(1, p/q), else recover from the rest (leviathan2023, chen2023).

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> token_verification(np.array([0.0, 1.0]), np.array([1.0, 0.0]), Stream(words(1)))
    Verified(accepted=False, output=1)
    """
    draft = _sampled(q, stream)
    coin = stream.uniform()
    rest = np.maximum(p - q, 0)
    if coin < p[draft] / q[draft] or not rest.any():
        return Verified(True, draft)
    return Verified(False, _sampled(rest / rest.sum(), stream))


def match(p: Floats, q: Floats, rule: str, stream: Stream) -> Verified:
    """Compare a draft with an output that does not depend on it (A4): independent, argmax or greedy.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> match(np.array([0.4, 0.6]), np.array([0.1, 0.9]), "greedy", Stream(words(1)))
    Verified(accepted=True, output=1)
    """
    draft = _sampled(q, stream) if rule == "independent" else int(np.argmax(q))
    output = int(np.argmax(p)) if rule == "greedy" else _sampled(p, stream)
    return Verified(draft == output, output)


def top_k(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Look for a sampled output among the draft's most probable tokens.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> top_k(np.array([0.0, 1.0]), np.array([0.9, 0.1]), 2, Stream(words(1)))
    Judged(rank=2, token=1)
    """
    output = _sampled(p, stream)
    listed = sorted(range(len(q)), key=lambda x: (-q[x], x))[:candidates]
    return Judged(listed.index(output) + 1 if output in listed else None, output)


def kseq(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """k-SEQ (sun2023spectr): candidates in a row, the target scaled down by the rho that leaves it lossless.

    Examples
    --------
    >>> from simulations.draws.streams import words
    >>> kseq(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 3, Stream(words(1)))
    Judged(rank=None, token=1)
    """
    rho = _rho(p, q, candidates)
    for rank in range(1, candidates + 1):
        token = _sampled(q, stream)
        if stream.uniform() < p[token] / (rho * q[token]):
            return Judged(rank, token)
    rest = np.maximum(p - rho * q, 0)
    return Judged(None, _sampled(rest / rest.sum(), stream)) if rest.any() else Judged(candidates, token)


def _rho(p: Floats, q: Floats, candidates: int) -> float:
    """Where the candidates accept as much as they may: 1 - (1 - beta)^k = rho beta."""

    def more_than_allowed(rho: float) -> float:
        beta = np.minimum(q, p / rho).sum()
        return float(1 - (1 - beta) ** candidates - rho * beta)

    if more_than_allowed(1.0) <= 0:
        return 1.0
    return float(brentq(more_than_allowed, 1.0, candidates, xtol=1e-15))


def _sampled(pmf: Floats, stream: Stream) -> int:
    table = alias(pmf)
    return int(drawn(table.keep, table.other, stream.uniform()))
