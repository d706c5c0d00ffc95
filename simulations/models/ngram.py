"""Sparse n-gram models of texts, and a pair of them as an automaton over the contexts seen.

A model of order n looks at n - 1 tokens. Every order gives its own estimate a weight a and the rest to the next lower
one, down to the uniform pmf,

    p(y | c) = a count(c y)/count(c .) + (1 - a) p(y | c without its first token),

and a context that is not in the text backs off at once. Models of one text with different orders or weights, or of two
texts, differ as a real target and draft do: much in few contexts, little in most.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulations.draws import Floats
from simulations.experiments.tasks import cache_by_text
from simulations.models.pairs import whole_number
from spectheory.errors import SettingError, ShapeError, TextError
from spectheory.pairs import PROMPTS
from spectheory.prompts import read_prompts

Ints = NDArray[np.int64]
States = NDArray[np.int32]
Context = tuple[int, ...]

MOST_CONTEXTS = 1 << 14
"""States of an automaton; with bytes its tables then take some 250 MB."""


@dataclass(frozen=True)
class Ngram:
    """An n-gram model; make it with :func:`ngram`.

    - ``order``: n: tokens of a gram, its context and one more.
    - ``followers``: what follows each context of 0 to n - 1 tokens in the text, and how often; it holds a context's
      prefixes and suffixes too.
    """

    order: int
    tokens: int
    weight: float
    followers: Mapping[Context, tuple[Ints, Ints]]

    def pmf(self, context: Context) -> Floats:
        """Pmf ``[V]`` of the token after a context of any length."""
        row = np.full(self.tokens, 1 / self.tokens)
        for size in range(min(len(context), self.order - 1) + 1):
            seen = self.followers.get(context[len(context) - size :])
            if seen is None:
                break
            followers, counts = seen
            row *= 1 - self.weight
            row[followers] += self.weight * (counts / counts.sum())
        return row


def ngram(tokens: ArrayLike, vocabulary: int, *, order: int, weight: float = 0.9) -> Ngram:
    """Count the grams of a text ``[N]`` of tokens 0 to V - 1, V the `vocabulary` and N >= `order` >= 1.

    - ``weight``: what every order keeps for itself, from 0 (uniform) to 1 (counts alone).
    """
    n, v = whole_number("order", order), whole_number("vocabulary", vocabulary)
    if not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise SettingError(f"weight is {weight!r}", limit="must lie in [0, 1]", remedy="use 0.9")
    text = np.asarray(tokens)
    if text.ndim != 1 or text.size < n or not np.issubdtype(text.dtype, np.integer):
        raise TextError(
            f"the text has shape {text.shape} and type {text.dtype}",
            limit=f"must be {n} whole numbers or more, a gram",
            remedy="pass the tokens of a longer text",
        )
    if text.min() < 0 or text.max() >= v:
        raise TextError(
            f"tokens go from {text.min()} to {text.max()}",
            limit=f"the vocabulary is 0 to {v - 1}",
            remedy="give the vocabulary of the tokenizer",
        )
    return Ngram(n, v, float(weight), _followers(text.tolist(), n))


def _followers(text: list[int], order: int) -> dict[Context, tuple[Ints, Ints]]:
    followers: dict[Context, tuple[Ints, Ints]] = {}
    for size in range(order):
        grams = Counter(zip(*(text[i:] for i in range(size + 1)), strict=False))
        for context, group in groupby(sorted(grams), key=lambda gram: gram[:-1]):
            these = list(group)
            followers[context] = np.array([gram[-1] for gram in these]), np.array([grams[gram] for gram in these])
    return followers


class Automaton(NamedTuple):
    """Target and draft over the contexts of both.

    - ``target``, ``draft``, ``[S, V]``: pmfs after each context.
    - ``following``, ``[S, V]``: the context after each context and token.
    - ``initial``, ``[S]``: pmf of the context before a text: that at a random place of the target's text.
    """

    target: Floats
    draft: Floats
    following: States
    initial: Floats


def contexts_of(target: Ngram, draft: Ngram) -> list[Context]:
    """The contexts that either text has, the shorter first; state s of the automaton is number s."""
    contexts = sorted(target.followers.keys() | draft.followers.keys(), key=lambda c: (len(c), c))
    if len(contexts) > MOST_CONTEXTS:
        raise SettingError(
            f"the models have {len(contexts)} contexts", limit=f"at most {MOST_CONTEXTS}", remedy="lower the order"
        )
    return contexts


def automaton(target: Ngram, draft: Ngram) -> Automaton:
    """Both models as one automaton: its state is the longest suffix of the tokens so far that either text has."""
    if draft.order > target.order:
        raise SettingError(
            f"the draft has order {draft.order}", limit=f"at most {target.order}, the target's", remedy="lower it"
        )
    if draft.tokens != target.tokens:
        raise ShapeError(
            f"vocabularies are {target.tokens} and {draft.tokens}", limit="must be equal", remedy="use one tokenizer"
        )
    contexts = contexts_of(target, draft)
    p, q = (np.stack([model.pmf(context) for context in contexts]) for model in (target, draft))
    return Automaton(p, q, _following(contexts, target.tokens), _initial(target, contexts))


def _initial(target: Ngram, contexts: list[Context]) -> Floats:
    """How often the target's text has each whole context, as shares."""
    none = np.zeros(1)
    whole = (target.followers.get(c, (none, none))[1] if len(c) == target.order - 1 else none for c in contexts)
    counts = np.array([each.sum() for each in whole], dtype=np.float64)
    return np.asarray(counts / counts.sum())


