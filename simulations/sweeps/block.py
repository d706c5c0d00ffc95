"""Block verification over whole decodings: no policy has fewer expected calls, some have lighter tails (B7)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulations.counts.quantities import Mean, Share
from simulations.counts.tally import Tally
from simulations.simulators.decoding import calls_of
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from simulations.verdicts.call_programme import fewest_calls
from simulations.verdicts.markov_calls import block_moves
from simulations.verdicts.predictions import Predicted
from spectheory.plots.line_ends import name_ends
from spectheory.plots.style import GREY, LOOKS, PINK, Axes, Figure, Look, caption, note, plain_axes, titled

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

REST: dict[str, Any] = {
    **GADGET,
    **{side: GADGET[side][2:] for side in ("target", "draft")},
    "length": 3,
}
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
        "observed": [{end: LENGTH / getattr(calls, at) for end, at in ENDS} for calls in counted],
    }


ENDS = (("low", "high"), ("best", "best"), ("high", "low"))
"""Tokens per call are least where calls are most."""


def law_of_calls(given: dict[str, Any]) -> NDArray[np.float64]:
    """P(calls = c), c = 0..length, of block verification on chains given by position (exact)."""
    target, draft, initial = (np.asarray(given[name], dtype=np.float64) for name in ("target", "draft", "initial"))
    length, k = given["length"], given["k"]
    states = len(initial)
    following = np.broadcast_to(np.arange(states), (states, states))
    laws = np.zeros((length + k + 1, states, length + 1))
    laws[length:, :, 0] = 1.0
    for n in reversed(range(length)):
        moves = block_moves(target, draft, following, n, min(k, length - n - 1))
        later = sum((move @ laws[n + i + 1] for i, move in enumerate(moves)), np.zeros((states, length + 1)))
        laws[n, :, 1:] = later[:, :-1]
    return np.asarray(initial @ laws[0])


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
        seen = [
            Predicted(f"P(calls = {c})", "B7/in-law", Share("texts", c), float(share))
            for c, share in enumerate(law)
            if 0 < share < 1
        ]
        rows.append((label, tallies[label], seen))
    return rows


EARLY = Look(PINK, "D")
TAILS = (
    ("block", "block verification", LOOKS["block"], -0.2),
    ("early", "first call stops after one draft", EARLY, 0.2),
)
"""Policies on the gadget: name, words, look, and where their bars stand beside a tick."""

NAMES = {"block": "block", "token": "token", "race": "race"}


def draw(figure: Figure, data: dict[str, Any]) -> None:
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


def draw_means(ax: Axes, data: dict[str, Any]) -> None:
    """Tokens per call of every rule against k, and the optimum where it is known."""
    labels = []
    for rule, row in data["rules"].items():
        colour, marker = LOOKS[rule]
        ax.plot(data["drafts"], row["exact"], color=colour)
        dots(ax, data["drafts"], row["observed"], colour, marker=marker)
        labels.append((data["drafts"][-1], row["exact"][-1], NAMES[rule], colour))
    best = data["optimum"]
    ax.plot(
        [each["k"] for each in best],
        [each["tokens"] for each in best],
        "o",
        markersize=11,
        markerfacecolor="none",
        markeredgecolor=GREY,
        markeredgewidth=1.3,
    )
    note(ax, "optimum over\nall policies", (best[-1]["k"], best[-1]["tokens"]), (-12, 14), GREY, 8, ha="right")
    ax.set_xticks(data["drafts"])
    ax.set_xlabel("drafts per call, k")
    ax.set_ylabel("tokens per call, N / E[calls]")
    ax.set_ylim(1.5, None)
    titled(ax, f"Mean: Markov chains of three tokens, texts of {data['length']}")
    name_ends(ax, labels)


def draw_tails(ax: Axes, gadget: dict[str, Any]) -> None:
    """Tails of the number of calls on the gadget."""
    for name, label, (colour, marker), shift in TAILS:
        row = gadget[name]
        places = [t + shift for t in range(len(row["exact"]))]
        ax.bar(
            places, row["exact"], width=0.36, color=colour, alpha=0.45, label=f"{label}:\nE[calls] = {row['mean']:g}"
        )
        shown = [
            (x, share, seen) for x, share, seen in zip(places, row["exact"], row["observed"], strict=True) if share
        ]
        dots(ax, [x for x, _, _ in shown], [seen for _, _, seen in shown], colour, marker=marker)
        for x, share, _ in shown:
            note(ax, f"{share:g}", (x, share), (0, 5), colour, ha="center")
    ax.set_ylim(0, 1.5)
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xticks(range(len(gadget["block"]["exact"])))
    ax.set_xlabel("t, calls")
    ax.set_ylabel("P(calls > t)")
    titled(ax, "Tail: gadget G, texts of 5, k = 2")
    ax.legend(loc="upper right", frameon=False, fontsize=8.5)
    plain_axes(ax)


SWEEP = Sweep(
    "block",
    "Block verification over whole decodings: the most tokens per call, not the lightest tail",
    ("B7", "B7/in-law", "§7"),
    asks,
    data,
    draw,
    (9.0, 4.6),
    further=further,
)
