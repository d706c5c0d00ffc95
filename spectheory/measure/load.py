"""Load a target and a draft model; every problem is a one-line error."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer

from spectheory.cost.head_config import NATIVE
from spectheory.errors import ModelError
from spectheory.measure.common_tokens import CommonTokens, common_tokens
from spectheory.measure.heads.load import head_files, head_remarks, load_head, no_block
from spectheory.measure.heads.native import Source, native_source
from spectheory.measure.machine import find_device
from spectheory.measure.model_files import (
    _weight_files,
    check_folder,
    file_of,
    fingerprint_of,
    guarded,
    hub_answers,
    is_local,
    moving_rope,
    quiet,
    reason_of_foreign,
    weight_map,
)
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import cache_of_causal

DTYPES = ("auto", "float32", "bfloat16", "float16")
"""Precisions that models are loaded in; ``auto`` is that of the weights."""
_WEIGHTS_PER_BYTE = 8
"""Quantised to one bit, the smallest there is."""
_ENGINES = {
    "longrope": "vLLM and llama.cpp choose them by their context length, and give these numbers with one of at most",
    "dynamic": "vLLM and SGLang stretch them for texts of every length, and give other numbers; no text is longer than",
}
"""What engines do instead, up to a number of tokens."""


def load_pair(
    target: str | Path,
    draft: str | Path,
    *,
    dtype: str = "auto",
    device: str | None = None,
    device_map: Any = None,
    target_revision: str | None = None,
    draft_revision: str | None = None,
    block: int | None = None,
    outside: str | None = None,
) -> ModelPair:
    """Load target and draft, each a local folder or a name on the Hugging Face hub.

    Code that comes with a model is never run; of pickled weights only tensors are read. The `dtype` ``auto`` keeps the
    precision of the weights, except that float16 becomes float32 on a CPU, where it is slow and rounds differently from
    a GPU. Both models are on `device` (``cpu``, ``mps``, ``cuda``, ``cuda:1``; by default the best one of this
    machine), or spread by a `device_map` of transformers (needs accelerate). A revision is a branch, tag or commit on
    the hub.

    A draft in one of the formats of heads (:func:`~spectheory.measure.heads.load.head_files`) reads the target's hidden
    states: the target's tokenizer, precision and device are its own. So do the MTP modules of the target's checkpoint,
    the draft ``mtp``, or of another, ``mtp:FOLDER``. `block` is the number of slots that a DFlash, DSpark or Domino
    head drafts at once, by default that of its training.

    A draft model with another tokenizer drafts the tokens that both have
    (:class:`~spectheory.measure.common_tokens.CommonTokens`). `outside` says how it reads the target's text: ``text``
    (default) or ``unknown``.
    """
    if device is not None and device_map is not None:
        raise ModelError("device and device map are given", limit="use one of them", remedy="leave out the device")
    named = (target, target_revision), (draft, draft_revision)
    native = native_source(*named)
    place = None if device_map is not None else find_device(device)
    if dtype not in DTYPES:
        raise ModelError(f"dtype is {dtype!r}", limit=f"there are {', '.join(DTYPES)}", remedy="use one of them")
    with quiet():
        tokenizer, common, head = tokenizers_of(*named, outside)
        if not head and block is not None:
            raise no_block(block, str(draft))
        causal = named[:1] if head else named
        loaded = [_load(*each, dtype, place, device_map) for each in causal]
        for model in loaded:
            try:
                cache_of_causal(model)
            except Exception as error:  # some faults of a configuration show in the first pass alone
                raise ModelError(
                    f"{model.name!r} cannot read a text ({reason_of_foreign(error)})",
                    limit="config.json must describe a network that runs",
                    remedy="download or save the model again",
                ) from error
        if head:
            source, revision = native or named[1]
            loaded.append(load_head(source, loaded[0], revision=revision, native=native is not None, block=block))
    vocabulary = _vocabulary(tokenizer, *(loaded[:1] if common else loaded))
    if common:
        _vocabulary(common.draft, loaded[1])
        loaded[1] = replace(loaded[1], common=replace(common, window=loaded[1].window))
    said = [] if common is None else [_differ(common)]
    said += [
        f"weights of {model.name!r} are pickled (.bin): tensors were read and no code was run"
        for source, model in zip((target, native[0] if native else draft), loaded, strict=True)
        if _has_pickles(source, model.revision)
    ]
    for model in loaded[: len(causal)]:
        if rope := moving_rope(model.network.config.get_text_config()):
            kind, tokens = rope
            said.append(
                f"{model.name!r} turns positions by rope_type {kind!r}, whose frequencies move beyond {tokens} tokens: "
                f"texts are at most that long. {_ENGINES[kind]} {tokens}"
            )
    said += _added_tokens(tokenizer, target, target_revision)
    said += head_remarks(loaded[1], loaded[0]) if head else _read_whole(loaded[1], draft)
    return ModelPair(loaded[0], loaded[1], tokenizer, vocabulary, tuple(dict.fromkeys(said)))


def tokenizers_of(target: Source, draft: Source, outside: str | None = None) -> tuple[Any, CommonTokens | None, bool]:
    """The target's tokenizer, what a draft with another one has in common, and whether the draft is a head; no weights.

    Each model comes with its revision.
    """
    native = native_source(target, draft)
    with quiet():
        for source, revision in (target, native or draft):
            check_folder(source, revision)
        if head_files(*target):
            raise ModelError(
                f"{str(target[0])!r} is a draft head",
                limit="a head reads the hidden states of a target and cannot be one",
                remedy="give it as the draft",
            )
        head = head_files(*(native or draft), native=native is not None) is not None
        causal = (target,) if head else (target, draft)
        for each in causal:  # refuse an unusable configuration before another loader fails on it
            _from_pretrained(transformers.AutoConfig, "config.json", *each)
        tokenizers = [_from_pretrained(transformers.AutoTokenizer, "tokenizer", *each) for each in causal]
    first, last = tokenizers[0], tokenizers[-1]
    if first.get_vocab() != last.get_vocab():
        return first, common_tokens(first, last, outside), head
    if outside is not None:
        raise ModelError(
            f"--outside is {outside!r} for the draft {str(draft[0])!r}",
            limit="it reads the target's own token ids" if head else "both models have the same token ids",
            remedy="leave it out",
        )
    return first, None, head


def _read_whole(draft: Model, source: str | Path) -> list[str]:
    """A remark about a draft that has MTP layers beside its own."""
    beyond = _layers_beyond(draft.network.config.get_text_config())
    if not any(_is_mtp(name, beyond) for name in weight_map(source, draft.revision)):
        return []
    return [
        f"{draft.name!r} has MTP layers, and was read whole, as a draft model: "
        f"the draft {NATIVE} (of the target) or {NATIVE}:FOLDER is the MTP layers alone, as engines draft with them"
    ]


def _added_tokens(tokenizer: Any, source: str | Path, revision: str | None) -> list[str]:
    """Remarks about tokens that were added when the tokenizer was loaded."""
    file, ids = file_of(source, "tokenizer.json", revision), tokenizer.get_vocab()
    if file is None:
        return []
    known = guarded(source, "tokenizer", lambda: Tokenizer.from_file(str(file)).get_vocab())
    return [
        f"loading the tokenizer of {str(source)!r} adds token {token!r}, whose output may never have been trained and "
        f"can be sampled; {_ADDED}"
        for token in sorted(ids.keys() - known.keys(), key=ids.__getitem__)
    ]


def _from_pretrained(kind: Any, part: str, source: str | Path, revision: str | None, **options: Any) -> Any:
    """A part of a model by transformers' loader; without `trust_remote_code` it asks whether to run a model's code."""
    return guarded(
        source,
        part,
        lambda: kind.from_pretrained(
            str(source),
            revision=revision or "main",
            local_files_only=is_local(source) or not hub_answers(),
            trust_remote_code=False,
            **options,
        ),
    )


def _load(source: str | Path, revision: str | None, dtype: str, device: torch.device | None, device_map: Any) -> Model:
    _check_size(source, revision)
    network, info = _from_pretrained(
        transformers.AutoModelForCausalLM,
        "weights",
        source,
        revision,
        weights_only=True,  # a pickle gives tensors and runs no code
        dtype=dtype,
        device_map=device_map,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # refused below, by name
    )
    _check_weights(source, info, _layers_beyond(network.config.get_text_config()))
    if device is not None:
        if dtype == "auto" and device.type == "cpu" and network.dtype == torch.float16:
            network = network.float()
        network = guarded(source, "weights", lambda: network.to(device))
    # Weights keep `requires_grad`, though inference mode needs no gradients: without it, torch's `linear` in 16 bits on
    # a CPU copies the whole output matrix when one row of several is computed.
    network.eval()
    config = network.config.get_text_config()
    head = network.get_output_embeddings()
    return Model(
        name=Path(source).resolve().name if is_local(source) else str(source),
        revision=getattr(network.config, "_commit_hash", None),
        network=network,
        outputs=int(config.vocab_size if head is None else head.weight.shape[0]),
        window=guarded(source, "config.json", lambda: _window(config)),
        fingerprint=fingerprint_of(source, network.config),
        source=str(Path(source).resolve()) if is_local(source) else str(source),
    )


def _window(config: Any) -> int | None:
    """Longest text: the model's, and no longer than its position embeddings stay as they are."""
    stated, rope = getattr(config, "max_position_embeddings", None), moving_rope(config)
    return min((length for length in (stated, rope and rope[1]) if length is not None), default=None)


