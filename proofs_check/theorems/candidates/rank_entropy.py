"""H: the entropy of the rank is at least KL where candidates are i.i.d., and not much more for the Poisson race."""

from __future__ import annotations

from proofs_check.algorithms import rank_laws
from proofs_check.evidence.judge import ROUNDING
from proofs_check.library import strategies
from proofs_check.prelude import *
from proofs_check.proofs.divergence_proofs import TANGENT
from proofs_check.statement import calculus
from proofs_check.statement.claims import shown
from proofs_check.theorems.candidates.rank_rules import rules_of_two
from proofs_check.twins import race_ranks
from spectheory.verification import (
    PoissonRace,
    RecursiveRejection,
    entropy_at_least_kl,
    expected_log_rank,
    poisson_rank_entropy,
    poisson_rank_entropy_given,
    poisson_rank_log_bound,
    rank_entropy,
    rank_entropy_bound,
    recursive_rank_entropies,
)

# Entropies of ranks: laws in fractions, logarithms of them in floats or certified intervals.


@dataclass(frozen=True)
class Pair:
    """A target and a draft, of fractions or of floats."""

    p: AnyPmf
    q: AnyPmf

    def __str__(self) -> str:
        return f"p = {shown(self.p)}, q = {shown(self.q)}"

    @property
    def ratios(self) -> list[tuple[Real, Real]]:
        """(p, p/q) of the tokens that the target can say; the draft must not lack one."""
        return [(a, a / b) for a, b in zip(self.p, self.q, strict=True) if a > 0]

    @property
    def odds(self) -> list[tuple[Real, Real]]:
        """(p, g), g the sum of (q_y p/q - p_y)+, of these tokens."""
        pairs = list(zip(self.p, self.q, strict=True))
        return [(mass, sum(positive_part(c * b - a) for a, b in pairs)) for mass, c in self.ratios]


@dataclass(frozen=True)
class Selection:
    """Any rule that picks one of n i.i.d. candidates: a draft, and for every list of candidates a law of the rank."""

    q: AnyPmf
    choice: Sequence[AnyPmf]

    def __str__(self) -> str:
        return f"q = {shown(self.q)}, choice = {shown(self.choice)}"

    @law_of
    def joint(self) -> Iterator[tuple[tuple[int, int], Real]]:
        """P(R = r, X = x) of the rank and the token picked."""
        lists = product(range(len(self.q)), repeat=len(self.choice[0]))
        for candidates, choice in zip(lists, self.choice, strict=True):
            weight = math.prod(self.q[x] for x in candidates)
            for rank, (x, share) in enumerate(zip(candidates, choice, strict=True), 1):
                yield (rank, x), weight * share


@dataclass(frozen=True)
class Ranks:
    """A law of a rank: P(R = 1), P(R = 2), ..."""

    shares: AnyPmf

    def __str__(self) -> str:
        return shown(self.shares)


FINITE = Assumption(
    "the draft lacks no token of the target",
    lambda pair: all(b > 0 or not a for a, b in zip(pair.p, pair.q, strict=True)),
)
"""R is finite, and so is KL."""


def weighed(weight: Real, x: Real) -> Real:
    """The weighted log x, 0 without weight; of fractions an interval at the precision in force."""
    if not weight:
        return 0
    if isinstance(weight, float) or isinstance(x, float):
        return weight * math.log(x)
    return interval(Fraction(weight)) * log(interval(Fraction(x)))


def entropy(law: Iterable[Real]) -> Real:
    """The sum of -p log p."""
    return -sum(weighed(share, share) for share in law)


def divergence(pair: Pair) -> Real:
    """KL, the sum of p log(p/q)."""
    return sum(weighed(a, ratio) for a, ratio in pair.ratios)


def geometric(weight: Real, g: Real) -> Real:
    """The weighted entropy of the geometric law of success 1/(1 + g): (1+g) log(1+g) - g log g."""
    return weighed(weight * (1 + g), 1 + g) - weighed(weight * g, g)


def poisson_given(pair: Pair) -> Real:
    """R1: H(R|X), the mean of geometric laws' entropies."""
    return sum(geometric(mass, g) for mass, g in pair.odds)


def poisson_law(pair: Pair, ranks: int) -> list[Real]:
    """R1: P(R = r), r = 1..ranks."""
    return [sum(mass * g ** (r - 1) / (1 + g) ** r for mass, g in pair.odds) for r in range(1, ranks + 1)]


