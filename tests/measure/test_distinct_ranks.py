"""The estimated rank law of recursive rejection over distinct candidates: unbiased at a position, and along a text."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from spectheory.distributions import Sampling
from spectheory.drafting import Tree
from spectheory.measure.columns import rejection, statistics
from spectheory.measure.columns.noise import position_keys, text_key, uniforms
from spectheory.measure.columns.rejection import SEQUENCES
from spectheory.measure.columns.statistics import position_statistics
from spectheory.prediction.paths import calls_of_tree, tree_survival
from spectheory.trace import DISTINCT_RANKS
from spectheory.verification import RecursiveRejection

Floats = NDArray[np.float64]
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
