"""Draft heads that transformers' generation drafts with by itself: DFlash by its network for such heads, MTP modules.

How transformers 5.23 works, from its source: the prompt's own pass drafts nothing and emits the first token. Every
later call drafts a whole block less its anchor, or one token for each MTP module, near the end of a text too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from unittest.mock import patch

import transformers

from spectheory.errors import SettingError
from spectheory.measure.common_tokens import TEXT
from spectheory.measure.heads.base import Head
from spectheory.measure.heads.checkpoint import CheckpointHead
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.mtp import FED_NORMED, HIDDEN_FIRST, ZERO_FIRST, Mtp
from spectheory.measure.model_files import quiet
from spectheory.measure.pair import ModelPair


def drafts_of_head(pair: ModelPair) -> int | None:
    """Drafts of a call when transformers drafts with a head, which it does not choose; None for other drafts.

    Refuses a draft that transformers does not run as engines do.
    """
    head, common = pair.draft.head, pair.draft.common
    if common and common.outside != TEXT:
        raise SettingError(
            f"--outside is {common.outside}",
            limit="transformers writes the text and reads it again with the draft's tokenizer",
            remedy=f"use --outside {TEXT}",
        )
    if head is None:
        return None
    if (reason := _why_not(pair, head)) is not None:
        raise SettingError(
            f"the draft {pair.draft.name!r} is a draft head",
            limit=f"transformers' generation does not run it: {reason}",
            remedy="leave out --check, or use spectheory validate",
        )
    return head.deepest or 1


def _why_not(pair: ModelPair, head: Head) -> str | None:
    if not isinstance(head, DFlash | Mtp) or head.kind not in ("dflash", "mtp"):
        return f"it has no heads of the kind {head.kind}"
    if pair.target.outputs != pair.vocabulary:
        return "it would draft ids that the tokenizer lacks"
    if isinstance(head, Mtp):
        return _why_no_modules(pair, head)
    if not hasattr(transformers, "MuseGlimmerAssistantModel"):
        return "DFlash needs transformers 5.23"
    block, fields, own = head.config.block, head.config.fields, dict(head.named_parameters())
    by_slot = fields["sliding_window_by_slot"] and fields["sliding_window_non_causal"]
    reasons = {
        "its slot of the anchor drafts": head.first_slot == 0,
        "its embeddings or its output matrix are not the target's": any("embed" in n or "lm_head" in n for n in own),
        "its vocabulary is pruned": head.d2t is not None,
        "it reads the output of the target's last layer": max(head.layers)
        == len(pair.target.network.get_decoder().layers),
        "its layers have biases": bool(getattr(block, "attention_bias", False)),
        "its windows count otherwise": any(head.slides) and not by_slot,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _why_no_modules(pair: ModelPair, head: Mtp) -> str | None:
    if not hasattr(transformers.GenerationConfig(), "use_mtp"):
        return "MTP needs transformers 5.23"
    if getattr(pair.target.network, "_is_stateful", False):
        return f"it does not assist a target with a state, as {type(pair.target.network).__name__} has"
    if pair.draft.source != pair.target.source:
        return "it takes the MTP modules of the target's own checkpoint"
    fields = head.config.fields
    if fields[HIDDEN_FIRST] or fields[ZERO_FIRST] or not fields[FED_NORMED]:
        return "it feeds back states after the norm, and keeps the embedding at position 0"
    return None


@contextlib.contextmanager
def _assisting(pair: ModelPair) -> Iterator[dict[str, Any]]:
    """Arguments of transformers' `generate` by which it drafts with the pair's draft."""
    head = pair.draft.head
    if head is None:
        yield {"assistant_model": pair.draft.network}
    elif isinstance(head, DFlash):
        yield {"assistant_model": _block_model(head), "speculation_type": "dflash"}
    else:
        from transformers.modeling_layers import MtpModel

        assert isinstance(head, CheckpointHead)
        with _counted(pair, len(head.blocks)), patch.object(MtpModel, "from_pretrained", return_value=_modules(pair)):
            yield {"use_mtp": True}


@lru_cache(maxsize=1)
def _block_model(head: DFlash) -> Any:
    """The head in transformers' network for DFlash, whose window reaches one position further than its number."""
    block = head.config.block
    same = (
        *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"),
        *("head_dim", "rms_norm_eps", "rope_parameters", "max_position_embeddings", "hidden_act"),
    )
    config = transformers.MuseGlimmerAssistantConfig(
        **{name: getattr(block, name) for name in same},
        layer_types=["sliding_attention" if slides else "full_attention" for slides in head.slides],
        sliding_window=(block.sliding_window or block.max_position_embeddings) - 1,
        block_size=head.block_size,
        mask_token_id=head.mask_token,
        target_layer_ids=[layer - 1 for layer in head.layers],
    )
    model: Any = transformers.MuseGlimmerAssistantModel(config)
    names = {"blocks": "layers", "fc": "encoder.fc", "hidden_norm": "encoder.output_norm_enc"}
    weights = {name.partition(".")[::2]: weight for name, weight in head.named_parameters()}
    model.load_state_dict({f"{names.get(part, part)}.{rest}": weight for (part, rest), weight in weights.items()})
    return model.to(device=head.embed_tokens.weight.device, dtype=head.dtype).eval()


@lru_cache(maxsize=1)
def _modules(pair: ModelPair) -> Any:
    """The target's MTP modules as transformers reads them."""
    from transformers.modeling_layers import MtpModel

    with quiet():
        return MtpModel.from_pretrained(pair.target.network).eval()


@contextlib.contextmanager
def _counted(pair: ModelPair, modules: int) -> Iterator[None]:
    """The target with its MTP modules in its configuration, where some families of transformers do not count them."""
    network = pair.target.network
    config = network.config.get_text_config()
    said: dict[str, Any] = {"num_mtp_layers": modules}
    if getattr(config, "layer_types", None):
        said["mtp_layer_types"] = ["full_attention"] * modules
    before = {name: getattr(config, name, None) for name in said}
    names = [r"mtp", *(rf"model\.layers\.{config.num_hidden_layers + i}\." for i in range(modules))]
    try:
        for name, value in said.items():
            setattr(config, name, value)
        with patch.object(network, "_keys_to_ignore_on_load_unexpected", names):
            yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)
