"""The whole answer about acceptance: what every rule accepts at a position, from two pmfs or along a trace.

``spectheory rules`` shows what :func:`rules` returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.checks import in_range, one_source, whole
from spectheory.distributions import Floats, pmf_rows
from spectheory.divergences import kl_divergence, total_variation
from spectheory.drafting import Batch, Chain
from spectheory.errors import SettingError, ShapeError, SpectheoryError, argument
from spectheory.intervals import Interval
from spectheory.prediction.certified import by_lists, ends_of, hull
from spectheory.prediction.ngrams import in_trace
from spectheory.prediction.over_prompts import FEW, Prompts, few_prompts, ratio
from spectheory.prediction.remarks import OF_FIRST_DRAFT, about_texts
from spectheory.trace import Trace
from spectheory.trace.reading import given_trace
from spectheory.truncated import bounds_given
from spectheory.verification import LossyRule, PathRule, RankRule, Rule, RuleStanding, rule_order
from spectheory.verification.registry import ALL, all_rules, find_rule, read_rules

_MOST_CANDIDATES = 1024
_FROM_LISTS = "the range of what the lists of the most probable tokens allow, and of the intervals over prompts"


@dataclass(frozen=True)
class RulesAnswer:
    """Every rule on one pair of pmfs, or its mean over several, or over the positions of a trace.

    `source` is ``pmfs`` or ``trace``, `k` the candidates asked for, and `positions` how many pairs or positions there
    are. `rows` stand in any order; those of a trace are without R4 and H(R). `kl` is infinite where the draft lacks a
    token of the target. Intervals are over so many `prompts`.
    """

    source: str
    k: int
    positions: int
    rows: Sequence[RuleStanding]
    total_variation: Interval | None
    kl: Interval | None
    notes: Sequence[str] = ()
    prompts: int = FEW

    @property
    def optimum(self) -> dict[int, float]:
        """alpha*_k by k, as far as known."""
        return {row.k: row.optimum for row in self.rows if row.optimum is not None}


def rules(
    trace: Trace | str | Path | None = None,
    *,
    target_pmf: Any = None,
    draft_pmf: Any = None,
    candidates: int = 4,
    rules: Rule | str | Iterable[Rule | str] = ALL,
    seed: int = 0,
) -> RulesAnswer:
    """Acceptance of every rule with k `candidates`, for two pmfs or averaged along a trace (R8).

    `target_pmf` and `draft_pmf` are pmfs ``[V]``, or rows ``[n, V]`` of which means are taken: exact, or as
    :func:`~spectheory.verification.rule_order` says, which `seed` is for. Of a trace, or its file, it is the mean of
    P(R <= k | text), with a 95% interval over prompts, for rules whose law is recorded. `rules` are rules or their
    names, by default all that are about two pmfs at each position.

    Raises
    ------
    SettingError
        No pmfs and no trace, or both; an unknown rule, or a number out of range.
    PmfError, ShapeError, TraceError
        Pmfs that are none or do not go together, a trace that cannot be used.

    Examples
    --------
    >>> answer = rules(target_pmf=[0.5, 0.3, 0.2], draft_pmf=[0.2, 0.3, 0.5], candidates=2, rules=["token", "race"])
    >>> [(row.rule, row.k, round(row.acceptance.best, 3)) for row in answer.rows]
    [('race', 2, 0.889), ('token', 1, 0.7)]
    """
    seed = whole(argument("seed"), seed, least=0, remedy="0 is the default")
    (k,) = in_range(argument("candidates"), [candidates], _MOST_CANDIDATES)
    asked = read_rules(rules, find_rule, lambda: [r for r in all_rules().values() if r.uses_draft and not r.grows])
    one_source(
        {
            "a trace": trace is not None,
            f"{argument('target_pmf')} with {argument('draft_pmf')}": target_pmf is not None or draft_pmf is not None,
        }
    )
    changing = [f"{rule.name} changes the text." for rule in asked if not rule.lossless]
    if trace is not None:
        answer = _of_trace(given_trace(trace), k, asked)
        return replace(answer, notes=[*answer.notes, *changing])
    if target_pmf is None or draft_pmf is None:
        raise SettingError(
            f"{argument('draft_pmf' if draft_pmf is None else 'target_pmf')} is missing",
            limit="acceptance needs both pmfs",
            remedy="give both",
        )
    (p, of_p), (q, of_q) = pmf_rows(target_pmf, argument("target_pmf")), pmf_rows(draft_pmf, argument("draft_pmf"))
    return _of_pmfs(p, q, k, asked, seed, [*of_p, *of_q, *changing])


def _of_pmfs(p: Floats, q: Floats, k: int, rules: Sequence[Rule], seed: int, notes: Sequence[str]) -> RulesAnswer:
    """Every rule on pairs of pmfs, means over the pairs."""
    if len(p) != len(q) and 1 not in (len(p), len(q)):
        raise ShapeError(
            f"{argument('target_pmf')} has {len(p)} rows and {argument('draft_pmf')} {len(q)}",
            limit="as many, or one",
            remedy="pair them row by row",
        )
    rows = rule_order(p, q, k, rules=rules, rng=np.random.default_rng(seed))[1:]  # R4 stands beside each of them
    distance, divergence = (Interval.exact(float(np.mean(of(p, q)))) for of in (total_variation, kl_divergence))
    pairs = max(len(p), len(q))
    notes = [
        *([f"Every number is the mean over {pairs} pairs of pmfs."] if pairs > 1 else []),
        *notes,
        "Block verification judges a call's drafts together; with one draft it equals token verification.",
    ]
    return RulesAnswer("pmfs", k, pairs, rows, distance, divergence, notes)


def _of_trace(trace: Trace, k: int, rules: Sequence[Rule]) -> RulesAnswer:
    """Mean over the positions of P(R <= k | text) for every rule whose law is recorded; intervals over prompts."""
    trace.require_scores("the acceptance of rules")
    prompts = Prompts(trace.texts)
    rows = [_standing(prompts, trace, rule, k if rule.several else 1) for rule in rules]
    mean = {
        name: _mean(prompts, trace.columns[name], most)
        for name, most in (("kl", np.inf), ("total_variation", 1.0))
        if name in trace.columns
    }
    notes = [
        f"Means over {len(trace)} positions of P(R <= k | text), exact for these texts"
        f"{' unless lists bound them' if trace.lists else ''}; "
        "intervals (95%) are over prompts.",
        *([OF_FIRST_DRAFT] if trace.depth else []),
        *(
            f"{rule.name} with several candidates is not exact: it comes from unbiased estimates."
            for rule in rules
            if isinstance(rule, RankRule) and rule.estimated and rule.recorded_in in trace.columns
        ),
        *about_texts(trace.provenance),
        *few_prompts(prompts.count),
        'R4 and H(R) beside KL need full pmfs. "-": not known from this trace.',
    ]
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
        return RuleStanding(rule.name, k, None, "none", note="needs full pmfs of target and draft")
    try:
        first = k == 1 and not (isinstance(rule, RankRule) and rule.recorded_in in trace.columns)
        if by_lists(rule, trace, Chain(1) if first else Batch(k)) and k <= bounds_given(rule):
            ends = [_mean(prompts, end.law.sum(axis=1), 1.0) for end in ends_of(rule, trace, k)]
            acceptance = hull(ends)
            return RuleStanding(
                rule.name, k, acceptance, "bounds" if acceptance.kind == "bound" else "estimate", note=_FROM_LISTS
            )
        rule.require(trace.columns)
        rule = in_trace(rule, trace)
        accepted = (
            rule.rank_law(trace.columns, k).sum(axis=1)
            if isinstance(rule, RankRule) and not first
            else rule.weighted_survival(trace.columns, 1)[:, 0]
            if isinstance(rule, LossyRule)
            else rule.path_survival(trace.columns, 1)[:, 0]
        )
    except SpectheoryError as error:
        return RuleStanding(rule.name, k, None, "none", note=f"{error.what}: {error.limit}")
    return RuleStanding(rule.name, k, _mean(prompts, accepted, 1.0), "estimate")
