"""Truncated sampling: cuts by the largest entries equal those by whole sorts, and columns over the tokens kept."""

from __future__ import annotations

import math
from collections.abc import Iterator

import mpmath as mp
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from spectheory import kernels
from spectheory.distributions import Sampling
from spectheory.measure.columns import rejection, statistics
from spectheory.measure.columns.noise import position_keys
from spectheory.measure.columns.pmf import KeptTokens, _kept_in_torch, kept_tokens, log_pmf
from spectheory.measure.columns.statistics import position_statistics
from spectheory.trace import DISTINCT_RANKS
from tests.made_up import each

CUTS = [
    Sampling(temperature=0.7),
    Sampling(top_k=1),
    Sampling(top_k=5),
    Sampling(top_k=10_000),
    Sampling(top_p=0.3),
    Sampling(temperature=2, top_p=0.999),
    Sampling(top_p=1.0),
    Sampling(temperature=0.7, top_k=50, top_p=0.9),
    Sampling(temperature=0, top_k=3),
    Sampling(top_k=10_000, top_p=1.0),
    Sampling(min_p=0.1),
    Sampling(min_p=0.0),
    Sampling(temperature=0.7, top_k=50, min_p=0.02),
    Sampling(top_p=0.99, min_p=0.05),
    Sampling(temperature=2, top_k=50, top_p=0.9, min_p=1.0),
]


