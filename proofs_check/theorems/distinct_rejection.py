"""R3 with distinct candidates: the product formula of i.i.d. candidates fails there."""

from __future__ import annotations

from proofs_check.agreement.distinct_candidates import PRODUCT, product_form
from proofs_check.prelude import *

ENTRIES = (
    Entry(
        id="R3/product",
        title="The product of total variations, for distinct candidates",
        kind="refuted",
        plain="without replacement P(R > k) = prod_{m<=k} TV(p^m, q), p^(m+1) = norm (p^m - q)+",
        latex=r"P(R>k) = \prod_{m\le k} TV(p^m, q)",
        assumptions=("p and q are positive pmfs on one finite vocabulary", "a rejected token is taken out of q"),
        evidence=(
            counterexample(
                Claim(PRODUCT.says, PRODUCT.holds, (POSITIVE,)),
                lambda effort: cases.all_pairs(3, effort.pick(4, 6)),
                over="first among the pairs on 2 tokens by their denominator",
                true=Claim(
                    "with replacement P(R > k) = prod TV(p^m, q)",
                    lambda p, q: product_form(p, q, replacement=True),
                    (POSITIVE,),
                ),
            ),
            simulated(
                "distinct candidates have the ranks of i.i.d. ones",
                at(("recursive-distinct",), (TURNED,), max_rank=3),
                stated("R3", kind="recursive"),
                wrong=("they have those of R3 without replacement", stated("R3")),
            ),
        ),
    ),
)
"""What this file states; R3 itself stands with the i.i.d. candidates."""
