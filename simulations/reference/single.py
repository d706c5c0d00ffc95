"""One position judged by itself, one candidate or the draft's most probable tokens: A1, A4 and R7.

All take target pmf, draft pmf, number of candidates and stream.
"""

from __future__ import annotations

import numpy as np

from simulations.draws.alias import Floats
from simulations.draws.streams import Stream
from simulations.reference.candidates import Judged, iid_rejection
from simulations.reference.drawing import from_table


def token(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """Token verification (leviathan2023, chen2023): recursive rejection of at most one candidate."""
    return iid_rejection(p, q, min(candidates, 1), stream)


def independent(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """A sampled draft against a sampled output, drawn independently."""
    drafted = from_table(q, stream)
    return _matched(drafted, from_table(p, stream))


def argmax(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The draft's most probable token against a sampled output; ties: the lowest index."""
    return _matched(int(np.argmax(q)), from_table(p, stream))


def greedy(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """The draft's most probable token against the target's, which is the output; nothing is drawn."""
    return _matched(int(np.argmax(q)), int(np.argmax(p)))


def _matched(drafted: int, output: int) -> Judged:
    return Judged(1 if drafted == output else None, output)


def topk(p: Floats, q: Floats, candidates: int, stream: Stream) -> Judged:
    """A sampled output's place among the draft's tokens by falling probability; ties: the lowest index first."""
    output = from_table(p, stream)
    return Judged(1 + np.argsort(-q, kind="stable").tolist().index(output), output)
