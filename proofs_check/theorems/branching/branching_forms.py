"""The closed forms of the branching bounds (B1, B2, B2'), in any arithmetic, and the cases they are judged at.

P is the capacity, mu and mu2 the moments of the surprisal of a token, K = mu2/mu^2 - 1. Every form but B1's leading
term is cut at P, as no call predicts more tokens than it has prefixes.
"""

from __future__ import annotations

from proofs_check.library.cases import grid
from proofs_check.library.strategies import ensembles
from proofs_check.prelude import *
from proofs_check.theorems.branching.random_pmf_trees import Ensemble, mean_best, walk
from spectheory.limits.branching import Form, branching_bound


def excess(mu: Real, mu2: Real) -> Real:
    """K, what Lorden's inequality adds to t/mu."""
    return mu2 / (mu * mu) - 1


def leading(mu: Real, mu2: Real, capacity: Real) -> Real:
    """B1 without its O(1): (mu + mu2) log P/mu^2."""
    return (mu + mu2) * log(capacity) / (mu * mu)


def lorden_form(mu: Real, mu2: Real, capacity: Real) -> Real:
    """B2 at t = log P: log P/mu + mu2/mu^2."""
    return smaller(log(capacity) / mu + excess(mu, mu2) + 1, capacity)


def best_t_form(mu: Real, mu2: Real, capacity: Real) -> Real:
    """B2 at the best t: (log(P mu) + 1)/mu + K for P mu >= 1; below it 1/mu >= P, which is cut."""
    return smaller((log(larger(capacity * mu, 1)) + 1) / mu + excess(mu, mu2), capacity)


def sharp_form(mu: Real, mu2: Real, capacity: Real) -> Real:
    """B2': K + log(1 + mu (P - K))/mu for P >= K, else P."""
    spread = excess(mu, mu2)
    return smaller(spread, capacity) + log(1 + mu * positive_part(capacity - spread)) / mu


# Cases: an ensemble, P, and E[X] of the best tree, worked out in fractions where the case is made

UNCERTAIN = Assumption("some token is uncertain", lambda pmfs, **_: any(0 < share < 1 for pmf in pmfs for share in pmf))
"""mu > 0; otherwise every token is predicted and the bounds are P."""

MODERATE = Assumption(
    "no token has a probability between 0.9 and 1, whose walk takes long to enumerate",
    lambda pmfs, **_: all(share <= Fraction(9, 10) or share == 1 for pmf in pmfs for share in pmf),
)
"""What an exact walk asks for; the statement does not."""


def with_value(pmfs: Ensemble, capacity: int) -> Case:
    """A case: the pmfs, P, and E[X] of the best tree."""
    return {"pmfs": tuple(map(tuple, pmfs)), "capacity": Fraction(capacity), "value": mean_best(pmfs, capacity)}


def small_ensembles() -> Iterator[Ensemble]:
    """One pmf or two, on 2 tokens in quarters or on 3 in thirds, entries in descending order."""
    for tokens, denominator in ((2, 4), (3, 3)):
        sorted_pmfs = [pmf for pmf in grid(tokens, denominator) if list(pmf) == sorted(pmf, reverse=True)]
        yield from ([pmf] for pmf in sorted_pmfs)
        yield from (list(pair) for pair in combinations_with_replacement(sorted_pmfs, 2) if pair[0] != pair[1])


def random_ensembles(seed: int, count: int, most: int = 3, tokens: int = 4) -> Iterator[Ensemble]:
    """Random ensembles of up to `most` pmfs on 2 to `tokens` tokens, peaked ones and zeros among them."""
    rng = random.Random(seed)
    for _ in range(count):
        size = rng.randint(2, tokens)
        yield [random_pmf(rng, size, 9) for _ in range(rng.randint(1, most))]


def ensemble_cases(effort: Effort) -> Iterator[Case]:
    """Small ensembles at P = 1 to 4, random ones at P = 1 to 6."""
    for pmfs in small_ensembles():
        for capacity in range(1, effort.pick(5, 9)):
            yield with_value(pmfs, capacity)
    for number, pmfs in enumerate(random_ensembles(effort.seed, effort.pick(40, 400))):
        yield with_value(pmfs, 1 + number % 6)


def drawn_ensembles() -> st.SearchStrategy[Case]:
    """An ensemble of 1 to 3 pmfs on 2 or 3 tokens, P from 1 to 5, and the value of the best tree."""
    return st.builds(with_value, ensembles(3, 3), st.integers(1, 5))


