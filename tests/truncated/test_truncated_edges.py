"""§9: one pmf, matching rules, orders that are open, rounded values, every rule's interval, edges and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import Floats, pairs, theorem
from proofs_check.theorems.path.completions import corners
from spectheory import truncated
from spectheory.divergences import total_variation
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.intervals import Interval
from spectheory.limits import branching_bound
from spectheory.truncated import TopLogProbs
from spectheory.truncated.rules import TABLE
from spectheory.verification import (
    PATH_RULES,
    ArgmaxDraft,
    BiasedVerification,
    GreedyMatch,
    GumbelList,
    IndependentMatch,
    KSeq,
    PathRule,
    RaceVerification,
    RankRule,
    Rule,
    TokenVerification,
    TopKMatch,
)
from tests.truncated.truncated_cases import (
    ALL,
    EDGE,
    ROUNDING,
    SMALL,
    SOLVER,
    STEEP,
    holds,
    least_hockey,
    near,
    slow_hockey,
    slow_rank,
)


def slow_entropy(p: Floats, power: int = 1) -> float:
    return float(sum(a * abs(math.log(a)) ** power for a in p if a > 0))


# One pmf


def test_the_moments_bound_the_branching_bound() -> None:
    """B2' falls in mu and rises in mu2: at mu's low and mu2's high end it is above its value at the truth."""
    rng = np.random.default_rng(11)
    pmfs = rng.dirichlet(np.full(200, 0.1), size=20)
    tops = [TopLogProbs.from_pmf(p, 10) for p in pmfs]
    mu = truncated.mean_interval(truncated.entropy(top) for top in tops)
    mu2 = truncated.mean_interval(truncated.second_log_moment(top) for top in tops)
    true_mu, true_mu2 = (float(np.mean([slow_entropy(p, power) for p in pmfs])) for power in (1, 2))
    assert mu.low < true_mu < mu.high
    assert mu2.low < true_mu2 < mu2.high
    for capacity in (1, 4, 16, 64, 1024):
        certified = branching_bound(mu.low, mu2.high, capacity)
        for first in np.linspace(mu.low, mu.high, 5):
            for second in np.linspace(max(mu2.low, first**2), mu2.high, 5):
                assert branching_bound(float(first), float(second), capacity) <= certified + ROUNDING


# Matching


def test_independent_match_is_attained() -> None:
    """Bilinear, so largest on extreme tails; equal where neither side has an extra token of its own."""
    for target, draft in SMALL:
        largest = float(np.max(np.array(corners(target)) @ np.array(corners(draft)).T))
        high = truncated.acceptance(IndependentMatch(), target, draft).high
        assert largest <= high + EDGE
        if not len(target.extra_tokens) + len(draft.extra_tokens):
            assert near(high, largest)


def test_an_extra_token_counts_as_large_as_the_cap() -> None:
    """Draft mass is better spent outside, where target mass meets it, than on an extra token of the target's own."""
    target = TopLogProbs([0], [math.log(0.4)], 9, [1], [math.log(0.001)])
    draft = TopLogProbs([2], [math.log(0.3)], 9)
    p, q = np.zeros(9), np.zeros(9)
    p[[0, 1, 2, 3]] = 0.4, 0.001, 0.4, 0.199
    q[[2, 0, 3, 4]] = 0.3, 0.3, 0.3, 0.1
    assert p.sum() == pytest.approx(1)
    assert q.sum() == pytest.approx(1)
    assert holds(truncated.acceptance(IndependentMatch(), target, draft), float(p @ q))