def _check_size(source: str | Path, revision: str | None) -> None:
    """Refuse a local model with more weights than its files can hold, before memory is taken for them."""
    if not is_local(source):
        return
    config = _from_pretrained(transformers.AutoConfig, "config.json", source, revision)
    make = partial(transformers.AutoModelForCausalLM.from_config, config, trust_remote_code=False)
    with torch.device("meta"):
        described = sum(weights.numel() for weights in guarded(source, "weights", make).parameters())
    stored = sum(path.stat().st_size for path in _weight_files(Path(source)))
    if described > _WEIGHTS_PER_BYTE * stored:
        raise ModelError(
            f"{str(source)!r}: config.json describes {described:.3g} weights, and the files have {stored:.3g} bytes",
            limit=f"a byte holds {_WEIGHTS_PER_BYTE} weights at most",
            remedy="download or save the model again",
        )


def _check_weights(source: str | Path, info: dict[str, Any], beyond: range) -> None:
    """Refuse weights with gaps, which transformers would fill with random numbers, and weights that it would not use.

    MTP layers, and what reads pictures and sound, change nothing in the reading of a text.
    """
    unused = [n for n in info["unexpected_keys"] if not (_is_mtp(n, beyond) or _TOWER.search(n) or _TABLE.search(n))]
    faults = {**info, "unexpected_keys": unused}
    for key in ("missing_keys", "mismatched_keys", "error_msgs", "unexpected_keys"):
        keys = sorted(str(item) for item in faults.get(key) or ())
        if keys:
            raise ModelError(
                f"{str(source)!r} loads with {len(keys)} {key.replace('_', ' ')} ({keys[0]})",
                limit="the weights must be those of the model that config.json describes",
                remedy="download or save the model again",
            )


