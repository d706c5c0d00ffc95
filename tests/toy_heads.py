"""Two draft heads over a tiny Llama: small enough to follow by hand, and good enough that some drafts are accepted.

Both remember what the target's layers added to its embeddings, faded over the earlier tokens. They guess the hidden
state after the next token linearly from that memory and the token, fitted to the target by least squares; the target's
norm and output matrix turn the guess into logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from spectheory.measure import ModelPair
from spectheory.measure.heads.base import AutoregressiveReading, Head, HiddenStates, ParallelReading

FADE = 0.3
"""What is left of the memory after a token."""
WORSE = 4.0
"""How much a head distorts what it remembers of a draft of its own, so that deeper drafts are clearly worse."""


class ToyHead(Head):
    """A head that reads its own drafts; `trained` and `deepest` are as they are given."""

    kind: ClassVar[str] = "eagle3"

    def __init__(self, target: Any, trained: int = 4, deepest: int | None = None) -> None:
        super().__init__()
        self.borrowed = (target,)  # in a tuple, so that its weights are not the head's
        self.layers = (0, len(target.model.layers))
        self.trained, self.deepest = trained, deepest
        self.vocabulary = target.config.vocab_size
        self.of_token, self.of_memory = (nn.Parameter(weights) for weights in self.fitted(target))

    def get_input_embeddings(self) -> nn.Module:
        """The target's."""
        return self.borrowed[0].get_input_embeddings()  # type: ignore[no-any-return]

    def reading(self) -> ToyReading:
        """Start reading a text."""
        return ToyReading(self)

    def added(self, hidden: Tensor) -> Tensor:
        """What the layers added to the embeddings."""
        first, last = hidden.chunk(2, dim=-1)
        return last - first

    def fitted(self, target: Any) -> tuple[Tensor, Tensor]:
        """Weights ``[V, width]`` and ``[width, width]`` of token and memory, from random texts."""
        ids = torch.randint(self.vocabulary, (16, 100), generator=torch.Generator().manual_seed(5))
        with torch.no_grad():
            states = target(ids, output_hidden_states=True, use_cache=False).hidden_states
            with HiddenStates(target, self.layers) as hidden:
                target(ids, use_cache=False)
            first, last = hidden.take().chunk(2, dim=-1)
            assert torch.equal(first, states[0])
            memory = torch.zeros_like(first)
            for t in range(1, ids.shape[1]):
                memory[:, t] = FADE * memory[:, t - 1] + (last - first)[:, t - 1]
            known = torch.cat([nn.functional.one_hot(ids, self.vocabulary).to(last), memory], dim=-1)
            weights = torch.linalg.lstsq(known.flatten(0, 1), last.flatten(0, 1)).solution
        return weights[: self.vocabulary], weights[self.vocabulary :]

    def state(self, memory: Tensor, ids: Tensor) -> Tensor:
        """The guessed hidden state after the last token."""
        return self.of_token[ids] + memory @ self.of_memory

    def logits(self, state: Tensor) -> Tensor:
        """The target's logits of a hidden state."""
        target = self.borrowed[0]
        return target.lm_head(target.model.norm(state))  # type: ignore[no-any-return]


class ToyReading(AutoregressiveReading):
    """The memory after every pair and after every drafted node."""

    def __init__(self, head: ToyHead) -> None:
        self.head = head
        self.memory, self.ids = head.of_memory.new_zeros((0, len(head.of_memory))), torch.zeros(0, dtype=torch.int64)
        self.forget()

    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs."""
        with torch.no_grad():
            for added in self.head.added(hidden):
                before = self.memory[-1] if len(self.memory) else torch.zeros_like(added)
                self.memory = torch.cat([self.memory, (FADE * before + added)[None]])
        self.ids = torch.cat([self.ids, following])
        self.pairs = len(self.ids)
        self.forget()

    def forget(self) -> None:
        """Forget all drafted nodes."""
        self.drafted, self.drafts = self.memory[:0], self.ids[:0]

    def first(self, pairs: Tensor) -> Tensor:
        """Logits of first drafts."""
        with torch.no_grad():
            return self.head.logits(self.head.state(self.memory[pairs], self.ids[pairs]))

    def extend(self, parents: Tensor, tokens: Tensor) -> Tensor:
        """Logits after drafted tokens."""
        memory = torch.cat([self.memory, self.drafted])
        ids = torch.cat([self.ids, self.drafts])
        above = torch.where(parents < 0, -1 - parents, parents + self.pairs)
        with torch.no_grad():
            added = self.head.state(memory[above], ids[above]) - self.head.get_input_embeddings()(ids[above])
            below = FADE * memory[above] + WORSE * added.roll(1, dims=-1)
            self.drafted, self.drafts = torch.cat([self.drafted, below]), torch.cat([self.drafts, tokens])
            return self.head.logits(self.head.state(below, tokens))


class ToyParallelHead(ToyHead):
    """A head that drafts all depths at once: each depth guesses from the last token's own average and less memory."""

    kind: ClassVar[str] = "dflash"
    parallel: ClassVar[bool] = True

    def __init__(self, target: Any, trained: int = 4, deepest: int | None = 6) -> None:
        super().__init__(target, trained, deepest)

    def reading(self) -> ToyParallelReading:  # type: ignore[override]
        """Start reading a text."""
        return ToyParallelReading(self)


class ToyParallelReading(ParallelReading):
    """The same memory; depth i rolls the last token's own state by i - 1 places."""

    def __init__(self, head: ToyParallelHead) -> None:
        self.head, self.inner = head, ToyReading(head)

    def read(self, hidden: Tensor, following: Tensor) -> None:
        """Read the next pairs."""
        self.inner.read(hidden, following)
        self.pairs = self.inner.pairs

    def block(self, pairs: Tensor, depth: int) -> Tensor:
        """Logits of all depths."""
        memory, ids = self.inner.memory[pairs], self.inner.ids[pairs]
        with torch.no_grad():
            states = [self.head.state(FADE**i * memory, ids).roll(i, dims=-1) for i in range(depth)]
            return self.head.logits(torch.stack(states, dim=1))


def with_head(pair: ModelPair, kind: type[ToyHead] = ToyHead, **options: Any) -> ModelPair:
    """The pair's target with a toy head as draft."""
    head = kind(pair.target.network, **options).eval()
    described = {"outputs": head.vocabulary, "fingerprint": f"toy {kind.__name__} {options}", "source": "toy"}
    return replace(pair, draft=replace(pair.target, name="toy head", network=head, **described))


TOYS: Sequence[type[ToyHead]] = (ToyHead, ToyParallelHead)