def test_the_ends_of_top_k_are_attained() -> None:
    """Wherever the lists decide the k drafts; elsewhere every order of the completions is covered."""
    exact = 0
    for target, draft in SMALL:
        for k in range(1, target.vocabulary + 1):
            ends = truncated.acceptance(TopKMatch(), target, draft, k)
            exact += ends.kind == "exact"
            drafts = {tuple(np.argsort(-q.round(12), kind="stable")[:k]) for q in corners(draft)}
            sums = [p[list(first)].sum() for first in drafts for p in corners(target)]
            assert holds(ends, min(sums))
            assert holds(ends, max(sums))
            if k <= len(draft.tokens) and len({frozenset(first) for first in drafts}) == 1:
                assert (near(ends.low, min(sums)), near(ends.high, max(sums))) == (True, True)
    assert exact > len(SMALL)  # and not vacuous: many of the ranges are points


def test_the_first_choices_are_known() -> None:
    target = TopLogProbs([4, 0], np.log([0.25, 0.25]), 9)
    draft = TopLogProbs([0, 7], np.log([0.3, 0.2]), 9)
    assert target.tokens.tolist() == [0, 4], "ties to the lowest index"
    assert truncated.acceptance(GreedyMatch(), target, draft) == Interval.exact(1.0)
    assert truncated.acceptance(GreedyMatch(), TopLogProbs([4], [math.log(0.6)], 9), draft) == Interval.exact(0.0)
    assert truncated.acceptance(ArgmaxDraft(), target, draft).kind == "exact"
    assert truncated.acceptance(ArgmaxDraft(), target, draft).best == pytest.approx(0.25)


# Given the output


def test_ends_given_the_output_are_attained() -> None:
    """Token: the extreme ranges. Race, high: the least g (linear program) once the token has its best ratio."""
    count = 0
    for target, draft in SMALL[:30]:
        for token in range(target.vocabulary):
            (p_low, p_high), (q_low, q_high) = target.range(token), draft.range(token)
            if p_low != p_high or p_high == 0 or q_low == q_high or q_high == 0:
                continue
            count += 1
            by_token = truncated.acceptance_given(TokenVerification(), target, draft, token)
            values = [min(1.0, q[token] / p_low) for q in corners(draft)]
            assert near(by_token.low, min(values))
            assert near(by_token.high, max(values))
            high = truncated.acceptance_given(RaceVerification(), target, draft, token).high
            known = TopLogProbs(
                draft.tokens,
                draft.log_probs,
                draft.vocabulary,
                [*draft.extra_tokens, token],
                [*draft.extra_log_probs, math.log(q_high)],
            )
            assert high == pytest.approx(1 / (1 + least_hockey(target, known, p_low / q_high)), abs=SOLVER)
    assert count > 20


def test_the_low_end_given_the_output_is_attained() -> None:
    """The draft's two unseen tokens hold .4 together and .3 at most, so the output has q in [.1, .3]."""
    target, draft = TopLogProbs.from_pmf([0.5, 0.3, 0.2, 0.0], 4), TopLogProbs.from_pmf([0.3, 0.3, 0.25, 0.15], 2)
    race = truncated.acceptance_given(RaceVerification(), target, draft, 2)
    whole = corners(target)[0]
    values = [1 / (1 + slow_hockey(whole, q, whole[2] / q[2])) for q in corners(draft)]
    assert near(race.low, min(values))
    assert near(race.high, max(values))


# Edges


def test_everything_known_is_exact() -> None:
    rng = np.random.default_rng(10)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
    target, draft = TopLogProbs.from_pmf(p, 8), TopLogProbs.from_pmf(q, 8)
    for name, (interval, slow) in ALL.items():
        ends = interval(target, draft)
        assert ends.kind == "exact", name
        assert near(ends.best, slow(p, q)), name
    for token in range(8):
        assert truncated.acceptance_given(RaceVerification(), target, draft, token).kind == "exact"
    assert truncated.entropy(target) == Interval.exact(truncated.entropy(target).best)


