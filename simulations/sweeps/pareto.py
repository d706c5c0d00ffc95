"""Rejections against bias at one position: the straight front, OPT on it, UNO above it (Y5, Y6; yin2024)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from simulations.counts import Estimate, Share, Tally
from simulations.simulators.positions import output_law
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import dots
from spectheory import total_variation
from spectheory.intervals import CONFIDENCE
from spectheory.limits import bias_frontier, biased_loss, rejection_probability, uno_loss
from spectheory.plots.style import BLUE, GREEN, GREY, ORANGE, Axes, Figure, Look, caption

TITLE = "Fewer rejections for bias at one position: the straight front"
STATEMENTS = ("Y5", "Y6")
SIZE = (9.0, 4.4)

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
    trials, pair = scale.pick(1_000_000, 20_000_000), {"target": TARGET, "draft": DRAFT}
    return tuple(
        ask(f"{rule}, {name}", "biased", {**pair, "accept": b, "recovery": recovery}, scale, trials=trials)
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


_LOOKS = {"OPT": Look(BLUE, "o"), "UNO": Look(ORANGE, "D")}


def draw(figure: Figure, data: Data) -> None:
    """The front with both rules, and where the bias of one setting lies."""
    front, law = figure.subplots(1, 2, width_ratios=(1.2, 1))
    draw_front(front, data)
    draw_law(law, data["law"])
    caption(
        figure,
        f"Lines: exact; markers: {data['trials']:,} trials each, 95% intervals, mostly narrower than the markers.",
    )


def draw_front(ax: Axes, data: Data) -> None:
    """Rejections against bias of both rules, and what no rule reaches."""
    distance, line = data["distance"], data["uno_line"]
    ax.fill_between([0, distance], [distance, 0], color=GREY, alpha=0.12, linewidth=0)
    ax.plot([0, distance], [distance, 0], color=GREY, linewidth=1.2)
    ax.plot(line["reject"], line["bias"], color=ORANGE, linewidth=1)
    for rule, points in data["rules"].items():
        for even in (True, False):
            chosen = [point for point in points if point["name"].startswith("theta") == even]
            across, up = ([point[name] for point in chosen] for name in ("reject", "bias"))
            dots(ax, across, up, _LOOKS[rule], filled=even, size=4.5)
    ax.set(
        title=f"Rejection against bias at one position, TV(P, Q) = {distance:g}",
        xlabel="probability of a rejection",
        ylabel="bias: TV between output and target",
        xlim=(-0.02 * distance, 1.12 * distance),
        ylim=(-0.02 * distance, 1.08 * distance),
        aspect="equal",
    )
    for x, y, text, colour in (
        (0.06, 0.36, "rejection + bias < TV:\nno rule for one draft (Y6)", GREY),
        (0.06, 0.14, "OPT, recovery from (P - Q)$_+$:\non the exact front", BLUE),
        (0.55, 0.86, "UNO, recovery from P:\non its own exact curve", ORANGE),
        (0.55, 0.75, "filled: one share of over-\nacceptance; open: one per token", GREY),
    ):
        ax.annotate(text, (x * distance, y * distance), fontsize=8, color=colour, va="center")


def draw_law(ax: Axes, law: Data) -> None:
    """The output law of both rules beside target and draft."""
    tokens = range(len(law["target"]))
    ax.bar(tokens, law["target"], width=0.8, color=GREY, alpha=0.2)
    ax.hlines(law["draft"], [x - 0.4 for x in tokens], [x + 0.4 for x in tokens], color=GREEN, linewidth=1.5)
    for shift, (rule, laws) in zip((-0.18, 0.18), law["rules"].items(), strict=True):
        look, places = _LOOKS[rule], np.array(tokens) + shift
        ax.hlines(laws["exact"], places - 0.15, places + 0.15, color=look.colour)
        dots(ax, places.tolist(), laws["observed"], look)
    title = f"Output law of both rules at the share {law['theta']:g}"
    ax.set(title=title, xlabel="token", ylabel="probability of the token", xticks=tokens)
    notes = (("target P (bars)", GREY), ("draft Q (lines)", GREEN), ("OPT", BLUE), ("UNO", ORANGE))
    for i, (text, colour) in enumerate(notes):
        ax.annotate(text, (0.97, 0.95 - 0.06 * i), xycoords="axes fraction", ha="right", fontsize=8.5, color=colour)
