"""The stages of a prompt: encode it, sample its texts or take the given one, read them with both models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from spectheory.drafting import Grown
from spectheory.measure.by_start import check_prompt
from spectheory.measure.columns.noise import text_key
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.pair import ModelPair
from spectheory.measure.sampling import sample_together
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.tokens import check_window, encode_output, encode_prompt
from spectheory.prompts import Prompt
from spectheory.trace import TextInfo, Trace
from spectheory.trace.parts import concatenate


@dataclass(frozen=True)
class Encoded:
    """A prompt at its `place` in the file, with its token ids ``[n]`` and those of its given text, if it has one."""

    place: int
    prompt: Prompt
    ids: Tensor
    given: Tensor | None


def encode(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> list[Encoded]:
    """The prompts in token ids, checked before the first model runs."""
    return [_encoded(pair, place, prompt, settings) for place, prompt in enumerate(prompts)]


def _encoded(pair: ModelPair, place: int, prompt: Prompt, settings: MeasureSettings) -> Encoded:
    ids = encode_prompt(pair.tokenizer, prompt, chat_template=settings.chat_template)
    given = encode_output(pair.tokenizer, prompt)[: settings.tokens] if settings.given_text else None
    check_prompt(pair.draft, prompt.id, len(ids))
    beyond = Grown.sized_as(settings.grown).depth if settings.grown else 0
    output = settings.tokens if given is None else len(given)
    check_window(prompt.id, len(ids), output, pair.window, beyond=beyond)
    return Encoded(place, prompt, ids, given)


def texts_of(
    pair: ModelPair,
    batch: Sequence[Encoded],
    settings: MeasureSettings,
    *,
    remark: Callable[[str], None] | None = None,
) -> list[list[Tensor]]:
    """The texts of each prompt of a batch: given, or sampled from the target, each prompt with its own randomness.

    The same batch gives the same texts, bit for bit; another batch changes them by rounding alone. `remark` is that of
    :func:`~spectheory.measure.sampling.sample_together`.
    """
    if settings.given_text:
        return [[each.given] for each in batch if each.given is not None]
    return sample_together(
        pair,
        [each.ids for each in batch],
        settings.sampling,
        tokens=settings.tokens,
        count=settings.count,
        rngs=[np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(each.place,))) for each in batch],
        stop_at_end=settings.stop_at_end,
        chunk=settings.chunk,
        remark=remark,
    )


def trace_of(pair: ModelPair, encoded: Encoded, texts: Sequence[Tensor], settings: MeasureSettings) -> Trace:
    """The trace of one prompt's texts."""
    traces, prompt = [], encoded.prompt
    for j, text in enumerate(texts):
        name = prompt.id if len(texts) == 1 else f"{prompt.id}#{j + 1}"
        columns = teacher_forced(
            pair,
            encoded.ids,
            text,
            settings.sampling,
            chunk=settings.chunk,
            race=settings.race,
            sampled=encoded.given is None,
            stop_at_end=settings.stop_at_end,
            key=text_key(settings.seed, encoded.place, j),
            name=name,
            depth=settings.depth,
        )
        if settings.grown is not None:
            shape = Grown.sized_as(settings.grown)
            columns |= grown_columns(pair, encoded.ids, text, shape, chunk=settings.chunk, name=name)
        ended = settings.stop_at_end and int(text[-1]) in pair.end_of_text
        info = TextInfo(name, len(text), prompt.id, prompt.category, ended, len(encoded.ids))
        traces.append(Trace(columns, (info,)))
    return concatenate(traces, {})
