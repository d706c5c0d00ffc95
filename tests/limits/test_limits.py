"""T1 against every rank tree; B2 and B2' where every prefix has one pmf; the pieces of B6; bad settings.

B3 and B3' have their own file, test_renewal.py.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import t as student

from proofs_check.library.strategies import Floats, theorem
from proofs_check.twins.random_pmf_trees import mean_best
from spectheory.errors import PmfError, SettingError, ShapeError, TextError
from spectheory.limits import (
    StepLaw,
    branching_bound,
    branching_bound_from_text,
    branching_speedup,
    random_tree_totals,
    random_tree_value,
    renewal_bound,
    stationary_tree_value,
    tunstall_bound,
)
from spectheory.limits.branching import Form
from spectheory.limits.text import best_threshold, surprisal_walks, threshold_terms

ROUNDING = 1e-12
"""Sums of a few hundred terms of order one."""

FALSE_ALARM = 1e-9
"""Chance that any one simulated test here fails although the library is right."""

FORMS: tuple[Form, ...] = ("sharp", "lorden", "best_t")

Model = Callable[[tuple[int, ...]], Floats]
Node = tuple[int, ...]


def entropy(pmf: Floats) -> float:
    return float(-np.sum(pmf[pmf > 0] * np.log(pmf[pmf > 0])))


def second_moment(pmf: Floats) -> float:
    return float(np.sum(pmf[pmf > 0] * np.log(pmf[pmf > 0]) ** 2))


def best_tree(model: Model, capacity: int) -> float:
    """Expected correct tokens of the `capacity` heaviest prefixes, grown best-first: the optimum for any drafter."""
    heap = [(-float(weight), (token,)) for token, weight in enumerate(model(())) if weight > 0]
    heapq.heapify(heap)
    total = 0.0
    for _ in range(capacity):
        if not heap:
            break
        weight, prefix = heapq.heappop(heap)
        total -= weight
        for token, share in enumerate(model(prefix)):
            if share > 0:
                heapq.heappush(heap, (weight * share, (*prefix, token)))
    return total


# T1


def rank_trees(alphabet: int, nodes: int) -> Iterator[frozenset[Node]]:
    """Every draft tree of that many nodes, root excluded, whose edges are ranks below `alphabet`."""
    trees: set[frozenset[Node]] = {frozenset([()])}
    for _ in range(nodes):
        trees = {
            tree | {(*node, rank)}
            for tree in trees
            for node in tree
            for rank in range(alphabet)
            if (*node, rank) not in tree
        }
    return iter(trees)


def weight(law: Floats, node: Node) -> float:
    return math.prod(float(law[rank]) for rank in node)


RANK_LAWS = [
    np.array(law)
    for law in ([0.5, 0.5], [0.9, 0.1], [0.01, 0.99], [1.0, 0.0], [1 / 3] * 3, [0.7, 0.2, 0.1], [0.98, 0.01, 0.01])
]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("law", RANK_LAWS, ids=str)
def test_no_rank_tree_beats_the_channel_limit(law: Floats, nodes: int) -> None:
    """T1 and S3: E[tokens] = sum of node weights, E[tokens] H(R) = H(exit leaf) <= log(leaves), for every tree."""
    alphabet = len(law)
    bound = tunstall_bound(entropy(law), alphabet, nodes)
    for tree in rank_trees(alphabet, nodes):
        tokens = sum(weight(law, node) for node in tree)
        leaves = [(*node, rank) for node in tree for rank in range(alphabet) if (*node, rank) not in tree]
        assert len(leaves) == (nodes + 1) * (alphabet - 1) + 1
        exits = np.array([weight(law, leaf) for leaf in leaves])
        assert tokens * entropy(law) == pytest.approx(entropy(exits), abs=ROUNDING)
        assert tokens <= bound + ROUNDING


def test_the_channel_limit_is_reached() -> None:
    """Equally likely ranks and a complete tree: H(exit leaf) is the logarithm of the leaves."""
    for alphabet, depth in ((2, 3), (3, 2)):
        nodes = sum(alphabet**d for d in range(1, depth))
        assert tunstall_bound(math.log(alphabet), alphabet, nodes) == pytest.approx(depth, abs=ROUNDING)
    assert tunstall_bound(0.0, 4, 7) == 8
    assert tunstall_bound(0.0, 1, 7) == 8
    assert tunstall_bound(1e-9, 4, 7) == 8


def test_the_channel_limit_fails_for_mixed_ranks() -> None:
    """A = 4, half the texts with rank 1 always: a chain of 16 gives 9.17 where the marginal law's limit says 3.68."""
    marginal = np.array([0.625, 0.125, 0.125, 0.125])
    chain = (17 + sum(0.25**i for i in range(17))) / 2
    assert chain == pytest.approx(9.17, abs=0.005)
    assert tunstall_bound(entropy(marginal), 4, 16) == pytest.approx(3.68, abs=0.005)


