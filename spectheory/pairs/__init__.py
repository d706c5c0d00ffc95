"""The built-in models: a small real target, two drafts, two draft heads, and their prompts."""

from __future__ import annotations

from pathlib import Path

from spectheory.errors import ModelError

__all__ = ["HEADS", "MODELS", "PROMPTS", "resolve"]

PREFIX = "builtin:"
MODELS = ("target", "draft", "distilled")
HEADS = ("eagle3", "dflash")
"""Draft heads over the hidden states of the target, in the format of speculators."""
_STDLIB = Path(__file__).parent / "stdlib"

PROMPTS = _STDLIB / "question.jsonl"
"""Prompts from held-out files, in the layout of Spec-Bench."""


def resolve(name: str) -> str:
    """The folder of a built-in model such as ``builtin:target``; any other name is returned unchanged.

    Examples
    --------
    >>> resolve("some/model")
    'some/model'
    >>> resolve("builtin:draft").endswith("draft")
    True
    """
    if not name.startswith(PREFIX):
        return name
    model = name.removeprefix(PREFIX)
    if model not in (*MODELS, *HEADS):
        raise ModelError(
            f"built-in model {model!r} does not exist",
            limit=f"there are {', '.join((*MODELS, *HEADS))}",
            remedy=f"for example {PREFIX}target",
        )
    return str(_STDLIB / model)
