"""C3: parameters, memory traffic and operations of a model, from published sizes or those of its ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any

from spectheory.checks import choice, instance, real, whole
from spectheory.errors import SettingError

LARGEST = 10**9
"""Far above every size of a model."""
_SIZES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "heads": "num_attention_heads",
    "vocabulary": "vocab_size",
}
_AS_GPT2 = {
    "num_hidden_layers": "n_layer",
    "hidden_size": "n_embd",
    "intermediate_size": "n_inner",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
"""GPT-2's names of the same sizes, also used by gpt_bigcode, gptj and codegen."""
_NOT_DENSE = ("num_local_experts", "num_experts", "n_routed_experts", "kv_lora_rank", "state_size")
FORMATS = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
"""Bytes of a number by the name of its format; the scales of a quantised one, a few percent, are not counted."""
_UNQUANTISED = 2.0
"""Bytes per weight of the embedding and the output matrix where the layers are quantised."""
_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention")
_TIED = frozenset({"cohere", "cohere2", "gemma", "gemma2", "gemma3_text", "smollm3", "starcoder2"})
_UNTIED_AS_GPT2 = frozenset({"gptj", "codegen"})
_NOT_GATED = frozenset({"arcee", "gpt_neox", "nemotron", "persimmon", "phi", "starcoder2"})


def _shape_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of :class:`~spectheory.cost.ModelShape` except the bytes."""
    as_gpt2 = "n_embd" in config and "hidden_size" not in config
    if as_gpt2 and config["n_embd"] is not None and config.get("n_inner") is None:
        config = {**config, "n_inner": 4 * _size_in(config, "hidden_size")}
    _check_complete(config)
    _check_dense(config)
    sizes = {name: _size_in(config, key) for name, key in _SIZES.items()}
    kind, tied = str(config.get("model_type")), config.get("tie_word_embeddings")
    window = config.get(_name(config, "max_position_embeddings"))
    if tied is None:
        tied = kind not in _UNTIED_AS_GPT2 if as_gpt2 else kind in _TIED
    return {
        **sizes,
        "kv_heads": 1
        if as_gpt2 and config.get("multi_query")
        else (_size_in(config, "num_key_value_heads") if config.get("num_key_value_heads") else sizes["heads"]),
        "head_dim": _size_in(config, "head_dim") if config.get("head_dim") else _head_dim(config, sizes),
        "tied": bool(tied),
        "gated": not as_gpt2 and kind not in _NOT_GATED,
        "window": window if type(window) is int and 1 <= window <= LARGEST else None,
    }


def _check_complete(config: Mapping[str, Any]) -> None:
    missing = [key for key in _SIZES.values() if config.get(_name(config, key)) is None]
    if missing:
        names = [f"{key} ({_AS_GPT2[key]})" if key in _AS_GPT2 else key for key in missing]
        raise SettingError(
            f"the config has no {', '.join(names)}",
            limit="needs the sizes of a decoder under the names of Llama or GPT-2",
            remedy="give the sizes to spectheory.cost.ModelShape",
        )


def _check_dense(config: Mapping[str, Any]) -> None:
    other = [name for name in _NOT_DENSE if config.get(name)]
    layers = config.get("layer_types") or []
    if not isinstance(layers, list) or not all(kind in _ATTENTION for kind in layers):
        other.append("layer_types")
    if other:
        raise SettingError(
            f"the config has {other[0]}={brief(config[other[0]])}",
            limit="only dense transformers are modelled",
            remedy="measure latencies, or fit spectheory.cost.AffineTime to timings",
        )


def _name(config: Mapping[str, Any], key: str) -> str:
    """The configuration's own name of a size."""
    other = _AS_GPT2.get(key, key)
    return other if key not in config and other in config else key


def _size_in(config: Mapping[str, Any], key: str) -> int:
    """A size of the configuration: a whole number in range."""
    name = _name(config, key)
    value = config[name]
    if type(value) is not int:
        raise SettingError(
            f"{name} is {brief(value)}", limit="needs one whole number", remedy="check the config, or measure latencies"
        )
    if not 1 <= value <= LARGEST:
        raise SettingError(f"{name} is {brief(value)}", limit=f"must be in 1..{LARGEST:g}", remedy="check the config")
    return value