def poisson_beyond(pair: Pair, ranks: int) -> list[tuple[Real, Real]]:
    """R1: (P(X = x, R > ranks), g): given these, R - ranks is geometric as R was."""
    return [(mass * (g / (1 + g)) ** ranks, g) for mass, g in pair.odds]


def poisson_entropy(pair: Pair, ranks: int) -> tuple[Real, Real]:
    """R1: two ends around H(R), closer with more ranks: beyond them, H(R|X) and the geometric law of the same mean."""
    law, tail = poisson_law(pair, ranks), poisson_beyond(pair, ranks)
    beyond = sum(mass for mass, _ in tail)
    lumped = entropy([*law, beyond])
    if not beyond:
        return lumped, lumped
    mean = sum(mass * g for mass, g in tail) / beyond
    return lumped + sum(geometric(mass, g) for mass, g in tail), lumped + geometric(beyond, mean)


def poisson_log_rank(pair: Pair, ranks: int) -> tuple[Real, Real]:
    """R1: two ends around E log R: beyond, log R is at least log(ranks + 1), given x at most the log of its mean."""
    within = sum(weighed(share, Fraction(r)) for r, share in enumerate(poisson_law(pair, ranks), 1))
    tail = poisson_beyond(pair, ranks)
    low = weighed(sum(mass for mass, _ in tail), Fraction(ranks + 1))
    return within + low, within + sum(weighed(mass, ranks + 1 + g) for mass, g in tail)


def log_bound(pair: Pair) -> Real:
    """The sum of p log(1 + p/q)."""
    return sum(weighed(mass, 1 + ratio) for mass, ratio in pair.ratios)


def two(shares: AnyPmf) -> Real:
    """The logarithm of 2, a float where the shares are, else enclosed at the precision in force."""
    return math.log(2) if any(isinstance(share, float) for share in shares) else log(interval(Fraction(2)))


def rank_bound(mean: Real, unit: Real = 1) -> Real:
    """E + log(E + 1) + 1, E and the result in units of so many nats."""
    return mean / unit + log(1 + mean / unit) / unit + 1


def recursive_entropies(pair: Pair) -> tuple[Real, Real]:
    """R3: H(R|X) and H(R), to the end of the rank.

    P(R = r, X = x) = min((p - s q)+, G q), s the sum of the G so far, G = P(R > r - 1). Once s has passed all ratios
    but the largest, c, G falls by the factor 1 - b a rank, b the draft's mass of ratio c.
    """
    pairs = [(a, b) for a, b in zip(pair.p, pair.q, strict=True) if a > 0]
    largest = max(a / b for a, b in pairs)
    s: Real = Fraction(0)
    left: Real = Fraction(1)
    given: Real = 0
    whole: Real = 0
    while any(s * b < a and a / b < largest for a, b in pairs):
        law = [smaller(positive_part(a - s * b), left * b) for a, b in pairs]
        whole += entropy([sum(law)])
        given -= sum(weighed(share, share / a) for share, (a, _) in zip(law, pairs, strict=True))
        s += left
        left = sum(positive_part(a - s * b) for a, b in pairs)
    top = [(a, b) for a, b in pairs if a / b == largest]
    share = sum(b for _, b in top)
    whole += endless(left, share)
    return given + sum(endless(left * b / share, share, a) for a, b in top), whole


def endless(mass: Real, share: Real, whole: Real = 1) -> Real:
    """The sum of -w log(w/whole) over w = mass share (1-share)^j, j = 0, 1, ...: a geometric law of so much mass."""
    if not mass:
        return 0
    rest = (1 - share) / share
    return -weighed(mass, mass * share / whole) - weighed(mass * rest, 1 - share)


RANKS = 4
"""Ranks before the rest is enclosed."""


def wrapped(pairs: Iterable[Case]) -> Iterator[Case]:
    """Pairs as objects."""
    return ({"pair": Pair(**pair)} for pair in pairs)


def pairs() -> st.SearchStrategy[Case]:
    """2 to 5 tokens."""
    return strategies.exact_pairs().map(lambda pair: {"pair": Pair(**pair)})


# Proofs about the entropy of a rank: at least KL, E log R, and the entropy of any rank from its E log R.


