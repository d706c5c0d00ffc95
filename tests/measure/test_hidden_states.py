"""Hidden states of a target: those of transformers, but the last one before the final norm."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spectheory.measure import ModelPair
from spectheory.measure.heads.base import HiddenStates

LAYERS = (2, 0, 1)
"""The last one, the embeddings and the one between, out of order."""


@pytest.fixture
def text() -> Tensor:
    return torch.randint(0, 64, (3, 11), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def by_transformers(network: Any, ids: Tensor) -> Tensor:
    """The same states, from transformers' list; the last layer's is worked out from what the layer reads."""
    states = network(ids, output_hidden_states=True).hidden_states
    seen = list[Tensor]()
    hook = network.model.layers[-1].register_forward_hook(lambda module, given, output: seen.append(output))
    network(ids)
    hook.remove()
    assert torch.equal(network.model.norm(seen[0]), states[-1])  # transformers' last state is after the norm
    assert not torch.equal(seen[0], states[-1])
    return torch.cat([seen[0], states[0], states[1]], dim=-1)


@torch.no_grad()
def test_states_of_a_batch(tiny_pair: ModelPair, text: Tensor) -> None:
    network = tiny_pair.target.network
    with HiddenStates(network, LAYERS) as states:
        network(text)
        taken = states.take()
    assert taken.shape == (3, 11, 3 * 32)
    assert torch.equal(taken, by_transformers(network, text))


@torch.no_grad()
def test_states_in_pieces_with_a_cache(tiny_pair: ModelPair, text: Tensor) -> None:
    network, cache, parts = tiny_pair.target.network, None, []
    with HiddenStates(network, LAYERS) as states:
        for piece in text.split((4, 1, 6), dim=1):
            cache = network(piece, past_key_values=cache, use_cache=True).past_key_values
            parts.append(states.take())
    whole = by_transformers(network, text)
    assert torch.allclose(torch.cat(parts, dim=1), whole, rtol=0, atol=1e-5 * float(whole.std()))


@torch.no_grad()
def test_states_in_half_precision(wide_pair: ModelPair) -> None:
    network, ids = wide_pair.target.network, torch.tensor([[1, 2, 3, 4]])
    with HiddenStates(network, LAYERS) as states:
        network(ids)
        taken = states.take()
    assert taken.dtype == torch.bfloat16
    assert torch.equal(taken, by_transformers(network, ids))


@torch.no_grad()
def test_nothing_is_taken_afterwards(tiny_pair: ModelPair, text: Tensor) -> None:
    network = tiny_pair.target.network
    with HiddenStates(network, LAYERS) as states:
        network(text)
        taken = states.take().clone()
    network(text.flip(1))
    assert torch.equal(states.take(), taken)
