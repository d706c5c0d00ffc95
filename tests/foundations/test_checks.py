"""Bad numbers at the doors of the calculators: a named error before anything is allocated or summed."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.checks import real, whole
from spectheory.cost import ConstantRatio
from spectheory.cost.iid import (
    best_chain_length,
    iid_operations,
    iid_speedup,
    iid_tokens_per_call,
    required_acceptance,
    required_ratio,
)
from spectheory.distributions import validate_pmf
from spectheory.drafting import Batch, Chain, KAry, Tree, optimal_tree
from spectheory.errors import SettingError, SpectheoryError
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
from spectheory.logit_statistics import pair_statistics
from spectheory.prediction.shape_calls import BestTree
from spectheory.truncated import TopLogProbs
from tests.made_up import each

FAIR = [0.5, 0.5]
LAW = StepLaw.from_pmfs(FAIR)
HUGE = 10**400
"""Beyond floats."""


def drawn(rng: np.random.Generator, n: int) -> list[list[float]]:
    return [FAIR] * n


def of_text(*surprisals: Any, capacity: Any = 1, t: Any = 0.7) -> float:
    return branching_bound_from_text(list(surprisals), capacity, t)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "capacity": (lambda: branching_bound(1, 2, 1.5), "capacity is 1.5: must be a whole number >= 1"),
    "capacity numeric": (lambda: branching_bound(None, None, 2.5, "numeric", step_law=LAW), "capacity is 2.5"),
    "capacity infinite": (lambda: branching_bound(1, 2, math.inf), "capacity is inf"),
    "capacity word": (lambda: branching_bound(1, 2, "4"), "capacity is '4'"),  # type: ignore[arg-type]
    "capacity nan": (lambda: renewal_bound(LAW, math.nan), "capacity is nan"),
    "capacity beyond floats": (lambda: branching_bound(1, 2, HUGE), "capacity is a number of 1329 bits"),
    "mu word": (lambda: branching_bound("1", 2, 4), "mu is '1'"),  # type: ignore[arg-type]
    "mu complex": (lambda: branching_bound(1j, 2, 4), "mu is 1j"),  # type: ignore[arg-type]
    "mu2 nan": (lambda: branching_bound(1, math.nan, 4), "mu2 is nan"),
    "grid word": (lambda: renewal_bound(LAW, 3, grid="a"), "grid is 'a'"),  # type: ignore[arg-type]
    "times": (lambda: branching_speedup("a", 1, 1), "predicted is 'a'"),  # type: ignore[arg-type]
    "alphabet": (lambda: tunstall_bound(0.5, 1.5, 3), "alphabet is 1.5"),  # type: ignore[arg-type]
    "k of ranks": (lambda: tunstall_bound(0.5, 2, HUGE), "k is a number of 1329 bits"),
    "entropy": (lambda: tunstall_bound("x", 2, 3), "rank entropy is 'x'"),  # type: ignore[arg-type]
    "nan surprisal": (lambda: of_text([0.5, math.nan]), "surprisal 1 of text 0 is nan"),
    "negative surprisal": (lambda: of_text([0.5, 1.0], [-1.0, 2.0]), "surprisal 0 of text 1 is -1"),
    "infinite surprisal": (lambda: of_text([0.5, math.inf]), "surprisal 1 of text 0 is inf"),
    "surprisal words": (lambda: of_text(["a", "b"]), "text 0 holds <U1"),
    "surprisal complex": (lambda: of_text([1j]), "text 0 holds complex128"),
    "surprisal table": (lambda: of_text(np.ones((5, 2))), "a text has shape (5, 2)"),
    "one text": (lambda: branching_bound_from_text(np.ones(5), 1, 0.5), "a text has shape ()"),  # type: ignore[arg-type]
    "no texts": (lambda: branching_bound_from_text(5, 1, 0.5), "the list of texts is 5: needs a list"),  # type: ignore[arg-type]
    "text capacity": (lambda: of_text(np.ones(5), capacity=1.5), "capacity is 1.5"),
    "text threshold": (lambda: of_text(np.ones(5), t="a"), "t is 'a'"),
    "text memory": (lambda: of_text(np.ones(200_000), capacity=100_000), "capacity 100000 times 200000 tokens"),
    "steps": (lambda: StepLaw.from_surprisals([["a"]]), "text 0 holds <U1"),
    "step words": (lambda: StepLaw(["a"], [1.0]), "steps holds <U1"),  # type: ignore[arg-type]
    "edges": (lambda: StepLaw.from_surprisal_histogram(["a", "b"], [1.0]), "edges holds <U1"),
    "best tree": (lambda: BestTree(1.5), "nodes is 1.5"),  # type: ignore[arg-type]
    "best tree nan": (lambda: BestTree(math.nan), "nodes is nan"),  # type: ignore[arg-type]
    "best tree word": (lambda: BestTree("3"), "nodes is '3'"),  # type: ignore[arg-type]
    "best tree depth": (lambda: BestTree(3, 1.5), "max depth is 1.5"),  # type: ignore[arg-type]
    "best tree large": (lambda: BestTree(10**12), "must be at most 16777216"),
    "k-ary": (lambda: KAry((1000, 1000, 1000)).tree(), "has 1001001000 nodes down to depth 3: at most 16777216"),
    "k-ary deep": (lambda: KAry((1000,) * 10**6), "nodes down to depth 3"),
    "k-ary number": (lambda: KAry(3), "branching is int"),  # type: ignore[arg-type]
    "chain": (lambda: Chain(10**9), "k is 1000000000: must be at most 16777216"),
    "batch": (lambda: Batch(10**9), "k is 1000000000: must be at most 16777216"),
    "paths": (lambda: Tree.from_paths([1, 2]), "the paths are no list of paths"),  # type: ignore[list-item]
    "optimal tree": (lambda: optimal_tree([0.6, 0.3], 10**9), "budget is 1000000000: must be at most 16777216"),
    "consecutive tree": (lambda: optimal_tree([0.3, 0.6], 10**5, consecutive=True), "must be at most 4096"),
    "rank law": (lambda: optimal_tree("ab", 3), "the rank pmf holds <U2"),
    "rank law complex": (lambda: optimal_tree([0.5, 1j], 3), "the rank pmf holds complex128"),
    "k": (lambda: iid_tokens_per_call(0.7, 2.5), "k is 2.5"),  # type: ignore[arg-type]
    "k beyond floats": (lambda: iid_speedup(0.7, HUGE, 0.1), "k is a number of 1329 bits: must be at most"),
    "alpha word": (lambda: iid_speedup("a", 2, 0.1), "alpha is 'a'"),  # type: ignore[arg-type]
    "alpha complex": (lambda: iid_speedup(1j, 2, 0.1), "alpha is 1j"),  # type: ignore[arg-type]
    "c word": (lambda: ConstantRatio("a"), "c is 'a'"),  # type: ignore[arg-type]
    "speed-up": (lambda: required_acceptance("3", 4, 0.05), "the speed-up is '3'"),  # type: ignore[arg-type]
    "k_max": (lambda: required_ratio(2.0, 0.8, None, k_max=10**9), "k_max is 1000000000: must be at most 4096"),
    "tree capacity": (lambda: stationary_tree_value(FAIR, 1.5), "capacity is 1.5"),  # type: ignore[arg-type]
    "tree memory": (lambda: stationary_tree_value(FAIR, 10**10), "capacity is 10000000000: must be at most"),
    "trees": (lambda: random_tree_value(drawn, 3, 2.5), "trees is 2.5"),  # type: ignore[arg-type]
    "trees memory": (lambda: random_tree_totals(drawn, 10**8, 10), "capacity is 100000000: must be at most"),
    "pmf word": (lambda: validate_pmf("abc"), "pmf holds <U3"),
    "pmf complex": (lambda: validate_pmf(np.array([1j, 1])), "pmf holds complex128"),
    "pmf complex torch": (lambda: validate_pmf(torch.tensor([1j, 1])), "pmf holds complex64"),
    "pmf ragged": (lambda: validate_pmf([[0.5], [0.5, 0.5]]), "pmf does not become an array"),
    "logits words": (lambda: pair_statistics("a", "b"), "target_logits holds <U1"),
    "logits complex": (lambda: pair_statistics([0.0, 1.0], [1j, 1.0]), "draft_logits holds complex128"),
    "vocabulary": (lambda: TopLogProbs([0], [-0.1], 2.5), "vocabulary is 2.5"),  # type: ignore[arg-type]
    "vocabulary huge": (lambda: TopLogProbs([0], [-0.1], HUGE), "vocabulary is a number of 1329 bits"),
    "error": (lambda: TopLogProbs([0], [-0.1], 5, error="a"), "error is 'a'"),  # type: ignore[arg-type]
    "log-probabilities": (lambda: TopLogProbs([0], ["a"], 5), "the log-probabilities holds <U1"),
    "m": (lambda: TopLogProbs.from_pmf(FAIR, 1.5), "m is 1.5"),  # type: ignore[arg-type]
    "token": (lambda: TopLogProbs([0], [math.log(0.25)], 5).range(1.5), "token is 1.5"),  # type: ignore[arg-type]
}
ALLOCATED = 40 * 2**20
"""Bytes that a refusal may take: the largest input here has 2 MB; what is refused would take gigabytes."""


@each("name", BAD)
def test_bad_numbers_have_named_errors(name: str) -> None:
    """In one line, and before anything large is allocated."""
    call, fragment = BAD[name]
    tracemalloc.start()
    try:
        with pytest.raises(SpectheoryError) as caught:
            call()
        assert tracemalloc.get_traced_memory()[1] < ALLOCATED
    finally:
        tracemalloc.stop()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_whole_numbers() -> None:
    assert [type(whole("k", k, remedy="")) for k in (3, np.int64(3), torch.tensor(3))] == [int] * 3
    assert whole("k", 0, least=0, most=0, remedy="") == 0
    for bad in (2.0, math.nan, "3", None, [3], 1j, -1, 5, np.ones(2), torch.ones(2)):
        with pytest.raises(SettingError, match=r"^k is "):
            whole("k", bad, least=0, most=4, remedy="use 1")


def test_real_numbers() -> None:
    assert [
        real("c", c, bool, limit="", remedy="") for c in (1, 1.0, np.float32(1), torch.tensor(1.0), Fraction(1))
    ] == [1.0] * 5
    for bad in (math.nan, "1", None, [1.0], 1j, HUGE, np.ones(2), torch.ones(2), 0.0):
        with pytest.raises(SettingError, match=r"^c is "):
            real("c", bad, bool, limit="must not be 0", remedy="use 1")


# Long chains


@each("alpha", [0.0, 1e-300, 0.3, 0.7, 0.999, 1 - 2**-40, 1 - 2**-53, 1.0])
@each("k", [64, 65, 1000])
def test_long_chains_have_their_sum(alpha: float, k: int) -> None:
    """Against the sum in fractions, where the closed form begins and beyond."""
    exact = sum(Fraction(alpha) ** i for i in range(k + 1)) if alpha < 0.9 and k < 100 else None
    if exact is None:
        a = Fraction(alpha)
        exact = Fraction(k + 1) if a == 1 else (1 - a ** (k + 1)) / (1 - a)
    assert iid_tokens_per_call(alpha, k) == pytest.approx(float(exact), rel=1e-14)


def test_endless_chains() -> None:
    """At a billion drafts only the limit 1/(1 - alpha) is left, at alpha = 1 every draft."""
    k = 10**9
    assert iid_speedup(0.7, k, 0.1) == pytest.approx(1 / 0.3 / (k / 10 + 1), rel=1e-14)
    assert iid_operations(0.7, k, 0.1) == pytest.approx((k / 10 + k + 1) * 0.3, rel=1e-14)
    assert iid_speedup(1.0, k, 0.5) == pytest.approx((k + 1) / (k / 2 + 1), rel=1e-14)
    assert required_acceptance(3.0, k, 1e-10) == pytest.approx(1 - 1 / (3 * (k * 1e-10 + 1)), rel=1e-12)


@each("alpha", [0.0, 0.05, 0.3, 0.8, 0.99, 1.0])
@each("c", [0.0, 0.02, 0.1, 0.5, 1.0, 2.0])
def test_the_best_length_of_any_range(alpha: float, c: float) -> None:
    """The search by halving finds what looking at every length finds; and answers for a billion lengths."""
    for k_max in (1, 2, 7, 200):
        every = [iid_speedup(alpha, k, c) for k in range(1, k_max + 1)]
        assert every[best_chain_length(alpha, c, k_max) - 1] == pytest.approx(max(every), rel=1e-14)
    longest = best_chain_length(alpha, c, 10**9)
    assert longest == 10**9 if c == 0 < alpha or c < alpha == 1 else longest < 10**4
