"""Draft heads in other formats than that of speculators: how they are recognised, and how they are converted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from spectheory.errors import ModelError

_ARCHITECTURES = ("eagle", "dflash", "dspark", "domino", "medusa", "speculator", "draftmodel", "mtp", "nextn")
"""Parts of the names of heads' architectures, in small letters."""
_FIELDS = (
    "eagle_config",
    "dflash_config",
    "draft_vocab_size",
    "target_layer_ids",
    "markov_rank",
    "medusa_num_heads",
)
"""Fields of config.json that heads have and models do not."""
_WEIGHTS = ("fc.", "midlayer.", "d2t", "t2d", "markov_head.", "confidence_head.", "eagle_module.", "medusa_head.")
"""How weights begin that heads have and models do not."""
_EAGLE3, _DFLASH = "eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids"
"""Fields of the format of speculators that name the hidden states of the target."""
_NORM = "norm_before_residual"
_LAYER = (
    *(f"self_attn.{part}_proj" for part in "qkvo"),
    *(f"mlp.{part}_proj" for part in ("gate", "up", "down")),
    "input_layernorm",
    "hidden_norm",
    "post_attention_layernorm",
)
_COPIED = {f"layers.0.{part}.weight" for part in _LAYER} | {"fc.weight", "norm.weight", "lm_head.weight"}
_COPIED_IF_THERE = {"embed_tokens.weight", "d2t", "t2d"}
"""Weights of EAGLE-3 heads that ``speculators convert`` copies; it drops others, and fills gaps with random numbers."""


def sign_of_head(raw: Mapping[str, Any], weights: Iterable[str]) -> str | None:
    """What shows that a folder with this config.json and these names of weights holds a head; None for a model."""
    named = next((a for a in _architectures(raw) if any(part in a.lower() for part in _ARCHITECTURES)), None)
    if named:
        return named
    field = next((field for field in _FIELDS if raw.get(field) is not None), None)
    if field:
        return f"its config.json has {field}"
    weight = min((name for name in weights if name.startswith(_WEIGHTS)), default=None)
    return f"it has the weights {weight!r}" if weight else None


def refuse_head(source: str | Path, raw: Mapping[str, Any], sign: str, weights: Iterable[str] | None) -> None:
    """Refuse a head in another format; the remedy is a command where speculators 0.9 converts the format.

    `weights` are names as far as known; None if they are in several files, which the command does not take.
    """
    options = None if weights is None else _conversion(raw, weights)
    command = options and f"speculators convert {shlex.quote(str(source))} {options}"
    raise ModelError(
        f"{str(source)!r} is a head ({sign}) in another format",
        limit="heads are read in the format of speculators",
        remedy=f"convert it first: {command}" if command else "use a head in the format of speculators",
    )


def _conversion(raw: Mapping[str, Any], weights: Iterable[str]) -> str | None:
    """Options of ``speculators convert``; None for what it does not take, or would change.

    Its arguments say what it does not read in the configuration: the layers and `norm_before_residual` of an EAGLE-3
    head, and the last layer that a DFlash head reads. It counts layers by their inputs. `dflash_config` counts outputs,
    one less, and so does an `eagle_config` that begins with 1; others of these are counted in either way.
    """
    names = " ".join(_architectures(raw)).lower()
    eagle, dflash = raw.get("eagle_config") or {}, raw.get("dflash_config") or {}
    if not isinstance(eagle, Mapping) or not isinstance(dflash, Mapping):
        return None
    if dflash:
        other = "dspark" in names or dflash.get("projector_type") not in (None, "dflash")
        layers = _layers(dflash.get("target_layer_ids"), 1)
        sized = raw.get("block_size") or dflash.get("block_size")
        return None if other or not sized or layers is None else _options("dflash", {_DFLASH: layers})
    unnamed = not any(part in names for part in _ARCHITECTURES)
    if not ("eagle3" in names or unnamed) or eagle.get("use_aux_hidden_state") is False:
        return None
    if not _one_llama_layer(raw, {name.replace("midlayer.", "layers.0.") for name in weights}):
        return None
    said: dict[str, Any] = {_NORM: True} if raw.get(_NORM) else {}
    if eagle.get(_EAGLE3) or raw.get(_EAGLE3):
        layers = _layers(eagle[_EAGLE3], 1) if eagle.get(_EAGLE3) else _layers(raw[_EAGLE3], 0)
        if layers is None or len(layers) != 3 or (eagle.get(_EAGLE3) and layers[0] != 2):
            return None
        said = {_EAGLE3: layers, **said}
    return _options("eagle3", said)


def _one_llama_layer(raw: Mapping[str, Any], weights: set[str]) -> bool:
    """Whether an EAGLE-3 head is what the command makes of any: a layer of Llama, its rope under the older names."""
    plain = raw.get("model_type", "llama") == "llama" and raw.get("num_hidden_layers", 1) == 1
    complete = not weights or _COPIED <= weights <= _COPIED | _COPIED_IF_THERE
    return plain and complete and raw.get("draft_vocab_size") is not None and not raw.get("rope_parameters")


def _options(algorithm: str, said: Mapping[str, Any]) -> str:
    argument = f" --algorithm-kwargs {shlex.quote(json.dumps(said))}" if said else ""
    return f"--algorithm {algorithm} --verifier TARGET{argument}"


def _architectures(raw: Mapping[str, Any]) -> list[str]:
    listed = raw.get("architectures")
    return [str(name) for name in listed] if isinstance(listed, list) else []


def _layers(said: Any, more: int) -> list[int] | None:
    if not isinstance(said, list) or not said or any(type(layer) is not int for layer in said):
        return None
    return [layer + more for layer in said]
