"""Load a draft head in the format of speculators beside its target; heads in other formats are refused by name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from reprlib import repr as brief
from typing import Any, NoReturn

import torch
import transformers
from huggingface_hub import snapshot_download
from safetensors import safe_open
from torch import Tensor

from spectheory.cost.architecture import MARK
from spectheory.errors import ModelError
from spectheory.measure.heads.checkpoint import CheckpointHead, HeadConfig
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.eagle3 import Eagle3, PEagle
from spectheory.measure.heads.mtp import Mtp
from spectheory.measure.model_files import (
    check_counts,
    check_folder,
    fingerprint_of,
    guarded,
    hub_answers,
    in_shards,
    is_local,
    weight_names,
)
from spectheory.measure.pair import Model

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
_SIGNS = ("fc.", "midlayer.", "d2t", "t2d", "markov_head.", "confidence_head.", "eagle_module.", "medusa_head.")
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


def _sign_of_head(raw: Mapping[str, Any], weights: Iterable[str]) -> str | None:
    """What shows that a folder with this config.json and these names of weights holds a head; None for a model."""
    named = next((a for a in _architectures(raw) if any(part in a.lower() for part in _ARCHITECTURES)), None)
    if named:
        return named
    field = next((field for field in _FIELDS if raw.get(field) is not None), None)
    if field:
        return f"its config.json has {field}"
    weight = min((name for name in weights if name.startswith(_SIGNS)), default=None)
    return f"it has the weights {weight!r}" if weight else None


def _refuse_head(source: str | Path, raw: Mapping[str, Any], sign: str, weights: Iterable[str] | None) -> None:
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
        layers = _counted(dflash.get("target_layer_ids"), 1)
        sized = raw.get("block_size") or dflash.get("block_size")
        return None if other or not sized or layers is None else _options("dflash", {_DFLASH: layers})
    unnamed = not any(part in names for part in _ARCHITECTURES)
    if not ("eagle3" in names or unnamed) or eagle.get("use_aux_hidden_state") is False:
        return None
    # The command makes of any EAGLE-3 head a layer of Llama, its rope under the older names.
    known = {name.replace("midlayer.", "layers.0.") for name in weights}
    plain = raw.get("model_type", "llama") == "llama" and raw.get("num_hidden_layers", 1) == 1
    complete = not known or _COPIED <= known <= _COPIED | _COPIED_IF_THERE
    if not (plain and complete) or raw.get("draft_vocab_size") is None or raw.get("rope_parameters"):
        return None
    said: dict[str, Any] = {_NORM: True} if raw.get(_NORM) else {}
    if eagle.get(_EAGLE3) or raw.get(_EAGLE3):
        layers = _counted(eagle[_EAGLE3], 1) if eagle.get(_EAGLE3) else _counted(raw[_EAGLE3], 0)
        if layers is None or len(layers) != 3 or (eagle.get(_EAGLE3) and layers[0] != 2):
            return None
        said = {_EAGLE3: layers, **said}
    return _options("eagle3", said)


def _options(algorithm: str, said: Mapping[str, Any]) -> str:
    argument = f" --algorithm-kwargs {shlex.quote(json.dumps(said))}" if said else ""
    return f"--algorithm {algorithm} --verifier TARGET{argument}"


def _architectures(raw: Mapping[str, Any]) -> list[str]:
    listed = raw.get("architectures")
    return [str(name) for name in listed] if isinstance(listed, list) else []


def _counted(said: Any, more: int) -> list[int] | None:
    if not isinstance(said, list) or not said or any(type(layer) is not int for layer in said):
        return None
    return [layer + more for layer in said]


_UNUSED = ("verifier_lm_head.", "verifier_norm.", "rotary_emb.", "d2t", "t2d")
"""Tensors that a checkpoint may have and drafting does not use."""
_AGAIN = "save or download the head again"


def _read_tensors(source: str | Path, revision: str | None) -> dict[str, Tensor]:
    """All tensors of a checkpoint; only safetensors are read."""

    def tensors() -> dict[str, Tensor]:
        folder = Path(source)
        if not is_local(source):
            patterns = ["config.json", "*.safetensors", "*.safetensors.index.json"]
            offline = not hub_answers()
            folder = Path(
                snapshot_download(str(source), revision=revision, allow_patterns=patterns, local_files_only=offline)
            )
        weights: dict[str, Tensor] = {}
        for path in sorted(folder.glob("*.safetensors")):
            with safe_open(path, framework="pt") as file:
                weights |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  it is no mapping
        return weights

    return guarded(source, "weights", tensors)


def _drafted_ids(config: HeadConfig, weights: dict[str, Tensor], name: str) -> Tensor | None:
    """The target's ids of a pruned vocabulary: d2t holds what to add to each id of the draft."""
    if config.drafted == config.vocabulary:
        return None
    d2t, t2d = weights.get("d2t"), weights.get("t2d")
    limit = f"it must map {config.drafted} ids to different ids below {config.vocabulary}"
    if d2t is None or d2t.shape != (config.drafted,) or d2t.dtype not in (torch.int32, torch.int64):
        what = "has no d2t" if d2t is None else f"has a d2t of shape {list(d2t.shape)} and {d2t.dtype}"
        raise ModelError(f"head {name!r} {what}", limit=limit, remedy=_AGAIN)
    ids = d2t.to(torch.int64) + torch.arange(config.drafted)
    if ids.min() < 0 or ids.max() >= config.vocabulary or len(ids.unique()) < len(ids):
        raise ModelError(f"head {name!r} maps its ids to {ids.min()}..{ids.max()}", limit=limit, remedy=_AGAIN)
    said = torch.zeros(config.vocabulary, dtype=torch.bool).index_fill(0, ids, True)
    if t2d is not None and not torch.equal(t2d.bool(), said):
        raise ModelError(
            f"head {name!r} has a t2d that differs from its d2t",
            limit=f"both must name the same {config.drafted} of {config.vocabulary} ids",
            remedy=_AGAIN,
        )
    return ids


