"""Load a draft head in the format of speculators beside its target; every problem is a one-line error."""

from __future__ import annotations

from pathlib import Path
from reprlib import repr as brief
from typing import Any, NoReturn

import torch
import transformers
from torch import Tensor

from spectheory.cost.architecture import MARK
from spectheory.errors import ModelError
from spectheory.measure.folder import check_counts, check_folder, fingerprint_of, is_local
from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.config import HeadConfig
from spectheory.measure.heads.formats import refuse_head, sign_of_head
from spectheory.measure.heads.kinds import HEADS
from spectheory.measure.heads.weights import check_tensors, drafted_ids, read_tensors
from spectheory.measure.hub import guarded, hub_answers
from spectheory.measure.pair import Model
from spectheory.measure.weight_names import in_shards, weight_names


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
    kind = _kind(raw, name)
    config = kind.configured(raw, name)
    layers = _check_target(config, kind, target, name)
    weights = read_tensors(source, revision)
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
    sign = sign_of_head(raw, weights)
    if sign:
        refuse_head(source, raw, sign, None if in_shards(source, revision) else weights)


def _raw(source: str | Path, revision: str | None) -> dict[str, Any]:
    options = {"revision": revision or "main", "local_files_only": is_local(source) or not hub_answers()}
    raw = guarded(
        source, "config.json", lambda: transformers.PretrainedConfig.get_config_dict(str(source), **options)[0]
    )
    raw = raw if isinstance(raw, dict) else {}
    check_counts(raw, str(source))
    return raw


def _kind(raw: dict[str, Any], name: str) -> type[CheckpointHead]:
    said = raw.get(MARK)
    if not isinstance(said, str) or said not in HEADS:
        raise ModelError(
            f"{name!r} is a head of the kind {brief(said)}",
            limit=f"there are {', '.join(HEADS)}",
            remedy="use one of them",
        )
    return HEADS[said]


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
    ids = drafted_ids(config, weights, name)
    embeddings = None if "embed_tokens.weight" in weights else target.network.get_input_embeddings().weight
    outputs = None if "lm_head.weight" in weights else target.network.get_output_embeddings().weight
    if outputs is not None and ids is not None:
        outputs = outputs[ids.to(outputs.device)]
    if (embeddings is not None or outputs is not None) and config.width != config.target_width:
        _other(name, "lacks embeddings or output matrix", f"it is {config.width} wide and the target's are not")
    of_target = {"embeddings": embeddings, "outputs": outputs, "final_norm": target.network.get_decoder().norm}
    with torch.device("meta"):  # sizes alone: what does not fit takes no memory
        sizes = guarded(name, "config.json", lambda: kind(config, layers, **of_target)).weights()
    check_tensors(sizes, {**{key: sizes[key] for key in ("d2t", "t2d") if key in sizes}, **weights}, name)
    head = kind(config, layers, **of_target)
    if ids is not None:
        head.draft_only(ids)
        weights |= {key: value for key, value in head.weights().items() if key in ("d2t", "t2d")}
    return head
