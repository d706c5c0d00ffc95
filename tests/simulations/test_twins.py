"""Every rule's algorithm as its paper writes it, held together by law with its kernel and its closed form.

An algorithm without clocks is run for every way its draws can go, so that its law is exact. It is that of the closed
form to `ROUNDED`, and the kernel's counts are drawn from it: every cell is judged by exact binomial tails. Races are
compared as samples, by exact hypergeometric tails. A cell is refuted wrongly with probability 1e-11 at most and there
are fewer than 9,000: this file fails wrongly with probability below 9e-8, of the suite's 1e-6. With `TRIALS` trials a
cell of 0.1 is known to 0.0046 and one of 1e-3 to 4.8e-4; of the races, read `RACES` times, to 0.05 and 0.006.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from proofs_check.library.strategies import extreme_pairs
from simulations.draws import Stream, Words, words
from simulations.kernels.candidates import biased_verification, kseq, recursive_rejection, single_draft, top_k_match
from simulations.kernels.gumbel_lists import gumbel_list, lazy_gumbel_list
from simulations.kernels.races import dense_race, lazy_race, poisson_race
from simulations.reference import positions
from simulations.reference.drawing import Draws, exact_law
from simulations.reference.positions import Judged
from simulations.simulators.positions import output_law
from spectheory.verification import RULES, KSeq, RecursiveRejection, TopKMatch
from tests.made_up import each
from tests.simulations import laws
from tests.simulations.laws import ROUNDED, Counts, Floats, apart, straying

TRIALS, RACES, RANKS = 200_000, 2_000, 3

PAIRS: dict[str, tuple[Floats, Floats]] = {
    **{name: pair for name, pair in extreme_pairs().items() if name != "large"},
    **laws.PAIRS,
    "first choices tie": (np.array([0.4, 0.4, 0.2]), np.array([0.1, 0.45, 0.45])),
    "ratios beyond 1e300": (np.array([0.5, 0.25, 0.25]), np.array([1e-305, 1e-310, 1.0])),
    "ratios below 1e-300": (np.array([1e-305, 1e-310, 1.0]), np.array([0.5, 0.25, 0.25])),
}
FEW = [name for name, (p, _) in PAIRS.items() if p.size < 10 and name != "ratios beyond 1e300"]
"""Pairs whose outcomes can be listed."""
TELLING = ["crossed", "draft lacks a token", "random"]
"""Pairs at which all rules differ."""

Algorithm = Callable[[Floats, Floats, int, Draws], Judged]


class Twins(NamedTuple):
    """Counts of the kernel ``[ranks + 1, V]``, the last row without a candidate; the algorithm; a misreading."""

    kernel: Callable[[Floats, Floats, int, Words], Counts]
    algorithm: Algorithm
    misread: Algorithm
    ranks: int = 1


def an_accept(p: Floats, q: Floats) -> Floats:
    """An over-acceptance of another share for every token."""
    least, share = np.minimum(p, q) / np.where(q > 0, q, 1.0), np.random.default_rng(0).random(p.size)
    return (1 - share) * least + share


def over_accepted(recovery: str) -> Algorithm:
    return lambda p, q, _, draws: positions.over_accepted(p, q, an_accept(p, q), recovery, draws)


def over_accepting(recovery: str) -> Callable[[Floats, Floats, int, Words], Counts]:
    return lambda p, q, _, state: biased_verification(p, q, an_accept(p, q), TRIALS, state=state, recovery=recovery)


def recovered_from_the_target(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """A misreading: what is rejected leaves the target as it is."""
    for rank in range(1, candidates + 1):
        token = draws.token(q)
        if draws.coin(p[token] / q[token]):
            return Judged(rank, token)
    return Judged(None, draws.token(p))


def one_draft(rule: str, misread: Algorithm) -> Twins:
    def kernel(p: Floats, q: Floats, _: int, state: Words) -> Counts:
        return single_draft(p, q, rule, TRIALS, state=state)[::-1]

    return Twins(kernel, getattr(positions, rule), misread)


def ranked(kernel: Callable[..., Counts], algorithm: Algorithm, misread: Algorithm, **settings: Any) -> Twins:
    def counts(p: Floats, q: Floats, ranks: int, state: Words) -> Counts:
        return kernel(p, q, ranks, TRIALS, state=state, **settings)

    return Twins(counts, algorithm, misread, RANKS)


def backwards(p: Floats, q: Floats, candidates: int, draws: Draws) -> Judged:
    """A misreading: the draft's least probable token first."""
    return positions.topk(p, -q, candidates, draws)


