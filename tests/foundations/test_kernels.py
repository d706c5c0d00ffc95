"""Compiled kernels: which arrays they take; ratio order, race, enclosure, exponential and logit sums at 50 digits."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, extreme_pairs, pairs, theorem
from proofs_check.twins import oracle
from proofs_check.twins.oracle import MP, Real
from spectheory import kernels
from spectheory.divergences import hockey_stick_at_ratios
from spectheory.errors import LogitsError, PmfError, ShapeError
from spectheory.kernels import compiling, logits, race
from spectheory.logit_statistics import _PairStatistics, pair_statistics
from spectheory.verification import RaceVerification
from spectheory.verification.race_bounds import race_enclosure
from tests.made_up import each

RELATIVE = 1e-12
"""The array twin adds V terms one after another, each rounded by 1e-16; V = 8192."""

TOKENS = 8192


@contextmanager
def taken_at_any_size() -> Iterator[None]:
    """Kernels whatever the vocabulary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "SMALLEST", 1)
        yield


@contextmanager
def without_numba() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "installed", lambda: False)
        yield


def softmax(values: Floats) -> Floats:
    grown = np.exp(values - values.max())
    return grown / grown.sum()


def language_like(tokens: int, seed: int = 0, scale: float = 3.0) -> tuple[Floats, Floats]:
    """Softmax of normal logits, and of the same logits with noise."""
    rng = np.random.default_rng(seed)
    values = scale * rng.standard_normal(tokens)
    return softmax(values), softmax(values + rng.standard_normal(tokens))


def normalised(values: Floats) -> Floats:
    return values / values.sum()


