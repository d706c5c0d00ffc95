"""§12: the limit L of whole decodings where drafts depend on the start of their call, so that B7 does not hold."""

from __future__ import annotations

from proofs_check.agreement.block_limits import SOLVED
from proofs_check.agreement.path_cases import CHAINS
from proofs_check.prelude import *
from proofs_check.proofs.block_proofs import MASSES
from proofs_check.theorems.path.start_cases import HeadTable, by_start, from_start, head_trace, random_heads
from proofs_check.twins.block_values import Problem
from proofs_check.twins.path_theorem import calls, least_calls
from proofs_check.twins.policy_programme import fewest_calls
from spectheory.prediction import trace_limits

# L, the limit of whole decodings for drafts by start (§12), in fractions and against linear programmes.


DRAWN = ("token", "block", "race", "poisson", "recursive", "independent")
"""Lossless rules whose chain of drafts is drawn."""


def least_of_text(name: str, target: Table, head: HeadTable, k: int, text: Prefix) -> Fraction:
    """L(0) of a text, from the survival of a rule: block verification's is the right one."""
    return least_calls(by_start(CHAINS[name].survival, target.__getitem__, head, text), k, len(text))


def policies(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """In the mean over texts no policy takes fewer calls, by a linear programme over all of them."""
    given = Problem(
        target.__getitem__,
        lambda text: from_start(head, text),
        lambda _: k,
        lambda text: len(text) >= length,
        len(target[()]),
    )
    least = sum(
        (
            share * least_of_text(name, target, head, k, text)
            for text, share in text_law(target.__getitem__, length).items()
        ),
        Fraction(0),
    )
    yield at_most(least, Fraction(fewest_calls(given)) + SOLVED)


def along_texts(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """Along every text each rule takes so many calls or more."""
    p = target.__getitem__
    for text in text_law(p, length):
        least = least_of_text(name, target, head, k, text)
        for rule in DRAWN:
            yield at_most(least, calls(by_start(CHAINS[rule].survival, p, head, text), k, length)[0])


def library(limited: bool, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The library's L of each text; or block verification's calls in its place."""
    trace = head_trace(target, head, k, length)
    found = trace_limits.fewest_calls(trace, [k])[k]
    for text, each in zip(text_law(target.__getitem__, length), found.tolist(), strict=True):
        survival = by_start(CHAINS["block"].survival, target.__getitem__, head, text)
        yield computed(each, least_calls(survival, k, length) if limited else calls(survival, k, length)[0])


def heads(effort: Effort) -> Iterator[Case]:
    """The head of B7/starts, then random ones."""
    yield certain_head((1, 2, 0, 0), 2)
    yield from random_heads(effort, ((2, 3, 1), (2, 3, 2), (2, 4, 2), (3, 2, 2)), 3)


def certain_head(right: Sequence[int], k: int) -> Case:
    """A target that always says 0, and a head that is right on so many drafts of the call from each start."""
    sure, wrong = (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))
    drawn = random_heads(Effort(), ((2, len(right), k),), 1)
    case = next(iter(drawn))
    target = dict.fromkeys(case["target"], sure)
    head = {(start, run): sure if len(run) < right[len(start)] else wrong for start, run in case["head"]}
    return {"target": target, "head": head, "k": k, "length": len(right)}


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


P12_L = Entry(
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
    calculators=public("prediction.trace_limits", "least_calls fewest_calls"),
    without={
        "search": "the cases are enumerated in fractions",
        "simulation": "decoders for heads are held to §10 in the tests; whole policies are enumerated here",
    },
)
