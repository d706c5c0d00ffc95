"""Markov chains of real text: bigram models, held sparsely, whose rows may be dense by interpolation.

A model counts the pairs of neighbouring tokens in a text; its transition pmf mixes three estimates,

    p(y | x) = a c(x, y)/c(x) + b c(y)/N + c/V        (a + b + c = 1).

Two models of one text with other weights, or of two texts, are a target and a draft that differ as real ones do: much
in few states, little in most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spectheory.distributions import validate_pmf
from spectheory.errors import SettingError, ShapeError, TextError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BYTES = 256
"""Tokens of a text read byte by byte."""


@dataclass(frozen=True)
class Bigram:
    """A bigram model.

    Attributes
    ----------
    first, second, count : array ``[pairs]``
        The pairs that occur, by first and then second token, and how often.
    unigram : array ``[V]``
        Occurrences of each token.
    weights : tuple of three floats
        Of the pairs, of the single tokens and of the uniform pmf; the weight of the pairs goes to the single tokens
        after a token that is never followed.
    """

    first: Ints
    second: Ints
    count: Ints
    unigram: Ints
    weights: tuple[float, float, float]

    @property
    def tokens(self) -> int:
        """V, the size of the vocabulary."""
        return self.unigram.size

    def initial(self) -> Floats:
        """Pmf ``[V]`` of a token of the text."""
        return self.unigram / self.unigram.sum()

    def pmf(self, last: int) -> Floats:
        """Pmf ``[V]`` of the token after `last`.

        Examples
        --------
        >>> bigram([0, 1, 0, 0], 2, weights=(1, 0, 0)).pmf(0)
        array([0.5, 0.5])
        """
        begin, end = np.searchsorted(self.first, [last, last + 1])
        pairs, singles, uniform = self.weights
        seen = self.count[begin:end].sum()
        row = (singles if seen else pairs + singles) * self.initial() + uniform / self.tokens
        if seen:
            row[self.second[begin:end]] += pairs * (self.count[begin:end] / seen)
        return row

    def matrix(self) -> Floats:
        """The transition matrix ``[V, V]``, row x the pmf of the token after x."""
        return np.stack([self.pmf(x) for x in range(self.tokens)])


def byte_tokens(text: str) -> Ints:
    """The bytes of a text in UTF-8.

    Examples
    --------
    >>> byte_tokens("def")
    array([100, 101, 102])
    """
    return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)


def bigram(tokens: ArrayLike, vocabulary: int, *, weights: tuple[float, float, float] = (0.9, 0.09, 0.01)) -> Bigram:
    """Count the pairs of a text.

    Parameters
    ----------
    tokens : array ``[N]`` of int
        The text: bytes (:func:`byte_tokens`), or word pieces of any tokenizer.
    vocabulary : int
        V; tokens are 0 to V - 1.
    weights : tuple of three floats
        Of pairs, single tokens and uniform; a pmf.

    Raises
    ------
    TextError
        If the text has fewer than two tokens, or one outside the vocabulary.
    PmfError, ShapeError, SettingError
        If the weights are no pmf of three, or the vocabulary is empty.

    Examples
    --------
    >>> bigram(byte_tokens("abab"), BYTES).pmf(ord("a"))[ord("b")].round(3)
    np.float64(0.945)
    """
    if vocabulary < 1:
        raise SettingError(f"vocabulary is {vocabulary}", limit="must be >= 1", remedy="bytes have 256")
    if len(weights) != 3:
        raise ShapeError(f"weights are {len(weights)}", limit="must be three", remedy="pairs, single tokens, uniform")
    mix = validate_pmf(weights, "weights")
    text = np.asarray(tokens)
    if text.ndim != 1 or text.size < 2 or not np.issubdtype(text.dtype, np.integer):
        raise TextError(
            f"tokens have shape {text.shape} and type {text.dtype}",
            limit="needs two whole numbers or more",
            remedy="pass the token ids of a text",
        )
    if text.min() < 0 or text.max() >= vocabulary:
        raise TextError(
            f"tokens go from {text.min()} to {text.max()}",
            limit=f"the vocabulary is 0 to {vocabulary - 1}",
            remedy="give the vocabulary of the tokenizer",
        )
    pairs, count = np.unique(text[:-1].astype(np.int64) * vocabulary + text[1:], return_counts=True)
    unigram = np.bincount(text, minlength=vocabulary).astype(np.int64)
    weighted = (float(mix[0]), float(mix[1]), float(mix[2]))
    return Bigram(pairs // vocabulary, pairs % vocabulary, count.astype(np.int64), unigram, weighted)