AT_LEAST_KL: tuple[Step, ...] = (
    valid(
        "the r-th candidate is x with probability q_x, so P(R = r, X = x) <= q_x, and given x no rank is likelier than "
        "q_x/p_x, whatever the rule",
        lambda joint, p, q: at_most(joint / p, q / p),
        lambda joint, p, q: [joint >= 0, joint <= q, p > 0],
    ),
    valid(
        "so -log P(r|x) >= l = log(p_x/q_x) for every r, and the mean over r too, as P(r|x) sums to 1: rank by rank, "
        "two that have this have it together. Over x ~ p the mean of l is KL: KL <= H(R|X)",
        lambda a, b, s, t, low: at_most((a + b) * low, a * s + b * t),
        lambda a, b, s, t, low: [a >= 0, b >= 0, s >= low, t >= low],
    ),
    *TANGENT,
    same(
        "H(R) - H(R|X) is the sum of j log(j/m) over r and x, j = P(r, x), m = p_x P(r)",
        lambda j, p, w: (j * calculus.log(j / p) - j * calculus.log(w), j * calculus.log(j / (p * w))),
    ),
    valid(
        "and j log(m/j) <= j (m/j - 1) = m - j, which sum to 0: H(R|X) <= H(R)",
        lambda j, m, log_ratio: at_most(j * log_ratio, m - j),
        lambda j, m, log_ratio: [j > 0, m >= 0, log_ratio <= m / j - 1],
    ),
)
"""For every selection from i.i.d. candidates, on any number of tokens."""

LOG_RANK: tuple[Step, ...] = (
    *TANGENT,
    valid(
        "with m = E[R|x]: log r - log m <= r/m - 1, which has mean 0, here for two ranks: E[log R|x] <= log E[R|x], "
        "which is log(1 + g) for the Poisson race",
        lambda a, b, r, s, k, n, m: at_most(a * k + b * n, 0),
        lambda a, b, r, s, k, n, m: [
            a >= 0,
            b >= 0,
            a + b == 1,
            m > 0,
            m == a * r + b * s,
            k * m <= r - m,
            n * m <= s - m,
        ],
    ),
    valid(
        "(c q - p)+ <= c q, summed over y: g <= c = p_x/q_x, so E log R <= sum p log(1 + p/q)",
        lambda c, p, q: at_most(positive_part(c * q - p), c * q),
        lambda c, p, q: [c >= 0, p >= 0, q >= 0],
    ),
    same(
        "log(1 + p/q) = log(p/q) + log 2 + log((1 + q/p)/2)",
        lambda p, q: (calculus.log(1 + p / q), calculus.log(p / q) + calculus.log(2) + calculus.log((1 + q / p) / 2)),
    ),
    same(
        "by the tangent p times the last is at most (q - p)/2, which sum to 0 or less: at most KL + log 2",
        lambda p, q: (p * ((1 + q / p) / 2 - 1), (q - p) / 2),
    ),
)
"""E log R of the Poisson race."""

FROM_THE_LOG: tuple[Step, ...] = (
    *TANGENT,
    valid(
        "any law w on the ranks: the sum of P log(w/P) is at most that of w - P, 0: H(R) <= the sum of -P log w",
        lambda P, w, log_ratio: at_most(P * log_ratio, w - P),
        lambda P, w, log_ratio: [P > 0, w >= 0, log_ratio <= w / P - 1],
    ),
    same(
        "take w = r^(-s)/Z, s = 1 + 1/E, E = E log R > 0 (R = 1 for sure at E = 0): H(R) <= s E + log Z",
        lambda r, s, Z: (-calculus.log(r ** (-s) / Z), s * calculus.log(r) + calculus.log(Z)),
    ),
    same(
        "Z is the sum of r^(-s); each term from r = 2 on is at most the integral over the step before r, where the "
        "power is larger: Z <= 1 + the integral from 1 of t^(-s), which is 1 + E",
        lambda t, E: (calculus.integral(calculus.exp(-(1 + 1 / E) * calculus.log(t)), t, 1, math.inf), E),
    ),
    same(
        "so H(R) <= E + 1 + log(1 + E). In another unit of b nats, E = b F, take s = 1 + 1/F: H(R)/b <= F + 1 + "
        "log(1 + F)/b, another bound",
        lambda F, b: ((1 + 1 / F) * (b * F) / b, F + 1),
    ),
)
"""The entropy of any rank from E log R."""

WIDTH = 1e-6
"""Width asked of the library's intervals, nats."""

MANY = 60
"""The same where an interval of the library's has to be met; of small denominators less than 1e-7 is beyond."""


