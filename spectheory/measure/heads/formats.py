"""Formats of draft heads: by which architecture and weights each is known, and what it is in the format of speculators.

A format is one :class:`Format`: whether a folder holds it, and a function that writes its ``config.json`` as
speculators would, with the name of each tensor in its files. What follows (sizes, missing and unknown weights, layers
of the target) is checked for all of them in :mod:`spectheory.measure.heads.load`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any

import transformers
from torch import Tensor

from spectheory.cost.head_config import LAYER_FIELDS, MARK
from spectheory.errors import ModelError
from spectheory.measure.heads.checkpoint import FAMILIES

Raw = Mapping[str, Any]
"""A config.json."""
Names = Collection[str]
"""Names of the weights of a folder."""


@dataclass(frozen=True)
class HeadFiles:
    """A head as speculators would have saved it.

    `config` is its config.json, `tensors` the name in its files of each tensor of the network, those that the network
    does not know among them, `remarks` are sentences for the user. `assemble` makes the network's tensors of those.
    """

    config: Raw
    tensors: Mapping[str, str]
    remarks: tuple[str, ...] = ()
    assemble: Callable[[dict[str, Tensor]], dict[str, Tensor]] = dict


@dataclass(frozen=True)
class Format:
    """A format of heads.

    `title`, `writers` and `sign` say in words what it is, who writes it and by what it is known. `fits` decides by
    config.json and the names of the weights; `read` takes the head's name too, and refuses in one line what has no
    place in the format of speculators.
    """

    title: str
    writers: str
    sign: str
    fits: Callable[[Raw, Names], bool]
    read: Callable[[Raw, Names, str], HeadFiles]


def _architectures(raw: Raw) -> str:
    """The architectures that a config.json names, in small letters."""
    listed = raw.get("architectures")
    return " ".join(map(str, listed)).lower() if isinstance(listed, list) else ""


def their_names(names: Names, **prefixes: str) -> dict[str, str]:
    """Names in files by those in the format of speculators, which differ in `prefixes`, as ``midlayer="layers.0"``."""
    first = {name: name.partition(".")[0] for name in names}
    return {(prefixes.get(each, each) + name.removeprefix(each)).lstrip("."): name for name, each in first.items()}


def after_outputs(listed: Any, field: str, name: str) -> list[int] | None:
    """Ids of hidden states where `listed` counts the outputs of layers from 0: one more; -1 are the embeddings."""
    if listed is None or listed == []:
        return None
    if not isinstance(listed, list) or any(type(each) is not int for each in listed):
        raise _unreadable(name, f"{field} = {brief(listed)}", "it must be a list of whole numbers")
    return [each + 1 for each in listed]


def _part(raw: Raw, field: str, name: str) -> Raw:
    """A group of fields of config.json; empty where it has none."""
    value = raw.get(field)
    if value is not None and not isinstance(value, Mapping):
        raise _unreadable(name, f"{field} = {brief(value)}", "it must hold fields")
    return value or {}


_ELSEWHERE = {
    *("_commit_hash", "_name_or_path", "architectures", "auto_map", "dtype", "model_type", "num_target_layers"),
    *("rope_scaling", "rope_theta", "sliding_window", "use_sliding_window", "max_window_layers", "use_cache"),
    *("draft_vocab_size", "target_model_name_or_path", "torch_dtype", "transformers_version", "pretraining_tp"),
    "max_sequence_length",
}
"""Fields that change no network, or are read by their name."""


def as_speculators(
    kind: str,
    raw: Raw,
    name: str,
    tensors: Mapping[str, str],
    *,
    family: str,
    trained: int | None,
    usual: int | None = None,
    layers: list[int] | None = None,
    known: Collection[str] = (),
    remarks: tuple[str, ...] = (),
    **fields: Any,
) -> HeadFiles:
    """A config.json of one level as the format of speculators has it.

    `family` is the family of its layers, `trained` the drafts of a call, or None where the file does not say it: then
    `usual` is what its training code takes. `layers` are the hidden states read, `fields` those of the kind; `known`
    are fields that were looked at. A remark names fields that nobody knows.
    """
    block = {field: value for field, value in raw.items() if field not in known and field not in fields}
    expected = transformers.AutoConfig.for_model(family).to_dict().keys() | _ELSEWHERE
    unknown = sorted(field for field, value in block.items() if field not in expected and value not in (None, False))
    if unknown:
        remarks += (f"config.json of the head {name!r} has fields that are not known here: {', '.join(unknown)}",)
    if trained is None:
        remarks += (
            f"config.json of the head {name!r} does not say how many drafts it was trained for; {usual} are assumed",
        )
    elif type(trained) is not int or trained < 1:
        raise _unreadable(name, f"{brief(trained)} drafts of a call", "it must be a whole number of at least 1")
    layer_field = LAYER_FIELDS.get(kind)
    fields |= {layer_field: layers} if layer_field and layers else {}
    method = {"proposal_type": "greedy", "speculative_tokens": usual if trained is None else trained}
    config = {
        MARK: kind,
        "transformer_layer_config": {**block, "model_type": family},
        "draft_vocab_size": raw.get("draft_vocab_size"),
        "speculators_config": {
            "default_proposal_method": "greedy",
            "proposal_methods": [method],
            "verifier": {"name_or_path": raw.get("target_model_name_or_path")},
        },
        "_commit_hash": raw.get("_commit_hash"),
        **fields,
    }
    return HeadFiles(config, tensors, remarks)


def _unreadable(name: str, what: str, limit: str, remedy: str = "save or download the head again") -> ModelError:
    return ModelError(f"{name!r}: config.json has {what}", limit=limit, remedy=remedy)


def _switched(field: str, value: Any, name: str) -> ModelError:
    limit = "it makes another network, which is not read"
    return _unreadable(name, f"{field} = {brief(value)}", limit, "use a head without it")


def _is_set(value: Any) -> bool:
    """Whether a field switches something on."""
    return value is not None and value is not False and value != 0


# speculators


SPECULATORS = Format(
    "speculators",
    "speculators",
    f"`{MARK}` in `config.json`",
    lambda raw, names: MARK in raw,
    lambda raw, names, name: HeadFiles(raw, their_names(names)),
)


# EAGLE-1 and EAGLE-3: the authors' repository, SpecForge, ModelOpt, DeepSpec


_IDS = "eagle_aux_hidden_state_layer_ids"
_UNROLLED = 7
"""Steps of EAGLE-3's training where config.json does not say: the default of its authors' code and of SpecForge."""
_TREE = 5
"""Drafts of a call of EAGLE-1, whose training has one step: the depth of its authors' trees."""
_OF_MODELOPT = {
    **dict.fromkeys(("use_aux_hidden_state", "use_input_layernorm_in_first_layer", "use_last_layernorm"), True),
    **{"next_layer_regular": True, "use_mtp_layernorm": False, "parallel_draft_step": 1},
}
"""Switches of `eagle_config` as the network has them."""
_MASKS = ("mask_token_id", "pard_token", "ptd_token_id")
"""Names of the mask token of P-EAGLE, as vLLM reads them."""
_TRAINING = ("num_anchors", "step_loss_decay", "draft_num_hidden_layers", "num_target_layers")
"""Fields for training alone."""
_DEPTHS = 8
"""Depths of P-EAGLE's training where config.json does not say: SpecForge's default."""


