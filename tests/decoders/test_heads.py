"""Decoders with draft heads on tiny models: the hidden states they read, their passes, and bad input."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Batch, Chain, KAry, Tree
from spectheory.errors import SettingError, SpectheoryError, TextError
from spectheory.measure import ModelPair
from spectheory.measure.decoders import HeaviestTree, Method, decode
from spectheory.measure.decoders.readers import _pmfs_of
from spectheory.measure.decoders.tree import ROOT, DraftTree, Floats, Source
from spectheory.measure.decoders.verifiers import Verdict, _Pmfs
from spectheory.measure.heads.base import HiddenStates
from tests.toy_heads import TOYS, ToyHead, ToyParallelHead, with_head

PROMPTS = [torch.tensor(ids) for ids in ([5, 9, 11], [7, 8], [3, 4, 3, 4, 3, 8, 2, 60, 33])]
SHAPES = [
    Method("token", Chain(4)),
    Method("block", Chain(4)),
    Method("race", KAry((2, 2, 1))),
    Method("poisson", KAry((3, 1))),
    Method("recursive", KAry((2, 1, 1))),
    Method("recursive-distinct", Batch(3)),
    Method("topk", Tree.from_paths([(1,), (2,), (2, 1), (4,)])),
    Method("argmax", Chain(3)),
    Method("toptree", HeaviestTree(8, 3)),
]


def texts_of(pair: ModelPair, method: Method, **options: Any) -> list[list[int]]:
    return [one.output_ids.tolist() for one in decode(pair, PROMPTS, method, **options)]


GREEDY: dict[str, Any] = {"tokens": 20, "sampling": Sampling(0), "stop_at_end": False}
DRAWN: dict[str, Any] = {"tokens": 40, "seed": 6}


@pytest.fixture(scope="module")
def greedy(tiny_pair: ModelPair) -> list[list[int]]:
    """The target's texts at temperature 0."""
    return texts_of(tiny_pair, Method("plain"), **GREEDY)


@pytest.fixture(scope="module")
def raced(tiny_pair: ModelPair) -> list[list[int]]:
    """The texts of plain race sampling."""
    return texts_of(tiny_pair, Method("race"), **DRAWN)


@pytest.mark.parametrize("kind", TOYS)
@pytest.mark.parametrize("method", SHAPES, ids=str)
def test_greedy_texts_are_the_targets(
    method: Method, kind: type[ToyHead], tiny_pair: ModelPair, greedy: list[list[int]]
) -> None:
    """At temperature 0, prompts of two tokens too."""
    assert texts_of(with_head(tiny_pair, kind), method, **GREEDY) == greedy


@pytest.mark.parametrize("kind", TOYS)
def test_padding_of_the_target_is_never_drafted(kind: type[ToyHead], padded_pair: ModelPair) -> None:
    pair = with_head(padded_pair, kind)
    trees = [tree for _, tree in drafted_calls(pair, Method("token", Chain(4)))]
    assert {len(pmf) for tree in trees for pmf in tree.pmfs.values()} == {pair.vocabulary}


@pytest.mark.parametrize("kind", TOYS)
def test_races_do_not_depend_on_the_head(kind: type[ToyHead], tiny_pair: ModelPair, raced: list[list[int]]) -> None:
    """Drafter invariance (kobus2025), token for token."""
    for shape in (Chain(5), KAry((2, 2)), Tree.from_paths([(2,), (3,), (3, 2)])):
        assert texts_of(with_head(tiny_pair, kind), Method("race", shape), **DRAWN) == raced


def drafted_calls(pair: ModelPair, method: Method, **options: Any) -> Iterator[tuple[list[int], DraftTree]]:
    """The text before each call of the first prompt, with the tree that was drafted after it."""
    calls: list[tuple[list[int], DraftTree]] = []
    text = PROMPTS[0].tolist()

    def noting(tree: DraftTree, target: _Pmfs, source: Source) -> Verdict:
        path, token = method.verifier(tree, target, source)
        calls.append((list(text), tree))
        text.extend([*(tree.tokens[node] for node in path), token])
        return path, token

    decode(pair, PROMPTS[:1], method, tokens=30, seed=2, stop_at_end=False, verifier=noting, **options)
    return iter(calls)


