"""Suffix decoding: a trie that lists its children as they grow is the readable twin; decoders draft the same."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence

import numpy as np
import pytest

from spectheory.errors import SettingError
from spectheory.ngrams import Request, read_ngrams, replay
from spectheory.ngrams.base import NOTHING, leading
from spectheory.ngrams.suffix import Suffix

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

    def drafts(self, text: list[int], how: Suffix) -> tuple[list[int], np.float32]:
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
            most = min(how.max, int(how.factor * length + 1e-6))
            while len(tokens) < most and node.children:
                head = node.children[0]
                share *= np.float32(head.count) / np.float32(node.count)
                if share < np.float32(how.probability):
                    break
                tokens.append(head.token)
                total += share
                node = head
            if total >= score:
                best, score = tokens, total
        return best, score


def by_hand(texts: Texts, how: Suffix) -> list[list[int]]:
    """What every call would draft, token by token; without a cache, or with one of every output."""
    drafts, before = [], Trie(how.depth)
    for prompt, output in texts:
        here, text = Trie(how.depth), list(prompt)
        before.start()
        for token in prompt:
            here.append(token)
        for token in output:
            here_drafts, score = here.drafts(text, how)
            other, others = before.drafts(text, how)
            drafts.append(other if how.requests and others > score else here_drafts)
            here.append(token)
            before.append(token)
            text.append(token)
    return drafts


def requests_of(texts: Texts) -> list[tuple[Request, np.ndarray]]:
    """One server serves the texts in order."""
    served = [np.array([*output, NOTHING]) for _, output in texts]
    before = [np.concatenate([np.empty(0, dtype=int), *served[:place]]) for place in range(len(texts))]
    return [
        (Request(np.array(prompt), {END}, (), earlier), np.array(output))
        for (prompt, output), earlier in zip(texts, before, strict=True)
    ]


def drafted(texts: Texts, how: Suffix) -> list[list[int]]:
    drafts = []
    for request, output in requests_of(texts):
        text, state = np.concatenate([request.prompt, output]), how.begin(request)
        drafts += [how.draft(text[: len(request.prompt) + start], state) for start in range(len(output))]
    return drafts


def made(seed: int) -> tuple[Texts, Suffix]:
    """Texts of few tokens, some of them of one repeated phrase, and settings."""
    rng = np.random.default_rng(seed)
    tokens = int(rng.integers(2, 6))
    phrase = rng.integers(0, tokens, 9).tolist() * 4

    def text() -> list[int]:
        length = int(rng.integers(2, 30))
        return phrase[:length] if rng.random() < 0.4 else rng.integers(0, tokens, length).tolist()

    most, depth, requests = (int(rng.choice(each)) for each in ((1, 3, 24), (2, 3, 5, 24), (0, 100)))
    factor, least = (float(rng.choice(each)) for each in ((0.5, 1, 2), (0.01, 0.1, 0.4)))
    return [(text(), text()) for _ in range(4)], Suffix(most, depth, factor, least, requests)


@pytest.mark.parametrize("seed", range(40))
def test_drafts_equal_those_of_the_trie(seed: int) -> None:
    texts, how = made(seed)
    assert drafted(texts, how) == by_hand(texts, how)


def test_the_twin_tells_settings_apart() -> None:
    """Negative controls: each setting moved, and earlier outputs forgotten, is seen."""
    texts = [made(seed)[0] for seed in range(8)]
    usual = Suffix(max=4, depth=5)
    for change in ({"depth": 4}, {"factor": 2.0}, {"max": 1}, {"probability": 0.5}, {"requests": 0}):
        other = dataclasses.replace(usual, **change)
        assert any(drafted(each, other) != by_hand(each, usual) for each in texts), change


def test_columns_count_the_repeated_tokens() -> None:
    """Matches with the output and lengths, from the twin's drafts; our decoders draft up to an end."""
    for seed in range(6):
        texts, how = made(seed)
        rows, drafts = replay(how, requests_of(texts)), by_hand(texts, how)
        rest = [np.array(output[start:]) for _, output in texts for start in range(len(output))]
        same = [leading(np.array(draft), follows) for draft, follows in zip(drafts, rest, strict=True)]
        assert rows.tolist() == [[match, len(draft)] for match, draft in zip(same, drafts, strict=True)]
    (ended,) = requests_of([([1, 2, END, 3, 1], [2, 4])])
    assert [replay(Suffix(factor=9.0), [ended], alone=alone)[0, 1] for alone in (False, True)] == [4, 2]


def test_outputs_are_served_in_order_and_leave_the_cache() -> None:
    """The third output copies the first; a cache of two outputs, none, and servers of their own copy less."""
    texts = [([9], [1, 2, 3, 4, 5, 6]), ([9], [7, 8, 7, 8, 7, 8]), ([9], [1, 2, 3, 4, 5, 7])]
    for how, alone, copies in ((Suffix(), False, 2), (Suffix(requests=2), False, 0), (Suffix(requests=3), False, 2)):
        assert replay(how, requests_of(texts), alone=alone)[12:, 0].max() == copies
    assert replay(Suffix(), requests_of(texts), alone=True)[12:, 0].max() == 0
    assert replay(Suffix(requests=0), requests_of(texts))[12:, 0].max() == 0


def test_settings_are_read_and_refused() -> None:
    (read,) = read_ngrams(["suffix:max=8,factor=2,probability=0.25"])
    assert (str(read), read) == ("suffix:max=8,factor=2,probability=0.25", Suffix(8, factor=2.0, probability=0.25))
    for bad in ("depth=1", "factor=0", "factor=inf", "probability=1.5", "probability=nan", "max=1.5", "offset=1"):
        with pytest.raises(SettingError, match=r"suffix.*; "):
            read_ngrams([f"suffix:{bad}"])
