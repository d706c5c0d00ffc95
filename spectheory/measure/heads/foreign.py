"""Heads in formats that are not read: recognised by their config.json, before anything else of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMES = ("eagle", "dflash", "dspark", "domino", "medusa", "mlpspeculator", "nextn", "draftmodel")
"""Parts of the names of architectures that are heads, in lower case and without underscores."""
_FIELDS = (
    "eagle_config",
    "dflash_config",
    "dspark_config",
    "domino_config",
    "markov_rank",
    "markov_head_type",
    "eagle_aux_hidden_state_layer_ids",
    "aux_hidden_state_layer_ids",
    "target_layer_ids",
    "target_hidden_size",
    "draft_vocab_size",
    "medusa_num_heads",
    "num_target_layers",
)
"""Fields of a config.json that heads have and language models do not."""
_LAYERS = "eagle_aux_hidden_state_layer_ids"


def foreign_head(raw: Mapping[str, Any]) -> str | None:
    """What says that a configuration is a head's: an architecture or a field; None of a language model's."""
    listed = raw.get("architectures")
    for name in listed if isinstance(listed, list) else ():
        if any(part in str(name).lower().replace("_", "") for part in _NAMES):
            return str(name)
    return next((field for field in _FIELDS if raw.get(field) is not None), None)


def conversion(raw: Mapping[str, Any], said: str) -> str:
    """What to do with such a head: speculators converts EAGLE-3 and z-lab's DFlash, and no other format.

    It drops the layers that an EAGLE-3 head names unless they are given: the head would read others. Its ids count the
    embeddings as 0, and those of SpecForge and ModelOpt the output of the first layer.
    """
    name = said.lower()
    if "eagle3" in name and "peagle" not in name:
        nested = raw.get("eagle_config")
        ids = raw.get(_LAYERS) or (nested.get(_LAYERS) if isinstance(nested, Mapping) else None)
        said = "convert it with 'speculators convert --algorithm eagle3'"
        if not isinstance(ids, list) or not all(type(layer) is int for layer in ids):
            return said
        given = f"--algorithm-kwargs '{{\"{_LAYERS}\": {[layer + 1 for layer in ids]}}}'"
        return f"{said} and {given}, which drops the layers otherwise (the {ids} of the file start at the first layer)"
    if name.startswith("dflash") and "dflash_config" in raw:
        return "convert it with 'speculators convert --algorithm dflash'"
    return "use a head in the format of speculators"
