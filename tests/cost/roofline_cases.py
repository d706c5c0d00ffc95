"""Models and cards that the tests of C3 and C4 share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from spectheory.cost import (
    ACCELERATORS,
    ModelShape,
)
from spectheory.cost.layers import Attention
from spectheory.drafting import Batch, Chain, KAry

LLAMA: dict[str, Any] = {"num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256}


# The config.json of each model on the Hugging Face hub, and its parameters as the hub counts them in the weights.
PUBLISHED: dict[str, tuple[dict[str, Any], int]] = {
    "meta-llama/Llama-3.1-8B": (
        LLAMA
        | {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "tie_word_embeddings": False},
        8_030_261_248,
    ),
    "meta-llama/Llama-3.1-70B": (
        LLAMA
        | {"num_hidden_layers": 80, "hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64}
        | {"tie_word_embeddings": False},
        70_553_706_496,
    ),
    "meta-llama/Llama-3.2-1B": (
        LLAMA
        | {"num_hidden_layers": 16, "hidden_size": 2048, "intermediate_size": 8192, "head_dim": 64}
        | {"tie_word_embeddings": True},
        1_235_814_400,
    ),
    "meta-llama/Llama-2-7b": (
        {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32}
        | {"vocab_size": 32000, "tie_word_embeddings": False},
        6_738_415_616,
    ),
    "mistralai/Mistral-7B-v0.1": (
        LLAMA
        | {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 32000}
        | {"tie_word_embeddings": False},
        7_241_732_096,
    ),
}

CARD = ACCELERATORS["H100-SXM"]


def attention_of(model: ModelShape) -> tuple[int, Attention]:
    """How many layers a dense model has, and their attention."""
    count, part = model.parts[0]
    assert isinstance(part, Attention)
    return count, part


LARGE = ModelShape.from_config(PUBLISHED["meta-llama/Llama-3.1-8B"][0])


# C3: affine fit


def timings(seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 33, n), rng.integers(1, 17, n), rng.integers(0, 4000, n)


shapes = st.sampled_from([Chain(1), Chain(4), Chain(12), Batch(5), KAry((3, 2)), KAry((4, 4, 4))])
