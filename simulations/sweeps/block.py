"""Block verification over whole decodings: no policy has fewer expected calls, some have lighter tails (B7)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts import Mean, Share, Tally
from simulations.simulators.decoding import calls_of
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve, dots
from simulations.verdicts.call_programme import fewest_calls
from simulations.verdicts.markov_calls import markov_call_law
from simulations.verdicts.predictions import Predicted
from spectheory.drafting import Chain
from spectheory.plots.style import GREY, LOOKS, PINK, Axes, Figure, Look, caption, name_ends, note
from spectheory.verification import BlockVerification

TITLE = "Block verification over whole decodings: the most tokens per call, not the lightest tail"
STATEMENTS = ("B7", "B7/in-law", "§7")
SIZE = (9.0, 4.6)

LENGTH = 16
PAIR: dict[str, Any] = {
    "target": [[0.1, 0.45, 0.45], [0.5, 0.1, 0.4], [0.45, 0.45, 0.1]],
    "draft": [[0.1, 0.7, 0.2], [0.75, 0.1, 0.15], [0.2, 0.7, 0.1]],
    "initial": [1 / 3, 1 / 3, 1 / 3],
    "length": LENGTH,
}
"""Markov chains of three tokens; the draft is surer than the target of what follows."""

DRAFTS = (1, 2, 3, 4, 5, 6, 7, 8)
SOLVED = (1, 2, 3, 4)
"""Chains for which the programme over all policies is solved: it grows by the number of tokens with each draft."""

RULES = ("block", "token", "race")

AGREE = [[1.0, 0.0], [1.0, 0.0]]
GADGET: dict[str, Any] = {
    "target": [AGREE, AGREE, [[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]], AGREE],
    "draft": [AGREE, AGREE, [[1.0, 0.0], [1.0, 0.0]], [[0.25, 0.75], [0.0, 1.0]], AGREE],
    "initial": [1.0, 0.0],
    "length": 5,
    "k": 2,
}
"""Gadget G behind two tokens on which both models agree (``proofs_check``: B7/in-law)."""

REST: dict[str, Any] = {**GADGET, **{side: GADGET[side][2:] for side in ("target", "draft")}, "length": 3}
"""The gadget alone: what is left if the first call stops after one draft, and so gives the two agreed tokens."""


def _run(rule: str, k: int) -> tuple[str, dict[str, Any]]:
    """The simulator of a rule and its parameters."""
    if rule in ("block", "token"):
        return rule, {**PAIR, "k": k}
    return "decode", {**PAIR, "rule": rule, "paths": [[1] * depth for depth in range(1, k + 1)]}


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Every rule with each number of drafts; the gadget whole, and what a first call that stops early leaves of it."""
    many, some = scale.pick(100_000, 1_000_000), scale.pick(20_000, 200_000)
    trials = {"block": many, "token": many, "race": some}
    runs = [ask(f"{rule} {k}", *_run(rule, k), scale, trials=trials[rule]) for k in DRAFTS for rule in RULES]
    gadget = [ask(name, "block", given, scale, trials=many) for name, given in (("gadget", GADGET), ("rest", REST))]
    return (*runs, *gadget)


def data(scale: Scale, tallies: Tallies) -> Data:
    """Tokens per call by rule and k, the optimum, and the tails of the gadget."""
    return {
        "length": LENGTH,
        "drafts": DRAFTS,
        "rules": {rule: _of_rule(rule, tallies) for rule in RULES},
        "optimum": [{"k": k, "tokens": LENGTH / optimum(k)} for k in SOLVED],
        "gadget": {"block": _tail(GADGET, tallies["gadget"], 0), "early": _tail(REST, tallies["rest"], 1)},
    }


@cache
def optimum(k: int) -> float:
    """The fewest expected calls of any policy."""
    return fewest_calls(*(np.asarray(PAIR[name]) for name in ("target", "draft", "initial")), length=LENGTH, k=k)


def _of_rule(rule: str, tallies: Tallies) -> Data:
    """Tokens per call, N over expected calls: exact, and as counted with the interval of the calls."""
    counted = [Mean("calls", 1, LENGTH).estimate(tallies[f"{rule} {k}"]) for k in DRAFTS]
    return {
        "exact": [LENGTH / calls_of(*_run(rule, k)).expected for k in DRAFTS],
        "observed": [{"low": LENGTH / c.high, "best": LENGTH / c.best, "high": LENGTH / c.low} for c in counted],
    }


