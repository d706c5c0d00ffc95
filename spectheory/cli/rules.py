"""``spectheory rules``: what every rule accepts at a position, from two pmfs or from a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.cli.answer import show
from spectheory.cli.console import remarks
from spectheory.cli.inputs import Floats, Pmfs, in_range, one_source, read_pmfs, read_trace
from spectheory.cli.theory_options import DrawOptions, RulesOptions
from spectheory.distributions import validate_pair
from spectheory.divergences import kl_divergence, total_variation
from spectheory.errors import SettingError, ShapeError, SpectheoryError
from spectheory.intervals import CONFIDENCE, Interval
from spectheory.resampling import PromptSums
from spectheory.theory_report import RuleRow, RulesAnswer, rules_report
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.verification import (
    RULES,
    ArgmaxDraft,
    BlockVerification,
    GreedyMatch,
    GumbelList,
    IndependentMatch,
    KSeq,
    PathRule,
    PoissonRace,
    RaceVerification,
    RankRule,
    RecursiveRejection,
    Rule,
    TokenVerification,
    TopKMatch,
    entropy_at_least_kl,
    optimal_acceptance,
)

MOST_CANDIDATES = 1024
MOST_WORK = 1 << 23
"""Steps of a rule that costs more than its share: ten seconds or so."""
_BATCHES = 20
"""Independent estimates, from whose spread the interval comes."""
_ENTROPY_WIDTH = 1e-5


def run_rules(question: RulesOptions, draws: DrawOptions) -> None:
    """Answer the question and show the answer."""
    draws.check()
    in_range("--k", question.k, MOST_CANDIDATES)
    pair = question.target is not None or question.draft is not None
    if one_source({"a trace": question.trace is not None, "--target with --draft": pair}) == "a trace":
        assert question.trace is not None
        answer = of_trace(read_trace(question.trace), question.k, draws)
    else:
        answer = of_pmfs(*_pair(question), question.k, draws.seed)
    show(rules_report(answer), as_json=draws.json)


def _pair(question: RulesOptions) -> tuple[Pmfs, Pmfs]:
    if question.target is None or question.draft is None:
        raise SettingError(
            f"--{'draft' if question.draft is None else 'target'} is missing",
            limit="acceptance is a matter of two pmfs",
            remedy="give both",
        )
    return read_pmfs(question.target, "--target"), read_pmfs(question.draft, "--draft")


# Two pmfs


@dataclass(frozen=True)
class _Case:
    """A rule in the table: how many candidates it takes, and whether R4 is a limit for it."""

    rule: Rule
    k: int
    limited: bool = True


def _cases(k: int) -> list[_Case]:
    return [
        _Case(TokenVerification(), 1),
        _Case(BlockVerification(), 1),
        _Case(IndependentMatch(), 1),
        _Case(ArgmaxDraft(), 1, limited=False),
        _Case(GreedyMatch(), 1, limited=False),
        _Case(RaceVerification(), k, limited=k == 1),
        _Case(PoissonRace(), k),
        _Case(RecursiveRejection(), k),
        _Case(RecursiveRejection(replacement=False), k, limited=k == 1),
        _Case(KSeq(), k),
        _Case(GumbelList(), k),
        _Case(TopKMatch(), k, limited=False),
    ]


def of_pmfs(target: Pmfs, draft: Pmfs, k: int, seed: int) -> RulesAnswer:
    """Every rule on pairs of pmfs, means over the pairs.

    Raises
    ------
    ShapeError
        If the pmfs do not fit together.
    """
    p, q = _matched(target.rows, draft.rows)
    optimum = {j: float(np.mean(optimal_acceptance(p, q, j))) for j in sorted({1, k})}
    with remarks.status("working out the acceptances"):
        rows = [_row(case, p, q, optimum, seed) for case in _cases(k)]
    notes = [*target.notes, *draft.notes, "Block verification judges a call's drafts together; at one it is token."]
    if len(p) > 1:
        notes.insert(0, f"Every number is the mean over {len(p)} pairs of pmfs.")
    distance, divergence = _mean_of(total_variation(p, q)), _mean_of(kl_divergence(p, q))
    return RulesAnswer("pmfs", k, len(p), rows, distance, divergence, optimum, notes)


def _matched(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Both tables with as many rows; a single row serves for all."""
    validate_pair(p[0], q[0])
    if len(p) != len(q) and 1 not in (len(p), len(q)):
        raise ShapeError(
            f"--target has {len(p)} rows and --draft {len(q)}", limit="as many, or one", remedy="pair them row by row"
        )
    return p + 0 * q, q + 0 * p


def _row(case: _Case, p: Floats, q: Floats, optimum: dict[int, float], seed: int) -> RuleRow:
    rule, k = case.rule, case.k
    best = None if isinstance(rule, GreedyMatch) else optimum[k]  # whose output is not the target's sample
    acceptance, side, reason = _acceptance(rule, p, q, k, seed)
    return RuleRow(rule.name, k, acceptance, side, best, case.limited, _entropy(rule, p, q), reason)


