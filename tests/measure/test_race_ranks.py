"""R2 and R3: ranks among distinct drafts, exactly, estimated without bias, by simulation, and along a text."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from proofs_check.library.strategies import extreme_pairs
from proofs_check.statement.arithmetic import floats
from proofs_check.twins import race_ranks
from proofs_check.twins.oracle import MP, exactly
from spectheory.distributions import Sampling
from spectheory.drafting import Tree
from spectheory.errors import SettingError, TraceError
from spectheory.measure.columns import rejection, statistics
from spectheory.measure.columns.noise import position_keys, text_key, uniforms
from spectheory.measure.columns.rejection import SEQUENCES
from spectheory.measure.columns.statistics import position_statistics
from spectheory.prediction.paths import calls_of_tree, tree_survival
from spectheory.trace import DISTINCT_RANKS
from spectheory.verification import GumbelList, PoissonRace, RaceVerification, RecursiveRejection
from spectheory.verification import race as race_file

Floats = NDArray[np.float64]
RACE = RaceVerification()

SUBNORMAL = 1e-3
"""A number of 1e-320 has two thousand steps."""
QUADRATURE = 2e-15
"""The trapezoid rule with 361 nodes and the rounding of its sum."""
RELATIVE = 1e-13
"""First ranks come in closed form."""


def weights(*parts: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(part, sum(parts)) for part in parts)


SMALL = [
    (weights(5, 3, 2), weights(2, 3, 5)),
    (weights(1, 2), weights(2, 1)),
    (weights(1, 0, 3), weights(1, 3, 0)),
    (weights(4, 1, 1, 2), weights(1, 4, 2, 1)),
    (weights(9, 1, 1, 1, 1), weights(1, 1, 1, 1, 9)),
    (weights(1, 1, 1), weights(1, 1, 1)),
    (weights(997, 1, 1, 1), weights(1, 997, 1, 1)),
]


@pytest.mark.parametrize(("p", "q"), SMALL, ids=str)
def test_rank_law_in_fractions(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> None:
    """Joint law of rank and output, rank law and E[R] equal the integrals multiplied out."""
    size = len(p)
    for token in range(size):
        exact = race_ranks.rank_given(p, q, token)
        given = RACE.rank_pmf_given(floats(p), floats(q), token, size)
        np.testing.assert_allclose(given, [float(share) for share in exact], rtol=0, atol=QUADRATURE)
    law = race_ranks.rank_law(p, q)
    np.testing.assert_allclose(
        RACE.rank_pmf(floats(p), floats(q), size), [float(s) for s in law], rtol=0, atol=QUADRATURE
    )
    unseen = 1 - sum(law)
    assert unseen == sum((a for a, b in zip(p, q, strict=True) if b == 0), Fraction(0))
    mean = sum((r * share for r, share in enumerate(law, 1)), Fraction(0))
    expected = float(mean) if unseen == 0 else math.inf
    assert RACE.expected_rank(floats(p), floats(q)) == pytest.approx(expected, rel=RELATIVE)
    assert RACE.acceptance(floats(p), floats(q), 2) == pytest.approx(float(law[0] + law[1]), abs=QUADRATURE)


@pytest.mark.parametrize("name", sorted(name for name, (p, _) in extreme_pairs().items() if len(p) <= 4))
def test_extreme_pairs_at_fifty_digits(name: str) -> None:
    p, q = extreme_pairs()[name]
    exact = race_ranks.rank_law(exactly(p), exactly(q))
    law = RACE.rank_pmf(p, q, len(p))
    for r, share in enumerate(exact):
        assert abs(MP.mpf(float(law[r])) - share) <= QUADRATURE
    assert abs(MP.mpf(float(law[0])) - exact[0]) <= RELATIVE * exact[0]


@pytest.mark.parametrize("name", ["random", "peaked", "nearly equal", "equal"])
def test_ranks_add_up(name: str) -> None:
    """All ranks together are certain, their mean is E[R], and the first is the race's acceptance rate."""
    p, q = extreme_pairs()[name]
    law = RACE.rank_pmf(p, q, len(p))
    assert law.sum() == pytest.approx(1, abs=1e-13)
    assert law @ np.arange(1, len(p) + 1) == pytest.approx(float(RACE.expected_rank(p, q)), rel=1e-12)
    assert law[0] == pytest.approx(float(RACE.acceptance(p, q)), rel=RELATIVE)