def law_of_calls(given: dict[str, Any]) -> NDArray[np.float64]:
    """P(calls = c), c = 0..length, of block verification (exact)."""
    chains = (given[name] for name in ("target", "draft", "initial"))
    return markov_call_law(BlockVerification(), *chains, length=given["length"], tree=Chain(given["k"]).tree())


def _tail(given: dict[str, Any], tally: Tally, before: int) -> Data:
    """P(calls > t), t = 0.., with so many calls before: exact and counted; and the mean."""
    law = law_of_calls(given)
    numbers = np.arange(len(law))
    places = [tuple(int(c) for c in numbers if c + before > t) for t in range(GADGET["length"])]
    return {
        "mean": float(law @ numbers) + before,
        "exact": [float(law[list(place)].sum()) for place in places],
        "observed": [vars(Share("texts", place).estimate(tally)) for place in places],
    }


def further(tallies: Tallies) -> Sequence[tuple[str, Tally, Sequence[Predicted]]]:
    """The whole law of the gadget's calls; and that no rule has fewer calls than the optimum over all policies."""
    rows: list[tuple[str, Tally, Sequence[Predicted]]] = []
    for k in SOLVED:
        bound = Predicted("calls, no fewer", "B7", Mean("calls", 1, LENGTH), optimum(k), "lower bound")
        rows += [(f"{rule} {k}", tallies[f"{rule} {k}"], (bound,)) for rule in RULES]
    for label, given in (("gadget", GADGET), ("rest", REST)):
        law = law_of_calls(given)
        cells = [(c, float(share)) for c, share in enumerate(law) if 0 < share < 1]
        stated = [Predicted(f"P(calls = {c})", "B7/in-law", Share("texts", c), share) for c, share in cells]
        rows.append((label, tallies[label], stated))
    return rows


TAILS = (
    ("block", "block verification", LOOKS["block"], -0.2),
    ("early", "first call stops after one draft", Look(PINK, "D"), 0.2),
)
"""Policies on the gadget: name, words, look, and where their bars stand beside a tick."""


def draw(figure: Figure, data: Data) -> None:
    """Means on the left, tails on the right."""
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_means(left, data)
    draw_tails(right, data["gadget"])
    caption(
        figure,
        "Lines, bars, numbers: exact.  Markers: simulated, with 95% intervals.\n"
        "Circles: the best of all lossless fresh policies, by a linear programme.",
        8,
    )


def draw_means(ax: Axes, data: Data) -> None:
    """Tokens per call of every rule against k, and the optimum where it is known."""
    ends = [
        curve(ax, data["drafts"], row["exact"], LOOKS[rule], rule, seen=row["observed"])
        for rule, row in data["rules"].items()
    ]
    ks, tokens = ([each[name] for each in data["optimum"]] for name in ("k", "tokens"))
    ax.plot(ks, tokens, "o", markersize=11, markerfacecolor="none", markeredgecolor=GREY, markeredgewidth=1.3)
    note(ax, "optimum over\nall policies", (ks[-1], tokens[-1]), (-12, 14), GREY, 8, ha="right")
    ax.set(
        title=f"Mean: Markov chains of three tokens, texts of {data['length']}",
        xlabel="drafts per call, k",
        ylabel="tokens per call, N / E[calls]",
        xticks=data["drafts"],
        ylim=(1.5, None),
    )
    name_ends(ax, ends)


def draw_tails(ax: Axes, gadget: Data) -> None:
    """Tails of the number of calls on the gadget."""
    for name, words, look, shift in TAILS:
        row = gadget[name]
        places = [t + shift for t in range(len(row["exact"]))]
        label = f"{words}:\nE[calls] = {row['mean']:g}"
        ax.bar(places, row["exact"], width=0.36, color=look.colour, alpha=0.45, label=label)
        shown = [each for each in zip(places, row["exact"], row["observed"], strict=True) if each[1]]
        dots(ax, [x for x, _, _ in shown], [seen for _, _, seen in shown], look)
        for x, share, _ in shown:
            note(ax, f"{share:g}", (x, share), (0, 5), look.colour, ha="center")
    ax.set(
        title="Tail: gadget G, texts of 5, k = 2",
        xlabel="t, calls",
        ylabel="P(calls > t)",
        xticks=range(len(gadget["block"]["exact"])),
        yticks=[0, 0.25, 0.5, 0.75, 1],
        ylim=(0, 1.5),
    )
    ax.legend(loc="upper right")
