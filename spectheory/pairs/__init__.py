"""The built-in pair: a small real target, two drafts, their prompts, and the recipe that made them."""

from __future__ import annotations

from pathlib import Path

from spectheory.errors import ModelError

PREFIX = "builtin:"
MODELS = ("target", "draft", "distilled")
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
    if model not in MODELS:
        raise ModelError(
            f"built-in model {model!r} does not exist",
            limit=f"there are {', '.join(MODELS)}",
            remedy=f"for example {PREFIX}target",
        )
    return str(_STDLIB / model)
