"""C1: tokens per call, speed-up and operations of a chain whose drafts are accepted independently at one rate."""

from __future__ import annotations

from proofs_check.prelude import *
from proofs_check.theorems.time.closed_forms import speedup, tokens
from spectheory.cost import (
    best_chain_length,
    iid_operations,
    iid_speedup,
    iid_tokens_per_call,
    required_acceptance,
    required_ratio,
)
from spectheory.errors import SettingError

LONGEST = 6
"""The longest chain of the claims about all lengths up to one."""


def played_out(alpha: Fraction, k: int) -> Fraction:
    """Mean tokens of a call over all 2^k patterns of drafts that would and would not be accepted."""
    patterns = product((True, False), repeat=k)
    chances = ((each, math.prod([alpha if right else 1 - alpha for right in each])) for each in patterns)
    return total(chance * ((*each, False).index(False) + 1) for each, chance in chances)


def inequalities(alpha: Real, c: Real) -> Iterator[Compared]:
    """What C1 says of chains up to :data:`LONGEST`: unimodal, faster only if alpha > c, never fewer operations."""
    rates = [speedup(alpha, k, c) for k in range(LONGEST + 1)]
    for i, j, m in combinations(range(LONGEST + 1), 3):
        yield at_most(smaller(rates[i], rates[m]), rates[j])
    for k in range(1, LONGEST + 1):
        yield at_most(rates[k], 1 + larger(0, alpha - c) * k / (k * c + 1))
        yield at_most(tokens(alpha, k), k * c + k + 1)
    yield equal(rates[1] - 1, (alpha - c) / (1 + c))


def rates(alpha: Fraction, c: Fraction) -> Iterator[Compared]:
    """The library's forward formulas against fractions, and its best length against all of them."""
    for k in (1, 2, LONGEST):
        yield computed(iid_tokens_per_call(float(alpha), k), tokens(alpha, k))
        yield computed(iid_speedup(float(alpha), k, float(c)), speedup(alpha, k, c))
        yield computed(iid_operations(float(alpha), k, float(c)), (k * c + k + 1) / tokens(alpha, k))
    best = best_chain_length(float(alpha), float(c), LONGEST)
    yield equal(speedup(alpha, best, c), max(speedup(alpha, k, c) for k in range(1, LONGEST + 1)))


def inverses(alpha: Fraction, c: Fraction) -> Iterator[Compared]:
    """What the speed-up of alpha and c requires is alpha and c, at one k and the best one; c = 0 asks no ratio."""
    best = max(speedup(alpha, k, c) for k in range(1, LONGEST + 1))
    for k in (1, 3, LONGEST):
        wanted = float(speedup(alpha, k, c))
        yield computed(required_acceptance(wanted, k, float(c)), alpha)
        if c > 0:
            yield computed(required_ratio(wanted, float(alpha), k), c)
    yield computed(required_acceptance(float(best), None, float(c), k_max=LONGEST), alpha)
    if c > 0:
        yield computed(required_ratio(float(best), float(alpha), None, k_max=LONGEST), c)


def solvable(wanted: Fraction, k: int, c: Fraction) -> Compared:
    """Some alpha gives the speed-up iff 1 <= S(kc+1) <= k+1."""
    try:
        required_acceptance(float(wanted), k, float(c))
        is_met = 1
    except SettingError:
        is_met = 0
    return equal(is_met, int(1 <= wanted * (k * c + 1) <= k + 1))


def ratios(effort: Effort, *, inside: bool = False) -> Iterator[Case]:
    """Grids of alpha in [0, 1] and c in [0, 1.5]; `inside` leaves out alpha = 0 and 1."""
    parts = effort.pick(7, 12)
    for i, j in product(range(int(inside), parts + 1 - int(inside)), range(parts + 1)):
        yield {"alpha": Fraction(i, parts), "c": Fraction(3 * j, 2 * parts)}


def asked_speedups(effort: Effort) -> Iterator[Case]:
    """Speed-ups below, in and above what a chain can have; none at the very limits, which floats blur."""
    for k, j, i in product(range(1, 5), range(4), range(1, effort.pick(16, 40))):
        wanted, c = Fraction(5 * i, 16), Fraction(j, 5)
        if wanted * (k * c + 1) not in (1, k + 1):
            yield {"wanted": wanted, "k": k, "c": c}


