"""Hidden states of a target, taken while it reads."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

import torch
from torch import Tensor


class HiddenStates:
    """Takes hidden states of a causal model's layers during its passes; used as a context.

    `layers` as :attr:`~spectheory.measure.heads.base.Head.layers`: layer i is what decoder layer i reads, and the
    number of layers what the final norm reads.
    """

    def __init__(self, network: Any, layers: Sequence[int]) -> None:
        self.layers = tuple(layers)
        self._taken: dict[int, Tensor] = {}
        self._network, self._hooks = network, list[Any]()

    def __enter__(self) -> HiddenStates:
        """Hook into the layers."""
        inner = self._network.get_decoder()
        for layer in self.layers:
            module = inner.layers[layer] if layer < len(inner.layers) else inner.norm
            self._hooks.append(module.register_forward_pre_hook(self._keep(layer), with_kwargs=True))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the hooks."""
        while self._hooks:
            self._hooks.pop().remove()

    def take(self) -> Tensor:
        """Hidden states ``[batch, m, layers * width]`` of the last pass, the layers side by side in the given order."""
        device = self._taken[self.layers[0]].device  # layers of a spread model are on several
        return torch.cat([self._taken[layer].to(device) for layer in self.layers], dim=-1)

    def _keep(self, layer: int) -> Any:
        def hook(module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
            self._taken[layer] = args[0] if args else named["hidden_states"]

        return hook
