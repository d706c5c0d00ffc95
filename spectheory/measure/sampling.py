"""Continuations sampled from the target: the texts a measurement is made on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.measure.pair import ModelPair
from spectheory.measure.reading import Reading, read_last
from spectheory.measure.tokens import check_window
from spectheory.measure.truncation import log_pmf


def sample_continuations(
    pair: ModelPair,
    prompt_ids: Tensor,
    sampling: Sampling,
    *,
    tokens: int,
    count: int,
    rng: np.random.Generator,
    stop_at_end: bool = True,
    chunk: int = 256,
) -> list[Tensor]:
    """Sample continuations of one prompt from the target, as a batch.

    All uniform numbers are drawn beforehand, one per token and continuation, so texts do not depend on when others
    end. The same generator state gives the same texts on the same machine; another device or precision rounds logits
    otherwise, and texts may part ways.

    Parameters
    ----------
    pair : ModelPair
        The target is sampled; the draft is not used.
    prompt_ids : tensor ``[n]``
        The prompt, read once for all continuations.
    sampling : Sampling
        Temperature, top-k, top-p and min-p.
    tokens : int
        Most tokens of a continuation.
    count : int
        Number of continuations.
    rng : numpy Generator
        Source of all randomness.
    stop_at_end : bool
        Whether a continuation ends with its first end-of-text token, which belongs to it.
    chunk : int
        Prompt tokens read in one pass.

    Returns
    -------
    list of tensor
        Token ids of each continuation, at least one and at most `tokens`, on the CPU.

    Raises
    ------
    SettingError
        If `tokens` or `count` is below 1.
    TextError
        If the prompt and the continuation do not fit the window.
    """
    for name, value in (("tokens", tokens), ("count", count)):
        whole(name, value, remedy="ask for at least one")
    check_window("", len(prompt_ids), tokens, pair.window)
    uniforms = torch.from_numpy(rng.random((tokens, count)))
    ends = torch.tensor(sorted(pair.end_of_text) if stop_at_end else [], dtype=torch.int64)
    reading = Reading(pair.target, pair.vocabulary)
    (logits,) = read_last(reading, prompt_ids, 1, chunk)
    logits = logits.expand(count, -1)
    reading.repeat(count)
    texts = torch.empty((count, 0), dtype=torch.int64)
    while True:
        drawn = draw(logits, uniforms[texts.shape[1]], sampling)
        texts = torch.cat([texts, drawn[:, None]], dim=1)
        if texts.shape[1] == tokens or bool(torch.isin(texts, ends).any(dim=1).all()):
            return [_until_end(text, ends) for text in texts]
        logits = reading.read(drawn[:, None])[:, 0]


def draw(logits: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """One token ``[rows]`` per row of logits ``[rows, V]``, by inversion of the distribution function.

    Parameters
    ----------
    logits : tensor ``[rows, V]``
        Any precision and device.
    uniforms : tensor ``[rows]``
        In [0, 1), float64.
    sampling : Sampling
        Temperature, top-k, top-p and min-p.

    Returns
    -------
    tensor ``[rows]`` of int64, on the CPU.

    Raises
    ------
    LogitsError
        If a row has no pmf.
    """
    pmf = log_pmf(logits.float(), sampling).cpu().double().exp_()
    cumulative = pmf.cumsum_(dim=1)
    total = cumulative[:, -1:]
    # Below the total whatever the rounding, so that the token found has mass.
    height = torch.minimum(uniforms[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cumulative, height, right=True)[:, 0]


def _until_end(text: Tensor, ends: Tensor) -> Tensor:
    """The text up to and with its first end-of-text token."""
    at = torch.isin(text, ends).nonzero()
    return text[: int(at[0]) + 1] if len(at) else text
