"""Experts: a call reads more experts than a plain step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spectheory.intervals import Interval
from spectheory.judging.slow.case import Case, Found, Reason

_NUMBERS = ("num_experts", "num_local_experts", "n_routed_experts")


def _look(case: Case) -> Found | None:
    """Verified tokens touch more experts, and reading these takes long."""
    more = more_experts(case.config, case.k, case.batch)
    if more is None:
        return None
    low, high = more
    steps = Interval(0.0, high, high, "bound") if low < high else Interval.exact(low)
    if not case.matters(Interval.estimate(min(high, case.call.best - 1))):
        return None
    explained = min(high, case.call.best - 1)
    said = (
        f"the target has experts: {case.k + 1 if case.k else 1} tokens of each sequence read up to {1 + high:.2f} "
        "times the weights of a plain step (an upper bound, as neighbouring tokens share experts)"
    )
    return Found(EXPERTS.name, said, steps, case.without(Interval(0.0, explained, explained, "bound")))


def more_experts(config: Mapping[str, Any], k: int | None, batch: int) -> tuple[float, float] | None:
    r"""Least and most plain steps that verifying reads more than one, where reading weights is the time (§16).

    m tokens touch at most :math:`E(1-(1-r/E)^m)` of E experts in the mean, r of them each, and at least r. None without
    experts.

    Examples
    --------
    >>> config = {"num_experts": 8, "num_experts_per_tok": 2, "hidden_size": 64, "moe_intermediate_size": 64}
    >>> config |= {"num_hidden_layers": 2, "vocab_size": 64, "num_attention_heads": 4}
    >>> [round(end, 3) for end in more_experts(config, 3, 1)]
    [0.0, 0.991]
    """
    number = next((config[name] for name in _NUMBERS if isinstance(config.get(name), int) and config[name] > 1), None)
    each = config.get("num_experts_per_tok")
    if number is None or k is None or not isinstance(each, int) or not 1 <= each <= number:
        return None
    hidden, layers = _size(config, "hidden_size"), _size(config, "num_hidden_layers")
    width = _size(config, "moe_intermediate_size") or _size(config, "intermediate_size")
    heads = _size(config, "num_attention_heads")
    kv, head = (
        _size(config, "num_key_value_heads") or heads,
        _size(config, "head_dim") or (hidden // heads if heads else 0),
    )
    shared = layers * (2 * hidden * heads * head + 2 * hidden * kv * head) + hidden * _size(config, "vocab_size")
    shared += layers * 3 * hidden * (_size(config, "shared_expert_intermediate_size"))
    expert = layers * 3 * hidden * width

    def read(tokens: int) -> float:
        return shared + expert * number * (1 - (1 - each / number) ** tokens)

    plain = read(batch)
    return (0.0, read(batch * (k + 1)) / plain - 1) if plain else None


def _size(config: Mapping[str, Any], name: str) -> int:
    value = config.get(name)
    return value if isinstance(value, int) else 0


EXPERTS = Reason("experts", "verified tokens read more experts than a plain step", _look)
