"""``spectheory rules``: what every rule accepts at a position, from two pmfs or from a trace."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory.cli.answer import View, show
from spectheory.cli.inputs import Floats, Pmfs, check_seed, in_range, one_source, read_pmfs
from spectheory.cli.progress import working
from spectheory.cli.shapes import remark_left_out
from spectheory.cli.theory_options import RulesOptions
from spectheory.divergences import kl_divergence, total_variation
from spectheory.drafting import Batch, Chain
from spectheory.errors import SettingError, ShapeError, SpectheoryError
from spectheory.intervals import Interval
from spectheory.prediction.certified import by_lists, ends_of, hull
from spectheory.prediction.over_prompts import Prompts, few_prompts, ratio
from spectheory.reports import RulesAnswer, rules_report
from spectheory.reports.notes import OF_FIRST_DRAFT, given
from spectheory.trace import Trace, read_any
from spectheory.truncated import bounds_given
from spectheory.verification import PathRule, RankRule, Rule, RuleStanding, rule_order
from spectheory.verification.registry import all_rules, find_rule

MOST_CANDIDATES = 1024
FROM_LISTS = "the range of what the lists of the most probable tokens allow, and of the intervals over prompts"


def run_rules(question: RulesOptions) -> None:
    """Answer the question and show the answer."""
    check_seed(question.seed)
    in_range("--candidates", question.candidates, MOST_CANDIDATES)
    rules = _rules(question.rule)
    pair = question.target_pmf is not None or question.draft_pmf is not None
    if one_source({"a trace": question.trace is not None, "--target-pmf with --draft-pmf": pair}) == "a trace":
        assert question.trace is not None
        answer = of_trace(read_any(question.trace), question.candidates, rules)
    else:
        answer = of_pmfs(*_pair(question), question.candidates, rules, question.seed)
    show(rules_report(answer), as_json=question.json, view=View.of(question))


def _rules(names: Sequence[str] | None) -> list[Rule]:
    """The rules to compare: those that are named, or all about two pmfs at each position."""
    remark_left_out()
    if names:
        return [find_rule(name) for name in dict.fromkeys(names)]
    return [rule for rule in all_rules().values() if rule.uses_draft and not rule.grows]


def _pair(question: RulesOptions) -> tuple[Pmfs, Pmfs]:
    if question.target_pmf is None or question.draft_pmf is None:
        raise SettingError(
            f"--{'draft' if question.draft_pmf is None else 'target'}-pmf is missing",
            limit="acceptance needs both pmfs",
            remedy="give both",
        )
    return read_pmfs(question.target_pmf, "--target-pmf"), read_pmfs(question.draft_pmf, "--draft-pmf")


# Two pmfs


def of_pmfs(target: Pmfs, draft: Pmfs, k: int, rules: Sequence[Rule], seed: int) -> RulesAnswer:
    """Every rule on pairs of pmfs, means over the pairs."""
    p, q = target.rows, draft.rows
    if len(p) != len(q) and 1 not in (len(p), len(q)):
        raise ShapeError(
            f"--target-pmf has {len(p)} rows and --draft-pmf {len(q)}",
            limit="as many, or one",
            remedy="pair them row by row",
        )
    with working("working out the acceptances"):
        rows = rule_order(p, q, k, rules=rules, rng=np.random.default_rng(seed))[1:]  # R4 stands beside each of them
    distance, divergence = (Interval.exact(float(np.mean(of(p, q)))) for of in (total_variation, kl_divergence))
    pairs = max(len(p), len(q))
    notes = [
        *target.notes,
        *draft.notes,
        "Block verification judges a call's drafts together; with one draft it equals token verification.",
    ]
    if pairs > 1:
        notes.insert(0, f"Every number is the mean over {pairs} pairs of pmfs.")
    return RulesAnswer("pmfs", k, pairs, rows, distance, divergence, notes)


# A trace


def of_trace(trace: Trace, k: int, rules: Sequence[Rule]) -> RulesAnswer:
    """Mean over the positions of P(R <= k | text) for every rule whose law is recorded; intervals over prompts."""
    trace.require_scores("the acceptance of rules")
    prompts = Prompts(trace.texts)
    rows = [_standing(prompts, trace, rule, k if rule.several else 1) for rule in rules]
    mean = {
        name: _mean(prompts, trace.columns[name], most)
        for name, most in (("kl", np.inf), ("total_variation", 1.0))
        if name in trace.columns
    }
    notes = _trace_notes(trace, prompts.count, rules)
    return RulesAnswer("trace", k, len(trace), rows, mean.get("total_variation"), mean.get("kl"), notes, prompts.count)


def _mean(prompts: Prompts, per_position: Floats, most: float) -> Interval:
    """Mean over positions; an infinite one has no spread over prompts."""
    if not np.isfinite(per_position).all():
        return Interval.exact(np.inf)
    positions = prompts.sum_rows(np.ones_like(per_position))
    return ratio(prompts.sum_rows(per_position), positions, limits=(0.0, most))


def _standing(prompts: Prompts, trace: Trace, rule: Rule, k: int) -> RuleStanding:
    """Mean P(R <= k | text), between certified ends if lists alone bound it, or why it is not known."""
    if not isinstance(rule, PathRule):
        return RuleStanding(rule.name, k, None, "none", note="needs full pmfs, --target-pmf and --draft-pmf")
    try:
        first = k == 1 and not (isinstance(rule, RankRule) and rule.recorded_in in trace.columns)
        if by_lists(rule, trace, Chain(1) if first else Batch(k)) and k <= bounds_given(rule):
            ends = [_mean(prompts, end.law.sum(axis=1), 1.0) for end in ends_of(rule, trace, k)]
            found = hull(ends)
            return RuleStanding(rule.name, k, found, "bounds" if found.kind == "bound" else "estimate", note=FROM_LISTS)
        rule.require(trace.columns)
        accepted = (
            rule.rank_law(trace.columns, k).sum(axis=1)
            if isinstance(rule, RankRule) and not first
            else rule.path_survival(trace.columns, 1)[:, 0]
        )
    except SpectheoryError as error:
        return RuleStanding(rule.name, k, None, "none", note=f"{error.what}: {error.limit}")
    return RuleStanding(rule.name, k, _mean(prompts, accepted, 1.0), "estimate")


def _trace_notes(trace: Trace, prompts: int, rules: Sequence[Rule]) -> list[str]:
    notes = [
        f"Means over {len(trace)} positions of P(R <= k | text), exact for these texts"
        f"{' unless lists bound them' if trace.lists else ''}; "
        "intervals (95%) are over prompts.",
        *([OF_FIRST_DRAFT] if trace.depth else []),
    ]
    notes += [
        f"{rule.name} with several candidates is not exact: it comes from unbiased estimates."
        for rule in rules
        if isinstance(rule, RankRule) and rule.estimated and rule.recorded_in in trace.columns
    ]
    notes += [*given(trace.provenance), *few_prompts(prompts)]
    return [*notes, 'R4 and H(R) beside KL need full pmfs. "-": not known from this trace.']
