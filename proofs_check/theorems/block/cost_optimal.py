"""B10: the least cost of a decoding that pays for each drafted token and may stop drafting after any of them."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import Texts
from proofs_check.agreement.path_cases import random_chains
from proofs_check.prelude import *
from proofs_check.proofs.path_proofs import PRICED
from proofs_check.twins.block_values import Problem, drop, fewest_calls, going_on, problem, texts
from proofs_check.twins.cost_optimal import by_certain_stops, by_programmes, cost_optimal, less
from spectheory.limits import least_decoding_cost
from spectheory.prediction.adaptive import least_seconds_of_any_rule
from spectheory.verification.by_start import along_calls, log_ratio

SIZES = ((2, 3, 1), (2, 3, 2), (2, 4, 2), (3, 2, 2))
SOLVED = Fraction(1, 10**9)
"""What a linear programme, solved in floats, may be off."""


def priced(least: int = 0, rounds: int = 4, sizes: Any = SIZES) -> Callable[[Effort], Iterator[Case]]:
    """Random models of any order, zeros included, with random prices of a drafted token, up to 6/5."""

    def draw(effort: Effort) -> Iterator[Case]:
        """Random models of any order, zeros included, with random prices of a drafted token, up to 6/5."""
        rng = random.Random(f"prices {effort.seed}")
        for case in random_chains(effort, sizes, rounds):
            yield {**case, "price": Fraction(rng.randint(least, 12), 10)}

    return draw


def decoding(target: Table, draft: Table, k: int, length: int, price: Fraction) -> Problem:
    """The decoding of a case; every other length ends at the token 0 too."""
    return replace(problem(target, draft, k, length, 0 if length % 2 else None), price=price)


def near(value: Any, exact: Fraction) -> Compared:
    """A solver's optimum and the exact one."""
    return at_most(abs(Fraction(value) - exact), SOLVED)


def optimal(value: Callable[[Problem], Any], fresh: bool = True, **case: Any) -> Iterator[Compared]:
    """The least cost by one programme over all decisions of a decoding."""
    given = decoding(**case)
    yield near(fewest_calls(given, fresh=fresh), Fraction(value(given)(())))


def stepwise(falling: bool, **case: Any) -> Iterator[Compared]:
    """V by a programme at each text."""
    given = decoding(**case)
    yield near(by_programmes(given, falling=falling)(()), cost_optimal(given)(()))


def falls(most: Fraction, **case: Any) -> Iterator[Compared]:
    """min(c, 1) <= D <= 1 at every text that goes on."""
    given = decoding(**case)
    fall = drop(given, cost_optimal(given))
    for text in going_on(given):
        yield at_most(min(case["price"], Fraction(1)), fall(text))
        yield at_most(fall(text), most)


def library(extra: Fraction, target: Table, draft: Table, k: int, length: int, price: Fraction) -> Iterator[Compared]:
    """The library's value."""

    def by_depth(table: Table) -> list[Any]:
        tokens = len(table[()])
        return [
            np.array([floats(table[run]) for run in product(range(tokens), repeat=n)]).reshape((tokens,) * (n + 1))
            for n in range(length)
        ]

    given = replace(problem(target, draft, k, length, None), price=price)
    exact_value = cost_optimal(replace(given, price=price + extra))(())
    yield computed(least_decoding_cost(by_depth(target), by_depth(draft), k, float(price)), exact_value)


# Along texts: a bound from two numbers per token


