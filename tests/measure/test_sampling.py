"""Sampled texts follow the target's law, end where they should, and come back the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from spectheory.distributions import Sampling
from spectheory.errors import LogitsError
from spectheory.measure import ModelPair, sample_continuations
from spectheory.measure.sampling import draw

FALSE_ALARM = 1e-7
"""Each chi-square test refuses a right law this often (asymptotically; every expected count is at least 5)."""
PROMPT = torch.tensor([5, 9, 11])


def chi_square_tail(counts: np.ndarray, pmf: np.ndarray) -> float:
    """P-value of counts under a pmf; tokens expected less than 5 times are lumped."""
    expected = pmf * counts.sum()
    rare = expected < 5
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.5), Sampling(top_k=4), Sampling(top_p=0.7)], ids=str)
def test_drawn_tokens_follow_the_pmf(sampling: Sampling) -> None:
    """40,000 draws; catches a total variation of about 2%. Control: the law of another temperature is refused."""
    logits = torch.tensor([1.0, 0.0, -math.inf, 2.0, 0.5, -1.0, 1.5])
    uniforms = torch.from_numpy(np.random.default_rng(1).random(40_000))
    tokens = draw(logits.expand(40_000, -1), uniforms, sampling)
    counts = np.bincount(tokens.numpy(), minlength=7)
    pmf = np.exp(sampling.log_pmf(logits[None].double().numpy())[0])
    assert (counts[pmf == 0] == 0).all()
    assert chi_square_tail(counts, pmf) > FALSE_ALARM
    wrong = np.exp(Sampling(sampling.temperature * 1.3).log_pmf(logits[None].double().numpy())[0])
    assert chi_square_tail(counts, wrong) < FALSE_ALARM


def test_second_tokens_follow_the_target(tiny_pair: ModelPair) -> None:
    """Through cache and batch: the law of the second token, summed over the first, from 20,000 pairs.

    Control: the law of a second token that ignores the first is refused.
    """
    texts = sample_continuations(
        tiny_pair, PROMPT, Sampling(), tokens=2, count=20_000, rng=np.random.default_rng(2), stop_at_end=False
    )
    pairs = torch.stack(texts).numpy()
    contexts = torch.cat([PROMPT.expand(64, -1), torch.arange(64)[:, None]], dim=1)
    with torch.inference_mode():
        logits = tiny_pair.target.network(contexts).logits.double()
    first, second = torch.softmax(logits[0, -2], -1).numpy(), torch.softmax(logits[:, -1], -1).numpy()
    assert chi_square_tail(np.bincount(pairs[:, 0], minlength=64), first) > FALSE_ALARM
    counts = np.bincount(pairs[:, 1], minlength=64)
    assert chi_square_tail(counts, first @ second) > FALSE_ALARM
    assert chi_square_tail(counts, first) < FALSE_ALARM


def test_texts_end_with_the_end_of_text(tiny_pair: ModelPair) -> None:
    options = {"tokens": 60, "count": 20}
    rng = np.random.default_rng
    ending = sample_continuations(tiny_pair, PROMPT, Sampling(1.5), rng=rng(3), **options)
    assert any(len(text) < 60 for text in ending)
    for text in ending:
        assert 0 not in text[:-1]
        assert len(text) == 60 or text[-1] == 0
    going_on = sample_continuations(tiny_pair, PROMPT, Sampling(1.5), rng=rng(3), stop_at_end=False, **options)
    for short, long in zip(ending, going_on, strict=True):
        assert len(long) == 60
        assert torch.equal(long[: len(short)], short)


def test_greedy_is_the_largest_logit(tiny_pair: ModelPair) -> None:
    (text,) = sample_continuations(
        tiny_pair, PROMPT, Sampling(0), tokens=10, count=1, rng=np.random.default_rng(6), stop_at_end=False, chunk=2
    )
    with torch.inference_mode():
        logits = tiny_pair.target.network(torch.cat([PROMPT, text])[None]).logits[0]
    assert torch.equal(logits[len(PROMPT) - 1 : -1].argmax(-1), text)


def test_uniform_numbers_at_their_ends() -> None:
    """The largest number below 1 finds the last token with mass, 0 the first."""
    logits = torch.tensor([[-math.inf, 0.0, 0.1, -math.inf]])
    assert draw(logits, torch.tensor([0.0], dtype=torch.float64), Sampling()).item() == 1
    assert draw(logits, torch.tensor([1 - 2.0**-53], dtype=torch.float64), Sampling()).item() == 2
    with pytest.raises(LogitsError):
        draw(torch.tensor([[math.nan, 0.0]]), torch.tensor([0.5], dtype=torch.float64), Sampling())


SETTINGS = [
    Sampling(),
    Sampling(0.6),
    Sampling(0),
    Sampling(1e-320),
    Sampling(top_k=9),
    Sampling(1.3, top_k=30, top_p=0.8),
    Sampling(top_p=0.5),
    Sampling(0.8, min_p=0.1),
    Sampling(top_k=500),
]


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_a_draw_is_the_inversion_of_the_whole_pmf(sampling: Sampling) -> None:
    """100,000 draws from 500 rows of 40 tokens with ties, at the cut too: the token of the whole pmf in float64.

    A height within 1e-12 of a boundary could fall on either side: 100,000 draws among 40 tokens meet one with
    probability 4e-6. Control: at heights a thousandth higher some draws differ, except at temperature 0.
    """
    rng = np.random.default_rng(11)
    rows = np.round(2 * rng.standard_normal((500, 40)), 1).astype(np.float32)
    rows[::7, 3] = -math.inf
    logits, heights = torch.from_numpy(rows).repeat(200, 1), torch.from_numpy(rng.random(100_000) * (1 - 1e-3))
    cumulative = np.tile(np.cumsum(np.exp(sampling.log_pmf(rows.astype(np.float64))), axis=1), (200, 1))
    wanted = (cumulative <= heights.numpy()[:, None] * cumulative[:, -1:]).sum(axis=1)
    np.testing.assert_array_equal(draw(logits, heights, sampling).numpy(), wanted)
    higher = draw(logits, heights + 1e-3, sampling).numpy()
    assert (higher != wanted).any() == (sampling.temperature > 0)


def test_16_bit_logits_are_drawn_from_as_they_are() -> None:
    """Not as the log-probabilities that they round to: the same tokens as from the same numbers in single precision."""
    logits = (3 * torch.randn(2_000, 40, generator=torch.Generator().manual_seed(3))).bfloat16()
    heights = torch.from_numpy(np.random.default_rng(4).random(2_000))
    for sampling in (Sampling(), Sampling(0.7, top_k=9, top_p=0.9)):
        assert torch.equal(draw(logits, heights, sampling), draw(logits.float(), heights, sampling))