def test_simulated_races() -> None:
    """400,000 dense races: every P(R = r) within 5.6 standard errors (2e-8 each); replacement would be 40 off."""
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.full(9, 0.7)), rng.dirichlet(np.full(9, 0.7))
    trials, size = 400_000, len(p)
    clocks = rng.exponential(size=(trials, size))
    output = np.argmin(clocks / p, axis=1)
    arrivals = clocks / q
    ranks = 1 + np.sum(arrivals < arrivals[np.arange(trials), output][:, None], axis=1)
    counted = np.bincount(ranks, minlength=size + 1)[1:] / trials
    law = RACE.rank_pmf(p, q, size)
    errors = np.sqrt(law * (1 - law) / trials)
    limit = norm.isf(1e-8)
    assert (np.abs(counted - law) <= limit * errors + 1e-9).all()
    wrong = PoissonRace().rank_pmf(p, q, size)
    assert np.max(np.abs(counted - wrong) / np.sqrt(wrong * (1 - wrong) / trials)) > 2 * limit


def test_batches_and_libraries() -> None:
    rng = np.random.default_rng(6)
    p, q = rng.dirichlet(np.ones(6), (2, 3)), rng.dirichlet(np.ones(6), (1, 3))
    law = RACE.rank_pmf(p, q, 4)
    assert law.shape == (2, 3, 4)
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(law[at], RACE.rank_pmf(p[at], q[0, at[1]], 4), atol=QUADRATURE)
    tokens = rng.integers(6, size=(2, 3))
    given = RACE.rank_pmf_given(p, q, tokens, 4)
    for at in np.ndindex(2, 3):
        expected = RACE.rank_pmf_given(p[at], q[0, at[1]], int(tokens[at]), 4)
        np.testing.assert_allclose(given[at], expected, atol=QUADRATURE)
    ours = RACE.rank_pmf(torch.from_numpy(p), torch.from_numpy(q), 4)
    assert isinstance(ours, torch.Tensor)
    np.testing.assert_allclose(ours.numpy(), law, atol=QUADRATURE)


def test_a_ratio_beyond_the_floats() -> None:
    """p/q of the winner overflows: the other token comes before it for certain, in every precision."""
    for p, q in (
        (np.array([0.5, 0.5]), np.array([5e-324, 1.0])),
        (np.array([0.5, 0.5], np.float32), np.array([1e-39, 1.0], np.float32)),
    ):
        np.testing.assert_allclose(RACE.rank_pmf(p, q, 2), [0.5, 0.5], rtol=1e-6)
        assert float(RACE.expected_rank(p, q)) == pytest.approx(1.5, rel=1e-6)
    # Two tokens of subnormal mass: relative to each other they are ordinary.
    law = RACE.rank_pmf_given([0.5, 0.25, 0.25], [2e-320, 1e-320, 1.0], 0, 3)
    rate = 0.5 * 0.5 - 0.25
    np.testing.assert_allclose(law, [0, 1 / (1 + rate), rate / (1 + rate)], atol=SUBNORMAL)


