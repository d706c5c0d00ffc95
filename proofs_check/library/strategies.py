"""Hypothesis strategies: pmfs as language models have them and as they break formulas.

A strategy is made once: most of the time of a draw would go into making it.

The profile is deterministic, so a failure comes back on every run.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from proofs_check.library.cases import Pmf, pmf_of, prefixes
from proofs_check.statement.fractions import Fraction

Floats = NDArray[np.float64]

TINIEST = 1e-300
"""Smallest positive weight: ratios of two pmf entries then stay below the largest float."""

theorem = settings(
    derandomize=True, database=None, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
"""Settings of every property test."""


@cache
def weights() -> st.SearchStrategy[float]:
    """One unnormalised probability: zero, tiny, log-uniform or plain."""
    return st.one_of(
        st.just(0.0),
        st.sampled_from([TINIEST, 1e-18, 1e-9, 1.0, 1e6]),
        st.floats(-40, 0).map(lambda exponent: float(np.exp(exponent))),
        st.integers(1, 6).map(float),
    )


@cache
def pmfs(tokens: int) -> st.SearchStrategy[Floats]:
    """A pmf on `tokens` tokens."""
    return st.lists(weights(), min_size=tokens, max_size=tokens).filter(lambda w: max(w) > 0).map(_pmf)


def _pmf(values: list[float]) -> Floats:
    largest = max(values)
    scaled = np.array(values) / largest
    scaled[(scaled > 0) & (scaled < TINIEST)] = TINIEST
    return scaled / scaled.sum()


def pairs(max_tokens: int = 6) -> st.SearchStrategy[tuple[Floats, Floats]]:
    """A target and a draft over one vocabulary of 1 to `max_tokens` tokens."""
    return st.integers(1, max_tokens).flatmap(cache(lambda tokens: st.tuples(pmfs(tokens), pmfs(tokens))))


def extreme_pairs() -> dict[str, tuple[Floats, Floats]]:
    """Named pairs at the ends of what floats can say."""
    rng = np.random.default_rng(20)

    def softmax(scale: float, tokens: int) -> Floats:
        logits = scale * rng.standard_normal(tokens)
        grown = np.exp(logits - logits.max())
        return grown / grown.sum()

    flat, other = rng.dirichlet(np.ones(50)), rng.dirichlet(np.ones(50))
    nearly = flat * (1 + 1e-9 * rng.standard_normal(50))
    return {
        "random": (flat, other),
        "peaked": (softmax(20.0, 50), softmax(20.0, 50)),
        "large": (softmax(3.0, 2000), softmax(3.0, 2000)),
        "tiny entries": (np.array([1e-300, 0.25, 0.75]), np.array([0.5, 1e-300, 0.5])),
        "tiny in both": (np.array([1e-300, 1e-200, 1.0]), np.array([1e-200, 1e-300, 1.0])),
        "one-hot": (np.array([0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0])),
        "one-hot target": (np.array([0.0, 1.0, 0.0]), np.array([0.2, 0.5, 0.3])),
        "equal": (flat, flat.copy()),
        "nearly equal": (flat, nearly / nearly.sum()),
        "zeros in both": (np.array([0.0, 0.0, 0.5, 0.5]), np.array([0.0, 0.5, 0.0, 0.5])),
        "draft lacks a token": (np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.5, 0.0])),
        "target lacks a token": (np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.25, 0.25])),
        "disjoint": (np.array([1.0, 0.0]), np.array([0.0, 1.0])),
        "one token": (np.array([1.0]), np.array([1.0])),
    }


# Cases in fractions, for the ledger: no rounding stands between a formula and its check


@cache
def exact_weights() -> st.SearchStrategy[int]:
    """One unnormalised probability: zero, small, or of any of thirty orders of magnitude."""
    orders = st.integers(0, 30).map(lambda order: 10**order)
    return st.one_of(st.just(0), st.integers(0, 6), st.integers(0, 10**6), orders)


@cache
def exact_pmfs(tokens: int) -> st.SearchStrategy[Pmf]:
    """A rational pmf on `tokens` tokens, with zeros and extremes."""
    return st.lists(exact_weights(), min_size=tokens, max_size=tokens).filter(any).map(pmf_of)


@cache
def sparse_pmfs(tokens: int) -> st.SearchStrategy[Pmf]:
    """A rational pmf that is positive on one or two of its tokens."""
    few = st.lists(st.integers(0, tokens - 1), min_size=1, max_size=2, unique=True)
    return st.tuples(few, st.integers(1, 9), st.integers(1, 9)).map(lambda parts: _on(tokens, *parts))


def exact_pairs(max_tokens: int = 5, min_tokens: int = 2) -> st.SearchStrategy[dict[str, Pmf]]:
    """A case {p, q} of rational pmfs: unrelated, sparse, nearly equal or equal."""

    @cache
    def of(tokens: int) -> st.SearchStrategy[dict[str, Pmf]]:
        plain, sparse = exact_pmfs(tokens), sparse_pmfs(tokens)
        return st.one_of(
            st.fixed_dictionaries({"p": plain, "q": plain}),
            st.fixed_dictionaries({"p": sparse, "q": plain}),
            st.fixed_dictionaries({"p": plain, "q": sparse}),
            st.tuples(plain, plain, st.integers(0, 20)).map(_near),
        )

    return st.integers(min_tokens, max_tokens).flatmap(of)


def pairs_at(distance: Fraction) -> st.SearchStrategy[dict[str, Pmf]]:
    """A case {p, q} whose total variation is exactly `distance`: a common part and two parts on disjoint tokens."""

    @cache
    def of(tokens: int) -> st.SearchStrategy[dict[str, Pmf]]:
        parts = st.tuples(exact_pmfs(tokens), exact_pmfs(tokens), exact_pmfs(tokens), st.integers(1, tokens - 1))
        return parts.map(lambda values: _apart(distance, *values))

    return st.integers(2, 5).flatmap(of)


@cache
def rank_laws(max_letters: int = 5) -> st.SearchStrategy[Pmf]:
    """The law of a rank on 2 to `max_letters` letters, not sorted."""
    return st.integers(2, max_letters).flatmap(exact_pmfs)


def draft_trees(max_nodes: int = 6, max_rank: int = 3) -> st.SearchStrategy[frozenset[tuple[int, ...]]]:
    """A draft tree: nodes as the ranks on the way to them, a node's parent among them."""
    steps = st.lists(st.tuples(st.integers(0, max_nodes), st.integers(1, max_rank)), max_size=max_nodes)
    return steps.map(_grown)


