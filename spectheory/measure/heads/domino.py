"""Domino: a DFlash block whose later drafts are corrected by a recurrent state of the tokens before."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from spectheory.cost.head_config import LAYER_FIELDS
from spectheory.errors import ModelError
from spectheory.measure.heads.checkpoint import HeadConfig
from spectheory.measure.heads.corrected import CorrectedHead
from spectheory.measure.heads.dflash import DFlash
from spectheory.measure.heads.formats import Format, HeadFiles, Names, Raw, dflash_files, projector_of


class Domino(CorrectedHead):
    r"""A Domino head. With x_0 the anchor, draft i > `pure_draft_prefix_len` has the logits of the formula.

    .. math:: \text{base} + W_2\, \text{silu}(W_1 [z; g_i]), \quad g_i = \text{GRU}(E[x_0], ..., E[x_{i-1}])

    Those before have the block's own. z is the output of its slot: slot i - 1 with `shift_label`, else slot i.
    """

    kind: ClassVar[str] = "domino"
    layer_field: ClassVar[str | None] = LAYER_FIELDS["domino"]
    anchored: ClassVar[str] = "shift_label"
    fields: ClassVar[dict[str, Any]] = {
        **{name: default for name, default in DFlash.fields.items() if name != "sample_from_anchor"},
        "shift_label": False,
        "pure_draft_prefix_len": 0,
        "emb_dim": None,
        "gru_hidden_dim": None,
    }

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        self.prefix = config.fields["pure_draft_prefix_len"]
        for name, least in (("pure_draft_prefix_len", 0), ("emb_dim", 1), ("gru_hidden_dim", 1)):
            if (value := config.fields[name]) is None or value < least:
                raise ModelError(
                    f"the domino head has {name} = {value}",
                    limit=f"it must be a whole number of at least {least}",
                    remedy="save or download the head again",
                )
        self.remembers, inner = config.fields["gru_hidden_dim"], config.fields["emb_dim"]
        self.prefix_gru = nn.GRU(config.width, self.remembers, batch_first=True, bias=False)
        self.embed_proj = nn.Sequential(
            nn.Linear(config.width + self.remembers, inner, bias=False),
            nn.SiLU(),
            nn.Linear(inner, config.drafted, bias=False),
        )

    def correct(self, outputs: Tensor, tokens: Tensor, memory: Tensor, depths: Tensor) -> tuple[Tensor, Tensor]:
        """Logits corrected by all tokens of the call before."""
        memory = self.prefix_gru(self.embed(tokens)[:, None], memory[None].contiguous())[1][0]
        more = self.embed_proj(torch.cat([outputs, memory], dim=-1))
        return self.drafted_logits(outputs) + torch.where(depths[:, None] < self.prefix, 0.0, more), memory


def _files(raw: Raw, names: Names, name: str) -> HeadFiles:
    said = raw["dflash_config"]
    fields = {field: field for field in ("shift_label", "pure_draft_prefix_len", "emb_dim", "gru_hidden_dim")}
    return dflash_files("domino", raw, names, name, from_anchor=said.get("shift_label") is True, fields=fields)


DOMINO = Format(
    "Domino",
    "SpecForge, ModelOpt",
    "`dflash_config.projector_type` of `domino`",
    lambda raw, names: projector_of(raw) == "domino",
    _files,
)
