"""Decoders on a small pair: what they output and record, their caches, and what they refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree
from spectheory.errors import LogitsError, ModelError, SettingError, TextError
from spectheory.measure import Model, ModelPair, load_pair
from spectheory.measure.decoders import Decoded, HeaviestTree, Method, decode
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


PROMPTS = [torch.tensor(ids) for ids in ([5, 9, 11], [7], [3, 4, 3, 4, 3, 8, 2, 60, 33])]
METHODS = [
    Method("token", Chain(4)),
    Method("block", Chain(4)),
    Method("race", KAry((2, 2, 1))),
    Method("race", Tree.from_paths([(1,), (2,), (2, 1), (4,)])),
    Method("poisson", KAry((3, 1))),
    Method("recursive", KAry((2, 1, 1))),
    Method("recursive-distinct", Batch(3)),
    Method("topk", KAry((3, 2))),
    Method("independent", Chain(2)),
    Method("argmax", Chain(3)),
    Method("lookup", Chain(5)),
    Method("toptree", HeaviestTree(8)),
    Method("plain"),
]
MATCHED = [Method("topk", KAry((3, 2))), Method("argmax", Chain(3)), Method("lookup", Chain(5))]


def texts_of(decoded: Sequence[Decoded]) -> list[list[int]]:
    return [one.output_ids.tolist() for one in decoded]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_greedy_texts_are_the_targets(method: Method, tiny_pair: ModelPair) -> None:
    """At temperature 0 every method gives the greedy text; the closest two logits of it are far beyond rounding."""
    options: dict[str, Any] = {"tokens": 20, "sampling": Sampling(0), "stop_at_end": False, "batch": 3}
    for prompt, one in zip(PROMPTS, decode(tiny_pair, PROMPTS, method, **options), strict=True):
        with torch.inference_mode():
            logits = tiny_pair.target.network(torch.cat([prompt, one.output_ids])[None]).logits[0, len(prompt) - 1 : -1]
        best = logits.topk(2).values
        assert float((best[:, 0] - best[:, 1]).min()) > 1e-3
        assert torch.equal(logits.argmax(-1), one.output_ids)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_calls_add_up(method: Method, tiny_pair: ModelPair) -> None:
    """Tokens are those of the calls, one target pass each (and one before for the prompt, one to see it is causal)."""
    widths: list[int] = []
    hook = tiny_pair.target.network.register_forward_pre_hook(
        lambda _, __, options: widths.append(options["input_ids"].shape[1]), with_kwargs=True
    )
    try:
        (one,) = decode(tiny_pair, PROMPTS[:1], method, tokens=40, seed=4)
    finally:
        hook.remove()
    assert sum(call.tokens for call in one.calls) == len(one.output_ids) <= 40
    assert widths[2:] == [call.drafted + 1 for call in one.calls]
    assert all(call.accepted <= call.depth <= call.drafted for call in one.calls)
    for call in one.calls:
        assert (call.last == "plain") == (call.drafted == 0)
        assert call.last != "bonus" or call.accepted > 0
        assert call.last != "recovered" or call.accepted < call.depth
        assert 0 < call.target_seconds <= call.seconds - call.draft_seconds
        assert (call.draft_seconds > 0) == (method.uses_draft and call.drafted > 0)
    assert one.seconds >= one.prefill_seconds > 0
    assert one.overhead > 0
    assert one.remarks == ()


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_batch_is_its_texts(method: Method, tiny_pair: ModelPair) -> None:
    """Three prompts of unequal length and progress, one of which ends early: the same texts and calls as one by one."""
    options: dict[str, Any] = {"tokens": 30, "seed": 5, "sampling": Sampling(1.2)}
    together = decode(tiny_pair, PROMPTS, method, batch=3, chunk=2, **options)
    alone = decode(tiny_pair, PROMPTS, method, **options)
    assert texts_of(together) == texts_of(alone)
    for one, other in zip(together, alone, strict=True):
        assert [(c.drafted, c.accepted, c.last) for c in one.calls] == [
            (c.drafted, c.accepted, c.last) for c in other.calls
        ]


@pytest.mark.parametrize("plain", ["race", "plain"])
def test_texts_do_not_depend_on_the_draft(plain: str, tiny_pair: ModelPair) -> None:
    """Drafter invariance: races with any shape, number of drafts and draft give the text of plain race sampling.

    Rules that match a sampled token share this, as the draft draws nothing: the text of plain sampling.
    """
    itself = dataclasses.replace(tiny_pair, draft=tiny_pair.target)
    options: dict[str, Any] = {"tokens": 40, "seed": 6}
    expected = texts_of(decode(tiny_pair, PROMPTS, Method(plain), **options))
    shapes: list[Shape] = [Chain(1), Chain(5), KAry((2, 2)), Tree.from_paths([(2,), (3,), (3, 2)])]
    methods = [Method("race", shape) for shape in shapes] if plain == "race" else MATCHED
    for method in methods:
        for pair in (tiny_pair, itself):
            assert texts_of(decode(pair, PROMPTS, method, batch=3, **options)) == expected
    other = texts_of(decode(tiny_pair, PROMPTS, Method(plain), tokens=40, seed=7))
    assert other != expected


def test_a_draft_that_is_the_target_is_always_right(tiny_pair: ModelPair) -> None:
    itself = dataclasses.replace(tiny_pair, draft=tiny_pair.target)
    for rule in ("token", "block", "race", "recursive"):
        for one in decode(itself, PROMPTS, Method(rule, Chain(4)), tokens=30, stop_at_end=False):
            assert [call.accepted for call in one.calls] == [4] * 6
            assert {call.last for call in one.calls} == {"bonus"}


def test_texts_end_with_their_first_end(tiny_pair: ModelPair) -> None:
    """A draft that is the end of the text, accepted, ends it without a further token."""
    seen = set()
    for method in (Method("token", Chain(6)), Method("topk", KAry((3, 2, 2)))):
        for one in decode(tiny_pair, PROMPTS * 5, method, tokens=60, sampling=Sampling(1.5), batch=15):
            ids = one.output_ids.tolist()
            assert 0 not in ids[:-1]
            assert len(ids) == 60 or ids[-1] == 0
            assert sum(call.tokens for call in one.calls) == len(ids)
            assert all(call.last != "end" for call in one.calls[:-1])
            seen.add(one.calls[-1].last)
    assert "end" in seen


class _Wrapped(torch.nn.Module):
    """A network whose answers are changed on their way out."""

    def __init__(self, network: Any, change: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.network, self.change, self.dtype = network, change, network.dtype
        self.generation_config = network.generation_config

    def get_input_embeddings(self) -> Any:
        return self.network.get_input_embeddings()

    def forward(self, input_ids: Tensor, **options: Any) -> Any:
        return self.change(self.network(input_ids=input_ids, **options), input_ids)


def wrapped(model: Model, change: Callable[[Any, Tensor], Any]) -> Model:
    return dataclasses.replace(model, network=_Wrapped(model.network, change), name="stub")


@pytest.mark.parametrize("method", [Method("race", KAry((2, 2))), Method("block", Chain(3))], ids=str)
def test_models_without_a_cache_work_and_say_so(method: Method, tiny_pair: ModelPair) -> None:
    uncached = ModelPair(
        *(
            wrapped(model, lambda out, _: SimpleNamespace(logits=out.logits))
            for model in (tiny_pair.target, tiny_pair.draft)
        ),
        tiny_pair.tokenizer,
        tiny_pair.vocabulary,
    )
    for batch in (1, 3):
        decoded = decode(uncached, PROMPTS, method, tokens=30, batch=batch)
        assert texts_of(decoded) == texts_of(decode(tiny_pair, PROMPTS, method, tokens=30))
        assert decoded[0].remarks == ("stub has no cache: every call reads its text again",) * 2


def test_padded_vocabularies(tiny_folders: tuple[Path, Path], save_model: Callable[..., Path], tmp_path: Path) -> None:
    pair = load_pair(tiny_folders[0], save_model(tmp_path / "padded", outputs=80, like=tiny_folders[0]), device="cpu")
    plain, drafted = (decode(pair, PROMPTS, Method("race", shape), tokens=40) for shape in (None, Chain(3)))
    assert texts_of(plain) == texts_of(drafted)


def out_of_memory(output: Any, ids: Tensor) -> Any:
    if ids.shape[1] > 4 or ids.shape[0] > 2:
        raise torch.OutOfMemoryError("no memory")
    return output


def looks_ahead(output: Any, ids: Tensor) -> Any:
    output.logits = output.logits + ids[:, -1:, None] * torch.arange(output.logits.shape[-1])
    return output


def test_models_that_cannot_be_used(tiny_pair: ModelPair) -> None:
    ahead = dataclasses.replace(tiny_pair, draft=wrapped(tiny_pair.draft, looks_ahead))
    with pytest.raises(ModelError, match=r"'stub' is not causal.*use a causal language model"):
        decode(ahead, PROMPTS, Method("token", Chain(2)), tokens=5)
    decode(ahead, PROMPTS, Method("lookup", Chain(2)), tokens=5)  # does not use the draft
    small = dataclasses.replace(tiny_pair, target=wrapped(tiny_pair.target, out_of_memory))
    with pytest.raises(ModelError, match=r"ran out of memory on 1 texts, 9 tokens.*use chunk=4 or fewer drafts"):
        decode(small, PROMPTS[2:], Method("plain"), tokens=5)
    with pytest.raises(ModelError, match=r"ran out of memory on 3 texts.*use batch=1"):
        decode(small, PROMPTS, Method("plain"), tokens=5, batch=3)
    broken = wrapped(
        tiny_pair.target, lambda out, ids: (out.logits.fill_(torch.nan), out)[1] if ids.shape[0] == 1 else out
    )
    with pytest.raises(LogitsError, match=r"^stub: logits of row 0 contain nan"):
        decode(dataclasses.replace(tiny_pair, target=broken), PROMPTS, Method("plain"), tokens=5)


@pytest.mark.parametrize(
    ("rule", "shape", "line"),
    [
        ("kseq", Chain(2), "rule 'kseq' has no decoder: there are token, block"),
        ("block", KAry((2,)), "block is asked for k-ary 2: it judges one chain"),
        ("lookup", Batch(2), "lookup is asked for batch k=2: it judges one chain"),
        ("toptree", Chain(2), r"toptree is asked for chain k=2: .*use HeaviestTree\(nodes\)"),
        ("race", HeaviestTree(2), "race is asked for HeaviestTree"),
        ("plain", Chain(2), "plain is asked for chain k=2: it drafts nothing"),
        ("recursive", Tree.from_paths([(2,)]), "recursive is asked for tree 2: .*ranks 1, 2"),
    ],
)
def test_methods_that_do_not_exist(rule: str, shape: Any, line: str) -> None:
    with pytest.raises(SettingError, match=line):
        Method(rule, shape)


def test_bad_settings(tiny_pair: ModelPair) -> None:
    for name in ("tokens", "batch", "chunk"):
        with pytest.raises(SettingError, match=f"{name} is 0: must be >= 1"):
            decode(tiny_pair, PROMPTS, Method("plain"), **{"tokens": 5, name: 0})
    with pytest.raises(SettingError, match="greedy is asked for at temperature 1"):
        decode(tiny_pair, PROMPTS, Method("greedy", Chain(2)), tokens=5)
    for name, value in (("tokens", 2.5), ("seed", -1), ("seed", 1.5)):
        with pytest.raises(SettingError, match=f"{name} is {value}: must be "):
            decode(tiny_pair, PROMPTS, Method("plain"), **{"tokens": 5, name: value})
    for shape in (Chain(10**6), KAry((316, 316))):
        with pytest.raises(SettingError, match=r"a call drafts \d+ tokens: at most 16384"):
            decode(tiny_pair, PROMPTS, Method("race", shape), tokens=5)
    with pytest.raises(SettingError, match="nodes is 0"):
        HeaviestTree(0)
    for prompts, line in (
        ([], "there is no prompt"),
        ([torch.tensor([], dtype=torch.int64)], r"prompt 1 has shape \(0,\)"),
        ([torch.tensor([[1, 2]])], r"prompt 1 has shape \(1, 2\)"),
        ([torch.tensor([1.5])], r"prompt 1 has shape \(1,\), torch.float32: needs a tensor \[n\] of token ids"),
        ([[1, 2]], "prompt 1 has type list"),
        (torch.tensor([1, 2]), r"prompt 1 has shape \(\)"),
        ([PROMPTS[0], torch.tensor([1, 64])], r"prompt 2 has token ids 1\.\.64: the pair has ids 0\.\.63"),
        ([torch.ones(127, dtype=torch.int64)], "prompt '1' has 127 tokens and 5 follow: the models take 128"),
        ([torch.ones(128, dtype=torch.int64)], "shorten the prompt"),
    ):
        with pytest.raises(TextError, match=line):
            decode(tiny_pair, prompts, Method("plain"), tokens=5)
    (full,) = decode(tiny_pair, [torch.ones(100, dtype=torch.int64)], Method("token", Chain(8)), tokens=28)
    assert len(full.output_ids) == 28 or full.output_ids[-1] == 0
