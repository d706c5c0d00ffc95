"""Suffix decoding: a trie that lists its children as they grow is the readable twin; decoders draft the same."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.measure import MeasureSettings, ModelPair, measure
from spectheory.measure.copied import NOTHING, suffix_columns, suffix_draft
from spectheory.measure.decoders import Method, decode
from spectheory.prediction import plan
from spectheory.prediction.paths import calls_of_texts
from spectheory.prompts import Prompt
from spectheory.trace import TextInfo, Trace
from spectheory.verification import SuffixDrafts, SuffixMatch
from spectheory.verification.suffix import OWN_TEXT

Texts = Sequence[tuple[list[int], list[int]]]
END = 0


class Node:
    """A path of tokens, how often it stands in the sequences, and what follows it, the most frequent first."""

    def __init__(self, token: int = NOTHING) -> None:
        self.token, self.count = token, 0
        self.children: list[Node] = []

    def child(self, token: int) -> Node | None:
        """The path with one token more, if it stands there."""
        return next((each for each in self.children if each.token == token), None)

    def grow(self, token: int) -> Node:
        """One more occurrence of a child; it moves ahead of those with the count of its neighbour above."""
        child = self.child(token)
        if child is None:
            child = Node(token)
            self.children.append(child)
        child.count += 1
        place = self.children.index(child)
        if place and child.count > 1 and self.children[place - 1].count <= child.count:
            above = self.children[place - 1].count
            while place and self.children[place - 1].count == above:
                self.children[place - 1], self.children[place] = self.children[place], self.children[place - 1]
                place -= 1
        return child


class Trie:
    """Every run of at most `depth` tokens of some sequences."""

    def __init__(self, depth: int) -> None:
        self.root, self.depth = Node(), depth
        self.active = deque[Node]()

    def start(self) -> None:
        """A sequence begins."""
        self.active.clear()

    def append(self, token: int) -> None:
        """It goes on: every path that ends with its last tokens grows."""
        self.active.append(self.root)
        if len(self.active) > self.depth:
            self.active.popleft()
        self.active = deque(node.grow(token) for node in self.active)

    def drafts(self, text: list[int], how: SuffixDrafts) -> tuple[list[int], np.float32]:
        """The best continuation of any suffix, the shortest suffix first; a later one with an equal score wins."""
        best: list[int] = []
        score = np.float32(0)
        for length in range(1, min(len(text), self.depth)):
            node: Node | None = self.root
            for token in text[-length:]:
                node = node.child(token) if node else None
            if node is None:
                break
            tokens, total, share = list[int](), np.float32(0), np.float32(1)
            most = int(how.factor * length + how.offset + 1e-6)
            while len(tokens) < most and node.children:
                head = node.children[0]
                share *= np.float32(head.count) / np.float32(node.count)
                if share < np.float32(how.min_probability):
                    break
                tokens.append(head.token)
                total += share
                node = head
            if total >= score:
                best, score = tokens, total
        return best, score


def by_hand(texts: Texts, how: SuffixDrafts) -> list[list[int]]:
    """What every call would draft, token by token."""
    drafts, before = [], Trie(how.max_depth)
    for prompt, output in texts:
        here, text = Trie(how.max_depth), list(prompt)
        before.start()
        for token in prompt:
            here.append(token)
        for token in output:
            here_drafts, score = here.drafts(text, how)
            other, others = before.drafts(text, how)
            drafts.append(other if how.across and others > score else here_drafts)
            here.append(token)
            before.append(token)
            text.append(token)
    return drafts


def drafted(texts: Texts, how: SuffixDrafts) -> list[list[int]]:
    drafts, begin = [], 0
    served = np.concatenate([[*output, NOTHING] for _, output in texts])
    for prompt, output in texts:
        text = np.array([*prompt, *output])
        for start in range(len(output)):
            known = text[: len(prompt) + start]
            drafts.append(suffix_draft(known, how, served[: begin + start], start).tolist())
        begin += len(output) + 1
    return drafts


def made(seed: int) -> tuple[Texts, SuffixDrafts]:
    """Texts of few tokens, some of them of one repeated phrase, and settings."""
    rng = np.random.default_rng(seed)
    tokens = int(rng.integers(2, 6))
    phrase = rng.integers(0, tokens, 9).tolist() * 4

    def text() -> list[int]:
        length = int(rng.integers(2, 30))
        return phrase[:length] if rng.random() < 0.4 else rng.integers(0, tokens, length).tolist()

    depth, factor, offset, least = (
        rng.choice(each) for each in ((2, 3, 5, 24), (0.5, 1, 2), (0, 1, -1), (0.01, 0.1, 0.4))
    )
    how = SuffixDrafts(int(depth), float(factor), float(offset), float(least), bool(rng.integers(2)))
    return [(text(), text()) for _ in range(4)], how


@pytest.mark.parametrize("seed", range(40))
def test_drafts_equal_those_of_the_trie(seed: int) -> None:
    texts, how = made(seed)
    assert drafted(texts, how) == by_hand(texts, how)


def test_the_twin_tells_settings_apart() -> None:
    """Negative controls: each setting moved, and earlier outputs forgotten, is seen."""
    texts = [made(seed)[0] for seed in range(8)]
    usual = SuffixDrafts(max_depth=5)
    for change in ({"max_depth": 4}, {"factor": 2.0}, {"offset": 1.0}, {"min_probability": 0.5}, {"across": False}):
        other = dataclasses.replace(usual, **change)  # type: ignore[arg-type]
        assert any(drafted(each, other) != by_hand(each, usual) for each in texts), change


def repeated(draft: list[int], output: list[int]) -> int:
    """Leading tokens of a draft that the output has."""
    count = 0
    while count < min(len(draft), len(output)) and draft[count] == output[count]:
        count += 1
    return count


def test_columns_count_the_repeated_tokens() -> None:
    """Matches with the output, and lengths up to an end of text, from the twin's drafts."""
    for seed in range(6):
        texts, how = made(seed)
        columns = suffix_columns(texts, how)
        drafts = by_hand(texts, how)
        rest = [output[start:] for _, output in texts for start in range(len(output))]
        same = [repeated(*pair) for pair in zip(drafts, rest, strict=True)]
        assert columns["suffix_match"].tolist() == same
        assert columns["suffix_drafted"].tolist() == [len(each) for each in drafts]
    ended = suffix_columns([([1, 2, END, 3, 1], [2, 4])], SuffixDrafts(factor=9.0), (END,))
    assert ended["suffix_drafted"][0] == 2  # 2 and the end, where the prompt goes on