def test_impossible_tokens_are_knowledge() -> None:
    """-inf in the list closes it; a sum of one does not, since other tokens may hold what rounding hides."""
    closed, open_ = TopLogProbs([3, 1], [0.0, -math.inf], 5), TopLogProbs([3], [0.0], 5)
    draft = TopLogProbs([3, 2], np.log([0.5, 0.25]), 5)
    assert truncated.kl_divergence(closed, draft).kind == "exact"
    assert truncated.kl_divergence(closed, draft).best == pytest.approx(math.log(2))
    assert truncated.kl_divergence(open_, draft).high == math.inf
    half = TopLogProbs([3, 2, 1], log(0.5, 0.5, 0.0), 5)
    assert truncated.kl_divergence(closed, half).high == pytest.approx(math.log(2))
    assert truncated.kl_divergence(open_, half).high == math.inf
    assert truncated.kl_divergence(open_, half).low == pytest.approx(math.log(2), abs=STEEP)
    two = TopLogProbs([3, 2], log(0.5, 0.5), 5)
    assert truncated.kl_divergence(two, half).kind == "bound"
    assert truncated.kl_divergence(two, half).high == math.inf, "1e-15 of target mass may be where the draft has none"
    assert truncated.total_variation(open_, draft).high == pytest.approx(0.5, abs=ROUNDING)
    assert truncated.kl_divergence(draft, closed).low == math.inf
    assert truncated.kl_divergence(draft, open_).low < math.inf, "1e-15 of draft mass may be where the target is"
    assert truncated.acceptance(RaceVerification(), closed, draft).kind == "exact"
    assert truncated.entropy(closed).best == 0.0
    assert open_.range(0)[1] <= ROUNDING


def test_a_wrong_cap_is_found_out() -> None:
    """Negative control: the sampled token's probability taken as the cap, and completions leave every interval."""
    p, q = np.array([0.4, 0.3, 0.2, 0.08, 0.02]), np.array([0.1, 0.35, 0.3, 0.15, 0.1])
    target, draft = TopLogProbs.from_pmf(p, 1, extra=[4]), TopLogProbs.from_pmf(q, 1, extra=[4])
    vocabulary = 100
    target, draft, wrong_target, wrong_draft = (
        TopLogProbs(tokens, logs, vocabulary, *extra)
        for tokens, logs, extra in (
            *((top.tokens, top.log_probs, (top.extra_tokens, top.extra_log_probs)) for top in (target, draft)),
            *(([*top.tokens, 4], [*top.log_probs, *top.extra_log_probs], ()) for top in (target, draft)),
        )
    )
    truth = [np.concatenate([pmf, np.zeros(vocabulary - 5)]) for pmf in (p, q)]
    for name in ("independent", "race", "token"):
        assert holds(ALL[name][0](target, draft), ALL[name][1](*truth)), name
    assert truncated.entropy(wrong_target).low > slow_entropy(truth[0])
    assert truncated.second_log_moment(wrong_target).low > slow_entropy(truth[0], 2)
    assert truncated.acceptance(IndependentMatch(), wrong_target, wrong_draft).high < float(truth[0] @ truth[1])
    assert truncated.acceptance(RaceVerification(), wrong_target, wrong_draft).high < slow_rank(*truth, 1)
    assert truncated.acceptance(TokenVerification(), wrong_target, wrong_draft).high < np.minimum(*truth).sum()


def test_masses_that_miss_are_scaled() -> None:
    """Single precision: a peaked softmax whose log-probabilities add up to more than one, and a whole one to less."""
    logs = np.log(np.array([0.9, 0.0999999, 1e-7], dtype=np.float64)) + 1e-6
    top = TopLogProbs([0, 1, 2], logs, 50)
    assert top.unseen == 0.0
    assert top.miss == pytest.approx(1e-6, rel=1e-3)
    assert top.probabilities.sum() == pytest.approx(1.0, abs=ROUNDING)
    whole = TopLogProbs([0, 1], np.log([0.5, 0.5]) - 1e-6, 2)
    assert whole.probabilities.sum() == pytest.approx(1.0, abs=ROUNDING)
    even = TopLogProbs([0], [math.log(0.1) - 1e-7], 10)
    assert even.cap == pytest.approx(0.1, abs=ROUNDING)
    assert 9 * even.cap == pytest.approx(even.unseen, abs=ROUNDING)


