"""Names of the weights of a model, read without the weights; and those that a model leaves out on purpose."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from spectheory.measure.hub import file_of, guarded

_MTP = re.compile(r"(^|\.)mtp(_\w+)?\.")
_TOWER = re.compile(r"(^|\.)(visual|vision_\w+|audio_\w+|multi_modal_projector|mm_projector)\.")
"""Parts that read pictures and sound, which no text needs."""
_TABLE = re.compile(
    r"(^|\.)(rotary_emb\.(inv_freq|(cos|sin)_cached)|attn\.((attention\.)?(masked_)?bias|causal_mask))$"
)
"""Tables of positions and masks, which models compute anew; files of GPT-2, GPT-J, GPT-Neo and CodeGen hold them."""
_LAYER = re.compile(r"(^|\.)layers\.(\d+)\.")


def weight_names(source: str | Path, revision: str | None) -> frozenset[str]:
    """Names of all weights of a folder, or of a model in the hub's cache; none where no file is there yet."""
    found = ((file_of(source, name, revision), read) for name, read in _READERS.items())
    file, read = next(((file, read) for file, read in found if file), (None, None))
    if file is None or read is None:
        return frozenset()
    return guarded(source, "weights", lambda: frozenset(map(str, read(file))))


def in_shards(source: str | Path, revision: str | None) -> bool:
    """Whether the weights of a model are in several files."""
    return any(file_of(source, name, revision) for name, read in _READERS.items() if read is _indexed)


def layers_beyond(config: Any) -> range:
    """Numbers of the MTP layers that a configuration counts on from a model's own layers."""
    own, more = (getattr(config, field, 0) for field in ("num_hidden_layers", "num_nextn_predict_layers"))
    return range(own, own + more) if type(own) is int and type(more) is int else range(0)


def is_mtp(name: str, beyond: range) -> bool:
    """Whether a weight belongs to the MTP layers that come with a model."""
    layer = _LAYER.search(name)
    return bool(_MTP.search(name)) or (layer is not None and int(layer[2]) in beyond)


def left_out(name: str, beyond: range) -> bool:
    """Whether a model reads texts right without a weight that it has no place for."""
    return is_mtp(name, beyond) or bool(_TOWER.search(name) or _TABLE.search(name))


def _indexed(file: Path) -> list[str]:
    return list(json.loads(file.read_text(encoding="utf-8"))["weight_map"])


def _safe(file: Path) -> list[str]:
    with safe_open(file, framework="pt") as weights:
        return list(weights.keys())


def _pickled(file: Path) -> list[str]:
    return list(torch.load(file, map_location="meta", weights_only=True, mmap=True))


_READERS = {
    "model.safetensors": _safe,
    "model.safetensors.index.json": _indexed,
    "pytorch_model.bin": _pickled,
    "pytorch_model.bin.index.json": _indexed,
}
"""Files that name all weights; the first that is there is read, as by transformers."""