def least_of_text(given: Problem, text: Prefix, ratio: Callable[[Fraction, Fraction], Fraction]) -> Fraction:
    """X(0) of a text: V of a model that outputs it for certain and drafts its tokens with q/p, but any acceptance."""
    left = [Fraction(0)] * (len(text) + 1)
    for n in reversed(range(len(text))):
        k, best, terms = given.drafts(text[:n]), left[n + 1], list[tuple[Fraction, Fraction]]()
        falls_of, products = [], [Fraction(1)]
        for i in range(min(k, len(text) - n - 1)):
            p, q = given.target(text[: n + i])[text[n + i]], given.draft_from(text[:n])(text[: n + i])[text[n + i]]
            products.append(products[-1] * ratio(p, q))
            falls_of.append(best - min(best, left[n + i + 2]))
            best = min(best, left[n + i + 2])
        for i in reversed(range(len(falls_of))):
            terms = [(gain, min(slope, gain * products[i + 1])) for gain, slope in terms]
            terms.append((falls_of[i], falls_of[i] * products[i + 1]))
            terms = less(terms, (given.price or 0) * products[i])
        left[n] = 1 + left[n + 1] - total(min(each) for each in terms)
    return left[0]


Ratio = Callable[[Fraction, Fraction], Fraction]


def likelihood(p: Fraction, q: Fraction) -> Fraction:
    """q/p of a token that the target outputs."""
    return q / p


def at_most_one(p: Fraction, q: Fraction) -> Fraction:
    """What token verification accepts."""
    return min(q / p, Fraction(1))


def mean_of_texts(ratio: Ratio, given: Problem, target: Table, length: int) -> Fraction:
    """The mean of X(0) over the target's texts."""
    law = text_law(target.__getitem__, length).items()
    return total(share * least_of_text(given, text, ratio) for text, share in law)


def below(ratio: Ratio, target: Table, draft: Table, k: int, length: int, price: Fraction) -> Iterator[Compared]:
    """The mean of the bound along texts is at most V."""
    given = replace(problem(target, draft, k, length, None), price=price)
    yield at_most(mean_of_texts(ratio, given, target, length), cost_optimal(given)(()))


def by_start(effort: Effort) -> Iterator[Case]:
    """Random models of any order; the draft is another one after each start of a call."""
    rng = random.Random(f"starts {effort.seed}")
    for case in priced(sizes=((2, 3, 1), (2, 3, 2), (2, 4, 2)))(effort):
        yield {**case, "drafts": [random_model(rng, 2, case["length"] + case["k"]) for _ in range(case["length"])]}


def below_by_start(
    ratio: Ratio, drafts: Sequence[Table], target: Table, draft: Table, k: int, length: int, price: Fraction
) -> Iterator[Compared]:
    """The mean of the bound along texts is at most the optimum of one programme, drafts by start."""
    given = replace(problem(target, draft, k, length, None), price=price)
    given = replace(given, draft_from=lambda text: drafts[len(text)].__getitem__)
    yield at_most(mean_of_texts(ratio, given, target, length), Fraction(fewest_calls(given)) + SOLVED)


def library_along(
    ratio: Ratio, target: Table, draft: Table, k: int, length: int, price: Fraction
) -> Iterator[Compared]:
    """The library's bound along texts, in the mean over the target's texts."""
    given = replace(problem(target, draft, k, length, None), price=price)
    all_texts, law = Texts(target, draft, length), text_law(target.__getitem__, length)
    columns = all_texts.trace().columns
    ratios = np.exp(np.cumsum(along_calls(columns, k, log_ratio, fill=0.0), axis=1))
    least = least_seconds_of_any_rule(ratios, all_texts.lengths, floats(1 + i * price for i in range(k + 1)))
    yield computed(floats(law.values()) @ least, mean_of_texts(ratio, given, target, length))


def by_one_coin(given: Problem) -> Callable[[Prefix], Fraction]:
    """The least cost of one draft made with the probability r of a grid, texts of two tokens."""
    p, q = given.target(()), given.draft_from(())(())
    grid = (Fraction(i, 12) for i in range(13))
    costs = (2 + (given.price or 0) * r - total(min(a, b * r) for a, b in zip(p, q, strict=True)) for r in grid)
    least = min(costs)
    return lambda _: least


def never_costs(sign: int, **case: Any) -> Iterator[Compared]:
    """D is 0 or more at every text, by a programme at each that may choose smaller masses too."""
    given = decoding(**{**case, "price": sign * case["price"]})
    value = by_programmes(given)
    for text in going_on(given):
        after = sum(float(p) * value((*text, z)) for z, p in enumerate(given.target(text)))
        yield at_most(-SOLVED, Fraction(value(text) - after))


