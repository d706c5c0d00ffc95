"""Statistics of positions against the definitions in float64, on random, peaked, cut and degenerate logits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import spectheory
from spectheory.distributions import Sampling
from spectheory.errors import LogitsError, ShapeError
from spectheory.measure.columns import statistics
from spectheory.measure.columns.statistics import position_statistics
from spectheory.trace import DISTINCT_RANKS, MEASURED, RECORDED_RANKS, UNO_SHARES
from spectheory.trace.columns import RENYI_ORDERS
from spectheory.verification import RaceVerification
from tests.made_up import each

FLOAT32 = 3e-6
"""Relative and absolute: sums of a few hundred float32 terms, each with a rounding of 6e-8, of logs up to 60."""
FLOAT64 = 1e-12
"""Absolute: sums of four numbers in double precision."""
FLOAT32_RATIO = 2e-5
"""Relative: a ratio is the exponential of a difference of two logs up to 100 with a rounding of 4e-6 each."""
SETTINGS = [
    Sampling(),
    Sampling(temperature=0.6),
    Sampling(temperature=2.0),
    Sampling(top_k=7),
    Sampling(top_p=0.8),
    Sampling(temperature=0.7, top_k=20, top_p=0.925),
    Sampling(temperature=0),
]
Arrays = dict[str, NDArray[Any]]


def reference(target: torch.Tensor, draft: torch.Tensor, tokens: torch.Tensor, sampling: Sampling) -> Arrays:
    """The readable twin: float64, one definition per column, one row at a time where that is clearer."""
    log_p, log_q = (sampling.log_pmf(x.double().numpy()) for x in (target, draft))
    p, q = np.exp(log_p), np.exp(log_q)
    at = (np.arange(len(tokens)), tokens.numpy())
    with np.errstate(divide="ignore"):
        c = p[at] / q[at]
    race_g = [spectheory.hockey_stick(p[n], q[n], c[n]) if q[at][n] > 0 else math.inf for n in range(len(c))]
    return {
        "token": tokens.numpy(),
        "log_target": log_p[at],
        "log_draft": log_q[at],
        "total_variation": spectheory.total_variation(p, q),
        "kl": spectheory.kl_divergence(p, q),
        "target_entropy": spectheory.entropy(p),
        "target_second_moment": spectheory.second_log_moment(p),
        "draft_entropy": spectheory.entropy(q),
        "draft_top": np.exp(
            (Sampling() if sampling.temperature == 0 else sampling).log_pmf(draft.double().numpy())
        ).max(-1),
        "harmonic_similarity": spectheory.harmonic_mean_similarity(p, q),
        "race_acceptance": RaceVerification().acceptance(p, q),
        "race_g": np.array(race_g, dtype=float),
        "draft_rank": np.array([rank(row, x) for row, x in zip(log_q, at[1], strict=True)]),
        "target_rank": np.array([rank(row, x) for row, x in zip(log_p, at[1], strict=True)]),
        "greedy_agreement": log_p.argmax(-1) == log_q.argmax(-1),
        **choices(Sampling() if sampling.temperature == 0 else sampling, target, log_q),
        "rejection_rank": np.array([rejection_ranks(p[n], q[n], at[1][n]) for n in range(len(tokens))]),
        "race_rank": RaceVerification().rank_pmf_given(p, q, at[1], RECORDED_RANKS),
        "uno_loss": np.stack([uno_loss(p, q, share) for share in UNO_SHARES], axis=1),
    }


def uno_loss(p: NDArray[np.float64], q: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Y5 as it is written: distance to p of the law that accepts with b and recovers from p."""
    b = (1 - share) * np.minimum(1, np.divide(p, q, out=np.ones_like(p), where=q > 0)) + share
    rejected = np.sum((1 - b) * q, axis=-1, keepdims=True)
    return np.sum(np.abs(b * q + rejected * p - p), axis=-1) / 2


