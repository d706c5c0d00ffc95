"""Continuations sampled from the target: the texts a measurement is made on."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.measure.pair import ModelPair
from spectheory.measure.pmf import token_at
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
    """Sample `count` continuations of one prompt ``[n]`` from the target, as a batch; the draft is not used.

    Returns token ids of each continuation on the CPU, at least one and at most `tokens`. All uniform numbers are drawn
    from `rng` beforehand, one per token and continuation, so a text does not depend on when others end. The same
    generator state gives the same texts on the same machine; on another device or in another precision logits round
    differently, and texts may diverge.
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
    """One token ``[rows]`` (int64, CPU) per row of logits ``[rows, V]``, by inversion at `uniforms` ``[rows]``."""
    pmf = log_pmf(logits.float(), sampling).cpu().double().exp_()
    return token_at(pmf.cumsum_(dim=1), uniforms[:, None])[:, 0]


def _until_end(text: Tensor, ends: Tensor) -> Tensor:
    """The text up to its first end-of-text token, which is included."""
    at = torch.isin(text, ends).nonzero()
    return text[: int(at[0]) + 1] if len(at) else text
