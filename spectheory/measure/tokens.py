"""From text to token ids: tokenizers that agree, prompts that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from spectheory.errors import ModelError, TextError
from spectheory.measure.pair import Model
from spectheory.prompts import Prompt

ADDED = "if tokenizer.json lacks the token, take out what adds it in tokenizer_config.json (special token or class)"
"""What to do about a token that appears when a tokenizer is loaded."""


def same_tokenizer(target: Any, draft: Any, target_name: str, draft_name: str) -> Any:
    """Return the target's tokenizer if the draft's gives the same ids.

    Raises
    ------
    ModelError
        If they differ; a differing token is named.
    """
    ours, theirs = target.get_vocab(), draft.get_vocab()
    if ours == theirs:
        return target
    sizes = "" if len(ours) == len(theirs) else f"{len(ours)} and {len(theirs)} tokens, "
    places = {token: (ours.get(token, "absent"), theirs.get(token, "absent")) for token in ours | theirs}
    token = min((t for t, (one, other) in places.items() if one != other), key=(theirs | ours).__getitem__)
    raise ModelError(
        f"tokenizers of {target_name!r} and {draft_name!r} differ: "
        f"{sizes}token {token!r} is {places[token][0]} and {places[token][1]}",
        limit="both models must use the same token ids",
        remedy=f"choose a draft of the target's family{f', or {ADDED}' if sizes else ''}",
    )


def common_vocabulary(tokenizer: Any, *models: Model) -> int:
    """Return V: the tokenizer's ids are below V, and every model has an output for each id below V.

    Raises
    ------
    ModelError
        If a model has no output for a token; the token is named.
    """
    ids = tokenizer.get_vocab()
    last = max(ids, key=ids.__getitem__)
    short = min(models, key=lambda model: model.outputs)
    if ids[last] >= short.outputs:
        first = min((token for token in ids if ids[token] >= short.outputs), key=ids.__getitem__)
        raise ModelError(
            f"{short.name!r} has {short.outputs} outputs, and the tokenizer's ids go up to {ids[last]}: "
            f"token {first!r} is {ids[first]}",
            limit="every token id needs an output",
            remedy=f"use the tokenizer the model was made with, or {ADDED}",
        )
    return int(ids[last]) + 1


def added_on_loading(tokenizer: Any, file: Path) -> list[str]:
    """Tokens that a loaded tokenizer has and its tokenizer.json lacks, by id."""
    ids = tokenizer.get_vocab()
    return sorted(ids.keys() - Tokenizer.from_file(str(file)).get_vocab().keys(), key=ids.__getitem__)


def encode_prompt(tokenizer: Any, prompt: Prompt, *, chat_template: bool = False) -> torch.Tensor:
    """Token ids ``[n]`` of a prompt, special tokens added as the tokenizer does, or by its chat template.

    Raises
    ------
    TextError
        If the prompt has no tokens.
    ModelError
        If a chat template is asked for and there is none.
    """
    text: str = prompt.text
    if chat_template:
        if not getattr(tokenizer, "chat_template", None):
            raise ModelError(
                "the tokenizer has no chat template", limit="needs one", remedy="measure without chat template"
            )
        turns = [{"role": "user", "content": text}]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return _ids(tokenizer, text, special=not chat_template, what=f"prompt {prompt.id!r}")


def encode_output(tokenizer: Any, prompt: Prompt) -> torch.Tensor:
    """Token ids ``[n]`` of the text given with a prompt, tokenised apart from it and without special tokens.

    Raises
    ------
    TextError
        If there is no given text or it has no tokens.
    """
    if prompt.output is None:
        raise TextError(
            f"prompt {prompt.id!r} has no 'output'",
            limit="given text needs one for each prompt",
            remedy="add the field or sample from the target",
        )
    return _ids(tokenizer, prompt.output, special=False, what=f"output of prompt {prompt.id!r}")


def _ids(tokenizer: Any, text: str, *, special: bool, what: str) -> torch.Tensor:
    ids = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    if not ids:
        raise TextError(f"{what} has no tokens", limit="needs at least one", remedy="write a longer text")
    return torch.tensor(ids, dtype=torch.int64)


def check_window(name: str, prompt: int, output: int, window: int | None) -> None:
    """Check that a prompt and what follows it fit both models.

    Raises
    ------
    TextError
        If they do not; the prompt, its tokens and the window are named.
    """
    if window is not None and prompt + output > window:
        raise TextError(
            f"prompt {name!r} has {prompt} tokens and {output} follow",
            limit=f"the models take {window}",
            remedy=f"use --tokens {window - prompt} at most" if window > prompt else "shorten the prompt",
        )