@theorem
@given(pairs(), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_stated_error_covers_the_server(pair: tuple[Floats, Floats], m: int, seed: int) -> None:
    """Log-probabilities shaken by 1e-6: with that error stated, the unshaken truth is inside."""
    rng = np.random.default_rng(seed)
    tops = []
    for pmf in pair:
        pmf = np.where(pmf < 1e-290, 0.0, pmf)
        top = TopLogProbs.from_pmf(pmf, min(m, len(pmf)))
        noise = rng.uniform(-1e-6, 1e-6, len(top.tokens)) * (top.log_probs > -math.inf)
        tops.append(TopLogProbs(top.tokens, np.minimum(0.0, top.log_probs + noise), len(pmf), error=1e-6))
    for name, (interval, slow) in ALL.items():
        assert holds(interval(*tops), slow(*(np.where(pmf < 1e-290, 0.0, pmf) for pmf in pair))), name


def test_mean_over_positions() -> None:
    every = [truncated.entropy(top) for pair in SMALL[:5] for top in pair]
    mean = truncated.mean_interval(every)
    assert mean.low == pytest.approx(np.mean([i.low for i in every]))
    assert mean.high == pytest.approx(np.mean([i.high for i in every]))
    assert truncated.mean_interval([Interval.exact(1.0), Interval.exact(2.0)]) == Interval.exact(1.5)
    with pytest.raises(ShapeError):
        truncated.mean_interval([])


def log(*values: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(values)


OPEN = Interval(0.0, 0.5, 1.0, "bound")
ROUNDED = 6e-4


def printed(pmf: list[float], m: int, error: float = ROUNDED) -> TopLogProbs:
    """The m first tokens of a pmf with three digits."""
    top = np.argsort(-np.array(pmf), kind="stable")[:m]
    return TopLogProbs(top, np.round(np.log(np.array(pmf)[top]), 3), len(pmf), error=error)


def test_rounded_equals_are_not_ordered() -> None:
    """Two draft masses print as -0.916: either may be the first choice."""
    target, draft = printed([0.2, 0.5, 0.3], 3), printed([0.39999, 0.40001, 0.2], 3)
    for rule in (ArgmaxDraft(), TopKMatch()):
        for token in (0, 1):
            assert truncated.acceptance_given(rule, target, draft, token) == OPEN
        assert truncated.acceptance_given(rule, target, draft, 2) == Interval.exact(0.0)
        ends = truncated.acceptance(rule, target, draft)
        assert (ends.low, ends.high) == pytest.approx((0.2, 0.5), abs=0.01)
    assert truncated.acceptance(GreedyMatch(), target, draft) == OPEN
    assert truncated.acceptance_given(TopKMatch(), target, draft, 1, 2) == Interval.exact(1.0)


@pytest.mark.parametrize(("apart", "kind"), [(0.0009, "bound"), (0.0021, "exact")])
def test_masses_further_apart_than_the_error_are_ordered(apart: float, kind: str) -> None:
    first = 0.4 * np.exp(apart)
    draft = TopLogProbs([0, 1, 2], np.log([0.4, first, 0.6 - first]), 3, error=5e-4)
    assert truncated.acceptance_given(ArgmaxDraft(), draft, draft, 1).kind == kind
    assert truncated.acceptance(GreedyMatch(), draft, draft).kind == kind


def test_an_unlisted_token_may_tie_with_the_last_listed_one() -> None:
    """Token 0 may have 1/4 like the listed token 2, and then comes before it; token 3 comes after."""
    target = TopLogProbs.from_pmf([0.25, 0.25, 0.25, 0.25], 4)
    tied, ordered = TopLogProbs([1, 2], np.log([0.5, 0.25]), 4), TopLogProbs([0, 1], np.log([0.5, 0.25]), 4)
    assert truncated.acceptance_given(TopKMatch(), target, tied, 2, 2) == OPEN
    assert truncated.acceptance_given(TopKMatch(), target, tied, 0, 2) == OPEN
    assert truncated.acceptance_given(TopKMatch(), target, tied, 3, 2) == Interval.exact(0.0)
    assert truncated.acceptance_given(TopKMatch(), target, ordered, 1, 2) == Interval.exact(1.0)
    assert truncated.acceptance_given(TopKMatch(), target, ordered, 2, 2) == Interval.exact(0.0)


def test_full_lists_without_ties_decide_everything() -> None:
    p, q = [0.2, 0.5, 0.3, 0.0], [0.39, 0.41, 0.2, 0.0]
    with np.errstate(divide="ignore"):
        target, draft = (TopLogProbs(range(4), np.log(pmf), 4, error=1e-6) for pmf in (p, q))
    for k in (1, 2, 3):
        within = [truncated.acceptance_given(TopKMatch(), target, draft, token, k) for token in range(3)]
        assert [each.kind for each in within] == ["exact"] * 3
        ends = truncated.acceptance(TopKMatch(), target, draft, k)
        assert ends.high - ends.low < 1e-5
        assert ends.low <= float(np.sum(TopKMatch().rank_pmf(p, q, k))) <= ends.high
    assert truncated.acceptance(GreedyMatch(), target, draft) == Interval.exact(1.0)


TOKENS, STEP = 12, 1e-3
ERROR = STEP / 2
"""What rounding to three digits after the point takes or adds at most."""

QUANTITIES: dict[str, tuple[Callable[[TopLogProbs, TopLogProbs], Interval], Callable[[Floats, Floats], float]]] = {
    "tv": (truncated.total_variation, lambda p, q: float(total_variation(p, q))),
    **{
        rule.name: (partial(truncated.acceptance, rule), lambda p, q, rule=rule: float(rule.acceptance(p, q)))
        for rule in (TokenVerification(), RaceVerification())
    },
}


def rounded(pmf: Floats, m: int, error: float = ERROR, extra: int | None = None) -> TopLogProbs:
    """What a server tells that rounds to three digits; `extra` is a token asked for beside the top m."""
    top = np.argsort(-pmf, kind="stable")[:m]
    more = np.array([extra] if extra is not None and extra not in top else [], dtype=np.int64)
    logs, others = (np.round(np.log(pmf[ids]) / STEP) * STEP for ids in (top, more))
    return TopLogProbs(top, logs, len(pmf), more, others, error=error)


def pmfs(seed: int, count: int) -> Floats:
    """Peaked and flat ones, the flattest nearly uniform."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.dirichlet(np.full(TOKENS, 10.0 ** rng.uniform(-0.5, 4))) for _ in range(count)])


@pytest.mark.parametrize("m", [1, 3, TOKENS - 1, TOKENS])
def test_honest_rounding_is_let_in(m: int) -> None:
    """Every list; with `error` left at 0 many long lists are refused, so the tolerance is needed."""
    refused = 0
    for number, pmf in enumerate(pmfs(1, 250)):
        top = rounded(pmf, m, extra=number % TOKENS)
        assert top.miss <= math.expm1(ERROR) + 1e-12
        try:
            rounded(pmf, m, error=0.0, extra=number % TOKENS)
        except PmfError:
            refused += 1
    assert refused > 20 or m < TOKENS - 1


def test_certainty_rounded_up_is_let_in() -> None:
    """A probability of nearly one, and a log-probability that rounding brought above zero."""
    assert TopLogProbs([0], [4e-4], 5, error=ERROR).probabilities.tolist() == [1.0]
    with pytest.raises(PmfError, match="token 0 has log-probability"):
        TopLogProbs([0], [4e-4], 5, error=1e-4)


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("m", [3, TOKENS - 1, TOKENS])
def test_intervals_hold_the_unrounded_values(name: str, m: int) -> None:
    interval, value = QUANTITIES[name]
    p, q = pmfs(2, 150), pmfs(3, 150)
    for target, draft in zip(p, q, strict=True):
        certified = interval(rounded(target, m), rounded(draft, m))
        assert certified.low <= value(target, draft) <= certified.high


@pytest.mark.parametrize("factor", [1.002, 0.998])
def test_more_than_rounding_is_refused(factor: float) -> None:
    """Negative control: all probabilities too large, or too small, by four times what rounding explains."""
    logs = np.log(np.full(TOKENS, factor / TOKENS))
    with pytest.raises(PmfError, match="have mass"):
        TopLogProbs(range(TOKENS), logs, TOKENS, error=ERROR)
    TopLogProbs(range(TOKENS), logs, TOKENS, error=4 * ERROR + 1e-5)


V = 40
LISTED = (1, 5, 20, V)
EVERY = (*PATH_RULES.values(), KSeq(), GumbelList(), BiasedVerification(0.1))
WITHOUT = {"lookup", "grown", "ensemble:0.9"}
LOOSE = 1e-9


def a_pair(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.standard_normal(V)
    p, q = (np.exp(x) / np.exp(x).sum() for x in (logits, logits + rng.standard_normal(V)))
    return p, q


def test_rules_without_an_entry_are_named_and_refused() -> None:
    top = TopLogProbs.from_pmf(a_pair(0)[0], 5)
    assert {rule.name for rule in EVERY if rule not in TABLE} == WITHOUT
    for rule in (rule for rule in EVERY if rule.name in WITHOUT):
        with pytest.raises(SettingError, match=f"rule '{rule.name}' has no certified interval") as caught:
            truncated.acceptance(rule, top, top)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rule", list(TABLE), ids=lambda rule: rule.name)
def test_the_interval_holds_the_value_and_closes(rule: Rule) -> None:
    """With 1, 5, 20 and all tokens listed; the interval of another pair's lists does not hold it (control)."""
    missed = 0
    for seed in range(6):
        p, q = a_pair(seed)
        widths = []
        for m in LISTED:
            target, draft = (TopLogProbs.from_pmf(pmf, m) for pmf in (p, q))
            certified, value = truncated.acceptance(rule, target, draft), float(rule.acceptance(p, q))
            assert certified.low - LOOSE <= value <= certified.high + LOOSE
            widths.append(certified.high - certified.low)
        assert widths[-1] <= LOOSE
        assert all(b <= a + LOOSE for a, b in pairwise(widths))
        other = truncated.acceptance(rule, *(TopLogProbs.from_pmf(pmf, 20) for pmf in a_pair(seed + 100)))
        missed += not other.low <= value <= other.high
    assert missed > 0


GIVEN = [
    (rule, k)
    for rule, known in TABLE.items()
    if known.given and isinstance(rule, PathRule)
    for k in (1, 3)
    if k <= known.most_given
]


@pytest.mark.parametrize(("rule", "k"), GIVEN, ids=lambda value: getattr(value, "name", str(value)))
def test_given_the_output_the_interval_holds_the_value(rule: PathRule, k: int) -> None:
    p, q = a_pair(3)
    for token in (int(np.argmax(p)), int(np.argsort(-p)[10]), int(np.argmin(p))):
        value = float(np.asarray(rule.acceptance_given(p, q))[token])
        if k > 1:
            assert isinstance(rule, RankRule)
            value = float(np.sum(rule.rank_pmf_given(p, q, token, k)))
        for m in LISTED:
            certified = truncated.acceptance_given(rule, *(TopLogProbs.from_pmf(pmf, m) for pmf in (p, q)), token, k)
            assert certified.low - LOOSE <= value <= certified.high + LOOSE
        assert certified.high - certified.low <= LOOSE
