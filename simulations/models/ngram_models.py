"""Sparse n-gram models of texts, and a pair of them as an automaton over the contexts seen.

A model of order n looks at n - 1 tokens. Every order gives its own estimate a weight a and the rest to the next lower
one, down to the uniform pmf,

    p(y | c) = a count(c y)/count(c .) + (1 - a) p(y | c without its first token),

and a context that is not in the text backs off at once. Models of one text with different orders or weights, or of two
texts, differ as a real target and draft do: much in few contexts, little in most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simulations.models.positions import whole_number
from spectheory.errors import SettingError, ShapeError, TextError

Floats = NDArray[np.float64]
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
        for context, found in groupby(sorted(grams), key=lambda gram: gram[:-1]):
            these = list(found)
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
