"""Tiny random models of the families whose checkpoints have MTP modules, as their authors save them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file

from spectheory.measure.model_files import quiet

SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "tie_word_embeddings": False,
}
HYBRID: dict[str, Any] = {
    "head_dim": 8,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
EXPERTS: dict[str, Any] = {"num_experts_per_tok": 2, "moe_intermediate_size": 16}
ROUTED: dict[str, Any] = {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, **EXPERTS}
LATENT: dict[str, Any] = {"q_lora_rank": 16, "kv_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4}
CONFIGS: dict[str, dict[str, Any]] = {
    "qwen3_next": {**HYBRID, **EXPERTS, "num_experts": 4, "shared_expert_intermediate_size": 16},
    "qwen3_5_text": HYBRID,
    "deepseek_v3": {**ROUTED, **LATENT, "v_head_dim": 8, "num_key_value_heads": 4},
    "glm4_moe": {**ROUTED, "head_dim": 8, "use_qk_norm": True},
    "qwen2": {"vocab_size": 65},
}
"""`qwen2` is MiMo, whose layers are Qwen2's (transformers has no name for it); its tokenizer adds a token."""
QWEN = {"input_proj": "fc", "token_layernorm": "pre_fc_norm_embedding", "hidden_layernorm": "pre_fc_norm_hidden"}
QWEN |= {"final_layernorm": "norm"}
DEEPSEEK = {"input_proj": "eh_proj", "token_layernorm": "enorm", "hidden_layernorm": "hnorm"}
DEEPSEEK |= {"final_layernorm": "shared_head.norm"}


def named(family: str, module: int, name: str) -> str:
    """The name of a module's tensor in a checkpoint of the family."""
    part, _, rest = name.partition(".")
    if family.startswith("qwen3"):
        return f"mtp.{QWEN[part]}.{rest}" if part in QWEN else f"mtp.layers.{module}.{name}"
    if family == "qwen2":
        return f"model.mtp_layers.{module}.{name}"
    return f"model.layers.{SIZES['num_hidden_layers'] + module}.{DEEPSEEK.get(part, part)}.{rest}"


def save_native(save_model: Callable[..., Path], folder: Path, family: str, modules: int = 1, **fields: Any) -> Path:
    """A model with its MTP modules; `fields` are further ones of its config.json."""
    save_model(folder)  # its tokenizer stays
    config = transformers.AutoConfig.for_model(family, **{**SIZES, **CONFIGS[family]})
    with quiet(), torch.random.fork_rng():
        torch.manual_seed(len(family) + 1)
        model = transformers.AutoModelForCausalLM.from_config(config)
        for parameter in model.parameters():  # norms that are all ones would hide a missing norm
            parameter.data += 0.2 * torch.randn(parameter.shape) * (parameter.dim() == 1)
        model.save_pretrained(folder)
        weights = load_file(folder / "model.safetensors")
        width, last = config.hidden_size, f"model.layers.{config.num_hidden_layers - 1}."
        for module in range(modules):
            parts = {name.removeprefix(last): value for name, value in weights.items() if name.startswith(last)}
            parts = {name: value + 0.1 * torch.randn(value.shape) for name, value in parts.items()}
            parts["input_proj.weight"] = torch.randn(width, 2 * width) / width**0.5
            for norm in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
                parts[f"{norm}.weight"] = 1 + 0.3 * torch.randn(width)
            weights |= {named(family, module, name): value.contiguous() for name, value in parts.items()}
            if named(family, module, "x").startswith("model.layers."):
                layer = f"model.layers.{config.num_hidden_layers + module}."
                weights[f"{layer}embed_tokens.weight"] = weights["model.embed_tokens.weight"].clone()
                weights[f"{layer}shared_head.head.weight"] = weights["lm_head.weight"].clone()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    raw = json.loads((folder / "config.json").read_text()) | {"num_nextn_predict_layers": modules, **fields}
    (folder / "config.json").write_text(json.dumps(raw))
    return folder


def save_near(folder: Path) -> Path:
    """Change the weights so that some drafts are right: layers add little, and modules hand the embedding on."""
    weights = load_file(folder / "model.safetensors")
    for name, value in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight", "out_proj.weight")):
            weights[name] = 0.06 * value
        elif name.endswith(("eh_proj.weight", "mtp.fc.weight")):
            weights[name] = 0.15 * value + torch.eye(*value.shape)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder
