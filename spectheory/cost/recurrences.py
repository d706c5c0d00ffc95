"""C3: weights, states and operations of linear attention, state-space layers and short convolutions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spectheory.cost.fields import Config
from spectheory.cost.layers import Recurrence

_MAMBA_1 = ("mamba", "falcon_mamba", "jamba")
_DELTA, _DECAYED = 7, 5
"""Operations of a token per number of a state: decay 1, update 2, reading 2; a delta rule reads twice."""


def _one(config: Config, *names: str) -> int:
    """The size under the first of several names that there is; refused under the first name if there is none."""
    found = config.first(names)
    return config.size(names[0]) if found is None else found


def _mamba(config: Config) -> Recurrence:
    """Mamba 1 or 2."""
    return _mamba_1(config) if config.kind in _MAMBA_1 else _mamba_2(config)


def _mamba_1(config: Config) -> Recurrence:
    hidden, state = config.size("hidden_size"), _one(config, "state_size", "mamba_d_state")
    kernel = _one(config, "conv_kernel", "mamba_d_conv")
    rank = config.first(("time_step_rank", "mamba_dt_rank")) or -(-hidden // 16)
    inner = _one(config, "expand", "mamba_expand") * hidden
    matrices = 3 * hidden * inner + inner * (rank + 2 * state) + rank * inner + inner * (kernel + state)
    return Recurrence(matrices=matrices, numbers=inner * state, last=inner * (kernel - 1), each=_DECAYED)


def _mamba_2(config: Config) -> Recurrence:
    hidden, state = config.size("hidden_size"), _one(config, "state_size", "mamba_d_state", "ssm_state_size")
    heads = _one(config, "mamba_n_heads", "mamba_num_heads", "num_heads")
    width = config.first(("mamba_d_head", "mamba_head_dim")) or config.size("head_dim")
    groups = config.first(("mamba_n_groups", "n_groups")) or 1
    kernel = _one(config, "mamba_d_conv", "conv_kernel")
    inner, mixed = heads * width, heads * width + 2 * groups * state
    matrices = hidden * (inner + mixed + heads) + inner * hidden + mixed * kernel
    return Recurrence(matrices=matrices, numbers=inner * state, last=mixed * (kernel - 1), each=_DECAYED)


def _linear(config: Config) -> Recurrence:
    """Linear attention: a gated delta net, Kimi's, or lightning attention; Granite and Nemotron call Mamba 2 so."""
    if config.kind in ("granitemoehybrid", "nemotron_h", "bamba"):
        return _mamba_2(config)
    if config.kind == "kimi_linear":
        return _kimi(config)
    if config.kind == "minimax":
        hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
        width = config.size("head_dim", hidden // heads)
        return Recurrence(matrices=5 * hidden * heads * width, numbers=heads * width * width, each=_DECAYED)
    return _delta_net(config)


def _delta_net(config: Config) -> Recurrence:
    hidden, kernel = config.size("hidden_size"), config.size("linear_conv_kernel_dim")
    heads = config.size("linear_num_value_heads")
    width, value = config.size("linear_key_head_dim"), config.size("linear_value_head_dim")
    keys, values = config.size("linear_num_key_heads") * width, heads * value
    mixed = 2 * keys + values
    matrices = hidden * (mixed + values + 2 * heads) + mixed * kernel + values * hidden
    return Recurrence(matrices=matrices, numbers=heads * width * value, last=mixed * (kernel - 1), each=_DELTA)


def _kimi(config: Config) -> Recurrence:
    """Kimi delta attention: a decay of each channel and an output gate, of rank head_dim each."""
    hidden, own = config.size("hidden_size"), config.values.get("linear_attn_config")
    if isinstance(own, Mapping):
        names = {"linear_num_heads": "num_heads", "linear_head_dim": "head_dim"}
        names["linear_conv_kernel_dim"] = "short_conv_kernel_size"
        config = Config({name: own.get(other) for name, other in names.items()})
    heads, width = config.size("linear_num_heads"), config.size("linear_head_dim")
    kernel, inner = config.size("linear_conv_kernel_dim"), heads * width
    low_rank = 2 * width * (hidden + inner)
    matrices = 4 * hidden * inner + low_rank + hidden * heads + 3 * inner * kernel
    return Recurrence(matrices=matrices, numbers=heads * width * width, last=3 * inner * (kernel - 1), each=_DELTA)


def _convolution(config: Config) -> Recurrence:
    """LFM2's short convolution between two gates."""
    hidden, kernel = config.size("hidden_size"), config.size("conv_L_cache")
    return Recurrence(matrices=4 * hidden * hidden + hidden * kernel, last=hidden * (kernel - 1))


RECURRENT: dict[str, Callable[[Config], Recurrence]] = {
    "linear_attention": _linear,
    "mamba": _mamba,
    "conv": _convolution,
}
"""Readers of recurrent layers by the word in ``layer_types``."""
