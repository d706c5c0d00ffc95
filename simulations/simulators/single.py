"""One position: one draft token (A1, A4), the draft's top k (R7), k-SEQ (R5). A trial is a position.

Parameters are ``target`` and ``draft``, pmfs ``[V]``, and ``rule``, ``max_rank`` or ``k``. Counted are ``accepted``,
``[1]``, or ``rank``, ``[max_rank + 1]`` or ``[k + 1]``, the last none; and ``output``, ``[V]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.kernels.kseq import kseq
from simulations.kernels.single_draft import Counts, single_draft, top_k_match


@simulator("single", version="1")
def single(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """One draft token (A1, A4)."""
    counts = single_draft(parameters["target"], parameters["draft"], parameters["rule"], trials, state=state)
    return Tally.of(trials, counts={"accepted": [counts[1].sum()], "output": counts.sum(axis=0)})


@simulator("top-k", version="1")
def top_k(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A sampled output among the draft's most probable tokens (R7)."""
    return _ranked(
        top_k_match(parameters["target"], parameters["draft"], parameters["max_rank"], trials, state=state), trials
    )


@simulator("k-seq", version="1")
def k_seq(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """A list of k i.i.d. candidates against a scaled target: k-SEQ (R5)."""
    return _ranked(kseq(parameters["target"], parameters["draft"], parameters["k"], trials, state=state), trials)


def _ranked(counts: Counts, trials: int) -> Tally:
    return Tally.of(trials, counts={"rank": counts.sum(axis=1), "output": counts.sum(axis=0)})
