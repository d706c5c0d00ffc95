"""Decode prompts with a pair and a method; what does not fit is refused beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.errors import SettingError, TextError
from spectheory.measure.decoders.events import Decoded
from spectheory.measure.decoders.kept import KeptReader
from spectheory.measure.decoders.loop import Running, run
from spectheory.measure.decoders.methods import Method
from spectheory.measure.decoders.randomness import Clocks, Drawn, Source
from spectheory.measure.decoders.readers import Reader, enough_memory, why_uncached
from spectheory.measure.decoders.rereading import RereadingReader
from spectheory.measure.decoders.verifiers import Verifier
from spectheory.measure.noise import text_key
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.tokens import check_window

MOST_DRAFTED = 1 << 14
"""More drafts in one call are a slip, and their tree takes longer to build than a text to decode."""
_IDS = (torch.int64, torch.int32)


def decode(
    pair: ModelPair,
    prompts_ids: Sequence[Tensor],
    method: Method,
    *,
    tokens: int,
    sampling: Sampling | None = None,
    seed: int = 0,
    batch: int = 1,
    stop_at_end: bool = True,
    chunk: int = 256,
    verifier: Verifier | None = None,
) -> list[Decoded]:
    """Decode each prompt: texts of the target's law, whatever the draft (lossless).

    A call is one pass of the target on the last token and the drafts after it. With m tokens to go no draft stands
    deeper than m - 1, and none after an end of text. Both models work with the same temperature and filters; at
    temperature 0 every method gives the target's greedy text. Pmfs are worked out on the CPU in float64, so target and
    draft may be on different devices.

    The randomness of a text is fixed by `seed` and its number, not by the batch it is in. Texts so depend on `batch`,
    device and precision only where rounding decides. With the rule ``race`` they do not depend on the shape and on the
    draft either, as long as rounding does not decide: a pass on more tokens rounds logits otherwise.

    Parameters
    ----------
    pair : ModelPair
        Target and draft.
    prompts_ids : sequence of tensor ``[n]`` of int
        Prompts of at least one token.
    method : Method
        Rule and shape.
    tokens : int
        Most output tokens of a text.
    sampling : Sampling, optional
        Temperature and filters; by default the models' own pmfs.
    seed : int
        Root of all randomness.
    batch : int
        Texts decoded in step. They share forward passes and their times; a text that ends leaves.
    stop_at_end : bool
        Whether a text ends with its first end-of-text token, which belongs to it.
    chunk : int
        Prompt tokens read in one pass.
    verifier : callable, optional
        In place of the method's own, e.g. a biased one to compare with.

    Returns
    -------
    list of Decoded
        One per prompt.

    Raises
    ------
    SettingError
        If a number is below 1 or the seed below 0, a call would draft more than 16384 tokens, or ``greedy`` is asked
        for at a temperature.
    TextError
        If there is no prompt, or one has no or unknown tokens, or does not fit the window with its output.
    ModelError
        If a model is not causal, or a device runs out of memory.
    """
    sampling = sampling or Sampling()
    _check_numbers(method, sampling, seed, {"tokens": tokens, "batch": batch, "chunk": chunk})
    _check_prompts(pair, prompts_ids, tokens)
    models = [pair.target, pair.draft] if method.uses_draft else [pair.target]
    uncached = [why_uncached(model) for model in models]
    remarks = tuple(
        f"{model.name} {reason}: every call reads its text again"
        for model, reason in zip(models, uncached, strict=True)
        if reason is not None
    )
    ends = pair.end_of_text if stop_at_end else frozenset[int]()
    decoded = []
    for first in range(0, len(prompts_ids), batch):
        prompts = [[int(token) for token in ids] for ids in prompts_ids[first : first + batch]]
        running = [
            Running(list(prompt), tokens, _source(seed, first + i, prompt, pair.vocabulary))
            for i, prompt in enumerate(prompts)
        ]
        readers: list[Reader] = [
            _reader(model, reason, pair.vocabulary, sampling, [one.text for one in running])
            for model, reason in zip(models, uncached, strict=True)
        ]
        # A pass says so itself; what else takes memory is moving caches and working out pmfs.
        texts = len(running)
        with enough_memory("the decoder", f"{texts} texts at once", texts, "fewer drafts or shorter texts"):
            for reader in readers:
                reader.prefill(chunk)
            prefill = sum(reader.seconds for reader in readers)
            run(running, readers[0], readers[1] if method.uses_draft else None, method, ends, verifier)
        decoded += [
            Decoded(torch.tensor(one.text[len(prompt) :]), tuple(one.calls), prefill, remarks)
            for one, prompt in zip(running, prompts, strict=True)
        ]
    return decoded


def _reader(
    model: Model, uncached: str | None, vocabulary: int, sampling: Sampling, texts: Sequence[list[int]]
) -> Reader:
    kind = KeptReader if uncached is None else RereadingReader
    return kind(model, vocabulary, sampling, texts)


def _source(seed: int, number: int, prompt: Sequence[int], vocabulary: int) -> Source:
    """The randomness of a text after its prompt: draws and clocks, independent of each other."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number, 0)))
    clocks = Clocks(text_key(seed, number, 1), vocabulary)
    clocks.follow(prompt)
    return Source(Drawn(rng), clocks)


def _check_numbers(method: Method, sampling: Sampling, seed: int, numbers: dict[str, int]) -> None:
    for name, value, least in (*((name, value, 1) for name, value in numbers.items()), ("seed", seed, 0)):
        whole(name, value, least=least, remedy=f"use {least} or more")
    if method.shape is not None and method.shape.nodes > MOST_DRAFTED:
        raise SettingError(
            f"a call drafts {method.shape.nodes} tokens", limit=f"at most {MOST_DRAFTED}", remedy="use a smaller shape"
        )
    if method.law is not None and method.law.output == "first choice" and sampling.temperature > 0:
        raise SettingError(
            f"{method.rule} is asked for at temperature {sampling.temperature:g}",
            limit="a greedy target has temperature 0",
            remedy="use temperature 0, or argmax for a sampled target",
        )


def _check_prompts(pair: ModelPair, prompts_ids: Sequence[Tensor], tokens: int) -> None:
    if len(prompts_ids) == 0:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt")
    for i, ids in enumerate(prompts_ids, start=1):
        if not isinstance(ids, Tensor) or ids.ndim != 1 or len(ids) == 0 or ids.dtype not in _IDS:
            what = f"shape {tuple(ids.shape)}, {ids.dtype}" if isinstance(ids, Tensor) else f"type {type(ids).__name__}"
            raise TextError(
                f"prompt {i} has {what}", limit="needs a tensor [n] of token ids, n >= 1", remedy="encode a text"
            )
        if int(ids.min()) < 0 or int(ids.max()) >= pair.vocabulary:
            raise TextError(
                f"prompt {i} has token ids {int(ids.min())}..{int(ids.max())}",
                limit=f"the pair has ids 0..{pair.vocabulary - 1}",
                remedy="encode it with the pair's tokenizer",
            )
        check_window(str(i), len(ids), tokens, pair.window)