def _family_of(raw: Raw, names: Names, name: str) -> str:
    """The family of layers of an EAGLE head, by its weights: whatever the target, most say llama."""
    if str(raw.get("model_type", "llama")) not in FAMILIES:
        what = f"layers of the family {brief(raw['model_type'])}"
        raise _unreadable(name, what, f"those of {', '.join(FAMILIES)} are read", "use a head with such layers")
    ends = {each.partition("self_attn.")[2] for each in names}
    if "q_norm.weight" in ends:
        return "qwen3"
    return "qwen2" if "q_proj.bias" in ends and "o_proj.bias" not in ends else "llama"


def _eagle3(raw: Raw, names: Names, name: str) -> HeadFiles:
    """`eagle_config` and `target_layer_ids` count outputs; the field beside, as in vLLM, what layers read."""
    eagle = _part(raw, "eagle_config", name)
    read = (_IDS, "parallel_draft_heads_num_layers")
    odd = [f for f, v in eagle.items() if f not in read and v is not None and v != _OF_MODELOPT.get(f, False)]
    if odd:
        raise _switched(f"eagle_config.{odd[0]}", eagle[odd[0]], name)
    if raw.get("norm_output") is not None:
        limit = "in SpecForge it is the norm before the output matrix, in vLLM that of the state fed back"
        raise _unreadable(name, "norm_output", limit, "save the head in the format of speculators")
    counted = after_outputs(eagle.get(_IDS) or raw.get("target_layer_ids"), f"eagle_config.{_IDS}", name)
    if counted and raw.get(_IDS) not in (None, [], counted):
        limit = f"{_IDS} beside it counts hidden states and gives {brief(raw[_IDS])}"
        raise _unreadable(name, f"eagle_config for the hidden states {counted}", limit, "correct the file")
    remark = (
        f"eagle_config of the head {name!r} counts outputs of layers: hidden states {counted} are read, as in training "
        "and in SGLang; vLLM adds no one to these ids"
    )
    parallel = "mask_hidden" in names or "peagle" in _architectures(raw)
    mask = {"mask_token_id": _mask_of(raw, name)} if parallel else {}
    switches = ("norm_before_residual", "norm_before_fc", "fc_norm")
    return as_speculators(
        "peagle" if parallel else "eagle3",
        raw,
        name,
        their_names(names, midlayer="layers.0"),
        family=_family_of(raw, names, name),
        trained=raw.get("num_depths") if parallel else raw.get("ttt_length"),
        usual=_DEPTHS if parallel else _UNROLLED,
        layers=counted or raw.get(_IDS),
        known={"eagle_config", _IDS, "target_layer_ids", "num_depths", "ttt_length", *_MASKS, *_TRAINING},
        remarks=(remark,) if eagle.get(_IDS) else (),
        target_hidden_size=raw.get("target_hidden_size"),
        **{field: raw.get(field) or False for field in switches},
        **mask,
    )


