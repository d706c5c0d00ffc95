"""Biased decoding by the real loop (Y5, Y6): with OPT or UNO recovery its exact law is the one the simulator steps by.

Every outcome of every draw is explored; nothing is random.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from simulations.simulators.biased_texts import accepted_with, residual
from spectheory.drafting import Chain
from spectheory.limits import mixture_target
from spectheory.measure.decoders import Method
from spectheory.measure.decoders.tree import ROOT, DraftTree, Floats, Source
from spectheory.measure.decoders.verifiers import Pmfs, Verdict, Verifier
from tests.decoders.test_law import EXACT, PROMPT, V, outcomes, tables

SEEDS = (1, 2)


def over_accepting(form: str, amount: float, recovery: str) -> Verifier:
    """Token verification of a chain that accepts more than it may."""

    def verify(tree: DraftTree, target: Pmfs, source: Source) -> Verdict:
        path: list[int] = []
        while True:
            node = path[-1] if path else ROOT
            p = target[node]
            if not tree.children(node):
                return path, source.chance.categorical(p)
            q, (child,) = tree.pmfs[node], tree.children(node)
            if not source.chance.coin(float(accepted_with(p, q, form, amount)[tree.tokens[child]])):
                return path, source.chance.categorical(residual(p, q) if recovery == "opt" else p)
            path.append(child)

    return verify


def first_two(verifier: Verifier) -> dict[tuple[int, ...], float]:
    """The law of the first two of three tokens; both are drafted, whatever was rejected."""
    law: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for text, _, chance in outcomes(Method("token", Chain(2)), 3, verifier=verifier, seeds=SEEDS):
        law[text[:2]] += chance
    return law


def token_law(text: tuple[int, ...], form: str, amount: float, recovery: str) -> Floats:
    """B q and what is recovered, after a text."""
    target, draft = tables(SEEDS)([[*PROMPT]])
    p, q = target.pmf([*PROMPT, *text]), draft.pmf([*PROMPT, *text])
    if form == "share" and recovery == "opt":
        return np.asarray(mixture_target(p, q, amount))
    kept = accepted_with(p, q, form, amount) * q
    return kept + (1 - kept.sum()) * (residual(p, q) if recovery == "opt" else p)


@pytest.mark.parametrize("recovery", ["opt", "uno"])
@pytest.mark.parametrize(("form", "amount"), [("threshold", 0.0), ("threshold", 0.2), ("share", 0.4)])
def test_the_loop_outputs_the_law_of_each_position(form: str, amount: float, recovery: str) -> None:
    law = first_two(over_accepting(form, amount, recovery))
    worst = 0.0
    for x in range(V):
        for y in range(V):
            first, second = (token_law(text, form, amount, recovery) for text in ((), (x,)))
            worst = max(worst, abs(law.get((x, y), 0.0) - float(first[x] * second[y])))
    assert worst < EXACT


def test_the_other_recovery_is_seen() -> None:
    """Negative control."""
    law = first_two(over_accepting("threshold", 0.0, "uno"))
    assert abs(sum(law.get((0, y), 0.0) for y in range(V)) - token_law((), "threshold", 0.0, "opt")[0]) > 1e-3