def no_more(**case: Any) -> Iterator[Compared]:
    """The least cost by one programme is at most V."""
    given = decoding(**case)
    yield at_most(Fraction(fewest_calls(given, fresh=False)) - SOLVED, cost_optimal(given)(()))


def one_pair(value: Callable[[Problem], Any], p: Any, q: Any) -> Iterator[Compared]:
    """Texts of two tokens, one draft at 1/10: the least cost is no less than this."""
    given = replace(texts(lambda _: p, lambda _: q, 1, 2), price=Fraction(1, 10))
    yield at_most(value(given)(()), cost_optimal(given)(()))


NO_LOG, ENUMERATED = "no logarithm enters", "the cases are enumerated in fractions, and by linear programmes"
COUNTED = "every policy is in the linear programme"

B10 = Entry(
    id="B10",
    title="Cost-optimal drafting",
    kind="optimality",
    plain="a call costs 1 and a drafted token c >= 0, at most k drafts. Over all lossless fresh policies on one chain "
    "that decide after each draft, by any causal rule, coins and memory, whether to draft another: with R(x), falling "
    "along a run, the probability that drafting goes on after x, the largest masses are mu(xz) = min(p(z|wx) mu(x), "
    "Q(xz|w) R(x)), those of block verification against the law of the stopped drafts, and the least cost is V(w) = 1 "
    "+ E V(wz) - max over R of [sum mu D - c sum Q R], D(w) = V(w) - E V(wz), where min(c, 1) <= D(w) <= 1",
    latex=r"V(w) = 1 + \sum_z p(z)\,V(wz) - \max_R\Big[\sum_{i\ge1}\sum_{|x|=i} \mu^R_i(x)\,D(wx) - c\sum_x "
    r"Q(x)\,R(x)\Big],\qquad \min(c,1)\le D\le 1",
    assumptions=(
        "as for B7; c >= 0 is the same at every depth",
        "a decision to draft may read what was drafted, pmfs, memory and coins; no sample of the target",
    ),
    evidence=(
        proved_in_coq(
            "masses, drafted tokens, the recursion, the shift, min(c, 1) <= D <= 1, and every policy, for any stops "
            "with the maximum at each text",
            ("B10_masses", "B10_drafted", "B10_recursion", "B10_shift", "B10_saving", "B10_optimal"),
            wrong=("a price below 0", "not_at_a_price_below_0"),
        ),
        proof("masses, the cost of a call, the shift with stops, D between min(c, 1) and 1, every policy", PRICED),
        exact(
            Claim(
                "V is the optimum of a linear programme over all decisions to stop and to accept (joint probabilities "
                "of starts, drafts, accepted drafts and outputs, one programme for the whole decoding), to 1e-9",
                partial(optimal, cost_optimal),
            ),
            priced(),
            wrong=Claim(
                "so is the least cost of R that need not fall", partial(optimal, partial(by_programmes, falling=False))
            ),
        ),
        exact(
            Claim("V is the least cost by a linear programme for R at each text, to 1e-9", partial(stepwise, True)),
            priced(),
            wrong=Claim("without R falling along a run", partial(stepwise, False)),
        ),
        exact(
            Claim("min(c, 1) <= D <= 1 at every text", partial(falls, Fraction(1))),
            priced(),
            wrong=Claim("D <= 19/20", partial(falls, Fraction(19, 20))),
        ),
        agreement(
            Claim("the library's value", partial(library, Fraction(0))),
            priced(rounds=2),
            wrong=Claim("it is that of a price larger by 1/10", partial(library, Fraction(1, 10))),
        ),
    ),
    calculators=public("limits", "least_decoding_cost"),
    without={"simulation": COUNTED, "search": ENUMERATED},
)

