"""DSpark: a DFlash block, a low-rank Markov bias of each draft by the token before, and a confidence in each draft."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from reprlib import repr as brief
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from spectheory.cost.head_config import LAYER_FIELDS
from spectheory.errors import ModelError
from spectheory.measure.heads.checkpoint import HeadConfig
from spectheory.measure.heads.corrected import CorrectedHead
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.formats import (
    Format,
    HeadFiles,
    Names,
    Raw,
    _architectures,
    dflash_files,
    projector_of,
)

MARKOV = ("vanilla", "gated", "rnn")
"""Kinds of the Markov bias."""


class _Markov(nn.Module):
    """The bias W2 b(x, z) ``[s, drafted]``, x the token before and z the slot's output, with e = W1[x] of rank r.

    - vanilla: b = e.
    - gated: b = sigma(G [z; e] + g) e.
    - rnn: b = tanh(o), with (u, c, o) = J [s; e; z] + j, and s becomes sigma(u) s + (1 - sigma(u)) tanh(c).
    """

    def __init__(self, config: HeadConfig) -> None:
        super().__init__()
        rank, self.form = config.fields["markov_rank"], config.fields["markov_head_type"]
        self.markov_w1 = nn.Embedding(config.vocabulary, rank)
        self.markov_w2 = nn.Linear(rank, config.drafted, bias=False)
        if self.form == "gated":
            self.gate_proj = nn.Linear(config.width + rank, rank)
        if self.form == "rnn":
            self.joint_proj = nn.Linear(2 * rank + config.width, 3 * rank)

    def forward(self, outputs: Tensor, tokens: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The bias, and the state s ``[s, r]`` after it."""
        mixed = before = self.markov_w1(tokens)
        if self.form == "gated":
            mixed = torch.sigmoid(self.gate_proj(torch.cat([outputs, before], dim=-1))) * before
        if self.form == "rnn":
            kept, new, mixed = self.joint_proj(torch.cat([memory, before, outputs], dim=-1)).chunk(3, dim=-1)
            memory, mixed = torch.lerp(torch.tanh(new), memory, torch.sigmoid(kept)), torch.tanh(mixed)
        return self.markov_w2(mixed), memory


class DSpark(CorrectedHead):
    """A DSpark head.

    With `dspark_draft_topk` only so many ids of the largest logits before the bias are drafted: vLLM's field.
    """

    kind: ClassVar[str] = "dspark"
    layer_field: ClassVar[str | None] = LAYER_FIELDS["dspark"]
    fields: ClassVar[dict[str, Any]] = {
        **DFlash.fields,
        "sample_from_anchor": True,
        "markov_rank": 256,
        "markov_head_type": "vanilla",
        "enable_confidence_head": True,
        "confidence_head_with_markov": True,
        "dspark_draft_topk": None,
    }

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        fields = config.fields
        for what, limit in _faults(fields, config.drafted):
            raise ModelError(f"the dspark head has {what}", limit=limit, remedy="save or download the head again")
        rank, self.top = fields["markov_rank"], fields["dspark_draft_topk"]
        self.markov_head = _Markov(config) if rank else None
        self.remembers = rank if fields["markov_head_type"] == "rnn" else 0
        self.by_token = fields["confidence_head_with_markov"]
        read = config.width + rank * self.by_token
        self.confidence_head = nn.ModuleDict({"proj": nn.Linear(read, 1)}) if fields["enable_confidence_head"] else None

    def correct(self, outputs: Tensor, tokens: Tensor, memory: Tensor, depths: Tensor) -> tuple[Tensor, Tensor]:
        """Logits with the Markov bias of the token before."""
        logits = plain = self.drafted_logits(outputs)
        if self.markov_head is not None:
            bias, memory = self.markov_head(outputs, tokens, memory)
            logits = plain + bias
        if self.top is not None:
            kept = plain.topk(self.top, dim=-1).indices
            logits = torch.full_like(logits, -torch.inf).scatter_(-1, kept, logits.gather(-1, kept))
        return logits, memory

    def confidence(self, outputs: Tensor, tokens: Tensor) -> Tensor | None:
        """sigma(w [z; W1[x]] + b), or of z alone; None of a head without."""
        if self.confidence_head is None:
            return None
        if self.by_token:
            assert self.markov_head is not None
            outputs = torch.cat([outputs, self.markov_head.markov_w1(tokens)], dim=-1)
        return torch.sigmoid(self.confidence_head["proj"](outputs)[:, 0].float())


def _faults(fields: Mapping[str, Any], drafted: int) -> Iterator[tuple[str, str]]:
    """Fields that describe no head, each with its limit."""
    rank, form, top = (fields[name] for name in ("markov_rank", "markov_head_type", "dspark_draft_topk"))
    if rank < 0:
        yield f"markov_rank = {rank}", "it must be at least 0"
    if form not in MARKOV:
        yield f"markov_head_type = {brief(form)}", f"there are {', '.join(MARKOV)}"
    if top is not None and not 1 <= top <= drafted:
        yield f"dspark_draft_topk = {top}", f"it must be in 1..{drafted}, the ids that are drafted"
    if rank == 0 and fields["enable_confidence_head"] and fields["confidence_head_with_markov"]:
        yield "markov_rank = 0 and confidence_head_with_markov", "the confidence reads the Markov head"
    if form == "rnn" and not fields["sample_from_anchor"]:
        yield "markov_head_type = 'rnn' without sample_from_anchor", "its state begins at a slot that drafts"


def _files(raw: Raw, names: Names, name: str) -> HeadFiles:
    """The anchor's slot drafts, and a confidence is there if its weights are, where the file does not say it.

    It reads the token before in ModelOpt; in SpecForge only where the file says so.
    """
    heads = ("markov_rank", "markov_head_type", "enable_confidence_head", "confidence_head_with_markov")
    fields = {field: field for field in (*heads, "dspark_draft_topk")}
    known = ("use_confidence_head", "confidence_head_alpha", "attention_mode", "shift_label")
    files = dflash_files("dspark", raw, names, name, from_anchor=True, fields=fields, known=known)
    sure, by_token = (any(part in each for each in names) for part in ("confidence_", "confidence_proj."))
    unsaid = {"markov_rank": 0, "enable_confidence_head": sure, "confidence_head_with_markov": by_token}
    return replace(files, config={**unsaid, **files.config})


DSPARK = Format(
    "DSpark",
    "DeepSpec, SpecForge, ModelOpt",
    "an architecture with `DSpark` and a Markov or confidence head, or `dflash_config.projector_type` of `dspark`",
    lambda raw, names: "dspark" in _architectures(raw) or projector_of(raw) == "dspark",
    _files,
)
