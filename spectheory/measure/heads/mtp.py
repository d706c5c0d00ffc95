"""MTP: transformer layers over the target's last hidden state and the embedding of the token that follows.

One module is applied again, to its own state and draft, for every further draft. Several modules draft one token each:
module m reads the states of module m - 1 at all rows of the text, with tokens shifted by one more.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache

from spectheory.errors import ModelError
from spectheory.measure.heads.base import AutoregressiveReading, HeadReading
from spectheory.measure.heads.checkpoint import (
    PIECE,
    WITH_MTP,
    AutoregressiveHead,
    Family,
    HeadConfig,
    check_depth,
    family_of,
    mask_of,
)

HIDDEN_FIRST, FED_NORMED, ZERO_FIRST = "mtp_hidden_states_first", "mtp_fed_normed", "mtp_zero_first"
"""Fields of config.json in which families differ; see :class:`Mtp`."""


class _Module(nn.Module):
    """A layer of transformers between a projection of normed embeddings and states, and a norm."""

    def __init__(self, family: Family, block: Any, number: int) -> None:
        super().__init__()
        width, eps = block.hidden_size, block.rms_norm_eps
        kinds = getattr(block, "layer_types", None) or ["full_attention"] * block.num_hidden_layers
        if "full_attention" not in kinds:
            raise ModelError(
                "the mtp head has no layer of full attention",
                limit="its layer is one",
                remedy="download the head again",
            )
        layer = family.layer(block, len(kinds) - 1 - kinds[::-1].index("full_attention"))  # the last one of its kind
        layer.self_attn.layer_idx = number  # each module has keys and values of its own
        for name, part in layer.named_children():
            self.add_module(name, part)
        self._layer = (layer,)  # its parts are those above
        self.hidden_layernorm, self.token_layernorm = family.norm(width, eps=eps), family.norm(width, eps=eps)
        self.input_proj = nn.Linear(2 * width, width, bias=False)
        self.final_layernorm = family.norm(width, eps=eps)

    def forward(self, embedded: Tensor, states: Tensor, *, hidden_first: bool, **rest: Any) -> Tensor:
        """Outputs ``[b, s, width]`` of embeddings and states ``[b, s, width]``, before the norm."""
        both = [self.token_layernorm(embedded), self.hidden_layernorm(states)]
        output: Tensor = self._layer[0](self.input_proj(torch.cat(both[::-1] if hidden_first else both, -1)), **rest)
        return output


class Mtp(AutoregressiveHead):
    """A multi-token-prediction head.

    It reads the target's last hidden state *after* the final norm, as engines serve it. The trainer of speculators
    feeds the state before that norm; the two differ by the norm's weight, since the head norms its input again. Fields:

    - `mtp_fed_normed`: a draft's state is fed back after the module's last norm, else before it.
    - `mtp_zero_first`: the embedding at position 0 is zero.
    - `mtp_hidden_states_first`: the projection reads [state, embedding], else [embedding, state].
    """

    kind: ClassVar[str] = "mtp"
    fields: ClassVar[dict[str, Any]] = {
        "num_nextn_predict_layers": 1,
        HIDDEN_FIRST: False,
        FED_NORMED: True,
        ZERO_FIRST: False,
    }
    families: ClassVar[tuple[str, ...]] = ("qwen2", "qwen3", *WITH_MTP)
    blocks_named: ClassVar[str] = "mtp_layers"
    first_position: ClassVar[int] = 0

    def __init__(self, config: HeadConfig, layers: tuple[int, ...], **of_target: Any) -> None:
        super().__init__(config, layers, **of_target)
        modules, family = config.fields["num_nextn_predict_layers"], family_of(config.block)
        if not 1 <= modules <= _MOST_MODULES:
            raise ModelError(
                f"the mtp head has num_nextn_predict_layers = {modules}",
                limit=f"a head has 1 to {_MOST_MODULES} modules",
                remedy="save or download the head again",
            )
        self.blocks = nn.ModuleList([_Module(family, config.block, i) for i in range(modules)])
        self.rotary = family.rotary(config.block)
        self.deepest = None if modules == 1 else modules
        self.trained = min(self.trained, self.deepest or self.trained)

    @staticmethod
    def default_layers(count: int) -> tuple[int, ...]:
        """The last hidden state."""
        return (count,)

    def fuse(self, hidden: Tensor) -> Tensor:
        """States of the target's last hidden states."""
        return self.final_norm(hidden)

    def step(
        self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Cache, module: int = 0
    ) -> Tensor:
        """States of new cells of a module."""
        embedded = self.embed(tokens)
        if self.config.fields[ZERO_FIRST]:
            embedded = embedded.masked_fill(positions[..., None] == 0, 0)
        output = self.blocks[module](
            embedded,
            states,
            hidden_first=self.config.fields[HIDDEN_FIRST],
            position_embeddings=self.rotary(states, positions),
            attention_mask=mask_of(seen, states.dtype),
            past_key_values=keys,
        )
        return self._normed(output, module) if self.config.fields[FED_NORMED] else output

    def logits(self, states: Tensor, module: int = 0) -> Tensor:
        """Logits after cells of a module with these states."""
        return self.target_logits(states if self.config.fields[FED_NORMED] else self._normed(states, module))

    def reading(self) -> HeadReading:
        """Start reading a text."""
        return super().reading() if self.deepest is None else _ModulesReading(self)

    def _normed(self, output: Tensor, module: int) -> Tensor:
        block: Any = self.blocks[module]
        normed: Tensor = block.final_layernorm(output)
        return normed