def any_rate() -> Any:
    """Any alpha and c."""
    share = st.integers(1, 10**6).flatmap(lambda n: st.integers(0, n).map(lambda i: Fraction(i, n)))
    return st.fixed_dictionaries({"alpha": share, "c": share.map(lambda c: 2 * c)})


def rate_space() -> Space:
    """Every alpha in (0, 1) and c > 0."""

    def floats(x: NDArray[np.float64]) -> Case:
        return {"alpha": float(1 / (1 + np.exp(-x[0]))), "c": float(np.exp(np.clip(x[1], -40, 5)))}

    return Space(2, floats)


GEOMETRIC: tuple[Step, ...] = (
    same(
        "a call gives i + 1 tokens with probability alpha^i (1 - alpha), i < k, and k + 1 with alpha^k; one more draft "
        "turns the term (k+1) alpha^k into (k+1) alpha^k (1 - alpha) + (k+2) alpha^(k+1) and so adds alpha^(k+1) to "
        "the mean, which is 1 without drafts: it is tau(k), the sum of alpha^i over i = 0..k",
        lambda alpha, k: (
            (k + 1) * alpha**k * (1 - alpha) + (k + 2) * alpha ** (k + 1) - (k + 1) * alpha**k,
            alpha ** (k + 1),
        ),
        integers=("k",),
    ),
    same(
        "the sum telescopes: if (1 - alpha) tau(k) = 1 - alpha^(k+1), then (1 - alpha)(tau(k) + alpha^(k+1)) = "
        "1 - alpha^(k+2)",
        lambda alpha, k: ((1 - alpha ** (k + 1)) + (1 - alpha) * alpha ** (k + 1), 1 - alpha ** (k + 2)),
        integers=("k",),
    ),
    same(
        "one draft has the speed-up S(1) = 1 + (alpha - c)/(1 + c), above 1 iff alpha > c",
        lambda alpha, c: ((1 + alpha) / (1 + c), 1 + (alpha - c) / (1 + c)),
    ),
    valid(
        "tau(k) <= 1 + k alpha, by induction: the next power a alpha, 0 <= a <= 1, is at most alpha",
        lambda tau, a, alpha, k: at_most(tau + a * alpha, 1 + (k + 1) * alpha),
        lambda tau, a, alpha, k: [*shares(a, alpha), tau <= 1 + k * alpha],
    ),
    valid(
        "so if alpha <= c no chain is faster than plain decoding: tau(k) <= 1 + k alpha <= 1 + kc",
        lambda tau, alpha, c, k: at_most(tau / (k * c + 1), 1),
        lambda tau, alpha, c, k: [alpha >= 0, alpha <= c, k >= 0, tau <= 1 + k * alpha],
    ),
)
"""Tokens per call, and when some k pays."""

UNIMODAL: tuple[Step, ...] = (
    same(
        "with a = alpha^(k+1): S(k+1) - S(k) has the sign of d(k) = a(kc+1) - c tau(k)",
        lambda tau, a, c, k: (
            (tau + a) / ((k + 1) * c + 1) - tau / (k * c + 1),
            (a * (k * c + 1) - c * tau) / (((k + 1) * c + 1) * (k * c + 1)),
        ),
    ),
    same(
        "d(k+1) - d(k) = -(1 - alpha) alpha^(k+1) ((k+1)c + 1)",
        lambda tau, a, alpha, c, k: (
            (alpha * a * ((k + 1) * c + 1) - c * (tau + a)) - (a * (k * c + 1) - c * tau),
            -(1 - alpha) * a * ((k + 1) * c + 1),
        ),
    ),
    valid(
        "which is never positive, so once d(k) <= 0 all later d are: S is unimodal in k",
        lambda a, alpha, c, k: at_most(-(1 - alpha) * a * ((k + 1) * c + 1), 0),
        lambda a, alpha, c, k: [*shares(a, alpha), c >= 0, k >= 0],
    ),
    same(
        "with alpha = 1, d(k) = (kc+1) - c(k+1) = 1 - c for every k: S rises without end if c < 1",
        lambda c, k: ((k * c + 1) - c * (k + 1), 1 - c),
    ),
    valid(
        "with c = 0, d(k) = alpha^(k+1): S never falls",
        lambda tau, a, c, k: at_least(a * (k * c + 1) - c * tau, a),
        lambda tau, a, c, k: [c == 0, a >= 0],
    ),
)
"""Unimodality in k."""