def test_earlier_outputs_are_served_in_order() -> None:
    """The second output of one prompt copies the first; the other order, and no cache, copy less."""
    first, second = ([9], [1, 2, 3, 4, 5, 6]), ([9], [1, 2, 3, 4, 5, 7])
    both = suffix_columns([first, second], SuffixDrafts())["suffix_match"]
    assert both[:6].tolist() == [0] * 6
    assert both[6:].max() >= 2
    assert suffix_columns([first, second], SuffixDrafts(across=False))["suffix_match"].max() == 0


# Decoders and measurements


PROMPTS = [torch.tensor([i % 5, 1, i % 4 + 1, 1, 3, 1, i % 5]) for i in range(20)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("k", [1, 3, 9])
def test_decoded_calls_are_the_expected_ones(k: int, temperature: float, tiny_pair: ModelPair) -> None:
    """Text by text, no tolerance, from each request alone; other settings are seen."""
    few = dataclasses.replace(tiny_pair, vocabulary=6)
    sampling = Sampling(temperature)
    decoded = decode(few, PROMPTS, Method("suffix", Chain(k)), tokens=40, sampling=sampling, seed=3, batch=5)
    texts = list(zip(PROMPTS, [one.output_ids for one in decoded], strict=True))
    counted = [len(one.calls) for one in decoded]
    lengths = np.array([len(output) for _, output in texts])
    ends = few.end_of_text

    def expected(how: SuffixDrafts) -> list[float]:
        columns: dict[str, Any] = suffix_columns(texts, how, ends)
        return calls_of_texts(SuffixMatch().path_survival(columns, k), lengths).expected.tolist()

    assert expected(OWN_TEXT) == counted
    assert expected(SuffixDrafts(across=True)) != counted
    assert any(call.accepted for one in decoded for call in one.calls)
    matches = suffix_columns(texts, OWN_TEXT, ends)
    made = SuffixMatch().calls_by_drafted(matches, lengths, np.full(len(lengths), 40), k)
    assert made is not None
    drafts = [call.drafted for one in decoded for call in one.calls]
    assert made.sum(axis=0).tolist() == np.bincount(drafts, minlength=k + 1).tolist()


def test_a_stopped_measurement_has_the_same_columns(tmp_path: Path, tiny_pair: ModelPair) -> None:
    """Columns that need every text come after the last one; without the setting they are absent."""
    prompts = [Prompt(id=str(i), text="ab" * (i + 1), category="") for i in range(4)]
    settings = MeasureSettings(tokens=12, count=2, race=False, suffix=SuffixDrafts())
    whole = measure(tiny_pair, prompts, settings, tmp_path / "whole.parquet")

    class Stopped(Exception):
        """As a kill after two prompts."""

    def stop(state: Any) -> None:
        if state.done == 2 and not state.resumed:
            raise Stopped

    with pytest.raises(Stopped):
        measure(tiny_pair, prompts, settings, tmp_path / "stopped.parquet", on_progress=stop)
    resumed = measure(tiny_pair, prompts, settings, tmp_path / "stopped.parquet")
    for name in SuffixMatch.needs:
        np.testing.assert_array_equal(resumed.columns[name], whole.columns[name])
    assert "suffix" in [str(label) for label in plan(whole).labels]
    bare = measure(tiny_pair, prompts, dataclasses.replace(settings, suffix=None), tmp_path / "bare.parquet")
    with pytest.raises(TraceError, match=r"no suffix_match, suffix_drafted.*measure with suffix"):
        plan(bare, rules=[SuffixMatch()])


def test_bad_settings_are_refused() -> None:
    for bad, message in (
        ({"max_depth": 1}, "max_depth is 1"),
        ({"factor": 0.0}, "factor is 0: must be > "),
        ({"factor": float("inf")}, "factor is inf"),
        ({"min_probability": 1.5}, "min_probability is 1.5"),
        ({"offset": float("nan")}, "offset is nan"),
    ):
        with pytest.raises(SettingError, match=message):
            SuffixDrafts(**bad)  # type: ignore[arg-type]
    columns = {"log_target": np.zeros(1), "log_draft": np.zeros(1)}
    wrong = {"suffix_match": np.array([3]), "suffix_drafted": np.array([2])}
    with pytest.raises(TraceError, match="suffix_match of text '1', token 1 is 3: must be at most suffix_drafted"):
        Trace(columns | wrong, (TextInfo("1", 1),))
