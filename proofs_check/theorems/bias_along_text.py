"""Y6 along texts of the target: without a condition on supports the likelihood ratio falls short."""

from __future__ import annotations

from proofs_check.agreement.bias_along_text import acceptance, mean_weight
from proofs_check.prelude import *


def all_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens by denominator, then over-acceptances."""
    for pair, share in product(cases.pairs(2, effort.pick(5, 8)), (0, 1, 2)):
        yield {**pair, "theta": Fraction(share, 2)}


WEIGHTS = "the mean of min((1-t) + t rho, rho) over the target is the acceptance of the biased rule"

ENTRIES = (
    Entry(
        id="Y6/support",
        title="Weights along target texts without a condition",
        kind="refuted",
        plain=WEIGHTS + ", for all p and q (a draft outside supp p is accepted with probability t, but no target text "
        "contains it: the mean is too small by t q(outside supp p))",
        latex=r"E_{x\sim p}\min\big((1-t)+t\rho(x),\, \rho(x)\big) = 1-(1-t)\,TV,\quad \rho = q/p",
        assumptions=("b = (1-t) min(1, p/q) + t",),
        evidence=(
            counterexample(
                Claim(WEIGHTS, lambda p, q, theta: equal(mean_weight(p, q, theta), acceptance(p, q, theta))),
                all_pairs,
                over="first among pairs on 2 tokens by denominator, t = 0, 1/2, 1",
                true=Claim(
                    "the mean and t q(outside supp p) are the acceptance, so the mean is no more",
                    lambda p, q, theta: [
                        equal(
                            mean_weight(p, q, theta) + theta * sum(b for a, b in zip(p, q, strict=True) if a == 0),
                            acceptance(p, q, theta),
                        ),
                        at_most(mean_weight(p, q, theta), acceptance(p, q, theta)),
                    ],
                ),
            ),
        ),
    ),
)
