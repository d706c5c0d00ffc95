"""Heads as the format of speculators has them: their configuration, read and checked, the tensors that all have, and
how those read a text that read their own drafts.
"""

from __future__ import annotations

import importlib
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any, ClassVar, NoReturn

import torch
import transformers
from torch import Tensor, nn
from torch.nn.functional import embedding, linear
from transformers import Cache, DynamicCache

from spectheory.cost.head_config import MARK
from spectheory.errors import ModelError, SettingError
from spectheory.measure.heads.base import AutoregressiveReading, Head, HeadReading
from spectheory.measure.model_files import guarded, moving_rope


@dataclass(frozen=True)
class Family:
    """The classes of a family of layers in transformers."""

    layer: Any
    norm: Any
    rotary: Any


FAMILIES = {"llama": ("llama", "Llama", ""), "qwen2": ("qwen2", "Qwen2", ""), "qwen3": ("qwen3", "Qwen3", "")}
"""Model types of plain transformers: module in transformers, and how the names of its classes begin."""
WITH_MTP = {
    "qwen3_next": ("qwen3_next", "Qwen3Next", ""),
    "qwen3_5_text": ("qwen3_5", "Qwen3_5", "Text"),
    "qwen3_5_moe_text": ("qwen3_5_moe", "Qwen3_5Moe", "Text"),
    "deepseek_v3": ("deepseek_v3", "DeepseekV3", ""),
    "glm4_moe": ("glm4_moe", "Glm4Moe", ""),
}
"""Model types of which MTP modules alone have layers, and what stands before ``RotaryEmbedding`` there."""


def family_of(block: Any) -> Family:
    """The family of a configuration."""
    folder, begin, rotary = (FAMILIES | WITH_MTP)[block.model_type]
    module = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    names = f"{begin}DecoderLayer", f"{begin}RMSNorm", f"{begin}{rotary}RotaryEmbedding"
    return Family(*(getattr(module, name) for name in names))


def mask_of(seen: Tensor, dtype: torch.dtype) -> Tensor:
    """The additive mask ``[b, 1, s, c]`` of which cells ``[b, s, c]`` each query sees."""
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -math.inf)[:, None]


KNOWN_VERSION = (0, 9)
"""Latest major and minor version of the format whose fields are known."""
_COMMON = frozenset(
    {
        MARK,
        "architectures",
        "speculators_version",
        "speculators_config",
        "transformer_layer_config",
        "draft_vocab_size",
        "model_type",
        "auto_map",
        "_commit_hash",
        "torch_dtype",
    }
)
_DISPUTED = {"norm_before_residual": "true"}
"""Fields whose default is false in speculators, and what vLLM takes where they are left out."""
MOST_DRAFTS = 1024
"""Most drafts of a call."""


@dataclass(frozen=True)
class HeadConfig:
    """What a head's config.json says.

    - `kind`: the head's kind, and `version` of the format.
    - `block`: configuration of its transformer layers, V of the target as `vocab_size`.
    - `fields`: the fields of this kind, with defaults where the file has none.
    - `drafted`: how many ids it can draft; V unless its vocabulary is pruned.
    - `layers`: hidden states of the target that it reads; None where the file names none.
    - `trained`: drafts per call; `verifier`: name of the target it was trained for.
    """

    kind: str
    version: str
    block: Any
    fields: Mapping[str, Any]
    drafted: int
    layers: tuple[int, ...] | None
    trained: int
    verifier: str | None = None
    remarks: tuple[str, ...] = ()

    @property
    def vocabulary(self) -> int:
        """V of the target."""
        return int(self.block.vocab_size)

    @property
    def width(self) -> int:
        """Hidden size of the head."""
        return int(self.block.hidden_size)

    @property
    def slides(self) -> bool:
        """Whether one of its layers has a sliding window."""
        return "sliding_attention" in (getattr(self.block, "layer_types", None) or ())

    @property
    def target_width(self) -> int:
        """Hidden size of the target."""
        return int(self.fields.get("target_hidden_size") or self.width)


