"""Over-acceptance at one position: how often it rejects (Y6), and the law of its output (Y5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts.quantities import Share
from simulations.verdicts.predictions import Predicted, predicts
from spectheory import total_variation
from spectheory.limits import biased_loss, optimal_recovery, rejection_probability, uno_loss


@predicts("biased")
def biased(parameters: dict[str, Any]) -> Iterator[Predicted]:
    """P(reject), whatever the recovery law; the output's law, and its bias TV(output, p)."""
    p, q, b = (np.asarray(parameters[name], dtype=np.float64) for name in ("target", "draft", "accept"))
    rejected = float(total_variation(p, q)) - float(biased_loss(p, q, b))
    yield Predicted("P(reject) = TV - Loss*", "Y6", Share("rejected"), min(max(rejected, 0.0), 1.0))
    law, optimal = output_law(p, q, b, parameters["recovery"]), parameters["recovery"] == "optimal"
    more = tuple(int(x) for x in np.flatnonzero(law > p))
    loss = float(biased_loss(p, q, b) if optimal else uno_loss(p, q, b))
    if more:
        says, above = "the bias Loss*" if optimal else "UNO's bias", float(p[list(more)].sum())
        yield Predicted(f"P(output too often) - p = {says}", "Y5", Share("output", more), min(above + loss, 1.0))
    for x, share in enumerate(law):
        yield Predicted(f"P(output = {x})", "Y5", Share("output", x), float(min(share, 1.0)))


def output_law(target: Any, draft: Any, accept: Any, recovery: str) -> NDArray[np.float64]:
    """The output's law, b q + c r: what is accepted, and c = P(reject) times the recovery law r."""
    p, q, b = (np.asarray(each, dtype=np.float64) for each in (target, draft, accept))
    law = optimal_recovery(p, q, b) if recovery == "optimal" else p
    return np.asarray(b * q + float(rejection_probability(p, q, b)) * law)