# MTP layers, and other weights that no text needs


_MTP = re.compile(r"(^|\.)mtp(_\w+)?\.")
_TOWER = re.compile(r"(^|\.)(visual|vision_\w+|audio_\w+|multi_modal_projector|mm_projector)\.")
"""Parts that read pictures and sound, which no text needs."""
_TABLE = re.compile(
    r"(^|\.)(rotary_emb\.(inv_freq|(cos|sin)_cached)|attn\.((attention\.)?(masked_)?bias|causal_mask))$"
)
"""Tables of positions and masks, which models compute anew; files of GPT-2, GPT-J, GPT-Neo and CodeGen hold them."""
_LAYER = re.compile(r"(^|\.)layers\.(\d+)\.")


def _layers_beyond(config: Any) -> range:
    """Numbers of the MTP layers that a configuration counts on from a model's own layers."""
    layers, more = (getattr(config, field, 0) for field in ("num_hidden_layers", "num_nextn_predict_layers"))
    return range(layers, layers + more) if type(layers) is int and type(more) is int else range(0)


def _is_mtp(name: str, beyond: range) -> bool:
    """Whether a weight belongs to the MTP layers that come with a model."""
    layer = _LAYER.search(name)
    return bool(_MTP.search(name)) or (layer is not None and int(layer[2]) in beyond)


# One tokenizer


_ADDED = "if tokenizer.json lacks the token, remove what adds it from tokenizer_config.json (special token or class)"
"""Remedy for a token that is added when a tokenizer is loaded."""


def _differ(common: CommonTokens) -> str:
    """A remark about a draft with another tokenizer."""
    ours, theirs = common.target.get_vocab(), common.draft.get_vocab()
    places = {token: (ours.get(token, "absent"), theirs.get(token, "absent")) for token in ours | theirs}
    token = min((t for t, (one, other) in places.items() if one != other), key=(theirs | ours).__getitem__)
    return (
        f"the tokenizers differ (token {token!r} is {places[token][0]} and {places[token][1]}): only what they "
        f"have in common is drafted, {common.count} of {len(ours)} and {len(theirs)} tokens. spectheory doctor says "
        "what share of a text that is"
    )


def _vocabulary(tokenizer: Any, *models: Model) -> int:
    """V: all ids of the tokenizer are below V; a ModelError names the first token without an output in some model."""
    ids = tokenizer.get_vocab()
    last = max(ids, key=ids.__getitem__)
    short = min(models, key=lambda model: model.outputs)
    if ids[last] >= short.outputs:
        first = min((token for token in ids if ids[token] >= short.outputs), key=ids.__getitem__)
        raise ModelError(
            f"{short.name!r} has {short.outputs} outputs, and the tokenizer's ids go up to {ids[last]}: "
            f"token {first!r} is {ids[first]}",
            limit="every token id needs an output",
            remedy=f"use the tokenizer the model was made with, or {_ADDED}",
        )
    return int(ids[last]) + 1


def _has_pickles(source: str | Path, revision: str | None) -> bool:
    """Whether the loaded weights are pickled; transformers prefers safetensors where both exist."""
    safe, unsafe = (
        any(file_of(source, f"{name}{end}", revision) for end in ("", ".index.json"))
        for name in ("model.safetensors", "pytorch_model.bin")
    )
    return unsafe and not safe