@pytest.mark.parametrize("lead", [(), (2, 3)], ids=str)
def test_winners_in_blocks(lead: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one winner, of some that do not divide, and of all give the same numbers, in both libraries."""
    rng = np.random.default_rng(8)
    p, q = rng.dirichlet(np.full(7, 0.5), lead), rng.dirichlet(np.full(7, 0.5), lead[-1:])
    laws, means = [], []
    for block in (1, 4 * 361 * 5, 1 << 20):
        monkeypatch.setattr(race_file, "_BLOCK", block)
        for convert in (np.asarray, torch.from_numpy):
            laws.append(np.asarray(RACE.rank_pmf(convert(p), convert(q), 5)))
            means.append(np.asarray(RACE.expected_rank(convert(p), convert(q))))
    for law, mean in zip(laws, means, strict=True):
        np.testing.assert_allclose(law, laws[0], rtol=0, atol=1e-15)
        np.testing.assert_allclose(mean, means[0], rtol=1e-15)


def test_no_matrix_of_the_vocabulary_is_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rates of 5,000 tokens would take 200 MB; the integrals are left out, as they take minutes."""
    rng = np.random.default_rng(9)
    p, q = rng.dirichlet(np.ones(5000), 2)
    monkeypatch.setattr(race_file, "_counted", lambda rates, most, nodes, xp: np.zeros((len(rates), most - 1)))
    for ask in (lambda: RACE.expected_rank(p, q), lambda: RACE.rank_pmf(p, q, 2)):
        tracemalloc.start()
        ask()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 80e6
    # The first rank comes by a sort: 200,000 tokens at once.
    p, q = rng.dirichlet(np.ones(200_000), 2)
    assert RACE.rank_pmf(p, q, 1) == pytest.approx([float(RACE.acceptance(p, q))], rel=RELATIVE)


@pytest.mark.parametrize("q", [[1e-307, 0.5, 0.5], [1e-307, 1e-307, 1.0], [2e-308, 1e-308, 1.0]], ids=str)
def test_ratios_near_the_largest_float(q: list[float]) -> None:
    """p/q of 5e306 and more: sums and exponents overflow to infinity, which is where they belong, in silence."""
    p = [0.5, 0.3, 0.2]
    law = RACE.rank_pmf(p, q, 3)
    exact = race_ranks.rank_law(exactly(p), exactly(q))
    np.testing.assert_allclose(law, [float(share) for share in exact], rtol=0, atol=QUADRATURE)
    assert float(RACE.expected_rank(p, q)) == pytest.approx(float(law @ [1, 2, 3]), rel=1e-12)
    accepted = float(GumbelList().acceptance(p, q, 3))
    assert float(GumbelList().acceptance_bound(p, q, 3)) <= accepted * (1 + RELATIVE) <= 1 + RELATIVE


@pytest.mark.parametrize("size", [60, 200, 400])
def test_high_ranks(size: int) -> None:
    """A certain output against a uniform draft stands at every place alike; the nodes follow the ranks."""
    law = RACE.rank_pmf_given(np.eye(size)[0], np.full(size, 1 / size), 0, size)
    np.testing.assert_allclose(law * size, 1, rtol=1e-13)


def test_a_recorded_law() -> None:
    """One rank needs race_g alone; more are read, and a row that rounding brought above one is scaled."""
    columns = {"race_g": np.array([1.0, math.inf])}
    np.testing.assert_array_equal(RACE.rank_law(columns, 1), [[0.5], [0.0]])
    with pytest.raises(TraceError, match="no race_rank"):
        RACE.rank_law(columns, 2)
    columns["race_rank"] = np.array([[0.5, 0.5 + 1e-7], [0.0, 0.0]])
    assert RACE.rank_law(columns, 2).sum(axis=1).max() <= 1
    with pytest.raises(SettingError, match="records ranks up to 2"):
        RACE.rank_law(columns, 3)
    columns["race_rank"] = np.array([[0.5, 0.6], [0.0, 0.0]])
    with pytest.raises(TraceError, match=r"sums to 1\.1"):
        RACE.rank_law(columns, 2)


KEYS = 4_000
"""Estimates whose mean is compared: a bias of six standard errors, 6 / sqrt(KEYS) = 9% of one's spread, would show."""
FALSE_ALARM = 1e-8
"""Of one comparison of a mean, two-sided normal; there are fewer than a hundred, so 1e-6 for the file."""
ROUNDING = 3e-6
"""Absolute: as of the other columns in float32."""
EXACT = 1e-12
"""Two float64 routes to one number of order one."""
RULE = RecursiveRejection(replacement=False)


def estimates(target: torch.Tensor, draft: torch.Tensor, token: int, sampling: Sampling, key: int = 0) -> Floats:
    """Laws ``[KEYS, 4]`` of one position with a key each."""
    rows = (logits.expand(KEYS, -1) for logits in (target, draft))
    columns = position_statistics(
        *rows, torch.full((KEYS,), token), sampling, keys=position_keys(key, 0, KEYS), sampled=False
    )
    law: Floats = columns["distinct_rank"].numpy()
    return law


def enumerated(target: torch.Tensor, draft: torch.Tensor, token: int, sampling: Sampling) -> Floats:
    p, q = (np.exp(sampling.log_pmf(logits.double().numpy())) for logits in (target, draft))
    law: Floats = RULE.rank_pmf_given(p / p.sum(), q / q.sum(), token, DISTINCT_RANKS)
    return law


def biased(law: Floats, exact: Floats) -> bool:
    """Whether the mean of the estimates is not `exact`, at the false-alarm rate."""
    error = law.std(axis=0, ddof=1) / math.sqrt(len(law))
    return bool(np.any(np.abs(law.mean(axis=0) - exact) > norm.isf(FALSE_ALARM / 2) * error + ROUNDING))


def small_pair(seed: int, size: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = 2 * torch.randn(size, generator=generator)
    return target, target + 1.5 * torch.randn(size, generator=generator)


CASES = [
    *((seed, 6, Sampling()) for seed in range(3)),
    (3, 3, Sampling()),  # fewer tokens than ranks
    (4, 2, Sampling()),
    (1, 6, Sampling(top_k=3)),  # the draft runs out
    (1, 6, Sampling(top_k=2)),
    (2, 6, Sampling(top_p=0.7)),
    (1, 6, Sampling(temperature=0)),
    (5, 6, Sampling(temperature=0.01)),  # the draft's second choice is far below single precision
]


@pytest.mark.parametrize(("seed", "size", "sampling"), CASES, ids=str)
def test_means_are_the_enumeration(seed: int, size: int, sampling: Sampling) -> None:
    target, draft = small_pair(seed, size)
    possible = np.isfinite(sampling.log_pmf(target.double().numpy())).nonzero()[0]
    for token in possible.tolist():
        law, exact = estimates(target, draft, token, sampling, key=seed), enumerated(target, draft, token, sampling)
        assert not biased(law, exact), token
        np.testing.assert_allclose(law[:, 0], exact[0], rtol=ROUNDING, atol=ROUNDING)
        assert law.min() >= 0
        assert law.sum(axis=1).max() <= 1 + EXACT


def test_wrong_laws_are_caught() -> None:
    """Negative control: the enumeration with replacement, with i.i.d. rank 3, or of another token is rejected."""
    target, draft = small_pair(1)
    law = estimates(target, draft, 0, Sampling())
    p, q = (torch.softmax(x.double(), 0).numpy() for x in (target, draft))
    exact = enumerated(target, draft, 0, Sampling())
    iid = RecursiveRejection().rank_pmf_given(p, q, 0, DISTINCT_RANKS)
    assert not biased(law, exact)
    for wrong in (
        iid,
        np.array([*exact[:2], iid[2], exact[3]]),
        enumerated(target, draft, 1, Sampling()),
        exact * 0.99,
    ):
        assert biased(law, wrong)


def test_a_larger_vocabulary_and_the_library_s_own_estimate() -> None:
    """V = 300: the mean over the output of these laws against trials of another make, at four standard errors twice."""
    generator = torch.Generator().manual_seed(11)
    target = 2 * torch.randn(300, generator=generator)
    draft = target + torch.randn(300, generator=generator)
    p, q = (torch.softmax(x.double(), 0).numpy() for x in (target, draft))
    tokens = np.arange(300).repeat(20)
    rows = (x.expand(len(tokens), -1) for x in (target, draft))
    law = position_statistics(*rows, torch.from_numpy(tokens), Sampling())["distinct_rank"].numpy()
    of_token = law.reshape(300, 20, DISTINCT_RANKS)
    mean = (p[:, None] * of_token.mean(axis=1)).sum(axis=0)
    error = np.sqrt((p[:, None] ** 2 * of_token.var(axis=1, ddof=1) / 20).sum(axis=0))
    other, other_error = RULE.rank_pmf_estimate(p, q, DISTINCT_RANKS, 2000, rng=np.random.default_rng(0))
    limit = norm.isf(FALSE_ALARM / 2) * np.hypot(error, other_error) + ROUNDING
    assert np.all(np.abs(mean - other) < limit)
    assert limit[3] < 0.01


def test_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of what is left, and the definition from logarithms, draw the same tokens from the same noise."""
    generator = torch.Generator().manual_seed(12)
    target = 3 * torch.randn(40, 200, generator=generator)
    draft = target + 2 * torch.randn(40, 200, generator=generator)
    tokens = torch.distributions.Categorical(logits=target).sample()
    fast = position_statistics(target, draft, tokens, Sampling())["distinct_rank"]
    monkeypatch.setattr(rejection, "_LEAST_LEFT", 2.0)
    slow = position_statistics(target, draft, tokens, Sampling())["distinct_rank"]
    assert not torch.equal(fast, slow)
    torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-5)


def test_equal_disjoint_and_impossible() -> None:
    equal = small_pair(6)[0]
    np.testing.assert_array_equal(estimates(equal, equal.clone(), 2, Sampling())[0], [1, 0, 0, 0])
    target = torch.tensor([0.0, 1.0, -math.inf, -math.inf, -math.inf])
    draft = torch.tensor([-math.inf, -math.inf, 0.0, 1.0, 2.0])
    # All three candidates of the draft are rejected, the fourth is one of the two tokens left.
    for token in (0, 1):
        law, exact = estimates(target, draft, token, Sampling()), enumerated(target, draft, token, Sampling())
        assert not biased(law, exact)
        np.testing.assert_array_equal(law[:, :3], 0)
        assert law[0, 3] > 0.5
    assert (estimates(target, draft, 2, Sampling()) == 0).all()


def test_a_token_without_mass_is_never_rejected() -> None:
    """A draw at either end of [0, 1), and a scan out of order."""
    density = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]])
    heights = torch.tensor([[0.0, 1.0, 0.9999999999]], dtype=torch.float64)
    tokens, mass = rejection._rejected(heights, torch.stack([density, density]))
    assert tokens.tolist() == [[1, 3, 3]]
    assert torch.equal(mass, torch.full_like(mass, 1.0))
    tokens, mass = rejection._rejected(heights, torch.zeros(2, 1, 5))
    assert (mass == 0).all()


def test_noise_depends_on_place_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of any size, or a text read in pieces: the same bits."""
    generator = torch.Generator().manual_seed(8)
    target = 3 * torch.randn(23, 100, generator=generator)
    draft = target + torch.randn(23, 100, generator=generator)
    tokens, keys = target.argmin(dim=-1), position_keys(text_key(5, 1, 0), 0, 23)

    def law(rows: slice) -> torch.Tensor:
        return position_statistics(target[rows], draft[rows], tokens[rows], Sampling(), keys=keys[rows])[
            "distinct_rank"
        ]

    whole = law(slice(None))
    for size in (100, 300, 700):
        monkeypatch.setattr(statistics, "CPU_BLOCK", size)
        assert torch.equal(law(slice(None)), whole)
        assert torch.equal(torch.cat([law(slice(0, 9)), law(slice(9, 23))]), whole)
    assert not torch.equal(position_statistics(target, draft, tokens, Sampling())["distinct_rank"], whole)


def test_keys_and_uniforms() -> None:
    """Keys of a text go on where they are; numbers are uniform and uncorrelated between neighbours (five errors)."""
    keys = position_keys(text_key(0, 3, 1), 0, 50_000)
    np.testing.assert_array_equal(position_keys(text_key(0, 3, 1), 49_990, 10), keys[-10:])
    assert len(np.unique(keys)) == len(keys)
    numbers = uniforms(keys, 12)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    error = 1 / math.sqrt(numbers.size)
    normal = (numbers - 0.5) * math.sqrt(12)
    limit = norm.isf(FALSE_ALARM / 2)
    assert abs(normal.mean()) < limit * error
    assert abs((normal**2).mean() - 1) < limit * error * math.sqrt(0.8)  # the square of a uniform has variance 4/5
    for pair in (normal[1:] * normal[:-1], normal[:, 1:] * normal[:, :-1]):
        assert abs(pair.mean()) < limit / math.sqrt(pair.size)
    assert text_key(0, 3, 1) not in {text_key(1, 3, 1), text_key(0, 1, 3), text_key(0, 3)}
    # Published first outputs of SplitMix64 from state 1234567 (Rosetta Code, "Pseudo-random numbers/Splitmix64").
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert position_keys(1234567, 0, 5).tolist() == known


# Along a text

TREE = Tree.from_paths([path for depth in (1, 2, 3) for path in itertools.product((1, 2), repeat=depth)])


def calls(laws: Floats) -> Floats:
    """Expected calls C(0), ``[texts]``, from rank laws ``[texts, tokens, ranks]``."""
    texts, tokens, ranks = laws.shape
    return calls_of_tree(*tree_survival(laws.reshape(-1, ranks), TREE), np.full(texts, tokens)).expected


def test_independent_estimates_give_unbiased_calls_and_shared_ones_do_not() -> None:
    """Two estimates per position, all their combinations: the mean of C(0) is C(0) of the means, to the last digits.

    With noise shared by the positions of the text it is not.
    """
    rng = np.random.default_rng(3)
    laws = rng.dirichlet([4, 3, 2], (2, 6))[:, :, :2]
    exact = calls(laws.mean(axis=0, keepdims=True))[0]
    choices = np.array(list(itertools.product((0, 1), repeat=6)))
    assert calls(laws[choices, np.arange(6)]).mean() == pytest.approx(exact, rel=EXACT)
    assert abs(calls(laws).mean() / exact - 1) > 1e-3


@pytest.mark.evidence
def test_calls_of_estimated_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact laws by enumeration against the mean of many texts' estimates, at the false-alarm rate; shared noise fails.

    One sequence per position, as the bias of shared noise grows with its variance. For the control every position of a
    text has the key of the text.
    """
    monkeypatch.setattr(rejection, "SEQUENCES", 1)
    texts, tokens, token = 10_000, 6, 1
    target, draft = small_pair(22, 4)  # the law of its second rank has a large spread
    exact = calls(np.tile(enumerated(target, draft, token, Sampling()), (1, tokens, 1)))[0]
    first = position_keys(1, 0, texts)
    by_text = np.stack([position_keys(int(key), 0, tokens) for key in first])
    shared = np.repeat(first[:, None], tokens, axis=1)
    off = {}
    for name, keys in (("own", by_text), ("shared", shared)):
        rows = (x.expand(texts * tokens, -1) for x in (target, draft))
        column = position_statistics(*rows, torch.full((texts * tokens,), token), Sampling(), keys=keys.reshape(-1))
        laws = RULE.rank_law({key: values.numpy() for key, values in column.items()}, DISTINCT_RANKS)
        means = calls(laws.reshape(texts, tokens, -1))
        off[name] = abs(means.mean() - exact) / (means.std(ddof=1) / math.sqrt(texts))
    assert off["own"] < norm.isf(FALSE_ALARM / 2)
    assert off["shared"] > norm.isf(FALSE_ALARM / 2)


def test_sequences_are_averaged() -> None:
    """The law of a position is the mean over as many sequences: one sequence alone has a larger spread."""
    target, draft = small_pair(1)
    many = estimates(target, draft, 0, Sampling()).std(axis=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rejection, "SEQUENCES", 1)
        one = estimates(target, draft, 0, Sampling()).std(axis=0)
    # The first tokens come from equal shares, so the spread falls by no less than the square root.
    assert (one[1:] > math.sqrt(SEQUENCES) * many[1:] * 0.95).all()
    assert many[3] > 0
