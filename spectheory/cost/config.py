"""C3: the layers of a model, read from its ``config.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as brief
from typing import Any

from spectheory.cost.fields import LARGEST, Config
from spectheory.cost.layers import Attention, Experts, Indexer, LatentAttention, Mlp, Part
from spectheory.cost.recurrences import RECURRENT
from spectheory.cost.unmodelled import FIELDS, TYPES
from spectheory.errors import SettingError

FORMATS = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5, "mxfp4": 4.25 / 8, "nvfp4": 4.5 / 8}
"""Bytes of a number by the name of its format. The scales of mxfp4 and nvfp4, of 8 bits for 32 and for 16 numbers, are
counted; those of others, a few percent, are not."""
_TIED = frozenset({"cohere", "cohere2", "gemma", "gemma2", "gemma3_text", "smollm3", "starcoder2", "falcon_mamba"})
_UNTIED_AS_GPT2 = frozenset({"gptj", "codegen"})
_NOT_GATED = frozenset(
    {"arcee", "gpt_neox", "nemotron", "nemotron_h", "persimmon", "phi", "starcoder2"} | {"apertus", "nanochat", "jais2"}
)
_GATED_OUTPUT = frozenset({"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe", "afmoe"})
"""Types whose attention gates its output by a matrix as large as that of queries."""
_ALWAYS_SHARED = frozenset({"llama4_text", "hunyuan_v1_moe"})
"""Types with one shared expert as wide as the others, which no field says."""
_GLOBAL_HEADS = frozenset({"gemma4_text", "gemma4_unified_text"})
"""Types whose layers of full attention have heads of their own size."""
_FULL_EVERY = {"gemma2": 2, "gpt_oss": 2, "vaultgemma": 2, "afmoe": 4, "cohere2": 4, "llama4_text": 4, "olmo3": 4}
_FULL_EVERY |= {"gemma3_text": 6, "gemma4_text": 6, "gemma4_unified_text": 6}
"""Every so many layers one attends to the whole context, where the config names no layers."""
_FULL_FIRST = {"modernbert-decoder": 3, "cwm": 4, "granite_swa": 4, "granitemoe_swa": 4}
"""The same, where the first layer is one of these."""
_SLIDE_IF_ASKED = frozenset({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3"})
"""Types that have a window only with ``use_sliding_window``."""
_FULL_BELOW = {"qwen2": 28, "qwen3": 28, "dots1": 62}
"""The first layers attend to the whole context: so many, or ``max_window_layers``."""
_LISTED = frozenset(
    {"beam", "dots3_note_text", "flint", "kolibri1", "laguna", "lfm3", "mellum"}
    | {"mimo_v2_flash", "qwen2_moe", "smollm3"}
)
"""Types of which the list of layers alone says which have a window."""
_ATTENTION = ("full_attention", "sliding_attention", "chunked_attention", "indexed_attention", "attention")
_FOUR_NORMS = frozenset({"gemma2", "gemma3_text", "glm4", "olmo_hybrid", "afmoe"})
"""Types with a norm after each part besides the one before it."""

EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_k", "top_k_experts")
_WIDTH = ("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
_SHARED_COUNT = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
_SHARED_WIDTH = ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size")


@dataclass(frozen=True)
class Stored:
    """Formats in which weights and caches are stored."""

    weights: str = "bf16"
    kv_cache: str = "bf16"


def checked(values: Mapping[str, Any]) -> Config:
    """A configuration that is modelled, with what GPT-2 leaves out."""
    config = Config(values)
    if config.as_gpt2 and values.get("n_embd") is not None and values.get("n_inner") is None:
        config = Config({**values, "n_inner": 4 * config.size("hidden_size")})
    refuse(config)
    return config


def refuse(config: Config) -> None:
    """Refuse what is not modelled, by name and with the reason."""
    reason = TYPES.get(config.kind)
    found = f"model_type={config.kind}" if reason else ""
    for name, why in FIELDS.items() if not reason else ():
        if config.values.get(name):
            found, reason = f"{name}={brief(config.values[name])}", why
            break
    if reason:
        raise SettingError(
            f"the config has {found}",
            limit=f"not modelled: {reason}",
            remedy="measure latencies, or fit spectheory.cost.AffineTime to timings",
        )


def shape_of(config: Config, layers: Sequence[Sequence[Part]]) -> dict[str, Any]:
    """Fields from the layers: equal parts are counted together."""
    counted = Counter(part for layer in layers for part in layer)
    tied, kind = config.values.get("tie_word_embeddings"), config.kind
    if tied is None:
        tied = kind not in _UNTIED_AS_GPT2 if config.as_gpt2 else kind in _TIED
    window = config.get("max_position_embeddings")
    return {
        "hidden": config.size("hidden_size"),
        "vocabulary": config.size("vocab_size"),
        "parts": tuple((count, part) for part, count in counted.items()),
        "tied": bool(tied),
        "window": window if type(window) is int and 1 <= window <= LARGEST else None,
        "looked_up": _looked_up(config, len(layers)),
        "kind": kind if config.values.get("model_type") else "",
    }


def _looked_up(config: Config, layers: int) -> int:
    """Weights of tables that every layer looks a token up in."""
    width = config.count("hidden_size_per_layer_input")
    return layers * width * config.size("vocab_size_per_layer_input", config.size("vocab_size")) if width else 0


def layers_of(config: Config) -> list[list[Part]]:
    """The parts of every layer."""
    if kinds := _block_kinds(config):
        return [[_alone(config, kind)] for kind in kinds]
    count = config.size("num_hidden_layers")
    mixers = _mixer_kinds(config, count)
    sparse = _sparse(config, count)
    norms = 2 if config.kind in _FOUR_NORMS else 1
    layers: list[list[Part]] = []
    if not len(mixers) == len(sparse) == count:
        raise SettingError(
            f"the config lists {min(len(mixers), len(sparse))} layers",
            limit=f"needs one word for each of {count}",
            remedy="check the config",
        )
    for i, (kind, routed) in enumerate(zip(mixers, sparse, strict=True)):
        stores = i < count - config.count("num_kv_shared_layers")
        at = config.at(i)
        parts = [*_mixers(at, kind, i, stores=stores), *_mlps(at, routed, wide=not stores)]
        layers.append([replace(part, norms=norms * part.norms) for part in parts])
    return layers


# Which kind of part each layer has


def _block_kinds(config: Config) -> list[str]:
    """Kinds of layers of one part each, as of Nemotron-H."""
    pattern = config.get("hybrid_override_pattern")
    if isinstance(pattern, str) and pattern:
        words = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
        if unknown := set(pattern) - set(words):
            letters = ", ".join(sorted(unknown))
            raise SettingError(
                f"hybrid_override_pattern has {letters}", limit="known are M, *, -, E", remedy="check the config"
            )
        return [words[letter] for letter in pattern]
    if config.kind != "nemotron_h":
        return []
    listed = config.values.get("layers_block_type") or []
    return config.names("layers_block_type", len(listed) if isinstance(listed, list) else 0)


def _mixer_kinds(config: Config, count: int) -> list[str]:
    """The kind of attention or recurrence of every layer."""
    if listed := config.names("layer_types", count):
        return listed[:count]
    if config.kind in ("mamba", "mamba2", "falcon_mamba"):
        return ["mamba"] * count
    if "attn_layer_period" in config:
        period, offset = config.size("attn_layer_period"), config.count("attn_layer_offset")
        return ["full_attention" if i % period == offset else "mamba" for i in range(count)]
    if config.kind == "bamba":
        return ["full_attention" if i in config.where("attn_layer_indices") else "mamba" for i in range(count)]
    if isinstance(linear := config.values.get("linear_attn_config"), Mapping):
        full = Config(linear).where("full_attn_layers")
        return ["full_attention" if i + 1 in full else "linear_attention" for i in range(count)]
    if "full_attention_interval" in config:
        every = config.size("full_attention_interval")
        return ["linear_attention" if (i + 1) % every else "full_attention" for i in range(count)]
    if pattern := config.where("hybrid_layer_pattern"):
        return ["sliding_attention" if each else "full_attention" for each in pattern][:count]
    return [_window_kind(config, i) for i in range(count)]


def _window_kind(config: Config, layer: int) -> str:
    """Whether a layer attends to a window, by rules of the type: the config lists no layers."""
    asked = config.get("use_sliding_window", config.kind not in _SLIDE_IF_ASKED)
    slides = asked and config.get("sliding_window")
    if not (slides or config.get("attention_chunk_size")):
        return "full_attention"
    if slides and config.kind in _LISTED:
        raise SettingError(
            f"the config of a {config.kind} has a sliding window and no layer_types",
            limit="layers with a window differ by model",
            remedy="add layer_types, as transformers saves them",
        )
    said = config.get("sliding_window_pattern", _FULL_EVERY.get(config.kind))
    apart = said if type(said) is int and said > 0 else None
    full = apart is not None and (layer + 1) % apart == 0
    full |= layer % _FULL_FIRST.get(config.kind, layer + 1) == 0 and config.kind in _FULL_FIRST
    if config.kind in _FULL_BELOW:
        full |= layer < config.size("max_window_layers", _FULL_BELOW[config.kind])
    return "full_attention" if full else "sliding_attention" if slides else "chunked_attention"


def _sparse(config: Config, count: int) -> list[bool]:
    """Whether each layer has experts."""
    if config.first(EXPERTS) is None:
        return [False] * count
    if listed := config.names("mlp_layer_types", count):
        return [word == "sparse" for word in listed]
    if places := config.where("moe_layers"):
        return [i in places for i in range(count)]
    frequency = config.get("moe_layer_freq", 1)
    if isinstance(frequency, list):
        return [bool(each) for each in config.where("moe_layer_freq")][:count] or [True] * count
    first = config.get("first_k_dense_replace", config.get("num_dense_layers", config.get("moe_layer_start_index", 0)))
    last = config.get("moe_layer_end_index", -1)
    step = config.get(
        "decoder_sparse_step", config.get("interleave_moe_layer_step", config.get("moe_layer_interval", 1))
    )
    period, offset = config.get("expert_layer_period", 1), config.get("expert_layer_offset", 0)
    sizes = (frequency, first, last, step, period, offset)
    if not all(type(size) is int for size in sizes) or min(frequency, step, period) < 1:
        raise SettingError(
            f"the places of layers with experts are {brief(sizes)}",
            limit="needs whole numbers",
            remedy="check the config",
        )
    dense = config.where("mlp_only_layers")
    return [
        first <= i <= (count if last < 0 else last)
        and i % frequency == 0
        and (i + 1) % step == 0
        and i % period == offset % period
        and i not in dense
        for i in range(count)
    ]


# Parts


def _alone(config: Config, kind: str) -> Part:
    """The one part of a layer."""
    if kind in ("mlp", "moe"):
        (part,) = _mlps(config, kind == "moe")
    else:
        (part,) = _mixers(config, kind, 0)
    return part


def _mixers(config: Config, kind: str, layer: int, *, stores: bool = True) -> list[Part]:
    """Attention or recurrence of a layer; both side by side in Falcon-H1."""
    if config.kind == "falcon_h1":
        return [_attention(config, "full_attention"), replace(RECURRENT["mamba"](config), norms=0)]
    if kind in _ATTENTION:
        found = _attention(config, kind, stores=stores)
        indexed = "index_topk" in config and kind != "sliding_attention" and isinstance(found, LatentAttention)
        shared = config.names("indexer_types", layer + 1)[layer : layer + 1] == ["shared"]
        return [found, _indexer(config)] if indexed and not shared else [found]
    if kind not in RECURRENT:
        raise SettingError(
            f"the config has layer_types with {brief(kind)}",
            limit=f"modelled are {', '.join((*_ATTENTION, *RECURRENT))}",
            remedy="measure latencies, or fit spectheory.cost.AffineTime to timings",
        )
    return [RECURRENT[kind](config)]


def _attention(config: Config, kind: str, *, stores: bool = True) -> Part:
    """Attention of a layer, latent where the config has the rank."""
    names = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
    window = config.size(names[kind]) if kind in names else None
    heads = config.size("num_attention_heads")
    if "kv_lora_rank" in config and "qk_nope_head_dim" in config:
        return LatentAttention(
            heads=heads,
            q_rank=config.size("q_lora_rank") if "q_lora_rank" in config else None,
            kv_rank=config.size("kv_lora_rank"),
            nope=config.size("qk_nope_head_dim"),
            rope=config.size("qk_rope_head_dim"),
            value=config.size("v_head_dim"),
            gated=bool(config.get("mla_use_output_gate")) or config.kind == "hy_v4",
            window=window,
            selected=config.size("index_topk") if "index_topk" in config else None,
        )
    kv_heads = config.size("num_key_value_heads") if "num_key_value_heads" in config else heads
    if kind == "sliding_attention" and config.kind == "mimo_v2_flash":
        kv_heads = config.size("swa_num_key_value_heads", 8)
    head_dim = config.size("head_dim") if "head_dim" in config else _head_dim(config, heads)
    apart = kind == "full_attention" and config.kind in _GLOBAL_HEADS
    wide = apart and "per_layer_config" not in config
    return Attention(
        heads=heads,
        kv_heads=1 if config.multi_query else config.size("num_global_key_value_heads", kv_heads) if wide else kv_heads,
        head_dim=config.size("global_head_dim", 512) if wide else head_dim,
        value_dim=config.size("v_head_dim") if "v_head_dim" in config else None,
        gated=config.kind in _GATED_OUTPUT,
        stores=stores,
        keys_are_values=apart and bool(config.get("attention_k_eq_v")),
        window=window,
    )


def _indexer(config: Config) -> Part:
    """What selects the tokens of sparse attention: queries from the latent ones, a key, a weight of each head."""
    heads, width = config.size("index_n_heads"), config.size("index_head_dim")
    hidden = config.size("hidden_size")
    weights = config.size("q_lora_rank") * heads * width + hidden * (width + heads)
    return Indexer(heads=heads, width=width, other=weights, norms=0)


def _head_dim(config: Config, heads: int) -> int:
    """The width of a head where heads share the hidden size evenly."""
    hidden = config.size("hidden_size")
    if hidden % heads:
        names = [config.name(key) for key in ("hidden_size", "num_attention_heads")]
        raise SettingError(
            f"{names[0]} is {hidden} with {names[1]} {heads} and no head_dim",
            limit="the hidden size must be a multiple of the heads",
            remedy="check the config, or give head_dim",
        )
    return hidden // heads


def _mlps(config: Config, sparse: bool, *, wide: bool = False) -> list[Part]:
    """MLP or experts of a layer; both side by side in Gemma 4."""
    if config.kind in ("mamba", "mamba2", "falcon_mamba"):
        return []
    gated = not config.as_gpt2 and config.kind not in _NOT_GATED
    if sparse and config.kind not in _GLOBAL_HEADS:
        return [_experts(config, gated)]
    width = config.size("intermediate_size_mlp" if "intermediate_size_mlp" in config else "intermediate_size")
    if "block_auto_adjust_ff_dim" in config and "conv_L_cache" in config:  # LFM2 rounds the width
        multiple = config.size("block_multiple_of", 256)
        width = -(-int(config.get("block_ffn_dim_multiplier", 1.0) * (2 * width // 3)) // multiple) * multiple
    by_layer = 3 * config.size("hidden_size") * config.count("hidden_size_per_layer_input")
    doubled = 2 if wide and config.get("use_double_wide_mlp") else 1
    dense = Mlp(intermediate=doubled * width, gated=gated, other=by_layer)
    return [dense, _experts(config, gated)] if sparse else [dense]


def _experts(config: Config, gated: bool) -> Part:
    """The mixture of experts of a layer, with its shared expert."""
    experts, chosen, width = (config.first(names) for names in (EXPERTS, CHOSEN, _WIDTH))
    experts = config.size("n_routed_experts") if experts is None else experts
    chosen = config.size(CHOSEN[0]) if chosen is None else chosen
    width = config.size(_WIDTH[0]) if width is None else width
    if chosen > experts:
        raise SettingError(
            f"{chosen} of {experts} experts are chosen", limit="cannot exceed the experts", remedy="check the config"
        )
    count = config.first(_SHARED_COUNT) or 0
    shared = config.first(_SHARED_WIDTH) or count * width
    if config.kind in _ALWAYS_SHARED:
        shared = width
    latent = config.size("routed_expert_hidden_size") if "routed_expert_hidden_size" in config else None
    return Experts(
        experts=experts, chosen=chosen, intermediate=width, gated=gated, shared=shared, latent=latent or _latent(config)
    )


def _latent(config: Config) -> int | None:
    return config.size("moe_latent_size") if "moe_latent_size" in config else None


# How weights are stored


def stored_in(values: Mapping[str, Any]) -> Stored:
    """What ``quantization_config`` says: the format of most weights, and of the cache."""
    said = values.get("quantization_config")
    if not isinstance(said, Mapping):
        return Stored()
    method = str(said.get("quant_method", said.get("quant_algo", ""))).lower()
    cache = said.get("kv_cache_scheme") or said.get("kv_cache_quant_algo")
    bits = cache.get("num_bits") if isinstance(cache, Mapping) else cache
    kv_cache = "fp8" if bits == 8 or str(bits).lower() == "fp8" else "bf16"
    return Stored(_format_of(method, said), kv_cache)


def _format_of(method: str, said: Mapping[str, Any]) -> str:
    """The format of a method of quantisation; refused where it is not known."""
    words = brief(dict(said)).lower() + str(said.get("format", "")).lower() + str(said.get("quant_algo", "")).lower()
    groups = said.get("config_groups")
    if isinstance(groups, Mapping):
        words += " ".join(str(group) for group in groups.values()).lower()
    for name in ("nvfp4", "mxfp4"):
        if name in words or name in method:
            return name
    bits = said.get("bits", said.get("num_bits", said.get("w_bit")))
    if said.get("load_in_4bit") or bits == 4 or "'num_bits': 4" in words:
        return "nvfp4" if "'type': 'float'" in words and "'group_size': 16" in words else "int4"
    if "fp8" in method or "fp8" in words or ("'num_bits': 8" in words and "'type': 'float'" in words):
        return "fp8"
    if said.get("load_in_8bit") or bits == 8 or "'num_bits': 8" in words:
        return "int8"
    raise SettingError(
        f"quantization_config is {brief(dict(said))}",
        limit=f"known formats are {', '.join(FORMATS)}",
        remedy="name the format of the weights",
    )
