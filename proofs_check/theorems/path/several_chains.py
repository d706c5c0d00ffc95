"""§12: the most that one call can accept of several i.i.d. chains of drafts."""

from __future__ import annotations

from proofs_check.agreement.path_cases import random_chains
from proofs_check.algorithms.lossless_calls import most_agreement
from proofs_check.prelude import *
from proofs_check.twins.list_transport import optimum
from simulations.counts import Share
from simulations.verdicts.predictions import Predicted
from spectheory.limits.several_chains import several_chain_terms, several_chains_bound

# Bounds on one call with several i.i.d. chains (§12) in fractions, and the library's against them.


Drawn = Callable[[Fraction, int], Fraction]
"""From Q and the number of chains to a bound on the probability that a chain begins with the run."""


def in_any(q: Fraction, chains: int) -> Fraction:
    """D = 1 - (1 - Q)^k."""
    return 1 - (1 - q) ** chains


def counted(q: Fraction, chains: int) -> Fraction:
    """kQ, the mean number of chains that begin with the run."""
    return chains * q


def in_one(q: Fraction, chains: int) -> Fraction:
    """Q, as if there were one chain."""
    return q


def from_runs(of: Drawn, target: Table, draft: Table, k: int, chains: int) -> Fraction:
    """Sum over depths and runs of min(P, D)."""
    runs = (run for i in range(1, k + 1) for run in product(range(len(target[()])), repeat=i))
    p, q = (partial(probability, model.__getitem__, ()) for model in (target, draft))
    return total(min(p(run), of(q(run), chains)) for run in runs)


def from_laws(target: Table, draft: Table, k: int, chains: int) -> Fraction:
    """Sum over depths of R4, over every set of runs."""
    p, q = (partial(probability, model.__getitem__, ()) for model in (target, draft))
    runs = (list(product(range(len(target[()])), repeat=i)) for i in range(1, k + 1))
    return total(optimum(tuple(map(p, each)), tuple(map(q, each)), chains) for each in runs)


def bounded(of: Drawn, target: Table, draft: Table, k: int, chains: int, **_: int) -> Iterator[Compared]:
    """No verification accepts more, by a linear programme in fractions."""
    yield at_most(
        most_agreement(target.__getitem__, draft.__getitem__, k, chains), from_runs(of, target, draft, k, chains)
    )


def by_laws(target: Table, draft: Table, k: int, chains: int, more: int = 0, **_: int) -> Iterator[Compared]:
    """Nor more than the sum of R4 for the laws of runs, of `more` chains."""
    most = most_agreement(target.__getitem__, draft.__getitem__, k, chains)
    yield at_most(most, from_laws(target, draft, k, chains + more))


def in_order(of: Drawn, target: Table, draft: Table, k: int, chains: int, **_: int) -> Iterator[Compared]:
    """R4 of laws <= sum of min(P, D) <= sum of min(P, kQ)."""
    sharp, loose = from_laws(target, draft, k, chains), from_runs(of, target, draft, k, chains)
    yield at_most(sharp, loose)
    yield at_most(loose, from_runs(counted, target, draft, k, chains))
    if chains == 1:
        yield equal(sharp, loose)


def library_terms(more: int, target: Table, draft: Table, k: int, chains: int, **_: int) -> Iterator[Compared]:
    """The library's terms along every text, their mean, and its sum of R4."""
    p, q = target.__getitem__, draft.__getitem__
    mean = Fraction(0)
    for text, share in text_law(p, k).items():
        with np.errstate(divide="ignore"):
            log_p, log_q = (np.log(floats([of(text[:i])[text[i]] for i in range(k)])) for of in (p, q))
        begun = [(probability(p, (), text[:i]), probability(q, (), text[:i])) for i in range(1, k + 1)]
        exact = [min(Fraction(1), in_any(b, chains + more) / a) for a, b in begun]
        mean += share * total(exact)
        yield from map(computed, several_chain_terms(log_p, log_q, chains).tolist(), exact)
    yield equal(mean, from_runs(in_any, target, draft, k, chains + more))
    tokens = len(target[()])
    by_target, by_draft = (
        [
            np.array([floats(of(run)) for run in product(range(tokens), repeat=i)]).reshape((tokens,) * (i + 1))
            for i in range(k)
        ]
        for of in (p, q)
    )
    yield computed(several_chains_bound(by_target, by_draft, chains), from_laws(target, draft, k, chains + more))