def models(tokens: int, length: int) -> st.SearchStrategy[dict[tuple[int, ...], Pmf]]:
    """A pmf after every prefix shorter than `length`: a chain of any order and no stationarity."""
    return st.fixed_dictionaries({prefix: exact_pmfs(tokens) for prefix in prefixes(tokens, length)})


def markov_chains(tokens: int, steps: int) -> st.SearchStrategy[tuple[tuple[Pmf, ...], ...]]:
    """Transition rows ``[steps][tokens]`` of a non-stationary Markov chain."""
    rows = st.tuples(*[exact_pmfs(tokens)] * tokens)
    return st.tuples(*[rows] * steps)


def ensembles(max_pmfs: int = 4, max_tokens: int = 4) -> st.SearchStrategy[tuple[Pmf, ...]]:
    """Equally likely conditional pmfs, for §5: what the target may say after a prefix, drawn anew for each."""
    sizes = st.integers(2, max_tokens)
    return sizes.flatmap(cache(lambda tokens: st.lists(exact_pmfs(tokens), min_size=1, max_size=max_pmfs).map(tuple)))


def _on(tokens: int, places: list[int], first: int, second: int) -> Pmf:
    values = [0] * tokens
    for place, value in zip(places, (first, second), strict=False):
        values[place] = value
    return pmf_of(values)


def _near(values: tuple[Pmf, Pmf, int]) -> dict[str, Pmf]:
    p, other, order = values
    share = Fraction(1, 10**order) if order else Fraction(0)
    return {"p": p, "q": tuple((1 - share) * a + share * b for a, b in zip(p, other, strict=True))}


def _apart(distance: Fraction, common: Pmf, first: Pmf, second: Pmf, cut: int) -> dict[str, Pmf]:
    tokens = len(common)
    left = _within(first, range(cut))
    right = _within(second, range(cut, tokens))
    return {
        name: tuple((1 - distance) * c + distance * rest for c, rest in zip(common, part, strict=True))
        for name, part in (("p", left), ("q", right))
    }


def _within(pmf: Pmf, tokens: range) -> Pmf:
    """The pmf given that the token is one of these; uniform over them if it never is."""
    mass = sum(pmf[token] for token in tokens)
    if mass == 0:
        return tuple(Fraction(int(token in tokens), len(tokens)) for token in range(len(pmf)))
    return tuple(share / mass if token in tokens else Fraction(0) for token, share in enumerate(pmf))


def _grown(steps: list[tuple[int, int]]) -> frozenset[tuple[int, ...]]:
    nodes: list[tuple[int, ...]] = [()]
    for parent, rank in steps:
        nodes.append((*nodes[parent % len(nodes)], rank))
    return frozenset(nodes[1:])


def plain_pairs(tokens: int = 2, largest: int = 12) -> st.SearchStrategy[dict[str, Pmf]]:
    """A case {p, q} of pmfs with small whole weights, zeros included: cheap where a case is a whole decoding."""
    weights = st.lists(st.integers(0, largest), min_size=tokens, max_size=tokens).filter(any)
    pmf = weights.map(pmf_of)
    return st.fixed_dictionaries({"p": pmf, "q": pmf})
