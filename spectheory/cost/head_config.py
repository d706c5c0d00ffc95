"""C3: the sizes of a draft head, read from its configuration in the format of speculators."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as brief
from typing import Any

from spectheory.cost.config import checked, layers_of, shape_of
from spectheory.cost.fields import Config
from spectheory.cost.layers import Attention, LatentAttention, Part
from spectheory.errors import SettingError

MARK = "speculators_model_type"
"""The field that says a configuration is a head's, and of which kind."""
NATIVE = "mtp"
"""The draft's name that means the MTP modules of the target's own checkpoint; ``mtp:FOLDER`` are those of another."""
LAYER_FIELDS = {
    "eagle3": "eagle_aux_hidden_state_layer_ids",
    "peagle": "eagle_aux_hidden_state_layer_ids",
    **dict.fromkeys(("dflash", "dspark", "domino"), "aux_hidden_state_layer_ids"),
    "mtp": None,
}
"""Kinds whose sizes are known, and the field that names the hidden states of the target; MTP reads the last one."""
_USUAL = 3
"""Hidden states that an EAGLE-3 head reads where its configuration names none."""
_RANK = 256
"""Rank of a DSpark head's bias where its configuration names none."""


def head_shape_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of :class:`~spectheory.cost.ModelShape` except the bytes, with ``vocabulary`` what it can draft.

    The embeddings are the target's: a pass reads a few of their rows.
    """
    kind, block = values[MARK], values.get("transformer_layer_config")
    if not isinstance(kind, str) or kind not in LAYER_FIELDS or not isinstance(block, Mapping):
        raise SettingError(
            f"the config is of a head of kind {brief(kind)}",
            limit=f"known are {', '.join(LAYER_FIELDS)} with a transformer_layer_config",
            remedy="measure latencies, or fit spectheory.cost.AffineTime to timings",
        )
    config = checked({**block, "vocab_size": values.get("draft_vocab_size") or block.get("vocab_size")})
    layers = layers_of(config)
    if kind == "mtp":  # the configuration is the target's, and the head one layer like its last one of full attention
        full = [layer for layer in layers if any(isinstance(p, Attention | LatentAttention) for p in layer)]
        layers = (full or layers)[-1:]
    shape, head = shape_of(config, layers), Config(values)
    hidden, drafted = shape["hidden"], shape["vocabulary"]
    of_target = head.size("target_hidden_size", hidden)
    beside = _wider(kind, hidden, layers) + _corrections(kind, head, hidden, drafted)
    fusion = _fused(kind, values, hidden, of_target) + beside
    return shape | {"tied": True, "window": None, "fusion": fusion}  # the window of the target counts


def _fused(kind: str, config: Mapping[str, Any], hidden: int, of_target: int) -> int:
    """Weights that join hidden states of the target into one."""
    field = LAYER_FIELDS[kind]
    layers = None if field is None else config.get(field)
    if layers is not None and not isinstance(layers, list):
        raise SettingError(f"{field} is {brief(layers)}", limit="needs a list of layers", remedy="check the config")
    read = 2 if field is None else len(layers or range(_USUAL))
    return read * of_target * hidden


def _wider(kind: str, hidden: int, layers: list[list[Part]]) -> int:
    """Weights by which the first layer of an EAGLE-3 head attends to an embedding beside the state."""
    first = layers[0][0]
    wide = kind in ("eagle3", "peagle") and isinstance(first, Attention)
    return hidden * first.head_dim * (first.heads + 2 * first.kv_heads) if wide and isinstance(first, Attention) else 0


def _corrections(kind: str, head: Config, hidden: int, drafted: int) -> int:
    """Weights that correct a draft of a DSpark or Domino head by the tokens before it.

    Drafts are corrected one after the other, and read them again; here a pass reads them once.
    """
    if kind == "domino":
        memory, inner = head.size("gru_hidden_dim"), head.size("emb_dim")
        return 3 * memory * (hidden + memory) + inner * (hidden + memory + drafted)
    if kind != "dspark" or head.values.get("markov_rank") == 0:
        return 0
    rank = head.size("markov_rank", _RANK)
    mixing = {"gated": hidden + rank, "rnn": 3 * (2 * rank + hidden)}.get(str(head.get("markov_head_type")), 0)
    return rank * (drafted + mixing)
