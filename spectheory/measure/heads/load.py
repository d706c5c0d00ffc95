"""Load a draft head beside its target: in which format it is, whether it fits the target, and its tensors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from reprlib import repr as brief
from typing import Any, NoReturn

import torch
import transformers
from torch import Tensor

from spectheory.checks import whole
from spectheory.cost.head_config import MARK, NATIVE
from spectheory.errors import ModelError, SettingError, argument
from spectheory.measure.heads.checkpoint import CheckpointHead, HeadConfig
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.domino import DOMINO, Domino
from spectheory.measure.heads.dspark import DSPARK, DSpark
from spectheory.measure.heads.eagle import Eagle
from spectheory.measure.heads.eagle3 import Eagle3, PEagle
from spectheory.measure.heads.formats import DFLASH, EAGLE1, EAGLE3, SPECULATORS, Format, HeadFiles, _sign_of_head
from spectheory.measure.heads.mtp import Mtp
from spectheory.measure.heads.native import _native_files
from spectheory.measure.model_files import (
    check_counts,
    check_folder,
    fingerprint_of,
    guarded,
    hub_answers,
    is_local,
    read_weights,
    weight_map,
)
from spectheory.measure.pair import Model

_UNUSED = ("verifier_lm_head.", "verifier_norm.", "rotary_emb.", "d2t", "t2d")
"""Tensors that a checkpoint may have and drafting does not use."""
_AGAIN = "save or download the head again"


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
        if needed[key].is_floating_point() and not (weights[key].is_floating_point() and weights[key].itemsize > 1):
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
        DSpark,
        Domino,
        Mtp,
        Eagle,
    )
}
"""The classes of heads by their kind."""

FORMATS: tuple[Format, ...] = (
    SPECULATORS,
    EAGLE3,
    EAGLE1,
    DFLASH,
    DSPARK,
    DOMINO,
)
"""Formats of heads; the first that fits reads the head."""


def head_files(source: str | Path, revision: str | None = None, *, native: bool = False) -> HeadFiles | None:
    """A folder or a model on the hub as a draft head, in the format that its config.json and weights show; None for a
    model. Its MTP modules, if they are asked for (`native`). A head in another format is refused by its name.
    """
    raw, names, name = _raw(source, revision), weight_map(source, revision), _name_of(source)
    if native:
        return _native_files(raw, names, name)
    form = next((form for form in FORMATS if form.fits(raw, names)), None)
    if form is None and (sign := _sign_of_head(raw, names)):
        raise ModelError(
            f"{name!r} is a head ({sign}) in a format that is not read",
            limit=f"there are {'; '.join(form.title for form in FORMATS)}",
            remedy="save it in one of them",
        )
    return None if form is None else form.read(raw, names, name)


def _name_of(source: str | Path) -> str:
    return Path(source).resolve().name if is_local(source) else str(source)


def load_head(
    source: str | Path,
    target: Model,
    *,
    revision: str | None = None,
    native: bool = False,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
    block: int | None = None,
) -> Model:
    """Load a head for a target, in the target's precision and on its device by default.

    `native` are the MTP modules in the checkpoint of a model. Embeddings and output matrix that the checkpoint lacks
    are the target's: the target that the checkpoint names need not be there. `network` of the model is a
    :class:`~spectheory.measure.heads.base.Head`. `block` are the slots of a head that drafts blocks, at most those of
    its training: engines that draft fewer tokens draft a smaller block.
    """
    check_folder(source, revision)
    name, files = _name_of(source), head_files(source, revision, native=native)
    if files is None:
        raise ModelError(f"{name!r} is a model", limit="needs a draft head", remedy="load it with load_pair")
    said = files.config.get(MARK)
    if not isinstance(said, str) or said not in HEADS:
        raise ModelError(
            f"{name!r} is a head of the kind {brief(said)}",
            limit=f"there are {', '.join(HEADS)}",
            remedy="use one of them",
        )
    kind = HEADS[said]
    config = _sized(kind, kind.configured(files.config, name), block, name)
    config = replace(config, remarks=(*config.remarks, *files.remarks))
    layers = _check_target(config, kind, target, name)
    weights = files.assemble(read_weights(source, revision, files.tensors))
    head = _build(kind, config, layers, target, weights, name)
    for parameter in head.parameters():  # position embeddings stay in float32
        parameter.data = parameter.data.to(dtype or target.network.dtype)
    head.to(device or target.device)
    head.take(weights)
    windows = [w for w in (getattr(config.block, "max_position_embeddings", None), target.window) if w is not None]
    return Model(
        name=f"{name}-{NATIVE}" if native else name,
        revision=files.config.get("_commit_hash"),
        network=head.eval().requires_grad_(False),
        outputs=head.vocabulary,
        window=min(windows, default=None),
        fingerprint=fingerprint_of(source, config.block) + NATIVE * native + (f"-{block}" if block else ""),
        source=str(Path(source).resolve()) if is_local(source) else str(source),
    )


def _sized(kind: type[CheckpointHead], config: HeadConfig, block: int | None, name: str) -> HeadConfig:
    """The configuration with as many slots as are asked for."""
    if block is None:
        return config
    if not issubclass(kind, DFlash):
        raise no_block(block, name)
    most, least = config.fields["block_size"], 1 if config.fields[kind.anchored] else 2
    whole(argument("block"), block, least=least, most=most, remedy=f"this head was trained with {most} slots")
    return replace(config, fields={**config.fields, "block_size": block})


def no_block(block: int, name: str) -> SettingError:
    """The refusal of a number of slots for another draft."""
    return SettingError(
        f"{argument('block')} is {block} for the draft {name!r}",
        limit="heads of the kinds dflash, dspark and domino draft a block of slots",
        remedy="leave it out",
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
        limit = f"{target.name!r} has {count}, and needs different ids of 0 to {count}"
        if config.layers is None:
            raise ModelError(
                f"head {name!r} names no layers of its target; the usual ones are {brief(list(layers))}",
                limit=limit,
                remedy=f"write the ids of its training into config.json as {kind.layer_field}",
            )
        _other(name, f"reads layers {brief(list(layers))}", limit)
    return layers


def _shared(key: str, weights: dict[str, Tensor], of_target: Tensor) -> Tensor | None:
    """The target's matrix where the checkpoint has none or a copy of it, which is left out; else None."""
    if key in weights and weights[key].shape == of_target.shape and torch.equal(weights[key].to(of_target), of_target):
        del weights[key]
    return None if key in weights else of_target


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
    embeddings = _shared("embed_tokens.weight", weights, target.network.get_input_embeddings().weight)
    outputs = _shared("lm_head.weight", weights, target.network.get_output_embeddings().weight)
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
