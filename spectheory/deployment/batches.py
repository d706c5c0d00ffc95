"""The best chain length for each batch size and context length, by a cost model that knows both (C3, C4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol, runtime_checkable

from spectheory.checks import instances, several
from spectheory.cost import AffineCost, CostModel, Roofline
from spectheory.cost.model import reads_besides
from spectheory.cost.served import ServedCost
from spectheory.drafting import Chain, Shape
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.verification import PathRule
from spectheory.verification.by_start import within
from spectheory.verification.registry import path_rule

BATCHES = tuple(2**i for i in range(9))
"""1 to 256."""


@dataclass(frozen=True)
class BatchChoice:
    """The best chain for one batch size and context length (values of the cost model).

    `batch` sequences are decoded together, each with `context` cached tokens. `k` is 0 where plain decoding is fastest,
    and the speed-up is over plain decoding at the same batch and context. Tokens per call are of each sequence (exact
    for the texts of the trace); `tokens_per_second` are output tokens of all sequences. `fits` says whether their
    caches fit into memory, as far as the cost model knows it.
    """

    batch: int
    context: int
    k: int
    tokens_per_call: float
    speedup: float
    tokens_per_second: float
    fits: bool = True


@dataclass(frozen=True)
class ChainCalls:
    """Chains of one length: tokens per call, and the share of calls that follow a full acceptance; no shape is plain
    decoding.
    """

    shape: Shape | None = None
    tokens: float = 1.0
    full: float = 0.0

    @property
    def k(self) -> int:
        """Drafts of a call."""
        return self.shape.nodes if self.shape else 0

    @property
    def drafted(self) -> bool:
        """Whether a draft model makes passes."""
        return bool(self.shape and self.shape.passes)

    def room(self, cost: Roofline) -> float:
        """Sequences that fit into memory; plain decoding and free drafts keep no draft model there."""
        return (cost if self.drafted else replace(cost, draft=None)).room

    def seconds(self, cost: CostModel) -> float:
        """Of a call; a head's first pass reads what the last call accepted."""
        if self.shape is None:
            return cost.target_step().best
        return cost.call(self.shape, reads_besides(cost, self.tokens - 1, self.full)).best


def best_lengths(
    trace: Trace,
    rule: PathRule,
    cost: Roofline | AffineCost,
    *,
    k_max: int = 16,
    batches: Sequence[int] = BATCHES,
    contexts: Sequence[int] | None = None,
) -> list[BatchChoice]:
    """The chain length of the largest speed-up at each context and batch (§7 for tokens, C3 for seconds).

    Tokens per call follow exactly from the texts and are the same at every batch; seconds are the cost model's, an
    estimate. All sequences make their calls together and have the same context, by default that of `cost`; its own
    batch does not matter.

    Examples
    --------
    >>> from spectheory.cost import ACCELERATORS, ModelShape
    >>> from spectheory.verification import TokenVerification
    >>> large = ModelShape.dense(32, 4096, 14336, heads=32, kv_heads=8, head_dim=128, vocabulary=128256)
    >>> small = ModelShape.dense(16, 2048, 8192, heads=32, kv_heads=8, head_dim=64, vocabulary=128256, tied=True)
    >>> trace = Trace.from_log_probabilities([([-1.0] * 64, [-1.3] * 64)] * 2)
    >>> cost = Roofline(large, small, ACCELERATORS["H100-SXM"], context=0)
    >>> [(c.batch, c.k) for c in best_lengths(trace, TokenVerification(), cost, batches=[1, 32, 256])]
    [(1, 3), (32, 3), (256, 0)]
    """
    by_point = every_length(trace, rule, cost, k_max=k_max, batches=batches, contexts=contexts)
    return [max(choices, key=lambda choice: choice.speedup) for choices in by_point]


def every_length(
    trace: Trace,
    rule: PathRule,
    cost: Roofline | AffineCost,
    *,
    k_max: int = 16,
    batches: Sequence[int] = BATCHES,
    contexts: Sequence[int] | None = None,
) -> list[list[BatchChoice]]:
    """What :func:`best_lengths` chooses from: at each context and batch plain decoding, then every chain length."""
    check_batches(cost)
    rule = path_rule(rule)
    rule.require(a_trace(trace).columns)
    k_max = at_least_one("k_max", k_max)
    batches = several("batches", batches, remedy="[1, 8, 64] is one")
    contexts = [cost.context] if contexts is None else several("contexts", contexts, remedy="[0, 1024] is one")
    return lengths_of(chain_calls(trace, rule, k_max), cost, batches, contexts)


def chain_calls(trace: Trace, rule: PathRule, k_max: int) -> list[ChainCalls]:
    """Every chain length of a rule on a trace, as far as the trace records it (§7)."""
    chains = []
    for each in calls_by_shape(trace, rule, [Chain(k) for k in range(1, within(trace.columns, k_max) + 1)]):
        calls = float(each.calls.expected.sum())
        chains.append(ChainCalls(each.shape, len(trace) / calls, float(each.calls.full.sum()) / calls))
    return chains


def lengths_of(
    chains: Sequence[ChainCalls], cost: Roofline | AffineCost, batches: Sequence[int], contexts: Sequence[int]
) -> list[list[BatchChoice]]:
    """At each context and batch plain decoding, then every chain."""
    return [
        [_choice(each, replace(cost, batch=batch, context=context)) for each in (ChainCalls(), *chains)]
        for context in contexts
        for batch in batches
    ]


def check_batches(cost: CostModel) -> None:
    """Refuse a cost model of one batch size."""
    if not isinstance(cost, Roofline | AffineCost | ServedCost):
        raise SettingError(
            f"{type(cost).__name__} is asked for a table over batches",
            limit="its latencies are for one batch size and one context",
            remedy="use a roofline or an affine fit",
        )


@runtime_checkable
class _Chosen(Protocol):
    """A length chosen for a batch."""

    @property
    def batch(self) -> int:
        """Sequences decoded together."""

    @property
    def k(self) -> int:
        """Drafts of a call; 0 is plain decoding."""


def batch_ranges(choices: Sequence[_Chosen]) -> list[tuple[int, int, int]]:
    """Runs of batch sizes with one best length, as (first, last, k); `choices` have one context, batches ascending."""
    choices = instances("choices", choices, _Chosen, remedy="spectheory.deployment.best_lengths makes them")
    runs = [(k, [choice.batch for choice in group]) for k, group in groupby(choices, key=lambda choice: choice.k)]
    return [(batches[0], batches[-1], k) for k, batches in runs]


def _choice(chain: ChainCalls, cost: Roofline | AffineCost) -> BatchChoice:
    per_second = cost.batch * chain.tokens / chain.seconds(cost)
    speedup = per_second * cost.target_step().best / cost.batch
    fits = not isinstance(cost, Roofline) or cost.batch <= chain.room(cost)
    return BatchChoice(cost.batch, cost.context, chain.k, chain.tokens, speedup, per_second, fits)
