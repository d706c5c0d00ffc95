"""The tensors of a head's checkpoint: read, and checked against the network that its configuration describes."""

from __future__ import annotations

from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from safetensors import safe_open
from torch import Tensor

from spectheory.errors import ModelError
from spectheory.measure.folder import is_local
from spectheory.measure.heads.config import HeadConfig
from spectheory.measure.hub import guarded, hub_answers

_UNUSED = ("verifier_lm_head.", "verifier_norm.", "rotary_emb.", "d2t", "t2d")
"""Tensors that a checkpoint may have and drafting does not use."""
_AGAIN = "save or download the head again"


def read_tensors(source: str | Path, revision: str | None) -> dict[str, Tensor]:
    """All tensors of a checkpoint; only safetensors are read."""

    def tensors() -> dict[str, Tensor]:
        folder = Path(source)
        if not is_local(source):
            patterns = ["config.json", "*.safetensors", "*.safetensors.index.json"]
            offline = not hub_answers()
            folder = Path(
                snapshot_download(str(source), revision=revision, allow_patterns=patterns, local_files_only=offline)
            )
        found: dict[str, Tensor] = {}
        for path in sorted(folder.glob("*.safetensors")):
            with safe_open(path, framework="pt") as file:
                found |= {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  it is no mapping
        return found

    return guarded(source, "weights", tensors)


def drafted_ids(config: HeadConfig, weights: dict[str, Tensor], name: str) -> Tensor | None:
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


def check_tensors(needed: dict[str, Tensor], found: dict[str, Tensor], name: str) -> None:
    """Refuse a checkpoint whose tensors are not those that the network needs."""
    missing = sorted(needed.keys() - found.keys())
    extra = sorted(key for key in found.keys() - needed.keys() if not key.startswith(_UNUSED))
    shapes = sorted(key for key in needed.keys() & found.keys() if needed[key].shape != found[key].shape)
    for what, keys in (("lacks", missing), ("has unknown", extra)):
        if keys:
            raise ModelError(
                f"head {name!r} {what} weights: {', '.join(keys[:3])}{f' and {len(keys) - 3} more' * (len(keys) > 3)}",
                limit="the weights must be those of the network that config.json describes",
                remedy=_AGAIN,
            )
    for key in sorted(needed.keys() & found.keys()):
        if needed[key].is_floating_point() and not found[key].is_floating_point():
            raise ModelError(
                f"head {name!r} has {key} in {found[key].dtype}",
                limit="weights must be floating-point numbers; quantised ones are not read",
                remedy="use the head as it was before it was quantised",
            )
    for key in shapes:
        raise ModelError(
            f"head {name!r} has {key} of shape {list(found[key].shape)}",
            limit=f"config.json and the target make it {list(needed[key].shape)}",
            remedy="use the target that the head was trained for",
        )