def _parse_config(
    raw: Mapping[str, Any], name: str, fields: Mapping[str, Any], layer_field: str | None, families: tuple[str, ...]
) -> HeadConfig:
    """Check a configuration against the fields of its kind; `layer_field` names the target's layers."""
    values = {field: _typed(raw, field, default, name) for field, default in fields.items()}
    block = _block(raw, name, families)
    drafted = raw.get("draft_vocab_size")
    drafted = block.vocab_size if drafted is None else _count(drafted, "draft_vocab_size", name)
    if drafted > block.vocab_size:
        _refuse(name, f"draft_vocab_size = {brief(drafted)}", f"the target's vocabulary has {block.vocab_size} ids")
    version = str(raw.get("speculators_version", "unknown"))
    layers = raw.get(layer_field) if layer_field else None
    if layers is not None and not (isinstance(layers, list) and layers and all(type(each) is int for each in layers)):
        _refuse(name, f"{layer_field} = {brief(layers)}", "it must be a list of whole numbers")
    verifier = _mapping(_mapping(raw, "speculators_config"), "verifier").get("name_or_path")
    return HeadConfig(
        kind=str(raw[MARK]),
        version=version,
        block=block,
        fields=values,
        drafted=drafted,
        layers=layers if layers is None else tuple(layers),
        trained=_trained(raw, name),
        verifier=str(verifier) if verifier else None,
        remarks=(
            *_newer(raw, name, version, {*fields, layer_field}),
            *(
                f"config.json of the head {name!r} leaves out {field}: it is false here as in speculators, "
                f"{other} in vLLM"
                for field, other in _DISPUTED.items()
                if field in fields and field not in raw
            ),
        ),
    )


def _refuse(name: str, what: str, limit: str, remedy: str = "save or download the head again") -> NoReturn:
    raise ModelError(f"{name!r}: config.json has {what}", limit=limit, remedy=remedy)


_TYPES: Mapping[type, str] = {bool: "true or false", int: "a whole number", str: "a word"}


def _typed(raw: Mapping[str, Any], field: str, default: Any, name: str) -> Any:
    value = raw.get(field, default)
    wanted = int if default is None else type(default)
    if type(value) is not wanted and not (value is None and default is None):
        _refuse(name, f"{field} = {brief(value)}", f"it must be {_TYPES[wanted]}")
    return value


def _count(value: Any, field: str, name: str) -> int:
    if type(value) is not int or value < 1:
        _refuse(name, f"{field} = {brief(value)}", "it must be a whole number of at least 1")
    return int(value)


def _block(raw: Mapping[str, Any], name: str, families: tuple[str, ...]) -> Any:
    """Configuration of the transformer layers; a missing model type is qwen3, as in speculators."""
    said = raw.get("transformer_layer_config")
    if not isinstance(said, Mapping):
        _refuse(name, "no transformer_layer_config", "it describes the layers of the head")
    family = said.get("model_type", "qwen3")
    if family not in families:
        _refuse(
            name,
            f"layers of the family {brief(family)}",
            f"a head of this kind has layers of {' or '.join(families)}",
            "use a head with such layers",
        )
    rest = {key: value for key, value in said.items() if key not in ("model_type", "_attn_implementation")}
    block = guarded(name, "config.json", lambda: transformers.AutoConfig.for_model(family, **rest))
    for field in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"):
        _count(getattr(block, field, None), f"transformer_layer_config.{field}", name)
    if block.num_attention_heads % block.num_key_value_heads:
        heads = f"{block.num_attention_heads} and {block.num_key_value_heads}"
        _refuse(name, f"num_attention_heads and num_key_value_heads of {heads}", "the second must divide the first")
    if "sliding_attention" in (getattr(block, "layer_types", None) or ()):
        _count(getattr(block, "sliding_window", None), "transformer_layer_config.sliding_window", name)
    rope = guarded(name, "config.json", lambda: moving_rope(block))
    if rope:
        limit = "its frequencies depend on the length of the text, and engines choose them differently"
        _refuse(name, f"rope_type {rope[0]!r}", limit, "use a head with another rope_type")
    rotation = getattr(block, "rope_parameters", None) or {}
    if family in FAMILIES and rotation.get("partial_rotary_factor", 1) != 1:
        _refuse(name, "partial_rotary_factor", "position embeddings must turn whole vectors", "use another head")
    block._commit_hash = raw.get("_commit_hash")
    block._attn_implementation, block._experts_implementation = "sdpa", "eager"
    return block