@theorem
@given(st.integers(2, 10**5), st.integers(1, 10**4), st.floats(0, 1))
def test_the_channel_limit_against_its_simple_form(alphabet: int, nodes: int, share: float) -> None:
    """1 <= T1 <= min(k + 1, (log A + log(k+1)) / H), and the simple form is just that."""
    rank_entropy = share * math.log(alphabet)
    bound = tunstall_bound(rank_entropy, alphabet, nodes)
    simple = tunstall_bound(rank_entropy, alphabet, nodes, form="asymptotic")
    assert 1 - ROUNDING <= bound <= simple * (1 + ROUNDING)
    assert simple <= nodes + 1
    if rank_entropy > 0:
        expected = min((math.log(alphabet) + math.log(nodes + 1)) / rank_entropy, nodes + 1)
        assert simple == pytest.approx(expected, rel=ROUNDING)


@pytest.mark.parametrize("nodes", [1, 10, 1000, 20_000])
@pytest.mark.parametrize("law", [law for law in RANK_LAWS if law.min() > 0], ids=str)
def test_the_tunstall_tree_attains_the_channel_limit(law: Floats, nodes: int) -> None:
    """log(leaves p_min) <= E[tokens] H(R) <= log(leaves): every leaf was split off a node no lighter than any leaf."""
    tokens = stationary_tree_value(law, nodes) + 1
    leaves = (nodes + 1) * (len(law) - 1) + 1
    least = (math.log(leaves) + math.log(float(law.min()))) / entropy(law)
    assert least <= tokens * (1 + ROUNDING)
    assert tokens <= tunstall_bound(entropy(law), len(law), nodes) * (1 + ROUNDING)


@pytest.mark.parametrize("nodes", [1, 5, 50, 500])
@pytest.mark.parametrize("kept", [1, 2, 4])
def test_the_channel_limit_of_lumped_ranks(kept: int, nodes: int) -> None:
    """Geometric ranks without end, those beyond B lumped and never drafted: every tree on ranks up to B obeys T1."""
    law = 0.6 * 0.4 ** np.arange(kept)
    lumped = np.append(law, 0.4**kept)
    tokens = 1 + best_tree(lambda _: law, nodes)
    assert tokens <= tunstall_bound(entropy(lumped), kept + 1, nodes) + ROUNDING


# B2, B2': one pmf at every prefix


@pytest.mark.parametrize("capacity", [1, 2, 3, 7, 8, 64, 300])
@pytest.mark.parametrize(
    "pmf",
    [[0.5, 0.5], [0.25] * 4, [0.99, 0.01], [0.9, 0.05, 0.05], [0.999999, 0.000001], [0.4, 0.3, 0.2, 0.1]],
    ids=str,
)
def test_no_tree_of_one_law_beats_the_branching_bounds(pmf: list[float], capacity: int) -> None:
    """B2, B2' where every prefix has the same pmf, so that the best tree is exact at any capacity."""
    law = np.array(pmf)
    exact = best_tree(lambda _: law, capacity)
    for form in FORMS:
        assert exact <= branching_bound(entropy(law), second_moment(law), capacity, form) + ROUNDING


def test_the_sharp_bound_is_not_loose() -> None:
    """The smallest error these tests would see: B2' is within 0.5 token of the fair binary tree at P = 2^10 - 2."""
    law = np.array([0.5, 0.5])
    exact = best_tree(lambda _: law, 1022)
    assert exact == pytest.approx(9, abs=ROUNDING)
    assert branching_bound(entropy(law), second_moment(law), 1022) < exact + 0.5


