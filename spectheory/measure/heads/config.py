"""The configuration of a head in the format of speculators: read and checked, every problem one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any, NoReturn

import transformers

from spectheory.cost.architecture import MARK
from spectheory.errors import ModelError
from spectheory.measure.frequencies import moving
from spectheory.measure.heads.blocks import FAMILIES
from spectheory.measure.hub import guarded

KNOWN_VERSION = (0, 9)
"""Latest major and minor version of the format whose fields are known."""
_COMMON = frozenset(
    {
        MARK,
        "architectures",
        "speculators_version",
        "speculators_config",
        "transformer_layer_config",
        "draft_vocab_size",
        "model_type",
        "auto_map",
        "_commit_hash",
        "torch_dtype",
    }
)
_DISPUTED = {"norm_before_residual": "true"}
"""Fields whose default is false in speculators, and what vLLM takes where they are left out."""
MOST_DRAFTS = 1024
"""Most drafts of a call."""


@dataclass(frozen=True)
class HeadConfig:
    """What a head's config.json says.

    - `kind`: the head's kind, and `version` of the format.
    - `block`: configuration of its transformer layers, V of the target as `vocab_size`.
    - `fields`: the fields of this kind, with defaults where the file has none.
    - `drafted`: how many ids it can draft; V unless its vocabulary is pruned.
    - `layers`: hidden states of the target that it reads; None where the file names none.
    - `trained`: drafts per call; `verifier`: name of the target it was trained for.
    """

    kind: str
    version: str
    block: Any
    fields: Mapping[str, Any]
    drafted: int
    layers: tuple[int, ...] | None
    trained: int
    verifier: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def vocabulary(self) -> int:
        """V of the target."""
        return int(self.block.vocab_size)

    @property
    def width(self) -> int:
        """Hidden size of the head."""
        return int(self.block.hidden_size)

    @property
    def slides(self) -> bool:
        """Whether one of its layers has a sliding window."""
        return "sliding_attention" in (getattr(self.block, "layer_types", None) or ())

    @property
    def target_width(self) -> int:
        """Hidden size of the target."""
        return int(self.fields.get("target_hidden_size") or self.width)


def parse_config(
    raw: Mapping[str, Any], name: str, fields: Mapping[str, Any], layer_field: str | None, families: tuple[str, ...]
) -> HeadConfig:
    """Check a configuration against the fields of its kind; `layer_field` names the target's layers."""
    values = {field: _typed(raw, field, default, name) for field, default in fields.items()}
    block = _block(raw, name, families)
    drafted = raw.get("draft_vocab_size")
    drafted = block.vocab_size if drafted is None else _count(drafted, "draft_vocab_size", name)
    if drafted > block.vocab_size:
        _refuse(name, f"draft_vocab_size = {brief(drafted)}", f"the target's vocabulary has {block.vocab_size} ids")
    version = str(raw.get("speculators_version", "unknown"))
    return HeadConfig(
        kind=str(raw[MARK]),
        version=version,
        block=block,
        fields=values,
        drafted=drafted,
        layers=_layers(raw, layer_field, name),
        trained=_trained(raw, name),
        verifier=_verifier(raw),
        remarks=(
            *_newer(raw, name, version, {*fields, *([layer_field] if layer_field else ())}),
            *_unsaid(raw, name, fields),
        ),
    )


def _refuse(name: str, what: str, limit: str, remedy: str = "save or download the head again") -> NoReturn:
    raise ModelError(f"{name!r}: config.json has {what}", limit=limit, remedy=remedy)


def _typed(raw: Mapping[str, Any], field: str, default: Any, name: str) -> Any:
    value = raw.get(field, default)
    wanted = bool if isinstance(default, bool) else int
    if type(value) is not wanted and not (value is None and default is None):
        _refuse(
            name, f"{field} = {brief(value)}", "it must be " + ("true or false" if wanted is bool else "a whole number")
        )
    return value


def _count(value: Any, field: str, name: str) -> int:
    if type(value) is not int or value < 1:
        _refuse(name, f"{field} = {brief(value)}", "it must be a whole number of at least 1")
    return int(value)


