"""From text to token ids: chat templates end by a deadline, prompts must fit the window."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch

from spectheory.errors import ModelError, TextError
from spectheory.measure.model_files import reason_of_foreign
from spectheory.prompts import Prompt

SECONDS = 10.0
"""Longest time that a chat template may take for one prompt."""


def _apply_template(tokenizer: Any, text: str, *, seconds: float = SECONDS) -> str:
    """The text that a tokenizer's chat template makes of one message of a user; a ModelError if it fails."""
    if not getattr(tokenizer, "chat_template", None):
        raise ModelError(
            "the tokenizer has no chat template", limit="needs one", remedy="measure without chat template"
        )
    turns = [{"role": "user", "content": text}]
    try:
        with _deadline(seconds):
            return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
    except BaseException as error:  # a template can raise anything
        raise ModelError(
            f"the tokenizer's chat template was refused ({reason_of_foreign(error)})",
            limit=f"it must turn one message of a user into text within {seconds:g} s",
            remedy="correct the template, or measure without chat template",
        ) from error


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError in Python code that the block runs for longer, in any thread; one call in C is not ended."""
    end, before = time.monotonic() + seconds, sys.gettrace()

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if time.monotonic() > end:
            raise TimeoutError(f"it takes more than {seconds:g} s")
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def encode_prompt(tokenizer: Any, prompt: Prompt, *, chat_template: bool = False) -> torch.Tensor:
    """Token ids ``[n]`` of a prompt, with the tokenizer's special tokens, or by its chat template."""
    text = _apply_template(tokenizer, prompt.text) if chat_template else prompt.text
    return _ids(tokenizer, text, special=not chat_template, what=f"prompt {prompt.id!r}")


def _encode_output(tokenizer: Any, prompt: Prompt) -> torch.Tensor:
    """Token ids ``[n]`` of the text given with a prompt, tokenised separately and without special tokens."""
    if prompt.output is None:
        raise TextError(
            f"prompt {prompt.id!r} has no 'output'",
            limit="given text needs one for each prompt",
            remedy="add the field or sample from the target",
        )
    return _ids(tokenizer, prompt.output, special=False, what=f"output of prompt {prompt.id!r}")


def _ids(tokenizer: Any, text: str, *, special: bool, what: str) -> torch.Tensor:
    try:
        ids = tokenizer(text, add_special_tokens=special, verbose=False)["input_ids"]
    except BaseException as error:  # its regular expressions may give up, by a panic of Rust
        raise ModelError(
            f"the tokenizer failed on {what} ({reason_of_foreign(error)})",
            limit="it must split every text",
            remedy="use a tokenizer as transformers saves it, or another text",
        ) from error
    if not ids:
        raise TextError(f"{what} has no tokens", limit="needs at least one", remedy="write a longer text")
    return torch.tensor(ids, dtype=torch.int64)


def check_window(name: str, prompt: int, output: int, window: int | None, *, beyond: int = 0) -> None:
    """Check that a prompt of so many tokens, its output and what is drafted beyond that fit both models."""
    if window is not None and prompt + output + beyond > window:
        room = window - prompt - beyond
        raise TextError(
            f"prompt {name!r} has {prompt} tokens and {output + beyond} follow",
            limit=f"the models take {window}",
            remedy=f"use --tokens {room} at most" if room > 0 else "shorten the prompt",
        )