def no_likelier(replacement: bool, p: Any, q: Any) -> Iterator[Compared]:
    """P(R = r, X = x) <= q_x of the Poisson race and of recursive rejection, run through."""
    run = rank_laws.poisson_race(p, q, RANKS), rank_laws.recursive_rejection(p, q, 3, replacement=replacement)
    for law, rank, x in product(run, range(1, RANKS + 1), range(len(p))):
        yield at_most(law.get((rank, x), 0), q[x])


def selected(rule: Selection, *, swapped: bool = False) -> Iterator[Compared]:
    """KL <= H(R|X) <= H(R) of any selection, P the law of what it selects."""
    joint = rule.joint()
    ranks, tokens = (law((each[side], share) for each, share in joint.items()) for side in (0, 1))
    conditional = -sum(weighed(share, share / tokens[x]) for (_, x), share in joint.items() if share)
    whole = entropy(ranks.values())
    yield at_most(sum(weighed(mass, mass / rule.q[x]) for x, mass in tokens.items() if mass), conditional)
    yield at_most(*((whole, conditional) if swapped else (conditional, whole)))


def chain(pair: Pair) -> Iterator[Compared]:
    """KL <= H(R|X) <= H(R) of the Poisson race and of recursive rejection."""
    kl, low = divergence(pair), poisson_entropy(pair, RANKS)[0]
    given, whole = recursive_entropies(pair)
    yield at_most(kl, poisson_given(pair))
    yield at_most(poisson_given(pair), low)
    yield at_most(kl, given)
    yield at_most(given, whole)


def log_rank(pair: Pair, *, ranks: int = RANKS, extra: bool = True) -> Iterator[Compared]:
    """E log R <= sum p log(1 + p/q) <= KL + log 2, of the Poisson race."""
    yield at_most(poisson_log_rank(pair, ranks)[1], log_bound(pair))
    yield at_most(log_bound(pair), divergence(pair) + (two(pair.p) if extra else 0))


def units(whole: Real, mean: Real, bit: Real, less: int) -> Iterator[Compared]:
    """H <= E + log(E + 1) + 1 - less, all in nats, and all in bits."""
    yield at_most(whole, rank_bound(mean) - less)
    yield at_most(whole / bit, rank_bound(mean, bit) - less)


def of_a_law(law: Ranks, *, less: int = 0) -> Iterator[Compared]:
    """The same of any law of a rank."""
    mean = sum(weighed(share, Fraction(r)) for r, share in enumerate(law.shares, 1))
    return units(entropy(law.shares), mean, two(law.shares), less)


def of_the_race(pair: Pair, *, less: int = 0) -> Iterator[Compared]:
    """The same of the Poisson race."""
    return units(poisson_entropy(pair, RANKS)[1], poisson_log_rank(pair, RANKS)[0], two(pair.p), less)


def closed(pair: Pair, *, extra: bool = True) -> Iterator[Compared]:
    """What of the Poisson race has a closed form: KL <= H(R|X), and the bounds on the mean of log E[R|X] >= E log R."""
    yield at_most(divergence(pair), poisson_given(pair))
    yield from log_rank(pair, ranks=0, extra=extra)


def meets(enclosure: Any, ends: tuple[Real, Real]) -> Iterator[Compared]:
    """An interval of the library's is narrow and meets the one between these ends."""
    low, high, rounding = (interval(Fraction(value)) for value in (enclosure.low, enclosure.high, ROUNDING))
    yield at_most(low - rounding, ends[1])
    yield at_most(ends[0], high + rounding)
    yield at_most(high - low, interval(Fraction(WIDTH)))


def poisson_library(pair: Pair) -> Iterator[Compared]:
    """What the library says of the Poisson race."""
    target, draft = floats(pair.p), floats(pair.q)
    whole = poisson_entropy(pair, MANY)
    yield computed(poisson_rank_entropy_given(target, draft), poisson_given(pair))
    yield from meets(poisson_rank_entropy(target, draft, tolerance=WIDTH), whole)
    yield from meets(expected_log_rank(target, draft, tolerance=WIDTH), poisson_log_rank(pair, MANY))
    yield computed(poisson_rank_log_bound(target, draft), log_bound(pair))
    law = poisson_law(pair, RANKS)
    yield computed(rank_entropy(floats(law)), entropy([*law, 1 - sum(law)]))
    computed_entropy = entropy_at_least_kl(PoissonRace(), target, draft, tolerance=WIDTH)
    yield computed(computed_entropy.kl, divergence(pair))
    yield computed(computed_entropy.conditional.best, poisson_given(pair))
    yield from meets(computed_entropy.entropy, whole)


