"""How many prompts are sampled together, and what their padding costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from spectheory.measure.job import Encoded, MeasureSettings
from spectheory.measure.machine import free_bytes
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import bytes_per_token, cache_of_causal, takes, why_alone

MOST_PROMPTS = {"cpu": 16}
"""Most prompts that are sampled together unless more are asked for; a larger batch of a CPU is hardly faster."""
MOST_ELSEWHERE = 64
MOST_TEXTS = 512
"""Most texts of a batch, continuations counted."""
_SHARE = 0.25
"""Share of the free memory that a batch may take: the estimate of what it takes is rough."""
_DRAWING = 32
"""Bytes for each entry of a row of logits while a token is drawn: some float32 and two float64 copies."""
_WASTE = 1 / 3
"""Share of padding in the prompts' tokens from which on there is a remark."""


def batch_for(pair: ModelPair, prompts: Sequence[Encoded], settings: MeasureSettings, *, workers: int = 0) -> int:
    """How many prompts to sample together at most: as many as :data:`_SHARE` of the free memory holds (an estimate),
    and no more than pays; 1 for given text and for a target that reads no padding.

    The memory that so many `workers` on the target's device leave, each with the pair, is divided among them; 0: this
    process samples.
    """
    longest = max(len(each.ids) for each in prompts)
    if settings.given_text or why_alone(pair.target, longest + settings.tokens) is not None:
        return 1
    most = min(MOST_PROMPTS.get(pair.target.device.type, MOST_ELSEWHERE), MOST_TEXTS // settings.count)
    free = free_bytes(pair.target.device)
    if workers:  # weights that are shared count once
        weights = {id(each): each for model in (pair.target, pair.draft) for each in model.network.parameters()}
        free = max(0, free - workers * sum(each.nbytes for each in weights.values())) // workers
    needed = _prompt_bytes(pair.target, longest, settings)
    return max(1, min(most, len(prompts), int(_SHARE * free / needed)))


def _prompt_bytes(target: Model, longest: int, settings: MeasureSettings) -> float:
    """Bytes for a prompt of `longest` tokens and its texts, above the weights."""
    element = torch.finfo(target.network.dtype).bits // 8
    config = target.network.config.get_text_config()
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    chunk = min(longest, settings.chunk)
    logits = target.outputs * (1 if takes(target, "logits_to_keep") else chunk)
    reading = element * (chunk * (8 * config.hidden_size + 3 * inner) + logits)
    # While texts are selected, the old cache and the one that they move to are held.
    cache = 2 * bytes_per_token(cache_of_causal(target)) * (longest + settings.tokens)
    return reading + settings.count * (cache + _DRAWING * target.outputs)


def batch_remarks(
    pair: ModelPair, batches: Sequence[Sequence[Encoded]], tokens: int, batch: int, asked: int | None
) -> Iterator[str]:
    """What the user should know of sampling texts of up to `tokens` tokens in these batches of up to `batch` prompts,
    where `asked` were asked for.
    """
    if asked not in (None, batch):
        yield f"{batch} prompts are sampled together, as when this measurement began, not {asked}"
    lengths = [len(each.ids) for prompts in batches for each in prompts]
    reason = why_alone(pair.target, max(lengths) + tokens) if len(lengths) > 1 and asked != 1 else None
    if reason is not None:
        yield f"{pair.target.name} {reason}: prompts are sampled one after the other"
    elif _wasted(prompts := max(batches, key=_wasted)) > _WASTE:
        shortest, *_, longest = sorted(prompts, key=lambda each: len(each.ids))
        yield (
            f"prompts of {len(shortest.ids)} to {len(longest.ids)} tokens are sampled together "
            f"({shortest.prompt.id!r} and {longest.prompt.id!r} are among them): {_wasted(prompts):.0%} of what is "
            f"read of them is padding; use a smaller --batch than {batch}"
        )


def _wasted(prompts: Sequence[Encoded]) -> float:
    """The share of padding in what is read of these prompts together."""
    lengths = [len(each.ids) for each in prompts]
    return 1 - sum(lengths) / (len(lengths) * max(lengths))
