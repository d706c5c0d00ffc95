"""P-EAGLE and DFlash in plain numpy: one start at a time, one cell after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.measure.heads_twin import Floats, Twin


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
        logits = [self._logits(x) for x in slots]
        return np.array(logits if self.raw.get("sample_from_anchor") else logits[1:])[: len(drafted) + 1]

    def _kept(self, name: str, x: Floats, position: int) -> tuple[Floats, Floats]:
        """Key and value of a cell."""
        width, attention = self.block["head_dim"], f"{name}.self_attn"
        k, v = ((self.w[f"{attention}.{part}_proj.weight"] @ x).reshape(-1, width) for part in "kv")
        return np.stack([self._turned(f"{attention}.k_norm", each, position) for each in k]), v


TWINS: dict[str, type[Twin]] = {"peagle": PEagleTwin, "dflash": DFlashTwin}