def _mask_of(raw: Raw, name: str) -> Any:
    fields = {**raw, **_part(raw, "dflash_config", name)}
    mask = next((fields[field] for field in _MASKS if fields.get(field) is not None), None)
    if mask is None:
        limit = "a P-EAGLE head drafts from mask tokens, and SpecForge keeps their id in its training settings alone"
        raise _unreadable(name, "no mask_token_id", limit, "add the id of the training to config.json")
    return mask


def _eagle1(raw: Raw, names: Names, name: str) -> HeadFiles:
    bias = raw.get("bias")
    return as_speculators(
        "eagle",
        raw,
        name,
        their_names(names),
        family=_family_of(raw, names, name),
        trained=None,
        usual=_TREE,
        known={"bias", "qkv_bias"},
        fusion_bias="fc.bias" in names if bias is None else bias,
    )


def _is_eagle3(raw: Raw, names: Names) -> bool:
    named = any(part in _architectures(raw) for part in ("eagle3", "peagle"))
    return named or any(name.endswith((".hidden_norm.weight", "mask_hidden")) for name in names)


def _is_eagle1(raw: Raw, names: Names) -> bool:
    first = any(name.startswith("layers.0.self_attn.") for name in names)
    return "eagle" in _architectures(raw) or ("fc.weight" in names and first and "norm.weight" not in names)


EAGLE3 = Format(
    "EAGLE-3, P-EAGLE",
    "SafeAILab/EAGLE, SpecForge, ModelOpt, DeepSpec",
    "an architecture with `Eagle3` or `PEagle`, or a `hidden_norm` in the first layer",
    _is_eagle3,
    _eagle3,
)
EAGLE1 = Format(
    "EAGLE-1, EAGLE-2",
    "SafeAILab/EAGLE",
    "an architecture with `Eagle`, or `fc` and `layers.0` without `norm`",
    _is_eagle1,
    _eagle1,
)


# DFlash: z-lab, SpecForge, ModelOpt, DeepSpec


_CONFIDENCE = ("enable_confidence_head", "confidence_head_with_markov")


_OF_MODULES = {part: f"markov_head.{part}" for part in ("markov_w1", "markov_w2", "gate_proj", "joint_proj")}
"""ModelOpt saves these without the name of their module; older files of SpecForge have another module around all."""
_OF_MODULES |= {"confidence_proj": "confidence_head.proj", "logit_head": ""}


def dflash_files(
    kind: str,
    raw: Raw,
    names: Names,
    name: str,
    *,
    from_anchor: bool,
    fields: Mapping[str, str] | None = None,
    known: Collection[str] = (),
) -> HeadFiles:
    """A head of a DFlash backbone whose fields are in `dflash_config` or beside it, layers counted by their outputs.

    `from_anchor` is whether the anchor's slot drafts too; `fields` are further fields of the kind, with their names in
    the file, left out where it does not say them; `known` are fields that change no draft. A switch in `dflash_config`
    that nobody reads is refused: it makes another network.
    """
    said = _part(raw, "dflash_config", name)
    read = {"mask_token_id": "mask_token_id", "block_size": "block_size", **(fields or {})}
    taken = {*read.values(), "target_layer_ids", "projector_type", "use_swa", "swa_window_size", "causal", *known}
    odd = sorted(field for field, value in said.items() if field not in taken and _is_set(value))
    if odd:
        raise _switched(f"dflash_config.{odd[0]}", said[odd[0]], name)
    raw, windows = _windows(raw, said, name)
    values = {ours: said.get(theirs, raw.get(theirs)) for ours, theirs in read.items()}
    values = {ours: value for ours, value in values.items() if value is not None or ours not in (fields or {})}
    size = values["block_size"]
    return as_speculators(
        kind,
        raw,
        name,
        their_names(names, **_OF_MODULES),
        family="qwen3",
        trained=size - (not from_anchor) if type(size) is int else 1,
        layers=after_outputs(said.get("target_layer_ids", raw.get("target_layer_ids")), "target_layer_ids", name),
        known={"dflash_config", "is_causal", *taken, "markov_rank", "markov_head_type", *_CONFIDENCE, *_TRAINING},
        **{"sample_from_anchor": from_anchor, **windows, **values},
    )