def choices(sampling: Sampling, target: torch.Tensor, log_q: NDArray[np.float64]) -> Arrays:
    """What the target says of the draft's first choice; a token without mass stands behind the others."""
    log_p = sampling.log_pmf(target.double().numpy())
    z = [max(range(len(row)), key=lambda x: (row[x], -x)) for row in log_q]
    at = np.array([row[x] for row, x in zip(log_p, z, strict=True)])
    ranks = [
        rank(row, x) if np.isfinite(row[x]) else 1 + int(np.isfinite(row).sum())
        for row, x in zip(log_p, z, strict=True)
    ]
    return {"choice_target": at, "choice_top": log_p.max(-1), "choice_rank": np.array(ranks)}


def rank(row: NDArray[np.float64], x: int) -> int:
    """Place of a token, ties to the lowest index."""
    return 1 + sum(1 for y, value in enumerate(row) if (-value, y) < (-row[x], x))


def rejection_ranks(p: NDArray[np.float64], q: NDArray[np.float64], x: int) -> list[float]:
    """R3 as it is written: normalise the residual after each rejection, multiply the rejection probabilities."""
    given, survival, current = [], 1.0, p
    for _ in range(RECORDED_RANKS):
        given.append(survival * min(current[x], q[x]) / p[x])
        residual = np.maximum(current - q, 0)
        rejected = residual.sum()
        survival *= rejected
        if rejected <= 1e-13:  # only rounding is left: this rank accepts for certain
            return [*given, *[0.0] * (RECORDED_RANKS - len(given))]
        current = residual / rejected
    return given


