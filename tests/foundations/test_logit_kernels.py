"""The exponential and the sums over logits, against 50 digits."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
import torch

from proofs_check.library.strategies import Floats
from proofs_check.twins.oracle import MP, Real
from spectheory.errors import LogitsError, ShapeError
from spectheory.kernels import logits
from spectheory.logit_statistics import PairStatistics, pair_statistics
from tests.foundations.kernel_cases import TOKENS, close, taken_at_any_size, without_numba

LAST_PLACE = 2.0**-52
"""One unit in the last place, relative, of the exponential."""

SUMS = 1e-13
"""Sums of 8192 terms of order ten at most, in eight or more lanes, from exponentials rounded by 1e-16."""

SINGLE_LOGITS = 1e-6
"""Logits up to 16 rounded to single precision, the rounding averaged over the vocabulary."""


# The exponential, and sums over logits


def test_the_exponential_is_right_to_the_last_place() -> None:
    """Over its whole range, near the ends of its reduction, and 0 where it would leave the normal floats."""
    steps = np.arange(-1020, 1) * math.log(2) / 2
    values = np.unique(
        np.concatenate([np.linspace(logits.LOWEST, 0, 4001), steps, steps + 1e-9, -np.logspace(-300, 0)])
    )
    values = values[(values >= logits.LOWEST) & (values <= 0)]
    exponentials = logits.exponentials(values)
    assert max(
        abs(MP.mpf(float(f)) / MP.exp(MP.mpf(float(v))) - 1) for f, v in zip(exponentials, values, strict=True)
    ) < (LAST_PLACE)
    below = np.array([np.nextafter(logits.LOWEST, -np.inf), -745.0, -1e300, -np.inf])
    np.testing.assert_array_equal(logits.exponentials(below), 0)
    np.testing.assert_array_equal(logits.exponentials(np.array([0.0, -0.0])), 1)


def test_the_exponential_is_numpys() -> None:
    values = np.random.default_rng(0).uniform(-700, 0, 100_000)
    np.testing.assert_allclose(logits.exponentials(values), np.exp(values), rtol=2 * LAST_PLACE, atol=0)


def exact_statistics(target: Floats, draft: Floats) -> list[Real]:
    """The six sums of two rows of logits at 50 digits."""
    pmfs = []
    for values in (target, draft):
        grown = [MP.exp(MP.mpf(float(v)) - MP.mpf(float(max(values)))) if v > -math.inf else MP.zero for v in values]
        whole = MP.fsum(grown)
        pmfs.append([g / whole for g in grown])
    both = [(a, b) for a, b in zip(*pmfs, strict=True) if a + b > 0]
    cross = MP.inf if any(b == 0 for a, b in both if a > 0) else MP.fsum(-a * MP.log(b) for a, b in both if a > 0)
    entropy = MP.fsum(-a * MP.log(a) for a, _ in both if a > 0)
    return [
        MP.fsum(abs(a - b) for a, b in both) / 2,
        cross - entropy,
        entropy,
        MP.fsum(a * MP.log(a) ** 2 for a, _ in both if a > 0),
        cross,
        MP.fsum(2 * a * b / (a + b) for a, b in both),
    ]


def logit_pairs() -> dict[str, tuple[Floats, Floats]]:
    rng = np.random.default_rng(8)
    values = 3 * rng.standard_normal(700)
    noisy = values + rng.standard_normal(700)
    cut = np.where(np.arange(700) % 3 == 0, -np.inf, values)
    return {
        "language": (values, noisy),
        "equal": (values, values.copy()),
        "far from zero": (values + 1e4, noisy - 1e4),
        "wide": (300 * values, 300 * noisy),
        "both cut": (cut, np.where(cut == -np.inf, -np.inf, noisy)),
        "target cut": (cut, noisy),
        "draft cut": (noisy, cut),
        "one token": (np.array([2.0]), np.array([-7.0])),
        "certain": (np.array([0.0, -1e6, -50.0]), np.array([0.0, -3.0, -1e3])),
    }


LOGITS = logit_pairs()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", sorted(LOGITS))
def test_logit_statistics_at_fifty_digits(name: str, compiled: bool) -> None:
    target, draft = LOGITS[name]
    with taken_at_any_size() if compiled else without_numba():
        statistics = pair_statistics(target, draft)
    for value, exact in zip(astuple(statistics), exact_statistics(target, draft), strict=True):
        if exact == MP.inf:
            assert value == math.inf
        else:
            assert abs(MP.mpf(float(value)) - exact) <= SUMS * (1 + abs(exact))
            assert value >= 0


@pytest.mark.parametrize("apart", [1e-9, 1e-5, 1e-2, 0.03125, 0.2])
def test_kl_of_nearly_equal_logits_keeps_its_digits(apart: float) -> None:
    """Relative, where cross entropy less entropy has none left; through both ways a term is summed."""
    target, noisy = LOGITS["language"]
    draft = target + apart * (noisy - target)
    exact = exact_statistics(target, draft)[1]
    with taken_at_any_size():
        statistics = pair_statistics(target, draft)
    for value in (statistics.kl, pair_statistics(target, draft).kl):
        assert close(value, exact, 1e-10)
    if apart == 1e-9:
        assert not close(statistics.cross_entropy - statistics.target_entropy, exact, 0.1)


def test_logit_statistics_of_large_rows() -> None:
    """Kernel and arrays, both precisions, batches that broadcast, numpy and torch."""
    rng = np.random.default_rng(2)
    target = 3 * rng.standard_normal((2, 1, TOKENS))
    draft = target[0] + rng.standard_normal((3, TOKENS))
    statistics = pair_statistics(target, draft)
    with without_numba():
        twin = pair_statistics(target, draft)
        from_torch = pair_statistics(torch.from_numpy(target), torch.from_numpy(draft))
    single = pair_statistics(target.astype(np.float32), draft.astype(np.float32))
    for ours, theirs, tensor, rounded in zip(*map(astuple, (statistics, twin, from_torch, single)), strict=True):
        assert ours.shape == (2, 3)
        np.testing.assert_allclose(ours, theirs, rtol=SUMS)
        np.testing.assert_allclose(tensor.numpy(), theirs, rtol=SUMS)
        assert rounded.dtype == np.float64
        np.testing.assert_allclose(rounded, theirs, rtol=SINGLE_LOGITS)
    one = pair_statistics(target[1, 0], draft[2])
    assert [float(value) for value in astuple(one)] == [value[1, 2] for value in astuple(statistics)]
    assert isinstance(statistics, PairStatistics)


@pytest.mark.parametrize("tokens", [4, TOKENS])
@pytest.mark.parametrize("bad", ["nan", "inf", "all -inf"])
def test_logits_without_a_pmf_are_refused(bad: str, tokens: int) -> None:
    good, rows = np.zeros((2, tokens)), np.zeros((2, tokens))
    rows[1] = -math.inf if bad == "all -inf" else rows[1]
    rows[1, 2] = -math.inf if bad == "all -inf" else float(bad)
    for target, draft in ((good, rows), (rows, good)):
        with pytest.raises(LogitsError, match="row 1") as caught:
            pair_statistics(target, draft)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shapes", [((4,), (5,)), ((2, 4), (3, 4)), ((0,), (0,)), ((), (4,))])
def test_logits_that_do_not_fit_are_refused(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ShapeError) as caught:
        pair_statistics(*(np.zeros(shape) for shape in shapes))
    assert "\n" not in str(caught.value)


def test_wrong_sums_are_caught() -> None:
    """Negative control: KL the other way round, entropy in bits and a dropped half are no rounding."""
    target, draft = LOGITS["language"]
    tv, kl, entropy = exact_statistics(target, draft)[:3]
    statistics = pair_statistics(target, draft)
    for wrong, exact in (
        (pair_statistics(draft, target).kl, kl),
        (statistics.target_entropy / math.log(2), entropy),
        (2 * statistics.total_variation, tv),
    ):
        assert not close(wrong, exact, 1e-3)