_SLIDES = "sliding_attention"


def _windows(raw: Raw, said: Raw, name: str) -> tuple[Raw, dict[str, bool]]:
    """Layers with a window as Qwen3's configuration names them, and the fields that say what their slots see.

    A window counts from each slot. Slots of such layers see those before alone; all of their block where `use_swa` of
    `dflash_config` gives every layer the window, or `causal` says so. This is the training of SpecForge and ModelOpt,
    and what vLLM and SGLang run.
    """
    kinds, block = raw.get("layer_types"), said.get("block_size", raw.get("block_size"))
    slides = _SLIDES in kinds if isinstance(kinds, list) else _is_set(raw.get("use_sliding_window"))
    every = _is_set(said.get("use_swa")) and not slides
    causal = said.get("causal") if raw.get("is_causal") is None else raw["is_causal"]
    if causal and not (isinstance(kinds, list) and set(kinds) == {_SLIDES}):
        raise _switched("causal", causal, name)
    if not slides and not every:
        return raw, {}
    size = raw.get("sliding_window") if said.get("swa_window_size") is None else said["swa_window_size"]
    if type(size) is int and type(block) is int and size < block:
        limit = f"a block has {block} slots, of which training and engines then show others to each other"
        raise _unreadable(name, f"a sliding window of {size}", limit, "use a head whose window holds a block")
    layers = {"layer_types": [_SLIDES] * int(raw.get("num_hidden_layers") or 0)} if every else {}
    free = every if causal is None else not causal
    fields = {"sliding_window_by_slot": True, "sliding_window_non_causal": free}
    return {**raw, **layers, "sliding_window": size, "use_sliding_window": True}, fields


def _dflash(raw: Raw, names: Names, name: str) -> HeadFiles:
    """DeepSpec trains DFlash as its DSpark without a Markov head: the anchor's slot drafts."""
    return dflash_files("dflash", raw, names, name, from_anchor="dspark" in _architectures(raw))


def projector_of(raw: Raw) -> Any:
    """What a head of a DFlash backbone has beside it, by `dflash_config`; None where it does not say."""
    said = raw.get("dflash_config")
    return said.get("projector_type") if isinstance(said, Mapping) else None


def _is_dflash(raw: Raw, names: Names) -> bool:
    said, projector = raw.get("dflash_config"), projector_of(raw)
    more = any(_is_set(raw.get(field)) for field in ("markov_rank", "enable_confidence_head"))
    named = "dflash" in _architectures(raw) or isinstance(said, Mapping) or "qwen3dspark" in _architectures(raw)
    return named and not more and projector in (None, "dflash")


DFLASH = Format(
    "DFlash",
    "z-lab, SpecForge, ModelOpt, DeepSpec",
    "an architecture with `DFlash`, `dflash_config`, or `Qwen3DSparkModel` without a Markov head",
    _is_dflash,
    _dflash,
)


# Heads in other formats


_ARCHITECTURES = ("eagle", "dflash", "dspark", "domino", "medusa", "speculator", "draftmodel", "mtp", "nextn")
"""Parts of the names of heads' architectures, in small letters."""
_FIELDS = ("eagle_config", "dflash_config", "draft_vocab_size", "target_layer_ids", "markov_rank", "medusa_num_heads")
"""Fields of config.json that heads have and models do not."""
_WEIGHTS = ("fc.", "midlayer.", "d2t", "t2d", "markov_head.", "confidence_head.", "eagle_module.", "medusa_head.")
"""How weights begin that heads have and models do not."""


def _sign_of_head(raw: Raw, names: Names) -> str | None:
    """What shows that a folder holds a head, whatever its format; None for a model."""
    listed = raw.get("architectures")
    every = [str(each) for each in listed] if isinstance(listed, list) else []
    named = [each for each in every if any(part in each.lower() for part in _ARCHITECTURES)]
    field = next((field for field in _FIELDS if raw.get(field) is not None), None)
    weight = min((name for name in names if name.startswith(_WEIGHTS)), default=None)
    if named or field:
        return named[0] if named else f"its config.json has {field}"
    return f"it has the weights {weight!r}" if weight else None
