"""Rejections against bias at one position: the straight front, OPT on it, UNO above it (Y5, Y6; yin2024)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simulations.counts.estimates import Estimate
from simulations.counts.quantities import Share
from simulations.counts.tally import Tally
from simulations.predicted.biased import output_law
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from spectheory import total_variation
from spectheory.intervals import CONFIDENCE
from spectheory.limits import bias_frontier, biased_loss, rejection_probability, uno_loss
from spectheory.plots.pareto import draw

TARGET = (0.36, 0.20, 0.16, 0.14, 0.09, 0.05)
DRAFT = (0.12, 0.17, 0.11, 0.18, 0.24, 0.18)
THETAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SHOWN = 0.4
"""The over-acceptance whose output law is shown token by token."""
OTHERS, OTHERS_SEED = 4, 5
RECOVERIES = {"OPT": "optimal", "UNO": "target"}


def acceptances() -> dict[str, NDArray[np.float64]]:
    """Over-acceptances b of different kinds: of one share theta for all tokens, and of a share drawn for each."""
    least = np.minimum(1.0, np.array(TARGET) / DRAFT)
    even = {f"theta = {theta}": (1 - theta) * least + theta for theta in THETAS}
    shares = np.random.default_rng(OTHERS_SEED).beta(0.4, 0.4, size=(OTHERS, least.size))
    return even | {f"uneven {i + 1}": (1 - share) * least + share for i, share in enumerate(shares)}


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Every acceptance with both recovery laws."""
    return tuple(
        ask(
            f"{rule}, {name}",
            "biased",
            {"target": TARGET, "draft": DRAFT, "accept": b, "recovery": recovery},
            scale,
            trials=scale.pick(1_000_000, 20_000_000),
        )
        for rule, recovery in RECOVERIES.items()
        for name, b in acceptances().items()
    )


def observed_bias(tally: Tally, target: tuple[float, ...], confidence: float = CONFIDENCE) -> Estimate:
    r"""TV of the output frequencies to the target, with an interval that is certain for every number of trials n.

    With probability 1 - alpha the frequencies are within
    :math:`\tfrac12\sqrt{(V-1)/n} + \sqrt{\log(1/\alpha)/(2n)}` of the output's law o, in TV: the first term bounds the
    mean (Cauchy-Schwarz), the second the excess (bounded differences, 1/n a trial). By the triangle inequality TV(o, p)
    is as close to the observed one.
    """
    frequencies = tally.counts["output"] / tally.trials
    best = float(total_variation(frequencies, np.array(target)))
    spread = 0.5 * math.sqrt((len(target) - 1) / tally.trials)
    reach = spread + math.sqrt(-math.log1p(-confidence) / (2 * tally.trials))
    return Estimate(max(0.0, best - reach), best, min(1.0, best + reach), confidence)


def data(scale: Scale, tallies: Tallies) -> Data:
    """Observed rejections and biases, the front, UNO's curve, and one output law.

    One curve serves every acceptance: where q > p, b q is at least p, so UNO's loss too depends on P(reject) alone.
    """
    front = bias_frontier(TARGET, DRAFT, points=101)
    return {
        "trials": scale.pick(1_000_000, 20_000_000),
        "distance": float(total_variation(TARGET, DRAFT)),
        "uno_line": {"reject": front.reject.tolist(), "bias": np.asarray(front.uno).tolist()},
        "rules": {rule: [_point(tallies, rule, name, b) for name, b in acceptances().items()] for rule in RECOVERIES},
        "law": {
            "theta": SHOWN,
            "target": TARGET,
            "draft": DRAFT,
            "rules": {rule: _law(tallies, rule) for rule in RECOVERIES},
        },
    }


def _point(tallies: Tallies, rule: str, name: str, b: NDArray[np.float64]) -> Data:
    tally, loss = tallies[f"{rule}, {name}"], biased_loss if rule == "OPT" else uno_loss
    return {
        "name": name,
        "reject": vars(Share("rejected").estimate(tally)),
        "bias": vars(observed_bias(tally, TARGET)),
        "exact": [float(rejection_probability(TARGET, DRAFT, b)), float(loss(TARGET, DRAFT, b))],
    }


def _law(tallies: Tallies, rule: str) -> Data:
    name = f"theta = {SHOWN}"
    tally = tallies[f"{rule}, {name}"]
    return {
        "exact": output_law(TARGET, DRAFT, acceptances()[name], RECOVERIES[rule]).tolist(),
        "observed": [vars(Share("output", x).estimate(tally)) for x in range(len(TARGET))],
    }


SWEEP = Sweep(
    "pareto",
    "Fewer rejections for bias at one position: the straight front",
    ("Y5", "Y6"),
    asks,
    data,
    draw,
    (9.0, 4.4),
)
