"""§11: draft lengths decided by the draft."""

from __future__ import annotations

from proofs_check.agreement.path_cases import constant
from proofs_check.algorithms.drafts import STOPS
from proofs_check.evidence.simulated import STOPPED
from proofs_check.forms.divergences import overlap
from proofs_check.prelude import *
from proofs_check.theorems.path.stopped_cases import (
    along,
    best_fixed,
    bounded,
    certain,
    counted,
    cut_along,
    estimates,
    library_lengths,
    library_seconds,
    library_survivals,
    mean_clairvoyant,
    priced,
    ratio,
    small,
    stopped_calls,
    supported,
    uncut,
    unweighted,
)

MODELS = "over random models of any order without stationarity, zeros included"
BY_DENOMINATOR = "first by the common denominator of one pair on 2 tokens"
FULL = "over random models of any order, whose targets can output every token"
NO_SEARCH = "the cases are enumerated in fractions"


def one_pair(
    judged: Callable[[Fraction, Fraction, Fraction], Iterator[Compared]], p: Any, q: Any
) -> Iterator[Compared]:
    """Token verification of 2 drafts, texts of 3 tokens: calls that draft 2, the lower and the upper estimate."""
    for stop in STOPS:
        asked = ("token", stop, constant(p), constant(q), 2, 3, 2)
        _, going, stopping, _ = along(ratio, *asked)
        yield from judged(counted(*asked), going, stopping)


def unbiased(mean: Fraction, going: Fraction, stopping: Fraction) -> Iterator[Compared]:
    """The estimate's mean is what is counted."""
    yield equal(going, mean)


def between(mean: Fraction, going: Fraction, stopping: Fraction) -> Iterator[Compared]:
    """What is counted lies between the two estimates."""
    yield at_most(going, mean)
    yield at_most(mean, stopping)


Drops = Callable[[Fraction, Fraction], bool]
"""Whether a drafted token is dropped, from its p and q."""


