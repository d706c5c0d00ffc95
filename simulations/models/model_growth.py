"""Continuations by a language model, and its best draft trees at places in them (§5).

The texts of a batch are read together with one cache. A row sees its prompt, its text up to the start, and the path to
the current prefix of its tree. The tree is grown best-first: the heaviest prefix is taken, and its weight is shared
among its children by the model's pmf after it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws import Floats

Tokens = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Reader:
    """A causal model that has read a prompt in each row, padded on the left.

    - ``network``: takes ``attention_mask [rows, 1, m, slots]`` of bool and ``position_ids``, and returns its cache.
    - ``vocabulary``: logits are cut to the token ids below this.
    - ``prompts``: token ids of each row, at least one.

    - ``first``, ``[rows, V]``: the pmf after the prompt, float64.
    - ``lengths``, ``[rows]``: tokens of each prompt.
    - ``filled``, ``[rows, slots]``: which slots of the cache hold tokens of a row's text; the slots of a tree do not
      count.
    """

    def __init__(self, network: Any, vocabulary: int, prompts: Sequence[Sequence[int]]) -> None:
        self._network, self._vocabulary = network, vocabulary
        self._cache: Any = None
        self.lengths = np.array([len(prompt) for prompt in prompts])
        width = int(self.lengths.max())
        padding = (width - self.lengths)[:, None]
        tokens = np.zeros((len(prompts), width), np.int64)
        for row, prompt in zip(tokens, prompts, strict=True):
            row[width - len(prompt) :] = prompt
        slots = np.arange(width)
        self.filled = slots >= padding
        # Padding sees itself, as a row that sees nothing has no pmf.
        visible = np.tril(np.ones((width, width), dtype=bool)) & self.filled[:, None, :] | np.eye(width, dtype=bool)
        self.first = self._read(tokens, np.maximum(slots - padding, 0), visible)

    def go_on(self, tokens: Tokens) -> Floats:
        """Read the next token ``[rows]`` of each text; the pmfs ``[rows, V]`` after it."""
        places = self.filled.sum(axis=1)
        self.filled = np.hstack([self.filled, np.ones((len(tokens), 1), dtype=bool)])
        return self._read(tokens[:, None], places[:, None], self.filled[:, None, :])

    def branch(self, tokens: Tokens, places: Tokens, visible: Bools) -> Floats:
        """Read one token ``[rows]`` at a place of its own; ``visible [rows, slots]`` is what it sees, itself too."""
        return self._read(tokens[:, None], places[:, None], visible[:, None, :])

    def select(self, rows: Tokens) -> Reader:
        """A reader of some of the texts, each as often as it is named, with a cache of its own."""
        import torch

        other = copy.copy(self)
        other._cache = copy.deepcopy(self._cache)
        other._cache.batch_select_indices(torch.from_numpy(rows))
        other.first, other.lengths, other.filled = self.first[rows], self.lengths[rows], self.filled[rows]
        return other

    def _read(self, tokens: Tokens, places: Tokens, visible: Bools) -> Floats:
        import torch

        with torch.inference_mode():
            output = self._network(
                input_ids=torch.from_numpy(tokens),
                position_ids=torch.from_numpy(places),
                attention_mask=torch.from_numpy(visible[:, None]),
                past_key_values=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
            self._cache = output.past_key_values
            return torch.softmax(output.logits[:, -1, : self._vocabulary].double(), dim=-1).numpy()


class Texts(NamedTuple):
    """What was sampled: ``tokens [rows, n]`` and the pmf of each, ``pmfs [rows, n, V]``."""

    tokens: Tokens
    pmfs: Floats

    @property
    def surprisals(self) -> Floats:
        """-log p of each token, nats, ``[rows, n]``."""
        return -np.log(np.take_along_axis(self.pmfs, self.tokens[..., None], axis=-1)[..., 0])


def sample(reader: Reader, uniforms: Floats) -> Texts:
    """Go on with each text by as many tokens as it has uniforms ``[rows, n]``, by inversion; the last is not read."""
    pmfs, tokens = [reader.first], [inverted(reader.first, uniforms[:, 0])]
    for uniform in uniforms.T[1:]:
        pmfs.append(reader.go_on(tokens[-1]))
        tokens.append(inverted(pmfs[-1], uniform))
    return Texts(np.stack(tokens, axis=1), np.stack(pmfs, axis=1))


def inverted(pmfs: Floats, uniforms: Floats) -> Tokens:
    """The token ``[rows]`` of each uniform: the first whose cumulative probability exceeds it."""
    cumulative = np.cumsum(pmfs, axis=-1)
    below = cumulative <= uniforms[:, None] * cumulative[:, -1:]
    return np.minimum(below.sum(axis=-1), pmfs.shape[-1] - 1)


class Trees(NamedTuple):
    """Trees ``[rows, capacity]``, nodes in the order in which they were taken.

    ``weights [models, rows, capacity]``: probability of each prefix, under the model that chose first. ``parents``: the
    number of the node above, -1 the root. ``tokens``: the last token of each prefix.
    """

    weights: Floats
    parents: Tokens
    tokens: Tokens


def grow(readers: Sequence[Reader], roots: Sequence[Floats], starts: Tokens, capacity: int) -> Trees:
    """Grow in each row the best tree after the first ``starts [rows]`` tokens of its text: best-first, one by one.

    - ``readers``: have read the same texts; their caches are used up. The first chooses: of equal prefixes the child of
      the parent taken first, then the lowest token. All of them weigh the nodes.
    - ``roots``: each model's pmfs ``[rows, V]`` at the starts.
    """
    reader, (rows, tokens) = readers[0], roots[0].shape
    row, roots_at = np.arange(rows), reader.lengths + starts
    before = reader.filled & (np.cumsum(reader.filled, axis=1) <= roots_at[:, None])
    waiting = np.full((len(readers), rows, capacity, tokens), -1.0)
    waiting[:, :, 0] = roots
    ways, depths = np.zeros((rows, capacity, capacity), dtype=bool), np.zeros((rows, capacity), np.int64)
    taken, parents = np.empty((len(readers), rows, capacity)), np.empty((rows, capacity), np.int64)
    chosen = np.empty_like(parents)
    for number in range(1, capacity + 1):
        parent, token = np.divmod(waiting[0].reshape(rows, -1).argmax(axis=1), tokens)
        taken[:, :, number - 1] = waiting[:, row, parent, token]
        parents[:, number - 1], chosen[:, number - 1] = parent - 1, token
        waiting[0, row, parent, token] = -1.0
        if number == capacity:
            break
        ways[:, number], depths[:, number] = ways[row, parent], depths[row, parent] + 1
        ways[:, number, number - 1] = True
        visible = np.hstack([before, ways[:, number, :number]])
        for one, weight, below in zip(readers, taken, waiting, strict=True):
            pmfs = one.branch(token, roots_at + depths[:, number] - 1, visible)
            below[:, number] = weight[:, number - 1, None] * pmfs
    return Trees(taken, parents, chosen)
