"""§12: the limit L of whole decodings where drafts depend on the start of their call, so that B7 does not hold."""

from __future__ import annotations

from proofs_check.agreement.least_calls import along_texts, heads, library, policies
from proofs_check.prelude import *
from proofs_check.proofs.block_proofs import MASSES

STEPS: tuple[Step, ...] = (
    *MASSES,
    valid(
        "here q and Q are those of the call's own start. The text after x is fresh given that tau >= i and the drafts "
        "begin with x, so given the whole text P(tau >= i) = s_i(x)/P(x) <= mu_i(x)/P(x) = M_i, whatever was before",
        lambda s, m, P: at_most(s / P, m / P),
        lambda s, m, P: [P > 0, s >= 0, s <= m],
    ),
    same(
        "with a_i = P(tau >= i), a_0 = 1, and m_i = min over j <= i of L(n+j+1): E m_tau = m_0 + sum_(i>=1) a_i (m_i - "
        "m_(i-1)), here with two drafts",
        lambda a, b, m, n, r: ((1 - a) * m + (a - b) * n + b * r, m + a * (n - m) + b * (r - n)),
    ),
    valid(
        "m does not rise, so a_i <= M_i gives E m_tau >= m_0 + sum M_i (m_i - m_(i-1)) = L(n) - 1",
        lambda a, b, A, B, m, n, r: at_most(m + A * (n - m) + B * (r - n), m + a * (n - m) + b * (r - n)),
        lambda a, b, A, B, m, n, r: [a <= A, b <= B, n <= m, r <= n],
    ),
    valid(
        "backwards from the end: if J >= L is what any policy still needs at all later positions, it needs 1 + E J(n + "
        "tau + 1) >= 1 + E L(n + tau + 1) >= 1 + E m_tau >= L(n), here with two outcomes",
        lambda a, J, K, k, u, v, L: at_most(L, 1 + a * J + (1 - a) * K),
        lambda a, J, K, k, u, v, L: [a >= 0, a <= 1, u <= J, v <= K, 1 + a * u + (1 - a) * v >= L],
    ),
)
"""No policy needs fewer calls along any text."""

TOYS = (
    "over the head of B7/starts, then random targets and heads, whose pmfs at every start and run of drafts are "
    "unrelated, zeros included"
)

ENTRIES = (
    Entry(
        id="§12/L",
        title="The limit of a whole decoding for drafts by start",
        kind="lower bound",
        plain="let M_i(n) be block verification's survival with the pmfs of the call's own start, M_0 = 1, M_(k+1) = 0."
        " Given the text, every lossless fresh policy on chains of at most k drafts drawn from such pmfs needs L(0) "
        "calls or more, L(n) = 1 + sum_(i<=k) (M_i - M_(i+1)) min over j <= i of L(n+j+1), L = 0 from the end on. It "
        "need not be attained; block verification may need more (B7/starts), and for a draft model it needs V >= E L",
        latex=r"L(n) = 1 + \sum_{i=0}^{k} (M_i - M_{i+1}) \min_{j\le i} L(n+j+1) \le E[\text{calls} \mid x]",
        assumptions=(
            "every call is lossless and fresh: given all before it, the text from its start on is the target's",
            "a call draws one chain of at most k drafts from pmfs that depend on the text before the call and on its "
            "drafts before",
        ),
        evidence=(
            proof("masses by start, summation by parts, induction from the end", STEPS),
            exact(
                Claim(
                    "in the mean over texts no policy needs fewer calls, by a linear programme over all of them",
                    partial(policies, "block"),
                ),
                heads,
                over=TOYS,
                wrong=Claim("nor than L from token verification's survival", partial(policies, "token")),
            ),
            exact(
                Claim(
                    "along every text token, block, race, poisson, recursive and match chains need L calls or more",
                    partial(along_texts, "block"),
                ),
                heads,
                over=TOYS,
                wrong=Claim("L from token verification's survival, or more", partial(along_texts, "token")),
            ),
            agreement(
                Claim("the library's L of every text, from columns by start", partial(library, True)),
                heads,
                over=f"all texts, {TOYS}",
                wrong=Claim("block verification's calls are", partial(library, False)),
            ),
        ),
        calculators=(
            "spectheory.prediction.decoding_limit.least_calls",
            "spectheory.prediction.decoding_limit.fewest_calls",
        ),
        without={
            "search": "the cases are enumerated in fractions",
            "simulation": "decoders for heads are held to §10 in the tests; whole policies are enumerated here",
        },
    ),
)
