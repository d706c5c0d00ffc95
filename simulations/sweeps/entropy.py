"""The entropy of the rank against KL(P||Q): candidates i.i.d. from the draft, and distinct ones (H, R1, R2, R3)."""

from __future__ import annotations

import math

import numpy as np

from simulations.counts import Estimate, Mean, Tally
from simulations.draws import Floats
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve
from spectheory import kl_divergence
from spectheory.plots.style import GREY, LOOKS, Figure, Look, caption, name_ends
from spectheory.verification import (
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    entropy_at_least_kl,
    rank_entropy,
    rank_entropy_bound,
)

TITLE = "The entropy of the rank against KL: i.i.d. candidates stay above, distinct ones do not"
STATEMENTS = ("H", "H/distinct", "R1", "R2", "R3")
SIZE = (8.4, 5.0)

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
    iid, made = scale.pick(20_000, 200_000), []
    for rule, number in (("poisson", iid), ("recursive", iid), ("race", scale.pick(50_000, 500_000))):
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
    mean, shortfall = Mean("entropy").estimate(tally), Mean("unseen").moments(tally).mean
    return Estimate(mean.low, mean.best, mean.high + shortfall, mean.confidence)


RULES = {
    "poisson": "R1 Poisson race, i.i.d.",
    "recursive": "R3 recursive rejection, i.i.d.",
    "race": "R2 race, distinct tokens",
}
"""What a line is called."""


def draw(figure: Figure, data: Data) -> None:
    """H(R) up, KL to the right, both in nats; what i.i.d. candidates cannot reach is shaded."""
    ax, (x, upper) = figure.add_subplot(), zip(*data["upper"], strict=True)
    ends = [
        curve(ax, x, upper, Look(GREY, ""), "upper bound of R1 (li2018)", style="--"),
        curve(ax, x, x, Look(GREY, ""), "KL, lower bound of i.i.d."),
    ]
    ax.fill_between(x, 0, x, color=GREY, alpha=0.10, linewidth=0)
    for rule, name in RULES.items():
        seen = data["dots"][rule]
        across, up = zip(*data["lines"][rule], strict=True)
        ends.append(curve(ax, across, up, LOOKS[rule], name, seen=seen, at=[dot["kl"] for dot in seen], size=5))
    ax.text(0.97 * x[-1], 0.12, "out of reach of i.i.d. candidates", color=GREY, fontsize=8.5, ha="right")
    ax.set(
        title="Entropy of the rank: i.i.d. candidates stay above KL, distinct ones do not",
        xlabel="divergence of the draft, KL(P‖Q), nats",
        ylabel="entropy of the rank, H(R), nats",
        xlim=(-0.06, 1.015 * x[-1]),
        ylim=(-0.1, 1.02 * upper[-1]),
    )
    name_ends(ax, ends)
    caption(
        figure,
        f"Pairs of {data['tokens']} tokens: the draft turns from the target to its mirror image.  "
        "Coloured lines: exact; markers: simulated, 95% intervals.",
    )
