"""Trees that heads grow: measured at every start, against one call after the other, and against calls as decoded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Grown
from spectheory.measure import ModelPair
from spectheory.measure.decoders import Method, decode
from spectheory.measure.decoders.tree import DraftTree
from spectheory.measure.grown import grown_columns
from spectheory.measure.heads.base import AutoregressiveReading, HiddenStates, ParallelReading
from spectheory.prediction.paths import calls_of_texts
from spectheory.verification import PATH_RULES
from tests.decoders.test_drafts import paths_of
from tests.made_up import each
from tests.measure.test_grown import Path, depth_of, drive
from tests.toy_heads import TOYS, ToyHead, with_head

SHAPE = Grown(10, 3, 4)
PROMPT = torch.arange(1, 12) % 64


def one_call(pair: ModelPair, before: Tensor, path: Path) -> Tensor:
    """The head's logits after a path of drafts, from the text before the call alone."""
    head = pair.draft.network
    with HiddenStates(pair.target.network, head.layers) as states, torch.inference_mode():
        pair.target.network(before[None, :-1], use_cache=False)
    reading = head.reading()
    reading.read(states.take()[0], before[1:])
    last = torch.tensor([len(before) - 2])
    if isinstance(reading, ParallelReading):
        return reading.block(last, SHAPE.depth)[0, len(path)]
    assert isinstance(reading, AutoregressiveReading)
    logits, parent = reading.first(last), -1 - last
    for depth, token in enumerate(path):
        logits = reading.extend(parent, torch.tensor([token]))
        parent = torch.tensor([depth])
    return logits[0]


def followed(pair: ModelPair, calls: int) -> Tensor:
    """A text that follows the head's most probable drafts for a whole call each time."""
    text = PROMPT
    for _ in range(calls):
        path: Path = ()
        for _ in range(SHAPE.depth):
            path = (*path, int(one_call(pair, text, path).argmax()))
        text = torch.cat([text, torch.tensor(path)])
    return text[len(PROMPT) :]


@each("kind", TOYS)
def test_measured_is_one_call_after_the_other(tiny_pair: ModelPair, kind: type[ToyHead]) -> None:
    pair = with_head(tiny_pair, kind)
    output = followed(pair, 4)
    expected = []
    for start in range(len(output)):
        before, tree = torch.cat([PROMPT, output[:start]]), DraftTree()
        drive(tree, SHAPE, lambda path, before=before: one_call(pair, before, path).double().softmax(-1).tolist())
        follows = tuple(output[start : start + SHAPE.depth].tolist())
        expected.append(depth_of(follows, paths_of(tree)))
    assert len(set(expected)) > 2
    assert max(expected) == SHAPE.depth
    for chunk in (4, 256):
        found = grown_columns(pair, PROMPT, output, SHAPE, chunk=chunk)["grown_match"]
        assert found.tolist() == expected


@each("kind", TOYS)
@each("temperature", [0.0, 1.0])
@each("name", ["tiny_pair", "padded_pair"])
def test_counted_calls_are_those_expected(
    name: str, kind: type[ToyHead], temperature: float, request: pytest.FixtureRequest
) -> None:
    """Exactly, given the text; the trees of the draft model of the pair expect others (the control)."""
    plain: ModelPair = request.getfixturevalue(name)
    pair, prompts = with_head(plain, kind), [PROMPT, PROMPT + 20]
    made = decode(pair, prompts, Method("grown", SHAPE), tokens=30, sampling=Sampling(temperature), seed=2, batch=2)

    def expected(of: ModelPair) -> list[float]:
        found = []
        for prompt, one in zip(prompts, made, strict=True):
            survival = PATH_RULES["grown"].path_survival(grown_columns(of, prompt, one.output_ids, SHAPE), SHAPE.depth)
            found.append(float(calls_of_texts(survival, np.array([len(one.output_ids)])).expected[0]))
        return found

    counted = [len(one.calls) for one in made]
    assert counted == expected(pair)
    assert counted != expected(plain)
