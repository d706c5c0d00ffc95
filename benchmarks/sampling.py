"""Sampling the texts of the built-in prompts in batches and one prompt at a time; drawing from a wide vocabulary.

Texts and drawn tokens are equal first. The limit of a batch is its matrix products alone: every linear layer of the
target on as many rows, in blocks as large as sampling has them. The limit of a draw is the largest entry of each row.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from _rows import Row, median_seconds, publish
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure import MeasureSettings, ModelPair, load_pair
from spectheory.measure.columns.pmf import log_pmf, token_at
from spectheory.measure.job import Encoded, encode, texts_of
from spectheory.measure.sampling import draw
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import read_prompts

BATCH, WANTED = 16, 9.0
"""Prompts at once by default on a CPU, and the seconds that were set as a goal."""
SETTINGS = MeasureSettings(tokens=128, count=2)
SIZES, SHORT = (1, 2, 4, 8, 16, 48), MeasureSettings(tokens=16, count=2)
VOCABULARY, ROWS, REPEATS = 151_936, 32, 7
DRAWS = {
    "top-k 50": Sampling(top_k=50),
    "T .7, top-k 50, top-p .9": Sampling(0.7, top_k=50, top_p=0.9),
    "top-p .95": Sampling(top_p=0.95),
    "no cut": Sampling(),
    "temperature 0": Sampling(0),
}


def sampled(
    pair: ModelPair, prompts: Sequence[Encoded], settings: MeasureSettings, size: int
) -> tuple[list[list[list[int]]], float]:
    """The texts of all prompts, so many at a time, and the seconds that they took."""
    began, texts = time.thread_time(), []
    for start in range(0, len(prompts), size):
        texts += texts_of(pair, prompts[start : start + size], settings)
    return [[text.tolist() for text in each] for each in texts], time.thread_time() - began


def products_alone(pair: ModelPair, prompts: Sequence[Encoded], size: int) -> float:
    """Seconds of the target's matrix products for the same texts in batches of this size."""
    layers = [module for module in pair.target.network.modules() if isinstance(module, torch.nn.Linear)]
    steps = -(-len(prompts) // size) * (SETTINGS.tokens - 1)
    read = sum(len(each.ids) for each in prompts)

    def products(rows: int) -> Callable[[], object]:
        blocks = {layer.in_features: torch.randn(rows, layer.in_features) for layer in layers}
        return lambda: [layer(blocks[layer.in_features]) for layer in layers]

    with torch.inference_mode():
        return steps * median_seconds(products(size * SETTINGS.count), REPEATS) + median_seconds(products(read), 1)


def whole_draw(logits: Tensor, uniforms: Tensor, sampling: Sampling) -> Tensor:
    """The peer: the pmf of the whole vocabulary in float64, and its cumulative sums."""
    pmf = log_pmf(logits.float(), sampling).double().exp_()
    return token_at(pmf.cumsum_(dim=1), uniforms[:, None])[:, 0]


def texts_rows(pair: ModelPair, prompts: Sequence[Encoded]) -> Iterator[Row]:
    """Batches against one prompt at a time, and over the size of the batch."""
    together, ours = sampled(pair, prompts, SETTINGS, BATCH)
    alone, peer = sampled(pair, prompts, SETTINGS, 1)
    assert together == alone
    same, one = "the texts of each prompt alone", "one prompt at a time"
    limit = products_alone(pair, prompts, BATCH), "their matrix products"
    work = f"{len(prompts)} built-in prompts x {SETTINGS.count} texts x {SETTINGS.tokens} tokens, {BATCH} at a time"
    yield Row(work, "s", ours, same, peer, one, *limit, WANTED)
    samples = {size: sampled(pair, prompts, SHORT, size) for size in SIZES}
    for size, (texts, seconds) in samples.items():
        assert texts == samples[1][0]
        scale = 1e3 / sum(len(text) for each in texts for text in each)
        others = (samples[1][1] * scale, one) if size > 1 else (None, "")
        work, at = f"{size} prompts at a time, {SHORT.tokens} tokens each", {"batch": size}
        yield Row(work, "ms per token", seconds * scale, same, *others, at=at, curve="sampling")


def draw_rows() -> Iterator[Row]:
    """Drawing tokens from logits of a wide vocabulary."""
    logits = 3 * torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(0))
    heights = torch.from_numpy(np.random.default_rng(0).random(ROWS))

    def ms(work: Callable[[], object]) -> float:
        return median_seconds(work, REPEATS) / ROWS * 1e3

    limit = ms(lambda: logits.amax(dim=-1)), "the largest entry"
    for name, sampling in DRAWS.items():
        given = logits, heights, sampling
        assert torch.equal(draw(*given), whole_draw(*given))
        ours, peer = ms(partial(draw, *given)), ms(partial(whole_draw, *given))
        same = "the tokens drawn from the whole pmf"
        yield Row(f"drawing, {name}", "ms per token", ours, same, peer, "whole pmf", *limit)


def main() -> None:
    """Assert that texts and tokens are equal, then publish."""
    torch.set_num_threads(1)
    pair = load_pair(resolve("builtin:target"), resolve("builtin:distilled"), device="cpu")
    prompts = encode(pair, read_prompts(PROMPTS), SETTINGS)
    title = f"Sampling the texts of a measurement, and drawing one token, V = {VOCABULARY:,}, float32"
    publish(__file__, title, [*texts_rows(pair, prompts), *draw_rows()])


if __name__ == "__main__":
    main()
