"""C3: reading the sizes of a draft head from its ``config.json`` in the format of speculators."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as brief
from typing import Any

from spectheory.cost.config_file import shape_in, size_in
from spectheory.errors import SettingError

MARK = "speculators_model_type"
"""The field that says a configuration is a head's, and of which kind."""
LAYER_FIELDS = {
    "eagle3": "eagle_aux_hidden_state_layer_ids",
    "peagle": "eagle_aux_hidden_state_layer_ids",
    "dflash": "aux_hidden_state_layer_ids",
    "mtp": None,
}
"""Kinds whose sizes are known, and the field that names the hidden states of the target; MTP reads the last one."""
_USUAL = 3
"""Hidden states that an EAGLE-3 head reads where its configuration names none."""


def head_shape_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of :class:`~spectheory.cost.ModelShape` except the bytes, with ``vocabulary`` what it can draft.

    The embeddings are the target's: a pass reads a few of their rows.
    """
    kind, block = config[MARK], config.get("transformer_layer_config")
    if not isinstance(kind, str) or kind not in LAYER_FIELDS or not isinstance(block, Mapping):
        raise SettingError(
            f"the config is of a head of kind {brief(kind)}",
            limit=f"known are {', '.join(LAYER_FIELDS)} with a transformer_layer_config",
            remedy="measure latencies, or fit AffineTime to timings",
        )
    sizes = shape_in({**block, "vocab_size": config.get("draft_vocab_size") or block.get("vocab_size")})
    if kind == "mtp":  # the configuration is the target's, and the head one layer like its
        sizes["layers"] = 1
    of_target = size_in(config, "target_hidden_size") if config.get("target_hidden_size") else sizes["hidden"]
    return sizes | {"tied": True, "fusion": _fused(kind, config, sizes["hidden"], of_target) + _wider(kind, sizes)}


def _fused(kind: str, config: Mapping[str, Any], hidden: int, of_target: int) -> int:
    """Weights that join hidden states of the target into one."""
    field = LAYER_FIELDS[kind]
    layers = None if field is None else config.get(field)
    if layers is not None and not isinstance(layers, list):
        raise SettingError(f"{field} is {brief(layers)}", limit="needs a list of layers", remedy="check the config")
    read = 2 if field is None else len(layers or range(_USUAL))
    return read * of_target * hidden


def _wider(kind: str, sizes: Mapping[str, Any]) -> int:
    """Weights by which the first layer of an EAGLE-3 head attends to an embedding beside the state."""
    wide = kind in ("eagle3", "peagle")
    return int(sizes["hidden"] * sizes["head_dim"] * (sizes["heads"] + 2 * sizes["kv_heads"])) if wide else 0