def random_logits(n: int, size: int, scale: float, noise: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = scale * torch.randn(n, size, generator=generator)
    return target, target + noise * torch.randn(n, size, generator=generator)


def possible_tokens(target: torch.Tensor, sampling: Sampling, seed: int) -> torch.Tensor:
    """Tokens drawn from the target, some of them deliberately the least probable ones it allows."""
    pmf = torch.exp(sampling.log_pmf(target.double()))
    tokens = torch.multinomial(pmf, 1, generator=torch.Generator().manual_seed(seed))[:, 0]
    least = torch.where(pmf > 0, pmf, 2.0).argmin(-1)
    return torch.where(torch.arange(len(pmf)) % 5 == 0, least, tokens)


def assert_equal(ours: dict[str, torch.Tensor], expected: Arrays) -> None:
    """All columns of two pmfs but the estimated one, whose mean test_distinct_ranks.py checks; here: it is a law."""
    assert set(ours) == {*expected, "distinct_rank"} == set(MEASURED) - {"lookup_match", "lookup_drafted"}
    law = ours["distinct_rank"].numpy()
    assert law.shape == (len(ours["token"]), DISTINCT_RANKS)
    assert law.min() >= 0
    assert law.sum(axis=1).max() <= 1 + FLOAT64
    first = np.exp(np.minimum(expected["log_draft"] - expected["log_target"], 0))
    np.testing.assert_allclose(law[:, 0], first, rtol=FLOAT32_RATIO, atol=FLOAT32)
    for name, values in expected.items():
        bound = 0 if values.dtype.kind in "bi" else FLOAT32
        relative = FLOAT32_RATIO if name == "race_g" else bound
        np.testing.assert_allclose(ours[name].numpy(), values, rtol=relative, atol=bound, err_msg=name)


@each("sampling", SETTINGS)
@each("scale, noise", [(1.0, 0.5), (4.0, 1.0), (4.0, 8.0), (12.0, 1.0), (0.0, 0.0)])
def test_definitions(sampling: Sampling, scale: float, noise: float) -> None:
    target, draft = random_logits(25, 300, scale, noise, seed=int(10 * scale + noise))
    tokens = possible_tokens(target, sampling, seed=5)
    assert_equal(position_statistics(target, draft, tokens, sampling), reference(target, draft, tokens, sampling))


@each("sampling", SETTINGS)
def test_divergences_of_better_drafts(sampling: Sampling) -> None:
    target, draft = random_logits(25, 300, 4.0, 1.0, seed=3)
    tokens = possible_tokens(target, sampling, seed=5)
    renyi = position_statistics(target, draft, tokens, sampling, better_drafts=True)["renyi"].numpy()
    p, q = (np.exp(sampling.log_pmf(x.double().numpy())) for x in (target, draft))
    with np.errstate(divide="ignore"):
        expected = [np.log(np.sum(p**s * q ** (1 - s), axis=-1)) / (s - 1) for s in RENYI_ORDERS]
    np.testing.assert_allclose(renyi, np.transpose(expected), rtol=FLOAT32_RATIO, atol=FLOAT32_RATIO)


def test_equal_pmfs() -> None:
    target, _ = random_logits(10, 300, 3.0, 0.0, seed=1)
    columns = position_statistics(target, target.clone(), possible_tokens(target, Sampling(), 2), Sampling())
    for name, value in (("total_variation", 0), ("kl", 0), ("race_g", 0)):
        assert (columns[name] == value).all(), name
    for name in ("race_acceptance", "harmonic_similarity"):
        np.testing.assert_allclose(columns[name].numpy(), 1, rtol=FLOAT32)
    np.testing.assert_array_equal(columns["rejection_rank"][:, 0].numpy(), 1)
    assert (columns["rejection_rank"][:, 1:] == 0).all()


def test_disjoint_supports_and_excluded_tokens() -> None:
    """Logits of -inf are tokens a model never draws; the draft may lack all of the target's."""
    target, draft = random_logits(8, 40, 2.0, 1.0, seed=3)
    target[:4, 20:] = draft[:4, :20] = -math.inf
    target[4:, 30:] = draft[4:, 35:] = -math.inf
    tokens = possible_tokens(target, Sampling(), 4)
    columns = position_statistics(target, draft, tokens, Sampling())
    assert_equal(columns, reference(target, draft, tokens, Sampling()))
    assert (columns["kl"][:4] == math.inf).all()
    assert (columns["race_g"][:4] == math.inf).all()
    assert (columns["rejection_rank"][:4] == 0).all()


def test_ties_go_to_the_lowest_index() -> None:
    target, draft = (x.round() for x in random_logits(30, 200, 2.0, 2.0, seed=6))
    tokens = possible_tokens(target, Sampling(), 7)
    for sampling in (Sampling(), Sampling(top_k=15), Sampling(temperature=0)):
        kept = possible_tokens(target, sampling, 7)
        assert_equal(position_statistics(target, draft, kept, sampling), reference(target, draft, kept, sampling))
    assert len(tokens) == 30


def test_extreme_ratios_stay_finite() -> None:
    """A draft probability that underflows float32 keeps its logarithm; the race is lost, but not impossible."""
    target, draft = torch.zeros(1, 3), torch.tensor([[0.0, 0.0, -200.0]])
    columns = position_statistics(target, draft, torch.tensor([2]), Sampling())
    assert columns["log_draft"].item() == pytest.approx(-200 - math.log(2))
    assert columns["kl"].item() == pytest.approx(math.log(2 / 3) * 2 / 3 + (200 + math.log(2 / 3)) / 3, rel=1e-6)
    assert math.isfinite(columns["race_g"].item())
    assert columns["rejection_rank"].sum().item() == pytest.approx(0, abs=1e-30)


def test_ratios_beyond_the_floats() -> None:
    """The draft's surprise at an improbable token is finite; a token of 1e-440 of the target is accepted at once."""
    target, draft = torch.zeros(2, 300), torch.zeros(2, 300)
    draft[0, 7], target[1, 7] = -200.0, -1010.0
    columns = position_statistics(target, draft, torch.tensor([7, 7]), Sampling())
    assert 1e38 < columns["race_g"][0] < math.inf
    for name in ("rejection_rank", "distinct_rank", "race_rank"):
        law = columns[name][1]
        np.testing.assert_allclose(law, [1.0, *[0.0] * (len(law) - 1)], atol=FLOAT32, err_msg=name)


def test_a_rejected_token_of_no_target_mass() -> None:
    """It is rejected once at most, whatever is left of the draft."""
    target = torch.tensor([[0.0, -1010.0, -1.0, -2.0, -2.0, -3.0]]).repeat(40, 1)
    draft = torch.tensor([[-20.0, 0.0, -33.0, -38.0, -39.0, -42.0]]).repeat(40, 1)
    law = position_statistics(target, draft, torch.ones(40, dtype=torch.int64), Sampling())["distinct_rank"]
    np.testing.assert_array_equal(law, np.eye(1, DISTINCT_RANKS).repeat(40, axis=0))


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft = random_logits(23, 100, 3.0, 1.0, seed=8)
    tokens = possible_tokens(target, Sampling(), 9)
    whole = position_statistics(target, draft, tokens, Sampling())
    monkeypatch.setattr(statistics, "CPU_BLOCK", 300)
    for name, values in position_statistics(target, draft, tokens, Sampling()).items():
        torch.testing.assert_close(values, whole[name], rtol=1e-6, atol=1e-7)


def test_half_precision_is_read_as_it_is() -> None:
    target, draft = (x.bfloat16() for x in random_logits(20, 200, 3.0, 1.0, seed=10))
    tokens = possible_tokens(target, Sampling(), 11)
    sampling = Sampling(temperature=0.8)
    assert_equal(position_statistics(target, draft, tokens, sampling), reference(target, draft, tokens, sampling))


def test_without_the_race() -> None:
    target, draft = random_logits(3, 50, 1.0, 1.0, seed=12)
    columns = position_statistics(target, draft, torch.zeros(3, dtype=torch.int64), Sampling(), race=False)
    dear, copied = {"race_acceptance", "race_rank", "distinct_rank", "uno_loss"}, {"lookup_match", "lookup_drafted"}
    assert set(columns) == set(MEASURED) - dear - copied


@each("sampling", [Sampling(), Sampling(top_k=3), Sampling(temperature=0)])
@each("bad", [math.nan, math.inf, -math.inf])
@each("which", [0, 1])
def test_rows_without_a_pmf_are_named(
    sampling: Sampling, bad: float, which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "CPU_BLOCK", 4 * 50)
    logits = random_logits(11, 50, 1.0, 1.0, seed=13)
    logits[which][9, slice(None) if bad < 0 else 17] = bad
    with pytest.raises(LogitsError, match="row 9") as caught:
        position_statistics(*logits, torch.zeros(11, dtype=torch.int64), sampling)
    assert caught.value.row == 9


def test_impossible_tokens_show_and_drawn_ones_are_let_in() -> None:
    logits = torch.tensor([[3.0, 2.999, 0.0], [3.0, 2.0, 1.0]])
    tokens = torch.tensor([1, 0])
    for sampling in (Sampling(temperature=0), Sampling(top_k=1), Sampling(top_p=0.4)):
        columns = position_statistics(logits, logits.clone(), tokens, sampling)
        assert columns["log_target"].tolist() == [-math.inf, 0.0]
        assert (columns["rejection_rank"][0] == 0).all()
        columns = position_statistics(logits, logits.clone(), tokens, sampling, sampled=True)
        expected = [0.0, 0.0] if sampling.temperature == 0 else [-math.log1p(math.exp(0.001)), 0.0]
        assert columns["log_target"].tolist() == pytest.approx(expected, abs=FLOAT32)
        assert columns["target_rank"].tolist() == [1 if sampling.temperature == 0 else 2, 1]


def test_shapes_are_checked() -> None:
    with pytest.raises(ShapeError, match=r"\(2, 5\) and \(2, 4\)"):
        position_statistics(torch.zeros(2, 5), torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64), Sampling())