def pairs(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int = 2) -> Iterator[Case]:
    """Random pairs of models, for each (tokens, depth, chains)."""
    for tokens, depth, chains in sizes:
        yield from with_each(random_chains(effort, ((tokens, 1, depth),), rounds), chains=(chains,))


STEPS: tuple[Step, ...] = (
    in_words(
        "E[tau] is the sum of P(tau >= i) over i >= 1: with a, b, c for P(tau = i), each of them stands in i terms",
        lambda a, b, c: (a + 2 * b + 3 * c, (a + b + c) + (b + c) + c),
    ),
    same(
        "of k chains drawn i.i.d. none begins with the run x with probability (1 - Q)^k, Q = q(x): one does with D = 1 "
        "- (1 - Q)^k, for two chains 2 Q - Q^2",
        lambda Q: (1 - (1 - Q) ** 2, 2 * Q - Q**2),
    ),
    valid(
        "tau >= i with the output x_1..x_i happens only where a chain begins with it and where it is the text: its "
        "probability m is at most min(P, D)",
        lambda m, P, D: at_most(m, smaller(P, D)),
        lambda m, P, D: [m >= 0, m <= P, m <= D],
    ),
    valid(
        "and min(P, D) = P min(1, D/P): the sum over runs is the mean of min(1, D_i/P_i) over the target's text",
        lambda P, D: equal(smaller(P, D), P * smaller(1, D / P)),
        lambda P, D: [P > 0, D >= 0],
    ),
    cited(
        "with the runs of i tokens as letters, the k chains are k i.i.d. candidates and the text one output: tau >= i "
        "means that the output is among them, so P(tau >= i) is at most R4 for the laws of i tokens, the optimum",
        "khisti2025, hu2025; R4",
    ),
    in_words(
        "a rule attains R4, and of it the same min(P, D) bounds each run: R4 = sum of its m is at most the sum of "
        "min(P, D), here with two runs",
        lambda m, n, a, b: ((m + a) + (n + b), (m + n) + (a + b)),
    ),
    valid(
        "D <= k Q, here for k = 2 and 3: kQ gives a bound too, a weaker one",
        lambda Q: [at_most(1 - (1 - Q) ** 2, 2 * Q), at_most(1 - (1 - Q) ** 3, 3 * Q)],
        lambda Q: [Q >= 0, Q <= 1],
    ),
)
"""Depth by depth and run by run."""

SOLVED_SIZES = ((2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 2))
LARGER = (*SOLVED_SIZES, (2, 2, 5), (2, 3, 3), (3, 2, 2), (3, 2, 1))
"""Tokens, depth, chains."""
MODELS = "over random models without stationarity, zeros included"


def solvable(effort: Effort) -> Iterator[Case]:
    """Pairs small enough for a linear programme in fractions."""
    return pairs(effort, SOLVED_SIZES, 2)


def enumerated(effort: Effort) -> Iterator[Case]:
    """Pairs whose runs are enumerated."""
    return pairs(effort, LARGER)


def one_draft(scale: int, p: AnyPmf, q: AnyPmf) -> Compared:
    """R4 against the sum of min(p, D), for three chains of one draft; or of min(p, scale D/3)."""
    whole = sum(smaller(a, (1 - (1 - b) ** 3) * Fraction(scale, 3)) for a, b in zip(p, q, strict=True))
    return at_most(optimum(p, q, 3), whole)


def small_pairs(_: Effort) -> Iterator[Case]:
    """Two tokens, one draft; first by the common denominator."""
    for d in range(1, 7):
        models = [{(): (Fraction(n, d), Fraction(d - n, d))} for n in range(d + 1)]
        yield from all_of(target=models, draft=models, k=(1,), chains=(2,))