def _following(contexts: list[Context], tokens: int) -> States:
    """The longest end in `contexts` of each context and token; they hold prefixes and suffixes of their members."""
    state = {context: s for s, context in enumerate(contexts)}
    following = np.zeros((len(contexts), tokens), dtype=np.int32)
    for _, level in groupby(contexts, key=len):
        these = [context for context in level if context]
        for context in these:  # first all that are reached from the level above, whose rows are then complete
            following[state[context[:-1]], context[-1]] = state[context]
        for context in these:
            following[state[context]] = following[state[context[1:]]]
    return following


# Pairs of models of real text, byte by byte: from texts, or from a recipe in a task's parameters
#
# A recipe names a module of the standard library, whose source every Python has, the built-in prompts, or a file;
# sources differ between versions of Python, so a recipe holds the hash of its text and any other text is refused.


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
    - ``weight``, ``draft_weight``: what every order keeps for itself (:func:`simulations.models.ngram.ngram`);
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
    if (digest := _hash(text)) != parameters["sha256"]:
        raise TextError(
            f"the text of {name} has the sha256 {digest[:12]}...",
            limit=f"the task was made with {str(parameters['sha256'])[:12]}...; Python's sources differ by version",
            remedy="describe the task anew, or run it where that text is",
        )
    return text


@cache_by_text(4, only=(*_TEXTS, *_MODELS))
def ngram_pair_of(parameters: Mapping[str, Any]) -> Automaton:
    """The pair a task asks for, as :func:`ngram_pair` makes it; kept for the next time.

    Read are a recipe of the target's text, ``order``, ``draft_order``, ``weight``, ``draft_weight``, and as ``draft`` a
    recipe of another text for the draft.
    """
    if missing := [name for name in ("order", "draft_order") if name not in parameters]:
        raise SettingError(f"no {missing[0]} is given", limit="the models have an order each", remedy="state it")
    settings = {name: parameters[name] for name in _MODELS if name in parameters}
    other = text_of(parameters["draft"]) if "draft" in parameters else None
    return ngram_pair(text_of(parameters), other, **settings)


def _source(module: str) -> str:
    """The source of a module of the standard library, which is not run for it; or the built-in prompts."""
    if module == PROMPTS_TEXT:
        return "\n".join(prompt.text for prompt in read_prompts(PROMPTS))
    source = None
    if str(module).split(".")[0] in sys.stdlib_module_names:
        try:
            spec = importlib.util.find_spec(module)
            source = getattr(spec and spec.loader, "get_source", lambda _: None)(module)
        except (ImportError, ValueError):
            source = None
    if not source:
        raise TextError(
            f"there is no source of {module!r}",
            limit="must be a module of the standard library that is a file",
            remedy=f"use one like 'argparse', or {PROMPTS_TEXT!r}",
        )
    return str(source)


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
