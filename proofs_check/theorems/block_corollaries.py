"""B7's corollaries: longer chains, other rules' own values, drafts and costs that depend on the text."""

from __future__ import annotations

from proofs_check.agreement.block_cases import LONG, SMALL, ending, priced, varied
from proofs_check.agreement.block_limits import longer, optimal_by_text, own_family, run_through_masses
from proofs_check.algorithms.enumeration import race_coupling
from proofs_check.prelude import *
from proofs_check.proofs.block_proofs import FAMILY, LENGTHS
from proofs_check.statement.findings import Kind
from proofs_check.twins.block_values import block_masses, token_masses

MODELS = "random models of any order, zeros included; texts of 2 to 5 tokens, or up to an end token"

ENUMERATED: dict[Kind, str] = {
    "certified": "no logarithm enters",
    "search": "the cases are enumerated in fractions; B7 searches the steps",
}


def least(p: Any, q: Any) -> tuple[Any, ...]:
    """The shares that token verification accepts."""
    return tuple(smaller(a, b) for a, b in zip(p, q, strict=True))


def raced(p: Any, q: Any) -> tuple[Any, ...]:
    """The shares that a race accepts."""
    joint = race_coupling(p, q)
    return tuple(joint.get((x, x), Fraction(0)) for x in range(len(p)))


ENTRIES = (
    Entry(
        id="B7/longer",
        title="Longer chains never cost calls",
        kind="upper bound",
        plain="V_(k+1)(w) <= V_k(w) for block verification, and for token verification and every rule whose masses "
        "obey s_i^w(zx) <= c_w(z) s_(i-1)^(wz)(x) with sum_z c_w(z) <= 1 and do not depend on k: their own D is 0 or "
        "more too",
        latex=r"V_{k+1} \le V_k,\qquad s_i^w(zx) \le c_w(z)\, s_{i-1}^{wz}(x),\ \sum_z c_w(z) \le 1 "
        r"\ \Rightarrow\ D \ge 0",
        assumptions=("as for B7; the mean over the target's texts: along one text longer chains may cost calls",),
        evidence=(
            proof("the induction with any c; one call of k drafts against k+1", FAMILY),
            exact(
                Claim("V_k <= V_(k-1) at every text, block verification, k to 3", partial(longer, block_masses, 1)),
                ending(LONG, 3),
                over=MODELS,
                wrong=Claim("V_(k-2) <= V_(k-1)", partial(longer, block_masses, -1)),
            ),
            exact(
                Claim("the same of token verification's values", partial(longer, token_masses, 1)),
                ending(LONG, 3),
                over=MODELS,
                wrong=Claim("V_(k-2) <= V_(k-1)", partial(longer, token_masses, -1)),
            ),
            exact(
                Claim(
                    "token verification's masses: the inequality with c = min(p, q), and its own D is 0 or more",
                    partial(own_family, token_masses, least),
                ),
                ending(SMALL, 3),
                over=MODELS,
                wrong=Claim("block verification's obey it too", partial(own_family, block_masses, least)),
            ),
            exact(
                Claim(
                    "races, run through: with c the probability that both winners are z",
                    partial(own_family, run_through_masses("race"), raced),
                ),
                ending(SMALL, 1),
                over=MODELS,
                wrong=Claim("token verification's obey that too", partial(own_family, token_masses, raced)),
            ),
        ),
        without={**ENUMERATED, "simulation": "the figure *block* counts calls over k"},
    ),
    Entry(
        id="B7/lengths",
        title="Drafts and costs that depend on the text",
        kind="optimality",
        plain="block verification stays optimal, and D >= 0, where the number of drafts k(w) depends on the text with "
        "k(wz) >= k(w) - 1, and where a call costs c(w) with sum_z q(z|w) c(wz) <= c(w)",
        latex=r"k(wz) \ge k(w) - 1;\qquad \sum_z q(z\mid w)\, c(wz) \le c(w)",
        assumptions=("as for B7; a policy may draft at most k(w) tokens; c(w) >= 0",),
        evidence=(
            proof("what changes in the induction", LENGTHS),
            exact(
                Claim(
                    "drafts by text: a linear programme over all policies has the optimum V, and D >= 0",
                    partial(optimal_by_text, block_masses),
                ),
                varied(1, 5),
                over="random models and numbers of drafts, 0 to 3, that fall by one a token at most",
                wrong=Claim("token verification is optimal", partial(optimal_by_text, token_masses)),
            ),
            exact(
                Claim("costs by text: the same", partial(optimal_by_text, block_masses)),
                priced(5),
                over="random models and costs that the next token of the draft does not raise in the mean",
                wrong=Claim("token verification is optimal", partial(optimal_by_text, token_masses)),
            ),
        ),
        without={**ENUMERATED, "simulation": "simulators have one number of drafts"},
    ),
)
"""What follows from the theorem and its proof."""
