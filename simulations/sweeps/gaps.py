"""Gap of every rule to the best acceptance of i.i.d. candidates, for one to eight of them (R8)."""

from __future__ import annotations

from typing import Any

import numpy as np

from simulations.counts import exact
from simulations.draws import Floats
from simulations.sweeps.base import Ask, Data, Scale, Tallies, ask
from simulations.sweeps.curves import curve, dots
from spectheory import total_variation
from spectheory.plots.style import GREY, LOOKS, Figure, caption, key, note
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

TITLE = "What every rule lacks to the best acceptance of i.i.d. candidates"
STATEMENTS = ("R8", "R1", "R2", "R3", "R4", "R5", "R6", "R7", "A1", "A4")
SIZE = (9.0, 5.2)

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
    lines = {
        rule: [float(optimum[k - 1] - known.acceptance(target, draft, k)) for k in range(1, MOST + 1)]
        for rule, known in RULES.items()
    }
    seen = {
        rule: [
            gap(optimum, k, *accepted(name, rule, k, tallies)) for k in (range(1, MOST + 1) if rule in RANKED else RUNS)
        ]
        for rule in RULES
    }
    matched = tallies[f"{name} independent"]
    return {
        "target": target,
        "draft": draft,
        "tv": float(total_variation(target, draft)),
        "optimum": optimum.tolist(),
        "lines": lines,
        "dots": seen,
        "independent": {
            "line": float(optimum[0] - IndependentMatch().acceptance(target, draft)),
            "dot": gap(optimum, 1, int(matched.counts["accepted"][0]), matched.trials),
        },
    }


def gap(optimum: Floats, k: int, successes: int, trials: int) -> dict[str, float]:
    """The optimum of k candidates less an acceptance that was counted, with its exact binomial interval."""
    seen = exact(successes, trials)
    low, best, high = (float(optimum[k - 1] - end) for end in (seen.high, seen.best, seen.low))
    return {"k": k, "low": low, "best": best, "high": high}


def accepted(name: str, rule: str, k: int, tallies: Tallies) -> tuple[int, int]:
    """How often one of k candidates was the output, and in how many trials."""
    tally = tallies[f"{name} {rule}" if rule in RANKED else f"{name} {rule} {k}"]
    if rule in RANKED:
        counts = tally.counts["rank"][RANKED[rule] : RANKED[rule] + k]
    else:
        counts = tally.counts["hits"][1:] if rule == "gumbel-list" else tally.counts["rank"][:-1]
    return int(counts.sum()), tally.trials


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


def draw(figure: Figure, data: Data) -> None:
    """Two pairs side by side on one scale: a line for each rule, from one candidate to the most."""
    ks, axes = list(range(1, data["most"] + 1)), figure.subplots(1, len(data["pairs"]), sharey=True)
    for ax, (name, pair) in zip(axes, data["pairs"].items(), strict=True):
        ax.axhline(0.0, color=GREY)
        for rule, (_, known, style) in STYLES.items():
            seen = pair["dots"][rule]
            at = [dot["k"] for dot in seen]
            curve(ax, ks, pair["lines"][rule], LOOKS[known], seen=seen, at=at, style=style, size=5)
        dots(ax, [1], [pair["independent"]["dot"]], LOOKS["independent"], size=5)
        note(ax, "independent match (A4)", (1, pair["independent"]["line"]), (8, -3))
        title = f"A {name} draft, TV = {pair['tv']:.2f}"
        ax.set(title=title, xlabel="candidates at the position, k", xticks=ks)
    axes[0].set_ylabel("gap to the optimum: R4 - acceptance")
    rules = [
        (name, {"color": LOOKS[known].colour, "marker": LOOKS[known].marker, "linestyle": style})
        for name, known, style in STYLES.values()
    ]
    key(figure, [*rules, ("R4, optimum of i.i.d. candidates", {"color": GREY})], 4)
    caption(
        figure,
        "Lines: exact; solid: candidates i.i.d. from the draft, dashed: distinct ones, which R4 does not bind.\n"
        "Markers: simulated, with 95% intervals.",
    )
