"""What a reader keeps of a call: as if every text were read anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from spectheory.distributions import Sampling
from spectheory.measure import ModelPair
from spectheory.measure.decoders.readers import KeptReader, RereadingReader
from spectheory.measure.decoders.tree import ROOT, DraftTree

ROUNDING = 1e-5
"""Two passes of different widths give pmfs that differ by so little in float32: some 30 roundings of 6e-8 each."""
LAST_CALL = (12, 5, 8)
"""After this call a text leaves the batch."""


def grown(tree: DraftTree, parents: Sequence[int], rng: np.random.Generator) -> list[int]:
    return [tree.add(parent, 1, int(rng.integers(1, 64))) for parent in parents]


def test_kept_slots_are_a_fresh_reading(tiny_pair: ModelPair) -> None:
    """Random trees, several passes a call, random accepted paths, texts that leave: as if all were read again."""
    rng = np.random.default_rng(8)
    texts = [[int(i) for i in rng.integers(1, 64, size)] for size in (9, 2, 5)]
    readers = [kind(tiny_pair.target, 64, Sampling(), texts) for kind in (KeptReader, RereadingReader)]
    for reader in readers:
        reader.prefill(4)
    rows = [0, 1, 2]
    for call in range(max(LAST_CALL)):
        trees = {row: DraftTree() for row in rows}
        first = {row: grown(tree, [ROOT] * 2 + list(rng.integers(-1, 2, 3)), rng) for row, tree in trees.items()}
        compare(readers, {row: (trees[row], [ROOT, *first[row][: 2 + row]]) for row in rows})
        second = {row: grown(tree, list(rng.integers(0, 2 + row, row)), rng) for row, tree in trees.items()}
        compare(readers, {row: (trees[row], second[row]) for row in rows if row != call % 3 and second[row]})
        accepted = {row: tree.path(int(rng.integers(-1, len(tree.tokens)))) for row, tree in trees.items()}
        for row, path in accepted.items():
            texts[row] += [trees[row].tokens[node] for node in path] + [int(rng.integers(1, 64))]
        for reader in readers:
            reader.settle(accepted)
            reader.drop([row for row in rows if call == LAST_CALL[row]])
        rows = [row for row in rows if call < LAST_CALL[row]]


def compare(readers: Sequence[KeptReader | RereadingReader], requests: dict[int, tuple[DraftTree, list[int]]]) -> None:
    if not requests:
        return
    kept, fresh = (reader.read(requests) for reader in readers)
    for row, (_, nodes) in requests.items():
        assert len(kept[row]) == len(fresh[row]) == len(nodes)
        for i in range(len(nodes)):
            np.testing.assert_allclose(kept[row][i], fresh[row][i], rtol=0, atol=ROUNDING)


def test_gaps_between_slots_are_closed(tiny_pair: ModelPair) -> None:
    """The texts accept three drafts in turn: few more slots are held than the longer one needs; one goes on."""
    texts = [[5, 9, 11], [7]]
    reader = KeptReader(tiny_pair.target, 64, Sampling(), texts)
    reader.prefill(8)
    for call in range(30):
        tree = DraftTree()
        nodes = grown(tree, [-1, 0, 1], np.random.default_rng(call))
        lucky = call % 2
        reader.read({row: (tree, [ROOT, *nodes]) for row in (0, 1)})
        texts[lucky] += [*tree.tokens, 1]
        texts[1 - lucky] += [1]
        reader.settle({lucky: nodes})
        assert reader.cache.get_seq_length() <= 1.25 * max(map(len, texts)) + 32
    reader.drop([1])
    tree = DraftTree()
    (rows,) = reader.read({0: (tree, [ROOT, *grown(tree, [-1, 0], np.random.default_rng(99))])}).values()
    with torch.inference_mode():
        fresh = tiny_pair.target.network(torch.tensor([texts[0] + tree.tokens])).logits[0, -3:].double().softmax(-1)
    np.testing.assert_allclose([rows[i] for i in range(3)], fresh.numpy(), rtol=0, atol=ROUNDING)
