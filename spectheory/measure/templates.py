"""Chat templates: foreign programs in a sandbox of transformers, which end by a deadline."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from spectheory.errors import ModelError
from spectheory.measure.hub import reason_of_foreign

SECONDS = 10.0
"""Longest time that a chat template may take for one prompt."""


def templated(tokenizer: Any, text: str, *, seconds: float = SECONDS) -> str:
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
