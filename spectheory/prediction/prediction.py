"""Trace, rule, shape and cost in; what speculative decoding gives, out.

:func:`predict` answers for one rule and shape, :func:`planned` for many. The prediction is exact for the texts of the
trace (path theorem, §7); the intervals are for the mean over all prompts of the same kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

from spectheory import truncated
from spectheory.checks import instance, several
from spectheory.cost import CostModel, iid_tokens_per_call
from spectheory.cost.model import Ends, a_cost, reads_besides
from spectheory.drafting import Shape, expected_tokens
from spectheory.drafting.tree import a_shape
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction.answer import Plan, Prediction, merit
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.call_times import _stopped_speedup, drafted_per_call, speedup, sum_of
from spectheory.prediction.certified import _nested, by_lists, ends_of, hull
from spectheory.prediction.means import MeanLaws
from spectheory.prediction.ngrams import in_trace, ngram_rules
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.recorded import recorded_rules
from spectheory.prediction.shape_calls import ShapeCalls, by_parallel_head, calls_by_shape, takes
from spectheory.prediction.trace_limits import Limits, TraceLimits
from spectheory.trace import SOURCES, Trace
from spectheory.trace.record import a_trace
from spectheory.verification import ArgmaxDraft, PathRule, RankRule, RecordedMatch
from spectheory.verification.registry import DEFAULT_RULES, names, path_rule, ranked_names


def predict(
    trace: Trace,
    rule: PathRule | str,
    shape: ShapeRequest,
    cost: CostModel | None = None,
    *,
    prefill_emits_token: bool = False,
) -> Prediction:
    """Predict one rule and shape from a trace (§7, exact for its texts; the ranges are statistical).

    `rule` is a rule or its name, `shape` what each call drafts; another shape than a chain needs a rule with ranks. The
    speed-up needs `cost`. With `prefill_emits_token` the prompt's own pass emits one token without drafts, as a call of
    its own; otherwise the first call carries prompt and drafts.

    Raises
    ------
    TraceError
        If the trace lacks what the rule reads.
    SettingError
        If the rule does not take the shape.

    Examples
    --------
    Two texts known by two numbers per token:

    >>> from spectheory.drafting import Chain
    >>> trace = Trace.from_log_probabilities([([-1.0, -0.2], [-1.0, -0.2]), ([-0.5, -1.5], [-0.5, -1.5])])
    >>> print(predict(trace, "token", Chain(1)).tokens_per_call)
    2.000
    """
    return planned(trace, cost, [path_rule(rule)], [shape], prefill_emits_token=prefill_emits_token).best


def planned(
    trace: Trace,
    cost: CostModel | None,
    rules: Sequence[PathRule] | None,
    shapes: Sequence[ShapeRequest],
    *,
    prefill_emits_token: bool = False,
    limits: TraceLimits | None = None,
) -> Plan:
    """Every rule with every one of these shapes that it takes; without rules the usual ones that the trace knows."""
    a_trace(trace)
    instance("prefill_emits_token", prefill_emits_token, bool, remedy="True where the prompt's pass emits a token")
    if rules is None:
        usual = (*DEFAULT_RULES, ArgmaxDraft()) if by_parallel_head(trace.provenance) else DEFAULT_RULES
        known = [rule for rule in usual if not rule.missing_columns(trace.columns)]
        rules = recorded_rules(trace) or [*known, *ngram_rules(trace)]
    rules = [in_trace(path_rule(rule), trace) for rule in several("rules", rules, remedy="name rules")]
    shapes = several("shapes", shapes, remedy="name shapes")
    _check(rules, shapes, cost)
    if limits is not None:
        instance("limits", limits, TraceLimits, remedy="leave them out")
    limits = TraceLimits.shared(limits, trace)
    for rule in rules:
        if not isinstance(rule, RecordedMatch):
            trace.require_scores(f"the rule {rule.name!r}")
    if any(by_lists(rule, trace, shape) for rule in rules for shape in shapes):
        return _with_lists(trace, cost, rules, shapes, prefill_emits_token, limits)
    pairs = _pairs(trace, rules, shapes, prefill_emits_token)
    predictions = _predictions(trace, pairs, cost, prefill_emits_token, limits)
    prompts = Prompts(trace.texts)
    chosen = any(isinstance(each.wanted, BestTree) or each.limits.text for each in predictions)
    return Plan(predictions, max(predictions, key=merit), prompts.count, prompts.chosen_on if chosen else None)


def of_calls(
    trace: Trace,
    rule: PathRule,
    shape_calls: ShapeCalls,
    cost: CostModel | None = None,
    *,
    prefill_emits_token: bool = False,
) -> Prediction:
    """The prediction of calls that are known already; the other arguments are those of :func:`predict`."""
    return _predictions(trace, [(rule, shape_calls)], cost, prefill_emits_token, TraceLimits(trace))[0]


def _predictions(
    trace: Trace,
    pairs: Sequence[tuple[PathRule, ShapeCalls]],
    cost: CostModel | None,
    prefill_emits_token: bool,
    limits: TraceLimits,
) -> tuple[Prediction, ...]:
    prompts = Prompts(trace.texts)
    errors = tuple(cost.errors()) if cost else ()
    disturbed = cost.when_disturbed() if cost else ()
    prefilled = int(prefill_emits_token)
    of_pairs = limits.of(pairs, prefill_emits_token=prefill_emits_token)
    return tuple(
        _prediction(prompts, trace, rule, calls, limits.laws, limited, cost, errors, disturbed, prefilled)
        for (rule, calls), limited in zip(pairs, of_pairs, strict=True)
    )


def _with_lists(
    trace: Trace,
    cost: CostModel | None,
    rules: Sequence[PathRule],
    shapes: Sequence[ShapeRequest],
    prefill: bool,
    limits: TraceLimits,
) -> Plan:
    """Each rule in turn: those that the lists alone bound at both ends of their law, the others as they are."""
    plans: list[Plan] = []
    refused: SettingError | None = None
    for rule in rules:
        taken = [shape for shape in shapes if takes(rule, shape)]
        if exact := [shape for shape in taken if not by_lists(rule, trace, shape)]:
            plans.append(planned(trace, cost, [rule], exact, prefill_emits_token=prefill, limits=limits))
        bounded = []
        for shape in (shape for shape in taken if shape not in exact):
            try:
                _require_certified(rule, shape)
                bounded.append(shape)
            except SettingError as error:
                refused = error
        if bounded:
            plans.append(_between_ends(trace, cost, rule, bounded, prefill, limits))
    if not plans:
        raise refused or SettingError("there is nothing to predict", limit="needs a shape of the rules", remedy="chain")
    return reduce(add, plans)


def _require_certified(rule: PathRule, wanted: ShapeRequest) -> None:
    """Refuse a shape whose calls the lists do not bound."""
    if isinstance(wanted, BestTree):
        reason, remedy = "no tree is searched for from bounds", "name a shape: chain, batch, 2x2x1"
    elif not _nested(wanted):
        reason, remedy = "calls are not monotone in the ranks of such a tree", "use a k-ary shape that never widens"
    elif wanted.max_rank > truncated.bounds_given(rule):
        reason, remedy = f"{rule.name} has certified bounds for one candidate alone", "use a chain, or poisson"
    else:
        return
    raise SettingError(
        f"{rule.name} with {wanted} has no certified calls from lists of log-probabilities", limit=reason, remedy=remedy
    )


def _between_ends(
    trace: Trace,
    cost: CostModel | None,
    rule: PathRule,
    shapes: Sequence[ShapeRequest],
    prefill: bool,
    limits: TraceLimits,
) -> Plan:
    """The predictions of both ends of a certified law, joined; a call takes what the dearest or the cheapest takes."""
    costs = [_CostAtBound(cost, share) for share in (0.0, 1.0)] if cost else [None]
    most = max(shape.max_rank for shape in shapes if not isinstance(shape, BestTree))
    plans = [
        planned(trace, at, [end], shapes, prefill_emits_token=prefill, limits=limits)
        for end in ends_of(rule, trace, most)
        for at in costs
    ]
    joint = tuple(_joint(rule, each) for each in zip(*(p.predictions for p in plans), strict=True))
    return Plan(joint, max(joint, key=lambda p: p.gain), plans[0].prompts, plans[0].chosen_on)


@dataclass(frozen=True)
class _CostAtBound(CostModel):
    """A cost model of which every call takes what a call after this share of full acceptances does.

    How many calls follow a full acceptance is not known either; between the shares 0 and 1 lies every mixture. A head
    reads at most as many tokens more as the shape is deep.
    """

    cost: CostModel
    share: float

    def target_step(self) -> Interval:
        """That of the cost model."""
        return self.cost.target_step()

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:
        """Time of a call at the one share."""
        return self.cost.call(shape, self.share * reads_besides(self.cost, shape.depth, 1))

    def errors(self) -> Iterator[Ends]:
        """Those of the cost model, at the one share."""
        return ((_CostAtBound(low, self.share), _CostAtBound(high, self.share)) for low, high in self.cost.errors())

    def when_disturbed(self) -> Sequence[CostModel]:
        """Those of the cost model, at the one share."""
        return [_CostAtBound(model, self.share) for model in self.cost.when_disturbed()]


def _joint(rule: PathRule, ends: Sequence[Prediction]) -> Prediction:
    tokens, speedups = [p.tokens_per_call for p in ends], [p.speedup for p in ends if p.speedup]
    drafted = [p.drafted for p in ends if p.drafted]
    disturbed = [p.disturbed for p in ends if p.disturbed]
    regrets = [p.regret for p in ends if p.regret]
    both = hull([Interval.exact(each.best) for each in tokens])
    return replace(
        ends[0],
        rule=rule,
        tokens_per_call=hull(tokens),
        accepted_length=hull([p.accepted_length for p in ends]),
        acceptance=hull([p.acceptance for p in ends]),
        iid_tokens_per_call=sum(p.iid_tokens_per_call for p in ends) / len(ends),
        speedup=hull(speedups) if speedups else None,
        drafted=hull(drafted) if drafted else None,
        limits=replace(ends[0].limits, iid_channel=None),
        certified=both if both.kind == "bound" else None,
        regret=hull(regrets) if regrets else None,
        disturbed=replace(hull(disturbed), kind="estimate") if disturbed else None,
    )


def _check(rules: Sequence[PathRule], shapes: Sequence[ShapeRequest], cost: CostModel | None) -> None:
    """Refuse what cannot be asked for."""
    for shape in shapes:
        if not isinstance(shape, BestTree):
            a_shape(shape)
    if cost is not None:
        a_cost(cost)
    if not rules or not shapes:
        raise SettingError("there is nothing to predict", limit="needs a rule and a shape", remedy="name both")


def _pairs(
    trace: Trace, rules: Sequence[PathRule], shapes: Sequence[ShapeRequest], prefill_emits_token: bool
) -> list[tuple[PathRule, ShapeCalls]]:
    """Every rule with every shape it takes; a single pair that does not fit is refused with its reason."""
    pairs: list[tuple[PathRule, ShapeCalls]] = []
    for rule in rules:
        alone = len(rules) == len(shapes) == 1
        wanted = [shape for shape in shapes if alone or (takes(rule, shape) and _known(trace, rule, shape))]
        of_rule = {c.wanted: c for c in calls_by_shape(trace, rule, wanted, prefill_emits_token=prefill_emits_token)}
        pairs += [(rule, of_rule[shape]) for shape in wanted]
    fixed = [rule for rule in rules if rule.length and all(shape.is_chain for shape in shapes)]
    if not pairs and fixed:
        raise SettingError(
            f"chains of other lengths than {fixed[0].length} are asked for with {fixed[0].name}",
            limit="it was replayed with that length, and others find other tokens",
            remedy=f"raise {argument('k_max')} to it, or measure with a shorter one, as suffix:max=8",
        )
    if not pairs:
        raise SettingError(
            f"no rule of {names(rules)} takes such a shape",
            limit="shapes other than chains need a rule with ranks",
            remedy=f"use one of {ranked_names()}",
        )
    return pairs


def _known(trace: Trace, rule: PathRule, shape: ShapeRequest) -> bool:
    """Whether the trace knows the rule for chains of this length."""
    longest = rule.longest(trace.columns)
    return longest is None or not shape.is_chain or shape.nodes <= longest


def _prediction(
    prompts: Prompts,
    trace: Trace,
    rule: PathRule,
    shape_calls: ShapeCalls,
    laws: MeanLaws,
    limited: tuple[Limits, Interval | None],
    cost: CostModel | None,
    errors: Sequence[Ends],
    disturbed: Sequence[CostModel],
    prefilled: int,
) -> Prediction:
    shape, tokens = shape_calls.shape, prompts.sum(trace.lengths)
    tokens_per_call = ratio(tokens, prompts.sum(shape_calls.calls.expected), limits=(1.0, shape.depth + 1.0))
    acceptance = ratio(prompts.sum(shape_calls.first), tokens, limits=(0.0, 1.0))
    gained, drafted = _gained(prompts, trace, shape_calls, cost, errors, prefilled)
    alone = [one for model in disturbed if (one := _gained(prompts, trace, shape_calls, model, (), prefilled)[0])]
    return Prediction(
        rule=rule,
        shape=shape,
        wanted=shape_calls.wanted,
        tokens_per_call=tokens_per_call,
        accepted_length=tokens_per_call + (-1.0),
        acceptance=acceptance,
        iid_tokens_per_call=_iid_tokens(laws, rule, shape, min(acceptance.best, 1.0)),
        speedup=gained,
        limits=limited[0],
        regret=limited[1],
        held_out=shape_calls.held_out,
        provenance={name: value for name, value in trace.provenance.items() if name != SOURCES},
        drafted=drafted,
        disturbed=_range(gained, alone),
    )


def _range(gained: Interval | None, alone: Sequence[Interval]) -> Interval | None:
    """The range of the speed-up over parts of a timing; None where there are none."""
    if gained is None or not alone:
        return None
    values = [gained.best, *(each.best for each in alone)]
    return Interval(min(values), gained.best, max(values), "estimate")


def _gained(
    prompts: Prompts,
    trace: Trace,
    shape_calls: ShapeCalls,
    cost: CostModel | None,
    errors: Sequence[Ends],
    prefilled: int,
) -> tuple[Interval | None, Interval | None]:
    """The speed-up, and the drafted tokens per call where the draft decides."""
    decoded = trace.lengths - prefilled
    if not shape_calls.lengths:
        return (speedup(prompts, shape_calls, decoded, prefilled, cost, errors) if cost else None), None
    calls = sum_of(shape_calls.lengths)
    if not calls.calls.sum() > 0:
        return None, None
    drafted = drafted_per_call(prompts, calls, shape_calls.shape.nodes)
    if not cost:
        return None, drafted
    return _stopped_speedup(prompts, shape_calls.lengths, prompts.sum(decoded), cost, errors), drafted


def _iid_tokens(laws: MeanLaws, rule: PathRule, shape: Shape, acceptance: float) -> float:
    if shape.is_chain or not isinstance(rule, RankRule):
        return iid_tokens_per_call(acceptance, shape.depth)
    return float(expected_tokens(shape, laws.of(rule, shape.max_rank)))