def _head_dim(config: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    """The width of a head where heads share the hidden size evenly."""
    hidden, heads = sizes["hidden"], sizes["heads"]
    if hidden % heads:
        names = [_name(config, key) for key in ("hidden_size", "num_attention_heads")]
        raise SettingError(
            f"{names[0]} is {hidden} with {names[1]} {heads} and no head_dim",
            limit="the hidden size must be a multiple of the heads",
            remedy="check the config, or give head_dim",
        )
    return hidden // heads


MARK = "speculators_model_type"
"""The field that says a configuration is a head's, and of which kind."""
NATIVE = "mtp"
"""The draft's name that means the MTP modules of the target's own checkpoint; ``mtp:FOLDER`` are those of another."""
LAYER_FIELDS = {
    "eagle3": "eagle_aux_hidden_state_layer_ids",
    "peagle": "eagle_aux_hidden_state_layer_ids",
    **dict.fromkeys(("dflash", "dspark", "domino"), "aux_hidden_state_layer_ids"),
    "mtp": None,
}
"""Kinds whose sizes are known, and the field that names the hidden states of the target; MTP reads the last one."""
_USUAL = 3
"""Hidden states that an EAGLE-3 head reads where its configuration names none."""
_RANK = 256
"""Rank of a DSpark head's bias where its configuration names none."""


def _head_shape_in(config: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of :class:`~spectheory.cost.ModelShape` except the bytes, with ``vocabulary`` what it can draft.

    The embeddings are the target's: a pass reads a few of their rows.
    """
    kind, block = config[MARK], config.get("transformer_layer_config")
    if not isinstance(kind, str) or kind not in LAYER_FIELDS or not isinstance(block, Mapping):
        raise SettingError(
            f"the config is of a head of kind {brief(kind)}",
            limit=f"known are {', '.join(LAYER_FIELDS)} with a transformer_layer_config",
            remedy="measure latencies, or fit spectheory.cost.AffineTime to timings",
        )
    sizes = _shape_in({**block, "vocab_size": config.get("draft_vocab_size") or block.get("vocab_size")})
    sizes["window"] = None  # that of the target counts
    if kind == "mtp":  # the configuration is the target's, and the head one layer like its
        sizes["layers"] = 1
    of_target = _size_in(config, "target_hidden_size") if config.get("target_hidden_size") else sizes["hidden"]
    beside = _wider(kind, sizes) + _corrections(kind, config, sizes)
    return sizes | {"tied": True, "fusion": _fused(kind, config, sizes["hidden"], of_target) + beside}


def _fused(kind: str, config: Mapping[str, Any], hidden: int, of_target: int) -> int:
    """Weights that join hidden states of the target into one."""
    field = LAYER_FIELDS[kind]
    layers = None if field is None else config.get(field)
    if layers is not None and not isinstance(layers, list):
        raise SettingError(f"{field} is {brief(layers)}", limit="needs a list of layers", remedy="check the config")
    read = 2 if field is None else len(layers or range(_USUAL))
    return read * of_target * hidden


def _wider(kind: str, sizes: Mapping[str, Any]) -> int:
    """Weights by which the first layer of an EAGLE-3 head attends to an embedding beside the state."""
    wide = kind in ("eagle3", "peagle")
    return int(sizes["hidden"] * sizes["head_dim"] * (sizes["heads"] + 2 * sizes["kv_heads"])) if wide else 0


def _corrections(kind: str, config: Mapping[str, Any], sizes: Mapping[str, Any]) -> int:
    """Weights that correct a draft of a DSpark or Domino head by the tokens before it.

    Drafts are corrected one after the other, and read them again; here a pass reads them once.
    """
    hidden, drafted = sizes["hidden"], sizes["vocabulary"]
    if kind == "domino":
        memory, inner = (_size_in(config, name) for name in ("gru_hidden_dim", "emb_dim"))
        return int(3 * memory * (hidden + memory) + inner * (hidden + memory + drafted))
    if kind != "dspark" or config.get("markov_rank") == 0:
        return 0
    rank = _size_in({"markov_rank": _RANK, **config}, "markov_rank")
    mixing = {"gated": hidden + rank, "rnn": 3 * (2 * rank + hidden)}.get(str(config.get("markov_head_type")), 0)
    return int(rank * (drafted + mixing))


@dataclass(frozen=True)
class ModelShape:
    """Sizes of a dense decoder-only transformer with gated MLPs (SwiGLU) and grouped-query attention (C3).

    The counts include the matrices and the norms before attention, MLP and output. They leave out biases and the norms
    of queries and keys (below 1e-4 of the parameters), and a table of learned positions, of which a pass reads a few
    rows (with GPT-2's biases below 1e-2). Mixtures of experts (a pass reads and computes only the chosen experts),
    latent attention, sliding windows and state-space layers are not modelled.

    `hidden` is the width of the residual stream, `intermediate` the width inside the MLP, which has three matrices if
    `gated`, otherwise two. If `tied`, the output matrix is the embedding. `bytes_per_weight` and `bytes_per_kv` are as
    stored: 2 for 16 bits, 1 for 8, 0.5 for 4. `bytes_per_output` are those of embedding and output matrix, which
    engines leave in 16 bits where they quantise the layers; None is as the others. `window` is the longest text that
    the model was trained for, None if unknown. `fusion` counts further weights that a draft head multiplies a token by:
    to join hidden states of its target, to attend to embeddings beside them, and to correct drafts; 0 is no head.

    Examples
    --------
    >>> model = ModelShape(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    >>> model.parameters, model.kv_bytes_per_token
    (1235814400, 32768.0)
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool = False
    gated: bool = True
    bytes_per_weight: float = 2.0
    bytes_per_kv: float = 2.0
    fusion: int = 0
    bytes_per_output: float | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        remedy = "take it from the config"
        for name, value in vars(self).items():
            if name in ("tied", "gated"):
                instance(name, value, bool, remedy=remedy)
            elif value is None and name in ("bytes_per_output", "window"):
                continue
            elif name.startswith("bytes_per"):
                inside = f"must be > 0 and <= {LARGEST:g}"
                real(name, value, lambda size: 0 < size <= LARGEST, limit=inside, remedy=remedy)
            else:
                free = name == "fusion"
                whole(name, value, least=1 - free, most=None if free else LARGEST, remedy=remedy)
        if self.heads % self.kv_heads:
            raise SettingError(
                f"{self.heads} attention heads share {self.kv_heads} of keys and values",
                limit="the first must be a multiple of the second",
                remedy="check num_attention_heads and num_key_value_heads",
            )

    @classmethod
    def from_config(cls, config: Mapping[str, Any], *, weights: str = "bf16", kv_cache: str = "bf16") -> ModelShape:
        """The sizes in a ``config.json`` of transformers, with the names of Llama or of GPT-2 (``n_layer``, ...).

        `weights` and `kv_cache` are formats by name: fp32, bf16, fp8, int8 or int4. Below 16 bits, the embedding and
        the output matrix are taken to stay in 16 bits, as in checkpoints for engines.

        Defaults: ``num_key_value_heads`` is the number of attention heads, ``head_dim`` is hidden size over heads, and
        the model type decides ``tie_word_embeddings``. With GPT-2's names MLPs are not gated, ``n_inner`` is four times
        the hidden size, and ``multi_query`` means one head of keys and values. For a model with vision or sound pass
        its ``text_config``. Of a draft head in the format of speculators, the sizes of its own layers; its output
        matrix counts in full, and no embedding, which is the target's.

        Examples
        --------
        >>> config = {"num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256}
        >>> config |= {"num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": False}
        >>> ModelShape.from_config(config).parameters
        8030261248
        """
        instance("config", config, Mapping, remedy="read config.json with json.load")
        sizes = _head_shape_in(config) if MARK in config else _shape_in(config)
        stored, cached = (
            FORMATS[choice(name, value, FORMATS, remedy="16 bits are bf16")]
            for name, value in (("weights", weights), ("kv_cache", kv_cache))
        )
        output = max(stored, _UNQUANTISED)
        return cls(**sizes, bytes_per_weight=stored, bytes_per_kv=cached, bytes_per_output=output)

    @property
    def multiplied(self) -> int:
        """Weights that every token is multiplied by: attention, MLP and output matrix."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        mlp = (3 if self.gated else 2) * self.hidden * self.intermediate
        return self.layers * (attention + mlp) + self.vocabulary * self.hidden + self.fusion

    @property
    def parameters(self) -> int:
        """All weights; a tied embedding counts once."""
        norms = (2 * self.layers + 1) * self.hidden
        return self.multiplied + norms + (0 if self.tied else self.vocabulary * self.hidden)

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights in memory."""
        return self.read_bytes + (0 if self.tied else self._output_bytes)

    @property
    def read_bytes(self) -> float:
        """Bytes of weights that a pass reads: all except an untied embedding, of which it reads a few rows."""
        matrices = self.vocabulary * self.hidden * (1 if self.tied else 2)
        return (self.parameters - matrices) * self.bytes_per_weight + self._output_bytes

    @property
    def _output_bytes(self) -> float:
        """Bytes of the output matrix, and of the embedding."""
        each = self.bytes_per_weight if self.bytes_per_output is None else self.bytes_per_output
        return self.vocabulary * self.hidden * each

    @property
    def kv_bytes_per_token(self) -> float:
        """Bytes of keys and values of one token in the cache."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_kv

    def operations_per_token(self, context: float) -> float:
        """Operations (multiplications and additions) for one token after `context` tokens.

        Two per multiplied weight, and per layer and attention width two for the scores and two for the values.
        """
        return 2 * self.multiplied + 4 * self.layers * self.heads * self.head_dim * context

    def operations_of_prompt(self, tokens: int) -> float:
        """Operations of one pass over a prompt: each token attends to those before it, the last alone has an output."""
        output = self.vocabulary * self.hidden
        attention = 2 * self.layers * self.heads * self.head_dim * tokens * tokens
        return 2 * (self.multiplied - output) * tokens + 2 * output + attention
