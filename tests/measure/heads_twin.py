"""EAGLE-3 and MTP heads in plain numpy: one cell after the other, every formula written out, float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Twin:
    """A head's network from the tensors of its checkpoint and its config.json."""

    def __init__(self, weights: Mapping[str, Any], raw: Mapping[str, Any]) -> None:
        self.w = {name: np.asarray(value, float) for name, value in weights.items()}
        self.raw, self.block = raw, raw["transformer_layer_config"]
        self.mtp = raw["speculators_model_type"] == "mtp"
        self.layers = 1 if self.mtp else int(self.block["num_hidden_layers"])

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
            name = "mtp_layers.0"
            both = [self._norm(f"{name}.token_layernorm", embedded), self._norm(f"{name}.hidden_layernorm", state)]
            x = self.w[f"{name}.input_proj.weight"] @ np.concatenate(both)
            x = self._rest(name, x, self._norm(f"{name}.input_layernorm", x), position, seen[0])
            return self._norm(f"{name}.final_layernorm", x)
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
        normed = state if self.mtp or self.raw.get("norm_output") else self._norm("norm", state)
        logits = self.w["lm_head.weight"] @ normed
        if "d2t" not in self.w:
            return logits
        full = np.full(len(self.w["t2d"]), -np.inf)
        full[(np.arange(len(logits)) + self.w["d2t"]).astype(int)] = logits
        return full