def _acceptance(rule: Rule, p: Floats, q: Floats, k: int, seed: int) -> tuple[Interval, str, str]:
    """Mean acceptance, what it claims, and why it is not exact where that would take minutes."""
    pairs, tokens = p.shape
    if isinstance(rule, RaceVerification) and k > 1 and pairs * tokens**2 * k > MOST_WORK:
        reason = f"O(V^2 k) at {pairs} x {tokens} tokens; the bound is the Poisson race"
        return _mean_of(PoissonRace().acceptance(p, q, k)), "lower bound", reason
    if isinstance(rule, GumbelList) and 16 * p.size > MOST_WORK:
        reason = f"200 passes over {pairs} x {tokens} tokens; the bound is the printed one"
        return _mean_of(rule.acceptance_bound(p, q, k)), "lower bound", reason
    if isinstance(rule, RecursiveRejection) and not rule.replacement and k > 1:
        if k >= tokens:  # the last of as many candidates as tokens is the output for sure
            return Interval.exact(1.0), "exact", ""
        if pairs * tokens**k > MOST_WORK:
            reason = f"{pairs} x {tokens}^{k} orders of rejection; drawn at random, 95% interval"
            return _estimated(rule, p, q, k, seed), "estimate", reason
    return _mean_of(rule.acceptance(p, q, k)), "exact", ""


def _mean_of(values: Any) -> Interval:
    return Interval.exact(float(np.mean(values)))


def _estimated(rule: RecursiveRejection, p: Floats, q: Floats, k: int, seed: int) -> Interval:
    """P(R <= k) of distinct candidates from drawn rejections: the mean of independent batches, Student."""
    from scipy.stats import t as student

    rng = np.random.default_rng(seed)
    trials = max(2, min(1000, MOST_WORK // (_BATCHES * p.size * k)))
    means = [float(np.mean(rule.rank_pmf_estimate(p, q, k, trials, rng=rng)[0].sum(axis=-1))) for _ in range(_BATCHES)]
    best = float(np.mean(means))
    width = float(student.ppf((1 + CONFIDENCE) / 2, _BATCHES - 1) * np.std(means, ddof=1)) / _BATCHES**0.5
    return Interval(max(best - width, 0.0), best, max(min(best + width, 1.0), best), "statistical")


def _entropy(rule: Rule, p: Floats, q: Floats) -> Interval | None:
    """Mean H(R) over the pairs where channel simulation bounds it by KL; None elsewhere, and for very many pairs."""
    channel = isinstance(rule, PoissonRace) or (isinstance(rule, RecursiveRejection) and rule.replacement)
    if not channel or p.size * 16 > MOST_WORK or bool(np.any((p > 0) & (q == 0))):
        return None
    found = [entropy_at_least_kl(rule, *pair, tolerance=_ENTROPY_WIDTH).entropy for pair in zip(p, q, strict=True)]
    low, best, high = (float(np.mean([getattr(i, end) for i in found])) for end in ("low", "best", "high"))
    return Interval(low, best, high, "bound")


# A trace

_PMF_ONLY = ("recursive-distinct", "kseq", "gumbel-list")


def of_trace(trace: Trace, k: int, draws: DrawOptions) -> RulesAnswer:
    """Mean over the positions of P(R <= k | text) for every rule whose law is recorded; intervals over prompts."""
    sums = PromptSums(trace.texts, draws.resamples, draws.seed)
    sums.add("positions", trace.lengths.astype(float))
    missing = {rule.name: _add(sums, trace, rule, _candidates(rule, k)) for rule in RULES.values()}
    means = {name: trace.columns[name] for name in ("kl", "total_variation") if name in trace.columns}
    for name, values in means.items():
        if np.isfinite(values).all():  # an infinite KL has no sums to draw from
            sums.add_rows(name, values)
    sums.draw()
    rows = [
        RuleRow(rule.name, _candidates(rule, k), None, reason=missing[rule.name])
        if missing[rule.name]
        else RuleRow(rule.name, _candidates(rule, k), sums.ratio(rule.name, "positions", limits=(0, 1)), "estimate")
        for rule in RULES.values()
    ]
    rows += [RuleRow(name, k, None, reason="needs full pmfs, --target and --draft") for name in _PMF_ONLY]
    mean = {
        name: sums.ratio(name, "positions", limits=(0, 1 if name == "total_variation" else np.inf))
        if sums.has(name)
        else Interval.exact(np.inf)
        for name in means
    }
    notes = _trace_notes(trace, sums)
    return RulesAnswer("trace", k, len(trace), rows, mean.get("total_variation"), mean.get("kl"), notes=notes)


def _candidates(rule: PathRule, k: int) -> int:
    return k if isinstance(rule, RankRule) else 1


def _add(sums: PromptSums, trace: Trace, rule: PathRule, k: int) -> str:
    """Add P(R <= k | text) of every position; if it is not known, say why."""
    accepted: Callable[[], Floats] = (
        (lambda: rule.rank_law(trace.columns, k).sum(axis=1))
        if isinstance(rule, RankRule)
        else (lambda: rule.path_survival(trace.columns, 1)[:, 0])
    )
    try:
        rule.require(trace.columns)
        sums.add_rows(rule.name, accepted())
    except SpectheoryError as error:
        return f"{error.what}: {error.limit}"
    return ""


def _trace_notes(trace: Trace, sums: PromptSums) -> list[str]:
    notes = [
        f"Means over {len(trace)} positions of P(R <= k | text), exact for these texts; "
        "intervals (95%) are over prompts."
    ]
    if trace.provenance.get("origin") == GIVEN_TEXT:
        notes.append("The text was given, not sampled from the target: the numbers are for that text as output.")
    if sums.prompts == 1:
        notes.append("A single prompt cannot be resampled: its intervals are the trivial bounds.")
    return [*notes, 'R4 and H(R) beside KL need full pmfs. "-": not known from this trace.']
