"""Draft heads decode losslessly and by the path theorem of §10: every outcome of every draw is explored."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Shape, Tree
from spectheory.measure import Model
from spectheory.measure.decoders import HeaviestTree, Method
from spectheory.measure.decoders.readers import HeadReader, Requests, _deliver, _pmfs_of
from spectheory.measure.decoders.tree import DraftTree, Floats
from spectheory.measure.heads.base import AutoregressiveReading, Head, ParallelReading
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import PATH_RULES, BlockVerification, PathRule, RankRule
from tests.decoders import test_law
from tests.decoders.test_law import EXACT, METHODS, PROMPT, Readers, V, distance, law_of, outcomes, target_law

WIDTH = 4


@cache
def state_after(prefix: tuple[int, ...]) -> Tensor:
    """The hidden state of a made-up target after its last token."""
    return torch.from_numpy(np.random.default_rng([9, *prefix]).normal(size=WIDTH))


class _Heard(test_law._Table):
    """A target whose hidden states a head reads."""

    def __init__(self, seed: int, texts: Sequence[list[int]]) -> None:
        super().__init__(seed, texts)
        self.listener: HeadReader | None = None

    def taken(self) -> Tensor:
        return self.last

    def prefill(self, chunk: int) -> None:
        self._tell({row: (DraftTree(), []) for row in range(len(self.texts))}, last=0)

    def read(self, requests: Requests) -> dict[int, list[Floats]]:
        self._tell({row: (tree, nodes[1:]) for row, (tree, nodes) in requests.items()}, last=1)
        return super().read(requests)

    def _tell(self, trees: dict[int, tuple[DraftTree, list[int]]], last: int) -> None:
        """All texts, the last token only where it is read."""
        for row, (tree, nodes) in trees.items():
            text = self.texts[row]
            prefixes = [text[: i + 1] for i in range(len(text) - 1 + last)]
            below = [[*text, *(tree.tokens[on] for on in tree.path(node))] for node in nodes]
            self.last = torch.stack([state_after(tuple(prefix)) for prefix in [*prefixes, *below]])[None]
            assert self.listener is not None
            _deliver(self.listener, [(row, 0, slice(None), nodes)])


class _Handmade(Head):
    """Pmfs from fixed random matrices; the first draft is never token 2, as with a pruned vocabulary."""

    kind: ClassVar[str] = "eagle3"
    layers, trained, deepest, vocabulary = (0,), 3, None, V

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(5)
        self.embedding = nn.Embedding(V, WIDTH, dtype=torch.float64)
        self.out = nn.Parameter(torch.randn((WIDTH, V), generator=generator, dtype=torch.float64))
        with torch.no_grad():
            self.embedding.weight.copy_(torch.randn((V, WIDTH), generator=generator, dtype=torch.float64))

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def reading(self) -> Any:
        return _HandmadeReading(self)

    def logits(self, states: Tensor) -> Tensor:
        return states @ self.out


class _HandmadeReading(AutoregressiveReading):
    """The state after a pair fades over the pairs before it; a draft's is made from its parent's."""

    def __init__(self, head: _Handmade) -> None:
        self.head, self.states = head, torch.zeros((0, WIDTH), dtype=torch.float64)
        self.forget()

    def read(self, hidden: Tensor, following: Tensor) -> None:
        for state, token in zip(hidden, following, strict=True):
            before = self.states[-1:].sum(dim=0)
            self.states = torch.cat([self.states, (before / 2 + state + self.head.embedding(token))[None]])
        self.pairs = len(self.states)
        self.forget()

    def forget(self) -> None:
        self.nodes = torch.zeros((0, WIDTH), dtype=torch.float64)

    def first(self, pairs: Tensor) -> Tensor:
        logits = self.head.logits(self.states[pairs])
        logits[:, 2] = -math.inf
        return logits

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        above = [self.states[-1 - parent] if parent < 0 else self.nodes[parent] for parent in parents.tolist()]
        below = torch.tanh(torch.stack(above)) + self.head.embedding(tokens)
        self.nodes = torch.cat([self.nodes, below])
        return self.head.logits(below)


class _HandmadeParallel(_Handmade):
    """All depths at once."""

    kind: ClassVar[str] = "dflash"
    parallel: ClassVar[bool] = True
    deepest = 3

    def reading(self) -> Any:
        return _HandmadeParallelReading(self)


class _HandmadeParallelReading(ParallelReading):
    def __init__(self, head: _Handmade) -> None:
        self.head, self.inner = head, _HandmadeReading(head)

    def read(self, hidden: Tensor, following: Tensor) -> None:
        self.inner.read(hidden, following)
        self.pairs = self.inner.pairs

    def block(self, pairs: Tensor, depth: int) -> Tensor:
        states = self.inner.states[pairs]
        return torch.stack([self.head.logits(states.roll(i, dims=-1)) for i in range(depth)], dim=1)


HANDMADE: tuple[type[_Handmade], ...] = (_Handmade, _HandmadeParallel)


def readers_with(kind: type[_Handmade], depth: int, seed: int = 1) -> Readers:
    """Readers of a made-up target and of a head that reads its hidden states."""
    with torch.inference_mode():
        network = kind()

    def both(texts: Sequence[list[int]]) -> tuple[_Heard, HeadReader]:
        target = _Heard(seed, texts)
        model = Model("handmade", None, network, V, None, "")
        states: Any = SimpleNamespace(take=target.taken)
        target.listener = draft = HeadReader(model, V, Sampling(), texts, depth=depth, states=states)
        for reader in (target, draft):
            reader.prefill(2)
        return target, draft

    return both


LAWS = [(rule, shape) for rule, shape in METHODS if rule not in ("plain", "lookup")]


@pytest.mark.parametrize("kind", HANDMADE)
@pytest.mark.parametrize(("rule", "shape"), LAWS, ids=str)
def test_output_law_is_the_targets(rule: str, shape: Shape | HeaviestTree, kind: type[_Handmade]) -> None:
    """Three tokens with an end of text, several calls in a row, against enumeration of the target."""
    method, ends = Method(rule, shape), frozenset({0})
    if method.depth > 3:
        method = Method(rule, HeaviestTree(4, 3))
    law = law_of(method, 3, ends, readers=readers_with(kind, method.depth))
    assert math.isclose(sum(law.values()), 1.0, abs_tol=EXACT)
    assert distance(law, target_law(3, ends)) < EXACT


@pytest.mark.parametrize("kind", HANDMADE)
def test_a_biased_decoder_has_another_law(kind: type[_Handmade]) -> None:
    """Negative control."""
    law = law_of(Method("token", Chain(2)), verifier=test_law.too_generous, readers=readers_with(kind, 2))
    assert distance(law, target_law(3)) > 1e-2


# The path theorem by start, exactly


def pmfs_by_start(kind: type[_Handmade], text: Sequence[int], depth: int) -> Floats:
    """Q ``[N, depth, V]`` at every start of an output, given that the drafts before equal the text; teacher-forced."""
    whole, starts = [*PROMPT, *text], torch.arange(len(text)) + len(PROMPT) - 2
    hidden = torch.stack([state_after(tuple(whole[: i + 1])) for i in range(len(whole) - 1)])
    tokens = torch.tensor([[(*text, *[0] * depth)[n + i] for i in range(depth - 1)] for n in range(len(text))])
    with torch.inference_mode():
        reading = kind().reading()
        reading.read(hidden, torch.tensor(whole[1:]))
        logits = list(reading.depths(starts, tokens.reshape(len(text), depth - 1), depth))
    return np.stack([_pmfs_of(at, Sampling()) for at in logits], axis=1)


def predicted_calls(rule: PathRule, shape: Shape, text: tuple[int, ...], q: Floats) -> float:
    """Expected calls given the text, from the pmfs by start (§10), node by node."""
    table, count = test_law._Table(1, []), len(text)
    p = np.stack([table.pmf([*PROMPT, *text[:i]]) for i in range(count)])
    survival = np.zeros((count, shape.depth))
    for n in range(count):
        for depth in range(1, min(shape.depth, count - n) + 1):
            here = range(depth)
            if isinstance(rule, BlockVerification):
                ratios = [q[n, i, text[n + i]] / p[n + i, text[n + i]] for i in here]
                survival[n, depth - 1] = min(1.0, min(np.multiply.accumulate(ratios)))
            elif isinstance(rule, RankRule):
                laws = [rule.rank_pmf_given(p[n + i], q[n, i], text[n + i], shape.max_rank) for i in here]
                paths = [path for path in shape.tree().paths if len(path) == depth]
                survival[n, depth - 1] = sum(math.prod(laws[i][path[i] - 1] for i in here) for path in paths)
            else:
                accepted = [rule.acceptance_given(p[n + i], q[n, i])[text[n + i]] for i in here]
                survival[n, depth - 1] = math.prod(accepted)
    return float(calls_of_texts(survival, np.array([count])).expected[0])


PREDICTED: list[tuple[str, Shape]] = [
    ("token", Chain(2)),
    ("block", Chain(2)),
    ("independent", Chain(2)),
    ("argmax", Chain(3)),
    ("topk", Tree.from_paths([(1,), (2,), (1, 1), (2, 1)])),
    ("recursive", KAry((2, 1))),
    ("recursive-distinct", KAry((2, 1))),
]


@pytest.mark.parametrize("kind", HANDMADE)
@pytest.mark.parametrize(("rule", "shape"), PREDICTED, ids=str)
def test_calls_given_the_text_are_the_predicted_ones(rule: str, shape: Shape, kind: type[_Handmade]) -> None:
    """Mean calls of every text, exactly; the control, the head read by position, is off."""
    tokens = shape.depth + 1
    mass: dict[tuple[int, ...], float] = defaultdict(float)
    calls: dict[tuple[int, ...], float] = defaultdict(float)
    for output, count, weight in outcomes(Method(rule, shape), tokens, readers=readers_with(kind, shape.depth)):
        mass[output] += weight
        calls[output] += weight * count
    assert distance(mass, target_law(tokens)) < EXACT
    off = []
    for text in mass:
        q = pmfs_by_start(kind, text, shape.depth)
        counted = calls[text] / mass[text]
        assert math.isclose(counted, predicted_calls(PATH_RULES[rule], shape, text, q), abs_tol=EXACT)
        by_position = np.stack([np.roll(q[:, 0], -i, axis=0) for i in range(shape.depth)], axis=1)
        off.append(abs(counted - predicted_calls(PATH_RULES[rule], shape, text, by_position)))
    assert max(off) > 1e-3
