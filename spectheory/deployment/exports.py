"""What other tools take from a plan: acceptance as simulators of engines define it, and k by batch size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.cost import AffineCost, Roofline
from spectheory.deployment.batches import BATCHES, batch_ranges, best_lengths
from spectheory.deployment.candidates import Draft
from spectheory.deployment.ranking import rank_drafts
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters, pooled
from spectheory.verification import PathRule, TokenVerification

_DIGITS = 6
"""After the point: far below the error of any trace."""
Options = Mapping[str, Any]


@dataclass(frozen=True)
class BestK:
    """The best chain of a batch and context: k, 0 for plain decoding, and its speed-up over plain decoding there."""

    batch: int
    context: float
    k: int
    speedup: Interval


@dataclass(frozen=True)
class Acceptance:
    """How calls of k drafts end, and k by batch size if a plan knows it.

    `survival` has P(accepted >= i), i = 1..k, at the starts of calls of k drafts (unconditional), none where they were
    not counted; `schedule` the rows (first batch, last batch, k), `table` the best k by batch and context. `kind` is
    ``exact`` for the texts of a trace, or ``counted`` by an engine.
    """

    survival: tuple[float, ...]
    schedule: tuple[tuple[int, int, int], ...] = ()
    kind: str = "exact"
    table: tuple[BestK, ...] = ()

    @property
    def k(self) -> int:
        """Drafts of a call."""
        return len(self.survival)

    @property
    def hazards(self) -> tuple[float, ...]:
        """P(draft i accepted, given that those before it were); 0 after a survival of 0."""
        before = (1.0, *self.survival[:-1])[: self.k]
        return tuple(s / b if b > 0 else 0.0 for s, b in zip(self.survival, before, strict=True))

    @property
    def accepted(self) -> float:
        """Mean accepted drafts of a call, without the recovered or bonus token."""
        return float(sum(self.survival))

    @property
    def length(self) -> float:
        """Tokens per call, the recovered or bonus token included."""
        return 1 + self.accepted


@dataclass(frozen=True)
class Export:
    """A format: what it is for, its options, and how they are written.

    `most` is the largest k that the tool takes; `by_batch` says that it needs k by batch size.
    """

    name: str
    meaning: str
    options: Callable[[Acceptance], Options]
    text: Callable[[Options], str]
    most: int | None = None
    by_batch: bool = False

    def of(self, acceptance: Acceptance) -> Options:
        """The options; a ``SettingError`` where the tool does not take them."""
        if self.by_batch and not acceptance.schedule:
            raise SettingError(
                f"{self.name} needs k by batch size",
                limit="these costs are for one batch size",
                remedy=f"use {argument('a spectheory.cost.Roofline', '--bench or --hardware')}",
            )
        if not (self.by_batch or acceptance.survival):
            raise SettingError(
                f"{self.name} needs acceptance by position",
                limit="these runs counted none",
                remedy=f"name a trace of the pair with {argument('trace', 'TRACE')}",
            )
        if self.most is not None and acceptance.k > self.most:
            raise SettingError(
                f"{self.name} is asked for k = {acceptance.k}",
                limit=f"it takes 1..{self.most}",
                remedy=f"lower {argument('k_max')}, or name counts of so few drafts",
            )
        return self.options(acceptance)


def _rounded(values: Sequence[float]) -> list[float]:
    return [float(np.round(value, _DIGITS)) for value in values]


def _synthetic(acceptance: Acceptance, name: str, value: Any) -> Options:
    return {"num_speculative_tokens": acceptance.k, "rejection_sample_method": "synthetic", name: value}


def _schedule(acceptance: Acceptance) -> Options:
    longest = max(k for _, _, k in acceptance.schedule)
    return {
        "num_speculative_tokens": max(longest, 1),
        "num_speculative_tokens_per_batch_size": [list(row) for row in acceptance.schedule],
    }


def _adaptive(acceptance: Acceptance) -> Options:
    return {str(first): {"candidate_steps": [k]} for first, _, k in acceptance.schedule}


_TABLE = "spectheory-k/1"
_COLUMNS = ("batch", "context", "k", "speedup", "low", "high")
"""The schema of a table of k, which stays as it is, and its columns."""


def _table(acceptance: Acceptance) -> Options:
    rows = [
        (row.batch, round(row.context), row.k, *_rounded([row.speedup.best, row.speedup.low, row.speedup.high]))
        for row in acceptance.table
    ]
    return {"schema": _TABLE, "rows": [dict(zip(_COLUMNS, row, strict=True)) for row in rows]}


def _csv(options: Options) -> str:
    return "\n".join([",".join(_COLUMNS), *(",".join(map(str, row.values())) for row in options["rows"])])


def _yaml(options: Options) -> str:
    return "\n".join(f"{name}: {value}" for name, value in options.items())


def _flags(options: Options) -> str:
    written = {n: ",".join(map(str, v)) if isinstance(v, list) else str(v) for n, v in options.items()}
    return " ".join(f"--{name} {value}" for name, value in written.items())


def _environment(options: Options) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


_EVERY = (
    Export(
        "vllm-rates",
        "vLLM's synthetic acceptance: unconditional rates by position, for --speculative-config",
        lambda a: _synthetic(a, "synthetic_acceptance_rates", _rounded(a.survival)),
        json.dumps,
    ),
    Export(
        "vllm-length",
        "vLLM's synthetic acceptance: tokens per call, for --speculative-config",
        lambda a: _synthetic(a, "synthetic_acceptance_length", _rounded([a.length])[0]),
        json.dumps,
    ),
    Export(
        "vllm-schedule",
        "vLLM's dynamic speculation: rows of first batch, last batch, k, for --speculative-config",
        _schedule,
        json.dumps,
        by_batch=True,
    ),
    Export(
        "sglang-adaptive",
        "SGLang's adaptive speculation, EAGLE and EAGLE-3: one length from each batch size on, the JSON file of "
        "--speculative-adaptive-config",
        _adaptive,
        json.dumps,
        by_batch=True,
    ),
    Export("table", "k by batch and context as JSON, for other programs", _table, json.dumps, by_batch=True),
    Export("table-csv", "k by batch and context as CSV", _table, _csv, by_batch=True),
    Export(
        "aiconfigurator",
        "aiconfigurator and AISimulate: k, and mean accepted drafts",
        lambda a: {"nextn": a.k, "nextn_accepted": _rounded([a.accepted])[0]},
        _yaml,
    ),
    Export(
        "dynamo",
        "Dynamo's mocker: k, and conditional rates (hazards) by position",
        lambda a: {"aic-nextn": a.k, "aic-nextn-accept-rates": _rounded(a.hazards)},
        _flags,
        most=5,
    ),
    Export(
        "sglang",
        "SGLang's simulated acceptance: tokens per call, in the environment of the server",
        lambda a: {
            "SGLANG_SIMULATE_ACC_LEN": _rounded([a.length])[0],
            "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
            "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token",
        },
        _environment,
    ),
    Export(
        "tensorrt-llm",
        "TensorRT-LLM's forced acceptance: accepted drafts per call without the bonus token, in the environment of the "
        "server; the part after the point is a probability, and 0 is taken as not forced",
        lambda a: {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": _rounded([a.accepted])[0]},
        _environment,
    ),
    Export(
        "atom",
        "ATOM's forced acceptance: k, and tokens per call",
        lambda a: {"num-speculative-tokens": a.k, "spec-decode-acceptance-length": _rounded([a.length])[0]},
        _flags,
    ),
    Export(
        "llamacpp",
        "llama.cpp's synthetic acceptance: k, and unconditional rates by position",
        lambda a: {"spec-draft-n-max": a.k, "spec-synth-rates": _rounded(a.survival)},
        _flags,
    ),
    Export(
        "acceptance",
        "k, survival, tokens per call and their kind as JSON, for other programs",
        lambda a: {
            "k": a.k,
            "survival": _rounded(a.survival),
            "tokens_per_call": _rounded([a.length])[0],
            "kind": a.kind,
        },
        json.dumps,
    ),
)
EXPORTS: dict[str, Export] = {each.name: each for each in _EVERY}
"""Every format by its name."""


def export_named(name: str) -> Export:
    """The format of that name."""
    if name not in EXPORTS:
        raise SettingError(f"export {name!r} is unknown", limit=f"there are {', '.join(EXPORTS)}", remedy="name one")
    return EXPORTS[name]


def planned_acceptance(
    drafts: Sequence[Draft],
    rules: Iterable[PathRule | str] | None = None,
    *,
    k_max: int = 16,
    by_batch: bool = False,
    contexts: Sequence[int] | None = None,
) -> tuple[Acceptance, str]:
    """Acceptance of the fastest chain at the starts of its own calls, and k by batch and context where costs know them;
    with words that say what it is of. Without rules it is that of token verification.
    """
    best = rank_drafts(drafts, rules=rules or [TokenVerification()], k_max=k_max, nodes=1).best
    rule, k, trace, cost = best.prediction.rule, best.prediction.shape.nodes, best.draft.trace, best.draft.cost
    schedule: tuple[tuple[int, int, int], ...] = ()
    table: tuple[BestK, ...] = ()
    if by_batch and isinstance(cost, Roofline | AffineCost):
        every = range(1, max(BATCHES) + 1)
        schedule = tuple(batch_ranges(best_lengths(trace, rule, cost, k_max=k_max, batches=every)))
        choices = best_lengths(trace, rule, cost, k_max=k_max, contexts=contexts or None)
        table = tuple(BestK(at.batch, at.context, at.k, _estimate(at.speedup)) for at in choices)
    words = f"draft {best.draft.name}, {rule.label}, k = {k} (speed-up {best.speedup}), exact for the trace's texts"
    return Acceptance(tuple(survival_at_starts(trace, rule, k).tolist()), schedule, table=table), words


def _estimate(value: float) -> Interval:
    return Interval(value, value, value, "estimate")


def counted_acceptance(counts: Mapping[str, Counters | CallLog]) -> tuple[Acceptance, str]:
    """Survival as one engine counted it, at its own k."""
    (name, run), *others = counts.items()
    counters = pooled(run)
    survival, kind = counters.survival, str(counters.provenance.get("kind", "counted"))
    if others or not survival:
        raise SettingError(
            f"{', '.join(counts)} says no acceptance by position of one engine",
            limit="an export needs counts by position, or a trace",
            remedy="name one log with counts by position, or a trace",
        )
    return Acceptance(tuple(survival), kind=kind), f"{name}, {kind}, k = {len(survival)}"
