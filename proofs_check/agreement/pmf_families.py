"""The branching bounds against best trees of random pmfs (:mod:`simulations.models.families`), simulated."""

from __future__ import annotations

from proofs_check.evidence.entries import Control
from proofs_check.evidence.judge import judge_all
from proofs_check.forms.branching_forms import best_t_form, leading, lorden_form, sharp_form
from proofs_check.prelude import *
from simulations.models.families import CAPACITIES, FAMILIES, MIXED, population
from spectheory.limits import StepLaw, random_tree_value

PMFS, TOKENS = 256, 32
"""Size of the populations of the ledger; those of the figure are larger."""


@cache
def _simulated(name: str, capacity: int, trees: int) -> Fraction:
    """The upper end of the 95% interval of E[X]."""
    pmfs = population(name, PMFS, TOKENS)
    return Fraction(
        random_tree_value(lambda rng, n: pmfs[rng.integers(len(pmfs), size=n)], capacity, trees, rng=capacity).high
    )


def family_cases(effort: Effort) -> Iterator[Case]:
    """Every family at every capacity: its moments, and the upper end of the 95% interval of E[X]."""
    for name in FAMILIES:
        law = StepLaw.from_pmfs(population(name, PMFS, TOKENS))
        for capacity in CAPACITIES:
            trees = effort.pick(24, 240) * (4 if name == MIXED else 1)
            yield {
                "family": name,
                "capacity": Fraction(capacity),
                "mu": Fraction(law.mean),
                "mu2": Fraction(law.second_moment),
                "high": _simulated(name, capacity, trees),
            }


def comparison(family: str, capacity: Fraction, mu: Fraction, mu2: Fraction, high: Fraction) -> Iterator[Compared]:
    """E[X] below B2', B2' below B2, and from P = 64 on B1's leading term more than twice B2'."""
    form = sharp_form(mu, mu2, capacity)
    yield at_most(high, form)
    yield at_most(form, lorden_form(mu, mu2, capacity))
    yield at_most(form, best_t_form(mu, mu2, capacity))
    if family and capacity >= 64:
        yield at_least(leading(mu, mu2, capacity), 2 * form)


def families_below() -> Evidence:
    """Simulated best trees of six families below B2', at every capacity."""
    claim = Claim(
        "the 95% interval of E[X] lies below B2', B2' below B2, and B1's leading term is more than twice B2' from P "
        "= 64",
        comparison,
    )
    wrong = Claim(
        "E[X] is at most half of B2'",
        lambda family, capacity, mu, mu2, high: at_most(high, sharp_form(mu, mu2, capacity) / 2),
    )
    over = f"six families of random pmfs, {PMFS} pmfs on {TOKENS} tokens each, P = 1 to 4096, fixed seeds"
    return Evidence(
        "simulation",
        f"{claim.says}, {over}",
        lambda effort: judge_all(claim, family_cases(effort)),
        Control(wrong.says, lambda effort: judge_all(wrong, family_cases(effort))),
    )
