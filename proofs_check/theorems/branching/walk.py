"""B2: the weight of random prefixes as a walk (many-to-one), Lorden's inequality, and two closed forms."""

from __future__ import annotations

from proofs_check.evidence.simulated import FOREST, TREES
from proofs_check.prelude import *
from proofs_check.theorems.branching import steps as lorden
from proofs_check.theorems.branching.branching_forms import *
from proofs_check.theorems.branching.random_pmf_trees import *
from proofs_check.theorems.branching.steps import MANY_TO_ONE, TWO_THRESHOLDS


def weights_of_depth(pmfs: Ensemble, depth: int) -> dict[Fraction, Fraction]:
    """Weights w to the expected sum of pi(v) over the prefixes of this length with pi(v) = w: every assignment."""
    trees = list(assignments(pmfs, depth))
    texts = product(trees, product(range(len(pmfs[0])), repeat=depth))
    weights = (probability(tree.__getitem__, (), text) for tree, text in texts)
    return law((weight, weight / len(trees)) for weight in weights)


def depth_cases(effort: Effort) -> Iterator[Case]:
    """Every assignment of pmfs to prefixes, depths 1 to 3."""
    for pmfs in small_ensembles():
        for depth in range(1, 4 if len(pmfs[0]) == 2 else 3):
            yield {"pmfs": pmfs, "depth": depth}
    for pmfs in random_ensembles(effort.seed, effort.pick(10, 100), 2, 3):
        yield {"pmfs": pmfs, "depth": 2}


MANY = Claim(
    "E sum over |v| = n of pi(v) f(pi(v)) = E f(W_n), as laws of the weight",
    lambda pmfs, depth: equal(weights_of_depth(pmfs, depth), many_steps(pmfs, depth)),
)
MANY_WRONG = Claim(
    "the expected number of prefixes follows the law of W_n",
    lambda pmfs, depth: equal(
        {w: part / w for w, part in weights_of_depth(pmfs, depth).items()}, many_steps(pmfs, depth)
    ),
)


def above(pmfs: Ensemble, capacity: Fraction, value: Fraction, c: Fraction) -> Compared:
    """E[X] against U(t) + P e^-t."""
    return at_most(value, sum(visits(pmfs, c).values()) + capacity * c)


EVERY_T = Claim("E[X] <= U(t) + P e^-t", above, (UNCERTAIN, MODERATE))
EVERY_T_WRONG = Claim(
    "E[X] <= U(t) + (P - 1) e^-t",
    lambda pmfs, capacity, value, c: above(pmfs, capacity - 1, value, c),
    (UNCERTAIN, MODERATE),
)

BY_DEPTH = Claim(
    "the same where all prefixes of one length share their pmf, drawn anew for each length",
    lambda pmfs, capacity, c: above(pmfs, capacity, mean_best_by_depth(pmfs, capacity), c),
)
BY_DEPTH_WRONG = Claim(
    "there E[X] <= U(t) + (P - 1) e^-t",
    lambda pmfs, capacity, c: above(pmfs, capacity - 1, mean_best_by_depth(pmfs, capacity), c),
)


def forms_hold(pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real) -> Iterator[Compared]:
    """E[X] against both forms."""
    mu, mu2 = moments(pmfs)
    yield at_most(value, lorden_form(mu, mu2, capacity))
    yield at_most(value, best_t_form(mu, mu2, capacity))


FORMS = Claim("E[X] <= log P/mu + mu2/mu^2 and E[X] <= (log(P mu) + 1)/mu + K", forms_hold, (UNCERTAIN,))
FORMS_WRONG = Claim(
    "E[X] <= log P/mu + K, the prefixes below the threshold forgotten",
    lambda pmfs, capacity, value: at_most(value, lorden_form(*moments(pmfs), capacity) - 1),
    (UNCERTAIN,),
)


def walk_library(mu: Real, mu2: Real, capacity: Real, shift: int = 0) -> Iterator[Compared]:
    """The library's two forms; `shift` is the control's."""
    yield computed(library_form(mu, mu2, capacity, "lorden"), lorden_form(mu, mu2, capacity + shift))
    yield computed(library_form(mu, mu2, capacity, "best_t"), best_t_form(mu, mu2, capacity + shift))


B2 = Entry(
    id="B2",
    title="Branching bound by Lorden's inequality",
    kind="upper bound",
    plain="E[X] <= U(t) + P e^-t for every t, and U(t) <= t/mu + K with K = mu2/mu^2 - 1; hence "
    "E[X] <= log P/mu + mu2/mu^2 and, for P mu >= 1, E[X] <= (log P + log mu + 1)/mu + K",
    latex=r"E[X] \le U(t) + P e^{-t},\quad U(t) \le \tfrac{t}{\mu} + K,\quad E[X] \le \frac{\log P}{\mu} + "
    r"\frac{\mu_2}{\mu^2},\quad E[X] \le \frac{\log P + \log\mu + 1}{\mu} + K",
    source=("lorden1970",),
    assumptions=(
        "the surprisals along a text sampled from the target are i.i.d. with moments mu > 0 and mu2; this holds if the "
        "conditional pmfs are i.i.d. across prefixes; prefixes off that text may depend on it and on each other",
        "the P prefixes are chosen without the target's sampling (B4)",
    ),
    calculators=("spectheory.limits.branching_bound",),
    evidence=(
        proof(
            "many-to-one along the text, Lorden's inequality by subadditivity, two choices of t",
            (*MANY_TO_ONE, *TWO_THRESHOLDS),
        ),
        exact(MANY, depth_cases, wrong=MANY_WRONG),
        exact(lorden.STEPS, lorden.step_cases, over="steps 0 to 6, t up to 12", wrong=lorden.STEPS_WRONG),
        exact(lorden.INEQUALITY, lorden.step_cases, over="steps 0 to 6, t up to 12", wrong=lorden.HALVED),
        exact(EVERY_T, threshold_cases, over="E[X] and U in fractions, 1 to 3 pmfs, P up to 6", wrong=EVERY_T_WRONG),
        exact(BY_DEPTH, shared_cases, wrong=BY_DEPTH_WRONG),
        certified(FORMS, ensemble_cases, over="E[X] in fractions, 1 to 3 pmfs, P up to 6", wrong=FORMS_WRONG),
        agreement(
            Claim("the library's two forms", walk_library),
            setting_cases,
            over="mu from 0.001 to 20, P up to 10^4",
            wrong=Claim("the library's two forms, P one too large", lambda **case: walk_library(**case, shift=1)),
        ),
        searched(FORMS, drawn_ensembles, over="1 to 3 pmfs", spaces=(ensemble_space(2, 2, 3),), wrong=FORMS_WRONG),
        searched(
            lorden.INEQUALITY,
            lorden.drawn_steps,
            over="laws on 2 to 5 steps",
            spaces=(lorden.step_space(3),),
            wrong=lorden.HALVED,
        ),
        simulated(
            "best trees of six families of random pmfs, P = 1, 8, 64",
            FOREST,
            stated("B2"),
            wrong=("half of it", instead(stated("B2"), lambda _, bound: bound / 2)),
            trials=TREES,
        ),
    ),
)