B10_CERTAIN = Entry(
    id="B10/certain-stops",
    title="Cost-optimal drafting without coins",
    kind="refuted",
    plain="functions of the drafts are the best stops (coins may be strictly better: at p = (1/2, 1/2), q = (1, 0), "
    "texts of two tokens, k = 1 and c = 1/10, drafting half of the time and then accepting always costs 31/20, "
    "drafting always 8/5, never 2)",
    latex=r"R \in \{0, 1\}",
    assumptions=("as for B10; block verification against the law of the stopped drafts",),
    evidence=(
        counterexample(
            Claim("the best of all functions of the drafts costs V", partial(one_pair, by_certain_stops)),
            lambda _: cases.pairs(2, 4),
            over="by the common denominator of one pair on 2 tokens; texts of 2 tokens, one draft at 1/10",
            true=Claim("the best of all coins does", partial(one_pair, by_one_coin)),
        ),
    ),
)

B10_FREE = Entry(
    id="B10/outside",
    title="Cost-optimal drafting outside its class",
    kind="refuted",
    plain="D >= 0, and so the largest masses are best, for prices below 0 too (a free token may cost a paid draft); V "
    "is the least cost of policies that are lossless over the whole text alone",
    latex=r"D \ge 0,\qquad V(\varnothing) = \min E[\text{cost}]",
    assumptions=("as for B10 otherwise",),
    evidence=(
        counterexample(
            Claim("with prices below 0 a free token never costs, D >= 0", partial(never_costs, -1)),
            priced(1),
            true=Claim("it does not with prices above 0", partial(never_costs, 1)),
        ),
        counterexample(
            Claim("policies whose later text is not fresh cost no less", partial(optimal, cost_optimal, False)),
            priced(rounds=6, sizes=((2, 3, 1), (2, 3, 2))),
            true=Claim("they cost no more", no_more),
        ),
    ),
)

B10_TEXT = Entry(
    id="B10/text",
    title="A bound on the cost along a text, from two numbers per token",
    kind="lower bound",
    plain="let w_i be the product of the first i ratios q/p of the text's tokens from n on, and X(n) = 1 + b_0 - max "
    "of sum_i [(b_(i-1) - b_i) M_i - c w_(i-1) R_(i-1)], over R falling in [0, 1], with M_0 = 1, M_i = min(M_(i-1), "
    "w_i R_(i-1)), b_i the least of X(n+1), ..., X(n+i+1), and X = 0 from the end on: in the mean over the target's "
    "texts X(0) is at most the cost of every lossless fresh policy on one chain, whatever decides what is drafted. The "
    "price c may depend on the depth",
    latex=r"X(n) = 1 + b_0 - \max_R \sum_{i=1}^{k} \big[(b_{i-1} - b_i)\,M_i - c\,w_{n,i-1} R_{i-1}\big],\qquad b_i "
    r"= \min_{j\le i} X(n{+}j{+}1),\qquad E_x X(0) \le V(\varnothing)",
    assumptions=("as for B10; drafts may depend on the start of a call too; the text is the target's sample",),
    evidence=(
        exact(
            Claim("the mean over texts is at most V", partial(below, likelihood)),
            priced(rounds=8),
            wrong=Claim("with ratios cut at 1 too", partial(below, at_most_one)),
        ),
        exact(
            Claim(
                "drafts by start: the mean over texts is at most the optimum of one programme for the whole decoding",
                partial(below_by_start, likelihood),
            ),
            by_start,
            wrong=Claim("with ratios cut at 1 too", partial(below_by_start, at_most_one)),
        ),
        agreement(
            Claim("the library's bound", partial(library_along, likelihood)),
            priced(rounds=3),
            wrong=Claim("it has ratios cut at 1", partial(library_along, at_most_one)),
        ),
    ),
    calculators=("spectheory.prediction.adaptive.least_seconds_of_any_rule",),
    without={
        "symbolic": "given the text a call goes on after i of its tokens with some R_i and accepts i drafts with at "
        "most M_i (B10, i); E_q f = E_p[f q/p] counts its drafts; backwards induction over n, for every history",
        "simulation": COUNTED,
        "search": ENUMERATED,
    },
)
