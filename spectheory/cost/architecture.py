"""C3: parameters, memory traffic and operations of a model, from published sizes or those of its ``config.json``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spectheory.checks import amount, choice, instance, real, whole
from spectheory.cost.config import FORMATS, checked, layers_of, shape_of, stored_in
from spectheory.cost.experts import Routing, distinct_experts
from spectheory.cost.fields import LARGEST
from spectheory.cost.head_config import MARK, head_shape_in
from spectheory.cost.layers import Attention, Experts, Mlp, Part
from spectheory.errors import SettingError
from spectheory.intervals import Interval, Kind, weakest

Parts = tuple[tuple[int, Part], ...]
"""How often each part occurs in the layers."""
_UNQUANTISED = 2.0
"""Bytes per weight of what stays in 16 bits where the layers are quantised."""


@dataclass(frozen=True)
class ModelShape:
    """What a decoder-only model is made of: its parts of layers by kind, and its vocabulary (C3).

    The counts include the matrices and the norms before attention, MLP and output. They leave out biases, the norms of
    queries and keys, convolutions and vectors of recurrences, and a table of learned positions, of which a pass reads a
    few rows; together these are below 1e-2 of the parameters. Modules that predict further tokens (MTP) are a draft,
    and not counted with their target.

    `hidden` is the width of the residual stream, `parts` the parts of the layers with how often each occurs:
    attention, latent attention, recurrences, MLPs and mixtures of experts (:mod:`spectheory.cost.layers`). If `tied`,
    the output matrix is the embedding. `bytes_per_weight` and `bytes_per_kv` are as stored: 2 for 16 bits, 1 for 8, 0.5
    for 4. `bytes_per_output` are those of embedding and output matrix, `bytes_per_expert` those of routed experts; None
    is as the others. `window` is the longest text that the model was trained for, None if unknown. `fusion` counts
    further weights that a draft head multiplies a token by: to join hidden states of its target, to attend to
    embeddings beside them, and to correct drafts; 0 is no head. `looked_up` counts weights of further tables, of which
    a pass reads a few rows. `kind` is the
    ``model_type`` of the config.

    Examples
    --------
    >>> model = ModelShape.dense(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    >>> model.parameters, model.kv_bytes_per_token
    (1235814400, 32768.0)
    """

    hidden: int
    vocabulary: int
    parts: Parts
    tied: bool = False
    bytes_per_weight: float = 2.0
    bytes_per_kv: float = 2.0
    fusion: int = 0
    bytes_per_output: float | None = None
    bytes_per_expert: float | None = None
    window: int | None = None
    looked_up: int = 0
    kind: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        remedy = "take it from the config"
        instance("tied", self.tied, bool, remedy=remedy)
        for name in ("hidden", "vocabulary", "window"):
            if name != "window" or self.window is not None:
                whole(name, getattr(self, name), most=LARGEST, remedy=remedy)
        for name in ("fusion", "looked_up"):
            whole(name, getattr(self, name), least=0, remedy=remedy)
        for name in ("bytes_per_weight", "bytes_per_kv", "bytes_per_output", "bytes_per_expert"):
            if getattr(self, name) is not None or name in ("bytes_per_weight", "bytes_per_kv"):
                inside = f"must be > 0 and <= {LARGEST:g}"
                real(name, getattr(self, name), lambda size: 0 < size <= LARGEST, limit=inside, remedy=remedy)
        for each in instance("parts", self.parts, tuple, remedy="spectheory.cost.ModelShape.dense makes some"):
            count, part = each if isinstance(each, tuple) and len(each) == 2 else (each, each)
            whole("how often a part occurs", count, most=LARGEST, remedy=remedy)
            _check_part(instance("a part", part, Part, remedy="see spectheory.cost.layers"))

    @classmethod
    def dense(
        cls,
        layers: int,
        hidden: int,
        intermediate: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        vocabulary: int,
        *,
        gated: bool = True,
        **others: Any,
    ) -> ModelShape:
        """A dense transformer whose layers are alike: grouped attention, and an MLP, which has three matrices if
        `gated`, otherwise two; `others` are fields of the shape.

        Examples
        --------
        >>> ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256).parameters
        8030261248
        """
        instance("gated", gated, bool, remedy="take it from the config")
        sizes = {"layers": layers, "intermediate": intermediate, "heads": heads}
        for name, value in (sizes | {"kv_heads": kv_heads, "head_dim": head_dim}).items():
            whole(name, value, most=LARGEST, remedy="take it from the config")
        attention = Attention(heads=heads, kv_heads=kv_heads, head_dim=head_dim)
        return cls(
            hidden, vocabulary, ((layers, attention), (layers, Mlp(intermediate=intermediate, gated=gated))), **others
        )

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], *, weights: str | None = None, kv_cache: str | None = None
    ) -> ModelShape:
        """The sizes in a ``config.json`` of transformers; of a model with vision or sound pass its ``text_config``.

        `weights` and `kv_cache` are formats by name: fp32, bf16, fp8, int8, int4, mxfp4 or nvfp4. None is what the
        config's own ``quantization_config`` says, else bf16. Below 16 bits, the embedding and the output matrix are
        taken to stay in 16 bits, as in checkpoints for engines; of mxfp4 the experts alone are quantised.

        Defaults: ``num_key_value_heads`` is the number of attention heads, ``head_dim`` is hidden size over heads, and
        the model type decides ``tie_word_embeddings``. With GPT-2's names (``n_layer``, ...) MLPs are not gated,
        ``n_inner`` is four times the hidden size, and ``multi_query`` means one head of keys and values. Of a draft
        head in the format of speculators, the sizes of its own layers; its output matrix counts in full, and no
        embedding, which is the target's.

        Examples
        --------
        >>> config = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256}
        >>> config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False}
        >>> ModelShape.from_config(config).parameters
        8030261248
        >>> mixture = ModelShape.from_config(config | {"num_local_experts": 8, "num_experts_per_tok": 2})
        >>> mixture.parameters, mixture.active
        (47491321856, 13668454400)
        """
        instance("config", config, Mapping, remedy="read config.json with json.load")
        if MARK in config:
            sizes = head_shape_in(config)
        else:
            read = checked(config)
            sizes = shape_of(read, layers_of(read))
        own = stored_in(config)
        stored = own.weights if weights is None else choice("weights", weights, FORMATS, remedy="16 bits are bf16")
        cached = own.kv_cache if kv_cache is None else choice("kv_cache", kv_cache, FORMATS, remedy="16 bits are bf16")
        size = FORMATS[stored]
        outside = _UNQUANTISED if stored == "mxfp4" else size
        return cls(
            **sizes,
            bytes_per_weight=outside,
            bytes_per_expert=size,
            bytes_per_kv=FORMATS[cached],
            bytes_per_output=max(outside, _UNQUANTISED),
        )

    @property
    def routed(self) -> list[tuple[int, Experts]]:
        """The mixtures of experts, with how many layers have each."""
        return [(count, part) for count, part in self.parts if isinstance(part, Experts)]

    @property
    def shared_weights(self) -> int:
        """Weights that every token is multiplied by, routed experts not among them."""
        parts = sum(count * part.weights(self.hidden) for count, part in self.parts)
        return parts + self.vocabulary * self.hidden + self.fusion

    @property
    def multiplied(self) -> int:
        """Weights that a token is multiplied by, its experts among them."""
        return self.shared_weights + sum(count * one.chosen * one.expert(self.hidden) for count, one in self.routed)

    @property
    def active(self) -> int:
        """Parameters that a token uses, as published of mixtures of experts: an untied embedding counts once more."""
        return self.multiplied + self._norms + (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def parameters(self) -> int:
        """All weights; a tied embedding counts once."""
        experts = sum(count * one.experts * one.expert(self.hidden) for count, one in self.routed)
        embedding = 0 if self.tied else self.vocabulary * self.hidden
        return self.shared_weights + self._norms + experts + embedding + self.looked_up

    @property
    def _norms(self) -> int:
        return self.hidden * (1 + sum(count * part.norms for count, part in self.parts))

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights in memory."""
        experts = sum(count * one.experts * self.bytes_of_expert(one) for count, one in self.routed)
        beside = (0 if self.tied else self._output_bytes) + self.looked_up * self._each_output
        return self.read_bytes + experts + beside

    @property
    def read_bytes(self) -> float:
        """Bytes of weights that every pass reads: all except routed experts, and an untied embedding, of which it reads
        a few rows.
        """
        weights = self.shared_weights - self.vocabulary * self.hidden + self._norms
        return weights * self.bytes_per_weight + self._output_bytes

    def bytes_of_expert(self, part: Experts) -> float:
        """Bytes of one routed expert."""
        each = self.bytes_per_weight if self.bytes_per_expert is None else self.bytes_per_expert
        return part.expert(self.hidden) * each

    def pass_bytes(self, tokens: int, batch: int = 1, routing: Routing | None = None) -> Interval:
        """Bytes of weights that a pass over `tokens` tokens of each of `batch` sequences reads.

        Exact without experts. With experts, those of :func:`distinct_experts`: bounds for one sequence, an estimate for
        several. By a routing log exact for its texts for one sequence, an estimate for several.

        Examples
        --------
        >>> small = {"num_hidden_layers": 1, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2}
        >>> moe = ModelShape.from_config(small | {"vocab_size": 10, "num_local_experts": 4, "num_experts_per_tok": 1})
        >>> print(moe.pass_bytes(1), "to", moe.pass_bytes(4))
        1552.000 to 2218.000 [1552.000, 2884.000]
        """
        if routing is not None:
            instance("routing", routing, Routing, remedy="Routing.read makes one")
        low = best = high = self.read_bytes
        kinds: list[Kind] = ["exact"]
        for count, part in self.routed:
            found = distinct_experts(part.experts, part.chosen, tokens, batch)
            if routing is not None:
                value = routing.distinct(tokens, batch)
                found = Interval.exact(value) if batch == 1 else Interval.estimate(value)
            each = count * self.bytes_of_expert(part)
            low, best, high = low + each * found.low, best + each * found.best, high + each * found.high
            kinds.append(found.kind)
        return Interval(low, best, high, weakest(*kinds))

    @property
    def _each_output(self) -> float:
        return self.bytes_per_weight if self.bytes_per_output is None else self.bytes_per_output

    @property
    def _output_bytes(self) -> float:
        """Bytes of the output matrix, and of the embedding."""
        return self.vocabulary * self.hidden * self._each_output

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes that one token adds to the cache, while no window is full."""
        return sum(count * part.cached for count, part in self.parts) * self.bytes_per_kv

    @property
    def state_bytes(self) -> float:
        """Bytes of the states of one sequence that do not grow with it: linear attention, state-space layers."""
        return float(sum(count * part.state for count, part in self.parts))

    def cache_bytes(self, context: float, devices: int = 1) -> float:
        """Bytes kept for a sequence after `context` tokens, on each of `devices`: caches and states.

        Sliding windows cap the tokens of their layers.
        """
        context = amount("context", context, below=LARGEST**2, remedy="count cached tokens")
        return self._bytes_of(devices, {part: part.kept(context) for _, part in self.parts})

    def cache_read(self, context: float, devices: int = 1) -> float:
        """Bytes of these that a pass reads: of sparse attention the tokens selected by one token."""
        context = amount("context", context, below=LARGEST**2, remedy="count cached tokens")
        return self._bytes_of(devices, {part: part.seen(context) for _, part in self.parts})

    def _bytes_of(self, devices: int, tokens: Mapping[Part, float]) -> float:
        devices = whole("devices", devices, remedy="1 is no tensor parallelism")
        each = (
            count * part.shared_by(devices) * (part.cached * tokens[part] * self.bytes_per_kv + part.state)
            for count, part in self.parts
        )
        return float(sum(each))

    def operations_per_token(self, context: float) -> float:
        """Operations (multiplications and additions) for one token after `context` tokens.

        Two per multiplied weight, and per layer and attention width two for the scores and two for the values.
        """
        attended = sum(count * (part.attended * part.seen(context) + part.updated) for count, part in self.parts)
        return 2 * self.multiplied + attended

    def operations_of_prompt(self, tokens: int) -> float:
        """Operations of one pass over a prompt: each token attends to those before it, the last alone has an output."""
        output = self.vocabulary * self.hidden
        attended = sum(
            count * (part.attended_in_prompt * part.pairs(tokens) + part.updated * tokens) for count, part in self.parts
        )
        return 2 * (self.multiplied - output) * tokens + 2 * output + attended

    @property
    def sums(self) -> int:
        """All-reduces of a pass where several devices share the weights."""
        return sum(count * part.sums for count, part in self.parts)

    @property
    def heads(self) -> int:
        """What the number of devices must divide: the attention heads of every layer; 0 without attention."""
        return math.gcd(*(getattr(part, "heads", 0) for _, part in self.parts if part.sums))


def _check_part(part: Part) -> None:
    """Check that heads share those of keys and values evenly."""
    if isinstance(part, Attention) and part.heads % part.kv_heads:
        raise SettingError(
            f"{part.heads} attention heads share {part.kv_heads} of keys and values",
            limit="the first must be a multiple of the second",
            remedy="check num_attention_heads and num_key_value_heads",
        )
