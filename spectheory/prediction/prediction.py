"""Trace, rule, shape and cost in; what speculative decoding gives, out.

:func:`predict` answers for one rule and shape, :func:`plan` for many and says which is best. The prediction is exact
for the texts of the trace (path theorem, §7); the intervals say how it varies over prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from spectheory.cost import CostModel, iid_tokens_per_call
from spectheory.cost.model import Ends
from spectheory.drafting import Chain, Shape, expected_tokens
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.limits.claims import IID_FORMULA, LimitClaim
from spectheory.prediction.call_times import speedup
from spectheory.prediction.certified import Settled, by_lists, certain, ends_of, joined, require_certified
from spectheory.prediction.drafted_lengths import draft_inside_target
from spectheory.prediction.labels import Label
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.recorded import recorded_rules
from spectheory.prediction.shape_calls import BestTree, ShapeCalls, Wanted, by_parallel_head, calls_by_shape, takes
from spectheory.prediction.stopped_times import drafted_per_call, stopped_speedup, sum_of
from spectheory.prediction.trace_limits import Limits, TraceLimits
from spectheory.trace import SOURCES, Trace
from spectheory.verification import ArgmaxDraft, PathRule, RankRule, RecordedMatch
from spectheory.verification.by_start import AtDepth, within
from spectheory.verification.registry import DEFAULT_RULES, names, ranked_names

_LETTERS_SHOWN = 40
"""Letters of a shape that a repr writes out."""
DEFAULT_SHAPES = tuple(Chain(k) for k in range(1, 17))
"""Without shapes of their own, plans have these, as far as the trace records the draft."""


@dataclass(frozen=True)
class Prediction:
    """What one rule and shape give on a trace.

    - `wanted` is what was asked for: the shape itself, or the search that found it.
    - `tokens_per_call` counts the recovered or bonus token. It is exact for the texts of the trace by the path theorem
      (§7); the range is over prompts. `accepted_length` is one less.
    - `acceptance` is the acceptance rate of a call's first draft, averaged over positions.
    - `iid_tokens_per_call` is the i.i.d. formula: C1 (``leviathan2023``) with that rate for a chain, S1 with the mean
      rank law for another shape; of drafts by start with the law of a call's first draft (§10).
    - `speedup` is tokens per second over those of plain decoding, if a cost model was given (C2).
    - `limits` are those of whole decodings and of one call, and idealised values, at as many draft nodes.
    - `regret` of a chain is the share of calls beyond those of its limit, B7 or L (§12, exact for the texts; the range
      is over prompts, paired); none for a rule that the limit does not bind.
    - `held_out`: every text was scored with a shape that was not chosen on it (not so for a tree searched on one
      prompt).
    - `certified` is the certain range of `tokens_per_call` for the trace's texts, where the trace does not settle it:
      the rule needs full pmfs, and the trace has lists of the most probable tokens (§9). The other intervals are then
      the ranges over both ends, and ``best`` is the middle.
    - `drafted` are the drafted tokens per call, where the draft decides its length (§11): an estimate by likelihood
      ratios with its range over prompts, inside certain bounds.
    """

    rule: PathRule
    shape: Shape
    wanted: Wanted
    tokens_per_call: Interval
    accepted_length: Interval
    acceptance: Interval
    iid_tokens_per_call: float
    speedup: Interval | None
    limits: Limits
    held_out: bool
    provenance: Mapping[str, Any]
    certified: Interval | None = None
    drafted: Interval | None = None
    regret: Interval | None = None

    @property
    def label(self) -> Label:
        """Rule and kind of shape."""
        return Label.of(self.rule, self.wanted)

    @property
    def gain(self) -> float:
        """What plans maximise: the speed-up, or without costs the tokens per call; the low end of a range of bounds."""
        gain = self.speedup or self.tokens_per_call
        return gain.low if self.certified or gain.kind == "bound" else gain.best

    def compared(self, claim: LimitClaim) -> float | None:
        """The best value of a limit, or of the i.i.d. formula, for this rule and shape."""
        value = self.iid_tokens_per_call if claim is IID_FORMULA else getattr(self.limits, claim.key)
        return value.best if isinstance(value, Interval) else value

    def __repr__(self) -> str:
        """Rule, shape and the two numbers asked for, in short."""
        gain = f", speed-up {self.speedup}" if self.speedup else ""
        return (
            f"<Prediction: {self.rule.name}, {_shortened(str(self.shape))}: {self.tokens_per_call} tokens a call{gain}>"
        )

    def as_dict(self) -> dict[str, Any]:
        """The prediction as a JSON-ready dictionary."""
        return {
            "rule": self.rule.name,
            "shape": str(self.shape),
            "wanted": str(self.wanted),
            "paths": self.shape.listed,
            "k": self.shape.nodes,
            "depth": self.shape.depth,
            "tokens_per_call": self.tokens_per_call.as_dict(),
            "accepted_length": self.accepted_length.as_dict(),
            "acceptance": self.acceptance.as_dict(),
            "iid_tokens_per_call": self.iid_tokens_per_call,
            "speedup": self.speedup.as_dict() if self.speedup else None,
            "limits": self.limits.as_dict(),
            "regret": self.regret.as_dict() if self.regret else None,
            "held_out": self.held_out,
            **({"certified": self.certified.as_dict()} if self.certified else {}),
            **({"drafted": self.drafted.as_dict()} if self.drafted else {}),
        }


@dataclass(frozen=True)
class Plan:
    """Predictions for every rule and shape asked for, in that order, and the best of them.

    The best has the largest speed-up; without costs the most tokens per call, which more drafts never lower. `prompts`
    is the number of prompts that the intervals rest on.
    """

    predictions: tuple[Prediction, ...]
    best: Prediction
    prompts: int

    def __repr__(self) -> str:
        """How many there are, and the best."""
        return f"<Plan: {len(self.predictions)} predictions, best {self.best!r}>"

    def of(self, label: Label | str) -> list[Prediction]:
        """The predictions with one label, or with its words, by the number of nodes."""
        return sorted((p for p in self.predictions if str(p.label) == str(label)), key=lambda p: p.shape.nodes)

    @property
    def labels(self) -> list[Label]:
        """Rules and kinds of shape in the order asked for."""
        return list(dict.fromkeys(p.label for p in self.predictions))

    @property
    def chains(self) -> list[Label]:
        """The labels of chains."""
        return [label for label in self.labels if label.chain]

    @property
    def trees(self) -> list[Label]:
        """The labels of other shapes."""
        return [label for label in self.labels if not label.chain]

    def __add__(self, other: Plan) -> Plan:
        """The predictions of two plans for one trace, and the better of their best."""
        return Plan(self.predictions + other.predictions, max(self.best, other.best, key=_merit), self.prompts)


def _merit(prediction: Prediction) -> tuple[bool, float]:
    """What the best of a plan has most of: a choice by hindsight comes last."""
    return not prediction.rule.hindsight, prediction.gain


def predict(
    trace: Trace, rule: PathRule, shape: Wanted, cost: CostModel | None = None, *, prefill_emits_token: bool = False
) -> Prediction:
    """Predict one rule and shape from a trace (§7, exact for its texts; the ranges are statistical).

    `shape` is what each call drafts; another shape than a chain needs a rule with ranks. The speed-up needs `cost`.
    With `prefill_emits_token` the prompt's own pass emits one token without drafts, as a call of its own; otherwise the
    first call carries prompt and drafts.

    Raises
    ------
    TraceError
        If the trace lacks what the rule reads.
    SettingError
        If the rule does not take the shape.

    Examples
    --------
    Two texts known by two numbers per token:

    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-1.0, -0.2], [-1.0, -0.2]), ([-0.5, -1.5], [-0.5, -1.5])])
    >>> print(predict(trace, TokenVerification(), Chain(1)).tokens_per_call)
    2.000
    """
    return plan(trace, cost, rules=[rule], shapes=[shape], prefill_emits_token=prefill_emits_token).best


def plan(
    trace: Trace,
    cost: CostModel | None = None,
    *,
    rules: Sequence[PathRule] | None = None,
    shapes: Sequence[Wanted] | None = None,
    prefill_emits_token: bool = False,
) -> Plan:
    """Predict every rule with every shape it takes and find the best; the other arguments are those of :func:`predict`.

    The default rules are those of :data:`~spectheory.verification.registry.DEFAULT_RULES` that the trace has columns
    for, and argmax drafts for a parallel head, and of recorded lengths their drafts; the default shapes
    :data:`DEFAULT_SHAPES`. Only rules with ranks take shapes other than chains. No shape may be deeper than a draft is
    recorded by start (§10); the default ones are cut there. Of several chains of recorded lengths those are left out
    that are longer than the longest length.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> best = plan(trace, ConstantRatio(0.1)).best
    >>> best.rule.name, best.shape.k
    ('token', 7)
    """
    if rules is None:
        usual = (*DEFAULT_RULES, ArgmaxDraft()) if by_parallel_head(trace.provenance) else DEFAULT_RULES
        rules = recorded_rules(trace) or [rule for rule in usual if not rule.lacks(trace.columns)]
    if shapes is None:
        shapes = DEFAULT_SHAPES[: within(trace.columns, len(DEFAULT_SHAPES))]
    _check(rules, shapes, cost)
    for rule in rules:
        if not isinstance(rule, RecordedMatch):
            trace.require_scores(f"the rule {rule.name!r}")
    if any(by_lists(rule, trace, shape) for rule in rules for shape in shapes):
        return _with_lists(trace, cost, rules, shapes, prefill_emits_token)
    found = _found(trace, rules, shapes, prefill_emits_token)
    predictions = _predictions(trace, found, cost, prefill_emits_token)
    return Plan(predictions, max(predictions, key=_merit), Prompts(trace.texts).count)


def of_calls(
    trace: Trace, rule: PathRule, found: ShapeCalls, cost: CostModel | None = None, *, prefill_emits_token: bool = False
) -> Prediction:
    """The prediction of calls that are known already; the other arguments are those of :func:`predict`."""
    return _predictions(trace, [(rule, found)], cost, prefill_emits_token)[0]


def _predictions(
    trace: Trace, found: Sequence[tuple[PathRule, ShapeCalls]], cost: CostModel | None, prefill_emits_token: bool
) -> tuple[Prediction, ...]:
    prompts = Prompts(trace.texts)
    limits = TraceLimits(prompts, trace, [calls for _, calls in found], prefill_emits_token=prefill_emits_token)
    errors = tuple(cost.errors()) if cost else ()
    prefilled = int(prefill_emits_token)
    return tuple(_prediction(prompts, trace, rule, calls, limits, cost, errors, prefilled) for rule, calls in found)


def _with_lists(
    trace: Trace, cost: CostModel | None, rules: Sequence[PathRule], shapes: Sequence[Wanted], prefill: bool
) -> Plan:
    """Each rule in turn: those that the lists alone bound at both ends of their law, the others as they are."""
    found: list[Plan] = []
    refused: SettingError | None = None
    for rule in rules:
        taken = [shape for shape in shapes if takes(rule, shape)]
        if exact := [shape for shape in taken if not by_lists(rule, trace, shape)]:
            found.append(plan(trace, cost, rules=[rule], shapes=exact, prefill_emits_token=prefill))
        bounded = []
        for shape in (shape for shape in taken if shape not in exact):
            try:
                require_certified(rule, shape)
                bounded.append(shape)
            except SettingError as error:
                refused = error
        if bounded:
            found.append(_between_ends(trace, cost, rule, bounded, prefill))
    if not found:
        raise refused or SettingError("there is nothing to predict", limit="needs a shape of the rules", remedy="chain")
    return reduce(add, found)


def _between_ends(
    trace: Trace, cost: CostModel | None, rule: PathRule, shapes: Sequence[Wanted], prefill: bool
) -> Plan:
    """The predictions of both ends of a certified law, joined; a call takes what the dearest or the cheapest takes."""
    costs = [Settled(cost, share) for share in (0.0, 1.0)] if cost else [None]
    most = max(shape.max_rank for shape in shapes if not isinstance(shape, BestTree))
    plans = [
        plan(trace, at, rules=[end], shapes=shapes, prefill_emits_token=prefill)
        for end in ends_of(rule, trace, most)
        for at in costs
    ]
    joint = tuple(_joint(rule, each) for each in zip(*(p.predictions for p in plans), strict=True))
    return Plan(joint, max(joint, key=lambda p: p.gain), plans[0].prompts)


def _joint(rule: PathRule, ends: Sequence[Prediction]) -> Prediction:
    tokens, speedups = [p.tokens_per_call for p in ends], [p.speedup for p in ends if p.speedup]
    drafted = [p.drafted for p in ends if p.drafted]
    regrets = [p.regret for p in ends if p.regret]
    both = certain(tokens)
    return replace(
        ends[0],
        rule=rule,
        tokens_per_call=joined(tokens),
        accepted_length=joined([p.accepted_length for p in ends]),
        acceptance=joined([p.acceptance for p in ends]),
        iid_tokens_per_call=sum(p.iid_tokens_per_call for p in ends) / len(ends),
        speedup=joined(speedups) if speedups else None,
        drafted=joined(drafted) if drafted else None,
        limits=replace(ends[0].limits, iid_channel=None),
        certified=both if both.kind == "bound" else None,
        regret=joined(regrets) if regrets else None,
    )


def _check(rules: Sequence[PathRule], shapes: Sequence[Wanted], cost: CostModel | None) -> None:
    """Refuse what cannot be asked for."""
    for rule in rules:
        if not isinstance(rule, PathRule):
            raise SettingError(
                f"{rule!r} has no path form",
                limit="a text says nothing about others",
                remedy="use one of spectheory.verification.PATH_RULES",
            )
    if cost is not None and not isinstance(cost, CostModel):
        raise SettingError(f"cost is {cost!r}", limit="needs a cost model", remedy="ConstantRatio(0.1) is one")
    if any(rule.output == "biased" for rule in rules):
        raise SettingError(
            "a biased rule is asked for",
            limit="its text is no sample of the target",
            remedy="use bias_tradeoff, or --bias on the command line",
        )
    if not rules or not shapes:
        raise SettingError("there is nothing to predict", limit="needs a rule and a shape", remedy="name both")


def _found(
    trace: Trace, rules: Sequence[PathRule], shapes: Sequence[Wanted], prefill_emits_token: bool
) -> list[tuple[PathRule, ShapeCalls]]:
    """Every rule with every shape it takes; a single pair that does not fit is refused with its reason."""
    found: list[tuple[PathRule, ShapeCalls]] = []
    for rule in rules:
        alone = len(rules) == len(shapes) == 1
        wanted = [shape for shape in shapes if alone or (takes(rule, shape) and _known(trace, rule, shape))]
        of_rule = {c.wanted: c for c in calls_by_shape(trace, rule, wanted, prefill_emits_token=prefill_emits_token)}
        found += [(rule, of_rule[shape]) for shape in wanted]
    if not found:
        raise SettingError(
            f"no rule of {names(rules)} takes such a shape",
            limit="shapes other than chains need a rule with ranks",
            remedy=f"use one of {ranked_names()}",
        )
    return found


def _known(trace: Trace, rule: PathRule, shape: Wanted) -> bool:
    """Whether the trace knows the rule for chains of this length."""
    longest = rule.longest(trace.columns)
    return longest is None or not isinstance(shape, Chain) or shape.k <= longest


def _shortened(text: str) -> str:
    return text if len(text) <= _LETTERS_SHOWN else f"{text[: _LETTERS_SHOWN - 3]}..."


def _prediction(
    prompts: Prompts,
    trace: Trace,
    rule: PathRule,
    found: ShapeCalls,
    limits: TraceLimits,
    cost: CostModel | None,
    errors: Sequence[Ends],
    prefilled: int,
) -> Prediction:
    shape, tokens = found.shape, prompts.sum(trace.lengths)
    tokens_per_call = ratio(tokens, prompts.sum(found.calls.expected), limits=(1.0, shape.depth + 1.0))
    own, regret = limits.of(rule, found)
    acceptance = ratio(prompts.sum_rows(found.first), tokens, limits=(0.0, 1.0))
    gained, drafted = _gained(prompts, trace, rule, found, cost, errors, prefilled)
    return Prediction(
        rule=rule,
        shape=shape,
        wanted=found.wanted,
        tokens_per_call=tokens_per_call,
        accepted_length=tokens_per_call + (-1.0),
        acceptance=acceptance,
        iid_tokens_per_call=_iid_tokens(trace, rule, shape, min(acceptance.best, 1.0)),
        speedup=gained,
        limits=own,
        regret=regret,
        held_out=found.held_out,
        provenance={name: value for name, value in trace.provenance.items() if name != SOURCES},
        drafted=drafted,
    )


def _gained(
    prompts: Prompts,
    trace: Trace,
    rule: PathRule,
    found: ShapeCalls,
    cost: CostModel | None,
    errors: Sequence[Ends],
    prefilled: int,
) -> tuple[Interval | None, Interval | None]:
    """The speed-up, and the drafted tokens per call where the draft decides."""
    decoded = trace.lengths - prefilled
    if not found.lengths:
        return (speedup(prompts, found, decoded, prefilled, cost, errors) if cost else None), None
    inside, calls = draft_inside_target(rule, trace), sum_of(found.lengths)
    drafted = drafted_per_call(prompts, calls, found.shape.nodes, inside=inside)
    if not cost or not calls.calls.sum() > 0:
        return None, drafted
    return stopped_speedup(prompts, found.lengths, prompts.sum(decoded), cost, errors, inside=inside), drafted


def _iid_tokens(trace: Trace, rule: PathRule, shape: Shape, acceptance: float) -> float:
    if isinstance(shape, Chain) or not isinstance(rule, RankRule):
        return iid_tokens_per_call(acceptance, shape.depth)
    return float(expected_tokens(shape, rule.rank_law(AtDepth(trace.columns, 1), shape.max_rank).mean(axis=0)))
