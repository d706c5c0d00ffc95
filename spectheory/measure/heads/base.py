"""What a draft head is: a network over the target's hidden states, and a reading of one text by it.

Pair t of a text is the target's hidden state after token t, with the id of token t + 1. A call whose first draft stands
at position n knows tokens 0..n - 1, and hidden states after tokens 0..n - 2: the target has not read its own last
token. So it drafts after pair n - 2, and needs a prompt of two tokens or more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn


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
            self._hooks.append(module.register_forward_pre_hook(partial(self._keep, layer), with_kwargs=True))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the hooks."""
        while self._hooks:
            self._hooks.pop().remove()

    def take(self) -> Tensor:
        """Hidden states ``[batch, m, layers * width]`` of the last pass, the layers side by side in the given order."""
        device = self._taken[self.layers[0]].device  # layers of a spread model are on several
        return torch.cat([self._taken[layer].to(device) for layer in self.layers], dim=-1)

    def _keep(self, layer: int, module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        self._taken[layer] = args[0] if args else named["hidden_states"]


PAIR_BEFORE = 2
"""A call that starts at position n drafts after pair n - 2."""


class Head(nn.Module, ABC):
    """A draft head.

    - `kind`: its name in configurations and engines, as ``eagle3``.
    - `parallel`: whether one pass of its network gives all depths.
    - `layers`: the hidden states of the target that it reads, by the number of layers before each: 0 are the
      embeddings, the number of layers is the last layer's output before the final norm.
    - `trained`: drafts per call that its configuration names.
    - `deepest`: most drafts of a call; None where there is no such limit.
    - `block_size`: slots that are drafted at once; None of heads without. Another number gives other logits.
    - `vocabulary`: V of the target, the ids of its logits. Ids that the head cannot draft have the logit -inf.
    """

    kind: ClassVar[str]
    parallel: ClassVar[bool] = False
    layers: tuple[int, ...]
    trained: int
    deepest: int | None
    block_size: int | None = None
    vocabulary: int

    @abstractmethod
    def reading(self) -> HeadReading:
        """Start reading a text."""

    @abstractmethod
    def get_input_embeddings(self) -> nn.Module:
        """The embeddings; their weight tells device and precision."""

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        weight: Tensor = self.get_input_embeddings().weight  # type: ignore[assignment]
        return weight.dtype

    def num_parameters(self) -> int:
        """Weights of its own, without the embeddings and the output matrix of the target."""
        return sum(parameter.numel() for parameter in self.parameters())


class HeadReading(ABC):
    """A head in the middle of one text: it has read the first `pairs` pairs. All methods run without gradients.

    `confidence` ``[s]`` is what the head says of the drafts whose logits it gave last: their probability of being
    accepted (§11). None of heads that say nothing.
    """

    pairs: int = 0
    confidence: Tensor | None = None

    @abstractmethod
    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next m pairs: hidden states ``[m, layers * width]`` of :class:`HiddenStates`, ids ``[m]``.

        What was drafted is forgotten.
        """

    @abstractmethod
    def depths(self, pairs: Tensor, tokens: Tensor, depth: int) -> Iterator[Tensor]:
        """Logits ``[s, V]`` of drafts 1..depth after each of the pairs ``[s]``, one depth after the other.

        `tokens` ``[s, depth - 1]`` are the drafts before: those of the text when it is measured. A parallel head
        ignores them. What was drafted is forgotten.
        """


class Extending(ABC):
    """What reads a text and drafts below its places: a place is a token for a draft model, a pair for a head."""

    @abstractmethod
    def first(self, places: Tensor) -> Tensor:
        """Logits ``[s, V]`` of the first draft after each of the places ``[s]`` that were read."""

    @abstractmethod
    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Read drafted tokens ``[s]``, each below its parent ``[s]``; logits ``[s, V]`` after each: one pass.

        A parent is a drafted node by its number, or place t as -1 - t. New nodes are numbered on from the last one,
        from 0 after more of the text was read, or :meth:`forget`.
        """

    @abstractmethod
    def forget(self) -> None:
        """Forget all drafted nodes."""


class AutoregressiveReading(HeadReading, Extending):
    """A head that reads its own drafts, one depth per pass; the first draft takes none."""

    def depths(self, pairs: Tensor, tokens: Tensor, depth: int) -> Iterator[Tensor]:
        """Logits of each depth; see :meth:`HeadReading.depths`."""
        self.forget()
        yield self.first(pairs)
        parents = -1 - pairs
        for i in range(depth - 1):
            yield self.extend(parents, tokens[:, i])
            parents = torch.arange(i * len(pairs), (i + 1) * len(pairs), device=pairs.device)
        self.forget()


class ParallelReading(HeadReading):
    """A head that drafts all depths in one pass."""

    @abstractmethod
    def block(self, pairs: Tensor, depth: int) -> Tensor:
        """Logits ``[s, depth, V]`` of drafts 1..depth after each of the pairs ``[s]``: one pass."""

    def depths(self, pairs: Tensor, tokens: Tensor, depth: int) -> Iterator[Tensor]:
        """Logits of each depth; see :meth:`HeadReading.depths`."""
        yield from self.block(pairs, depth).unbind(dim=1)
