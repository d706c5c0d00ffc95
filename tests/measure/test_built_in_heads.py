"""The built-in heads: what is shipped, the training's dense network against the reading, and recorded acceptance."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from benchmarks.training.dense_heads import NETWORKS, DenseAutoregressive, DenseDFlash, DenseDSpark
from benchmarks.training.train_heads import RUNS, SHAPES, WITH_MATRICES, configuration
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.heads.base import Head, HiddenStates
from spectheory.pairs import HEADS, PREFIX, PROMPTS, resolve
from spectheory.prompts import read_prompts

KIBIBYTE = 1 << 10
CLOSE = 1e-5
"""Probabilities of logits in single precision, which are near 20 and differ by 2e-5."""
ROUNDED = 1e-4
"""Recorded with four digits."""


@cache
def pair_of(kind: str) -> ModelPair:
    return load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + kind), device="cpu")


def facts(kind: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(resolve(PREFIX + kind)) / "training.json").read_text())
    return content


@cache
def text_of(kind: str, number: int) -> tuple[Tensor, Tensor, Tensor]:
    """A prompt's tokens, the target's hidden states after each, and p of the token after each."""
    pair = pair_of(kind)
    head = pair.draft.head
    assert head is not None
    ids = torch.tensor([pair.tokenizer.encode(read_prompts(PROMPTS)[number].text)])
    with torch.inference_mode(), HiddenStates(pair.target.network, head.layers) as states:
        probabilities = pair.target.network(input_ids=ids).logits[0].softmax(-1)
        return ids[0], states.take()[0], probabilities


def by_start(head: Head, ids: Tensor, hidden: Tensor, sure: list[Tensor | None] | None = None) -> Tensor:
    """Logits ``[starts, depth, V]`` of the drafts at every start after which `trained` tokens are known.

    `sure` takes the confidence ``[starts]`` of each depth.
    """
    reading, depth = head.reading(), head.trained
    pairs = torch.arange(len(ids) - depth)
    with torch.inference_mode():
        reading.read(hidden[:-1], ids[1:])
        tokens = ids[pairs[:, None] + 2 + torch.arange(depth - 1).clamp(max=len(ids))]
        drafts = list[Tensor]()
        for logits in reading.depths(pairs, tokens, depth):
            drafts.append(logits)
            if sure is not None:
                sure.append(reading.confidence)
        return torch.stack(drafts, dim=1)


def acceptance(drafts: Tensor, probabilities: Tensor) -> Tensor:
    """1 - TV ``[starts, depth]`` of logits by start and depth."""
    at = torch.arange(drafts.shape[0])[:, None] + 1 + torch.arange(drafts.shape[1])
    return torch.minimum(probabilities[at], drafts.softmax(-1)).sum(-1)


def dense(kind: str) -> DenseAutoregressive | DenseDFlash:
    """The network of the training with the shipped weights."""
    target = pair_of(kind).target.network
    config = json.loads((Path(resolve(PREFIX + kind)) / "config.json").read_text())
    shape = SHAPES[kind]._replace(mask=config.get("mask_token_id"))
    assert configuration(shape, kind) == config, "the recipe writes it"
    network = NETWORKS[kind](shape, target)
    weights = load_file(Path(resolve(PREFIX + kind)) / "model.safetensors")
    copies = {"embed_tokens.weight", "lm_head.weight"}
    assert (copies & weights.keys() == copies) == (kind in WITH_MATRICES)
    for name in copies & weights.keys():
        assert torch.equal(weights.pop(name).float(), target.get_input_embeddings().weight)
    network.load_state_dict({name: weight.float() for name, weight in weights.items()})
    return network


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_is_small_loads_without_remarks_and_drafts_what_it_was_trained_for(kind: str) -> None:
    folder, pair = Path(resolve(PREFIX + kind)), pair_of(kind)
    assert (folder / "model.safetensors").stat().st_size <= 1200 * KIBIBYTE
    head = pair.draft.head
    assert head is not None
    assert (head.kind, head.trained, head.dtype, pair.remarks) == (kind, 5, torch.float32, ())
    assert sum(p.numel() for p in dense(kind).parameters()) == facts(kind)["parameters"]
    (run,) = (run for kinds, run in RUNS.items() if kind in kinds)
    assert facts(kind)["schedule"] == asdict(run.schedule)
    assert facts(kind)["training_tokens"] >= 1.5e6


@pytest.mark.parametrize("kind", HEADS)
def test_the_training_saw_the_logits_that_the_reading_gives(kind: str) -> None:
    """The dense network of the training is a second, independent form of the head."""
    ids, hidden, _ = text_of(kind, 0)
    head, network, sure = pair_of(kind).draft.head, dense(kind), list[Tensor | None]()
    assert head is not None
    ours = by_start(head, ids, hidden, sure)
    starts = len(ours)
    with torch.inference_mode():
        if isinstance(network, DenseDFlash):
            drafts = network(hidden[None], ids[None], torch.arange(1, starts + 1)[None])
        else:
            drafts = network(hidden[None, :starts], ids[None, 1:])
    ours, theirs = ours.softmax(-1), torch.stack(drafts, dim=2)[0].softmax(-1)
    torch.testing.assert_close(ours, theirs, rtol=0.0, atol=CLOSE)
    assert not torch.allclose(ours[1:], theirs[:-1], atol=0.1), "neighbouring starts differ"
    said = [each for each in sure if each is not None]
    assert len(said) == (5 if isinstance(network, DenseDSpark) else 0)
    if isinstance(network, DenseDSpark):
        torch.testing.assert_close(torch.stack(said, dim=1), network.confidence[0].sigmoid(), rtol=0.0, atol=CLOSE)


@pytest.mark.parametrize("kind", HEADS)
def test_recorded_acceptance_is_found_again_and_per_position_the_drafts_are_others(kind: str) -> None:
    """All starts of the held-out prompts: the numbers are those of the recipe, by the reading instead of its network.

    Control: the first draft at each position, which a reading per position takes for every depth, has another pmf than
    the fifth draft there. Of heads of blocks its acceptance is another too; of those that read their drafts it hardly
    is.
    """
    head = pair_of(kind).draft.head
    assert head is not None
    by_depth, apart = list[Tensor](), list[Tensor]()
    for number in range(len(read_prompts(PROMPTS))):
        ids, hidden, probabilities = text_of(kind, number)
        drafts = by_start(head, ids, hidden)
        by_depth.append(acceptance(drafts, probabilities))
        first, fifth = drafts[4:, 0].softmax(-1), drafts[:-4, 4].softmax(-1)
        apart.append((first - fifth).abs().sum(-1) / 2)
    mean = torch.cat(by_depth).mean(0).numpy()
    recorded, errors = (facts(kind)[name] for name in ("held_out_acceptance_by_depth", "standard_error_by_prompt"))
    assert np.abs(mean - recorded).max() <= ROUNDED
    assert float(torch.cat(apart).mean()) > 0.1
    assert (mean[0] - mean[4] > 10 * errors[4]) == head.parallel
