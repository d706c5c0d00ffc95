"""B2: the weight of random prefixes as a walk (many-to-one), Lorden's inequality, and two closed forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from proofs_check.evidence.entries import Entry
from proofs_check.evidence.makers import agreement, certified, exact, proof, searched
from proofs_check.evidence.simulated import instead, simulated, stated
from proofs_check.evidence.simulated_settings import FOREST, TREES
from proofs_check.evidence.symbolic import Step, in_words, same, valid
from proofs_check.forms.branching_forms import (
    MODERATE,
    UNCERTAIN,
    best_t_form,
    drawn_ensembles,
    ensemble_cases,
    ensemble_space,
    excess,
    library_form,
    lorden_form,
    random_ensembles,
    setting_cases,
    small_ensembles,
)
from proofs_check.proofs import lorden
from proofs_check.statement import calculus
from proofs_check.statement.arithmetic import Real
from proofs_check.statement.claims import Case, Claim, Compared, at_most, computed, equal
from proofs_check.statement.findings import Effort
from proofs_check.twins.random_pmf_trees import Ensemble, assignments, many_steps, mean_best_by_depth, moments, visits


def algebra() -> Any:
    """Sympy, loaded when a proof runs."""
    import sympy

    return sympy


def any_model(a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Prefixes of two tokens under a target with three pmfs of its own, and the law of the text they come from."""
    f = algebra().Function("f")
    first, second = (a, 1 - a), ((b, 1 - b), (c, 1 - c))
    prefixes = sum(first[y] * second[y][z] * f(first[y] * second[y][z]) for y in (0, 1) for z in (0, 1))
    text = sum(first[y] * sum(second[y][z] * f(first[y] * second[y][z]) for z in (0, 1)) for y in (0, 1))
    return prefixes, text