TWINS = {
    "token": one_draft("token", recovered_from_the_target),
    "independent": one_draft("independent", positions.token),
    "argmax": one_draft("argmax", positions.independent),
    "greedy": one_draft("greedy", positions.argmax),
    "recursive": ranked(recursive_rejection, positions.iid_rejection, recovered_from_the_target),
    "recursive-distinct": ranked(
        recursive_rejection, positions.distinct_rejection, positions.iid_rejection, replacement=False
    ),
    "k-seq": ranked(kseq, positions.kseq, positions.iid_rejection),
    "top-k": ranked(top_k_match, positions.topk, backwards),
    "over-accepted, optimal": Twins(over_accepting("optimal"), over_accepted("optimal"), over_accepted("target")),
    "over-accepted, target": Twins(over_accepting("target"), over_accepted("target"), over_accepted("optimal")),
}


def law(algorithm: Algorithm, p: Floats, q: Floats, ranks: int) -> Floats:
    """P(R = r, output = x), r = 1..ranks and none or higher, ``[ranks + 1, V]``."""
    table = np.zeros((ranks + 1, p.size))
    for judged, chance in exact_law(partial(algorithm, p, q, ranks)).items():
        table[min(judged.rank or ranks + 1, ranks + 1) - 1, judged.token] += chance
    return table


@cache
def counted(rule: str, pair: str) -> Counts:
    twins = TWINS[rule]
    return twins.kernel(*PAIRS[pair], twins.ranks, words(11, list(TWINS).index(rule)))


def sampled(rule: str, pair: str) -> Counts:
    """Ranks and outputs of the algorithm, run `RACES` times."""
    twins, (p, q), stream = TWINS[rule], PAIRS[pair], Stream(words(12))
    counts = np.zeros((twins.ranks + 1, p.size), dtype=np.int64)
    for _ in range(RACES):
        judged = twins.algorithm(p, q, twins.ranks, stream)
        counts[min(judged.rank or twins.ranks + 1, twins.ranks + 1) - 1, judged.token] += 1
    return counts


@each("pair", FEW)
@each("rule", TWINS)
def test_kernels_draw_from_the_law_of_the_algorithm(rule: str, pair: str) -> None:
    """Rank and output together."""
    assert straying(counted(rule, pair), law(TWINS[rule].algorithm, *PAIRS[pair], TWINS[rule].ranks)) == []


@each("pair", set(PAIRS) - set(FEW))
@each("rule", TWINS)
def test_kernels_are_samples_like_the_algorithm(rule: str, pair: str) -> None:
    """Pairs of 50 tokens, and one beyond the floats: two samples."""
    assert apart(counted(rule, pair), sampled(rule, pair)) == []


@each("rule", TWINS)
def test_a_misread_algorithm_is_refuted(rule: str) -> None:
    """Negative control."""
    twins = TWINS[rule]
    for pair in TELLING:
        assert straying(counted(rule, pair), law(twins.misread, *PAIRS[pair], twins.ranks)) != [], pair


@pytest.mark.parametrize("replacement", [True, False], ids=["i.i.d.", "distinct"])
def test_kernels_of_a_draft_that_runs_out(replacement: bool) -> None:
    """Eight candidates of a draft that has three of seven tokens."""
    p, q = np.random.default_rng(7).dirichlet(np.full(7, 0.4), size=2)
    q[1::2] = 0
    q /= q.sum()
    counts = recursive_rejection(p, q, 5, TRIALS, state=words(6), replacement=replacement)
    algorithm = positions.iid_rejection if replacement else positions.distinct_rejection
    assert straying(counts, law(algorithm, p, q, 5)) == []


# Closed forms


