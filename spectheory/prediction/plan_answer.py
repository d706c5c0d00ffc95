"""The whole answer of a trace: every rule with chains and trees, and which is best.

``spectheory predict TRACE`` shows what :func:`plan` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from spectheory.checks import in_range, instance, several
from spectheory.cost import CostModel, LatencyTable
from spectheory.drafting import Chain, StoppingRule, read_stop
from spectheory.drafting.shapes import read_shape
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError, argument
from spectheory.prediction.adaptive import adaptive_worth
from spectheory.prediction.answer import AdaptiveWorth, Plan, RuleGain, merit
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.bias_tradeoff import BiasPoint, bias_tradeoff
from spectheory.prediction.certified import by_lists
from spectheory.prediction.ngrams import ngram_rules
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.prediction.per_prompt import PerPrompt, per_prompt
from spectheory.prediction.prediction import planned
from spectheory.prediction.recorded import _check_as_recorded, check_depth, recorded_rules
from spectheory.prediction.recorded_readings import recorded_readings
from spectheory.prediction.shape_calls import calls_by_shape, grown_rules, measured_shape
from spectheory.prediction.stopped import check_stops
from spectheory.prediction.trace_limits import TraceLimits
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.verification import BiasedVerification, GrownMatch, LossyRule, PathRule, RankRule, RecordedMatch
from spectheory.verification.by_start import missing, within
from spectheory.verification.registry import DEFAULT_RULES, DEFAULT_TREE_RULES, all_rules, path_rule, read_rules

T = TypeVar("T")

K_MAX = 16
"""Drafts of the longest chain and the largest tree, unless told otherwise."""
SEARCHED = "tree"
"""How the best tree of each size is written."""
SWEPT = "best"
"""How a sweep over stopping rules is written."""
_MOST_NEW_PROMPTS = 10**9
_EVERY_SIZE = 16
"""Trees of every size up to this are searched for, then each twice the one before."""


def plan(
    trace: Trace,
    cost: CostModel | None = None,
    *,
    rules: PathRule | str | Iterable[PathRule | str] | None = None,
    shapes: Sequence[ShapeRequest | str] | None = None,
    k_max: int = K_MAX,
    trees: bool = True,
    stops: Sequence[StoppingRule | str] = (),
    bias: Sequence[float] = (),
    new_prompts: int | None = None,
    prefill_emits_token: bool = False,
    passes_alone: bool = False,
    limits: TraceLimits | None = None,
) -> Plan:
    """Predict every rule with every shape it takes and find the best; the other arguments are those of
    :func:`~spectheory.prediction.predict`.

    `rules` are rules or their names, one or a list; ``all`` is every lossless one that the trace knows. The default
    ones are those of :data:`~spectheory.verification.registry.DEFAULT_RULES` that the trace has columns for or lists
    that bound them (§9), argmax drafts for a parallel head, and of recorded lengths their drafts.

    Without `shapes` these are chains of 1 to `k_max` drafts, and unless `trees` is false the best trees of up to
    `k_max` nodes for rules whose ranks are known, and the grown trees that were measured. No shape is deeper than a
    draft is recorded by start (§10). What does not fit the cost model is left out; ``Plan.left_out`` says what and why.
    Only rules with ranks take shapes other than chains: these are the default ones where `shapes` has such a shape. Of
    several chains of recorded lengths those are left out that are longer than the longest length. Shapes may be written
    as on the command line: ``chain`` and ``batch`` are of every size up to `k_max`, ``tree`` is the best tree of each.
    Several plans of one trace share `limits`, which are then computed once.

    `stops` are stopping rules (§11), or as they are written: ``token<0.4``. Chains that they end are predicted beside
    the fixed ones; with ``best`` all thresholds are swept, and ``Plan.adaptive`` says what adapting is worth. `bias`
    are shares of over-acceptance, and rules such as ``relaxed:top=10,delta=0.6`` change the text: ``Plan.bias`` says
    what they give and cost at the length that is best for the lossless rule beside them. That rule is predicted where
    no other is named.
    `new_prompts` asks for the range of the mean over so many new prompts, for the best rule. Speed-ups count the
    measured time of the loop around the passes, unless `passes_alone`.

    Raises
    ------
    SettingError
        No rule or shape, one that does not fit, an unknown name, or a `k_max` below 1.
    TraceError
        The trace lacks what a rule reads.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> best = plan(trace, ConstantRatio(0.1)).best
    >>> best.rule.name, best.shape.k
    ('token', 7)
    >>> [str(one.shape) for one in plan(trace, rules=["block"], k_max=3).predictions]
    ['chain k=1', 'chain k=2', 'chain k=3']
    >>> stopped = plan(trace, rules=["token"], shapes=["chain"], k_max=2, stops=["token<0.4"])
    >>> [str(one.shape) for one in stopped.predictions]
    ['chain k=1', 'chain k=2', 'chain k=1, token<0.4', 'chain k=2, token<0.4']
    """
    a_trace(trace)
    asked = named_rules(rules, [trace], lossy=True)
    lossy = [rule for rule in asked or () if isinstance(rule, LossyRule)]
    for rule in lossy:
        if trace.sampling is not None:
            rule.check_temperature(trace.sampling.temperature)
    lossless = [rule for rule in asked or () if rule not in lossy] or [path_rule(rule.beside) for rule in lossy]
    named = list(dict.fromkeys(lossless)) if asked else asked
    k_max = at_least_one("k_max", k_max)
    for name, flag in (("trees", trees), ("passes_alone", passes_alone)):
        instance(name, flag, bool, remedy="leave it out")
    stopping, swept = named_stops(stops)
    paying = [BiasedVerification(share) for share in several("bias", bias, remedy="[0.1] is a list of shares")] + lossy
    if new_prompts is not None:
        in_range(argument("new_prompts"), [new_prompts], _MOST_NEW_PROMPTS)
    if limits is not None:
        instance("limits", limits, TraceLimits, remedy="leave them out")
    if stopping or swept or paying:
        trace = trace.in_memory()
    if passes_alone and not isinstance(cost, LatencyTable):
        raise SettingError(
            f"{argument('passes_alone')} is given without latencies",
            limit="it applies only to measured latencies",
            remedy=f"leave it out, or give {argument('a spectheory.cost.LatencyTable', '--latency')}",
        )
    if isinstance(cost, LatencyTable) and not passes_alone:
        cost = cost.looped
    deepest = within(trace.columns, k_max)
    wanted = None if shapes is None else named_shapes(shapes, k_max, deepest)
    if lossy and (stopping or swept or not all(isinstance(shape, Chain) for shape in wanted or ())):
        raise SettingError(
            f"the rule {lossy[0].name!r} is asked for with a stopping rule or a shape that is no chain",
            limit="rules that change the text are predicted for chains of a fixed length",
            remedy="leave out one",
        )
    answer = _fixed(trace, cost, named, wanted, k_max, trees, prefill_emits_token, TraceLimits.shared(limits, trace))
    if stopping or swept:
        answer = _with_stops(answer, trace, cost, named, stopping, swept, k_max, prefill_emits_token)
    cut = [f"the trace records the draft to depth {deepest}: no chain or tree is deeper"] * (deepest < k_max)
    cut += [
        f"{rule.label} drafts up to {rule.length} tokens: ask for chains of that length, by {argument('k_max')}"
        for rule in ngram_rules(trace)
        if named is None and wanted is None and (rule.length or 0) > k_max
    ]
    return replace(
        answer,
        prefill_emits_token=prefill_emits_token,
        left_out=(*answer.left_out, *cut),
        bias=_biased(answer, trace, cost, paying, k_max),
        new_prompts=_of_new_prompts(answer, trace, new_prompts, prefill_emits_token),
        recorded=tuple(recorded_readings(trace, k_max, prefill_emits_token=prefill_emits_token)),
        cost=cost,
        over=_over_other(answer, trace, named or [], prefill_emits_token),
    )


def _over_other(answer: Plan, trace: Trace, rules: Sequence[PathRule], prefill: bool) -> RuleGain | None:
    """What the better of two named rules adds to the other; None where they are not two with chains of known calls."""
    chains = [max(of, key=merit) for rule in rules if (of := answer.of(rule.name))]
    if len(rules) != 2 or len(chains) != 2 or trace.recorded or answer.best.label.kind:
        return None
    if any(each.certified or each.rule.hindsight for each in chains):
        return None
    one, other = sorted(chains, key=merit, reverse=True)
    prompts = Prompts(trace.texts)
    calls = [
        prompts.sum(next(calls_by_shape(trace, each.rule, [each.shape], prefill_emits_token=prefill)).calls.expected)
        for each in (other, one)
    ]
    paired = ratio(*calls)
    return RuleGain(one.rule.name, other.rule.name, paired * (one.gain / other.gain / paired.best))


def _fixed(
    trace: Trace,
    cost: CostModel | None,
    rules: list[PathRule] | None,
    shapes: list[ShapeRequest] | None,
    k_max: int,
    trees: bool,
    prefill: bool,
    limits: TraceLimits,
) -> Plan:
    """The rules with the shapes asked for, or with chains and trees."""
    if shapes is None and rules == [GrownMatch()]:
        shapes = [measured_shape(trace)]
    if shapes is not None:
        if rules is None and not all(isinstance(shape, Chain) for shape in shapes):
            rules = [*recorded_rules(trace)] or [*ranked_rules(trace), *grown_rules(trace)]
        return planned(trace, cost, rules, shapes, prefill_emits_token=prefill, limits=limits)
    chains = [Chain(k) for k in range(1, check_depth(trace, within(trace.columns, k_max)) + 1)]
    left_out = []

    def plan_of(rules: Sequence[PathRule] | None, shapes: Sequence[ShapeRequest]) -> Plan:
        return planned(trace, cost, rules, shapes, prefill_emits_token=prefill, limits=limits)

    try:
        answer = plan_of(rules, chains)
    except SettingError as error:
        if not isinstance(cost, LatencyTable):
            raise
        cost = None  # latencies of shorter calls: tokens are known all the same
        answer = plan_of(rules, chains)
        left_out.append(
            f"speed-ups are left out: {error}, or give {argument('a spectheory.cost.ConstantRatio', '--c')}"
        )
    if bounded := [rule for rule in DEFAULT_RULES if rules is None and by_lists(rule, trace)]:
        answer += plan_of(bounded, chains)
    grown = grown_rules(trace) if rules is None or GrownMatch() in rules else []
    searched: list[tuple[Sequence[PathRule], list[ShapeRequest]]] = [
        (ranked_rules(trace, rules), [BestTree(k) for k in _tree_sizes(k_max)]),
        (grown, [measured_shape(trace)] if grown else []),
    ]
    for of_trees, wanted in searched if trees else ():
        if of_trees:
            try:
                answer += plan_of(of_trees, wanted)
            except SettingError as error:  # latencies of chains alone
                left_out.append(f"trees are left out: {error}")
    return replace(answer, left_out=tuple(left_out))


def _with_stops(
    fixed: Plan,
    trace: Trace,
    cost: CostModel | None,
    rules: Sequence[PathRule] | None,
    stops: Sequence[StoppingRule],
    swept: bool,
    k_max: int,
    prefill: bool,
) -> Plan:
    """A plan of fixed shapes with chains that stop, and what adapting is worth if thresholds are swept."""
    drafted = rules_that_stop(trace, rules, stops)
    longest = within(trace.columns, k_max)
    longest = longest if cost is None else measured_nodes(cost, longest)
    answer, adaptive = fixed, list[AdaptiveWorth]()
    if stops:
        shapes = [Chain(k, stop=stop) for stop in stops for k in range(1, longest + 1)]
        answer += planned(trace, cost, drafted, shapes, prefill_emits_token=prefill)
    if swept:
        if cost is None:
            raise SettingError(
                f"{argument('stops', '--stop')} {SWEPT} is given without costs",
                limit="thresholds are compared by seconds: a lower one always needs fewer calls",
                remedy=f"give {argument('cost', '--c or --latency')}",
            )
        adaptive = [adaptive_worth(trace, rule, longest, cost, prefill_emits_token=prefill) for rule in drafted]
    left_out = (*_impossible(trace, drafted), *answer.left_out)
    return replace(answer, adaptive=tuple(adaptive), left_out=left_out)


def rules_that_stop(trace: Trace, rules: Sequence[PathRule] | None, stops: Sequence[StoppingRule]) -> list[PathRule]:
    """The rules whose drafts a model makes and that the trace has columns for; a named one that has none is refused, as
    are stopping rules without the column that they read.
    """
    trace.require_scores("a stopping rule")
    drafted = [rule for rule in rules or DEFAULT_RULES if rule.can_stop]
    if not drafted:
        raise SettingError(
            f"a stopping rule is given with {', '.join(rule.label for rule in rules or ())}",
            limit="a stopping rule reads the pmfs of a draft that a model makes",
            remedy="use a rule whose drafts a model makes, as token or block",
        )
    known = [rule for rule in drafted if rules or not rule.missing_columns(trace.columns)]
    for rule in known:
        for stop in stops:
            check_stops(rule, stop, trace.columns, trace.sampling)
    return known


def _impossible(trace: Trace, rules: Sequence[PathRule]) -> list[str]:
    """How many tokens of the texts the draft cannot draw, and what follows for estimates of drafted tokens."""
    samplers = [rule for rule in rules if rule.drafts != "chosen"]
    count = int(np.isneginf(trace.columns["log_draft"]).sum())
    if not (count and samplers):
        return []
    cut = (
        ". Drafts that the target cannot output (p = 0 < q) are in no text: the lower estimate misses the calls that "
        "make them, the upper one counts them"
    )
    return [
        f"{count} of {len(trace)} tokens of the texts have q = 0: the draft cannot draw them. Their likelihood ratios "
        f"are 0, which biases no estimate of drafted tokens{'' if _draft_inside_target(samplers[0], trace) else cut}"
    ]


def _draft_inside_target(rule: PathRule, trace: Trace) -> bool:
    """Whether the target is known to output all that the draft drafts: no filter, no temperature 0."""
    sampling = trace.sampling
    if sampling is None or sampling.temperature == 0 or rule.output != "sample":
        return False
    return sampling.top_k is None and sampling.top_p in (None, 1.0) and not sampling.min_p


def _biased(
    answer: Plan, trace: Trace, cost: CostModel | None, rules: Sequence[LossyRule], k_max: int
) -> tuple[BiasPoint, ...]:
    """What rules that change the text give at the chain length that is best for the lossless rule beside each."""
    best = {rule: max(answer.of(rule.beside), key=lambda p: p.gain, default=None) for rule in dict.fromkeys(rules)}
    lengths = [(rule, k_max if each is None else each.shape.nodes) for rule, each in best.items()]
    return tuple(point for rule, k in lengths for point in bias_tradeoff(trace, k, [rule], cost))


def _of_new_prompts(answer: Plan, trace: Trace, new: int | None, prefill: bool) -> tuple[PerPrompt, ...]:
    """The range of new prompts for every size of the best rule and kind of shape."""
    if new is None:
        return ()
    shapes = [each.wanted for each in answer.of(answer.best.label)]
    return tuple(per_prompt(trace, answer.best.rule, shapes, new=new, prefill_emits_token=prefill))


# What is asked for, as names


def named_rules(
    rules: PathRule | str | Iterable[PathRule | str] | None, traces: Sequence[Trace] = (), *, lossy: bool = False
) -> list[PathRule] | None:
    """Rules, or those of the given names; None where none are asked for. ``all`` are the lossless ones of these traces.

    None too where the traces hold the accepted lengths of logs, and these are what the rules accept (§10).

    Examples
    --------
    >>> [rule.name for rule in named_rules(["race", "lookup", "race"])]
    ['race', 'lookup']
    """
    if rules is None:
        return None
    named = read_rules(rules, partial(path_rule, lossy=lossy), lambda: _lossless(traces))
    others = [rule for rule in named if not isinstance(rule, RecordedMatch)]
    recorded = [trace for trace in traces if trace.recorded]
    for trace in recorded:
        for rule in others:
            _check_as_recorded(trace, rule)
    return None if recorded and len(others) == len(named) else named


def _lossless(traces: Sequence[Trace]) -> list[PathRule]:
    """The rules with a path form whose output is a sample of the target, as far as every trace knows them."""
    rules = [rule for rule in all_rules().values() if isinstance(rule, PathRule) and rule.output == "sample"]
    return [
        rule
        for rule in rules
        if all(by_lists(rule, trace) or not rule.missing_columns(trace.columns) for trace in traces)
    ]


def named_stops(stops: Iterable[StoppingRule | str]) -> tuple[list[StoppingRule], bool]:
    """Stopping rules, or those of the given names, and whether thresholds are to be swept.

    Examples
    --------
    >>> stops, swept = named_stops(["token<0.4", "best"])
    >>> [str(stop) for stop in stops], swept
    (['token<0.4'], True)
    """
    asked = _once(several("stops", stops, remedy="['token<0.4'] is a list of one"))
    single = [each for each in asked if not (isinstance(each, str) and each == SWEPT)]
    named = [each if isinstance(each, StoppingRule) else read_stop(each) for each in single]
    return named, len(single) < len(asked)


def named_shapes(shapes: Iterable[ShapeRequest | str], k_max: int, deepest: int | None = None) -> list[ShapeRequest]:
    """Shapes, or those of the given names, up to `k_max` nodes and a depth of `deepest` where a name leaves the size
    open.

    Examples
    --------
    >>> [str(shape) for shape in named_shapes(["batch", "2x2", "1,2,1-1"], 2)]
    ['batch k=1', 'batch k=2', 'k-ary 2x2', 'tree 1 2 1-1']
    """
    requests: list[ShapeRequest] = []
    for each in _once(several("shapes", shapes, remedy="name shapes")):
        if not isinstance(each, str):
            requests.append(each)
        elif each == SEARCHED:
            requests += [BestTree(k) for k in _tree_sizes(k_max)]
        else:
            of_name = read_shape(each, range(1, k_max + 1), SEARCHED)
            requests += [shape for shape in of_name if shape.depth <= (deepest or shape.depth)] or of_name
    return requests


def _once(asked: Sequence[T]) -> list[T]:
    """Every name once; objects as they are."""
    names = dict.fromkeys(each for each in asked if isinstance(each, str))
    return [each for each in asked if not isinstance(each, str) or names.pop(each, True) is None]


def ranked_rules(trace: Trace, rules: Sequence[PathRule] | None = None) -> list[RankRule]:
    """Those of `rules` (without: of the usual ones) whose law of several candidates the trace records."""
    if rules is None:
        return [rule for kinds in DEFAULT_TREE_RULES for rule in ranked_rules(trace, kinds)[:1]]
    columns = trace.columns
    return [
        rule for rule in rules if isinstance(rule, RankRule) and not missing(columns, [*rule.needs, rule.recorded_in])
    ]


def _tree_sizes(k_max: int) -> list[int]:
    """Numbers of nodes for which trees are searched.

    Examples
    --------
    >>> _tree_sizes(40)[-3:]
    [16, 32, 40]
    """
    doubled = [_EVERY_SIZE << i for i in range(1, 32) if _EVERY_SIZE << i < k_max]
    return sorted({*range(1, min(k_max, _EVERY_SIZE) + 1), *doubled, k_max})


def measured_nodes(cost: CostModel, most: int) -> int:
    """Draft nodes whose verification has a known cost, at most `most`."""
    return max(1, min(most, max(cost.target) - 1)) if isinstance(cost, LatencyTable) else most