def test_wrong_branching_formulas_are_caught() -> None:
    """Negative control: without K, or in bits, B2' is exceeded by an enumerated tree."""

    def sharp(mu: float, spread: float, capacity: float) -> float:
        return min(spread + math.log1p(mu * (capacity - spread)) / mu if capacity >= spread else capacity, capacity)

    law = np.array([0.9, 0.05, 0.05])
    mu, spread = entropy(law), second_moment(law) / entropy(law) ** 2 - 1
    exact = best_tree(lambda _: law, 64)
    assert sharp(mu, spread, 64) == branching_bound(mu, (spread + 1) * mu**2, 64)
    assert exact > sharp(mu, 0.0, 64)
    fair = np.array([0.5, 0.5])
    assert best_tree(lambda _: fair, 1022) > sharp(entropy(fair) / math.log(2), 0.0, 1022)
    laws = np.array([[0.7, 0.2, 0.1], [0.98, 0.01, 0.01]])
    mu, mu2 = (float(np.mean([moment(row) for row in laws])) for moment in (entropy, second_moment))
    random_tree = mean_best([tuple(map(Fraction, row)) for row in laws], 2)
    assert random_tree > sharp(mu, 0.0, 2)
    assert branching_bound(mu, mu2, 1, "published") == 0, "B1's leading term alone is no bound at P = 1"


@theorem
@given(st.floats(1e-6, 20), st.floats(1, 1e6), st.integers(1, 10**9))
def test_sharp_is_below_the_other_forms(mu: float, ratio: float, capacity: int) -> None:
    """B2' <= both forms of B2, and every form lies in (0, P]."""
    mu2 = ratio * mu * mu
    sharp = branching_bound(mu, mu2, capacity)
    for form in FORMS:
        assert 0 < sharp <= branching_bound(mu, mu2, capacity, form) * (1 + 1e-9)
        assert branching_bound(mu, mu2, capacity, form) <= capacity


@theorem
@given(st.floats(1e-3, 20), st.floats(1, 100), st.integers(1, 10**6), st.integers(1, 10))
def test_more_capacity_never_hurts(mu: float, ratio: float, capacity: int, factor: int) -> None:
    """Every form grows with P."""
    mu2 = ratio * mu * mu
    for form in (*FORMS, "published"):
        small = branching_bound(mu, mu2, capacity, form)  # type: ignore[arg-type]
        large = branching_bound(mu, mu2, factor * capacity, form)  # type: ignore[arg-type]
        assert small <= large * (1 + ROUNDING)


@pytest.mark.parametrize("form", [*FORMS, "published"])
def test_a_certain_target_predicts_everything(form: Form) -> None:
    """Mu = 0 gives P, and so does a mu whose square underflows."""
    assert branching_bound(0.0, 0.0, 17, form) == 17
    if form != "published":
        assert branching_bound(1e-200, 0.0, 17, form) == 17
        assert branching_bound(1e-9, 1e-6, 17, form) == 17


def test_the_base_of_the_published_logarithms_matters() -> None:
    """B1 with every quantity in bits: slope (1 + mu2/(mu ln 2))/mu; B2 and B2' say the same in every base."""
    mu, mu2, capacity, base = 1.2, 2.5, 1e6, math.log(2)
    bits = mu / base, mu2 / base**2
    # With moments in bits the formula still takes log P in nats; divided by ln 2 it takes it in bits.
    published = branching_bound(*bits, capacity, "published") / base
    assert published == pytest.approx((1 + mu2 / (mu * base)) / mu * math.log(capacity), rel=ROUNDING)
    assert published > 1.2 * branching_bound(mu, mu2, capacity, "published")
    lorden = math.log2(capacity) / bits[0] + bits[1] / bits[0] ** 2
    assert lorden == pytest.approx(branching_bound(mu, mu2, capacity, "lorden"), rel=ROUNDING)


# The value itself: best trees in random trees


@pytest.mark.parametrize("pmf", [[1.0], [1.0, 0.0]], ids=str)
@pytest.mark.parametrize("capacity", [1, 2, 5, 8])
def test_the_stationary_tree_of_a_certain_token_is_a_chain(pmf: list[float], capacity: int) -> None:
    assert stationary_tree_value(pmf, capacity) == capacity


@pytest.mark.parametrize("tokens", [2, 5])
def test_one_prefix_is_worth_the_largest_probability(tokens: int) -> None:
    """P = 1: the largest entry of each pmf, on average H_V/V for uniform pmfs; Hoeffding at `FALSE_ALARM`."""
    trees = 6000
    drawn: list[Floats] = []

    def sample(rng: np.random.Generator, n: int) -> Floats:
        drawn.append(rng.dirichlet(np.ones(tokens), n))
        return drawn[-1]

    totals = random_tree_totals(sample, 1, trees, rng=4)[:, 0]
    np.testing.assert_array_equal(totals, np.concatenate(drawn).max(axis=1))
    harmonic = sum(1 / n for n in range(1, tokens + 1)) / tokens
    assert abs(totals.mean() - harmonic) <= math.sqrt(math.log(2 / FALSE_ALARM) / (2 * trees))


