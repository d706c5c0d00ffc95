"""A pair with the outputs of a large one, in 16 bits on a CPU: nothing copies its output matrix."""

from __future__ import annotations

from math import prod

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from spectheory.measure import Model, ModelPair
from spectheory.measure.reading import Reading

COPIES = ("aten::clone", "aten::copy_", "aten::_to_copy")


def copied(model: Model, tokens: int) -> list[int]:
    """Elements of every tensor that is copied in a pass on `tokens` tokens with one row of logits."""
    reading = Reading(model, model.outputs)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        reading.read(torch.arange(tokens)[None], keep=1)
    return [prod(event.input_shapes[0]) for event in recorded.events() if event.name in COPIES]


def matrix(model: Model) -> int:
    """Elements of the output matrix."""
    return model.network.get_output_embeddings().weight.numel()


@pytest.mark.parametrize("tokens", [1, 2, 5])
def test_the_output_matrix_is_never_copied(tokens: int, wide_pair: ModelPair) -> None:
    """One row of logits after several tokens is a strided input, for which torch may copy the matrix (33 times)."""
    for model in (wide_pair.target, wide_pair.draft):
        assert max(copied(model, tokens), default=0) < matrix(model)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="other kernels need no copy")
def test_a_copy_would_be_seen(wide_pair: ModelPair) -> None:
    """Negative control: weights that need no gradients have torch 2.9 to 2.13 copy the matrix."""
    network = wide_pair.draft.network
    network.requires_grad_(False)
    try:
        assert max(copied(wide_pair.draft, 2)) == matrix(wide_pair.draft)
    finally:
        network.requires_grad_(True)
