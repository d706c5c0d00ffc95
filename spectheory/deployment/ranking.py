"""Drafts for one target, each with its best rule and shape, ranked by predicted speed-up; the fastest tree of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.checks import instance, instances, whole
from spectheory.cost import CostModel
from spectheory.cost.model import a_cost, reads_besides
from spectheory.deployment.candidates import NO_DRAFT, Candidate, Draft, all_drafts, all_stops
from spectheory.drafting import Chain, Shape, StoppingRule, Tree
from spectheory.drafting.tree import MOST_NODES, at_least_one
from spectheory.errors import SettingError, argument
from spectheory.prediction.best_tree import BestTree, scored_parts
from spectheory.prediction.means import columns_of
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.plan_answer import measured_nodes, named_rules
from spectheory.prediction.prediction import planned
from spectheory.prediction.shape_calls import grown_rules, measured_shape
from spectheory.trace import Trace
from spectheory.trace.record import a_trace
from spectheory.trace.sample import of_texts, spread
from spectheory.verification import GrownMatch, PathRule, RankRule
from spectheory.verification.by_start import within

_DEPTHS = (1, 2, 3, 4, 6, 8, 12)
"""Depths that the first round tries."""
_HALVES = 2
"""Parts of the prompts: trees of one half are scored on the other, which costs no more than one search on all."""
_LEAST = 2
"""A tree of one node is a chain."""

Setting = tuple[int, int]
"""Nodes and largest depth."""


def fastest_tree(
    trace: Trace, rule: RankRule, cost: CostModel, nodes: int, *, drafted_as: Callable[[Tree], Shape] | None = None
) -> BestTree | None:
    """The size and depth limit whose best tree has the largest predicted speed-up (S4, C2; a local search).

    A tree of n nodes and depth d costs d draft passes and a target pass on n + 1 tokens, so the tree that saves the
    most calls is seldom the fastest. Sizes 2, 4, 8, ... up to `nodes` and some depths are tried first, then neighbours
    of the best while the speed-up grows. Trees are scored on other prompts than those they were found on; both are a
    sample of a large trace's texts. Optimality is not guaranteed. `drafted_as` is the shape that an engine drafts for
    a tree, if its passes are not the tree's own.
    The result is smaller than a chain in depth; None if `nodes` is below 2 or the cost knows no such pass.

    Examples
    --------
    Ranks 1 and 2 are equally likely. Where a draft pass costs as much as a call's verification, depth does not pay.

    >>> import numpy as np
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import TextInfo
    >>> from spectheory.verification import RecursiveRejection
    >>> columns = {"log_target": np.full(64, -0.7), "log_draft": np.full(64, -0.7)}
    >>> trace = Trace(columns | {"rejection_rank": np.full((64, 2), 0.45)}, (TextInfo("1", 64),))
    >>> [str(fastest_tree(trace, RecursiveRejection(), ConstantRatio(c), 8)) for c in (0.01, 1.0)]
    ['best tree of 8, depth 3', 'best tree of 2, depth 1']
    """
    a_cost(cost)
    instance("rule", rule, RankRule, remedy="spectheory.verification.PoissonRace() is one")
    nodes = whole("nodes", nodes, least=0, most=MOST_NODES, remedy="32 is usual")
    tried: dict[Setting, float] = {}
    deepest = within(a_trace(trace).columns, nodes)
    chosen = spread(trace.lengths, Prompts(trace.texts).folds(_HALVES))
    trace = of_texts(trace, chosen, columns_of(rule, [], trace.columns))

    def gain(setting: Setting) -> float:
        size, depth = setting
        if not (_LEAST <= size <= nodes and 1 <= depth < size and depth <= deepest):
            return 0.0
        if setting not in tried:
            tried[setting] = _speedup(trace, rule, cost, BestTree(size, depth, drafted_as))
        return tried[setting]

    sizes = [2**i for i in range(1, nodes.bit_length())]
    first = [(size, depth) for size in sorted({*sizes, nodes}) for depth in _DEPTHS]
    best = max(first, key=gain)
    while gain(better := max(_around(best), key=gain)) > gain(best):
        best = better
    return BestTree(*best, drafted_as) if gain(best) > 0 else None


def _around(setting: Setting) -> list[Setting]:
    size, depth = setting
    steps = sorted({1, max(1, size // 8), max(1, size // 4)})
    beside = [(size + sign * step, depth) for step in steps for sign in (-1, 1)]
    return [*beside, (size, depth - 1), (size, depth + 1), (size - 1, depth - 1), (size + 1, depth + 1)]


def _speedup(trace: Trace, rule: RankRule, cost: CostModel, wanted: BestTree) -> float:
    """The predicted speed-up, 0 where the cost knows no such pass."""
    parts = [(tree, scored.expected.sum(), scored.full) for tree, scored in scored_parts(trace, rule, wanted, _HALVES)]
    seconds, accepted = 0.0, len(trace) / float(sum(calls for _, calls, _ in parts)) - 1
    for tree, calls, full in parts:
        shape = wanted.drafted_as(tree) if wanted.drafted_as else tree
        try:
            seconds += calls * cost.call(shape, reads_besides(cost, accepted, float(full.sum() / calls))).best
        except SettingError:  # a pass wider than was measured
            return 0.0
    return len(trace) * cost.target_step().best / seconds


@dataclass(frozen=True)
class Ranking:
    """Candidates, the fastest first: one for each draft, rule and kind of shape; rules without a draft have one in all.

    A choice by hindsight comes last, however fast.
    `left_out` says what was not compared and why, one sentence each.
    """

    candidates: tuple[Candidate, ...]
    left_out: tuple[str, ...] = ()

    @property
    def best(self) -> Candidate:
        """The largest speed-up."""
        return self.candidates[0]

    @property
    def runner_up(self) -> Candidate | None:
        """The next with another draft, rule or kind of shape."""
        return self.candidates[1] if len(self.candidates) > 1 else None

    @property
    def told_apart(self) -> bool:
        """Whether the intervals of best and runner-up do not overlap; estimates count as overlapping."""
        if self.runner_up is None:
            return True
        one, two = self.best.speedup, self.runner_up.speedup
        return "estimate" not in (one.kind, two.kind) and one.low > two.high

    @property
    def by_draft(self) -> list[Candidate]:
        """The best of each draft, the fastest first."""
        first: dict[str, Candidate] = {}
        for candidate in self.candidates:
            first.setdefault(candidate.draft.name, candidate)
        return list(first.values())


def rank_drafts(
    drafts: Sequence[Draft],
    *,
    rules: PathRule | str | Iterable[PathRule | str] | None = None,
    tree_rules: Sequence[RankRule] = (),
    k_max: int = 16,
    nodes: int = 32,
    stops: Sequence[StoppingRule] = (),
) -> Ranking:
    """Rank every draft, rule and kind of shape by predicted speed-up (§7, §8; intervals over prompts and latencies).

    Chains have 1..k_max drafts, and those with each of `stops` at most so many (§11). Each rule in `tree_rules` also
    has the tree of at most `nodes` that :func:`fastest_tree` finds. Trees are scored on other prompts than those they
    were found on; lengths and sizes are chosen on the texts they are scored on. Grown trees have the size that was
    measured. Refused are drafts that :func:`check_comparable` refuses.

    Examples
    --------
    Two drafts, the better one three times as dear:

    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> near, far = (Trace.from_log_probabilities([([-1.0] * 40, [-1.0 - d] * 40)] * 2) for d in (0.1, 0.4))
    >>> ranking = rank_drafts([Draft("small", far, ConstantRatio(0.05)), Draft("large", near, ConstantRatio(0.15))])
    >>> [(c.draft.name, str(c.prediction.shape), round(c.speedup.best, 2)) for c in ranking.by_draft]
    [('large', 'chain k=7', 2.63), ('small', 'chain k=5', 2.13)]
    """
    drafts = all_drafts(drafts)
    check_comparable(drafts)
    every = named_rules(rules, [draft.trace for draft in drafts])
    tree_rules = instances("tree_rules", tree_rules, RankRule, remedy="spectheory.verification.PoissonRace() is one")
    stops = all_stops(stops)
    k_max, nodes = at_least_one("k_max", k_max), at_least_one("nodes", nodes)
    of_chains = None if every is None else [rule for rule in every if not rule.grows]
    if of_chains == []:
        raise SettingError(
            "only grown trees are asked for", limit="a plan compares them with chains", remedy="add a rule, as argmax"
        )
    candidates: list[Candidate] = []
    left_out: list[str] = []
    for draft in drafts:
        lengths = range(1, _longest(draft, k_max, left_out) + 1)
        shapes = [*map(Chain, lengths), *(Chain(k, stop=stop) for stop in stops for k in lengths)]
        answer = planned(draft.trace, draft.cost, of_chains, shapes)
        fastest = [max(answer.of(label), key=lambda p: p.gain) for label in answer.labels]
        without = {candidate.prediction.rule for candidate in candidates if candidate.draft.name == NO_DRAFT}
        candidates += [
            Candidate(draft if each.rule.uses_draft or draft.trace.recorded else draft.unread, each)
            for each in fastest
            if each.rule not in without
        ]
        if every is None or GrownMatch() in every:
            candidates += _grown(draft, left_out)
        candidates += _trees(draft, tree_rules, nodes, left_out)
    ordered = sorted(candidates, key=lambda c: (c.prediction.rule.hindsight, -c.prediction.gain))
    return Ranking(tuple(ordered), tuple(left_out))


def _longest(draft: Draft, k_max: int, left_out: list[str]) -> int:
    """The longest chain whose passes were timed and that the trace records; adds what is left out."""
    longest = measured_nodes(draft.cost, k_max)
    if longest < k_max:
        left_out.append(f"{draft.name}: chains beyond k = {longest}, latencies were measured on no longer calls.")
    if (deepest := within(draft.trace.columns, longest)) < longest:
        left_out.append(f"{draft.name}: drafts beyond k = {deepest}, the trace records the draft no deeper.")
    return deepest


def _grown(draft: Draft, left_out: list[str]) -> Iterator[Candidate]:
    """Trees that the draft grew, of the size that was measured; adds those without latencies."""
    for rule in grown_rules(draft.trace):
        try:
            answer = planned(draft.trace, draft.cost, [rule], [measured_shape(draft.trace)])
        except SettingError as error:  # latencies of other passes
            left_out.append(f"{draft.name}: grown trees, {error}")
        else:
            yield Candidate(draft, answer.best)


def _trees(draft: Draft, rules: Sequence[RankRule], nodes: int, left_out: list[str]) -> Iterator[Candidate]:
    """The fastest tree of each rule; adds the rules without latencies."""
    for rule in rules:
        tree = fastest_tree(draft.trace, rule, draft.cost, measured_nodes(draft.cost, nodes))
        if tree is None:
            left_out.append(f"{draft.name}: trees under {rule.name}, latencies were measured on no such passes.")
        else:
            yield Candidate(draft, planned(draft.trace, draft.cost, [rule], [tree]).best)


def check_comparable(drafts: Sequence[Draft], *, same_target: bool = True) -> None:
    """Refuse drafts that cannot be ranked against each other.

    There must be one at least, names must differ, all are measured or all recorded, and targets, sampling settings and
    the origin of the texts must be equal as far as the traces say. Checkpoints of a target are no `same_target`.
    """
    drafts = all_drafts(drafts)
    if not drafts:
        raise SettingError("there is no draft", limit="needs at least one", remedy="name a measured folder")
    names = [draft.name for draft in drafts]
    if len({*names, NO_DRAFT}) <= len(names):
        raise SettingError(
            f"drafts are named {', '.join(names)}",
            limit=f"names must differ, also from {NO_DRAFT!r}",
            remedy=f"use {argument('other names', '--trace NAME=FOLDER')}",
        )
    first = drafts[0]
    for other in drafts[1:]:
        if other.trace.recorded != first.trace.recorded:
            kinds = {True: "accepted lengths of a log", False: "a measured pair"}
            raise SettingError(
                f"{first.name} holds {kinds[first.trace.recorded]}, {other.name} {kinds[other.trace.recorded]}",
                limit="drafts are ranked on one text under one target, and a log does not name its target",
                remedy="plan each kind on its own",
            )
    for what, path in _EQUAL if same_target else _EQUAL[2:]:
        for other in drafts[1:]:
            one, two = _without_unset(first.fact(*path)), _without_unset(other.fact(*path))
            if one != two:
                raise SettingError(
                    f"{first.name} and {other.name} differ in {what} ({one} and {two})",
                    limit="drafts are ranked for one target and one way of sampling",
                    remedy="measure them with the same target and sampling",
                )


_EQUAL = (
    ("target", ("target", "fingerprint")),
    ("target", ("target", "name")),
    ("sampling", ("settings", "sampling")),
    ("origin of the texts", ("origin",)),
)
"""What must be equal, and where provenance says it."""


def _without_unset(fact: Any) -> Any:
    """A fact without the settings that are left open: a version may not know all of them."""
    return {name: value for name, value in fact.items() if value is not None} if isinstance(fact, dict) else fact