def drawn_moderate() -> st.SearchStrategy[Case]:
    """The same with small whole weights, so that no token is nearly certain."""
    rows = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any)
    return st.builds(with_value, st.lists(rows.map(pmf_of), min_size=1, max_size=3), st.integers(1, 4))


def ensemble_space(pmfs: int, tokens: int, capacity: int) -> Space:
    """Ensembles of so many pmfs, each the softmax of a part of the vector, at a fixed P."""

    def rows(x: NDArray[np.float64]) -> list[Any]:
        return [softmax(row) for row in x.reshape(pmfs, tokens)]

    return Space(
        pmfs * tokens,
        lambda x: {**with_value(rows(x), capacity), "capacity": float(capacity)},
        exactly=lambda x: with_value([rational(row) for row in rows(x)], capacity),
    )


def setting_cases(effort: Effort) -> Iterator[Mapping[str, Fraction]]:
    """Moments and capacities on a grid: mu from a thousandth to twenty nats, mu2/mu^2 from 1, P from 1."""
    for mu in (Fraction(1, 1000), Fraction(1, 7), Fraction(1), Fraction(9, 4), Fraction(20)):
        for ratio in (Fraction(1), Fraction(3, 2), Fraction(4), Fraction(90)):
            for capacity in (Fraction(1), Fraction(2), Fraction(7), Fraction(64), Fraction(10 ** effort.pick(4, 9))):
                yield {"mu": mu, "mu2": ratio * mu * mu, "capacity": capacity}


def drawn_settings() -> st.SearchStrategy[Mapping[str, Fraction]]:
    """Moments and a capacity, log-uniformly."""

    def of(exponents: tuple[float, float, float]) -> Mapping[str, Fraction]:
        mu, ratio, capacity = (Fraction(2.0**e) for e in exponents)
        return {"mu": mu, "mu2": ratio * mu * mu, "capacity": Fraction(round(capacity))}

    return st.tuples(st.floats(-12, 6), st.floats(0, 12), st.floats(0, 30)).map(of)


def setting_space() -> Space:
    """Moments and capacities, as exponentials of the vector, cut where nothing new is to be seen."""

    def weights(x: NDArray[np.float64]) -> Mapping[str, float]:
        mu, ratio, capacity = np.exp(np.clip(x, -20, 20)) + np.array([0, 1, 1])
        return {"mu": float(mu), "mu2": float(ratio * mu * mu), "capacity": float(np.round(capacity))}

    return Space(3, weights)


def library_form(mu: Real, mu2: Real, capacity: Real, form: Form) -> float:
    """The library's value of a form."""
    first, second, nodes = as_floats(mu, mu2, capacity)
    return branching_bound(first, second, nodes, form)


def as_floats(*values: Real) -> list[float]:
    """Fractions or intervals in double precision, for the library."""
    return [float(value) for value in floats(values)]


WALKED = (UNCERTAIN, MODERATE)


def plain_bound(pmfs: Ensemble, capacity: Fraction, enough: Fraction | None = None) -> Fraction:
    """B3: the least U(t-) + P e^-t, over t = 0 and the jumps of U; exact if below `enough`, else at least that."""
    least, inside = Fraction(capacity), Fraction(0)
    for weight, visit in walk(pmfs):
        least = min(least, inside + capacity * weight)
        inside += visit
        if inside >= (least if enough is None else min(least, enough)):  # no later t has less
            return least
    raise AssertionError("the walk has no end")


def arrays(pmfs: Ensemble) -> Any:
    """The pmfs in double precision."""
    return np.array([floats(pmf) for pmf in pmfs])


ASSUMPTIONS = (
    "the surprisals along a text sampled from the target are i.i.d. with the law of a step",
    "the P prefixes are chosen without the target's sampling (B4)",
)


def threshold_cases(effort: Effort) -> Iterator[Case]:
    """Ensembles with P and a threshold c = e^-t."""
    return with_each(ensemble_cases(effort), c=(Fraction(1), Fraction(1, 2), Fraction(2, 7), Fraction(1, 8)))


def shared_cases(effort: Effort) -> Iterator[Case]:
    """Two pmfs on 2 or 3 tokens, P up to 6."""
    for pmfs in small_ensembles():
        if len(pmfs) == 2 and UNCERTAIN.met(pmfs):
            for capacity in (1, 2, 4, 6):
                for c in (Fraction(1, 2), Fraction(1, 4), Fraction(4, 9), Fraction(2, 27)):
                    yield {"pmfs": pmfs, "capacity": capacity, "c": c}