def first_token(drops: Drops, p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """Law of a call's first token: one draft, which is dropped or judged by token verification."""
    dropped = sum((b for a, b in zip(p, q, strict=True) if drops(a, b)), Fraction(0))
    kept = [Fraction(0) if drops(a, b) else min(a, b) for a, b in zip(p, q, strict=True)]
    rejected = 1 - dropped - sum(kept)
    excess = [max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
    shares = [each / sum(excess) if any(excess) else Fraction(0) for each in excess]
    return tuple(k + dropped * a + rejected * s for k, a, s in zip(kept, p, shares, strict=True))


def coin_taken_for_stop(p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """Law of a call's first token: a rejected draft is taken for a stop, and the token is drawn from p."""
    agreed = overlap(p, q)
    return tuple(min(a, b) + (1 - agreed) * a for a, b in zip(p, q, strict=True))


def by_target_sample(p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """Law of a call's first token: where the target's sample is the token 0 it is the output, else one is drafted."""
    drafted = first_token(lambda p, q: False, p, q)
    return tuple(p[0] * (x == 0) + (1 - p[0]) * share for x, share in enumerate(drafted))


def by_target_pmf(p: AnyPmf, q: AnyPmf) -> tuple[Fraction, ...]:
    """The same where the target's pmf decides whether one is drafted."""
    return tuple(p) if 2 * p[0] < 1 else first_token(lambda p, q: False, p, q)


def lossless(law: Callable[[AnyPmf, AnyPmf], tuple[Fraction, ...]], p: AnyPmf, q: AnyPmf) -> Iterator[Compared]:
    """The token is the target's."""
    yield equal(law(p, q), p)


KEPT = Claim("judged in place of dropped, it does", partial(lossless, partial(first_token, lambda p, q: False)))


P11 = Entry(
    id="§11",
    title="Chains whose length the draft decides",
    kind="identity",
    plain="let drafting stop where a function of the pmfs, the draft's or the target's, and of the tokens drafted "
    "so far says so. The output is the target's, and given the whole text the calls are independent with the "
    "rule's own survival, set to 0 from the first draft i that is not drafted along the text",
    latex=r"P(\tau \ge i \mid x) = \Big(\prod_{j\le i} a_{n,j}\Big)\, 1[\text{not stopped before } i "
    r"\text{ along the text}]",
    assumptions=(
        "whether draft i is drafted is decided by the drafts before it and the pmfs up to its own, by no sample of "
        "the target: a token once drawn is judged",
        "the text is the target's sample; given other text, the prediction is for that text as output",
    ),
    evidence=(
        exact(
            Claim(
                "the text is the target's, and given all of it the calls are independent with the survival cut "
                "where drafting stops (token, block, race, independent, argmax and greedy; a stop by the token's "
                "probability, by the largest one, by the entropy, of the draft or of the target)",
                partial(stopped_calls, cut_along),
            ),
            small,
            over=MODELS,
            wrong=Claim("with the survival of chains that always draft k", partial(stopped_calls, uncut)),
        ),
        agreement(
            Claim("the library's survivals", partial(library_survivals, cut_along)),
            small,
            over=f"all texts, {MODELS}",
            wrong=Claim("they are those of chains that always draft k", partial(library_survivals, uncut)),
        ),
        simulated(
            "calls and drafted tokens of texts by token verification, drafting stopped by each rule, on Markov chains",
            STOPPED,
            stated("§11", "§11/drafted"),
            wrong=("those of chains that always draft k", stated("§11", "§11/drafted", stop=None)),
            trials=(40_000, 400_000),
        ),
    ),
    calculators=public("drafting", "Stopped StoppingRule read_stop")
    + public("prediction.stopped", "drafted_along stopped_survival check_stops"),
    without={
        "symbolic": "the proof of §7 goes through as it stands: that a draft is judged at all depends on the "
        "drafts before it alone, which on the event tau >= i are the text",
        "search": NO_SEARCH,
    },
)

P11_DRAFTED = Entry(
    id="§11/drafted",
    title="Drafted tokens from the text",
    kind="identity",
    plain="with v(n) the expected calls from n, w_(n,j) the product of the first j ratios q/p from n on, L(n) the "
    "length drafted along the text and r(n) the most that a call drafts, the calls of a text that draft j tokens "
    "or more are in the mean over texts E sum_n v(n) w_(n,j-1) 1[L(n) >= j], and as well "
    "E sum_n v(n) 1[j <= r(n)] (1 - w_(n,L(n)) 1[L(n) < j])",
    latex=r"E[\#\{\text{calls drafting} \ge j\}] = E_x \sum_n v(n)\, w_{n,j-1}\, 1[L(n) \ge j] "
    r"= E_x \sum_n v(n)\, 1[j \le r(n)]\big(1 - w_{n,L(n)}\, 1[L(n) < j]\big)",
    assumptions=(
        "the target can output every token that the draft may draft; a ratio of a first choice is 1/p",
        "a call with m tokens to go drafts at most m - 1: r(n) is the least of that and k",
    ),
    evidence=(
        exact(
            Claim(
                "both are the mean of the drafts counted (token, block and argmax; three stopping rules)",
                partial(estimates, ratio),
            ),
            supported,
            over=FULL,
            wrong=Claim("without the ratios they are", partial(estimates, unweighted)),
        ),
        agreement(
            Claim("the library's estimates and bounds", partial(library_lengths, ratio)),
            supported,
            over=f"all texts, {FULL}",
            wrong=Claim("they have no ratios", partial(library_lengths, unweighted)),
        ),
    ),
    calculators=public("prediction.drafted_lengths", "Drafted DraftedLengths"),
    without={
        "symbolic": "one step: v(n) is a function of the text before n, and given it the ratios turn the mean over "
        "the target's text into that over the draft's",
        "simulation": "simulated with §11",
        "search": NO_SEARCH,
    },
)

P11_CERTAIN = Entry(
    id="§11/certain",
    title="Certain bounds on drafted tokens",
    kind="bounds",
    plain="a call that accepted tau drafts drafted min(tau + 1, L) or more, and L if it accepted L: so of the "
    "calls from n, P(tau >= j-1) 1[L >= j] draft j tokens or more, and P(tau = L) 1[L < j] do not; none drafts "
    "more than r(n)",
    latex=r"P(\tau \ge j-1)\,1[L \ge j] \;\le\; P(\text{drafts} \ge j) \;\le\; "
    r"1[j \le r(n)]\,\big(1 - P(\tau = L)\,1[L < j]\big)",
    assumptions=("the stop is a function of the drafts, as in §11", "r(n) as in §11/drafted"),
    evidence=(
        exact(
            Claim("both enclose the drafts counted", partial(certain, False)),
            supported,
            over=FULL,
            wrong=Claim("no call drafts more than min(tau + 1, L)", partial(certain, True)),
        ),
    ),
    calculators=("spectheory.prediction.drafted_lengths.DraftedLengths",),
    without={
        "symbolic": "each bound is an event that implies another",
        "certified": "no logarithm enters; the library's numbers are compared in §11/drafted",
        "simulation": "simulated with §11",
        "search": NO_SEARCH,
    },
)

P11_CLAIRVOYANT = Entry(
    id="§11/clairvoyant",
    title="No adaptive length beats the clairvoyant one",
    kind="lower bound",
    plain="T(n) = E_tau[min over L <= tau of cost(L) + T(n+L+1)], tau what K drafts would have accepted: "
    "whatever decides how many of at most K tokens are drafted, its mean cost of a text is at least E T(0)",
    latex=r"T(n) = E_\tau\Big[\min_{L\le\tau} t_{draft}(L) + t_{target}(L+1) + T(n+L+1)\Big]",
    assumptions=(
        "one rule, drafts from one draft; the length is a function of drafts and text so far, or random",
        "a call that drafts more costs no less",
    ),
    evidence=(
        exact(
            Claim(
                "no policy costs less: the cheapest of all functions of the drafts, after every prefix, by a "
                "dynamic programme (token, block, argmax)",
                partial(bounded, mean_clairvoyant),
            ),
            priced,
            over=f"{MODELS}; random costs of a draft pass and of a further token",
            wrong=Claim("nor less than the best fixed length", partial(bounded, best_fixed)),
        ),
        agreement(
            Claim("the library's bound", partial(library_seconds, mean_clairvoyant)),
            priced,
            over=f"all texts, {MODELS}",
            wrong=Claim("it is the cost of the best fixed length", partial(library_seconds, best_fixed)),
        ),
    ),
    calculators=("spectheory.prediction.clairvoyant.least_seconds",),
    without={
        "symbolic": "a call that drafts L' accepts min(tau, L') and costs no less than one that drafts that many; "
        "the minimum over L is taken knowing tau, and backwards induction adds the calls",
        "simulation": "every policy is enumerated",
        "search": NO_SEARCH,
    },
)

P11_UNBIASED = Entry(
    id="§11/unbiased",
    title="The estimate of drafted tokens where the draft leaves the target's support",
    kind="refuted",
    plain="the ratios' estimate of drafted tokens has the right mean at temperature 0 and with filters too (a "
    "draft that the target cannot output is in no text: the estimate by calls that go on is too low, that by calls "
    "that stop too high)",
    latex=r"E[\#\{\text{calls drafting} \ge j\}] = E_x \sum_n v(n)\, w_{n,j-1}\, 1[L(n) \ge j]",
    assumptions=("drafts drawn from q, verified as by token verification",),
    evidence=(
        counterexample(
            Claim("it is what is counted", partial(one_pair, unbiased)),
            lambda _: cases.pairs(2, 5),
            over=f"{BY_DENOMINATOR}, 2 drafts and 3 tokens",
            true=Claim("what is counted lies between the two estimates", partial(one_pair, between)),
        ),
    ),
)

P11_DROPPED = Entry(
    id="§11/dropped",
    title="Stops that are no functions of the drafts before",
    kind="refuted",
    plain="any stop is lossless (one that drops the token it has just drawn is not, nor one that looks at the target's "
    "sample or at the coins of acceptance: the tokens that stay are a selection; one that reads the target's pmf is)",
    latex=r"P(X_1 = x) = p(x)",
    assumptions=("one draft drawn from q, token verification; after a stop the next token is drawn from p",),
    evidence=(
        counterexample(
            Claim(
                "with a draft of q below 0.4 dropped the token is the target's",
                partial(lossless, partial(first_token, lambda p, q: q < Fraction(2, 5))),
            ),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=KEPT,
        ),
        counterexample(
            Claim(
                "with a draft of p below q dropped the token is the target's",
                partial(lossless, partial(first_token, lambda p, q: p < q)),
            ),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=KEPT,
        ),
        counterexample(
            Claim(
                "with a rejected draft taken for a stop the token is the target's",
                partial(lossless, coin_taken_for_stop),
            ),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=KEPT,
        ),
        counterexample(
            Claim(
                "with no draft where the target's sample, the output there, is 0 the token is the target's",
                partial(lossless, by_target_sample),
            ),
            lambda _: cases.pairs(2, 6),
            over=BY_DENOMINATOR,
            true=Claim("with no draft where its p(0) is below 1/2 it is", partial(lossless, by_target_pmf)),
        ),
    ),
)
