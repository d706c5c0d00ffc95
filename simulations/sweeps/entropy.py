"""The entropy of the rank against KL(P||Q): candidates i.i.d. from the draft, and distinct ones (H, R1, R2, R3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from simulations.counts.estimates import Estimate
from simulations.counts.quantities import Mean
from simulations.counts.tally import Tally
from simulations.draws.alias import Floats
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from spectheory import kl_divergence
from spectheory.plots.line_ends import LineEnd, name_ends
from spectheory.plots.style import GREY, LOOKS, Axes, Figure, caption, titled
from spectheory.verification import (
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    entropy_at_least_kl,
    rank_entropy,
    rank_entropy_bound,
)

TOKENS, DECAY = 8, 0.4
"""The target falls geometrically over so many tokens."""
DOTS = (0.0, 0.2, 0.35, 0.5, 0.625, 0.75, 0.85, 0.95)
LINE = tuple(i * 0.95 / 48 for i in range(49))
RANKS = {"poisson": 8192, "recursive": 8192, "race": TOKENS}
"""Ranks told apart; beyond those of i.i.d. candidates lies next to nothing."""
GROUPS = 16
"""Estimates of each entropy, from whose spread the interval comes."""


def pair(turn: float) -> tuple[Floats, Floats]:
    """The target, and a draft that is the target at turn 0 and its mirror image at turn 1, log-linear between."""
    p = DECAY ** np.arange(TOKENS)
    q = p ** (1 - turn) * p[::-1] ** turn
    return p / p.sum(), q / q.sum()


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Each rule at every dot."""
    draws = {
        "poisson": scale.pick(20_000, 200_000),
        "recursive": scale.pick(20_000, 200_000),
        "race": scale.pick(50_000, 500_000),
    }
    made = []
    for rule, number in draws.items():
        for turn in DOTS:
            p, q = pair(turn)
            parameters = {"rule": rule, "target": p, "draft": q, "max_rank": RANKS[rule], "draws": number}
            made.append(ask(f"{rule} at {turn}", "rank-entropy", parameters, scale, trials=GROUPS, batch=2))
    return tuple(made)


def data(scale: Scale, tallies: Tallies) -> Data:
    """H(R) of three rules along the family, its bounds of i.i.d. candidates, and the estimates; all in nats."""
    lines = {rule: [[kl(turn), entropy(rule, turn)] for turn in LINE] for rule in RANKS}
    highest = max(at for at, _ in lines["poisson"])
    return {
        "tokens": TOKENS,
        "lines": lines,
        "upper": [[x, upper_bound(x)] for x in np.linspace(0, highest, 61).tolist()],
        "dots": {
            rule: [{"kl": kl(turn), **vars(estimate(tallies[f"{rule} at {turn}"]))} for turn in DOTS] for rule in RANKS
        },
    }


def kl(turn: float) -> float:
    """KL(P||Q), nats."""
    return float(kl_divergence(*pair(turn)))


def entropy(rule: str, turn: float) -> float:
    """H(R) of the whole rank, nats; of distinct tokens there are no more ranks than tokens."""
    if rule == "race":
        return abs(float(rank_entropy(RaceVerification().rank_pmf(*pair(turn), TOKENS))))
    iid = PoissonRace() if rule == "poisson" else RecursiveRejection()
    return entropy_at_least_kl(iid, *pair(turn)).entropy.best


def upper_bound(kl: float) -> float:
    """What li2018 prints, in bits: H(R) <= E + log2(E + 1) + 1 with E log R <= KL + 1; here in nats."""
    return rank_entropy_bound(kl / math.log(2) + 1, unit="bits") * math.log(2)


def estimate(tally: Tally) -> Estimate:
    """Student's interval of the mean estimate, reaching up by what it lacks."""
    found, lacking = Mean("entropy").estimate(tally), Mean("unseen").moments(tally).mean
    return Estimate(found.low, found.best, found.high + lacking, found.confidence)


RULES = {
    "poisson": "R1 Poisson race, i.i.d.",
    "recursive": "R3 recursive rejection, i.i.d.",
    "race": "R2 race, distinct tokens",
}
"""What a line is called."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """One panel, and what its pairs are below it."""
    draw_entropy(figure.add_subplot(), data)
    caption(
        figure,
        f"Pairs of {data['tokens']} tokens: the draft turns from the target to its mirror image.  "
        "Coloured lines: exact; markers: simulated, 95% intervals.",
    )


def draw_entropy(ax: Axes, data: dict[str, Any]) -> None:
    """H(R) up, KL to the right, both in nats; what i.i.d. candidates cannot reach is shaded."""
    x, upper = zip(*data["upper"], strict=True)
    ax.plot(x, upper, "--", color=GREY)
    ax.plot(x, x, "-", color=GREY)
    ax.fill_between(x, 0, x, color=GREY, alpha=0.10, linewidth=0)
    labels: list[LineEnd] = [
        (x[-1], upper[-1], "upper bound of R1 (li2018)", GREY),
        (x[-1], x[-1], "KL, lower bound of i.i.d.", GREY),
    ]
    for rule, name in RULES.items():
        line, seen, look = data["lines"][rule], data["dots"][rule], LOOKS[rule]
        ax.plot(*zip(*line, strict=True), color=look.colour)
        dots(ax, [dot["kl"] for dot in seen], seen, look.colour, marker=look.marker, size=5)
        labels.append((*line[-1], name, look.colour))
    ax.set_xlim(-0.06, 1.015 * x[-1])
    ax.set_ylim(-0.1, 1.02 * upper[-1])
    ax.text(0.97 * x[-1], 0.12, "out of reach of i.i.d. candidates", color=GREY, fontsize=8.5, ha="right")
    ax.set_xlabel("divergence of the draft, KL(P‖Q), nats")
    ax.set_ylabel("entropy of the rank, H(R), nats")
    titled(ax, "Entropy of the rank: i.i.d. candidates stay above KL, distinct ones do not")
    name_ends(ax, labels)


SWEEP = Sweep(
    "entropy",
    "The entropy of the rank against KL: i.i.d. candidates stay above, distinct ones do not",
    ("H", "H/distinct", "R1", "R2", "R3"),
    asks,
    data,
    draw,
    (8.4, 5.0),
)
