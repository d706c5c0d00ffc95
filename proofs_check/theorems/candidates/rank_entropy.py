"""H: the entropy of the rank is at least KL where candidates are i.i.d., and not much more for the Poisson race."""

from __future__ import annotations

from proofs_check.algorithms import rank_laws
from proofs_check.evidence.judge import ROUNDING
from proofs_check.library import strategies
from proofs_check.prelude import *
from proofs_check.theorems.candidates.rank_information import (
    AT_LEAST_KL,
    FINITE,
    FROM_THE_LOG,
    LOG_RANK,
    RANKS,
    Pair,
    Ranks,
    Selection,
    divergence,
    entropy,
    log_bound,
    marginals,
    pairs,
    poisson_entropy,
    poisson_given,
    poisson_law,
    poisson_log_rank,
    rank_bound,
    recursive_entropies,
    two,
    weighed,
    wrapped,
)
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

WIDTH = 1e-6
"""Width asked of the library's intervals, nats."""

MANY = 60
"""The same where an interval of the library's has to be met; of small denominators less than 1e-7 is beyond."""


def no_likelier(p: Any, q: Any) -> Iterator[Compared]:
    """P(R = r, X = x) <= q_x of the Poisson race and of recursive rejection, run through."""
    run = rank_laws.poisson_race(p, q, RANKS), rank_laws.recursive_rejection(p, q, 3, replacement=True)
    for law, rank, x in product(run, range(1, RANKS + 1), range(len(p))):
        yield at_most(law.get((rank, x), 0), q[x])


def of_distinct_tokens(p: Any, q: Any) -> Iterator[Compared]:
    """The same of the race over distinct tokens."""
    for x, mass in enumerate(p):
        for share in race_ranks.rank_given(p, q, x):
            yield at_most(mass * share, q[x])


def selected(rule: Selection, *, swapped: bool = False) -> Iterator[Compared]:
    """KL <= H(R|X) <= H(R) of any selection, P the law of what it selects."""
    joint = rule.joint()
    ranks, tokens = marginals(joint)
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


def meets(found: Any, ends: tuple[Real, Real]) -> Iterator[Compared]:
    """An interval of the library's is narrow and meets the one between these ends."""
    low, high, rounding = (interval(Fraction(value)) for value in (found.low, found.high, ROUNDING))
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
    found = entropy_at_least_kl(PoissonRace(), target, draft, tolerance=WIDTH)
    yield computed(found.kl, divergence(pair))
    yield computed(found.conditional.best, poisson_given(pair))
    yield from meets(found.entropy, whole)


def recursive_library(pair: Pair) -> Iterator[Compared]:
    """What the library says of recursive rejection."""
    target, draft = floats(pair.p), floats(pair.q)
    found = entropy_at_least_kl(RecursiveRejection(), target, draft)
    yield computed(found.kl, divergence(pair))
    for value, exactly in zip(recursive_rank_entropies(target, draft), recursive_entropies(pair), strict=True):
        yield computed(value, exactly)
    for end, exactly in zip((found.conditional, found.entropy), recursive_entropies(pair), strict=True):
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
    """Laws of a rank."""
    return strategies.rank_laws(7).map(lambda law: {"law": Ranks(law)})


def object_space(space: Space, wrap: Any) -> Space:
    """A space whose case is made of that of another one."""
    return Space(space.dimension, lambda x: wrap(**space.weights(x)), lambda x: wrap(**space.case(x)))


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
            Claim("P(R = r, X = x) <= q_x in the Poisson race and in recursive rejection", no_likelier),
            lambda effort: cases.all_pairs(3, effort.pick(4, 7)),
            over="every candidate, pairs on 2 and 3 tokens of denominator up to 4",
            wrong=Claim("in the race over distinct tokens", of_distinct_tokens),
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
            lambda effort: ({"eighths": n} for n in range(40)),
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
            over="2 to 5 tokens",
            spaces=(object_space(pair_space(2), lambda p, q: {"pair": Pair(p, q)}),),
            wrong=Claim("without log 2", lambda pair: closed(pair, extra=False), (FINITE,)),
        ),
        searched(
            Claim("H(R) <= E log R + log(E log R + 1) + 1 in nats and in bits", of_a_law),
            laws,
            over="any law on up to 7 ranks",
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
