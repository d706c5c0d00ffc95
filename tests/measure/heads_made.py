"""Heads with random weights in the format of speculators, and their networks written out once more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.load import HEADS

V, WIDTH, LAYERS = 64, 32, 2
"""Of the tiny target of conftest."""
DRAFTED = 24


def config_of(kind: str, block: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """config.json of a head for a target of the sizes above."""
    layers = {
        "model_type": "qwen3",
        "vocab_size": V,
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 8,
        "intermediate_size": 48,
        "max_position_embeddings": 128,
        **(block or {}),
    }
    method = {"proposal_type": "greedy", "speculative_tokens": 4}
    named = HEADS[kind].layer_field
    return {
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        **({"draft_vocab_size": V} if kind != "mtp" else {}),
        "transformer_layer_config": layers,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [method],
            "verifier": {"name_or_path": "somewhere/target", "architectures": ["LlamaForCausalLM"]},
        },
        **({named: [2, 0, 1]} if named else {}),
        **({"norm_before_residual": False} if "norm_before_residual" in HEADS[kind].fields else {}),
        **({"mask_token_id": 3} if "mask_token_id" in HEADS[kind].fields else {}),
        **fields,
    }


def made_head(raw: dict[str, Any], seed: int = 0) -> CheckpointHead:
    """A head of that configuration, every weight random: norms that are all ones would hide a missing norm."""
    kind = HEADS[raw["speculators_model_type"]]
    config = kind.configured(raw, "made")
    head = kind(config, config.layers or kind.default_layers(LAYERS), final_norm=None)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            spread = 0.3 if parameter.dim() == 1 else 1.0 / parameter.shape[-1] ** 0.5
            parameter.copy_((1.0 if parameter.dim() == 1 else 0.0) + spread * noise)
    if config.drafted != V:
        head.draft_only(torch.randperm(V, generator=generator)[: config.drafted].sort().values)
    return head.eval()


def save_head(folder: Path, head: CheckpointHead, raw: dict[str, Any], *, without: tuple[str, ...] = ()) -> Path:
    """Save a head as speculators does, some of its tensors left out."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(raw))
    tensors = {name: value.contiguous() for name, value in head.weights().items() if name not in without}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def made_text(head: CheckpointHead, pairs: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states of some pairs, and the ids of the text, one more."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(pairs, len(head.layers) * WIDTH, generator=generator)
    return hidden, torch.randint(0, V, (pairs + 1,), generator=generator)


Floats = NDArray[np.float64]


class Twin:
    """A head's network from the tensors of its checkpoint and its config.json."""

    def __init__(self, weights: Mapping[str, Any], raw: Mapping[str, Any]) -> None:
        self.w = {name: np.asarray(value, float) for name, value in weights.items()}
        self.raw, self.block = raw, raw["transformer_layer_config"]
        self.mtp = raw.get("speculators_model_type", "mtp") == "mtp"
        self.layers = 1 if self.mtp else int(self.block["num_hidden_layers"])
        self.normed, self.module = raw.get("mtp_fed_normed", True), 0

    def drafts(self, hidden: Any, following: Sequence[int], drafted: Sequence[int]) -> Floats:
        """Logits ``[1 + drafted, V]`` after the last pair, and after each drafted token below it."""
        seen: list[list[tuple[Floats, Floats]]] = [[] for _ in range(self.layers)]
        state, logits = np.zeros(0), []
        for place, token in enumerate([*following, *drafted]):
            before = self._fused(np.asarray(hidden[place], float)) if place < len(following) else state
            state = self._cell(before, self.w["embed_tokens.weight"][token], place + (not self.mtp), seen)
            if place >= len(following) - 1:
                logits.append(self._logits(state))
        return np.array(logits)

    def _norm(self, name: str, x: Floats) -> Floats:
        return self.w[f"{name}.weight"] * x / np.sqrt((x * x).mean() + self.block.get("rms_norm_eps", 1e-6))

    def _fused(self, hidden: Floats) -> Floats:
        if self.mtp:
            return hidden
        if self.raw.get("norm_before_fc"):
            hidden = self._norm("input_norm", hidden)
        if self.raw.get("fc_norm"):
            parts = np.split(hidden, len(hidden) // self.block["hidden_size"])
            hidden = np.concatenate([self._norm(f"fc_norm.{i}", part) for i, part in enumerate(parts)])
        return self.w["fc.weight"] @ hidden

    def _cell(self, state: Floats, embedded: Floats, position: int, seen: Any) -> Floats:
        """The state of one cell, which sees all cells before it."""
        if self.mtp:
            name = f"mtp_layers.{self.module}"
            embedded = 0 * embedded if self.raw.get("mtp_zero_first") and position == 0 else embedded
            both = [self._norm(f"{name}.token_layernorm", embedded), self._norm(f"{name}.hidden_layernorm", state)]
            both = both[::-1] if self.raw.get("mtp_hidden_states_first") else both
            x = self.w[f"{name}.input_proj.weight"] @ np.concatenate(both)
            x = self._rest(name, x, self._norm(f"{name}.input_layernorm", x), position, seen[0])
            return self._norm(f"{name}.final_layernorm", x) if self.normed else x
        x = state
        for i in range(self.layers):
            name, reads = f"layers.{i}", x
            if i == 0:
                normed = self._norm(f"{name}.hidden_norm", x)
                x = normed if self.raw.get("norm_before_residual") else x
                reads = np.concatenate([self._norm(f"{name}.input_layernorm", embedded), normed])
            else:
                reads = self._norm(f"{name}.input_layernorm", x)
            x = self._rest(name, x, reads, position, seen[i])
        return self._norm("norm", x) if self.raw.get("norm_output") else x

    def _rest(self, name: str, x: Floats, reads: Floats, position: int, seen: list[tuple[Floats, Floats]]) -> Floats:
        """Attention over all cells so far, then the gated feed-forward network."""
        x = x + self._attended(f"{name}.self_attn", reads, position, seen)
        y = self._norm(f"{name}.post_attention_layernorm", x)
        gate, up = self.w[f"{name}.mlp.gate_proj.weight"] @ y, self.w[f"{name}.mlp.up_proj.weight"] @ y
        return x + self.w[f"{name}.mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * up)

    def _attended(self, name: str, reads: Floats, position: int, seen: list[tuple[Floats, Floats]]) -> Floats:
        width, heads = self.block["head_dim"], self.block["num_attention_heads"]
        q, k, v = (self.w[f"{name}.{part}_proj.weight"] @ reads for part in "qkv")
        queries = [self._turned(f"{name}.q_norm", each, position) for each in q.reshape(-1, width)]
        keys = np.stack([self._turned(f"{name}.k_norm", each, position) for each in k.reshape(-1, width)])
        seen.append((keys, v.reshape(-1, width)))
        shared = heads // self.block["num_key_value_heads"]
        out = []
        for head, query in enumerate(queries):
            scores = np.array([query @ cell[0][head // shared] for cell in seen]) / np.sqrt(width)
            share = np.exp(scores - scores.max())
            out.append(share / share.sum() @ np.array([cell[1][head // shared] for cell in seen]))
        return self.w[f"{name}.o_proj.weight"] @ np.concatenate(out)

    def _turned(self, norm: str, x: Floats, position: int) -> Floats:
        """One head's query or key, normed where the family has it (qwen3), turned by its position."""
        x = self._norm(norm, x) if f"{norm}.weight" in self.w else x
        half = len(x) // 2
        angle = position / self.block.get("rope_theta", 10_000.0) ** (np.arange(half) / half)
        one, other = x[:half], x[half:]
        turned = [one * np.cos(angle) - other * np.sin(angle), other * np.cos(angle) + one * np.sin(angle)]
        return np.concatenate(turned)

    def _logits(self, state: Floats) -> Floats:
        """-inf for ids that the head cannot draft."""
        last = f"mtp_layers.{self.module}.final_layernorm" if self.mtp else "norm"
        normed = state if (self.normed if self.mtp else self.raw.get("norm_output")) else self._norm(last, state)
        logits = self.w["lm_head.weight"] @ normed
        if "d2t" not in self.w:
            return logits
        full = np.full(len(self.w["t2d"]), -np.inf)
        full[(np.arange(len(logits)) + self.w["d2t"]).astype(int)] = logits
        return full


class ModulesTwin(Twin):
    """Module m reads the states of the module before it at every pair, with the token m places further."""

    def drafts(self, hidden: Any, following: Sequence[int], drafted: Sequence[int]) -> Floats:
        """Logits ``[1 + drafted, V]`` after the last pair, by one module after the other."""
        states, tokens, logits = list(np.asarray(hidden, float)), [*following, *drafted], []
        for self.module in range(1 + len(drafted)):
            seen: list[list[tuple[Floats, Floats]]] = [[]]
            states = [
                self._cell(states[row], self.w["embed_tokens.weight"][tokens[row + self.module]], row, seen)
                for row in range(len(following))
            ]
            logits.append(self._logits(states[-1]))
        return np.array(logits)


class PEagleTwin(Twin):
    """Mask tokens are cells like pairs: each sees all cells before it."""

    def drafts(self, hidden: Any, following: Sequence[int], drafted: Sequence[int]) -> Floats:
        """Logits ``[1 + drafted, V]`` after the last pair and after a mask token for each draft, whatever it is."""
        seen: list[list[tuple[Floats, Floats]]] = [[] for _ in range(self.layers)]
        masks = len(drafted)
        read = [*np.asarray(hidden, float)[: len(following)], *[self.w["mask_hidden"][0, 0]] * masks]
        ids = [*following, *[self.raw["mask_token_id"]] * masks]
        states = [
            self._cell(self._fused(each), self.w["embed_tokens.weight"][token], place, seen)
            for place, (each, token) in enumerate(zip(read, ids, strict=True))
        ]
        return np.array([self._logits(state) for state in states[len(following) - 1 :]])


class DFlashTwin(Twin):
    """Each slot of the block sees the hidden states before the anchor, and the block's other slots."""

    def drafts(self, hidden: Any, following: Sequence[int], drafted: Sequence[int]) -> Floats:
        """Logits ``[1 + drafted, V]`` of the block after the last pair, whatever was drafted."""
        logits = [self._logits(x) for x in self.block_after(hidden, following)]
        return np.array(logits if self.raw.get("sample_from_anchor") else logits[1:])[: len(drafted) + 1]

    def block_after(self, hidden: Any, following: Sequence[int]) -> list[Floats]:
        """What each slot of the block after the last pair gives, before the last norm."""
        anchor, size = len(following), self.raw["block_size"]
        context = [self._norm("hidden_norm", self._fused(each)) for each in np.asarray(hidden, float)[:anchor]]
        ids = [following[-1], *[self.raw["mask_token_id"]] * (size - 1)]
        slots = [self.w["embed_tokens.weight"][token] for token in ids]
        for i in range(self.layers):
            name = f"layers.{i}"
            slides = "layer_types" in self.block and self.block["layer_types"][i] == "sliding_attention"
            first = max(0, anchor - self.block["sliding_window"]) if slides else 0
            causal = slides and not self.raw.get("sliding_window_non_causal", False)
            reads = [self._norm(f"{name}.input_layernorm", x) for x in slots]
            before = [self._kept(name, x, place) for place, x in enumerate(context)][first:]
            inside = [self._kept(name, x, anchor + j) for j, x in enumerate(reads)]
            slots = [
                self._rest(name, x, reads[j], anchor + j, before + inside[:j] + ([] if causal else inside[j + 1 :]))
                for j, x in enumerate(slots)
            ]
        return slots

    def _kept(self, name: str, x: Floats, position: int) -> tuple[Floats, Floats]:
        """Key and value of a cell."""
        width, attention = self.block["head_dim"], f"{name}.self_attn"
        k, v = ((self.w[f"{attention}.{part}_proj.weight"] @ x).reshape(-1, width) for part in "kv")
        return np.stack([self._turned(f"{attention}.k_norm", each, position) for each in k]), v


TWINS: dict[str, type[Twin]] = {"peagle": PEagleTwin, "dflash": DFlashTwin}