def closed_form(rule: str, p: Floats, q: Floats) -> list[float]:
    """What theory says of ranks and outputs: R3, R5, R7, A1, A4, Y5; and that the rule is lossless."""
    if rule in ("recursive", "recursive-distinct"):
        given = [p[x] * RecursiveRejection(rule == "recursive").rank_pmf_given(p, q, x, RANKS) for x in range(p.size)]
        return [*np.array(given).T.ravel(), *p]
    if rule in ("k-seq", "top-k"):
        return [*(KSeq() if rule == "k-seq" else TopKMatch()).rank_pmf(p, q, RANKS), *p]
    if rule.startswith("over-accepted"):
        return [*output_law(p, q, an_accept(p, q), rule.split()[-1])]
    output = np.eye(p.size)[np.argmax(p)] if rule == "greedy" else p
    return [float(RULES[rule].acceptance(p, q)), *output]


def as_stated(rule: str, table: Floats) -> list[float]:
    """The same of the law of rank and output."""
    if rule in ("recursive", "recursive-distinct"):
        return [*table[:-1].ravel(), *table.sum(axis=0)]
    ranks = [] if rule.startswith("over-accepted") else table[:-1].sum(axis=1)
    return [*ranks, *table.sum(axis=0)]


@each("pair", FEW)
@each("rule", TWINS)
def test_the_algorithm_has_the_law_of_the_closed_form(rule: str, pair: str) -> None:
    twins = TWINS[rule]
    stated = closed_form(rule, *PAIRS[pair])
    np.testing.assert_allclose(
        as_stated(rule, law(twins.algorithm, *PAIRS[pair], twins.ranks)), stated, rtol=0, atol=ROUNDED
    )
    if pair in TELLING:
        misread = as_stated(rule, law(twins.misread, *PAIRS[pair], twins.ranks))
        assert np.abs(np.subtract(misread, stated)).max() > 0.01, "negative control"


# Races and Gumbel lists

RACE_KERNELS = {
    "dense": (dense_race, positions.race, positions.poisson_race),
    "lazy": (lazy_race, positions.race, positions.poisson_race),
    "poisson": (poisson_race, positions.poisson_race, positions.race),
}
"""Kernel, algorithm, misreading."""
RACED = [name for name, (p, q) in PAIRS.items() if (p[q > 0] < 1e3 * q[q > 0]).all()]
"""Pairs whose Poisson race comes to an end."""


@cache
def raced(algorithm: Algorithm, pair: str) -> Counts:
    """Outputs and ranks of races run as they are written, ``[V, RANKS + 2]``: without a rank, of rank r, higher."""
    p, q = PAIRS[pair]
    counts, stream = np.zeros((p.size, RANKS + 2), dtype=np.int64), Stream(words(21))
    for _ in range(RACES):
        judged = algorithm(p, q, 1, stream)
        counts[judged.token, min(judged.rank or 0, RANKS + 1)] += 1
    return counts


@each("pair", RACED)
@each("kernel", RACE_KERNELS)
def test_races_have_the_law_of_the_algorithm(kernel: str, pair: str) -> None:
    run, algorithm, misread = RACE_KERNELS[kernel]
    p, q = PAIRS[pair]
    counts = run(p, q, trials=TRIALS, state=words(22), max_rank=RANKS, by_output=True)
    assert apart(counts, raced(algorithm, pair)) == []
    if pair in TELLING:
        assert apart(counts, raced(misread, pair)) != [], "negative control"


@cache
def listed(pair: str, k: int) -> Counts:
    """Outputs and hits of Gumbel lists run as they are written, ``[3, V]``."""
    p, q = PAIRS[pair]
    counts, stream = np.zeros((3, p.size), dtype=np.int64), Stream(words(23, k))
    for _ in range(RACES):
        race = positions.gumbel_list(p, q, k, stream)
        hit = int(race.output in race.drafts) + int(race.drafts[race.source] == race.output)
        counts[hit, race.output] += 1
    return counts


@each("pair", FEW)
@each("kernel", [gumbel_list, lazy_gumbel_list])
def test_lists_have_the_law_of_the_algorithm(kernel: Callable[..., Counts], pair: str) -> None:
    for k in (1, 3):
        assert apart(kernel(*PAIRS[pair], k, TRIALS, state=words(24, k)), listed(pair, k)) == []
    if pair in TELLING:
        assert apart(kernel(*PAIRS[pair], 1, TRIALS, state=words(25)), listed(pair, 3)) != [], "negative control"