def _check_tensors(needed: dict[str, Tensor], weights: dict[str, Tensor], name: str) -> None:
    """Refuse a checkpoint whose tensors are not those that the network needs."""
    missing = sorted(needed.keys() - weights.keys())
    extra = sorted(key for key in weights.keys() - needed.keys() if not key.startswith(_UNUSED))
    shapes = sorted(key for key in needed.keys() & weights.keys() if needed[key].shape != weights[key].shape)
    for what, keys in (("lacks", missing), ("has unknown", extra)):
        if keys:
            raise ModelError(
                f"head {name!r} {what} weights: {', '.join(keys[:3])}{f' and {len(keys) - 3} more' * (len(keys) > 3)}",
                limit="the weights must be those of the network that config.json describes",
                remedy=_AGAIN,
            )
    for key in sorted(needed.keys() & weights.keys()):
        if needed[key].is_floating_point() and not weights[key].is_floating_point():
            raise ModelError(
                f"head {name!r} has {key} in {weights[key].dtype}",
                limit="weights must be floating-point numbers; quantised ones are not read",
                remedy="use the head as it was before it was quantised",
            )
    for key in shapes:
        raise ModelError(
            f"head {name!r} has {key} of shape {list(weights[key].shape)}",
            limit=f"config.json and the target make it {list(needed[key].shape)}",
            remedy="use the target that the head was trained for",
        )


HEADS: dict[str, type[CheckpointHead]] = {
    head.kind: head
    for head in (
        Eagle3,
        PEagle,
        DFlash,
        Mtp,
    )
}
"""The classes of heads by their kind."""


def is_head(source: str | Path, revision: str | None = None) -> bool:
    """Whether a folder or a model on the hub is a draft head, by its config.json."""
    return MARK in _raw(source, revision)


