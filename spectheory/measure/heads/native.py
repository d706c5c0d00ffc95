"""MTP modules in the checkpoint of a model itself, as a head in the format of speculators."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spectheory.cost.head_config import MARK, NATIVE
from spectheory.errors import ModelError
from spectheory.measure.heads.formats import HeadFiles, Names, Raw
from spectheory.measure.heads.mtp import FED_NORMED, HIDDEN_FIRST, ZERO_FIRST

Source = tuple[Any, str | None]
"""A folder or a name on the hub, and its revision."""


@dataclass(frozen=True)
class _Layout:
    """How a family names the tensors of its MTP modules, and how vLLM reads them.

    `begins` is a pattern of the names with the module's number, which counts on from the model's layers if `counts_on`.
    `parts` are names in the format of speculators by those of the family, `fields` those of
    :class:`~spectheory.measure.heads.mtp.Mtp` that differ from their defaults.
    """

    begins: str
    parts: Mapping[str, str]
    fields: Mapping[str, bool]
    counts_on: bool = False


_QWEN = {"fc": "input_proj", "pre_fc_norm_embedding": "token_layernorm", "pre_fc_norm_hidden": "hidden_layernorm"}
_DEEPSEEK = {"eh_proj": "input_proj", "enorm": "token_layernorm", "hnorm": "hidden_layernorm"}
_LAYOUTS = (
    _Layout(r"mtp\.(?:layers\.(\d+)\.)?", {**_QWEN, "norm": "final_layernorm"}, {}),  # Qwen3-Next, Qwen3.5
    _Layout(  # DeepSeek-V3, GLM-4.5; the last two are copies of the model's matrices
        r"model\.layers\.(\d+)\.",
        {**_DEEPSEEK, "shared_head.norm": "final_layernorm", "shared_head.head": "lm_head"},
        {FED_NORMED: False, ZERO_FIRST: True},
        counts_on=True,
    ),
    _Layout(r"model\.mtp_layers\.(\d+)\.", {}, {HIDDEN_FIRST: True, ZERO_FIRST: True}),  # MiMo
)
_FAMILIES = {"mimo": "qwen2"}
"""Model types that transformers lacks, and the layers that they have."""
_USUAL = 3
"""Drafts of a call by one module where nothing else is asked for: llama.cpp's default of ``--spec-draft-n-max``."""
_SHARED = ("embed_tokens.weight", "lm_head.weight")


def native_source(target: Source, draft: Source) -> Source | None:
    """Where the modules are of the draft ``mtp`` (the target's own) or ``mtp:FOLDER``; None for other drafts."""
    name, revision = str(draft[0]), draft[1]
    if name.startswith(f"{NATIVE}:"):
        if folder := name.removeprefix(f"{NATIVE}:"):
            return folder, revision
        raise ModelError(
            f"the draft is {name!r}",
            limit=f"after {NATIVE}: comes the folder of a checkpoint",
            remedy=f"use {NATIVE} for the target's own modules",
        )
    if name == NATIVE and revision is not None:
        raise ModelError(
            f"revision {revision!r} is given for the draft {NATIVE!r}",
            limit="it is read from the target's checkpoint",
            remedy="give the target's revision",
        )
    return target if name == NATIVE else None


def _native_files(raw: Raw, names: Names, name: str) -> HeadFiles:
    """The MTP modules of a model with these weights."""
    said = raw.get("text_config")
    text: Raw = said if isinstance(said, Mapping) else raw
    for layout in _LAYOUTS:
        tensors = _by_our_names(layout, text, names)
        if "mtp_layers.0.input_proj.weight" in tensors:
            break
    else:
        raise ModelError(
            f"{name!r} has no MTP modules that are known here",
            limit="weights are named mtp.fc (Qwen3-Next, Qwen3.5), model.layers.N.eh_proj (DeepSeek-V3, GLM-4.5) or "
            "model.mtp_layers.0.input_proj (MiMo)",
            remedy=f"use a model with such weights, as {NATIVE}:FOLDER",
        )
    modules = sum(ours.endswith(".input_proj.weight") for ours in tensors)
    fields = {field: text.get(field, layout.fields.get(field, field == FED_NORMED)) for field in _FIELDS}
    family = text.get("model_type")
    config = {
        MARK: "mtp",
        "transformer_layer_config": {**text, "model_type": _FAMILIES.get(str(family), family)},
        "speculators_config": {"proposal_methods": [{"speculative_tokens": modules if modules > 1 else _USUAL}]},
        "num_nextn_predict_layers": modules,
        "_commit_hash": raw.get("_commit_hash"),
        **fields,
    }
    remarks = [f"nothing says how many drafts the MTP module of {name!r} was trained for: {_USUAL} here"]
    if not fields[FED_NORMED]:
        remarks.append(
            f"MTP of {name!r} feeds states back before the last norm, as vLLM; SGLang and transformers feed them after "
            f'it and read the embedding at position 0: "{FED_NORMED}": true and "{ZERO_FIRST}": false in config.json '
            "measure that"
        )
    return HeadFiles(config, tensors, tuple(remarks[modules > 1 :]), assemble=_assembled)


_FIELDS = (FED_NORMED, HIDDEN_FIRST, ZERO_FIRST)


def _by_our_names(layout: _Layout, text: Raw, names: Names) -> dict[str, str]:
    """The names in files of all tensors of MTP modules, by those in the format of speculators."""
    first: Any = text.get("num_hidden_layers") if layout.counts_on else 0
    tensors = {}
    for name in names if type(first) is int else ():
        begin = re.match(layout.begins, name)
        number = int(begin[1] or 0) - first if begin else -1
        if begin and number >= 0:
            rest = name[begin.end() :]
            part = next((part for part in layout.parts if rest.startswith(f"{part}.")), None)
            ours = rest if part is None else layout.parts[part] + rest.removeprefix(part)
            tensors[ours if ours in _SHARED and not number else f"mtp_layers.{number}.{ours}"] = name
    return tensors


_EXPERT = re.compile(r"(.*\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")


def _assembled(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Experts stacked as in transformers' layers, and one embedding and output matrix for all modules."""
    made, experts = dict(weights), defaultdict[str, dict[str, list[Tensor]]](lambda: defaultdict(list))
    for shared in _SHARED:
        for name in [name for name in weights if name.endswith(f".{shared}")]:
            if shared not in weights or not torch.equal(made.pop(name), weights[shared]):
                raise ModelError(
                    f"MTP modules have different {shared}",
                    limit="one matrix is read for all modules",
                    remedy="use a checkpoint whose modules share it",
                )
    named = [each for each in map(_EXPERT.fullmatch, weights) if each]
    for each in sorted(named, key=lambda each: int(each[2])):
        experts[each[1]][each[3]].append(made.pop(each[0]))
    for name, parts in experts.items():
        if len(parts["gate"]) == len(parts["up"]) == len(parts["down"]):
            both = [torch.cat(pair) for pair in zip(parts["gate"], parts["up"], strict=True)]
            made |= {f"{name}.gate_up_proj": torch.stack(both), f"{name}.down_proj": torch.stack(parts["down"])}
    return made