_MOST_MODULES = 64
"""Far above the modules of every checkpoint."""


class _ModulesReading(AutoregressiveReading):
    """Rows of the text in every module, and rows that were drafted.

    Row r of module m is pair r with the token m places further. Below place t, row t - m + 1 of module m is the first
    whose token is a draft. So a node of depth d has d rows of module d: t - d + 1 to t, with its path's tokens.

    Rows of the text are read in module m together with the first drafts in it: a call takes a pass of each module.

    A level has the place ``[n]`` and the path ``[n, d]`` of each node of depth d; the rows of its nodes follow those of
    the text, node after node. `_nodes` has depth and number in the level of each node. Places are level 0.
    """

    _nodes: Tensor
    _levels: list[tuple[Tensor, Tensor]]

    def __init__(self, head: Mtp) -> None:
        like = head.embed_tokens.weight
        self._head, self._device = head, like.device
        self._keys: Any = DynamicCache()
        self._states = [like.new_empty(0, head.config.width) for _ in head.blocks]
        self._following = torch.empty(0, dtype=torch.int64, device=like.device)
        self._text = [0 for _ in head.blocks]  # rows of the text that each module has read
        self.forget()

    @torch.no_grad()
    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs; see :meth:`~spectheory.measure.heads.base.HeadReading.read`."""
        self.forget()
        old, self.pairs = self.pairs, self.pairs + len(following)
        self._following = torch.cat([self._following, following.to(self._following)])
        fused = self._head.fuse(hidden.to(self._states[0]))
        for part in _pieces(self._range(old, self.pairs)):
            self._read_rows(0, fused[part - old], part)
        self.forget()

    @torch.no_grad()
    def first(self, places: Tensor) -> Tensor:
        """Logits of the first draft; see :meth:`~spectheory.measure.heads.base.Extending.first`."""
        return self._head.logits(self._states[0][places.to(self._device)])

    @torch.no_grad()
    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Read drafts, all of one depth; see :meth:`~spectheory.measure.heads.base.Extending.extend`."""
        parents, above = parents.to(self._device), 0
        numbers = -1 - parents
        if int(parents[0]) >= 0:
            depths, numbers = self._nodes[parents].unbind(dim=1)
            above = int(depths[0])
        d = above + 1
        check_depth(self._head, d + 1)
        places, paths = (part[numbers] for part in self._levels[above])
        paths = torch.cat([paths, tokens.to(self._device)[:, None]], dim=1)
        drafted = self._text[above] + numbers[:, None] * above + self._range(0, above)
        states = self._states[above][torch.cat([(places[:, None] - above).clamp(min=0), drafted], dim=1)]
        known, count = self._levels[d], len(self._levels[d][0])
        new = torch.stack([torch.full_like(places, d), self._range(count, count + len(places))], dim=1)
        self._nodes = torch.cat([self._nodes, new])
        self._levels[d] = torch.cat([known[0], places]), torch.cat([known[1], paths])
        *pieces, late = _pieces(self._range(self._text[d], max(self._text[d], self.pairs - d))) or [places[:0]]
        for piece in pieces:
            self._read_rows(d, self._states[above][piece], piece)
        logits = []
        for part in self._range(0, len(places)).split(max(1, PIECE // d)):
            logits.append(self._drafted(d, places[part], states[part], paths[part], late))
            late = late[:0]
        return torch.cat(logits)

    def forget(self) -> None:
        """Forget all drafted nodes."""
        for m, states in enumerate(self._states):
            if drafted := len(states) - self._text[m]:
                self._keys.layers[m].crop(-drafted)
                self._states[m] = states[:-drafted]
        none = self._following[:0]
        self._nodes = none.view(0, 2)
        self._levels = [(none, none.view(0, d)) for d in range(len(self._states))]
        self._levels[0] = self._range(0, self.pairs), self._following.view(-1, 1)[:, :0]

    def _drafted(self, d: int, places: Tensor, states: Tensor, paths: Tensor, late: Tensor) -> Tensor:
        """Logits ``[n, V]`` after nodes, from the states ``[n, d, width]`` that their rows read.

        The rows `late` ``[l]`` of the text are read with them.
        """
        self._text[d] += len(late)
        rows = (places[:, None] + self._range(1 - d, 1)).flatten()
        text, new = self._range(0, self._text[d]), self._range(0, len(rows))
        last = torch.cat([late, places.repeat_interleave(d) - d])  # the last row of the text that each row sees
        inside = (new // d == new[:, None] // d) & (new <= new[:, None]) & (rows >= 0)  # none is before the text
        seen = torch.zeros(len(last), len(self._states[d]) + len(last), dtype=torch.bool, device=self._device)
        seen[:, : len(text)] = text <= last[:, None]
        seen[len(late) :, -len(rows) :] = inside | (new == new[:, None])
        outputs = self._step(
            d,
            torch.cat([self._states[d - 1][late], states.flatten(0, 1)]),
            torch.cat([self._following[late + d], paths.flatten()]),
            torch.cat([late, rows.clamp(min=0)]),
            seen,
        )
        return self._head.logits(outputs[len(late) :].view(*states.shape)[:, -1], d)

    def _read_rows(self, m: int, states: Tensor, rows: Tensor) -> None:
        """Read rows of the text in module m."""
        self._text[m] += len(rows)
        self._step(m, states, self._following[rows + m], rows, rows[:, None] >= self._range(0, self._text[m]))

    def _step(self, m: int, states: Tensor, tokens: Tensor, rows: Tensor, seen: Tensor) -> Tensor:
        """States of new rows of module m."""
        outputs = self._head.step(states[None], tokens[None], rows[None], seen[None], self._keys, m)[0]
        self._states[m] = torch.cat([self._states[m], outputs])
        return outputs

    def _range(self, begin: int, end: int) -> Tensor:
        return torch.arange(begin, end, device=self._device)


def _pieces(rows: Tensor) -> list[Tensor]:
    """Rows of one pass each; none where there are none."""
    return list(rows.split(PIECE)) if len(rows) else []
