"""Over-acceptance at one position (yin2024): a trial is a position.

Parameters are ``target`` and ``draft``, pmfs ``[V]``, ``accept``, ``[V]``, and ``recovery``, "optimal" or "target".
Counted are ``rejected``, ``[1]``, and ``output``, ``[V]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulations.counts.tally import Tally
from simulations.draws.streams import Words
from simulations.experiments.registry import simulator
from simulations.kernels.biased_verification import biased_verification


@simulator("biased", version="1")
def biased(parameters: Mapping[str, Any], trials: int, state: Words) -> Tally:
    """One draft token, accepted too often (Y5, Y6)."""
    target, draft, accept = (parameters[name] for name in ("target", "draft", "accept"))
    counts = biased_verification(target, draft, accept, trials, state=state, recovery=parameters["recovery"])
    return Tally.of(trials, counts={"rejected": [int(counts[1].sum())], "output": counts.sum(axis=0)})
