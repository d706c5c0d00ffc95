"""C3: the parts of a layer by kind, and what each reads, keeps and computes.

A model is a list of parts, each with how often it occurs. A part knows the weights that every token is multiplied by
(:meth:`Part.weights`), the numbers that a token adds to the cache (:attr:`Part.cached`), the operations for each token
that is attended to (:attr:`Part.attended`), and what it keeps per sequence whatever the context (:attr:`Part.state`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of a layer; what a kind does not have is 0.

    `norms` are vectors of the hidden size before and after it, `other` further weights that every token is multiplied
    by. Of the context a token attends to at most `window` tokens, and older ones leave the cache; of what is cached it
    attends to at most `selected` tokens. None is all.
    """

    norms: int = 1
    other: int = 0
    window: int | None = None
    selected: int | None = None

    def weights(self, hidden: int) -> int:
        """Weights that every token is multiplied by, without routed experts."""
        return self.other

    @property
    def cached(self) -> int:
        """Numbers of a token in the cache."""
        return 0

    @property
    def attended(self) -> int:
        """Operations of a token for each token that it attends to, in decoding."""
        return 0

    @property
    def attended_in_prompt(self) -> int:
        """The same in a pass over a prompt."""
        return self.attended

    @property
    def state(self) -> int:
        """Bytes kept per sequence, however long it is."""
        return 0

    @property
    def updated(self) -> int:
        """Operations of a token on the state."""
        return 0

    @property
    def sums(self) -> int:
        """All-reduces after it where several devices share its weights."""
        return 1

    def shared_by(self, devices: int) -> float:
        """The share of its cache that one of several devices keeps."""
        return 1 / devices

    def kept(self, context: float) -> float:
        """Tokens in the cache after `context` tokens."""
        return context if self.window is None else min(context, self.window)

    def seen(self, context: float) -> float:
        """Tokens that one after `context` tokens attends to."""
        return self.kept(context) if self.selected is None else min(context, self.selected)

    def pairs(self, tokens: float) -> float:
        """Pairs of a token and one that it attends to, in a prompt of so many tokens, half of its own counted."""
        width = min(tokens, *(size for size in (self.window, self.selected) if size is not None), math.inf)
        return width * width / 2 + (tokens - width) * width


@dataclass(frozen=True)
class Attention(Part):
    """Attention with grouped heads of keys and values.

    `value_dim` is the width of a head of values, None as `head_dim`. If `gated`, a matrix as large as that of queries
    gates the output. Without `stores` keys and values are those of an earlier layer, as in Gemma's last layers. If
    `keys_are_values`, values are computed by the matrix of keys.
    """

    heads: int = 1
    kv_heads: int = 1
    head_dim: int = 1
    value_dim: int | None = None
    gated: bool = False
    stores: bool = True
    keys_are_values: bool = False

    @property
    def values(self) -> int:
        """Width of a head of values."""
        return self.head_dim if self.value_dim is None else self.value_dim

    def weights(self, hidden: int) -> int:
        """Queries, keys, values, output and gate."""
        stored = self.head_dim + (0 if self.keys_are_values else self.values)
        queries = self.heads * (self.head_dim + self.values + (self.values if self.gated else 0))
        return hidden * (queries + (self.kv_heads * stored if self.stores else 0)) + self.other

    @property
    def cached(self) -> int:
        """Keys and values."""
        return self.kv_heads * (self.head_dim + self.values) if self.stores else 0

    @property
    def attended(self) -> int:
        """Two operations per number for the scores and two for the values."""
        return 2 * self.heads * (self.head_dim + self.values)

    def shared_by(self, devices: int) -> float:
        """At least one head of keys and values on each device."""
        return math.ceil(self.kv_heads / devices) / self.kv_heads


