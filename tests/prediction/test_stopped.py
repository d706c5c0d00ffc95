"""Chains that a stopping rule may end as shapes of predict and plan: calls, drafts, seconds, sweeps, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spectheory.cost import ConstantRatio, CostModel, LatencyTable
from spectheory.cost.table import LoopTime
from spectheory.drafting import Chain, Parallel, Shape, StoppingRule, read_stop
from spectheory.drafting.stopping import STOPPING, EntropyAbove, TokenBelow, TopBelow
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction import plan, predict
from spectheory.prediction.adaptive import _stopping_grid, adaptive_worth, sweep
from spectheory.prediction.call_times import _stopped_seconds, _stopped_speedup
from spectheory.prediction.over_prompts import Prompts, reach
from spectheory.prediction.paths import calls_of_texts, visits_of
from spectheory.prediction.plan_answer import _draft_inside_target
from spectheory.prediction.shape_calls import calls_by_shape, survival_of
from spectheory.prediction.stopped import Drafted
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PATH_RULES
from spectheory.verification.by_start import by_position
from tests.made_up import all_refused, each, head_columns, trace
from tests.prediction.toy_pair import TOKENS, K, Pair, decoded

Z_FALSE_ALARM = 5.0
"""Standard deviations: 6e-7 of normal numbers are further off; four tests of 500 prompts, which are nearly normal."""
NEVER = read_stop("token<1e-9")
SAMPLED = {"settings": {"sampling": {"temperature": 1.0}}}
GREEDY = {"settings": {"sampling": {"temperature": 0}}}
TOKEN = PATH_RULES["token"]


def passes(provenance: dict[str, dict[str, str]] | None = None, loop: LoopTime | None = None) -> LatencyTable:
    target = {m: Interval(0.9 + m / 10, 1 + m / 10, 1.1 + m / 10, "statistical") for m in (1, 2, 4, 8)}
    draft = {m: Interval.exact(0.1 + m / 100) for m in (1, 2, 12)}
    return LatencyTable(target, draft, 64, provenance or {}, loop)


COSTS = {
    "ratio": ConstantRatio(0.1),
    "passes": passes(),
    "loop": passes(loop=LoopTime(plain=0.1, call=0.2, draft_pass=0.01, node=0.02, tree=0.0)).looped,
    "head": passes({"draft": {"kind": "eagle3"}}),
}


def head(provenance: dict[str, object] = SAMPLED, prompts: int = 10) -> Trace:
    texts = tuple(TextInfo(f"t{i}", 20, prompt=f"p{i}") for i in range(prompts))
    return Trace(head_columns(20 * prompts, 6), texts, provenance)


@each("rule", ["token", "block", "race", "argmax"])
@each("cost", COSTS.values())
@each("provenance", [SAMPLED, {**SAMPLED, "draft": {"parallel": True}}])
def test_a_threshold_that_is_never_reached_is_the_fixed_chain(
    rule: str, cost: CostModel, provenance: dict[str, object]
) -> None:
    """Calls to the last digits, and the most that is drafted: k, or r - 1 with r tokens to go.

    Calls that all draft k take the time of a fixed chain, with both ends of its interval.
    """
    given = head(provenance)
    left, prompts = np.tile(np.arange(20, 0, -1), 10), Prompts(given.texts)
    for k in (1, 4, 6):
        fixed = predict(given, PATH_RULES[rule], Chain(k), cost)
        (shape_calls,) = calls_by_shape(given, PATH_RULES[rule], [Chain(k, stop=NEVER)])
        ((shape, lengths),) = shape_calls.lengths
        visits = visits_of(PATH_RULES[rule].path_survival(given.columns, k), given.lengths)
        most = [visits[left > j].sum() for j in range(1, k + 1)]
        np.testing.assert_allclose(lengths.high.sum(axis=0), most, rtol=1e-12)
        np.testing.assert_allclose(lengths.stopping, lengths.high, rtol=1e-12)
        assert len(given) / lengths.calls.sum() == pytest.approx(fixed.tokens_per_call.best, rel=1e-12)
        made = np.repeat(lengths.calls[:, None], k, axis=1)
        all_k = [(shape, replace(lengths, low=made, going=made, stopping=made, high=made))]
        other = _stopped_speedup(prompts, all_k, prompts.sum(given.lengths), cost, tuple(cost.errors()))
        one = fixed.speedup
        assert one is not None
        assert [other.low, other.best, other.high] == pytest.approx([one.low, one.best, one.high], rel=1e-12)


def test_seconds_of_a_call_by_its_drafts() -> None:
    """A token that is not kept costs the pass that looked at it; a parallel head makes one pass in all."""
    cost = ConstantRatio(0.1)
    kept, looked = Chain(3, stop=read_stop("token<0.4")), Chain(3, stop=read_stop("top<0.4"))
    assert _stopped_seconds(cost, kept).tolist() == pytest.approx([1.0, 1.1, 1.2, 1.3, 0.0])
    assert _stopped_seconds(cost, looked).tolist() == pytest.approx([1.1, 1.2, 1.3, 1.3, 0.0])
    assert _stopped_seconds(cost, looked.by(Parallel())).tolist() == pytest.approx([1.1] * 4 + [0.0])
    target = [passes().target_pass(m).best for m in (1, 2, 3, 4)]
    drafts = np.array([1, 2, 3, 3]) * passes().draft_pass(1).best
    assert _stopped_seconds(passes(), looked)[:-1].tolist() == pytest.approx((np.array(target) + drafts).tolist())


@each("stop", ["token<0.4", "top<0.6", "entropy>0.5"])
@each("prefill", [False, True])
def test_calls_are_those_of_the_survival(stop: str, prefill: bool) -> None:
    """By start and by position, for every rule whose drafts a model makes; a threshold costs calls."""
    for given in (head(), Trace(by_position(head().columns), head().texts, SAMPLED)):
        shape = Chain(given.depth or 6, stop=read_stop(stop))
        for name in ("token", "block", "race", "independent", "argmax", "recursive", "topk"):
            rule = PATH_RULES[name]
            if rule.missing_columns(given.columns):
                continue
            survival, _ = survival_of(rule, shape, given.columns)
            calls = calls_of_texts(survival, given.lengths, prefill_emits_token=prefill).expected.sum()
            prediction = predict(given, rule, shape, prefill_emits_token=prefill)
            assert prediction.tokens_per_call.best == pytest.approx(len(given) / calls, rel=1e-12)
            fixed = predict(given, rule, Chain(shape.k), prefill_emits_token=prefill)
            assert prediction.tokens_per_call.best < fixed.tokens_per_call.best


def sampled(pair: Pair, prompts: int, seed: int, provenance: dict[str, object]) -> Trace:
    texts, masses = zip(*pair.texts(), strict=True)
    numbers = np.random.default_rng(seed).choice(len(texts), prompts, p=np.array(masses) / sum(masses))
    parts = [pair.trace(texts[i]) for i in numbers]
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns}
    return Trace(columns, tuple(TextInfo(str(i), TOKENS) for i in range(prompts)), provenance)


@pytest.mark.parametrize("rule", ["token", "argmax"])
@pytest.mark.parametrize("stop", ["token<0.5", "top<0.6"])
def test_drafted_tokens_of_sampled_texts(rule: str, stop: str) -> None:
    """The estimate from 500 texts is near the truth of all texts and drafts."""
    pair = Pair(4)
    at_least, calls, _ = decoded(pair, read_stop(stop), chosen=rule == "argmax")
    drafted = predict(sampled(pair, 500, 1, SAMPLED), PATH_RULES[rule], Chain(K, stop=read_stop(stop))).drafted
    assert drafted is not None
    deviation = (drafted.high - drafted.low) / (2 * reach(499))
    assert abs(drafted.best - at_least.sum() / calls) < Z_FALSE_ALARM * deviation


def test_at_temperature_0_the_range_is_that_of_the_certain_bounds() -> None:
    """Texts say what is drafted until the first mismatch; after it a call may draft on or not."""
    right = np.array([[True, True, False, True, True], [True, False, True, True, True]])
    log_draft = np.where(right, 0.0, -np.inf).ravel()
    columns = {"log_target": np.zeros(10), "log_draft": log_draft, "draft_top": np.tile([0.9, 0.5, 0.9, 0.9, 0.2], 2)}
    given = Trace(columns, (TextInfo("a", 5), TextInfo("b", 5)), GREEDY)
    prediction = predict(given, TOKEN, Chain(2, stop=read_stop("top<0.6")), ConstantRatio(0.1))
    # Calls of a: 1 draft, accepted (stopped); then a mismatch, 1 or 2 drafts; then 1 left token, 1 draft (stops).
    # Calls of b: 1 draft, accepted; then 2 accepted drafts.
    assert prediction.tokens_per_call.best == pytest.approx(10 / 5)
    assert prediction.drafted is not None
    assert prediction.drafted.kind == "bound"
    assert prediction.drafted.best == pytest.approx((6 / 5 + 7 / 5) / 2)
    both = plan(given, ConstantRatio(0.1), rules=[TOKEN], shapes=[Chain(2), prediction.wanted])
    assert both.best.shape == Chain(2), "a range of bounds counts with its low end"
    alone = predict(Trace({n: c[:5] for n, c in columns.items()}, given.texts[:1], GREEDY), TOKEN, prediction.wanted)
    assert alone.drafted is not None
    assert [alone.drafted.low, alone.drafted.high] == pytest.approx([3 / 3, 4 / 3]), "one prompt: certain of the text"


@each("ended", [False, True])
def test_a_call_drafts_one_token_less_than_the_text_could_still_get(ended: bool) -> None:
    """Right drafts, three a call: a text cut at 3 tokens takes one call on 2, and one at 5 a second call on none.

    A text that ended by itself had room for more: its drafts end with its last token.
    """
    for tokens, calls in ((3, [[2], [3]]), (5, [[3, 0], [3, 1]])):
        given = Trace(
            {"log_target": np.zeros(tokens), "log_draft": np.zeros(tokens)}, (TextInfo("a", tokens, ended=ended),)
        )
        lengths = Drafted(given, TOKEN, 3).lengths_of_calls(np.full(tokens, 3), keeps=True)
        made = [sum(each >= j for each in calls[ended]) for j in (1, 2, 3)]
        for name in ("low", "going", "stopping", "high"):
            assert getattr(lengths, name)[0].tolist() == made, name
        drafted = predict(given, TOKEN, Chain(3, stop=NEVER)).drafted
        assert drafted is not None
        assert (drafted.low, drafted.best, drafted.high) == (sum(made) / len(calls[ended]),) * 3


def test_seconds_lie_between_those_of_the_fewest_and_the_most_drafts() -> None:
    """A first draft that is wrong: 1 to 3 drafts, 2 or 3 passes. Later calls look once and draft nothing."""
    columns = {"log_target": np.zeros(4), "log_draft": np.array([-np.inf, 0.0, 0.0, 0.0])}
    given = Trace({**columns, "draft_top": np.array([0.9, 0.2, 0.2, 0.2])}, (TextInfo("a", 4),), GREEDY)
    speedup = predict(given, TOKEN, Chain(3, stop=read_stop("top<0.6")), ConstantRatio(0.1)).speedup
    assert speedup is not None
    assert [speedup.low, speedup.high] == pytest.approx([4 / (1.3 + 3 * 1.1), 4 / (1.2 + 3 * 1.1)])


@each("settings", [{"top_k": 5}, {"top_p": 0.9}, {"min_p": 0.1}, {"temperature": 0}, None])
def test_what_the_target_can_output_is_known_without_filters_alone(settings: dict[str, float] | None) -> None:
    of = {} if settings is None else {"settings": {"sampling": {"temperature": 1.0, **settings}}}
    assert _draft_inside_target(TOKEN, head(SAMPLED))
    assert not _draft_inside_target(TOKEN, head(of))
    assert not _draft_inside_target(PATH_RULES["greedy"], head(SAMPLED))


@each("kind", [TokenBelow, TopBelow, EntropyAbove])
def test_a_value_that_equals_the_threshold_does_not_stop(kind: type[StoppingRule]) -> None:
    """Along a text and in a decoding alike: 1/2 is no less than 1/2, and an entropy of log 2 no more than log 2."""
    equal = np.log(2) if kind is EntropyAbove else 0.5
    columns = {kind.reads: np.array([np.log(0.5) if kind is TokenBelow else equal])}
    for at, stops in ((equal, False), (0.99 * equal, kind is EntropyAbove), (1.01 * equal, kind is not EntropyAbove)):
        rule = kind(at)
        assert rule.stops(columns).tolist() == [stops]
        assert rule.stops_at(np.array([0.5, 0.5]), 0) is stops


def two_kinds() -> Trace:
    """Prompts in four parts: in the first, long one every draft is wrong, in the others every draft is right."""
    lengths = [120 if i % 4 == 0 else 20 for i in range(8)]
    right = np.concatenate([np.full(length, length == 20) for length in lengths])
    columns = {"log_target": np.zeros(len(right)), "log_draft": np.where(right, 0.0, -np.inf)}
    columns |= {"draft_top": np.full(len(right), 0.5)}
    return Trace(columns, tuple(TextInfo(f"p{i}", length) for i, length in enumerate(lengths)), GREEDY)


def test_a_prompt_is_scored_with_the_rule_that_is_best_on_others() -> None:
    """Wrong drafts are best left out, right ones best made: the first part gets the choice of the others."""
    given, always = two_kinds(), read_stop("top<0.6")
    best = sweep(given, TOKEN, 4, [always, NEVER], ConstantRatio(0.2))
    of = {shape.stop: calls.calls > 0 for shape, calls in best.lengths}
    assert best.held_out
    assert best.shape == Chain(4, stop=always)
    assert of[NEVER].tolist() == [i % 4 == 0 for i in range(8)]
    assert of[always].tolist() == [i % 4 != 0 for i in range(8)]
    assert best.calls.expected.tolist() == pytest.approx([120 if i % 4 == 0 else 20 for i in range(8)])


class DearReading(CostModel):
    """A call takes one second, and two more for each accepted token that its draft reads."""

    reads_accepted = True

    def target_step(self) -> Interval:  # noqa: D102
        return Interval.exact(1)

    def call(self, shape: Shape, full_share: float = 0.0) -> Interval:  # noqa: D102
        return Interval.exact(1 + 2 * full_share)


def test_thresholds_are_chosen_by_what_the_draft_reads() -> None:
    """Every draft is right, and reading one takes longer than a call: no draft is best."""
    columns = {"log_target": np.zeros(160), "log_draft": np.zeros(160), "draft_top": np.full(160, 0.5)}
    given = Trace(columns, tuple(TextInfo(f"p{i}", 20) for i in range(8)), GREEDY)
    always = read_stop("top<0.6")
    assert sweep(given, TOKEN, 4, [always, NEVER], DearReading()).shape == Chain(4, stop=always)


def test_what_adapting_is_worth() -> None:
    """The sweep has rules of all kinds; both lengths stay below the limit where all is certain."""
    given = two_kinds()
    answer = adaptive_worth(given, TOKEN, 4, ConstantRatio(0.2), thresholds=4)
    assert answer.fixed.speedup is not None
    assert answer.stopped.speedup is not None
    assert max(answer.fixed.speedup.best, answer.stopped.speedup.best) <= answer.limit.best + 1e-12
    assert answer.worth == pytest.approx(answer.limit.best / answer.fixed.speedup.best - 1)
    # Right drafts: 4 calls of 4 drafts and 5 tokens; wrong ones: plain steps.
    assert answer.limit.best == pytest.approx(360 / (240 + 6 * 4 * 1.8 - 0))
    assert {type(stop).name for stop in _stopping_grid(head(), 4)} == {kind.name for kind in STOPPING}
    without = Trace({n: c for n, c in head().columns.items() if "draft_top" not in n}, head().texts)
    assert {type(stop).name for stop in _stopping_grid(without, 4)} == {"token", "entropy", "confidence"}


def stopped(rule: str, given: Trace, stop: str = "token<0.4") -> None:
    plan(given, rules=[PATH_RULES[rule]], shapes=[Chain(3, stop=read_stop(stop))])


OLD = Trace({n: c for n, c in head().columns.items() if "draft_top" not in n}, head().texts)
FAR = Trace.from_log_probabilities([([-800.0, -1.0, -1.0], [-1.0, -1.0, -1.0])] * 2)
LOOKUP = Trace(
    {**trace(20).columns, "lookup_match": np.ones(20, int), "lookup_drafted": np.ones(20, int)}, trace(20).texts
)

test_refusals = all_refused(
    {
        "copied drafts": (lambda: stopped("lookup", LOOKUP), SettingError, "pmfs of a draft that a model makes"),
        "old traces": (lambda: stopped("token", OLD, "top<0.4"), TraceError, "the trace has no start_draft_top"),
        "by position": (lambda: stopped("token", FAR, "entropy>1"), TraceError, "the trace has no draft_entropy"),
        "infinite weights": (lambda: stopped("token", FAR), TraceError, "likelihood ratio of 1 drafts from token 1"),
        "few prompts": (
            lambda: adaptive_worth(head(prompts=7), TOKEN, 3, ConstantRatio(0.1)),
            SettingError,
            "over 7 prompts: needs 8",
        ),
    }
)
