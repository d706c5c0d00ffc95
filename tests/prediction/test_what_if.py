"""What if: better drafts against decoding enumerated in fractions, costs against plans, prompts by simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction as F
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction import from_acceptance, plan, predict
from spectheory.prediction.over_prompts import _relative_spread, left_out, ratio
from spectheory.prediction.what_if_answer import (
    PATHS,
    _better_draft,
    _cost_sweep,
    _kl_along,
    _needed,
    _spread,
    what_if,
    what_if_counted,
)
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.trace.sample import of_texts
from spectheory.trace.samples import PAIR
from spectheory.verification import TokenVerification

# A pair of Markov chains over two tokens, whose texts of three tokens are all in the trace, as often as they come.

TARGET = {None: (F(1, 2), F(1, 2)), 0: (F(3, 4), F(1, 4)), 1: (F(1, 4), F(3, 4))}
DRAFT = {None: (F(1, 3), F(2, 3)), 0: (F(1, 2), F(1, 2)), 1: (F(2, 5), F(3, 5))}
TOKENS, COPIES = 3, 32
Chains = dict[int | None, tuple[F, ...]] | dict[int | None, tuple[float, ...]]


def every_text() -> Trace:
    """Each text as often as its probability times 32 says."""
    texts = []
    for text in product((0, 1), repeat=TOKENS):
        before = (None, *text[:-1])
        share = np.prod([TARGET[b][x] for b, x in zip(before, text, strict=True)])
        texts += [(before, text)] * int(COPIES * share)
    assert len(texts) == COPIES
    logits = [[np.log(np.array([chain[b] for b in before], float)) for before, _ in texts] for chain in (TARGET, DRAFT)]
    return Trace.from_logits(*logits, [list(text) for _, text in texts], sampled=True)


@cache
def recorded() -> Trace:
    """Texts of the recorded pair."""
    return of_texts(Trace.read(PAIR), np.arange(96) < 24)


def moved(path: str, s: F) -> Chains:
    """The draft at a share s of a path."""
    if path == "mixed":
        return {b: tuple((1 - s) * q + s * p for p, q in zip(TARGET[b], DRAFT[b], strict=True)) for b in TARGET}
    raw = {b: [float(DRAFT[b][x]) ** float(1 - s) * float(TARGET[b][x]) ** float(s) for x in (0, 1)] for b in TARGET}
    return {b: tuple(x / sum(row) for x in row) for b, row in raw.items()}


def calls(draft: Chains, k: int) -> float:
    """Expected calls of token verification for three tokens: every draft and every outcome, in fractions."""

    @cache
    def left(before: int | None, tokens: int) -> F | float:
        return 1 + call(before, tokens, k) if tokens > 0 else F(0)

    def call(before: int | None, tokens: int, drafts: int) -> F | float:
        """Calls after this one, which has so many drafts to go."""
        if tokens <= 0:
            return F(0)
        p, q = TARGET[before], draft[before]
        if drafts == 0:
            return sum(p[x] * left(x, tokens - 1) for x in (0, 1))
        rest = [max(p[x] - q[x], 0) for x in (0, 1)]
        total = sum(rest)
        mean: F | float = F(0)
        for x in (0, 1):
            accepted = min(1, p[x] / q[x])
            mean += q[x] * accepted * call(x, tokens - 1, drafts - 1)
            if total:
                recovered = sum(rest[y] / total * left(y, tokens - 1) for y in (0, 1))
                mean += q[x] * (1 - accepted) * recovered
        return mean

    return float(left(None, TOKENS))


def divergence(draft: Chains) -> float:
    """Mean KL(p || q) per token of the texts."""
    share: dict[int | None, F] = {None: F(1)}
    total = 0.0
    for _ in range(TOKENS):
        for b, weight in share.items():
            total += float(weight) * sum(
                float(p) * (np.log(float(p)) - np.log(float(q))) for p, q in zip(TARGET[b], draft[b], strict=True)
            )
        share = {x: sum(weight * TARGET[b][x] for b, weight in share.items()) for x in (0, 1)}
    return total / TOKENS


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("path", "s"), [("mixed", F(1, 7)), ("mixed", F(2, 3)), ("geometric", F(3, 10))])
def test_calls_and_kl_of_a_better_draft_are_those_of_decoding_with_it(path: str, s: F, k: int) -> None:
    trace, draft = every_text(), moved(path, s)
    better = _better_draft(trace, path, float(s))
    per_call = predict(better, TokenVerification(), Chain(k)).tokens_per_call.best
    assert per_call == pytest.approx(TOKENS / calls(draft, k), rel=1e-9)
    assert _kl_along(trace, path)(float(s)) == pytest.approx(divergence(draft), rel=1e-9)
    assert per_call != pytest.approx(TOKENS / calls(moved(path, s / 2), k), rel=1e-4)  # another s gives another number


def test_between_the_recorded_orders_the_geometric_path_is_near() -> None:
    trace, draft = every_text(), moved("geometric", F(9, 20))
    per_call = predict(_better_draft(trace, "geometric", 0.45), TokenVerification(), Chain(2)).tokens_per_call.best
    assert per_call == pytest.approx(TOKENS / calls(draft, 2), rel=1e-4)
    assert per_call != pytest.approx(TOKENS / calls(moved("geometric", F(2, 5)), 2), rel=1e-3)
    assert _kl_along(trace, "geometric")(0.45) == pytest.approx(divergence(draft), rel=1e-3)


@pytest.mark.parametrize("path", PATHS)
def test_the_ends_of_a_path_are_the_draft_and_the_target(path: str) -> None:
    trace, rule = recorded(), TokenVerification()
    plain, same = (predict(each, rule, Chain(3)) for each in (trace, _better_draft(trace, path, 0.0)))
    assert same.tokens_per_call.best == pytest.approx(plain.tokens_per_call.best, rel=1e-12)
    perfect = _better_draft(trace, path, 1.0)
    assert (perfect.columns["log_draft"] == perfect.columns["log_target"]).all()
    text = _better_draft(Trace.from_log_probabilities([([-1.0] * 8, [-3.0] * 8)]), "mixed", 1.0)
    assert predict(text, rule, Chain(3)).tokens_per_call.best == 4  # k + 1


def test_the_asked_share_of_the_kl_is_gone_and_less_kl_never_slows() -> None:
    trace = every_text()
    speedups = []
    for percent in (10, 50, 100):
        answer = what_if(trace, f"draft-kl=-{percent}%", ConstantRatio(0.1), rules=["token", "block"], k_max=3)
        assert [each.path for each in answer.drafts] == list(PATHS)
        for each in answer.drafts:
            assert each.kl == pytest.approx((1 - percent / 100) * _kl_along(trace, "geometric")(0.0), abs=1e-9)
            assert _kl_along(trace, each.path)(each.s) == pytest.approx(
                (1 - percent / 100) * _kl_along(trace, each.path)(0.0), abs=1e-9
            )
        speedups.append([each.best.speedup.best for each in answer.drafts])
        assert all(each.best.speedup.best > answer.now.speedup.best for each in answer.drafts)
    assert (np.diff(speedups, axis=0) >= 0).all()


def test_a_head_has_the_mixed_path_by_start() -> None:
    target = np.full(4, -1.0)
    starts = np.array([[-1.5, -3.0], [-1.5, -3.0], [-1.5, -3.0], [-1.5, -np.inf]])
    trace = Trace.from_log_probabilities([(target, starts[:, 0])])
    head = Trace({**trace.columns, "start_log_draft": starts}, trace.texts, {})
    better = _better_draft(head, "mixed", 0.5).columns["start_log_draft"]
    p, q = np.exp(-1.0), np.exp(starts)
    assert better[:3] == pytest.approx(np.log((p + q[:3]) / 2))
    assert better[3, 1] == -np.inf  # past the end
    assert _kl_along(head, "mixed")(0.0) == pytest.approx((4 * 0.5 + 3 * 2.0) / 7)
    with pytest.raises(TraceError, match="the trace has no kl, renyi"):
        _kl_along(head, "geometric")


def test_what_gives_no_kl_is_refused() -> None:
    never = Trace.from_log_probabilities([([-1.0, -1.0], [-1.0, -np.inf])])
    with pytest.raises(TraceError, match="the mean KL is infinite"):
        what_if(never, "draft-kl=-10%")
    foreign = Trace.from_log_probabilities([([-1.0, -1.0], [-0.5, -0.5])])
    with pytest.raises(TraceError, match=r"is -0\.5"):
        what_if(foreign, "draft-kl=-10%")
    with pytest.raises(SettingError, match="use token or block"):
        what_if(recorded(), "draft-kl=-10%", rules="race")
    given = Trace.from_log_probabilities([([-1.0] * 4, [-1.5] * 4)], provenance={"origin": GIVEN_TEXT})
    assert "were given" in what_if(given, "draft-kl=-10%").remarks[0]


# Costs


def test_each_c_has_the_best_setting_of_a_plan_at_that_c() -> None:
    trace, rules = recorded(), ["token", "block"]
    costs = what_if(trace, "c=0.05..0.4", rules=rules, k_max=6).costs
    assert [row.c for row in costs.rows] == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])
    for row in costs.rows:
        best = plan(trace, ConstantRatio(row.c), rules=rules, k_max=6, trees=False).best
        assert (row.rule, row.shape, row.speedup.best) == (best.rule.name, best.shape, pytest.approx(best.speedup.best))
    at, beyond = (
        plan(trace, ConstantRatio(costs.pays_below * by), rules=rules, k_max=6, trees=False).best.speedup.best
        for by in (1.0, 1.01)
    )
    assert at == pytest.approx(1.0, abs=1e-12)
    assert beyond < 1


def test_free_drafts_pay_at_every_c_and_counts_take_c_alone() -> None:
    assert what_if(recorded(), "c=0..1", rules="lookup", k_max=2).costs.pays_below == np.inf
    never = _cost_sweep([("", Chain(1), Interval.exact(1.0))], 0.1, 0.2)
    assert never.pays_below == 0
    rows = from_acceptance(0.8, k_max=8).rows
    assert what_if_counted(rows, "c=0.05..0.4").costs.rows[0].speedup.low > 2  # the sure end decides
    with pytest.raises(SettingError, match="counts and rates have no texts"):
        what_if_counted(rows, ["c=0.1..0.2", "prompts=2%"])


@pytest.mark.parametrize(
    "changes",
    [
        *("", "k=3", "c=0.4..0.1", "c=a..b", "c=0.1", "c=-1..2", "draft-kl=10%", "draft-kl=-0.1", "draft-kl=-101%"),
        *("prompts=0%", "prompts=two", "prompts=2", ["c=0..1", "c=0..2"], [], [3]),
    ],
)
def test_changes_that_are_written_otherwise_are_refused(changes: str | list[str]) -> None:
    with pytest.raises(SettingError):
        what_if_counted([], changes)


# Prompts. Each prompt has 100 tokens and a log-normal number of calls.

ALARM = 1e-7
"""Rate at which each statistical test here fails though nothing is wrong."""
CV = 0.2


def sums_of(rng: np.random.Generator, prompts: int) -> tuple[np.ndarray, np.ndarray]:
    return left_out(np.full(prompts, 100.0)), left_out(40 * np.exp(CV * rng.standard_normal(prompts)))


def asked(sums: tuple[np.ndarray, np.ndarray], wanted: float, change: Callable[[float], float] = float) -> int:
    variance, freedom = _relative_spread(*sums)
    return _needed(len(sums[0]) - 1, change(variance), freedom, wanted)


@pytest.mark.parametrize(("factor", "right"), [(1.0, True), (0.5, False)])
def test_as_many_prompts_as_are_asked_for_give_the_width(factor: float, right: bool) -> None:
    """The mean of 300 half-widths squared. The pilot of 4,000 prompts knows the variance to 2.3% (one deviation,
    log-normal values of this spread), the others add 0.6%; six deviations of both are 15%, a rate of 2e-9. With half
    the variance the mean is twice too large.
    """
    rng, wanted = np.random.default_rng(7), 0.03
    prompts = asked(sums_of(rng, 4000), wanted, lambda variance: factor * variance)
    halves = [np.log(interval.high / interval.best) for interval in (ratio(*sums_of(rng, prompts)) for _ in range(300))]
    assert (abs(np.mean(np.square(halves)) / np.log1p(wanted) ** 2 - 1) < 0.15) == right


@pytest.mark.parametrize(("more", "right"), [(1.0, True), (8.0, False)])
def test_the_range_of_the_number_holds_the_true_one(more: float, right: bool) -> None:
    """Of 400 pilots with 25 prompts at most 5% should miss, to the rate above; with too many degrees of freedom, which
    make the range too short, more do.
    """
    rng, wanted = np.random.default_rng(8), 0.01
    true = asked(sums_of(rng, 200_000), wanted)
    missed = 0
    for _ in range(400):
        variance, freedom = _relative_spread(*sums_of(rng, 25))
        low, _, high = _spread(more * freedom)
        ends: Sequence[int] = [_needed(25, variance * factor, freedom, wanted) for factor in (low, high)]
        missed += not ends[0] <= true <= ends[1]
    assert (missed <= binom.isf(ALARM, 400, 0.05)) == right


def test_prompts_of_a_trace() -> None:
    trace = recorded()
    answer = what_if(trace, "prompts=2%", ConstantRatio(0.1)).prompts
    best = plan(trace, ConstantRatio(0.1), rules="token", trees=False).best
    tokens = best.tokens_per_call
    assert (answer.shape, answer.tokens_per_call) == (best.shape, tokens)
    if tokens.high < best.shape.depth + 1:  # not cut
        assert answer.half_width == pytest.approx(tokens.high / tokens.best - 1)
    assert answer.needed.low <= answer.needed.best <= answer.needed.high
    assert (answer.needed.best > answer.prompts) == (answer.half_width > answer.wanted)
    alone = Trace.from_log_probabilities([([-1.0] * 4, [-1.5] * 4)])
    with pytest.raises(SettingError, match="one prompt"):
        what_if(alone, "prompts=2%")