def _mapping(raw: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = raw.get(field)
    return value if isinstance(value, Mapping) else {}


def _trained(raw: Mapping[str, Any], name: str) -> int:
    """Drafts per call of the default proposal method."""
    config = _mapping(raw, "speculators_config")
    listed = config.get("proposal_methods")
    methods = [m for m in listed if isinstance(m, Mapping)] if isinstance(listed, list) else []
    chosen = [m for m in methods if m.get("proposal_type") == config.get("default_proposal_method")] or methods
    if not chosen:
        _refuse(name, "no proposal_methods", "speculators_config must name the drafts of a call (speculative_tokens)")
    return min(_count(chosen[0].get("speculative_tokens"), "speculative_tokens", name), MOST_DRAFTS)


def _newer(raw: Mapping[str, Any], name: str, version: str, fields: set[str | None]) -> tuple[str, ...]:
    """A remark about a newer version; refused if it has fields whose meaning is not known."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2])) <= KNOWN_VERSION:
        return ()
    known = fields | _COMMON | transformers.PretrainedConfig().to_dict().keys()
    unknown = sorted(field for field, value in raw.items() if field not in known and value not in (None, False))
    latest = ".".join(map(str, KNOWN_VERSION))
    if unknown:
        _refuse(
            name,
            f"speculators_version {version} and the field {unknown[0]!r}",
            f"fields are known up to version {latest}, and this one may change the network",
            f"use a later spectheory, or a head saved by speculators {latest}",
        )
    return (f"the head {name!r} was saved by speculators {version}; its format is known here up to {latest}",)


def mask_token_of(config: HeadConfig) -> int:
    """The id whose embedding stands for a token not known yet."""
    mask = config.fields["mask_token_id"]
    if mask is None or not 0 <= mask < config.vocabulary:
        raise ModelError(
            f"the {config.kind} head has mask_token_id = {brief(mask)}",
            limit=f"it needs an id of the target's vocabulary, 0 to {config.vocabulary - 1}",
            remedy="save or download the head again",
        )
    return int(mask)


def check_depth(head: Head, depth: int) -> None:
    """Refuse more drafts than the head gives."""
    if head.deepest is not None and depth > head.deepest:
        raise SettingError(
            f"{depth} drafts in a call are asked for",
            limit=f"this {head.kind} head drafts at most {head.deepest}",
            remedy=f"use at most {head.deepest}",
        )


class _Matrix(nn.Module):
    """A matrix ``[rows, width]``: a parameter of the head, or the target's, which is none of its parameters."""

    weight: Tensor

    def __init__(self, rows: int, width: int, of_target: Tensor | None) -> None:
        super().__init__()
        if of_target is None:
            self.weight = nn.Parameter(torch.randn(rows, width) / math.sqrt(width))
        else:
            self.register_buffer("weight", of_target.detach(), persistent=False)


class CheckpointHead(Head):
    """A head that the format of speculators can store; its state dict has the format's names.

    `fields` are the fields of its configuration with their defaults, `layer_field` the one that names the target's
    layers, `families` the families of transformers' layers that it can have, `blocks_named` their name in checkpoints,
    `windows` whether it takes layers with a sliding window.
    `embeddings` and `outputs` are the target's matrices, ``[V, width]`` and ``[drafted, width]``, where the head has
    none of its own; `final_norm` is the target's norm of its last hidden state.
    """

    fields: ClassVar[Mapping[str, Any]]
    layer_field: ClassVar[str | None] = None
    families: ClassVar[tuple[str, ...]]
    blocks_named: ClassVar[str] = "layers"
    windows: ClassVar[bool] = False
    blocks: nn.ModuleList
    d2t: Tensor | None
    t2d: Tensor | None

    def __init__(
        self,
        config: HeadConfig,
        layers: tuple[int, ...],
        *,
        embeddings: Tensor | None = None,
        outputs: Tensor | None = None,
        final_norm: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.config, self.layers, self.trained, self.deepest = config, layers, config.trained, None
        self.vocabulary = config.vocabulary
        self._final_norm = (final_norm or nn.Identity(),)  # in a tuple it is no part of the head
        self.embed_tokens = _Matrix(config.vocabulary, config.width, embeddings)
        self.lm_head = _Matrix(config.drafted, config.width, outputs)
        pruned = config.drafted != config.vocabulary
        self.register_buffer("d2t", torch.zeros(config.drafted, dtype=torch.int64) if pruned else None)
        self.register_buffer("t2d", torch.zeros(config.vocabulary, dtype=torch.bool) if pruned else None)

    @classmethod
    def configured(cls, raw: Mapping[str, Any], name: str) -> HeadConfig:
        """The configuration that a head's config.json holds, checked."""
        return _parse_config(raw, name, cls.fields, cls.layer_field, cls.families)

    def weights(self) -> dict[str, Tensor]:
        """The tensors of its checkpoint by their names there; those of the target are left out."""
        return {self._theirs(name): value for name, value in self.state_dict().items()}

    def take(self, weights: Mapping[str, Tensor]) -> None:
        """Take the tensors of a checkpoint, which must be complete, in the precision of the head."""
        names = self.state_dict()
        self.load_state_dict({name: weights[self._theirs(name)] for name in names})

    def _theirs(self, name: str) -> str:
        """A tensor's name in checkpoints; `layers` of a head are those of the target."""
        return f"{self.blocks_named}.{name.removeprefix('blocks.')}" if name.startswith("blocks.") else name

    @staticmethod
    def default_layers(count: int) -> tuple[int, ...]:
        """Hidden states read where the configuration names none, of a target of so many layers."""
        return (2, count // 2, count - 3)

    def get_input_embeddings(self) -> nn.Module:
        """The embeddings."""
        return self.embed_tokens

    def final_norm(self, hidden: Tensor) -> Tensor:
        """The target's last hidden states ``[..., width]`` after its final norm."""
        return self._final_norm[0](hidden).to(hidden.device)  # a spread target's norm may be elsewhere

    def embed(self, tokens: Tensor) -> Tensor:
        """Embeddings ``[..., width]`` of token ids ``[...]``."""
        return embedding(tokens, self.embed_tokens.weight)

    def draft_only(self, ids: Tensor) -> None:
        """Set the ids ``[drafted]`` that a pruned vocabulary has, in ascending order."""
        assert self.d2t is not None
        assert self.t2d is not None
        self.d2t.copy_(ids - torch.arange(len(ids), device=ids.device))
        self.t2d.zero_()[ids] = True

    def target_logits(self, outputs: Tensor) -> Tensor:
        """Logits ``[..., V]`` of normed outputs ``[..., width]``; -inf for ids that the head cannot draft."""
        return self.in_vocabulary(self.drafted_logits(outputs))

    def drafted_logits(self, outputs: Tensor) -> Tensor:
        """Logits ``[..., drafted]`` of normed outputs ``[..., width]``."""
        # In bfloat16 on a CPU, rows that do not lie one after the other take a hundred times as long, and gigabytes.
        return linear(outputs.contiguous(), self.lm_head.weight)

    def in_vocabulary(self, logits: Tensor) -> Tensor:
        """Logits ``[..., V]`` of those of the ids that the head can draft; -inf for others."""
        if self.d2t is None:
            return logits
        ids = self.d2t + torch.arange(len(self.d2t), device=self.d2t.device)
        full = logits.new_full((*logits.shape[:-1], self.vocabulary), -math.inf)
        return full.index_copy(-1, ids, logits)


# Reading a text by a head that reads its own drafts: pairs first, then drafted nodes below them


PIECE = 512
"""Pairs read in one pass; it bounds the mask."""


class AutoregressiveHead(CheckpointHead):
    """A head that reads its own drafts. Gradients flow through its methods.

    A *cell* is a pair or a draft that was read, and has a *state* ``[..., width]``: :meth:`step` makes it from the
    state before (of a pair: the fused hidden states) and the cell's token. :meth:`logits` of the next token come from
    it. `first_position` is the position of pair 0 in its position embeddings; a draft stands one position further than
    its parent.
    """

    first_position: ClassVar[int] = 1

    @abstractmethod
    def fuse(self, hidden: Tensor) -> Tensor:
        """States ``[..., width]`` of the target's hidden states ``[..., layers * target width]``."""

    @abstractmethod
    def step(self, states: Tensor, tokens: Tensor, positions: Tensor, seen: Tensor, keys: Cache) -> Tensor:
        """States ``[b, s, width]`` of new cells.

        They come from the states ``[b, s, width]`` before, tokens and positions ``[b, s]``, and the cells that each
        sees ``[b, s, c]``, all those before in `keys` and the new ones.
        """

    @abstractmethod
    def logits(self, states: Tensor) -> Tensor:
        """Logits ``[..., V]`` after cells with states ``[..., width]``."""

    def reading(self) -> HeadReading:
        """Start reading a text."""
        return _PairsReading(self)


class CellsReading(HeadReading):
    """States, keys and values of cells: first the pairs read, each of which sees those before, then what is drafted."""

    def __init__(self, head: AutoregressiveHead) -> None:
        self.pairs, self._head, self._keys = 0, head, DynamicCache()
        like = head.embed_tokens.weight
        self._device = like.device
        self._states = like.new_empty(0, head.config.width)

    @torch.no_grad()
    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs; see :meth:`~spectheory.measure.heads.base.HeadReading.read`."""
        self.forget()
        if not len(following):
            return
        for states, tokens in zip(hidden.split(PIECE), following.split(PIECE), strict=True):
            before, self.pairs = self.pairs, self.pairs + len(tokens)
            cells = torch.arange(self.pairs, device=self._device)
            cells_read = cells[before:]
            fused = self._head.fuse(states.to(self._states))
            self._step(fused, tokens, cells_read, cells_read[:, None] >= cells)

    @torch.no_grad()
    def first(self, places: Tensor) -> Tensor:
        """Logits of the first draft; see :meth:`~spectheory.measure.heads.base.Extending.first`."""
        return self._head.logits(self._states[places.to(self._device)])

    def forget(self) -> None:
        """Forget all drafted cells."""
        if drafted := len(self._states) - self.pairs:
            self._keys.crop(-drafted)
        self._states = self._states[: self.pairs]

    def _step(self, states: Tensor, tokens: Tensor, places: Tensor, seen: Tensor) -> Tensor:
        tokens, positions = tokens.to(self._device), places + self._head.first_position
        states = self._head.step(states[None], tokens[None], positions[None], seen[None], self._keys)[0]
        self._states = torch.cat([self._states, states])
        return states


class _PairsReading(CellsReading, AutoregressiveReading):
    """Drafted nodes are cells, flat: each sees its pair and those before, and its parents.

    `_above` is the cell above each node, `_place` its position from that of pair 0. A pass over s nodes has a mask of
    s times (pairs + nodes) entries.
    """

    def __init__(self, head: AutoregressiveHead) -> None:
        super().__init__(head)
        self._above = torch.empty(0, dtype=torch.int64, device=self._device)
        self._place = torch.empty_like(self._above)

    @torch.no_grad()
    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Read drafts; see :meth:`~spectheory.measure.heads.base.Extending.extend`."""
        parents = parents.to(self._device)
        above = torch.where(parents < 0, -1 - parents, parents + self.pairs)
        old, s = len(self._above), len(parents)
        self._above = torch.cat([self._above, above])
        place = torch.cat([torch.arange(self.pairs, device=self._device), self._place])
        self._place = torch.cat([self._place, place[above] + 1])
        seen = self._ancestors(torch.arange(old, old + s, device=self._device) + self.pairs)
        return self._head.logits(self._step(self._states[above], tokens, self._place[old:], seen))

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self._above, self._place = self._above[:0], self._place[:0]
        super().forget()

    def _ancestors(self, cells: Tensor) -> Tensor:
        """Which cells ``[s, c]`` nodes ``[s]`` see: themselves, their parents, and pairs up to the first parent."""
        seen = torch.zeros(len(cells), self.pairs + len(self._above), dtype=torch.bool, device=self._device)
        above = torch.cat([torch.arange(self.pairs, device=self._device), self._above])
        while bool((cells >= self.pairs).any()):  # a pair is above itself
            seen.scatter_(1, cells[:, None], True)
            cells = above[cells]
        seen[:, : self.pairs] = torch.arange(self.pairs, device=self._device) <= cells[:, None]
        return seen
