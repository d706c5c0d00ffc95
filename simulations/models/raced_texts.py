"""Continuations by the built-in target, the same for every simulator with the same recipe.

The recipe: ``draft``, ``distilled`` or ``draft``; ``prompts``, their places in the built-in file; ``continuations`` of
each; ``tokens`` of each, to the last one; ``temperature`` of both models; ``text_seed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simulations.draws import Floats
from simulations.experiments.tasks import cache_by_text
from spectheory.distributions import Sampling
from spectheory.errors import SettingError
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prompts import read_prompts

if TYPE_CHECKING:
    from torch import Tensor

    from spectheory.measure import ModelPair

RECIPE = ("draft", "prompts", "continuations", "tokens", "temperature", "text_seed")


class Text(NamedTuple):
    """Token ids of a prompt and of what the target wrote behind it."""

    prompt: Tensor
    output: Tensor


class Pmfs(NamedTuple):
    """What both models say along a text: target and draft, ``[N, V]``, and the text's tokens, ``[N]``."""

    target: Floats
    draft: Floats
    tokens: Any


@lru_cache(maxsize=2)
def models(draft: str) -> ModelPair:
    """The built-in pair with this draft, on one thread: with more, sums may round differently."""
    from spectheory.measure import load_pair

    import torch  # isort: skip  # behind the line that names the extra where it is missing

    torch.set_num_threads(1)
    return load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + draft), device="cpu")


@cache_by_text(4, only=RECIPE)
def texts(recipe: Mapping[str, Any]) -> tuple[Text, ...]:
    """The texts of a recipe, prompt by prompt; each prompt has a stream of its own."""
    from spectheory.measure import sample_continuations
    from spectheory.measure.tokens import encode_prompt

    made: list[Text] = []
    pair, prompts = models(recipe["draft"]), read_prompts(PROMPTS)
    for number in recipe["prompts"]:
        if not 0 <= number < len(prompts):
            raise SettingError(f"a prompt is {number}", limit=f"there are 0..{len(prompts) - 1}", remedy="name another")
        ids = encode_prompt(pair.tokenizer, prompts[number])
        outputs = sample_continuations(
            pair,
            ids,
            sampling(recipe),
            tokens=recipe["tokens"],
            count=recipe["continuations"],
            rng=np.random.default_rng(np.random.SeedSequence(recipe["text_seed"], spawn_key=(number,))),
            stop_at_end=False,
        )
        made += [Text(ids, output) for output in outputs]
    return tuple(made)


def sampling(recipe: Mapping[str, Any]) -> Sampling:
    """What turns both models' logits into pmfs."""
    return Sampling(temperature=recipe["temperature"])


def pmfs_along(recipe: Mapping[str, Any], text: Text) -> Pmfs:
    """Both models' pmfs at every token of a text, in their own precision, given what stands before it."""
    import torch

    from spectheory.measure.columns.pmf import log_pmf
    from spectheory.measure.reading import Reading, read_last

    pair, ids = models(recipe["draft"]), torch.cat([text.prompt, text.output[:-1]])
    rows = []
    for model in (pair.target, pair.draft):
        (logits,) = read_last(Reading(model, pair.vocabulary), ids, len(text.output), len(text.output))
        rows.append(log_pmf(logits.float(), sampling(recipe)).double().exp().numpy())
    return Pmfs(rows[0], rows[1], text.output.numpy())