def load_head(
    source: str | Path,
    target: Model,
    *,
    revision: str | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Model:
    """Load a head for a target, in the target's precision and on its device by default.

    Embeddings and output matrix that the checkpoint lacks are the target's: the target that the checkpoint names need
    not be there. `network` of the model is a :class:`~spectheory.measure.heads.base.Head`.
    """
    check_folder(source, revision)
    name = Path(source).resolve().name if is_local(source) else str(source)
    raw = _raw(source, revision)
    said = raw.get(MARK)
    if not isinstance(said, str) or said not in HEADS:
        raise ModelError(
            f"{name!r} is a head of the kind {brief(said)}",
            limit=f"there are {', '.join(HEADS)}",
            remedy="use one of them",
        )
    kind = HEADS[said]
    config = kind.configured(raw, name)
    layers = _check_target(config, kind, target, name)
    weights = _read_tensors(source, revision)
    head = _build(kind, config, layers, target, weights, name)
    for parameter in head.parameters():  # position embeddings stay in float32
        parameter.data = parameter.data.to(dtype or target.network.dtype)
    head.to(device or target.device)
    head.take(weights)
    windows = [w for w in (getattr(config.block, "max_position_embeddings", None), target.window) if w is not None]
    return Model(
        name=name,
        revision=raw.get("_commit_hash"),
        network=head.eval().requires_grad_(False),
        outputs=head.vocabulary,
        window=min(windows, default=None),
        fingerprint=fingerprint_of(source, config.block),
        source=str(Path(source).resolve()) if is_local(source) else str(source),
    )


def head_remarks(draft: Model, target: Model) -> tuple[str, ...]:
    """Sentences for the user about a loaded head; none for other drafts."""
    head = draft.head
    if not isinstance(head, CheckpointHead):
        return ()
    verifier = head.config.verifier
    other = verifier is not None and Path(verifier.removeprefix("builtin:")).name != Path(target.name).name
    said = f"the head {draft.name!r} names {verifier!r} as its target, and drafts for {target.name!r} here"
    return (*head.config.remarks, *((said,) if other else ()))


def refuse_as_model(source: str | Path, revision: str | None = None) -> None:
    """Refuse a head where a causal model is needed, and a head in another format."""
    raw = _raw(source, revision)
    if MARK in raw:
        raise ModelError(
            f"{str(source)!r} is a draft head",
            limit="a head reads the hidden states of a target and cannot be one",
            remedy="give it as the draft",
        )
    weights = weight_names(source, revision)
    sign = _sign_of_head(raw, weights)
    if sign:
        _refuse_head(source, raw, sign, None if in_shards(source, revision) else weights)


def _raw(source: str | Path, revision: str | None) -> dict[str, Any]:
    options = {"revision": revision or "main", "local_files_only": is_local(source) or not hub_answers()}
    raw = guarded(
        source, "config.json", lambda: transformers.PretrainedConfig.get_config_dict(str(source), **options)[0]
    )
    raw = raw if isinstance(raw, dict) else {}
    check_counts(raw, str(source))
    return raw


def _other(name: str, what: str, limit: str) -> NoReturn:
    raise ModelError(f"head {name!r} {what}", limit=limit, remedy="use the target that the head was trained for")


def _check_target(config: HeadConfig, kind: type[CheckpointHead], target: Model, name: str) -> tuple[int, ...]:
    """The hidden states of the target that the head reads; refuses a head of another target."""
    decoder = target.network.get_decoder()
    if not all(hasattr(decoder, part) for part in ("layers", "norm")):
        _other(
            name, f"reads hidden states of {target.name!r}", "its architecture has no 'layers' and 'norm' to read at"
        )
    width, count = target.network.get_input_embeddings().weight.shape[1], len(decoder.layers)
    if config.target_width != width:
        _other(name, f"reads hidden states of {brief(config.target_width)} numbers", f"{target.name!r} has {width}")
    if config.vocabulary != target.outputs:
        _other(name, f"is for {config.vocabulary} token ids", f"{target.name!r} has {target.outputs}")
    if config.slides and not kind.windows:
        raise ModelError(
            f"head {name!r} has sliding windows",
            limit="the window of a draft differs between training and engines",
            remedy="use a head with full attention",
        )
    layers = kind.default_layers(count) if config.layers is None else config.layers
    if len(set(layers)) != len(layers) or min(layers) < 0 or max(layers) > count:
        _other(
            name,
            f"reads layers {brief(list(layers))}",
            f"{target.name!r} has {count}, and needs different ids of 0 to {count}",
        )
    return layers


def _build(
    kind: type[CheckpointHead],
    config: HeadConfig,
    layers: tuple[int, ...],
    target: Model,
    weights: dict[str, Tensor],
    name: str,
) -> CheckpointHead:
    """The network, with the target's matrices where the checkpoint has none; checks names and sizes of all tensors."""
    ids = _drafted_ids(config, weights, name)
    embeddings = None if "embed_tokens.weight" in weights else target.network.get_input_embeddings().weight
    outputs = None if "lm_head.weight" in weights else target.network.get_output_embeddings().weight
    if outputs is not None and ids is not None:
        outputs = outputs[ids.to(outputs.device)]
    if (embeddings is not None or outputs is not None) and config.width != config.target_width:
        _other(name, "lacks embeddings or output matrix", f"it is {config.width} wide and the target's are not")
    of_target = {"embeddings": embeddings, "outputs": outputs, "final_norm": target.network.get_decoder().norm}
    with torch.device("meta"):  # sizes alone: what does not fit takes no memory
        sizes = guarded(name, "config.json", lambda: kind(config, layers, **of_target)).weights()
    _check_tensors(sizes, {**{key: sizes[key] for key in ("d2t", "t2d") if key in sizes}, **weights}, name)
    head = kind(config, layers, **of_target)
    if ids is not None:
        head.draft_only(ids)
        weights |= {key: value for key, value in head.weights().items() if key in ("d2t", "t2d")}
    return head
