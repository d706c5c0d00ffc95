"""Compiled columns against their torch twins, bounds and enumerations; with any number of threads the same bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import Tensor

from proofs_check.twins import race_ranks as enumerated
from spectheory import kernels
from spectheory.distributions import Sampling
from spectheory.measure.columns.compiled import fits, on_threads
from spectheory.measure.columns.noise import position_keys
from spectheory.measure.columns.pmf import Pmf, softmax
from spectheory.measure.columns.race import race_ranks
from spectheory.measure.columns.statistics import _by_position, _expensive, position_statistics
from spectheory.trace import RECORDED_RANKS
from spectheory.verification import RaceVerification
from tests.measure.race_rank_bounds import crowded_error, series_error, trapezoid_error

pytest.importorskip("numba")

EQUAL = 1e-6
"""Relative and absolute, of both twins in single precision."""
DOUBLE = 1e-11
"""The same in double precision, but for what both estimate to single precision."""
SIZE, ROWS = 5000, 4
KINDS = ("random", "peaked", "equal", "nearly equal", "nearly disjoint", "excluded", "improbable")


def logits(kind: str, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Two rows of logits per position and a token drawn from the target, or of 1e-6 of its mass and less."""
    generator = torch.Generator().manual_seed(seed)
    target, noise = torch.randn(2, ROWS, SIZE, generator=generator)
    target = target * {"peaked": 12.0}.get(kind, 3.0)
    draft = target + noise * {"equal": 0.0, "nearly equal": 1e-4}.get(kind, 1.0)
    if kind == "nearly disjoint":
        target[:, : SIZE // 2] -= 25
        draft[:, SIZE // 2 :] -= 25
    if kind == "excluded":
        target[:, ::7] = draft[:, ::5] = -math.inf
    tokens = torch.multinomial(target.double().softmax(-1), 1, generator=generator)[:, 0]
    if kind == "improbable":
        tokens = target.topk(SIZE - 10).indices[:, -1]
    return target, draft, tokens


def both(monkeypatch: pytest.MonkeyPatch, work) -> tuple[dict[str, Tensor], dict[str, Tensor]]:  # type: ignore[no-untyped-def]
    """What `work` gives compiled and in torch."""
    compiled = work()
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "installed", lambda: False)
        return compiled, work()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("by_start", [False, True])
def test_twins_agree(kind: str, by_start: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft, tokens = logits(kind)
    assert fits(target)
    compiled, ours = both(
        monkeypatch, lambda: position_statistics(target, draft, tokens, Sampling(), by_start=by_start)
    )
    assert set(compiled) == set(ours)
    for name, values in ours.items():
        assert values.dtype == compiled[name].dtype, name
        np.testing.assert_allclose(compiled[name], values, rtol=EQUAL, atol=EQUAL, err_msg=name)


def padded(kind: str) -> tuple[Pmf, Pmf, Tensor]:
    """Pmfs in double precision over the first tokens; the others are padding."""
    target, draft, tokens = logits(kind)
    pmfs = []
    for values in (target, draft):
        values = values.double().masked_fill(torch.arange(SIZE) >= SIZE - 300, -math.inf)
        log = values.log_softmax(-1)
        cut = log == -math.inf
        pmfs.append(Pmf(log.exp(), log.masked_fill(cut, 0.0), cut))
    return *pmfs, tokens.clamp(max=SIZE - 301)[:, None]


@pytest.mark.parametrize("kind", KINDS)
def test_twins_agree_in_double_precision(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p, q, at = padded(kind)

    def columns() -> dict[str, Tensor]:
        buffers = torch.empty((2, ROWS, SIZE), dtype=torch.float64)
        statistics = _by_position(p, q, at, buffers)
        return statistics | _expensive(p, q, at, statistics, position_keys(3, 0, ROWS), buffers)

    compiled, ours = both(monkeypatch, columns)
    for name, values in ours.items():
        bound = EQUAL if name in ("race_acceptance", "race_rank") else DOUBLE
        np.testing.assert_allclose(compiled[name], values, rtol=bound, atol=bound, err_msg=name)
    exact = RaceVerification().acceptance(p.pmf.numpy(), q.pmf.numpy())
    np.testing.assert_allclose(compiled["race_acceptance"], exact, rtol=0, atol=7.5e-7)


def test_threads_do_not_matter() -> None:
    target, draft, tokens = logits("random")
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            results.append(position_statistics(target, draft, tokens, Sampling()))
    finally:
        torch.set_num_threads(threads)
    for name, values in results[0].items():
        assert torch.equal(values, results[1][name]), name


def test_every_row_is_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in range(1, 8):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        for rows in range(1, 8):
            counts = np.zeros(rows)
            on_threads(lambda part, step: np.add(part, step, out=part), counts, constants=(1,))
            np.testing.assert_array_equal(counts, 1)


@pytest.mark.parametrize("warmth", [1.0, 0.7])
def test_a_softmax_in_any_layout_is_that_in_double_precision(warmth: float) -> None:
    """Down to where floats end, and with logarithms of -inf, which are reported."""
    for layout in (torch.empty(SIZE, 3).T, torch.empty(3, 2 * SIZE)[:, ::2], torch.empty(3, SIZE)):
        log, pmf = layout.copy_(-120 * torch.rand(3, SIZE, generator=torch.Generator().manual_seed(5))), layout.clone()
        log[:, 7] = 0.0
        for excluded in (0, 3):
            log[:, SIZE - excluded :] = -math.inf
            values = log.clone()
            exact = (values / warmth).double().log_softmax(-1)
            assert softmax(values, pmf, warmth) == (excluded == 0)
            np.testing.assert_allclose(values, exact, rtol=EQUAL)
            np.testing.assert_allclose(
                pmf, exact.exp(), rtol=EQUAL, atol=2 * torch.finfo(torch.float32).smallest_normal * 2**-23
            )


# The race


@pytest.mark.parametrize("size", [4096, 200_000])
def test_the_entropy_of_an_almost_certain_token(size: int) -> None:
    """A token beside many of equal, tiny probability: off by no more than docs/measuring_reference.md says."""
    for height in np.linspace(-5, -60, 56).tolist():
        target = torch.full((1, size), height)
        target[0, 0] = 0.0
        statistics = position_statistics(target, target, torch.tensor([0]), Sampling(), race=False)
        rest = (size - 1) * math.exp(height)
        entropy = math.log1p(rest) - rest / (1 + rest) * height
        for name in ("target_entropy", "draft_entropy"):
            assert abs(float(statistics[name][0]) - entropy) <= 3e-7 * entropy + 3e-14


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_bounds_hold_the_race(kind: str, precision: torch.dtype) -> None:
    """The exact rate is between bounds as narrow as promised, and that of a pair 1e-5 apart is not."""
    from spectheory.kernels.race_columns import WIDTH, race_bounds

    target, draft, _ = logits(kind)
    p, q = (x.double().softmax(-1).to(precision) for x in (target, draft))
    bounds = np.empty((ROWS, 2))
    race_bounds(p.numpy(), q.numpy(), bounds)
    wide = [(x.double() / x.double().sum(-1, keepdim=True)).numpy() for x in (p, q)]
    exact = RaceVerification().acceptance(*wide)
    rounding = 4 * torch.finfo(precision).eps / 2 if precision == torch.float32 else 1e-12
    assert (bounds[:, 1] - bounds[:, 0] <= WIDTH).all()
    assert (exact >= bounds[:, 0] - rounding).all()
    assert (exact <= bounds[:, 1] + rounding).all()
    uniform = np.full(SIZE, 1 / SIZE)
    if kind not in ("equal", "nearly equal"):
        other = RaceVerification().acceptance(wide[0], (1 - 1e-3) * wide[1] + 1e-3 * uniform)
        assert ((other < bounds[:, 0] - rounding) | (other > bounds[:, 1] + rounding)).all()


RANDOM = np.random.default_rng(11)
SMALL = [
    (parts_p, parts_q)
    for size in (2, 4, 7)
    for parts_p, parts_q in [RANDOM.integers(1, 30, (2, size)).tolist(), RANDOM.integers(1, 4, (2, size)).tolist()]
] + [([1000, 1, 1, 1], [1, 500, 300, 7]), ([1, 1000], [1000, 1])]


@pytest.mark.parametrize(("parts_p", "parts_q"), SMALL, ids=str)
@pytest.mark.parametrize("compiled", [False, True])
def test_rank_law_is_the_enumeration(
    parts_p: list[int], parts_q: list[int], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The law of every token against integrals in fractions; wrong by 1e-5 without the last node but one."""
    p, q = ([Fraction(part, sum(parts)) for part in parts] for parts in (parts_p, parts_q))
    if not compiled:
        monkeypatch.setattr(kernels, "installed", lambda: False)
    size = len(p)
    wide = torch.zeros(2, size, kernels.SMALLEST, dtype=torch.float64)
    wide[0, :, :size], wide[1, :, :size] = (torch.tensor([float(x) for x in pmf]).double() for pmf in (p, q))
    logs = [torch.tensor([math.log(x) for x in pmf], dtype=torch.float64) for pmf in (p, q)]
    law = race_ranks(*wide, *logs, torch.empty_like(wide[0]))
    for token in range(size):
        exact = [float(share) for share in enumerated.rank_given(p, q, token)]
        exact += [0.0] * (RECORDED_RANKS - len(exact))
        np.testing.assert_allclose(law[token], exact, rtol=0, atol=trapezoid_error(RECORDED_RANKS - 1))


@pytest.mark.parametrize("total", [0.5, 3.0, 20.0, 300.0])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_series_of_many_rare_tokens(total: float, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,500 tokens of equal rate are all in the series: each of the winner's rivals left may be the next to arrive."""
    if not compiled:
        monkeypatch.setattr(kernels, "installed", lambda: False)
    many = 1500
    p, q = torch.zeros(2, 1, SIZE, dtype=torch.float64)
    p[0, 0], q[0, 0] = 1.0, 1.0
    q[0, 1 : many + 1] = total / many
    law = race_ranks(p, q, *torch.zeros(2, 1, dtype=torch.float64), torch.empty_like(p))[0]
    before = 1.0
    for rank in range(RECORDED_RANKS):
        left = total * (1 - rank / many)
        bound = trapezoid_error(rank) + (series_error(total, rank) if rank == 7 else 1e-7)
        assert abs(law[rank] - before / (1 + left)) <= bound
        before *= left / (1 + left)


@pytest.mark.parametrize("compiled", [False, True])
def test_small_rates_beside_large_ones(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tokens come first for certain; single precision rounds their sum by 128, a share of which exceeds 0.25."""
    if not compiled:
        monkeypatch.setattr(kernels, "installed", lambda: False)
    p, q = torch.zeros(2, 1, SIZE)
    p[0, 0] = q[0, 0] = 1.0
    q[0, 1:4], q[0, 4:6] = 824_691_328.0, 0.25
    law = race_ranks(p, q, *torch.zeros(2, 1, dtype=torch.float64), torch.empty_like(p))[0]
    none, some = 1 / 1.5, 1 / 1.25
    expected = [0, 0, 0, none, 2 * (some - none), 1 - 2 * some + none, 0, 0]
    np.testing.assert_allclose(law, expected, rtol=0, atol=EQUAL)


def test_promised_errors() -> None:
    """Eight ranks to 1e-6: 64 nodes over these times do, 48 and the times [e^-21, e^4] do not."""
    most = RECORDED_RANKS - 1
    series = max(series_error(total, most) for total in (2.0, 8.0, 16.0, 32.0))
    crowded = max(crowded_error(x, 0.1, most) for x in (0.01, 0.02, 0.03, 0.04))
    assert trapezoid_error(most) + max(series, crowded) < 1e-6
    assert trapezoid_error(most, nodes=48) > 1e-6
    assert trapezoid_error(most, (-21.0, 4.0)) > 1e-6