@each("sampling", CUTS)
@each("kind", ["random", "tied", "excluded"])
def test_same_as_sorting(sampling: Sampling, kind: str) -> None:
    """In float64, where the two ways of adding up a nucleus do not round to different lengths."""
    logits = 3 * torch.randn(40, 300, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    if kind == "tied":
        logits = (logits / 2).round()
    if kind == "excluded":
        logits[:, ::3] = -math.inf
    torch.testing.assert_close(log_pmf(logits, sampling), sampling.log_pmf(logits), rtol=1e-12, atol=1e-12)


def test_ties_at_the_cut() -> None:
    """Top-k keeps them all; a nucleus needs some, and takes those of lowest index."""
    logits = torch.tensor([[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    assert log_pmf(logits, Sampling(top_k=2)).exp().tolist() == [[0, 0.25, 0.25, 0.25, 0.25, 0]]
    assert log_pmf(logits, Sampling(top_k=2, top_p=0.4)).exp().tolist() == [[0, 0.5, 0.5, 0, 0, 0]]


def test_logits_that_scale_to_one_number_are_not_tied() -> None:
    """Relative to a logit of 100 both others round to the same single-precision number."""
    logits = torch.tensor([[100.0, 2e-8, 1e-8]])
    for value in (log_pmf(logits, Sampling(top_k=2)), Sampling(top_k=2).log_pmf(logits)):
        assert (value > -math.inf).tolist() == [[True, True, False]]


EXACT = 1e-11
"""Relative and absolute: sums of up to 5000 numbers in double precision, of logarithms up to 100."""
CANCELLED = 1e-9
"""Absolute: what is left of two pmfs in double precision, 1e-16, over a residual of at least 1e-7."""
ROUNDING = 1e-6
"""The middle of the race's bounds, and the rank law of the race, by compiled kernels."""
SETTINGS = [
    Sampling(top_k=1),
    Sampling(top_k=50),
    Sampling(0.7, top_k=50, top_p=0.9),
    Sampling(0.7, top_k=30, min_p=0.02),
    Sampling(1, top_k=1000),
    Sampling(1, top_k=10_000, top_p=0.5),
    Sampling(0.6, top_p=0.95),
    Sampling(2, top_p=0.999),
    Sampling(1, top_p=0.98, min_p=0.05),
    Sampling(1, min_p=0.01),
    Sampling(2, top_k=50, top_p=0.9, min_p=1.0),
    Sampling(1e-300, top_p=0.9),
    Sampling(0),
]
KINDS = ("random", "tied", "excluded", "equal", "ascending")
compiled_only = pytest.mark.skipif(not kernels.installed(), reason="needs numba")


def rows_of(kind: str, size: int, rows: int = 6, seed: int = 1) -> Tensor:
    """Logits in single precision: random, of few values, few of them finite, all one, or sorted."""
    logits = 3 * torch.randn(rows, size, generator=torch.Generator().manual_seed(seed))
    if kind == "tied":
        return (logits / 2).round()
    if kind == "excluded":
        return logits.masked_fill(torch.arange(size) % 97 != 5, -math.inf)
    if kind == "equal":
        return torch.full_like(logits, 0.1)
    return logits.sort(dim=1).values if kind == "ascending" else logits


def pair_of(kind: str, size: int, rows: int = 12, seed: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Target, draft and a token drawn anywhere: improbable, impossible and cut ones are among them."""
    target, noise = rows_of(kind, size, rows, seed), rows_of("random", size, rows, seed + 1)
    draft = rows_of("tied", size, rows, seed + 2) + target if kind == "tied" else target + 0.4 * noise
    tokens = torch.randint(size, (rows,), generator=torch.Generator().manual_seed(seed))
    tokens[::2] = target[::2].argmax(dim=1)
    tokens[1::4] = target.topk(min(53, size)).indices[1::4, -1]
    return target, draft, tokens


def assert_same(actual: KeptTokens, expected: KeptTokens) -> None:
    assert torch.equal(actual.ids, expected.ids)
    torch.testing.assert_close(actual.log, expected.log, rtol=EXACT, atol=EXACT)


@each("sampling", SETTINGS)
@each("kind", KINDS)
def test_kept_tokens_are_those_of_the_definition(sampling: Sampling, kind: str) -> None:
    """Whole sorts in double precision of the same logits; both ways to select, where numba is there."""
    logits = rows_of(kind, 5000, rows=3)
    expected = sampling.log_pmf(logits.double())
    for kept in (
        kept_tokens(logits, sampling),
        _kept_in_torch(logits, sampling),
        kept_tokens(logits.double(), sampling),
    ):
        torch.testing.assert_close(kept.over(5000), expected, rtol=EXACT, atol=EXACT)
        assert (kept.ids.diff(dim=1)[kept.ids[:, 1:] < 5000] > 0).all()
        assert torch.equal(kept.ids == 5000, kept.log == -math.inf)
        assert kept.ids.shape[1] == (expected > -math.inf).sum(dim=1).max()


@each("sampling", SETTINGS)
@each("dtype", [torch.bfloat16, torch.float16])
def test_kept_tokens_of_16_bits(sampling: Sampling, dtype: torch.dtype) -> None:
    """Many logits are equal after rounding."""
    logits = rows_of("random", 5000).to(dtype)
    for kept in (kept_tokens(logits, sampling), _kept_in_torch(logits, sampling)):
        expected = sampling.log_pmf(logits.double())
        torch.testing.assert_close(kept.over(5000), expected, rtol=EXACT, atol=EXACT)


@each("sampling", SETTINGS)
@each("kind", KINDS)
def test_admitted_tokens_keep_their_odds(sampling: Sampling, kind: str) -> None:
    """A token outside the cut has the odds of the softmax against the most probable token; the rest is as it was."""
    logits = rows_of(kind, 5000)
    tokens = torch.tensor([[5], [102], [4999], [0], [2500], [3]])
    before, after = kept_tokens(logits, sampling), kept_tokens(logits, sampling, tokens)
    assert_same(after, _kept_in_torch(logits, sampling, tokens))
    new, old = after.over(5000), before.over(5000)
    if sampling.temperature == 0:
        assert torch.equal(new == 0, torch.arange(5000) == tokens)
        return
    best = logits.double().argmax(dim=1, keepdim=True)
    odds = (logits.double().gather(1, tokens) - logits.double().gather(1, best)) / sampling.temperature
    torch.testing.assert_close(new.gather(1, tokens) - new.gather(1, best), odds, rtol=EXACT, atol=EXACT)
    others = (old > -math.inf) & (torch.arange(5000) != tokens)
    change = (new - old)[others]
    expected = (new.gather(1, best) - old.gather(1, best)).expand(-1, 5000)[others]
    torch.testing.assert_close(change, expected, rtol=EXACT, atol=EXACT)


def test_a_wrong_cut_is_caught() -> None:
    """Negative control: one token more or less is another law."""
    logits = rows_of("random", 5000)
    expected = Sampling(top_k=50).log_pmf(logits.double())
    for wrong in (49, 51):
        assert not torch.allclose(kept_tokens(logits, Sampling(top_k=wrong)).over(5000), expected)


@compiled_only
@each("kind", KINDS)
def test_unions_by_merging_and_by_sorting(kind: str) -> None:
    target, draft, tokens = pair_of(kind, 5000)
    both = kept_tokens(target, Sampling(top_k=40)), kept_tokens(draft, Sampling(0.5, top_p=0.9)), tokens[:, None], 5000
    merged, sorted_ = statistics._union(*both), statistics._union_in_torch(*both)
    for name in ("ids", "log_target", "log_draft", "place"):
        assert torch.equal(getattr(merged, name), getattr(sorted_, name)), name
    assert torch.equal(merged.ids.gather(1, merged.place), tokens[:, None])


PAIRS = [
    *((sampling, None) for sampling in SETTINGS),
    (Sampling(top_k=20), Sampling(0.5, top_p=0.9)),
    (Sampling(top_k=20), Sampling(0)),
    (Sampling(0), Sampling(0.7, top_k=3)),
]


@pytest.fixture
def in_double() -> Iterator[None]:
    """The path over the whole vocabulary has buffers of the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.evidence
@pytest.mark.usefixtures("in_double")
@each("pair", PAIRS)
@each("kind", ["random", "tied"])
def test_columns_are_those_of_the_whole_vocabulary(
    pair: tuple[Sampling, Sampling | None], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In double precision, the estimated law too: an exhausted draft draws the same tokens from the same noise."""
    rows = pair_of(kind, 300)
    check_columns(*rows, *pair, monkeypatch, sampled=True, judged=True)
    if kind == "tied" or pair[1] is not None:
        check_columns(*rows, *pair, monkeypatch, by_start=pair[1] is not None)


@pytest.mark.usefixtures("in_double")
@each("sampled", [False, True])
@each(
    "sampling", [Sampling(0), Sampling(top_k=1), Sampling(top_k=2), Sampling(top_k=9, top_p=0.6), Sampling(min_p=0.5)]
)
def test_columns_of_few_tokens(sampling: Sampling, sampled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tokens than k, and than ranks; four of 300 tokens have finite logits."""
    check_columns(*pair_of("excluded", 300), sampling, None, monkeypatch, sampled=sampled)
    check_columns(*pair_of("random", 3, 40), sampling, None, monkeypatch, sampled=sampled)


@pytest.mark.usefixtures("in_double")
def test_columns_of_disjoint_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    target, _, tokens = pair_of("random", 300)
    columns = check_columns(target, -target, tokens, Sampling(top_k=4), None, monkeypatch)
    np.testing.assert_allclose(columns["total_variation"], 1, atol=EXACT)
    assert (columns["kl"] == math.inf).all()


@each("compiled", [False, True])
def test_ratios_beyond_single_precision(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft of 1, e^-95, e^-100 at the target's token: rates e^100 and e^5, one arrives for certain, both often."""
    size = 5000
    if not compiled:
        monkeypatch.setattr(kernels, "installed", lambda: False)
    target, draft = torch.full((2, 1, size), -1e3)
    target[0, 2], draft[0, :3] = 0.0, torch.tensor([0.0, -9.5, -10.0])
    columns = position_statistics(target, draft, torch.tensor([2]), Sampling(0.1, top_k=3))
    rare = 1 / (1 + math.exp(5))
    np.testing.assert_allclose(columns["race_rank"][0], [0, rare, 1 - rare, *[0] * 5], atol=ROUNDING)
    np.testing.assert_allclose(columns["race_g"], math.exp(100), rtol=1e-6)


@compiled_only
@pytest.mark.usefixtures("in_double")
@each("sampling", [Sampling(0.7, top_k=50), Sampling(2, top_p=0.999)])
def test_columns_by_compiled_kernels(sampling: Sampling, monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary, and once a union, of the size that they are used for."""
    check_columns(*pair_of("random", 6000, 4), sampling, None, monkeypatch, within=ROUNDING)


def check_columns(
    target: Tensor,
    draft: Tensor,
    tokens: Tensor,
    sampling: Sampling,
    draft_sampling: Sampling | None,
    monkeypatch: pytest.MonkeyPatch,
    *,
    within: float = EXACT,
    **wanted: bool,
) -> dict[str, Tensor]:
    """Columns over the union, the same as those over the whole vocabulary."""

    def columns() -> dict[str, Tensor]:
        keys = position_keys(7, 0, len(tokens))
        return position_statistics(
            target.double(), draft.double(), tokens, sampling, draft_sampling=draft_sampling, keys=keys, **wanted
        )

    union = columns()
    with monkeypatch.context() as patch:
        patch.setattr(statistics, "cuts", lambda *_: False)
        expected = columns()
    assert set(union) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(union[name], values, rtol=within, atol=within, err_msg=name)
    return union


def test_rows_do_not_depend_on_their_neighbours() -> None:
    """Supports of one to hundreds of tokens: the same bits in any company."""
    target, draft, tokens = pair_of("random", 5000, 40)
    target *= torch.linspace(0.5, 4, 40)[:, None]
    keys = position_keys(0, 0, 40)
    whole = position_statistics(target, draft, tokens, Sampling(top_p=0.8), keys=keys)
    for row in (0, 17, 39):
        here = slice(row, row + 1)
        alone = position_statistics(target[here], draft[here], tokens[here], Sampling(top_p=0.8), keys=keys[here])
        for name, values in alone.items():
            assert torch.equal(values, whole[name][here]), name


@each("seed, off", [(0, 5e-8), (10, 3e-4), (23, 5e-4), (37, 5e-3)])
def test_the_estimated_law_of_improbable_tokens(seed: int, off: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the definition with 50 digits: the union is right; in single precision, over the whole vocabulary, what
    is left of both pmfs cancels, and later ranks are off by `off` and more.
    """
    generator = torch.Generator().manual_seed(seed)
    target = 3 * torch.randn(1, 60, generator=generator)
    draft = target + torch.randn(1, 60, generator=generator)
    draft[0, target.argmin()] = draft.min() - 0.1
    token, sampling, draft_sampling = target.topk(15).indices[:, -1], Sampling(0.25, top_k=5), Sampling(0.25, top_k=20)
    heights = rejection._heights(position_keys(0, 0, 1))[0].numpy()
    with mp.workdps(50):
        p, q = weights_of(target[0], sampling, int(token)), weights_of(draft[0], draft_sampling)
        law = np.array(distinct_law(p, q, int(token), heights), dtype=float)

    def error() -> float:
        columns = position_statistics(target, draft, token, sampling, sampled=True, draft_sampling=draft_sampling)
        return float(np.abs(columns["distinct_rank"][0].numpy() - law).max())

    assert error() < CANCELLED
    with monkeypatch.context() as patch:
        patch.setattr(statistics, "cuts", lambda *_: False)
        assert error() > off


def weights_of(logits: Tensor, sampling: Sampling, admitted: int = -1) -> list[mp.mpf]:
    """Unnormalised probabilities ``[V]`` after top-k, with one more token."""
    last = float(logits.sort(descending=True).values[(sampling.top_k or 1) - 1])
    values = enumerate(logits.tolist())
    t = mp.mpf(sampling.temperature)
    return [mp.exp(mp.mpf(x) / t) if x >= last or i == admitted else mp.mpf(0) for i, x in values]


def distinct_law(p: list[mp.mpf], q: list[mp.mpf], token: int, heights: NDArray[np.float64]) -> list[mp.mpf]:
    """The estimator of R3 as it is defined, from unnormalised pmfs and its uniform numbers."""
    p = [x / mp.fsum(p) for x in p]
    law = [mp.mpf(0)] * DISTINCT_RANKS
    for sequence in heights:
        residual, mass, rejected = p, mp.mpf(1), set[int]()
        for rank in range(DISTINCT_RANKS):
            left = [mp.mpf(0) if y in rejected else x for y, x in enumerate(q)]
            if not any(left):
                left = [mp.mpf(y not in rejected) for y in range(len(q))]
            now = [mass * x / mp.fsum(left) for x in left]
            law[rank] += min(residual[token], now[token]) / p[token] / len(heights)
            if rank + 1 < DISTINCT_RANKS:
                excess = [max(b - a, mp.mpf(0)) for a, b in zip(residual, now, strict=True)]
                residual = [max(a - b, mp.mpf(0)) for a, b in zip(residual, now, strict=True)]
                mass = mp.fsum(excess)
                rejected.add(token_at(excess, mp.mpf(sequence[rank]) * mass))
    return law


def token_at(masses: list[mp.mpf], height: mp.mpf) -> int:
    """The first token up to which there is more mass than `height`."""
    upto = mp.mpf(0)
    for token, mass in enumerate(masses):
        upto += mass
        if upto > height:
            return token
    raise AssertionError("no mass at this height")
