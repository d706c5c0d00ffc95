"""How much of everything `on_gpu.py` runs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from spectheory.drafting import Chain, KAry, Shape


@dataclass(frozen=True)
class Sizes:
    """Numbers of a run.

    Attributes
    ----------
    prompts, tokens : int
        Of the texts that are compared with each other.
    validated, characters, length : int
        Prompts of the validation, their characters, and tokens of the texts after them.
    temperatures, shapes : tuple
        Of the validation.
    target, draft : dict
        Sizes of the large pair, by the names of transformers' LlamaConfig.
    contexts, widths : tuple of int
        Tokens in the caches, and tokens of a pass.
    repeats, warm_up : int
        Rounds of measured passes.
    budgets : tuple of float
        Seconds for latencies and loop.
    decoded : int
        Tokens of a text that the large pair samples and reads.
    positions : int
        Positions of random logits whose columns are computed.
    """

    prompts: int
    tokens: int
    validated: int
    length: int
    temperatures: tuple[float, ...]
    target: dict[str, Any]
    draft: dict[str, Any]
    contexts: tuple[int, ...] = (128, 2048)
    widths: tuple[int, ...] = (1, 2, 4, 5, 8, 16, 32, 64)
    repeats: int = 15
    warm_up: int = 3
    budgets: tuple[float, ...] = (5.0, 20.0, 60.0)
    decoded: int = 32
    positions: int = 256
    characters: int = 400
    shapes: tuple[Shape, ...] = (Chain(1), Chain(3), KAry((2, 2, 1)))


def llama(layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int, **more: Any) -> dict[str, Any]:
    """Sizes of a Llama by transformers' names."""
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": hidden // heads,
        "max_position_embeddings": 4096,
        "vocab_size": 128256,
        **more,
    }


TARGET_8B = llama(32, 4096, 14336, 32, 8)
DRAFT_HALF_B = llama(24, 1024, 4096, 16, 8, tie_word_embeddings=True)
QUICK = Sizes(
    prompts=4, tokens=48, validated=4, length=32, temperatures=(0.0, 0.7, 1.0), target=TARGET_8B, draft=DRAFT_HALF_B
)
FULL = dataclasses.replace(QUICK, prompts=12, tokens=128, validated=16, length=96, repeats=40, decoded=96)
TINY = Sizes(
    prompts=2,
    tokens=4,
    validated=2,
    characters=30,
    length=4,
    temperatures=(1.0,),
    shapes=(Chain(2), KAry((2, 1))),
    target=llama(2, 32, 64, 2, 2, vocab_size=64),
    draft=llama(1, 16, 32, 2, 1, vocab_size=64),
    contexts=(16, 40),
    widths=(1, 4),
    repeats=6,
    warm_up=1,
    budgets=(0.1,),
    decoded=6,
    positions=4,
)
SIZES = {"tiny": TINY, "quick": QUICK, "full": FULL}