def test_the_value_of_random_trees_has_its_interval() -> None:
    """The mean and Student interval of the trees' totals; a seed repeats it; equal trees have no width."""

    def sample(rng: np.random.Generator, n: int) -> Floats:
        return rng.dirichlet(np.full(8, 0.3), n)

    value = random_tree_value(sample, 6, 50, rng=2)
    tokens = random_tree_totals(sample, 6, 50, rng=np.random.default_rng(2))[:, -1]
    assert value.best == tokens.mean()
    wide = student.interval(0.95, 49, loc=tokens.mean(), scale=tokens.std(ddof=1) / math.sqrt(50))
    assert (value.low, value.high) == pytest.approx(wide, rel=ROUNDING)
    assert value.kind == "statistical"
    still = random_tree_value(lambda _, n: [[0.5, 0.25, 0.25]] * n, 9, 3)
    assert still.low == still.high == stationary_tree_value([0.5, 0.25, 0.25], 9)


# B6: text, no i.i.d. assumption


def all_walks(model: Model, depth: int) -> tuple[Floats, Floats]:
    """Cumulative surprisals ``[texts, depth]`` of every text of the model, and the texts' probabilities."""
    walks, shares = [], []
    for text in product(range(len(model(()))), repeat=depth):
        steps = [float(model(text[:n])[token]) for n, token in enumerate(text)]
        if min(steps) > 0:
            walks.append(np.cumsum(-np.log(steps)))
            shares.append(math.prod(steps))
    return np.array(walks), np.array(shares)


def test_b6_without_memory_is_b3() -> None:
    """One pmf at every prefix: B6 from every text, minimised over t, is B3', and both are the best tree."""
    pmf, capacity = np.array([0.5, 0.25, 0.25]), 8
    walks, shares = all_walks(lambda _: pmf, capacity)
    lattice = math.log(2) * np.arange(8)
    values = [float(shares @ threshold_terms(walks, t)) + capacity * math.exp(-t) for t in lattice]
    numeric = renewal_bound(StepLaw.from_pmfs(pmf), capacity, grid=math.log(2)).high
    assert min(values) == pytest.approx(numeric, rel=ROUNDING)
    assert numeric == pytest.approx(best_tree(lambda _: pmf, capacity), rel=ROUNDING)


# The pieces of B6


def slow_b6(texts: list[Floats], capacity: int, t: float) -> float:
    """B6 from text, start by start and token by token."""
    starts = []
    for text in texts:
        for n in range(len(text) - capacity + 1):
            walk = np.cumsum(text[n : n + capacity])
            starts.append(sum(max(0.0, 1 - math.exp(s - t)) for s in walk))
    return min(float(np.mean(starts)) + capacity * math.exp(-t), capacity)


def some_texts(seed: int) -> list[Floats]:
    rng = np.random.default_rng(seed)
    return [rng.exponential(rng.choice([0.2, 2.0]), size=n) for n in (9, 1, 4, 30, 3)]


@pytest.mark.parametrize("capacity", [1, 3, 9, 30])
@pytest.mark.parametrize("t", [0.0, 0.7, 3.0, 30.0])
def test_b6_from_text_is_its_slow_twin(capacity: int, t: float) -> None:
    texts = some_texts(1)
    assert branching_bound_from_text(texts, capacity, t) == pytest.approx(slow_b6(texts, capacity, t), abs=ROUNDING)


def test_walks_stop_at_the_end_of_their_text() -> None:
    texts = [np.array([1.0, 2.0, 4.0]), np.array([8.0]), np.array([16.0, 32.0])]
    walks, whole = surprisal_walks(np.concatenate(texts), np.array([3, 1, 2]), 2)
    inf = math.inf
    np.testing.assert_array_equal(walks, [[1, 3], [2, 6], [4, inf], [8, inf], [16, 48], [32, inf]])
    np.testing.assert_array_equal(whole, [True, True, False, False, True, False])


@pytest.mark.parametrize("capacity", [1, 2, 5, 64])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_threshold_minimises(seed: int, capacity: int) -> None:
    """No t on a fine grid, and none of the walks' own values, gives less."""
    walks, _ = surprisal_walks(np.concatenate(some_texts(seed)), np.array([9, 1, 4, 30, 3]), capacity)

    def bound(t: float) -> float:
        return float(threshold_terms(walks, t).mean()) + capacity * math.exp(-t)

    best = bound(best_threshold(walks, capacity))
    grid = np.concatenate([np.linspace(0, 60, 400), walks[np.isfinite(walks)]])
    assert best <= min(bound(float(t)) for t in grid) + ROUNDING
    assert bound(best_threshold(walks, capacity) * 0.7) > best or capacity == 64