def recursive_library(pair: Pair) -> Iterator[Compared]:
    """What the library says of recursive rejection."""
    target, draft = floats(pair.p), floats(pair.q)
    computed_entropy = entropy_at_least_kl(RecursiveRejection(), target, draft)
    yield computed(computed_entropy.kl, divergence(pair))
    for value, exactly in zip(recursive_rank_entropies(target, draft), recursive_entropies(pair), strict=True):
        yield computed(value, exactly)
    for end, exactly in zip(
        (computed_entropy.conditional, computed_entropy.entropy), recursive_entropies(pair), strict=True
    ):
        yield computed(end.best, exactly)


def exchanged(pair: Pair) -> Iterator[Compared]:
    """The entropies of recursive rejection as if they were the Poisson race's."""
    target, draft = floats(pair.p), floats(pair.q)
    yield computed(recursive_rank_entropies(target, draft)[0], poisson_given(pair))
    yield computed(poisson_rank_entropy_given(target, draft), recursive_entropies(pair)[0])


def bound_library(eighths: int, *, unit: Any = "bits") -> Iterator[Compared]:
    """The library's bound from E log R, in nats, and in `unit` against bits."""
    mean = interval(Fraction(eighths, 8))
    yield computed(rank_entropy_bound(eighths / 8), rank_bound(mean))
    yield computed(rank_entropy_bound(eighths / 8, unit), rank_bound(mean * two(()), two(())))


def selections() -> st.SearchStrategy[Case]:
    """Any selection from two or three candidates on two tokens, or two on three."""
    pmfs = {size: strategies.exact_pmfs(size) for size in (2, 3)}
    rules = (
        st.builds(Selection, pmfs[tokens], st.tuples(*[pmfs[candidates]] * tokens**candidates))
        for tokens, candidates in ((2, 2), (2, 3), (3, 2))
    )
    return st.one_of(*rules).map(lambda rule: {"rule": rule})


def laws() -> st.SearchStrategy[Case]:
    """Any law on up to 7 ranks."""
    return strategies.rank_laws(7).map(lambda law: {"law": Ranks(law)})


def object_space(space: Space, wrap: Any) -> Space:
    """A space whose case is made of that of another one."""
    return Space(space.dimension, lambda x: wrap(**space.weights(x)), exactly=lambda x: wrap(**space.case(x)))


def broken(q: Any, rule: Any) -> Case:
    """A law on six ranks, each a part of what the ranks before it left."""
    shares, left = [], q[0] + q[1]
    for part, rest in (q, *rule):
        shares.append(left * part)
        left *= rest
    return {"law": Ranks((*shares, left))}


# H refuted: for distinct tokens, and for a rank that is cut, the entropy of the rank may lie far below KL.


THOUSANDTH = Fraction(1, 1000)
FAR = (1 - THOUSANDTH, THOUSANDTH)
"""p of the theory's examples."""

OF_DISTINCT = {"pair": Pair(FAR, FAR[::-1])}
"""p = (.999, .001), q = (.001, .999)."""

OF_A_CUT = {"pair": Pair(FAR, (Fraction(1, 100), Fraction(99, 100)))}
"""p = (.999, .001), q = (.01, .99)."""


def distinct(pair: Pair) -> Real:
    """H(R) of the race over distinct tokens."""
    return entropy(race_ranks.rank_law(pair.p, pair.q))


def cut(pair: Pair) -> Real:
    """H of the Poisson race's rank cut at one candidate: 1 or none. Recursive rejection's may be more or less."""
    accepted = poisson_law(pair, 1)[0]
    return entropy((accepted, 1 - accepted))


def whole(pair: Pair) -> Iterator[Compared]:
    """KL <= H(R) of whole ranks with i.i.d. candidates."""
    yield at_most(divergence(pair), poisson_entropy(pair, RANKS)[0])
    yield at_most(divergence(pair), recursive_entropies(pair)[1])


def digits(value: Real, printed: Fraction, last: Fraction) -> Iterator[Compared]:
    """The value rounds to what is printed."""
    yield at_most(interval(printed - last / 2), value)
    yield at_most(value, interval(printed + last / 2))


