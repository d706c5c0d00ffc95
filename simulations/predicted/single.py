"""One draft token (A1, A4), the draft's top k (R7) and k-SEQ (R5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulations.counts.quantities import Share
from simulations.predicted.races import outputs, ranks
from simulations.verdicts.predictions import Predicted, predicts
from spectheory.verification import RULES, KSeq, TopKMatch


@predicts("single")
def single(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """Acceptance, and the output: the target's sample, of greedy decoding its first choice."""
    rule, statement = parameters["rule"], "A1" if parameters["rule"] == "token" else "A4"
    acceptance = float(RULES[rule].acceptance(parameters["target"], parameters["draft"]))
    yield Predicted("acceptance rate", statement, Share("accepted"), min(acceptance, 1.0))
    if rule == "greedy":
        first = int(np.argmax(parameters["target"]))
        yield Predicted(f"P(output = {first})", statement, Share("output", first), 1.0)
    else:
        yield from outputs(parameters)


@predicts("top-k")
def top_k(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The target in the draft's order."""
    yield from ranks(TopKMatch(), "R7", parameters, first=0)


@predicts("k-seq")
def k_seq(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """The law of the accepted candidate's place, and the output's."""
    law = KSeq().rank_pmf(parameters["target"], parameters["draft"], parameters["k"])
    for r, share in enumerate(law):
        yield Predicted(f"P(R = {r + 1})", "R5", Share("rank", r), float(min(share, 1.0)))
    yield from outputs(parameters)