def read_again(pair: ModelPair, text: list[int], drafts: list[int], *, last: int = 2) -> Floats:
    """Pmfs of the drafts after a text, by one pass of the target over it and a new reading of the head."""
    head = pair.draft.head
    assert head is not None
    with torch.inference_mode(), HiddenStates(pair.target.network, head.layers) as states:
        pair.target.network(torch.tensor([text]))
        reading = head.reading()
        reading.read(states.take()[0, : len(text) - 1], torch.tensor(text[1:]))
        at = torch.tensor([len(text) - last])
        return _pmfs_of(torch.cat(list(reading.depths(at, torch.tensor([drafts]), len(drafts) + 1))), Sampling())


@pytest.mark.parametrize("kind", TOYS)
@pytest.mark.parametrize("method", [Method("token", Chain(4)), Method("race", KAry((2, 2, 1)))], ids=str)
def test_drafts_are_those_of_the_text_read_again(method: Method, kind: type[ToyHead], tiny_pair: ModelPair) -> None:
    """Every pmf of every call to 1e-5: hidden states of accepted nodes are the text's. Control: one pair earlier."""
    pair = with_head(tiny_pair, kind)
    checked, accepted = 0, 0
    for text, tree in drafted_calls(pair, method):
        for node, pmf in tree.pmfs.items():
            drafts = [] if node == ROOT else [tree.tokens[on] for on in tree.path(node)]
            np.testing.assert_allclose(pmf, read_again(pair, text, drafts)[-1], atol=1e-5)
            assert np.abs(pmf - read_again(pair, text, drafts, last=3)[-1]).max() > 1e-4
            checked += 1
        accepted += 1
    assert checked > 2 * accepted > 20


@pytest.mark.parametrize("kind", TOYS)
@pytest.mark.parametrize("method", SHAPES[1:3], ids=str)
def test_a_batch_and_a_target_without_cache_change_nothing(
    method: Method, kind: type[ToyHead], tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same texts and calls, one by one, in a batch, with prompts read in pieces, and by reading texts again."""
    pair = with_head(tiny_pair, kind)

    def decoded_with(**options: Any) -> list[Any]:
        decoded = decode(pair, PROMPTS, method, tokens=30, seed=4, **options)
        return [(one.output_ids.tolist(), [(c.drafted, c.accepted, c.last) for c in one.calls]) for one in decoded]

    alone = decoded_with()
    assert decoded_with(batch=3) == decoded_with(chunk=2) == alone
    monkeypatch.setattr(importlib.import_module("spectheory.measure.decoders.decode"), "why_uncached", lambda _: "x")
    assert decoded_with() == decoded_with(batch=3) == alone


@pytest.mark.parametrize("kind", TOYS)
def test_passes_of_a_call(kind: type[ToyHead], tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parallel head drafts in one pass, another in one pass for each draft but the first; both are timed."""
    pair = with_head(tiny_pair, kind)
    passes: list[str] = []
    for name in ("block", "extend"):
        reading = type(pair.draft.network.reading())
        if hasattr(reading, name):
            original = getattr(reading, name)
            monkeypatch.setattr(reading, name, lambda *at, o=original: (passes.append(o.__name__), o(*at))[1])
    (one,) = decode(pair, PROMPTS[:1], Method("token", Chain(4)), tokens=30, seed=4, stop_at_end=False)
    calls = [call for call in one.calls if call.depth]
    assert passes == ["block"] * len(calls) if kind.parallel else ["extend"] * sum(call.depth - 1 for call in calls)
    assert all(0 < call.draft_seconds < call.seconds and 0 < call.target_seconds < call.seconds for call in calls)


def test_what_a_head_cannot_draft_is_one_line(tiny_pair: ModelPair) -> None:
    pair = with_head(tiny_pair, ToyParallelHead)
    cases: list[tuple[Method, Tensor, type[SpectheoryError], str]] = [
        (Method("token", Chain(7)), PROMPTS[0], SettingError, "token is asked for chain k=7: .* at most 6 tokens deep"),
        (Method("toptree", HeaviestTree(9)), PROMPTS[0], SettingError, "at most 6 tokens deep"),
        (Method("token", Chain(2)), torch.tensor([4]), TextError, "prompt '2' has 1 token: a draft head needs 2"),
    ]
    for method, prompt, kind, line in cases:
        with pytest.raises(kind, match=line) as caught:
            decode(pair, [PROMPTS[1], prompt], method, tokens=5)
        assert "\n" not in str(caught.value)
    decode(pair, [torch.tensor([4])], Method("lookup", Chain(2)), tokens=5)  # does not use the head