def printed_of_distinct(pair: Pair) -> Iterator[Compared]:
    """KL is 6.893 and H(R) .0144."""
    yield from digits(divergence(pair), Fraction(6893, 1000), Fraction(1, 1000))
    yield from digits(distinct(pair), Fraction(144, 10000), Fraction(1, 10000))


def printed_of_a_cut(pair: Pair) -> Iterator[Compared]:
    """KL is 4.59 and H .06."""
    yield from digits(divergence(pair), Fraction(459, 100), Fraction(1, 100))
    yield from digits(cut(pair), Fraction(6, 100), Fraction(1, 100))


DISTINCT = Claim(
    "KL <= H(R) of the race over distinct tokens", lambda pair: at_most(divergence(pair), distinct(pair)), (FINITE,)
)

CUT = Claim("KL <= H of the rank cut at one candidate", lambda pair: at_most(divergence(pair), cut(pair)), (FINITE,))

NEARLY_CERTAIN = {"target": [0.999, 0.001], "draft": [0.001, 0.999]}
"""The same pair, as simulators take it."""

H = Entry(
    id="H",
    title="The entropy of the rank",
    kind="bounds",
    plain="for any selection from i.i.d. draws of q with an a.s. finite rank that is not cut, KL <= H(R|X) <= "
    "H(R); for the Poisson race E log R <= sum p log(1 + p/q) <= KL + log 2; for any rank H(R) <= E log R + "
    "log(E log R + 1) + 1, all in nats or all in bits",
    latex=r"KL(P\|Q) \le H(R|X) \le H(R),\quad E\log R \le \sum_x p_x\log(1+p_x/q_x) \le KL + \log 2,\quad "
    r"H(R) \le E\log R + \log(E\log R+1) + 1",
    source=("li2018",),
    assumptions=(
        "for KL: candidates i.i.d. from the draft, R finite and not cut at some k",
        "the draft lacks no token of the target",
        "for E log R: the Poisson race (R1)",
    ),
    calculators=public(
        "verification",
        "RankInformation entropy_at_least_kl expected_log_rank poisson_rank_entropy poisson_rank_entropy_given "
        "poisson_rank_log_bound rank_entropy rank_entropy_bound recursive_rank_entropies",
    ),
    evidence=(
        proof("KL <= H(R|X) <= H(R), whatever selects, on any number of tokens", AT_LEAST_KL),
        proof("E log R <= sum p log(1 + p/q) <= KL + log 2", LOG_RANK),
        proof("H(R) <= E log R + log(E log R + 1) + 1, in any unit", FROM_THE_LOG),
        exact(
            Claim("P(R = r, X = x) <= q_x in the Poisson race and in recursive rejection", partial(no_likelier, True)),
            lambda effort: cases.all_pairs(3, effort.pick(4, 7)),
            over="every candidate, pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("in recursive rejection of distinct candidates too", partial(no_likelier, False)),
        ),
        certified(
            Claim("KL <= H(R|X) <= H(R) in the Poisson race and in recursive rejection", chain, (FINITE,)),
            lambda effort: wrapped(cases.all_pairs(3, effort.pick(4, 6))),
            over="pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("H(R) <= H(R|X)", lambda pair: at_most(*reversed(recursive_entropies(pair))), (FINITE,)),
        ),
        certified(
            Claim("E log R <= sum p log(1 + p/q) <= KL + log 2 in the Poisson race", log_rank, (FINITE,)),
            lambda effort: wrapped(cases.all_pairs(3, effort.pick(4, 6))),
            over="pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("without log 2", lambda pair: log_rank(pair, extra=False), (FINITE,)),
        ),
        certified(
            Claim("H(R) <= E log R + log(E log R + 1) + 1 in nats and in bits", of_the_race, (FINITE,)),
            lambda effort: wrapped(cases.all_pairs(3, effort.pick(4, 6))),
            over="the Poisson race, pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("without the 1", lambda pair: of_the_race(pair, less=1), (FINITE,)),
        ),
        agreement(
            Claim("the library's entropies, E log R and bounds of the Poisson race", poisson_library, (FINITE,)),
            lambda effort: wrapped(cases.all_pairs(3, effort.pick(3, 4))),
            over="pairs on 2 and 3 tokens of denominator up to 3",
            wrong=Claim("are those of recursive rejection", exchanged, (FINITE,)),
        ),
        agreement(
            Claim("the library's entropies of recursive rejection", recursive_library, (FINITE,)),
            lambda effort: wrapped(cases.all_pairs(3, effort.pick(4, 6))),
            over="pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("are those of the Poisson race", exchanged, (FINITE,)),
        ),
        agreement(
            Claim("the library's bound from E log R in nats and in bits", bound_library),
            lambda effort: all_of(eighths=range(40)),
            over="E up to 5",
            wrong=Claim("the bound in bits is that in nats", lambda eighths: bound_library(eighths, unit="nats")),
        ),
        searched(
            Claim("KL <= H(R|X) <= H(R) for any selection from two or three candidates", selected),
            selections,
            over="P the law of what is selected, 2 and 3 tokens",
            spaces=(object_space(rules_of_two(), lambda q, rule: {"rule": Selection(q, rule)}),),
            wrong=Claim("H(R) <= H(R|X)", lambda rule: selected(rule, swapped=True)),
        ),
        searched(
            Claim("KL <= H(R|X), E log R <= sum p log(1 + p/q) <= KL + log 2 in the Poisson race", closed, (FINITE,)),
            pairs,
            spaces=(object_space(pair_space(2), lambda p, q: {"pair": Pair(p, q)}),),
            wrong=Claim("without log 2", lambda pair: closed(pair, extra=False), (FINITE,)),
        ),
        searched(
            Claim("H(R) <= E log R + log(E log R + 1) + 1 in nats and in bits", of_a_law),
            laws,
            spaces=(object_space(rules_of_two(), broken),),
            wrong=Claim("without the 1", lambda law: of_a_law(law, less=1)),
        ),
        simulated(
            "entropy of ranks in Poisson races, 10,000 ranks a trial",
            (("rank-entropy", {"rule": "poisson", **TURNED, "max_rank": 99, "draws": 10_000}),),
            against_kl("lower bound"),
            wrong=("H(R) <= KL", against_kl("upper bound")),
            trials=(100, 1_000),
        ),
    ),
)