@dataclass(frozen=True)
class LatentAttention(Part):
    """Multi-head latent attention: of a token the cache holds one vector of `kv_rank` and a rotary key of `rope`.

    `q_rank` is the rank of queries, None if they are computed directly; `nope`, `rope` and `value` are widths of a
    head. In decoding keys and values stay in the latent space; a pass over a prompt expands them.
    """

    heads: int = 1
    q_rank: int | None = None
    kv_rank: int = 1
    nope: int = 1
    rope: int = 1
    value: int = 1
    gated: bool = False

    def weights(self, hidden: int) -> int:
        """Down and up for queries and for keys with values, and the output."""
        width = self.heads * (self.nope + self.rope)
        queries = hidden * width if self.q_rank is None else self.q_rank * (hidden + width)
        latent = hidden * (self.kv_rank + self.rope) + self.kv_rank * self.heads * (self.nope + self.value)
        return queries + latent + hidden * self.heads * self.value * (2 if self.gated else 1) + self.other

    @property
    def cached(self) -> int:
        """The latent vector and the rotary key."""
        return self.kv_rank + self.rope

    @property
    def attended(self) -> int:
        """Scores over latent and rotary numbers, values over latent ones."""
        return 2 * self.heads * (2 * self.kv_rank + self.rope)

    @property
    def attended_in_prompt(self) -> int:
        """Scores and values over the widths of heads."""
        return 2 * self.heads * (self.nope + self.rope + self.value)

    def shared_by(self, devices: int) -> float:
        """Every device keeps the latent vector, as all heads read it."""
        return 1.0


@dataclass(frozen=True)
class Indexer(Part):
    """What chooses the tokens that sparse attention reads: one key of `width` per token, and `heads` of queries."""

    heads: int = 1
    width: int = 1

    @property
    def cached(self) -> int:
        """One key."""
        return self.width

    @property
    def attended(self) -> int:
        """Scores."""
        return 2 * self.heads * self.width

    @property
    def sums(self) -> int:
        """None: it is part of an attention."""
        return 0

    def shared_by(self, devices: int) -> float:
        """Every device keeps the keys."""
        return 1.0


@dataclass(frozen=True)
class Recurrence(Part):
    """Linear attention, a state-space layer or a short convolution: a state of constant size for every sequence.

    `matrices` are the weights of its matrices, `numbers` those of the state in 32 bits, `last` the numbers of the last
    tokens in 16 bits that its convolution reads, `each` operations of a token per number of the state.
    """

    matrices: int = 0
    numbers: int = 0
    last: int = 0
    each: int = 5

    def weights(self, hidden: int) -> int:
        """Its matrices."""
        return self.matrices + self.other

    @property
    def state(self) -> int:
        """32 bits for numbers that add up over a text, 16 for the last tokens."""
        return 4 * self.numbers + 2 * self.last

    @property
    def updated(self) -> int:
        """Decay, update and reading of every number."""
        return self.each * self.numbers


@dataclass(frozen=True)
class Mlp(Part):
    """An MLP of width `intermediate` with three matrices if `gated`, else two."""

    intermediate: int = 1
    gated: bool = True

    def weights(self, hidden: int) -> int:
        """Its matrices."""
        return (3 if self.gated else 2) * hidden * self.intermediate + self.other


@dataclass(frozen=True)
class Experts(Part):
    """A mixture of experts: each token is routed to `chosen` of `experts` MLPs of width `intermediate`.

    `shared` is the width of the MLP that every token takes besides. Experts work in the width `latent` where there are
    matrices down to it and up again; None is the hidden size.
    """

    experts: int = 1
    chosen: int = 1
    intermediate: int = 1
    gated: bool = True
    shared: int = 0
    latent: int | None = None

    def weights(self, hidden: int) -> int:
        """Router, shared expert, and the matrices around latent experts."""
        around = 0 if self.latent is None else 2 * hidden * self.latent
        return hidden * self.experts + self._matrices * hidden * self.shared + around + self.other

    def expert(self, hidden: int) -> int:
        """Weights of one expert."""
        return self._matrices * (hidden if self.latent is None else self.latent) * self.intermediate

    @property
    def _matrices(self) -> int:
        return 3 if self.gated else 2
