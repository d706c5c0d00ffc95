"""Trace, rule, shape and cost in; what speculative decoding gives, out.

:func:`predict` answers for one rule and shape, :func:`plan` for many and says which is best. The prediction is exact
for the texts of the trace (path theorem, §7); the intervals say how it varies over prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.cost import CostModel, iid_tokens_per_call
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.paths import calls_of_chains
from spectheory.resampling import PromptSums
from spectheory.trace import Trace
from spectheory.trace_limits import Limits, add_limit_sums, limits_at
from spectheory.verification import BlockVerification, PathRule, RaceVerification, TokenVerification

DEFAULT_RULES: tuple[PathRule, ...] = (TokenVerification(), BlockVerification(), RaceVerification())
MOST_RESAMPLES = 100_000
DEFAULT_SHAPES = tuple(Chain(k) for k in range(1, 17))


@dataclass(frozen=True)
class Prediction:
    """What one rule and shape give on a trace.

    Attributes
    ----------
    rule, shape
        What was predicted.
    tokens_per_call : Interval
        Output tokens per target call, recovered and bonus tokens counted. Exact for the trace's texts by the path
        theorem (§7); the range is over prompts.
    accepted_length : Interval
        Accepted drafts per call: one less.
    acceptance : Interval
        Acceptance rate of a call's first draft, averaged over positions.
    iid_tokens_per_call : float
        What C1 (``leviathan2023``) says with that acceptance rate; its distance from `tokens_per_call` is its error.
    speedup : Interval, optional
        Tokens per second against plain decoding, if a cost model was given (C2).
    limits : Limits
        Limits on one call, and i.i.d. readings, at as many draft nodes.
    provenance : mapping
        That of the trace.
    """

    rule: PathRule
    shape: Chain
    tokens_per_call: Interval
    accepted_length: Interval
    acceptance: Interval
    iid_tokens_per_call: float
    speedup: Interval | None
    limits: Limits
    provenance: Mapping[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """The prediction as a JSON-ready dictionary."""
        return {
            "rule": self.rule.name,
            "shape": str(self.shape),
            "k": self.shape.nodes,
            "tokens_per_call": self.tokens_per_call.as_dict(),
            "accepted_length": self.accepted_length.as_dict(),
            "acceptance": self.acceptance.as_dict(),
            "iid_tokens_per_call": self.iid_tokens_per_call,
            "speedup": self.speedup.as_dict() if self.speedup else None,
            "limits": self.limits.as_dict(),
        }


@dataclass(frozen=True)
class Plan:
    """Predictions for every rule and shape asked for, and the best of them.

    Attributes
    ----------
    predictions : tuple of Prediction
        By rule, then by shape, in the order asked for.
    best : Prediction
        The largest speed-up; without a cost model the most tokens per call (then more drafts never look worse).
    """

    predictions: tuple[Prediction, ...]
    best: Prediction

    def of(self, rule: str) -> list[Prediction]:
        """The predictions of one rule by name, in the order of the shapes."""
        return [p for p in self.predictions if p.rule.name == rule]


def predict(
    trace: Trace,
    rule: PathRule,
    shape: Chain,
    cost: CostModel | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
    prefill_emits_token: bool = False,
) -> Prediction:
    """Predict one rule and shape from a trace (§7, exact for its texts; the ranges are statistical).

    Parameters
    ----------
    trace : Trace
        Measured statistics along texts.
    rule : PathRule
        Verification rule.
    shape : Chain
        What each call drafts.
    cost : CostModel, optional
        Needed for the speed-up.
    resamples, seed : int
        Bootstrap over prompts.
    prefill_emits_token : bool
        Whether the prompt's own pass emits one token without drafts, as a call of its own; otherwise the first call
        carries prompt and drafts.

    Raises
    ------
    TraceError
        If the trace lacks what the rule reads.
    SettingError
        If a setting is out of range.

    Examples
    --------
    Two texts known by two numbers per token:

    >>> trace = Trace.from_log_probabilities([([-1.0, -0.2], [-1.0, -0.2]), ([-0.5, -1.5], [-0.5, -1.5])])
    >>> print(predict(trace, TokenVerification(), Chain(1)).tokens_per_call)
    2.000
    """
    return plan(
        trace,
        cost,
        rules=[rule],
        shapes=[shape],
        resamples=resamples,
        seed=seed,
        prefill_emits_token=prefill_emits_token,
    ).best


def plan(
    trace: Trace,
    cost: CostModel | None = None,
    *,
    rules: Sequence[PathRule] | None = None,
    shapes: Sequence[Chain] = DEFAULT_SHAPES,
    resamples: int = 1000,
    seed: int = 0,
    prefill_emits_token: bool = False,
) -> Plan:
    """Predict every rule with every shape and find the best; arguments as in :func:`predict`.

    Without `rules`: token, block and race, as far as the trace has what they read.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> best = plan(trace, ConstantRatio(0.1)).best
    >>> best.rule.name, best.shape.k
    ('token', 7)
    """
    if rules is None:
        rules = [rule for rule in DEFAULT_RULES if set(rule.needs) <= set(trace.columns)]
    if not 1 <= resamples <= MOST_RESAMPLES:
        raise SettingError(
            f"resamples is {resamples}", limit=f"must be in 1..{MOST_RESAMPLES}", remedy="1000 is a good number"
        )
    if seed < 0:
        raise SettingError(f"seed is {seed}", limit="must be >= 0", remedy="0 is the default")
    if not rules or not shapes:
        raise SettingError("there is nothing to predict", limit="needs a rule and a shape", remedy="name both")
    sums = PromptSums(trace.texts, resamples, seed)
    sums.add("tokens", trace.lengths.astype(float))
    prefilled = int(prefill_emits_token)
    sums.add("decoded", (trace.lengths - prefilled).astype(float))
    ks = [shape.k for shape in shapes]
    for rule in rules:
        rule.require(trace.columns)
        survival = rule.path_survival(trace.columns, max(ks))
        sums.add_rows(f"accepted {rule.name}", survival[:, 0])
        for k, calls in calls_of_chains(survival, trace.lengths, ks, prefill_emits_token=prefill_emits_token).items():
            sums.add(f"calls {rule.name} {k}", calls.expected)
            sums.add(f"verifying {rule.name} {k}", calls.expected - prefilled)
            sums.add(f"full {rule.name} {k}", calls.full)
    add_limit_sums(sums, trace, ks)
    sums.draw()
    limits = {k: limits_at(sums, trace, k) for k in set(ks)}
    predictions = tuple(
        _prediction(sums, trace, rule, shape, cost, limits[shape.k]) for rule in rules for shape in shapes
    )
    return Plan(predictions, max(predictions, key=lambda p: (p.speedup or p.tokens_per_call).best))


def _speedup(sums: PromptSums, rule: PathRule, shape: Chain, cost: CostModel) -> Interval | None:
    """Decoding alone: a token that the prompt's own pass emits, and that pass, count on neither side."""
    verifying = f"verifying {rule.name} {shape.k}"
    if sums.total(verifying) <= 0:
        return None
    per_call = sums.ratio("decoded", verifying, limits=(1.0, shape.depth + 1.0))
    return cost.speedup(per_call, shape, sums.total(f"full {rule.name} {shape.k}") / sums.total(verifying))


def _prediction(
    sums: PromptSums, trace: Trace, rule: PathRule, shape: Chain, cost: CostModel | None, limits: Limits
) -> Prediction:
    calls = f"calls {rule.name} {shape.k}"
    tokens_per_call = sums.ratio("tokens", calls, limits=(1.0, shape.depth + 1.0))
    acceptance = sums.ratio(f"accepted {rule.name}", "tokens", limits=(0.0, 1.0))
    return Prediction(
        rule=rule,
        shape=shape,
        tokens_per_call=tokens_per_call,
        accepted_length=tokens_per_call + (-1.0),
        acceptance=acceptance,
        iid_tokens_per_call=iid_tokens_per_call(min(acceptance.best, 1.0), shape.k),
        speedup=_speedup(sums, rule, shape, cost) if cost else None,
        limits=limits,
        provenance=trace.provenance,
    )
