"""The whole answer of a trace: every rule with chains and trees, and which is best.

``spectheory predict TRACE`` shows what :func:`plan` returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectheory.checks import instance, several
from spectheory.cost import CostModel, LatencyTable
from spectheory.drafting import Chain
from spectheory.drafting.tree import at_least_one
from spectheory.errors import SettingError
from spectheory.prediction.answer import Plan
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.certified import by_lists
from spectheory.prediction.prediction import planned
from spectheory.prediction.recorded import check_depth, recorded_rules
from spectheory.prediction.shape_calls import grown_rules, measured_shape
from spectheory.prediction.trace_limits import TraceLimits
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.verification import GrownMatch, PathRule, RankRule
from spectheory.verification.base import a_path_rule
from spectheory.verification.by_start import lacking, within
from spectheory.verification.registry import DEFAULT_RULES, DEFAULT_TREE_RULES, path_rule

K_MAX = 16
"""Drafts of the longest chain and the largest tree, unless told otherwise."""
_EVERY_SIZE = 16
"""Trees of every size up to this are searched for, then each twice the one before."""


def plan(
    trace: Trace,
    cost: CostModel | None = None,
    *,
    rules: Sequence[PathRule | str] | None = None,
    shapes: Sequence[ShapeRequest] | None = None,
    k_max: int = K_MAX,
    trees: bool = True,
    prefill_emits_token: bool = False,
    limits: TraceLimits | None = None,
) -> Plan:
    """Predict every rule with every shape it takes and find the best; the other arguments are those of
    :func:`~spectheory.prediction.predict`.

    `rules` are rules or their names. The default ones are those of
    :data:`~spectheory.verification.registry.DEFAULT_RULES` that the trace has columns for or lists that bound them
    (§9), argmax drafts for a parallel head, and of recorded lengths their drafts.

    Without `shapes` these are chains of 1 to `k_max` drafts, and unless `trees` is false the best trees of up to
    `k_max` nodes for rules whose ranks are known, and the grown trees that were measured. No shape is deeper than a
    draft is recorded by start (§10). What does not fit the cost model is left out; ``Plan.left_out`` says what and why.
    Only rules with ranks take shapes other than chains: these are the default ones where `shapes` has such a shape. Of
    several chains of recorded lengths those are left out that are longer than the longest length. Several plans of one
    trace share `limits`, which are then computed once.

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
    """
    a_trace(trace)
    named = named_rules(rules)
    k_max = at_least_one("k_max", k_max)
    instance("trees", trees, bool, remedy="False leaves trees out")
    if limits is not None:
        instance("limits", limits, TraceLimits, remedy="leave them out")
    limits = TraceLimits.shared(limits, trace)
    if shapes is None and named == [GrownMatch()]:
        shapes = [measured_shape(trace)]
    if shapes is not None:
        shapes = several("shapes", shapes, remedy="name shapes")
        if named is None and not all(isinstance(shape, Chain) for shape in shapes):
            named = [*recorded_rules(trace)] or [*ranked_rules(trace), *grown_rules(trace)]
        return planned(trace, cost, named, shapes, prefill_emits_token=prefill_emits_token, limits=limits)
    chains = [Chain(k) for k in range(1, check_depth(trace, within(trace.columns, k_max)) + 1)]
    left_out = []

    def found(rules: Sequence[PathRule] | None, shapes: Sequence[ShapeRequest]) -> Plan:
        return planned(trace, cost, rules, shapes, prefill_emits_token=prefill_emits_token, limits=limits)

    try:
        answer = found(named, chains)
    except SettingError as error:
        if not isinstance(cost, LatencyTable):
            raise
        cost = None  # latencies of shorter calls: tokens are known all the same
        answer = found(named, chains)
        left_out.append(f"speed-ups are left out: {error}, or give --c")
    if bounded := [rule for rule in DEFAULT_RULES if named is None and by_lists(rule, trace)]:
        answer += found(bounded, chains)
    grown = grown_rules(trace) if named is None or GrownMatch() in named else []
    searched: list[tuple[Sequence[PathRule], list[ShapeRequest]]] = [
        (ranked_rules(trace, named), [BestTree(k) for k in tree_sizes(k_max)]),
        (grown, [measured_shape(trace)] if grown else []),
    ]
    for of_trees, wanted in searched if trees else ():
        if of_trees:
            try:
                answer += found(of_trees, wanted)
            except SettingError as error:  # latencies of chains alone
                left_out.append(f"trees are left out: {error}")
    return replace(answer, left_out=tuple(left_out))


def named_rules(rules: Sequence[PathRule | str] | None) -> list[PathRule] | None:
    """Rules, or those of the given names; None where none are asked for."""
    if rules is None:
        return None
    asked = several("rules", rules, remedy="name rules")
    return [path_rule(rule) if isinstance(rule, str) else a_path_rule(rule) for rule in asked]


def ranked_rules(trace: Trace, rules: Sequence[PathRule] | None = None) -> list[RankRule]:
    """Those of `rules` (without: of the usual ones) whose law of several candidates the trace records."""
    if rules is None:
        return [rule for kinds in DEFAULT_TREE_RULES for rule in ranked_rules(trace, kinds)[:1]]
    columns = trace.columns
    return [
        rule for rule in rules if isinstance(rule, RankRule) and not lacking(columns, [*rule.needs, rule.recorded_in])
    ]


def tree_sizes(k_max: int) -> list[int]:
    """Numbers of nodes for which trees are searched.

    Examples
    --------
    >>> tree_sizes(40)[-3:]
    [16, 32, 40]
    """
    doubled = [_EVERY_SIZE << i for i in range(1, 32) if _EVERY_SIZE << i < k_max]
    return sorted({*range(1, min(k_max, _EVERY_SIZE) + 1), *doubled, k_max})