def _block(raw: Mapping[str, Any], name: str, families: tuple[str, ...]) -> Any:
    """Configuration of the transformer layers; a missing model type is qwen3, as in speculators."""
    said = raw.get("transformer_layer_config")
    if not isinstance(said, Mapping):
        _refuse(name, "no transformer_layer_config", "it describes the layers of the head")
    family = said.get("model_type", "qwen3")
    if family not in families:
        _refuse(
            name,
            f"layers of the family {brief(family)}",
            f"a head of this kind has layers of {' or '.join(families)}",
            "use a head with such layers",
        )
    rest = {key: value for key, value in said.items() if key not in ("model_type", "_attn_implementation")}
    block = guarded(name, "config.json", lambda: transformers.AutoConfig.for_model(family, **rest))
    for field in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"):
        _count(getattr(block, field, None), f"transformer_layer_config.{field}", name)
    if block.num_attention_heads % block.num_key_value_heads:
        heads = f"{block.num_attention_heads} and {block.num_key_value_heads}"
        _refuse(name, f"num_attention_heads and num_key_value_heads of {heads}", "the second must divide the first")
    if "sliding_attention" in (getattr(block, "layer_types", None) or ()):
        _count(getattr(block, "sliding_window", None), "transformer_layer_config.sliding_window", name)
    rope = guarded(name, "config.json", lambda: moving(block))
    if rope:
        limit = "its frequencies depend on the length of the text, and engines choose them differently"
        _refuse(name, f"rope_type {rope[0]!r}", limit, "use a head with another rope_type")
    rotation = getattr(block, "rope_parameters", None) or {}
    if family in FAMILIES and rotation.get("partial_rotary_factor", 1) != 1:
        _refuse(name, "partial_rotary_factor", "position embeddings must turn whole vectors", "use another head")
    block._commit_hash = raw.get("_commit_hash")
    block._attn_implementation, block._experts_implementation = "sdpa", "eager"
    return block


def _layers(raw: Mapping[str, Any], field: str | None, name: str) -> tuple[int, ...] | None:
    said = raw.get(field) if field else None
    if said is None:
        return None
    if not isinstance(said, list) or not said or any(type(layer) is not int for layer in said):
        _refuse(name, f"{field} = {brief(said)}", "it must be a list of whole numbers")
    return tuple(said)


def _mapping(raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = raw.get(field)
    return value if isinstance(value, Mapping) else {}


def _trained(raw: Mapping[str, Any], name: str) -> int:
    """Drafts per call of the default proposal method."""
    config = _mapping(raw, "speculators_config")
    listed = config.get("proposal_methods")
    methods = [m for m in listed if isinstance(m, Mapping)] if isinstance(listed, list) else []
    chosen = [m for m in methods if m.get("proposal_type") == config.get("default_proposal_method")] or methods
    if not chosen:
        _refuse(name, "no proposal_methods", "speculators_config must name the drafts of a call (speculative_tokens)")
    return min(_count(chosen[0].get("speculative_tokens"), "speculative_tokens", name), MOST_DRAFTS)


def _verifier(raw: Mapping[str, Any]) -> str | None:
    name = _mapping(_mapping(raw, "speculators_config"), "verifier").get("name_or_path")
    return str(name) if name else None


def _newer(raw: Mapping[str, Any], name: str, version: str, fields: set[str | None]) -> tuple[str, ...]:
    """A remark about a newer version; refused if it has fields whose meaning is not known."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) <= KNOWN_VERSION:
        return ()
    known = fields | _COMMON | transformers.PretrainedConfig().to_dict().keys()
    unknown = sorted(field for field, value in raw.items() if field not in known and value not in (None, False))
    latest = ".".join(map(str, KNOWN_VERSION))
    if unknown:
        _refuse(
            name,
            f"speculators_version {version} and the field {unknown[0]!r}",
            f"fields are known up to version {latest}, and this one may change the network",
            f"use a later spectheory, or a head saved by speculators {latest}",
        )
    return (f"the head {name!r} was saved by speculators {version}; its format is known here up to {latest}",)


def _unsaid(raw: Mapping[str, Any], name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Remarks about fields that are left out and that engines read otherwise."""
    return tuple(
        f"config.json of the head {name!r} leaves out {field}: it is false here as in speculators, {other} in vLLM"
        for field, other in _DISPUTED.items()
        if field in fields and field not in raw
    )