def test_the_best_threshold_of_no_walk_at_all() -> None:
    assert best_threshold(np.full((2, 3), math.inf), 3) > 40


@theorem
@given(st.lists(st.floats(0, 30), min_size=1, max_size=40), st.floats(0, 100), st.integers(1, 40))
def test_b6_lies_between_its_trivial_bounds(surprisals: list[float], t: float, capacity: int) -> None:
    """Every value lies in [min(1, mean of e^-S_1), P]: the best single prefix is worth that much."""
    assume(len(surprisals) >= capacity)
    text = np.array(surprisals)
    value = branching_bound_from_text([text], capacity, t)
    single = float(np.mean(np.exp(-text[: len(text) - capacity + 1])))
    assert min(single, 1.0) <= value + ROUNDING
    assert value <= capacity


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "capacity": (lambda: branching_bound(1, 1, 0.5), SettingError, "capacity is 0.5"),
    "capacity nan": (lambda: branching_bound(1, 1, math.nan), SettingError, "capacity is nan"),
    "mu": (lambda: branching_bound(-1, 1, 4), SettingError, "mu is -1"),
    "mu nan": (lambda: branching_bound(math.nan, 1, 4), SettingError, "mu is nan"),
    "mu2": (lambda: branching_bound(2, 3.9, 4), SettingError, "needs mu >= 0 and mu2 >= mu^2"),
    "form": (lambda: branching_bound(1, 1, 4, "sharpest"), SettingError, "form is 'sharpest'"),  # type: ignore[arg-type]
    "text capacity": (lambda: branching_bound_from_text([np.ones(3)], 0, 1), SettingError, "capacity is 0"),
    "t": (lambda: branching_bound_from_text([np.ones(3)], 1, -1), SettingError, "t is -1"),
    "t nan": (lambda: branching_bound_from_text([np.ones(3)], 1, math.nan), SettingError, "t is nan"),
    "short": (lambda: branching_bound_from_text([np.ones(3)], 4, 1), TextError, "the longest text has 3 tokens"),
    "no text": (lambda: branching_bound_from_text([], 4, 1), TextError, "text"),
    "speedup": (lambda: branching_speedup(1.0, 0.0, 1.0), SettingError, "step is 0: must be > 0"),
    "speedup nan": (lambda: branching_speedup(math.nan, 1.0, 1.0), SettingError, "predicted is nan"),
    "tree capacity": (lambda: stationary_tree_value([1.0], 0), SettingError, "capacity is 0"),
    "tree pmf": (lambda: stationary_tree_value([0.5, 0.6], 1), PmfError, "pmf sums to 1.1"),
    "tree pmfs": (lambda: stationary_tree_value([[0.5, 0.5]] * 2, 1), ShapeError, "pmf has shape (2, 2)"),
    "no random tree": (lambda: random_tree_totals(lambda _, n: [[1.0]] * n, 1, 0), SettingError, "trees is 0"),
    "one random tree": (lambda: random_tree_value(lambda _, n: [[1.0]] * n, 1, 1), SettingError, "trees is 1"),
    "drawn": (lambda: random_tree_value(lambda _, n: [[0.9]] * n, 1), PmfError, "sample_pmf(...) sums to 0.9"),
    "drawn number": (lambda: random_tree_value(lambda _, n: [[1.0]], 9), ShapeError, "sample_pmf(rng, 8) has shape"),
    "channel form": (lambda: tunstall_bound(0, 2, 1, form="b"), SettingError, "form is 'b'"),  # type: ignore[arg-type]
    "alphabet": (lambda: tunstall_bound(0, 0, 1), SettingError, "alphabet is 0"),
    "k": (lambda: tunstall_bound(0, 2, 0), SettingError, "k is 0"),
    "entropy": (lambda: tunstall_bound(1.0, 2, 1), SettingError, "rank entropy is 1"),
    "entropy negative": (lambda: tunstall_bound(-0.1, 2, 1), SettingError, "rank entropy is -0.1"),
    "entropy nan": (lambda: tunstall_bound(math.nan, 2, 1), SettingError, "rank entropy is nan"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_input_is_named_in_one_line(case: str) -> None:
    call, error, fragment = BAD[case]
    with pytest.raises(error) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)