H_DISTINCT = Entry(
    id="H/distinct",
    title="The entropy of the rank for distinct tokens",
    kind="refuted",
    plain="H(R) >= KL for the race over distinct tokens (R2)",
    latex=r"H(R_{R2}) \ge KL(P\|Q)",
    assumptions=("the draft lacks no token of the target",),
    evidence=(
        counterexample(
            DISTINCT,
            lambda effort: wrapped(cases.all_pairs(2, 8)),
            over="first among the pairs on 2 tokens by their denominator",
            true=Claim("KL <= H(R) of whole ranks with i.i.d. candidates", whole, (FINITE,)),
            kind="certified",
        ),
        counterexample(
            DISTINCT,
            lambda effort: [OF_DISTINCT],
            over="at p = (.999, .001), q = (.001, .999)",
            true=Claim("KL is 6.893 and H(R) .0144 there", printed_of_distinct),
            kind="certified",
        ),
        simulated(
            "entropy of ranks in races over distinct tokens at least KL there, 10,000 ranks a trial",
            (("rank-entropy", {"rule": "race", **NEARLY_CERTAIN, "max_rank": 2, "draws": 10_000}),),
            against_kl("lower bound"),
            wrong=("it is that of R2's ranks", stated("R2")),
            trials=(100, 1_000),
        ),
    ),
    without={"exact": "logarithms enter"},
)

H_TRUNCATED = Entry(
    id="H/truncated",
    title="The entropy of a rank that is cut",
    kind="refuted",
    plain="H >= KL for the rank of i.i.d. candidates cut at k, with all later ranks as one letter",
    latex=r"H(\min(R, k+1)) \ge KL(P\|Q)",
    assumptions=("the draft lacks no token of the target",),
    evidence=(
        counterexample(
            CUT,
            lambda effort: wrapped(cases.all_pairs(2, 8)),
            over="first among the pairs on 2 tokens by their denominator, k = 1",
            true=Claim(
                "KL <= H(R|X) of the whole rank", lambda pair: at_most(divergence(pair), poisson_given(pair)), (FINITE,)
            ),
            kind="certified",
        ),
        counterexample(
            CUT,
            lambda effort: [OF_A_CUT],
            over="at p = (.999, .001), q = (.01, .99), k = 1",
            true=Claim("KL is 4.59 and H .06 there", printed_of_a_cut),
            kind="certified",
        ),
    ),
    without={"exact": "logarithms enter"},
)
