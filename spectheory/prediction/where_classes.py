"""Classes of tokens: by what they stand for, or where that is not known by how often they occur."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spectheory.trace.strings import TokenStrings

NEWLINE, SPACE, NUMBER, START, INSIDE, PUNCTUATION, PART, SPECIAL = (
    "line break",
    "space",
    "number",
    "word start",
    "word continuation",
    "punctuation",
    "part of a character",
    "special token",
)
FREQUENT = ((10, "the 10 most frequent ids"), (100, "ids of places 11 to 100"), (None, "all other ids"))
"""Classes without strings: by the place of an id in the order of its occurrences in the trace."""


def token_class(text: str, before: str = "") -> str:
    r"""The class of a token after another one, by its first letter that is no white space.

    A letter or low line starts a word if white space or another kind of sign stands before it.

    Examples
    --------
    >>> [token_class(" def"), token_class("ine", " def"), token_class("x", "("), token_class("\n   ")]
    ['word start', 'word continuation', 'word start', 'line break']
    """
    rest = text.strip()
    if not rest:
        return NEWLINE if "\n" in text else SPACE
    first = rest[0]
    if first == "\ufffd":
        return PART
    if first.isdigit():
        return NUMBER
    if not _of_word(first):
        return PUNCTUATION
    return INSIDE if text[0] == first and before and _of_word(before[-1]) else START


def classes_by_string(
    tokens: NDArray[np.int64], firsts: NDArray[np.int64], strings: TokenStrings
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The class of each token ``[N]`` as a place in the names that follow; texts begin at the rows `firsts`."""
    begins, names = set(firsts.tolist()), []
    for row, token in enumerate(tokens.tolist()):
        before = "" if row in begins else strings[int(tokens[row - 1])]
        names.append(SPECIAL if token in strings.special else token_class(strings[token], before))
    return _numbered(names, (NEWLINE, SPACE, NUMBER, START, INSIDE, PUNCTUATION, PART, SPECIAL))


def classes_by_frequency(tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The same where no strings are known: by how often an id occurs, ties by id."""
    ids, which, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    place = np.empty(len(ids), dtype=np.int64)
    place[np.lexsort((ids, -counts))] = np.arange(len(ids))
    names = [next(name for most, name in FREQUENT if most is None or p < most) for p in place.tolist()]
    of_id, known = _numbered(names, tuple(name for _, name in FREQUENT))
    return of_id[which], known


def _of_word(letter: str) -> bool:
    return letter.isalpha() or letter == "_"


def _numbered(names: Sequence[str], order: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Places of names among those of `order` that occur."""
    known = tuple(name for name in order if name in set(names))
    place = {name: i for i, name in enumerate(known)}
    return np.array([place[name] for name in names], dtype=np.int64), known