INVERSE: tuple[Step, ...] = (
    valid(
        "tau(k+1) = alpha tau(k) + 1 is within 1..k+2 if tau(k) is within 1..k+1",
        lambda tau, alpha, k: (at_least(alpha * tau + 1, 1), at_most(alpha * tau + 1, k + 2)),
        lambda tau, alpha, k: [*shares(alpha), tau >= 1, tau <= k + 1],
    ),
    valid(
        "tau rises strictly with alpha: if alpha < beta and tau(alpha) <= tau(beta), then alpha tau(alpha) + 1 is "
        "below beta tau(beta) + 1 by beta - alpha at least",
        lambda tau, up, alpha, beta: at_least(beta * up - alpha * tau, beta - alpha),
        lambda tau, up, alpha, beta: [alpha >= 0, beta >= alpha, tau >= 1, up >= tau],
    ),
    cited("a continuous function takes every value between those at 0 and 1, here 1 and k+1", "Bolzano's theorem"),
    in_words(
        "S = tau/(kc+1) solved for c is (tau/S - 1)/k", lambda tau, S, k: (tau / (k * ((tau / S - 1) / k) + 1), S)
    ),
    valid(
        "and S falls in c: any larger c gives less",
        lambda tau, c, e, k: at_most(tau / (k * e + 1), tau / (k * c + 1)),
        lambda tau, c, e, k: [tau > 0, k > 0, c >= 0, e >= c],
    ),
    valid(
        "operations: a call costs the draft kc and the target k+1 tokens, so with tau <= k+1 the ratio (kc+k+1)/tau to "
        "plain decoding is at least 1",
        lambda tau, c, k: at_least((k * c + k + 1) / tau, 1),
        lambda tau, c, k: [tau >= 1, tau <= k + 1, c >= 0, k >= 1],
    ),
)
"""The inverse, and operations."""

PLAYED = Claim("the mean over all patterns is the sum of alpha^i, i = 0..k", lambda alpha, k: equal(
    played_out(alpha, k), tokens(alpha, k)))  # fmt: skip
NO_BONUS = Claim("the mean over all patterns is the sum of alpha^i, i = 0..k-1", lambda alpha, k: equal(
    played_out(alpha, k), tokens(alpha, k - 1)))  # fmt: skip

ALL_LENGTHS = Claim(
    f"unimodal in k, above 1 only if alpha > c, and never fewer operations, k up to {LONGEST}", inequalities
)

TWO_PAY = Claim(
    "two drafts pay wherever alpha >= c",
    lambda alpha, c: at_least(speedup(alpha, 2, c), 1),
    (Assumption("alpha >= c", lambda alpha, c: alpha >= c),),
)


# C1's limits: calls of different acceptance rates are not calls of the mean rate.


def mixture(alphas: Sequence[Real], k: int) -> Real:
    """Tokens per call where every call has one of these rates, each as often."""
    return sum(tokens(alpha, k) for alpha in alphas) / len(alphas)


def mixtures(effort: Effort) -> Iterator[Case]:
    """First with the shortest chain and the simplest pair of rates."""
    for k, parts in product(range(1, 5), range(1, effort.pick(10, 20) + 1)):
        for low, high in combinations(range(parts + 1), 2):
            yield {"alphas": (Fraction(low, parts), Fraction(high, parts)), "k": k}


AT_THE_MEAN = Claim(
    "tokens per call of a mixture are at most those at the mean rate",
    lambda alphas, k: at_most(mixture(alphas, k), tokens(sum(alphas) / len(alphas), k)),
)
JENSEN = Claim(
    "tokens per call of a mixture are at least those at the mean rate",
    lambda alphas, k: at_least(mixture(alphas, k), tokens(sum(alphas) / len(alphas), k)),
)

