"""§12/L: the limit of whole decodings where drafts depend on the start of their call, so that B7 does not hold."""

from __future__ import annotations

from proofs_check.agreement.path_cases import CHAINS
from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import MASSES
from proofs_check.theorems.path.head_cases import HeadTable, by_start, from_start, head_trace, heads
from proofs_check.twins import path_theorem
from proofs_check.twins.block_values import SOLVED, Goal, Problem, Start, fewest_calls, least
from proofs_check.twins.path_theorem import calls, least_calls
from spectheory.prediction import trace_limits

DRAWN = ("token", "block", "race", "poisson", "recursive", "independent")
"""Lossless rules whose chain of drafts is drawn."""


def least_of_text(name: str, target: Table, head: HeadTable, k: int, text: Prefix) -> Fraction:
    """L(0) of a text, from the survival of a rule: block verification's is the right one."""
    return least_calls(by_start(CHAINS[name].survival, target.__getitem__, head, text), k, len(text))


def policies(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """In the mean over texts no policy takes fewer calls, by a linear programme over all of them."""
    least = total(
        share * least_of_text(name, target, head, k, text)
        for text, share in text_law(target.__getitem__, length).items()
    )
    yield at_most(least, Fraction(fewest_calls(decoding(target, head, k, length))) + SOLVED)


Charges = Callable[[Pmf, Pmf, int], Any]
"""What a draft is charged by target pmf, draft pmf and token: its mean over the target's token is 0."""


def accepted_beyond_mean(p: Pmf, q: Pmf, token: int) -> Fraction:
    """min(1, q/p) less its mean 1 - TV."""
    return path_theorem.token_acceptance(p, q, token) - total(map(min, p, q))


def accepted_alone(p: Pmf, q: Pmf, token: int) -> Fraction:
    """min(1, q/p), whose mean is not 0."""
    return path_theorem.token_acceptance(p, q, token)


def charged_limit(
    of: Charges, factors: Sequence[Any], target: Model, head: HeadTable, k: int, text: Prefix
) -> Fraction:
    """L(0) of a text if a call that stops after j drafts pays the charges of drafts 1 to j + 1, times a factor each."""
    most, ahead = by_start(CHAINS["block"].survival, target, head, text), [Fraction(0)] * (len(text) + k + 2)
    for n in range(len(text) - 1, -1, -1):
        q, paid = from_start(head, text[:n]), Fraction(0)
        least: list[Fraction] = []
        law = path_theorem.accepted_law(most, n, k, len(text))
        for i in range(len(law)):
            if i < min(k, len(text) - n):
                paid += factors[i] * of(target(text[: n + i]), q(text[: n + i]), text[n + i])
            least.append(min([ahead[n + i + 1] + paid, *least[-1:]]))
        ahead[n] = 1 + total(share * each for share, each in zip(law, least, strict=True))
    return ahead[0]


def charged_policies(of: Charges, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """In the mean over texts no policy takes fewer calls than charged limits, for several factors."""
    fewest = fewest_calls(decoding(target, head, k, length))
    for factors in product((Fraction(0), Fraction(1, 2), Fraction(-1, 2)), repeat=k):
        least = total(
            share * charged_limit(of, factors, target.__getitem__, head, k, text)
            for text, share in text_law(target.__getitem__, length).items()
        )
        yield at_most(least, Fraction(fewest) + SOLVED)


def decoding(target: Table, head: HeadTable, k: int, length: int) -> Problem:
    """The decoding of a head's case."""
    return Problem(
        target.__getitem__,
        lambda text: from_start(head, text),
        lambda _: k,
        lambda text: len(text) >= length,
        len(target[()]),
    )


def attained(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """For each text the fewest calls along it that a policy can have, lossless on all texts, are L(0)."""
    given, p = decoding(target, head, k, length), target.__getitem__

    def price(text: Prefix, start: Start) -> float:
        """The probability that a text that has come so far becomes this one."""
        before = start[0]
        return float(probability(p, before, text[len(before) :])) if text[: len(before)] == before else 0.0

    for text, share in text_law(p, length).items():
        later = least(given, Goal(partial(price, text)))
        fewest = 1 + Fraction(later) / share
        yield at_most(abs(fewest - least_of_text(name, target, head, k, text)), SOLVED / share)


def along_texts(name: str, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """Along every text each rule takes so many calls or more."""
    p = target.__getitem__
    for text in text_law(p, length):
        least = least_of_text(name, target, head, k, text)
        for rule in DRAWN:
            yield at_most(least, calls(by_start(CHAINS[rule].survival, p, head, text), k, length)[0])


def library_limit(limited: bool, target: Table, head: HeadTable, k: int, length: int) -> Iterator[Compared]:
    """The library's L of each text; or block verification's calls in its place."""
    trace = head_trace(target, head, k, length)
    fewest = trace_limits.fewest_calls(trace, [k])[k]
    for text, each in zip(text_law(target.__getitem__, length), fewest.tolist(), strict=True):
        survival = by_start(CHAINS["block"].survival, target.__getitem__, head, text)
        yield computed(each, least_calls(survival, k, length) if limited else calls(survival, k, length)[0])


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
            Claim("the library's L of every text, from columns by start", partial(library_limit, True)),
            heads,
            over=f"all texts, {TOYS}",
            wrong=Claim("block verification's calls are", partial(library_limit, False)),
        ),
    ),
    calculators=public("prediction.trace_limits", "least_calls fewest_calls"),
    without={
        "search": "the cases are enumerated in fractions",
        "simulation": "decoders for heads are held to §10 in the tests; whole policies are enumerated here",
    },
)

CHARGED: tuple[Step, ...] = (
    *STEPS,
    same(
        "charges Y_j = lambda_1 + ... + lambda_(j+1) for stopping after j drafts: with S_i = P(tau >= i | text), S_0 = "
        "1, they cost sum_j (S_j - S_(j+1)) Y_j = sum_j S_j lambda_(j+1), here with two drafts and a charge for each",
        lambda S, T, x, y: ((1 - S) * x + (S - T) * (x + y) + T * (x + y), x + S * y),
    ),
    same(
        "what a call accepts up to j depends on its own drafts and on the text's first j tokens alone, so S_j does; "
        "the next token's charge f or g less its mean then costs nothing in the mean: here two tokens of p and 1 - p",
        lambda S, p, f, g: (
            S * (p * (f - (p * f + (1 - p) * g)) + (1 - p) * (g - (p * f + (1 - p) * g))),
            S - S,
        ),
    ),
)
"""Charges of mean 0 leave every policy's mean as it is."""

P12_L_ATTAINED = Entry(
    id="§12/L-attained",
    title="The limit L is attained, for each text by a rule of its own",
    kind="optimality",
    plain="for each single text some lossless fresh policy makes L(0) calls along it, its survival being S_i = sum_j "
    "(M_j - M_(j+1)) 1[j* >= i], j* the place of the least of L(n+1), ..., L(n+j+1). On other texts it may need more",
    latex=r"\min_{\text{policies}} E[\text{calls}\mid x] = L(0),\qquad S_i = \sum_j (M_j - M_{j+1})\,1[j^*(j) \ge i]",
    assumptions=P12_L.assumptions,
    evidence=(
        exact(
            Claim(
                "for every text the optimum of a linear programme over all policies, whose cost is the calls along "
                "that text alone, is L(0) to 1e-8",
                partial(attained, "block"),
            ),
            heads,
            over=TOYS,
            wrong=Claim("it is L from token verification's survival", partial(attained, "token")),
        ),
    ),
    without={
        "certified": "no logarithm enters",
        "symbolic": "S falls and is at most M, so that a call may accept less than block verification, decided by "
        "coins; with it each step of the bound is an equality along the text",
        "search": "the cases are enumerated, and by linear programmes",
        "simulation": "every policy is in the programme",
    },
)

P12_CHARGED = Entry(
    id="§12/L-charged",
    title="The limit for drafts by start with charges of mean 0",
    kind="lower bound",
    plain="L stops each call with the whole text in view. Let a call from n that stops after j drafts pay c_1 lambda_1 "
    "+ ... + c_(j+1) lambda_(j+1), lambda_i = min(1, rho) - (1 - TV) of its i-th draft along the text, c any numbers. "
    "Every lossless fresh policy pays 0 in the mean, so with L(n) = 1 + sum_i (M_i - M_(i+1)) min over j <= i of "
    "(L(n+j+1) + what is paid) the mean of L(0) over target-sampled text is a lower bound on its expected calls, for "
    "every c. It is no bound for a single text. With c = 0 it is L; the best c is to be chosen on other text",
    latex=r"L_c(n) = 1 + \sum_{i=0}^{k} (M_i - M_{i+1}) \min_{j\le i}\Big(L_c(n+j+1) + "
    r"\sum_{l\le j+1} c_l\lambda_l(n)\Big),\qquad E\,L_c(0) \le E[\text{calls}]",
    assumptions=P12_L.assumptions,
    evidence=(
        proof("charges cost a policy nothing in the mean; then L's induction", CHARGED),
        exact(
            Claim(
                "in the mean no policy needs fewer calls, by a linear programme over all of them (c of 0, 1/2, -1/2)",
                partial(charged_policies, accepted_beyond_mean),
            ),
            heads,
            over=TOYS,
            wrong=Claim("nor if min(1, rho) is charged without its mean", partial(charged_policies, accepted_alone)),
        ),
    ),
    without={
        "certified": "no calculator of the library, and no logarithm",
        "search": "the cases are enumerated in fractions",
    },
)