def hard_pairs(tokens: int) -> dict[str, tuple[Floats, Floats]]:
    """Ratios that fill one bucket, two, or thousands of powers of two; supports that differ."""
    rng = np.random.default_rng(3)
    p, q = language_like(tokens, seed=3)
    half = np.arange(tokens) < tokens // 2
    nested = np.exp2(-np.exp2(rng.integers(0, 9, tokens)))
    return {
        "language": (p, q),
        "sharper draft": (p, normalised(p**4)),
        "equal": (p, p.copy()),
        "two ratios": (p, normalised(np.where(half, p, 2 * p))),
        "within 1e-12": (p, normalised(p * (1 + 1e-12 * rng.uniform(-1, 1, tokens)))),
        "half within 1e-12": (p, normalised(np.where(half, p, q) * (1 + 1e-12 * rng.uniform(-1, 1, tokens)))),
        "one outlier": (p, normalised(np.where(np.arange(tokens) == 5, 1e-300, q))),
        "hundreds of powers": (p, normalised(np.exp(rng.uniform(-600, 0, tokens)))),
        "clusters in clusters": (p, normalised(p * (1 + nested * rng.uniform(-1, 1, tokens)))),
        "subnormal draft": (p, normalised(np.where(half, 1e-310, q))),
        "top 50 of the target": (normalised(np.where(p >= np.sort(p)[-50], p, 0)), q),
        "top 50 of the draft": (p, normalised(np.where(q >= np.sort(q)[-50], q, 0))),
        "half supports": (normalised(np.where(half, p, 0)), normalised(np.where(np.roll(half, tokens // 4), q, 0))),
        "disjoint": (normalised(np.where(half, p, 0)), normalised(np.where(half, 0, q))),
        "one-hot": (np.eye(1, tokens)[0], q),
    }


HARD = hard_pairs(TOKENS)


def close(value: Any, exact: Real, tolerance: float) -> bool:
    return bool(abs(MP.mpf(float(value)) - exact) <= tolerance * abs(exact))


def assert_same_g(g: Floats, twin: Floats) -> None:
    """Equal relative to 1 + g, the form the race uses."""
    np.testing.assert_array_equal(g == np.inf, twin == np.inf)
    finite = np.isfinite(twin)
    assert np.all(np.abs(g[finite] - twin[finite]) <= RELATIVE * (1 + twin[finite]))


# Which arrays are taken


def test_kernels_take_large_float64_numpy_arrays_alone() -> None:
    large = np.full(TOKENS, 1 / TOKENS)
    assert kernels.usable(large, large)
    for other in (large[: kernels.SMALLEST - 1], large.astype(np.float32), torch.from_numpy(large), large.tolist()):
        assert not kernels.usable(large, other)
    assert not kernels.usable(large.astype(">f8"))
    with without_numba():
        assert not kernels.usable(large)


def test_rules_use_the_kernels_where_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    p, q = HARD["language"]
    with without_numba():
        twin = hockey_stick_at_ratios(p, q, np)
    assert_same_g(hockey_stick_at_ratios(p, q, np), twin)
    monkeypatch.setattr(race, "hockey_stick_at_ratios", lambda p, q: "compiled")
    assert hockey_stick_at_ratios(p, q, np) == "compiled"
    with without_numba():
        np.testing.assert_array_equal(hockey_stick_at_ratios(p, q, np), twin)


def test_rows_broadcast_and_may_be_read_only_or_strided() -> None:
    p, q = language_like(TOKENS)
    grid = np.stack([p, q])
    frozen = grid.copy()
    frozen.flags.writeable = False
    expected = [[race.race_acceptance(a, b) for b in (p, q)] for a in (p, q)]
    for target in (grid, frozen, np.asfortranarray(grid), np.broadcast_to(grid, (2, TOKENS))):
        np.testing.assert_array_equal(race.race_acceptance(target[:, None], target), expected)
    g = race.hockey_stick_at_ratios(grid[:, None], grid)
    assert g.shape == (2, 2, TOKENS)
    np.testing.assert_array_equal(g[0, 1], race.hockey_stick_at_ratios(p, q))


def test_threads_do_not_share_their_scratch_memory() -> None:
    jobs = [language_like(TOKENS + 100 * seed, seed) for seed in range(4)]
    alone = [(race.race_acceptance(p, q), race_enclosure(p, q)) for p, q in jobs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(lambda job: (race.race_acceptance(*job), race_enclosure(*job)), jobs)) == alone


def test_importing_loads_no_numba() -> None:
    line = (
        "import sys, spectheory.kernels, spectheory.logit_statistics, spectheory.verification; "
        "spectheory.verification.race_enclosure([1.0], [1.0]); print('numba' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_a_numba_that_does_not_import_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ImportError(f"{name} needs another numpy")

    assert kernels.installed()
    monkeypatch.setattr(kernels.importlib, "import_module", broken)
    assert not kernels.installed.__wrapped__()


def test_without_a_folder_kernels_are_compiled_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def njit(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, options)

    monkeypatch.setattr(compiling, "numba", SimpleNamespace(njit=njit))
    function, options = compiling.compiled(math.sqrt)  # type: ignore[misc]
    assert function is math.sqrt
    assert options == {"error_model": "numpy", "fastmath": {"contract"}, "nogil": True}


COMPENSATED = 2e-15
"""A term p/(1+g) is rounded about five times, 1e-16 each, and the sums keep their rounding errors."""

WIDTH = 1e-9
"""What the enclosure promises for pmfs that sum to one in double precision."""

PAIRS = extreme_pairs()


@pytest.fixture(params=sorted(PAIRS))
def pair(request: pytest.FixtureRequest) -> tuple[Floats, Floats]:
    return PAIRS[request.param]


HARD_SMALL = hard_pairs(600)


def race_by_one_sort(p: Floats, q: Floats) -> Real:
    """A2 at 50 digits by exact ratios in exact order: the oracle's double sum takes too long for many tokens."""
    tokens = sorted((a / b, a, b) for a, b in zip(oracle.exactly(p), oracle.exactly(q), strict=True) if b > 0)
    below_p = below_q = total = MP.zero
    whole = MP.fsum(oracle.exactly(p))
    for ratio, a, b in tokens:
        total += a / (whole + ratio * below_q - below_p)
        below_p, below_q = below_p + a, below_q + b
    return total


# Ratio order


@each("name", sorted(HARD))
def test_the_ratio_order_is_a_sort(name: str) -> None:
    """Every token once, ratios ascending, and what has no ratio apart."""
    p, q = HARD[name]
    ratios, carried, left = race.ratio_order(p, q, np.arange(float(TOKENS)))
    with np.errstate(all="ignore"):
        every = p / q
    usable = (every > 0) & np.isfinite(every)
    np.testing.assert_array_equal(ratios, np.sort(every[usable]))
    np.testing.assert_array_equal(every[carried.astype(int)], ratios)
    np.testing.assert_array_equal(np.sort(np.concatenate([carried, left.imag])), np.arange(TOKENS))
    np.testing.assert_array_equal(every[left.imag.astype(int)], left.real)


@theorem
@given(st.integers(1, 300), st.integers(0, 10**6), st.sampled_from([1e-16, 1e-3, 1.0, 100.0]), st.integers(1, 8))
def test_the_ratio_order_of_any_size(tokens: int, seed: int, spread: float, crowd: int) -> None:
    """Stale scratch memory and overfull buckets included."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(tokens))
    p = q * np.exp(spread * rng.standard_normal(tokens)) * (rng.random(tokens) < 0.9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(race, "CROWD", crowd)
        ratios, carried, left = race.ratio_order(p, q, q)
    order = np.argsort(p / q, kind="stable")[left.size :]
    np.testing.assert_array_equal(ratios, (p / q)[order])
    assert carried.sum() == pytest.approx(q[order].sum(), rel=RELATIVE)
    assert set(left.real) <= {0.0}


# The race


def test_the_oracles_agree(pair: tuple[Floats, Floats]) -> None:
    p, q = (pmf[:100] / pmf[:100].sum() for pmf in pair)
    exact = oracle.race_acceptance(p, q)
    assert abs(race_by_one_sort(p, q) - exact) <= MP.mpf(10) ** -45 * exact


def test_race_acceptance_at_fifty_digits(pair: tuple[Floats, Floats]) -> None:
    """A2, a thousand times closer than the array twin is held to."""
    for p, q in (pair, pair[::-1]):
        assert close(race.race_acceptance(p, q), race_by_one_sort(p, q), COMPENSATED)


@each("name", sorted(HARD))
def test_race_acceptance_of_hard_pairs(name: str) -> None:
    p, q = HARD_SMALL[name]
    assert close(race.race_acceptance(p, q), race_by_one_sort(p, q), COMPENSATED)
    p, q = HARD[name]
    with without_numba():
        twin = RaceVerification().acceptance(p, q)
    assert race.race_acceptance(p, q) == pytest.approx(float(twin), rel=RELATIVE, abs=0)


@theorem
@given(pairs(max_tokens=8))
def test_race_kernels_of_any_pair(pair: tuple[Floats, Floats]) -> None:
    p, q = pair
    assert close(race.race_acceptance(p, q), oracle.race_acceptance(p, q), COMPENSATED)
    assert_same_g(race.hockey_stick_at_ratios(p, q), hockey_stick_at_ratios(p, q, np))


@each("name", sorted(HARD))
def test_hockey_stick_of_hard_pairs(name: str) -> None:
    p, q = HARD[name]
    with without_numba():
        twin = hockey_stick_at_ratios(p, q, np)
    assert_same_g(race.hockey_stick_at_ratios(p, q), twin)


def test_a_wrong_race_is_caught() -> None:
    """Negative control: sums in the order of q, or g from sums that leave out a token, miss by more than is allowed."""
    p, q = HARD_SMALL["language"]
    exact = race_by_one_sort(p, q)
    order = np.argsort(q)
    below = np.cumsum(q[order]) - q[order], np.cumsum(p[order]) - p[order]
    wrong = np.sum(p[order] / (1 + np.maximum(p[order] / q[order] * below[0] - below[1], 0)))
    assert not close(wrong, exact, 1e-3)
    light = np.arange(p.size) != np.argmin(p)
    assert not close(race.race_acceptance(p[light], q[light]), exact, COMPENSATED)


# The enclosure


def contains(enclosure: Any, exact: Real) -> bool:
    return bool(enclosure.kind == "bound" and enclosure.low <= exact <= enclosure.high)


@theorem
@given(pairs(max_tokens=8))
def test_the_enclosure_holds_for_any_pair(pair: tuple[Floats, Floats]) -> None:
    exact = oracle.race_acceptance(*pair)
    assert contains(race_enclosure(*pair), exact)
    with taken_at_any_size():
        enclosure = race_enclosure(*pair)
    assert contains(enclosure, exact)
    assert enclosure.high - enclosure.low <= WIDTH


@each("name", sorted(HARD))
def test_the_enclosure_of_hard_pairs(name: str) -> None:
    p, q = HARD_SMALL[name]
    exact = race_by_one_sort(p, q)
    with taken_at_any_size():
        for pair in ((p, q), (q, p)):
            enclosure = race_enclosure(*pair)
            assert contains(enclosure, exact)
            assert enclosure.high - enclosure.low <= WIDTH
    assert contains(race_enclosure(p, q), exact)
    p, q = HARD[name]
    enclosure = race_enclosure(p, q)
    assert enclosure.high - enclosure.low <= WIDTH
    assert enclosure.low <= race.race_acceptance(p, q) <= enclosure.high


@pytest.mark.parametrize("scale", [0.5, 3.0, 6.0])
def test_the_enclosure_of_a_large_vocabulary(scale: float) -> None:
    """Width below 1e-9; the ends without another look at any cell hold too."""
    p, q = language_like(16_384, seed=1, scale=scale)
    exact = race_by_one_sort(p, q)
    enclosure = race_enclosure(p, q)
    assert contains(enclosure, exact)
    assert enclosure.high - enclosure.low <= WIDTH
    assert not enclosure.low <= exact - WIDTH
    assert not exact + WIDTH <= enclosure.high
    low, high, _ = race.race_bracket(p, q, width=1.0)
    assert low < exact < high


def test_the_enclosure_of_single_precision_is_as_wide_as_its_sums_are_off() -> None:
    p, q = (pmf.astype(np.float32) for pmf in language_like(TOKENS))
    enclosure = race_enclosure(torch.from_numpy(p), torch.from_numpy(q))
    off = abs(math.fsum(p.astype(np.float64)) - 1)
    assert off > 0
    assert contains(enclosure, race_by_one_sort(p, q))
    assert enclosure.high - enclosure.low <= 2 * off + WIDTH


@pytest.mark.parametrize(
    ("target", "draft", "error"),
    [
        ([[0.5, 0.5]], [0.5, 0.5], ShapeError),
        ([0.5, 0.5], [0.5, 0.25, 0.25], ShapeError),
        ([0.5, 0.6], [0.5, 0.5], PmfError),
    ],
)
def test_the_enclosure_refuses(target: list[Any], draft: list[Any], error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        race_enclosure(target, draft)
    assert "\n" not in str(caught.value)


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
    assert isinstance(statistics, _PairStatistics)


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
