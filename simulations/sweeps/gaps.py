"""Gap of every rule to the best acceptance of i.i.d. candidates, for one to eight of them (R8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from simulations.counts.estimates import Estimate, exact
from simulations.counts.tally import Tally
from simulations.sweeps.base import Ask, Data, Scale, Sweep, Tallies, ask
from simulations.sweeps.observed import dots
from spectheory import total_variation
from spectheory.plots.line_ends import key
from spectheory.plots.style import GREY, LOOKS, Axes, Figure, caption, note, plain_axes, titled
from spectheory.verification import (
    GumbelList,
    IndependentMatch,
    KSeq,
    PoissonRace,
    RaceVerification,
    RecursiveRejection,
    Rule,
    TopKMatch,
    optimal_acceptances,
)

PAIRS = {
    "peaked": ((0.30, 0.22, 0.15, 0.11, 0.09, 0.06, 0.04, 0.03), (0.70, 0.08, 0.06, 0.05, 0.04, 0.03, 0.03, 0.01)),
    "flat": ((0.62, 0.16, 0.09, 0.05, 0.03, 0.02, 0.02, 0.01), (0.22, 0.17, 0.15, 0.13, 0.12, 0.09, 0.07, 0.05)),
}
"""Target and draft, by what the draft is; both are 0.4 apart."""
MOST = 8
"""Candidates."""
RUNS = (1, 2, 3, 4, 6, 8)
"""Numbers of candidates that are simulated where each needs a run of its own."""
RANKED = {"poisson": 1, "race-dense": 1, "recursive": 0, "recursive-distinct": 0, "top-k": 0}
"""Simulators that count ranks, with the index of rank 1: one run serves every number of candidates."""
SINGLE = ("token", "independent", "argmax", "greedy")
RULES: dict[str, Rule] = {
    "poisson": PoissonRace(),
    "race-dense": RaceVerification(),
    "recursive": RecursiveRejection(),
    "recursive-distinct": RecursiveRejection(replacement=False),
    "top-k": TopKMatch(),
    "k-seq": KSeq(),
    "gumbel-list": GumbelList(),
}


def asks(scale: Scale) -> tuple[Ask, ...]:
    """Each rule at both pairs: once where ranks are counted, else for every number of candidates."""
    trials = scale.pick(200_000, 4_000_000)
    made = []
    for name, (target, draft) in PAIRS.items():
        pair = {"target": target, "draft": draft}
        made += [ask(f"{name} {kind}", kind, {**pair, "max_rank": MOST}, scale, trials=trials) for kind in RANKED]
        for k in RUNS:
            made.append(ask(f"{name} k-seq {k}", "k-seq", {**pair, "k": k}, scale, trials=trials))
            made.append(ask(f"{name} gumbel-list {k}", "gumbel-list", {**pair, "k": k}, scale, trials=trials))
        made += [ask(f"{name} {rule}", "single", {**pair, "rule": rule}, scale, trials=trials) for rule in SINGLE]
    return tuple(made)


def data(scale: Scale, tallies: Tallies) -> Data:
    """R4 less the acceptance of every rule: exact, and as counted."""
    return {"most": MOST, "pairs": {name: of_pair(name, tallies) for name in PAIRS}}


def of_pair(name: str, tallies: Tallies) -> dict[str, Any]:
    """The gaps at one pair, k = 1, 2, ...; and that of independent match, which has one candidate."""
    target, draft = PAIRS[name]
    optimum = np.asarray(optimal_acceptances(target, draft, MOST))
    lines = {}
    for rule, known in RULES.items():
        lines[rule] = [float(optimum[k - 1] - known.acceptance(target, draft, k)) for k in range(1, MOST + 1)]
    matched = tallies[f"{name} independent"]
    counted = exact(int(matched.counts["accepted"][0]), matched.trials)
    return {
        "target": target,
        "draft": draft,
        "tv": float(total_variation(target, draft)),
        "optimum": optimum.tolist(),
        "lines": lines,
        "dots": {rule: above(name, rule, optimum.tolist(), tallies) for rule in RULES},
        "independent": {
            "line": float(optimum[0] - IndependentMatch().acceptance(target, draft)),
            "dot": {"k": 1, **gap(float(optimum[0]), counted)},
        },
    }


def above(name: str, rule: str, optimum: list[float], tallies: Tallies) -> list[dict[str, float]]:
    """The gaps that were counted, with exact binomial intervals of the acceptance."""
    found: list[dict[str, float]] = []
    for k in range(1, MOST + 1) if rule in RANKED else RUNS:
        tally, accepted = _accepted(rule)(name, k, tallies)
        found.append({"k": k, **gap(optimum[k - 1], exact(accepted, tally.trials))})
    return found


def gap(optimum: float, acceptance: Estimate) -> dict[str, float]:
    """The optimum less an acceptance, with its interval."""
    low, best, high = (float(optimum - end) for end in (acceptance.high, acceptance.best, acceptance.low))
    return {"low": low, "best": best, "high": high}


def _accepted(rule: str) -> Callable[[str, int, Tallies], tuple[Tally, int]]:
    """How often one of k candidates was the output, and in which tally."""

    def ranked(name: str, k: int, tallies: Tallies) -> tuple[Tally, int]:
        tally, first = tallies[f"{name} {rule}"], RANKED[rule]
        return tally, int(tally.counts["rank"][first : first + k].sum())

    def listed(name: str, k: int, tallies: Tallies) -> tuple[Tally, int]:
        tally = tallies[f"{name} {rule} {k}"]
        counts = tally.counts["hits"][1:] if rule == "gumbel-list" else tally.counts["rank"][:-1]
        return tally, int(counts.sum())

    return ranked if rule in RANKED else listed


STYLES = {
    "poisson": ("R1 Poisson race", "poisson", "-"),
    "recursive": ("R3 recursive, i.i.d.", "recursive", "-"),
    "k-seq": ("R5 k-SEQ", "kseq", "-"),
    "gumbel-list": ("R6 Gumbel list", "gumbel-list", "-"),
    "race-dense": ("R2 race, distinct", "race", "--"),
    "recursive-distinct": ("R3 recursive, distinct", "recursive-distinct", "--"),
    "top-k": ("R7 top-k match", "topk", "--"),
}
"""What a rule is called, by which name it is known, and its line: dashed where candidates are distinct."""


def draw(figure: Figure, data: dict[str, Any]) -> None:
    """Two pairs side by side, on one scale."""
    axes = figure.subplots(1, len(data["pairs"]), sharey=True)
    for ax, (name, pair) in zip(axes, data["pairs"].items(), strict=True):
        draw_pair(ax, name, pair, data["most"])
    axes[0].set_ylabel("gap to the optimum: R4 - acceptance")
    optimum = ("R4, optimum of i.i.d. candidates", {"color": GREY})
    rules = [(name, {**_line(rule), "linestyle": style}) for name, rule, style in STYLES.values()]
    key(figure, [*rules, optimum], 4)
    caption(
        figure,
        "Lines: exact; solid: candidates i.i.d. from the draft, dashed: distinct ones, which R4 does not bind.\n"
        "Markers: simulated, with 95% intervals.",
    )


def _line(rule: str) -> dict[str, Any]:
    colour, marker = LOOKS[rule]
    return {"color": colour, "marker": marker}


def draw_pair(ax: Axes, name: str, pair: dict[str, Any], most: int) -> None:
    """One pair: a line for each rule, from one candidate to `most`."""
    ks = list(range(1, most + 1))
    ax.axhline(0.0, color=GREY)
    for rule, (_, known, style) in STYLES.items():
        look, seen = LOOKS[known], pair["dots"][rule]
        ax.plot(ks, pair["lines"][rule], linestyle=style, color=look.colour)
        dots(ax, [dot["k"] for dot in seen], seen, look.colour, marker=look.marker, size=5)
    match, look = pair["independent"], LOOKS["independent"]
    dots(ax, [1], [match["dot"]], look.colour, marker=look.marker, size=5)
    note(ax, "independent match (A4)", (1, match["line"]), (8, -3))
    ax.set_xticks(ks)
    ax.set_xlabel("candidates at the position, k")
    titled(ax, f"A {name} draft, TV = {pair['tv']:.2f}")
    plain_axes(ax)


SWEEP = Sweep(
    "gaps",
    "What every rule lacks to the best acceptance of i.i.d. candidates",
    ("R8", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "A1", "A4"),
    asks,
    data,
    draw,
    (9.0, 5.2),
)
