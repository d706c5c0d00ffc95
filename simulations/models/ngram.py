"""Pairs of n-gram models of real text, byte by byte: from texts, or from a recipe in a task's parameters.

A recipe names a module of the standard library, whose source every Python has, the built-in prompts, or a file; sources
differ between versions of Python, so a recipe holds the hash of its text and any other text is refused.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from simulations.experiments.tasks import canonical
from simulations.models.ngram_models import Automaton, Ints, automaton, ngram
from spectheory.errors import SettingError, TextError
from spectheory.pairs import PROMPTS
from spectheory.prompts import read_prompts

BYTES = 256
"""Tokens of a text read byte by byte."""

PROMPTS_TEXT = "builtin:prompts"
"""The prompts of the built-in pair, one after another: Python code, the same everywhere."""

WEIGHT = 0.9
"""What every order keeps for its own estimate where nothing is said."""


def byte_tokens(text: str) -> Ints:
    """The bytes of a text in UTF-8."""
    return np.frombuffer(_encoded(text), dtype=np.uint8).astype(np.int64)


def ngram_pair(
    target_text: str,
    draft_text: str | None = None,
    *,
    order: int,
    draft_order: int,
    weight: float = WEIGHT,
    draft_weight: float | None = None,
) -> Automaton:
    """Target and draft as n-gram models of texts, in one automaton.

    - ``target_text``: what the target counts, byte by byte.
    - ``draft_text``: what the draft counts; the same text by default.
    - ``order``, ``draft_order``: tokens of a gram, at least 1; the draft's at most the target's.
    - ``weight``, ``draft_weight``: what every order keeps for itself (:func:`simulations.models.ngram_models.ngram`);
      the draft's is the target's by default.
    """
    target = ngram(byte_tokens(target_text), BYTES, order=order, weight=weight)
    text = target_text if draft_text is None else draft_text
    share = weight if draft_weight is None else draft_weight
    return automaton(target, ngram(byte_tokens(text), BYTES, order=draft_order, weight=share))


# Recipes

_TEXTS, _MODELS = ("text", "file", "sha256", "draft"), ("order", "draft_order", "weight", "draft_weight")


def text_parameters(module: str) -> dict[str, str]:
    """The recipe of a module's source, or of the built-in prompts: ``{"text": module, "sha256": ...}``."""
    return {"text": module, "sha256": _hash(_source(module))}


def file_parameters(path: str | Path) -> dict[str, str]:
    """The recipe of a file in UTF-8: ``{"file": path, "sha256": ...}``, the hash of its bytes."""
    return {"file": str(path), "sha256": _hash(_read(path))}


def text_of(parameters: Mapping[str, Any]) -> str:
    """The text of a recipe."""
    named = [name for name in ("text", "file") if name in parameters]
    if len(named) != 1 or "sha256" not in parameters:
        raise SettingError(
            f"a text is described by {sorted(parameters)}",
            limit="needs 'sha256', and 'text' or 'file'",
            remedy="use text_parameters(module) or file_parameters(path)",
        )
    name = parameters[named[0]]
    text = _source(name) if named == ["text"] else _read(name)
    if (found := _hash(text)) != parameters["sha256"]:
        raise TextError(
            f"the text of {name} has the sha256 {found[:12]}...",
            limit=f"the task was made with {str(parameters['sha256'])[:12]}...; Python's sources differ by version",
            remedy="describe the task anew, or run it where that text is",
        )
    return text


def ngram_pair_of(parameters: Mapping[str, Any]) -> Automaton:
    """The pair a task asks for, as :func:`ngram_pair` makes it; kept for the next time.

    Read are a recipe of the target's text, ``order``, ``draft_order``, ``weight``, ``draft_weight``, and as ``draft`` a
    recipe of another text for the draft.
    """
    if missing := [name for name in ("order", "draft_order") if name not in parameters]:
        raise SettingError(f"no {missing[0]} is given", limit="the models have an order each", remedy="state it")
    return _pair_of(canonical({name: parameters[name] for name in (*_TEXTS, *_MODELS) if name in parameters}))


@lru_cache(maxsize=4)
def _pair_of(recipe: str) -> Automaton:
    parameters = json.loads(recipe)
    settings = {name: parameters[name] for name in _MODELS if name in parameters}
    other = text_of(parameters["draft"]) if "draft" in parameters else None
    return ngram_pair(text_of(parameters), other, **settings)


def _source(module: str) -> str:
    """The source of a module of the standard library, which is not run for it; or the built-in prompts."""
    if module == PROMPTS_TEXT:
        return "\n".join(prompt.text for prompt in read_prompts(PROMPTS))
    found = None
    if str(module).split(".")[0] in sys.stdlib_module_names:
        try:
            spec = importlib.util.find_spec(module)
            found = getattr(spec and spec.loader, "get_source", lambda _: None)(module)
        except (ImportError, ValueError):
            found = None
    if not found:
        raise TextError(
            f"there is no source of {module!r}",
            limit="must be a module of the standard library that is a file",
            remedy=f"use one like 'argparse', or {PROMPTS_TEXT!r}",
        )
    return str(found)


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise TextError(
            f"{path} cannot be read ({error})", limit="must be a text in UTF-8", remedy="correct it"
        ) from error


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _hash(text: str) -> str:
    return hashlib.sha256(_encoded(text)).hexdigest()
