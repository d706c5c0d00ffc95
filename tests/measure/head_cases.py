"""Heads as their authors save them, with random weights, and each network written out once more, from its tensors.

The plain networks know the formats by their own documents: names of tensors, layers counted by outputs, positions. They
run in float64 and have no cache: every start is a pass of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

V, WIDTH, LAYERS, DEPTH, PAIRS = 64, 32, 8, 3, 7
"""Sizes of the target, drafts of a call, and pairs of the text."""
DRAFTED = 24
WIDE = {"hidden_size": WIDTH, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
NARROW = {"hidden_size": 24, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 40}
LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "vocab_size": V,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 128,
}
QWEN3 = LLAMA | {"model_type": "qwen3", "head_dim": 8, "layer_types": ["full_attention"], "rope_theta": 1e6}
BLOCKS = ("dflash", "dspark", "domino")
IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True)
class Case:
    """A head: config.json, the network, which states of transformers it reads, tensors beside those of its layers."""

    raw: Mapping[str, Any]
    network: str
    states: tuple[int, ...]
    kind: str
    layer: str = "layers.0"
    target_has: tuple[str, ...] = ("embed_tokens", "lm_head")
    beside: tuple[str, ...] = ()
    file: str = "model.safetensors"
    trained: int = 7
    more: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


MODELOPT = {"use_aux_hidden_state": True, "use_input_layernorm_in_first_layer": True, "use_last_layernorm": True}
MODELOPT |= {"use_mtp_layernorm": False, "next_layer_regular": True, "parallel_draft_step": 1, IDS: [1, 3, 4]}
EAGLE3 = {**LLAMA, **WIDE, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": DRAFTED}
OF_DFLASH = {"mask_token_id": 5, "target_layer_ids": [1, 3, 5]}
DFLASH = {**QWEN3, **WIDE, "architectures": ["DFlashDraftModel"], "block_size": 5, "num_target_layers": LAYERS}
DEEPSPEC = {**QWEN3, **WIDE, "target_layer_ids": [1, 2, 3, 4, 5], "num_target_layers": LAYERS}
RANK, INNER, GRU = 6, 10, 7
MARKOV = {"markov_w1.weight": (V, RANK), "markov_w2.weight": (V, RANK)}
GATED = MARKOV | {"gate_proj.weight": (RANK, WIDTH + RANK), "gate_proj.bias": (RANK,)}
JOINT = MARKOV | {"joint_proj.weight": (3 * RANK, 2 * RANK + WIDTH), "joint_proj.bias": (3 * RANK,)}
DOMINO = {"prefix_gru.weight_ih_l0": (3 * GRU, WIDTH), "prefix_gru.weight_hh_l0": (3 * GRU, GRU)}
DOMINO |= {"embed_proj.0.weight": (INNER, WIDTH + GRU), "embed_proj.2.weight": (V, INNER)}
NET = {"projector_type": "domino", "emb_dim": INNER, "gru_hidden_dim": GRU, **OF_DFLASH}
PICKLE = "pytorch_model.bin"
CASES = {
    "EAGLE-1 of its authors": Case(
        {**LLAMA, **WIDE, "architectures": ["LlamaForCausalLM"], "torch_dtype": "float16", "pretraining_tp": 1},
        *("eagle1", (-1,), "eagle"),
        beside=("fc.bias", "embed_tokens"),
        target_has=("lm_head",),
        file=PICKLE,
        trained=5,
    ),
    "EAGLE-1 with biases of queries": Case(
        {**LLAMA, **WIDE, "model_type": "qwen2", "bias": False, "qkv_bias": True, "num_hidden_layers": 2},
        *("eagle1", (-1,), "eagle"),
        beside=("q_proj.bias",),
        trained=5,
    ),
    "EAGLE-3 of its authors": Case(
        {**EAGLE3, "architectures": ["LlamaForCausalLM"], "max_sequence_length": 2048},
        *("eagle3", (2, 4, 5), "eagle3", "midlayer", ("embed_tokens",)),
        beside=("lm_head", "d2t", "t2d"),
        file=PICKLE,
    ),
    "EAGLE-3 of SpecForge, narrower than its target": Case(
        {**EAGLE3, **NARROW, "draft_vocab_size": V, "target_hidden_size": WIDTH, "eagle_config": {IDS: [0, 3, 6]}},
        *("eagle3", (1, 4, 7), "eagle3", "midlayer", ()),
        beside=("embed_tokens", "lm_head", "d2t", "t2d"),
    ),
    "EAGLE-3 of ModelOpt": Case(
        {**EAGLE3, "eagle_config": MODELOPT, "rope_theta": 5e5, "rope_scaling": None},
        *("eagle3", (2, 4, 5), "eagle3", "layers.0", ("embed_tokens",)),
        beside=("lm_head", "d2t"),
    ),
    "EAGLE-3 of ModelOpt with all tokens": Case(
        {**EAGLE3, "eagle_config": MODELOPT | {IDS: [1, 3, 6]}, "draft_vocab_size": V, "num_hidden_layers": 2},
        *("eagle3", (2, 4, 7), "eagle3", "layers.0", ("embed_tokens",)),
        beside=("lm_head",),
    ),
    "EAGLE-3 with ids beside, as vLLM counts": Case(
        {**EAGLE3, IDS: [1, 3, 6], "norm_before_residual": True, "fc_norm": True},
        *("eagle3", (1, 3, 6), "eagle3", "layers.0", ("embed_tokens",)),
        beside=("lm_head", "d2t", "t2d"),
    ),
    "EAGLE-3 of DeepSpec": Case(
        {**DEEPSPEC, "architectures": ["Qwen3Eagle3Model"], "ttt_length": 4, "step_loss_decay": 0.8},
        *("eagle3", (2, 3, 4, 5, 6), "eagle3", "layers.0", ()),
        beside=("embed_tokens", "lm_head"),
        trained=4,
    ),
    "P-EAGLE of SpecForge": Case(
        {**EAGLE3, "architectures": ["PEagleDraftModel"], "num_hidden_layers": 2, "mask_token_id": 9},
        *("peagle", (2, 4, 5), "peagle", "layers.0", ()),
        beside=("embed_tokens", "lm_head", "d2t", "t2d", "mask_hidden"),
        trained=8,
    ),
    "DFlash of z-lab": Case(
        {**DFLASH, "dflash_config": OF_DFLASH, "num_hidden_layers": 2, "layer_types": ["full_attention"] * 2},
        *("dflash", (2, 4, 6), "dflash"),
        trained=4,
    ),
    "DFlash of ModelOpt": Case(
        {
            **DFLASH,
            "dflash_config": OF_DFLASH | {"causal": False, "target_layer_ids": [-1, 0, 5]},
            "rope_scaling": None,
        },
        *("dflash", (0, 1, 6), "dflash"),
        trained=4,
    ),
    "DFlash of z-lab with windows": Case(
        {**DFLASH, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
        | {"dflash_config": OF_DFLASH, "sliding_window": 5, "use_sliding_window": True, "max_window_layers": 2},
        *("dflash", (2, 4, 6), "dflash"),
        trained=4,
    ),
    "DFlash of ModelOpt with windows": Case(
        {**DFLASH, "dflash_config": OF_DFLASH | {"use_swa": True, "swa_window_size": 6, "causal": False}},
        *("dflash", (2, 4, 6), "dflash"),
        trained=4,
    ),
    "DFlash of DeepSpec": Case(
        {**DEEPSPEC, "architectures": ["Qwen3DSparkModel"], "block_size": 5, "mask_token_id": 5, "num_anchors": 8}
        | {"markov_rank": 0, "enable_confidence_head": False},
        *("dflash", (2, 3, 4, 5, 6), "dflash", "layers.0", ()),
        beside=("embed_tokens", "lm_head"),
        trained=5,
    ),
    "DSpark of DeepSpec": Case(
        {**DEEPSPEC, "architectures": ["Qwen3DSparkModel"], "block_size": 4, "mask_token_id": 5, "num_anchors": 8}
        | {"markov_rank": RANK, "markov_head_type": "gated"}
        | {"enable_confidence_head": True, "confidence_head_with_markov": True},
        *("dspark", (2, 3, 4, 5, 6), "dspark", "layers.0", ()),
        beside=("embed_tokens", "lm_head"),
        trained=4,
        more={f"markov_head.{name}": shape for name, shape in GATED.items()}
        | {"confidence_head.proj.weight": (1, WIDTH + RANK), "confidence_head.proj.bias": (1,)},
    ),
    "DSpark of SpecForge": Case(
        {**DFLASH, "architectures": ["DSparkDraftModel"], "block_size": 4}
        | {"dflash_config": OF_DFLASH | {"projector_type": "dspark", "markov_rank": RANK, "attention_mode": "gqa"}}
        | {"confidence_head_alpha": 1.0},
        *("dspark", (2, 4, 6), "dspark"),
        trained=4,
        more={f"logit_head.markov_head.{name}": shape for name, shape in MARKOV.items()}
        | {"logit_head.confidence_head.proj.weight": (1, WIDTH), "logit_head.confidence_head.proj.bias": (1,)},
    ),
    "DSpark of ModelOpt": Case(
        {**DFLASH, "block_size": 4}
        | {"dflash_config": OF_DFLASH | {"projector_type": "dspark", "markov_rank": RANK, "markov_head_type": "rnn"}}
        | {"shift_label": True, "use_confidence_head": True},
        *("dspark", (2, 4, 6), "dspark"),
        trained=4,
        more=JOINT | {"confidence_proj.weight": (1, WIDTH + RANK), "confidence_proj.bias": (1,)},
    ),
    "Domino of SpecForge": Case(
        {**DFLASH, "architectures": ["DominoDraftModel"], "dflash_config": NET | {"pure_draft_prefix_len": 1}},
        *("domino", (2, 4, 6), "domino"),
        trained=4,
        more={f"logit_head.{name}": shape for name, shape in DOMINO.items()},
    ),
    "Domino of ModelOpt": Case(
        {**DFLASH, "dflash_config": NET | {"shift_label": True, "causal": False}, "emb_dim": INNER, "block_size": 4},
        *("domino", (2, 4, 6), "domino"),
        trained=4,
        more=DOMINO,
    ),
}


# Weights by the names of their authors


def tensors_of(case: Case, seed: int = 0) -> dict[str, Tensor]:
    """Random tensors, norms not all ones: a missing norm would not be seen."""
    raw, generator = case.raw, torch.Generator().manual_seed(seed)
    width, heads, groups = raw["hidden_size"], raw["num_attention_heads"], raw["num_key_value_heads"]
    dim, inner, drafted = raw.get("head_dim", width // heads), raw["intermediate_size"], raw.get("draft_vocab_size", V)
    read = len(case.states) * WIDTH
    shapes: dict[str, tuple[int, ...]] = {"fc.weight": (width, 2 * width if case.network == "eagle1" else read)}
    for i in range(raw["num_hidden_layers"]):
        at = case.layer.replace("0", str(i))
        wide = 2 * width if i == 0 and case.network in ("eagle3", "peagle") else width
        for part, out in (("q", heads * dim), ("k", groups * dim), ("v", groups * dim)):
            shapes[f"{at}.self_attn.{part}_proj.weight"] = (out, wide)
            if "q_proj.bias" in case.beside:
                shapes[f"{at}.self_attn.{part}_proj.bias"] = (out,)
            if raw["model_type"] == "qwen3" and part != "v":
                shapes[f"{at}.self_attn.{part}_norm.weight"] = (dim,)
        shapes[f"{at}.self_attn.o_proj.weight"] = (width, heads * dim)
        shapes |= {f"{at}.mlp.{part}_proj.weight": (inner, width) for part in ("gate", "up")}
        shapes[f"{at}.mlp.down_proj.weight"] = (width, inner)
        shapes[f"{at}.post_attention_layernorm.weight"] = (width,)
        if case.network != "eagle1" or i:
            shapes[f"{at}.input_layernorm.weight"] = (width,)
        if i == 0 and case.network in ("eagle3", "peagle"):
            shapes[f"{at}.hidden_norm.weight"] = (width,)
    shapes |= {} if case.network == "eagle1" else {"norm.weight": (width,)}
    shapes |= {"hidden_norm.weight": (width,)} if case.network in BLOCKS else {}
    shapes |= {f"fc_norm.{i}.weight": (WIDTH,) for i in range(3)} if raw.get("fc_norm") else {}
    more = {"fc.bias": (width,), "mask_hidden": (1, 1, read)}
    shapes |= {name: shape for name, shape in more.items() if name in case.beside}
    sizes = {"embed_tokens": (V, width), "lm_head": (drafted, width)}
    shapes |= {f"{name}.weight": shape for name, shape in sizes.items() if name in case.beside}
    shapes |= case.more
    tensors = {name: torch.randn(shape, generator=generator) / shape[-1] ** 0.5 for name, shape in shapes.items()}
    tensors |= {
        name: 1 + 0.3 * torch.randn(t.shape, generator=generator) for name, t in tensors.items() if "norm" in name
    }
    ids = torch.randperm(V, generator=generator)[:drafted].sort().values
    pruned = {"d2t": ids - torch.arange(drafted), "t2d": torch.zeros(V, dtype=torch.bool).index_fill(0, ids, True)}
    return tensors | {name: tensor for name, tensor in pruned.items() if name in case.beside}


def saved(folder: Path, case: Case, tensors: Mapping[str, Tensor], **changes: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**case.raw, **changes}))
    if case.file == PICKLE:
        torch.save(dict(tensors), folder / case.file)
    else:
        save_file(dict(tensors), folder / case.file, metadata={"format": "pt"})
    return folder


# The networks from their papers and their authors' code, one start at a time


def normed(x: Tensor, weight: Tensor) -> Tensor:
    return weight * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()


def turned(x: Tensor, positions: Tensor, theta: float) -> Tensor:
    """Rotary positions by complex numbers, whose parts are the two halves of a head."""
    real, imaginary = x.chunk(2, dim=-1)
    angle = positions[:, None, None] / theta ** (torch.arange(real.shape[-1], dtype=x.dtype) / real.shape[-1])
    z = torch.complex(real, imaginary) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([z.real, z.imag], dim=-1)


class Plain:
    """Networks over cells ``[n, width]``: attention of all cells at once."""

    def __init__(self, case: Case, tensors: Mapping[str, Tensor], target: Any) -> None:
        model = target.model
        self.w = {name: tensor.double() for name, tensor in tensors.items()}
        self.w.setdefault("embed_tokens.weight", model.embed_tokens.weight.detach().double())
        self.ids = torch.arange(case.raw.get("draft_vocab_size", V)) + tensors.get("d2t", torch.tensor(0))
        self.w.setdefault("lm_head.weight", target.lm_head.weight.detach().double()[self.ids])
        self.case, self.raw = case, case.raw

    def layer(
        self, i: int, x: Tensor, reads: Tensor, positions: Tensor, seen: Tensor, context: Tensor | None
    ) -> Tensor:
        """Outputs of cells x, whose attention reads `reads`, to the cells `seen`, after those of a context."""
        at, heads = self.case.layer.replace("0", str(i)), self.raw["num_attention_heads"]
        both = reads if context is None else torch.cat([context, reads])
        rows = torch.arange(len(both)) + (positions[-1] + 1 - len(both))

        def parts(name: str, x: Tensor) -> Tensor:
            y = x @ self.w[f"{at}.self_attn.{name}_proj.weight"].T + self.w.get(f"{at}.self_attn.{name}_proj.bias", 0)
            count = heads if name == "q" else self.raw["num_key_value_heads"]
            y = y.view(len(x), count, -1)
            norm = self.w.get(f"{at}.self_attn.{name}_norm.weight")
            return (y if norm is None else normed(y, norm)).repeat_interleave(heads // count, dim=1)

        theta = self.raw.get("rope_theta", 1e4)
        q, k = turned(parts("q", reads), positions, theta), turned(parts("k", both), rows, theta)
        scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
        share = scores.masked_fill(~seen, -torch.inf).softmax(-1)
        out = torch.einsum("hqk,khd->qhd", share, parts("v", both)).flatten(1)
        x = x + out @ self.w[f"{at}.self_attn.o_proj.weight"].T
        y = normed(x, self.w[f"{at}.post_attention_layernorm.weight"])
        gate, up = (y @ self.w[f"{at}.mlp.{part}_proj.weight"].T for part in ("gate", "up"))
        return x + (gate.sigmoid() * gate * up) @ self.w[f"{at}.mlp.down_proj.weight"].T

    def cells(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Outputs of cells that each see those before, from states and tokens."""
        embedded, positions = self.w["embed_tokens.weight"][tokens], torch.arange(len(tokens))
        seen = positions[:, None] >= positions
        if self.case.network == "eagle1":
            x = torch.cat([embedded, x], dim=-1) @ self.w["fc.weight"].T + self.w.get("fc.bias", 0)
        for i in range(self.raw["num_hidden_layers"]):
            at, reads = self.case.layer.replace("0", str(i)), x
            norm = self.w.get(f"{at}.input_layernorm.weight")
            if i == 0 and self.case.network != "eagle1":
                y = normed(x, self.w[f"{at}.hidden_norm.weight"])
                reads, x = torch.cat([normed(embedded, norm), y], -1), y if self.raw.get("norm_before_residual") else x
            elif norm is not None:
                reads = normed(x, norm)
            x = self.layer(i, x, reads, positions, seen, reads[:0])
        return x

    def fused(self, hidden: Tensor) -> Tensor:
        """States of the target's hidden states."""
        if self.case.network == "eagle1":
            return hidden
        if self.raw.get("fc_norm"):
            hidden = torch.cat(
                [normed(h, self.w[f"fc_norm.{i}.weight"]) for i, h in enumerate(hidden.chunk(3, -1))], -1
            )
        return hidden @ self.w["fc.weight"].T

    def block(self, hidden: Tensor, token: int) -> Tensor:
        """Outputs of the slots of a DFlash block after a context."""
        n, size = len(hidden), self.raw["block_size"]
        context = normed(self.fused(hidden), self.w["hidden_norm.weight"])
        ids = torch.tensor([token, *[5] * (size - 1)])
        x, at = self.w["embed_tokens.weight"][ids], n + torch.arange(size)
        said = {**self.raw, **self.raw.get("dflash_config", {})}
        for i in range(self.raw["num_hidden_layers"]):
            reads = normed(x, self.w[f"layers.{i}.input_layernorm.weight"])
            seen = torch.ones(size, n + size, dtype=torch.bool)
            if said.get("use_swa"):  # the slot's own position counts, and later ones of its block are seen
                seen = torch.arange(n + size) > at[:, None] - said["swa_window_size"]
            elif said["layer_types"][i] == "sliding_attention":
                seen = torch.arange(n + size) > at[:, None] - said["sliding_window"]
                seen &= torch.arange(n + size) <= at[:, None]
            x = self.layer(i, x, reads, at, seen, context)
        from_anchor = said.get("shift_label") or self.case.network == "dspark"
        return x if from_anchor or "Qwen3DSparkModel" in self.raw["architectures"] else x[1:]

    def corrections(self, outputs: Tensor, tokens: Tensor) -> Tensor:
        """What is added to the logits of drafts, from the outputs of their slots and the tokens before them."""
        parts = {name.rpartition("_head.")[2]: tensor for name, tensor in self.w.items()}
        said = {**self.raw, **self.raw.get("dflash_config", {})}
        s, g, more = torch.zeros(RANK).double(), torch.zeros(GRU).double(), []
        for i, (z, token) in enumerate(zip(outputs, tokens, strict=True)):
            if self.case.network == "dspark":
                mixed = before = parts["markov_w1.weight"][token]
                if "gate_proj.bias" in parts:
                    gate = parts["gate_proj.weight"] @ torch.cat([z, before]) + parts["gate_proj.bias"]
                    mixed = gate.sigmoid() * before
                if "joint_proj.bias" in parts:
                    joint = parts["joint_proj.weight"] @ torch.cat([s, before, z]) + parts["joint_proj.bias"]
                    gate, new, out = joint[:RANK].sigmoid(), joint[RANK : 2 * RANK].tanh(), joint[2 * RANK :]
                    s, mixed = gate * s + (1 - gate) * new, out.tanh()
                more.append(parts["markov_w2.weight"] @ mixed)
            else:
                into = parts["prefix_gru.weight_ih_l0"] @ self.w["embed_tokens.weight"][token]
                back = parts["prefix_gru.weight_hh_l0"] @ g
                reset, update = ((into + back)[part * GRU : (part + 1) * GRU].sigmoid() for part in (0, 1))
                g = (1 - update) * (into[2 * GRU :] + reset * back[2 * GRU :]).tanh() + update * g
                inner = parts["embed_proj.0.weight"] @ torch.cat([z, g])
                net = parts["embed_proj.2.weight"] @ (inner.sigmoid() * inner)
                more.append(net if i >= said.get("pure_draft_prefix_len", 0) else 0 * net)
        return torch.stack(more)

    def drafts(self, hidden: Tensor, text: Tensor) -> Tensor:
        """Logits ``[DEPTH, V]`` after hidden states ``[n, ...]`` and text of n + DEPTH tokens."""
        n = len(hidden)
        if self.case.network in BLOCKS:
            outputs = self.block(hidden, int(text[n]))[:DEPTH]
        elif self.case.network == "peagle":
            masks = self.w["mask_hidden"][0].expand(DEPTH - 1, -1)
            tokens = torch.cat([text[1 : n + 1], torch.full((DEPTH - 1,), self.raw["mask_token_id"])])
            outputs = self.cells(self.fused(torch.cat([hidden, masks])), tokens)[n - 1 :]
        else:
            x = self.fused(hidden)
            for i in range(DEPTH):  # the state after the last cell is that of the next draft
                outputs = self.cells(x, text[1 : n + 1 + i])
                x = torch.cat([x, outputs[-1:]])
            outputs = x[n:]
        outputs = outputs if self.case.network == "eagle1" else normed(outputs, self.w["norm.weight"])
        logits = torch.full((DEPTH, V), -torch.inf, dtype=torch.float64)
        logits[:, self.ids] = outputs @ self.w["lm_head.weight"].T
        if self.case.network in ("dspark", "domino"):
            logits += self.corrections(outputs, text[n : n + DEPTH])
        return logits