def hits(chains: int, _: str, given: Parameters) -> Iterator[Predicted]:
    """The share of outputs among three candidates is at most the bound with so many."""
    p, q = given["target"], given["draft"]
    most = sum(min(a, 1 - (1 - b) ** chains) for a, b in zip(p, q, strict=True))
    yield Predicted("P(R <= 3)", "§12/chains", Share("rank", (0, 1, 2)), most, "upper bound")


P12_CHAINS = Entry(
    id="§12/chains",
    title="The most that one call can accept of several i.i.d. chains",
    kind="upper bound",
    plain="with P_i and Q_i the probabilities of the text's first i tokens and D_i = 1 - (1 - Q_i)^c, one call "
    "with c i.i.d. chains of k drafts has E[tau] <= sum_i R4(p^(i), q^(i), c) <= E_x~p sum_i min(1, D_i/P_i), i = "
    "1..k, p^(i) and q^(i) the laws of i tokens; with one chain both are the one-call bound",
    latex=r"E[\tau] \le \sum_{i\le k} \alpha^*_c\big(p^{(i)}, q^{(i)}\big) \le "
    r"E_{x\sim p} \sum_{i\le k} \min(1, D_i/P_i),\qquad D_i = 1 - (1 - Q_i)^c",
    assumptions=(
        "the chains are drawn from q, independently of each other and of the target's sampling",
        "the output's law is the target's; drafts may be verified in any way",
        "for one call: its mean over the starts of a text does not bound several calls (§7/mean)",
    ),
    evidence=(
        proof("depth by depth and run by run; R4 for runs as letters", STEPS),
        exact(
            Claim(
                "no verification accepts more than the sum of min(P, D), by a linear programme in fractions",
                partial(bounded, in_any),
            ),
            solvable,
            over=MODELS,
            wrong=Claim("nor than with Q in place of D", partial(bounded, in_one)),
        ),
        exact(
            Claim("nor more than the sum of R4 for the laws of runs", by_laws),
            solvable,
            over=MODELS,
            wrong=Claim("nor than that of one chain less", partial(by_laws, more=-1)),
        ),
        exact(
            Claim(
                "R4 of laws <= sum of min(P, D) <= sum of min(P, cQ), the first two equal for one chain",
                partial(in_order, in_any),
            ),
            enumerated,
            over=MODELS,
            wrong=Claim("with Q in place of D", partial(in_order, in_one)),
        ),
        searched(
            Claim("R4 <= sum of min(p, D) for three chains of one draft", partial(one_draft, 3)),
            lambda: exact_pairs(3),
            over="pairs of pmfs on 2 or 3 tokens",
            spaces=(pair_space(2),),
            wrong=Claim("with two thirds of D", partial(one_draft, 2)),
        ),
        agreement(
            Claim("the library's terms along every text, and its sum of R4", partial(library_terms, 0)),
            enumerated,
            over=MODELS,
            wrong=Claim("they are those of one chain more", partial(library_terms, 1)),
        ),
        simulated(
            "the output is among three i.i.d. candidates of recursive rejection no more often",
            at(("recursive",), (TURNED, LACKING, NEAR), max_rank=3),
            partial(hits, 3),
            wrong=("the bound of one chain", partial(hits, 1)),
        ),
    ),
    calculators=public("limits", "several_chain_terms several_chains_bound")
    + public("limits.several_chains", "log_drawn"),
)

P12_ONE_CHAIN = Entry(
    id="§12/one-chain",
    title="The one-call bound for several chains",
    kind="refuted",
    plain="no verification of two i.i.d. chains accepts more in one call than E sum min(1, Q_i/P_i), the bound of "
    "one chain",
    latex=r"E[\tau] \le E_{x\sim p} \sum_i \min(1, Q_i/P_i)\quad\text{for several chains}",
    assumptions=("two chains of one draft, drawn i.i.d. from q",),
    evidence=(
        counterexample(
            Claim("the largest acceptance is at most 1 - TV", partial(bounded, in_one)),
            small_pairs,
            true=Claim("it is at most the sum of min(P, 2Q)", partial(bounded, counted)),
        ),
    ),
)