def shared_by_depth(a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """As :func:`two_generations`, but all prefixes of one length share their pmf, which ties them to the text."""
    f = algebra().Function("f")
    pmfs = (((a, 1 - a), s), ((b, 1 - b), 1 - s))
    tree = walk = algebra().Integer(0)
    for (first, chance), (second, part) in product(pmfs, repeat=2):
        tree += chance * part * any_model(first[0], second[0], second[0])[0]
    law = {a: s * a, 1 - a: s * (1 - a), b: (1 - s) * b, 1 - b: (1 - s) * (1 - b)}
    for (x, share), (y, part) in product(law.items(), repeat=2):
        walk += share * part * f(x * y)
    return tree, walk


def one_generation(w: Any, a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """E of sum_y w p_y f(w p_y) over a random pmf of two tokens, and w E f(w W_1)."""
    f = algebra().Function("f")
    children = s * (w * a * f(w * a) + w * (1 - a) * f(w * (1 - a)))
    children += (1 - s) * (w * b * f(w * b) + w * (1 - b) * f(w * (1 - b)))
    law = {a: s * a, 1 - a: s * (1 - a), b: (1 - s) * b, 1 - b: (1 - s) * (1 - b)}
    return children, w * sum(part * f(w * chance) for chance, part in law.items())


def two_generations(a: Any, b: Any, s: Any) -> tuple[Any, Any]:
    """E of the sum over |v| = 2 of pi(v) f(pi(v)), over all pmfs of root and children, and E f(W_2)."""
    f = algebra().Function("f")
    pmfs = (((a, 1 - a), s), ((b, 1 - b), 1 - s))
    tree = walk = algebra().Integer(0)
    for root, *children in product(pmfs, repeat=3):
        chance = root[1] * children[0][1] * children[1][1]
        for y, z in product((0, 1), repeat=2):
            weight = root[0][y] * children[y][0][z]
            tree += chance * weight * f(weight)
    for first, second in product(pmfs, repeat=2):
        for y, z in product((0, 1), repeat=2):
            weight = first[0][y] * second[0][z]
            walk += first[1] * second[1] * weight * f(weight)
    return tree, walk


ANY_TARGET: Step = same(
    "a text sampled from the target runs through v with probability pi(v), whatever the target: sum_{|v|=n} pi(v) "
    "f(pi(v)) = E f(e^-S_n), here for two tokens and a pmf of its own at each prefix",
    any_model,
)
"""Many-to-one without any independence."""

MANY_TO_ONE: tuple[Step, ...] = (
    ANY_TARGET,
    same(
        "so for a random target, in the mean over targets; where the surprisals along the text are i.i.d., e^-S_n is "
        "W_n, a product of n independent steps, however prefixes beside the text depend on it: here all prefixes of "
        "one length share their pmf, (a, 1-a) with chance s, else (b, 1-b), and E sum_{|v|=2} pi(v) f(pi(v)) = "
        "E f(W_2)",
        shared_by_depth,
    ),
    same(
        "pmfs i.i.d. across prefixes are a case of it, by generations: below a node of weight w whose pmf is (a, 1-a) "
        "with chance s, else (b, 1-b), E sum_y w p_y f(w p_y) = w E f(w W_1) for any f >= 0; pmfs and tokens are terms "
        "of a sum, so for any number of them",
        one_generation,
    ),
    same(
        "two generations, all 8 ways to give root and children their pmfs: E sum_{|v|=2} pi(v) f(pi(v)) = E f(W_2); "
        "with f replaced by w -> E f(w W_1) the step above leads from n to n+1: E sum_{|v|=n} pi(v) f(pi(v)) = "
        "E f(W_n)",
        two_generations,
    ),
)
"""The expected weight of the prefixes of length n with some property is the chance that a text has it."""


def at_threshold(t: Any, P: Any, mu: Any, K: Any) -> Any:
    """t/mu + K + P e^-t."""
    return t / mu + K + P * algebra().exp(-t)


def slope(P: Any, mu: Any, K: Any) -> tuple[Any, Any]:
    """The derivative of t/mu + K + P e^-t, and (e^-t* - e^-t) P, t* = log(P mu)."""
    t = algebra().Symbol("t", real=True)
    best = algebra().log(P * mu)
    return calculus.slope(at_threshold(t, P, mu, K), t), P * (algebra().exp(-best) - algebra().exp(-t))


TWO_THRESHOLDS: tuple[Step, ...] = (
    valid(
        "for a set of P prefixes (i = 1 inside, 0 outside) and c = e^-t: i w <= [w >= c] w + c i; summed over all "
        "prefixes, in the mean and by many-to-one: E[X] <= sum_n P(S_n <= t) + P e^-t = U(t) + P e^-t",
        lambda w, c, i, heavy: at_most(i * w, heavy * w + c * i),
        lambda w, c, i, heavy: [w >= 0, i * (1 - i) == 0, heavy * (1 - heavy) == 0, (1 - heavy) * (w - c) <= 0, c >= 0],
    ),
    *lorden.PROOF,
    in_words(
        "at t = log P: t/mu + K + P e^-t = log P/mu + mu2/mu^2",
        lambda P, mu, mu2: (
            at_threshold(algebra().log(P), P, mu, excess(mu, mu2)),
            algebra().log(P) / mu + mu2 / mu**2,
        ),
    ),
    same(
        "the slope in t is P (e^-t* - e^-t): negative before t* = log(P mu), positive after; t* >= 0 if P mu >= 1",
        slope,
    ),
    same(
        "the value at t* is (log P + log mu + 1)/mu + K",
        lambda P, mu, K: (
            at_threshold(algebra().log(P * mu), P, mu, K),
            (algebra().log(P) + algebra().log(mu) + 1) / mu + K,
        ),
    ),
)
"""From many-to-one to the two forms."""


def weights_of_depth(pmfs: Ensemble, depth: int) -> dict[Fraction, Fraction]:
    """Weights w to the expected sum of pi(v) over the prefixes of this length with pi(v) = w: every assignment."""
    found: dict[Fraction, Fraction] = {}
    trees = list(assignments(pmfs, depth))
    for model in trees:
        for prefix in product(range(len(pmfs[0])), repeat=depth):
            weight = Fraction(1)
            for n, token in enumerate(prefix):
                weight *= model[prefix[:n]][token]
            if weight > 0:
                found[weight] = found.get(weight, Fraction(0)) + weight / len(trees)
    return found


def depth_cases(effort: Effort) -> Iterator[Case]:
    """Ensembles with depths that can be enumerated."""
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


def threshold_cases(effort: Effort) -> Iterator[Case]:
    """Ensembles with P and a threshold c = e^-t."""
    for case in ensemble_cases(effort):
        for c in (Fraction(1), Fraction(1, 2), Fraction(2, 7), Fraction(1, 8)):
            yield {**case, "c": c}


def above(pmfs: Ensemble, capacity: Fraction, value: Fraction, c: Fraction) -> Compared:
    """E[X] against U(t) + P e^-t."""
    return at_most(value, sum(visits(pmfs, c).values()) + capacity * c)


EVERY_T = Claim("E[X] <= U(t) + P e^-t", above, (UNCERTAIN, MODERATE))
EVERY_T_WRONG = Claim(
    "E[X] <= U(t) + (P - 1) e^-t",
    lambda pmfs, capacity, value, c: above(pmfs, capacity - 1, value, c),
    (UNCERTAIN, MODERATE),
)


def shared_cases(effort: Effort) -> Iterator[Case]:
    """Two pmfs, P up to 6, thresholds at powers of the probabilities."""
    for pmfs in small_ensembles():
        if len(pmfs) == 2 and UNCERTAIN.met(pmfs):
            for capacity in (1, 2, 4, 6):
                for c in (Fraction(1, 2), Fraction(1, 4), Fraction(4, 9), Fraction(2, 27)):
                    yield {"pmfs": pmfs, "capacity": capacity, "c": c}


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


def light_forgotten(pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real) -> Compared:
    """E[X] against log P/mu + K: P e^-t = 1 is missing."""
    mu, mu2 = moments(pmfs)
    return at_most(value, lorden_form(mu, mu2, capacity) - 1)


FORMS = Claim("E[X] <= log P/mu + mu2/mu^2 and E[X] <= (log(P mu) + 1)/mu + K", forms_hold, (UNCERTAIN,))
FORMS_WRONG = Claim("E[X] <= log P/mu + K, the prefixes below the threshold forgotten", light_forgotten, (UNCERTAIN,))


def library(mu: Real, mu2: Real, capacity: Real, shift: int = 0) -> Iterator[Compared]:
    """The library's two forms; `shift` is the control's."""
    yield computed(library_form(mu, mu2, capacity, "lorden"), lorden_form(mu, mu2, capacity + shift))
    yield computed(library_form(mu, mu2, capacity, "best_t"), best_t_form(mu, mu2, capacity + shift))


ENTRIES = (
    Entry(
        id="B2",
        title="Branching bound by Lorden's inequality",
        kind="upper bound",
        plain="E[X] <= U(t) + P e^-t for every t, and U(t) <= t/mu + K with K = mu2/mu^2 - 1; hence "
        "E[X] <= log P/mu + mu2/mu^2 and, for P mu >= 1, E[X] <= (log P + log mu + 1)/mu + K",
        latex=r"E[X] \le U(t) + P e^{-t},\quad U(t) \le \tfrac{t}{\mu} + K,\quad E[X] \le \frac{\log P}{\mu} + "
        r"\frac{\mu_2}{\mu^2},\quad E[X] \le \frac{\log P + \log\mu + 1}{\mu} + K",
        source=("lorden1970",),
        assumptions=(
            "the surprisals along a text sampled from the target are i.i.d. with moments mu > 0 and mu2; so they "
            "are if the conditional pmfs are i.i.d. across prefixes, but prefixes beside that text may depend on it "
            "and on each other",
            "the P prefixes are chosen without the target's sampling (B4)",
        ),
        calculators=("spectheory.limits.branching_bound",),
        evidence=(
            proof(
                "many-to-one along the text, Lorden's inequality by subadditivity, two choices of t",
                (*MANY_TO_ONE, *TWO_THRESHOLDS),
                wrong=valid(
                    "t r <= m (t + r) - r^2 leaves r <= m/2",
                    lambda t, r, m: at_most(r, m / 2),
                    lambda t, r, m: [t >= 0, r >= 0, m >= 0, t * r <= m * (t + r) - r * r],
                ),
            ),
            exact(MANY, depth_cases, over="every assignment of pmfs to prefixes, depths 1 to 3", wrong=MANY_WRONG),
            exact(lorden.STEPS, lorden.step_cases, over="steps 0 to 6, t up to 12", wrong=lorden.STEPS_WRONG),
            exact(lorden.INEQUALITY, lorden.step_cases, over="steps 0 to 6, t up to 12", wrong=lorden.HALVED),
            exact(
                EVERY_T, threshold_cases, over="E[X] and U in fractions, 1 to 3 pmfs, P up to 6", wrong=EVERY_T_WRONG
            ),
            exact(BY_DEPTH, shared_cases, over="two pmfs on 2 or 3 tokens, P up to 6", wrong=BY_DEPTH_WRONG),
            certified(FORMS, ensemble_cases, over="E[X] in fractions, 1 to 3 pmfs, P up to 6", wrong=FORMS_WRONG),
            agreement(
                Claim("the library's two forms", library),
                setting_cases,
                over="mu from 0.001 to 20, P up to 10^4",
                wrong=Claim("the library's two forms, P one too large", lambda **case: library(**case, shift=1)),
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
    ),
)
"""What this file states."""