C1 = Entry(
    id="C1",
    title="Speed-up of a chain under i.i.d. acceptances",
    kind="identity",
    plain="tokens per call are the sum of alpha^i, i = 0..k; the speed-up is that over kc+1: unimodal in k, above "
    "1 for some k iff alpha > c; operations per token are kc+k+1 over the tokens per call, at least 1; some alpha "
    "gives S iff 1 <= S(kc+1) <= k+1",
    latex=r"\tau=\sum_{i=0}^k\alpha^i,\quad S(k)=\frac{\tau}{kc+1},\quad \max_k S>1\iff\alpha>c,\quad "
    r"\frac{k\hat c+k+1}{\tau}\ge1",
    source=("leviathan2023",),
    assumptions=(
        "acceptances are independent, each of probability alpha",
        "a draft step costs c target steps, verifying k+1 tokens costs one",
    ),
    calculators=public(
        "cost", "best_chain_length iid_operations iid_speedup iid_tokens_per_call required_acceptance required_ratio"
    ),
    evidence=(
        proof("the geometric sum and when a draft pays, for every k", GEOMETRIC),
        proof("unimodal in k, by the sign of one more draft's gain", UNIMODAL),
        proof("the inverses, and that operations are never saved", INVERSE),
        exact(
            PLAYED,
            lambda effort: (
                {"alpha": Fraction(i, 8), "k": k} for i, k in product(range(9), range(1, effort.pick(7, 11)))
            ),
            over="alpha in eighths, k up to 6",
            wrong=NO_BONUS,
        ),
        exact(ALL_LENGTHS, ratios, over="alpha in sevenths, c in steps of 3/14 up to 3/2", wrong=TWO_PAY),
        agreement(
            Claim("the library's formulas, and its best length by brute force", rates),
            ratios,
            over="alpha in sevenths, c in steps of 3/14 up to 3/2",
            wrong=Claim(
                "a call costs one target step besides one draft step",
                lambda alpha, c: computed(iid_speedup(float(alpha), 2, float(c)), tokens(alpha, 2) / (c + 1)),
            ),
        ),
        agreement(
            Claim("required acceptance and required ratio undo the speed-up", inverses),
            lambda effort: ratios(effort, inside=True),
            over="alpha in sevenths but 0 and 1, c in steps of 3/14 up to 3/2",
            wrong=Claim(
                "the required acceptance is that of one draft, (1+c)S - 1",
                lambda alpha, c: computed(
                    required_acceptance(float(speedup(alpha, 2, c)), 2, float(c)), (1 + c) * speedup(alpha, 2, c) - 1
                ),
            ),
        ),
        agreement(
            Claim("the library finds an alpha iff 1 <= S(kc+1) <= k+1", solvable),
            asked_speedups,
            over="S in steps of 5/16, k up to 4, c up to 3/5",
            wrong=Claim(
                "some alpha gives any speed-up from 1 to k+1",
                lambda wanted, k, c: equal(solvable(wanted, k, c).left, int(1 <= wanted <= k + 1)),
            ),
        ),
        searched(ALL_LENGTHS, any_rate, spaces=(rate_space(),), wrong=TWO_PAY),
    ),
)

C1_MIXTURE = Entry(
    id="C1/mixture",
    title="The i.i.d. formula at the mean rate of a mixture",
    kind="refuted",
    plain="where alpha is constant within calls and mixed across them, tokens per call are at most the sum of "
    "powers of the mean alpha (they are at least that: alpha .5 and .9, k = 4, gives 3.016, not 2.773)",
    latex=r"\mathbb E\sum_{i\le k}A^i \le \sum_{i\le k}(\mathbb E A)^i",
    assumptions=("a call's acceptances are independent given its rate",),
    evidence=(
        counterexample(AT_THE_MEAN, mixtures, true=JENSEN),
        counterexample(
            AT_THE_MEAN,
            lambda effort: [{"alphas": (Fraction(1, 2), Fraction(9, 10)), "k": 4}],
            over="rates .5 and .9, k = 4: 3.016 against 2.773",
            true=JENSEN,
        ),
    ),
)
