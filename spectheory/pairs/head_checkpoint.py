"""The checkpoint of a trained head, in the format of speculators."""

from __future__ import annotations

import json
from pathlib import Path

from safetensors.torch import save_file
from transformers import LlamaForCausalLM

from spectheory.pairs.dense_heads import DenseDFlash, DenseHead, HeadShape
from spectheory.pairs.train import VOCABULARY, WINDOW

ARCHITECTURES = {"eagle3": "Eagle3DraftModel", "dflash": "DFlashDraftModel"}
WITH_MATRICES = ("eagle3",)
"""Checkpoints with copies of the target's two matrices: speculators 0.9 fills missing ones with random numbers."""


def save(head: DenseHead, kind: str, target: LlamaForCausalLM, folder: Path, facts: dict[str, object]) -> None:
    """Write weights in half precision, the configuration and the facts of the training run."""
    partial = folder.with_name(folder.name + ".partial")
    partial.mkdir(parents=True)
    weights = {name: weight.half().contiguous() for name, weight in head.state_dict().items()}
    if kind in WITH_MATRICES:
        for name, matrix in (
            ("embed_tokens", target.get_input_embeddings()),
            ("lm_head", target.get_output_embeddings()),
        ):
            weights[f"{name}.weight"] = matrix.weight.half()
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    mask = head.mask if isinstance(head, DenseDFlash) else None
    for name, content in (("config", configuration(head.shape, kind, mask)), ("training", facts)):
        (partial / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    partial.rename(folder)


def configuration(shape: HeadShape, kind: str, mask: int | None) -> dict[str, object]:
    """The checkpoint's config.json."""
    own: dict[str, object] = {
        "eagle_aux_hidden_state_layer_ids": list(shape.reads),
        "norm_before_residual": True,
    }
    if mask is not None:
        own = {
            "aux_hidden_state_layer_ids": list(shape.reads),
            "block_size": shape.drafts + 1,
            "mask_token_id": mask,
        }
    return {
        "architectures": [ARCHITECTURES[kind]],
        "draft_vocab_size": VOCABULARY,
        "dtype": "float16",
        **own,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": shape.drafts}],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "builtin:target"},
        },
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "tie_word_embeddings": False,
        "transformer_layer_config": {
            "attention_bias": False,
            "head_dim": shape.per_head,
            "hidden_act": "silu",
            "hidden_size": shape.width,
            "intermediate_size": shape.feed_forward,
            "max_position_embeddings": WINDOW,
            "model_type": "llama" if mask is None else "qwen3",
            "num_attention_heads": shape.heads,
            "num_hidden_layers": shape.layers,
            "num_key_value_heads": 1,
            "rms_norm_eps": shape.eps,
            "rope_parameters": {"rope_theta": shape.theta, "rope_type": "default"},
            "tie_word_embeddings": False,
            "vocab_size": VOCABULARY,
        },
    }
