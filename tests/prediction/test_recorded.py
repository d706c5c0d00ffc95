"""Recorded lengths: calls of every draft and k by walking the lists, and what other readings of a log miss."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft, check_comparable, engine_settings
from spectheory.deployment.ranking import rank_drafts
from spectheory.distributions import Sampling
from spectheory.drafting import Batch, Chain
from spectheory.errors import SettingError, TraceError
from spectheory.judging.readings import readings
from spectheory.measure import ModelPair
from spectheory.measure.decoders import Decoded, Method, decode
from spectheory.prediction import plan, predict
from spectheory.prediction.recorded import BEST, check_depth, free_part, recorded_rules
from spectheory.prediction.recorded_readings import _recut_share, recorded_readings
from spectheory.reports.notes import recorded_notes
from spectheory.trace import TextInfo, Trace, read_any
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.importers.evaluations import SPECDECODE_BENCH
from spectheory.verification import TokenVerification
from tests.toy_heads import with_head
from tests.trace.recorded_sample import DRAFTED, SAMPLE, copied

LINES: list[dict[str, Any]] = [json.loads(line) for line in SAMPLE.read_text().splitlines()]
DRAFTS = ["draft", "ngram", "suffix"]


def walked(lists: list[list[int]], k: int) -> int:
    """Calls of decoding texts whose accepted lengths, bonus included, are these: start by start."""
    calls = 0
    for lengths in lists:
        at = 0
        while at < len(lengths):
            at += min(lengths[at], k + 1)
            calls += 1
    return calls


def listed(name: str) -> list[list[int]]:
    """The lists of a draft of the sample, or the larger of all at each start."""
    if name == BEST:
        return [np.max([line[f"acc_{each}"]["acc_len"] for each in DRAFTS], axis=0).tolist() for line in LINES]
    return [line[f"acc_{name}"]["acc_len"] for line in LINES]


def of_lists(*lists: list[int], names: list[str] | None = None) -> Trace:
    """A trace of one text with a draft for each list of accepted drafts."""
    return Trace(
        {"recorded_match": np.array(lists).T}, (TextInfo("1", len(lists[0])),), {"recorded": names or ["eagle"]}
    )


def test_every_draft_and_length_is_exact() -> None:
    """Equal to walking the lists, as numbers of tokens over numbers of calls."""
    trace = SPECDECODE_BENCH.read(SAMPLE)
    assert isinstance(trace, Trace)
    rules = recorded_rules(trace)
    assert [rule.name for rule in rules] == [*DRAFTS, BEST]
    for rule in rules:
        for k in range(1, DRAFTED + 1):
            per_call = predict(trace, rule, Chain(k)).tokens_per_call.best
            assert per_call == pytest.approx(len(trace) / walked(listed(rule.name), k), rel=1e-14), (rule.name, k)


@pytest.mark.parametrize("seed", range(5))
def test_random_lists_are_exact(seed: int) -> None:
    """Lists that fall as they like and reach past the end of the text."""
    rng = np.random.default_rng(seed)
    lists = [rng.geometric(0.3, 60).clip(1, 9).tolist() for _ in range(4)]
    columns = {"recorded_match": np.concatenate(lists)[:, None] - 1}
    trace = Trace(columns, tuple(TextInfo(str(i), 60) for i in range(4)), {"recorded": ["eagle"]})
    (rule,) = recorded_rules(trace)
    for prediction in plan(trace).predictions:
        calls = walked(lists, prediction.shape.nodes)
        assert prediction.tokens_per_call.best == pytest.approx(240 / calls, rel=1e-14)
    assert len(plan(trace).predictions) == rule.most


def test_a_separate_draft_is_read_by_position_and_others_are_not() -> None:
    """A draft model's lengths fall by one from start to start; those of a draft that depends on the start do not."""
    trace = read_any(SAMPLE)
    readings = {(each.draft, each.k): each for each in recorded_readings(trace)}
    for k in range(1, DRAFTED + 1):
        assert readings["draft", k].by_position == readings["draft", k].by_start.best
    assert readings["draft", 5].recut == 1
    off = readings["suffix", 5]
    assert off.by_position > off.by_start.best * 1.02
    assert off.recut is not None
    assert off.recut < 0.9
    assert off.iid > off.by_start.best


def test_the_share_that_can_be_recut() -> None:
    (rule,) = recorded_rules(trace := of_lists([3, 2, 2, 1, 0, 3, 1]))
    assert rule.most == 3
    assert _recut_share(trace, rule) == 2 / 3  # the starts with 2, 2 and 1; one with 3 may have been cut
    none = of_lists([0, 0])
    assert _recut_share(none, recorded_rules(none)[0]) is None


def test_each_draft_is_known_to_its_own_longest_length() -> None:
    """A draft cut at 2 beside one of 4: nothing is said of longer calls, and its cut starts cut no other reading."""
    cut, full = [2, 2, 2, 1, 0], [4, 3, 2, 1, 0]
    columns = {"recorded_match": np.array([cut, full]).T}
    trace = Trace(columns, (TextInfo("1", 5),), {"recorded": ["cut", "full"]})
    assert {rule.name: rule.most for rule in recorded_rules(trace)} == {"cut": 2, "full": 4, BEST: 2}
    known = [(p.rule.name, p.shape.nodes) for p in plan(trace).predictions]
    assert sorted(known) == sorted(
        [*(("cut", k) for k in (1, 2)), *(("full", k) for k in range(1, 5)), (BEST, 1), (BEST, 2)]
    )
    readings = list(recorded_readings(trace))
    assert {each.recut for each in readings if each.draft != BEST} == {1.0}
    assert "cut 2, full 4" in recorded_notes({}, readings)[0]


@pytest.mark.parametrize("names", [["a", BEST], ["a\nb", "c"], ["", "c"], ["a", "a"]])
def test_names_that_cannot_be_told_apart_are_numbers(names: list[str]) -> None:
    trace = Trace({"recorded_match": np.array([[1, 0], [0, 0]])}, (TextInfo("1", 2),), {"recorded": names})
    assert [rule.name for rule in recorded_rules(trace)] == ["draft 1", "draft 2", BEST]


def test_the_sample_holds_what_its_tokens_say() -> None:
    """Both copied drafts from the token ids of the file; a list moved by one start is seen."""
    ids = [[line[name] for line in LINES] for name in ("prompt_token_ids", "generated_token_ids")]
    for name, lists in copied(*ids).items():
        assert lists == [line[name]["acc_len"] for line in LINES]
        assert [each[1:] for each in lists] != [each[:-1] for each in lists]


def test_hindsight_is_shown_and_never_best() -> None:
    """The better of both accepts more than each, and the best setting is one that can be run."""
    trace = read_any(SAMPLE)
    best = plan(trace)
    assert best.best.rule.name == "draft"
    assert max(p.tokens_per_call.best for p in best.of(BEST)) > best.best.tokens_per_call.best
    ranking = rank_drafts([Draft("log", trace, ConstantRatio(0.05))])
    assert [candidate.prediction.rule.name for candidate in ranking.candidates][-1] == BEST
    assert ranking.best.setting.startswith("recorded draft of log, k = ")
    assert engine_settings([Draft("log", trace, ConstantRatio(0.05))]) == []


def test_drafts_without_a_model_cost_no_pass() -> None:
    trace = read_any(SAMPLE)
    costs = {p.rule.name: p.speedup for p in plan(trace, ConstantRatio(0.5), shapes=[Chain(2)]).predictions}
    tokens = {p.rule.name: p.tokens_per_call.best for p in plan(trace, shapes=[Chain(2)]).predictions}
    for name, passes in (("ngram", 0), ("suffix", 0), ("draft", 2), (BEST, 2)):
        speedup = costs[name]
        assert speedup is not None
        assert speedup.best == pytest.approx(tokens[name] / (1 + 0.5 * passes))
    assert [rule.name for rule in recorded_rules(free_part(trace))] == ["ngram", "suffix", BEST]
    with pytest.raises(SettingError, match=r"costs of eagle are unknown.*give c, the cost"):
        free_part(of_lists([1, 0]))


def test_what_lengths_do_not_say_is_refused_in_one_line() -> None:
    trace, pair = read_any(SAMPLE), Trace.from_log_probabilities([([-1.0] * 9, [-1.2] * 9)] * 2)
    with pytest.raises(TraceError, match=r"rule 'token' is asked for, and the trace holds accepted lengths alone"):
        predict(trace, TokenVerification(), Chain(2))
    with pytest.raises(SettingError, match=r"chain of 9 copied tokens.*recorded up to 8"):
        predict(trace, recorded_rules(trace)[0], Chain(9))
    with pytest.raises(SettingError, match=r"judges one chain of drafts"):
        predict(trace, recorded_rules(trace)[0], Batch(2))
    with pytest.raises(SettingError, match=r"k_max is 17.*recorded to 8 drafts"):
        check_depth(trace, 17)
    assert (check_depth(trace, 16), check_depth(trace, 3), check_depth(pair, 40)) == (8, 3, 40)
    drafts = [Draft(name, each, ConstantRatio(0.1)) for name, each in (("log", trace), ("pair", pair))]
    with pytest.raises(SettingError, match=r"log holds accepted lengths of a log, pair a measured pair.*on its own"):
        check_comparable(drafts)


def test_lengths_of_a_head_hold_under_other_rules_at_temperature_0(tiny_pair: ModelPair) -> None:
    """Lengths that our decoder accepts from every start with argmax drafts give its calls under other rules, exactly.

    The control: at temperature 1 the decoder makes other calls, and lengths of such a log are refused.
    """
    pair, prompt, deepest, tokens = with_head(tiny_pair), torch.arange(9), 4, 40

    def decoded(rule: str, ids: torch.Tensor, k: int, count: int, temperature: float = 0.0) -> Decoded:
        how: dict[str, Any] = {"sampling": Sampling(temperature), "tokens": count, "stop_at_end": False, "seed": 3}
        return decode(pair, [ids], Method(rule, Chain(k)), **how)[0]

    text = decoded("argmax", prompt, 1, tokens + deepest + 1).output_ids.tolist()
    starts = (torch.cat([prompt, torch.tensor(text[:at], dtype=torch.int64)]) for at in range(tokens))
    accepted = [decoded("argmax", ids, deepest, deepest + 1).calls[0].accepted for ids in starts]
    assert len(set(accepted)) > 2
    columns, settings = {"recorded_match": np.array(accepted)[:, None]}, {"sampling": {"temperature": 0.0}}
    trace = Trace(columns, (TextInfo("1", tokens),), {"recorded": ["head"], "settings": settings})
    for rule in ("token", "block", "race"):
        for k in range(1, max(accepted) + 1):
            (known,) = plan(trace, rules=rule, shapes=[Chain(k)]).predictions
            assert known.rule.name == "head"
            calls = len(decoded(rule, prompt, k, tokens).calls)
            assert known.tokens_per_call.best == pytest.approx(tokens / calls, rel=1e-12), (rule, k)
    assert len(decoded("token", prompt, 2, tokens, 1.0).calls) != len(decoded("token", prompt, 2, tokens).calls)
    hot = replace(trace, provenance={"settings": {"sampling": {"temperature": 1.0}}})
    for unknown in (hot, replace(trace, provenance={})):
        with pytest.raises(TraceError, match="the rule 'token' is asked for, and the trace holds accepted lengths"):
            plan(unknown, rules="token")


def test_rules_that_may_accept_other_lengths_are_refused() -> None:
    """Copied and grown drafts, hybrids, rules that change the text, and one that accepts half of the right tokens."""
    trace = read_any(SAMPLE)
    asked, alone = (plan(trace, rules=rules, k_max=3).predictions for rules in ("all", None))
    assert asked == alone
    for rule in ("lookup", "suffix", "grown", "lookup>token", "relaxed:2,0.5", "thresholds:0.9,0.9", Half()):
        with pytest.raises(TraceError, match="and the trace holds accepted lengths alone"):
            plan(trace, rules=rule)
    assert plan(trace, rules=recorded_rules(trace)[:1], k_max=2).best.rule.name == "draft"
    drafts = [Draft("log", trace, ConstantRatio(0.05))]
    assert rank_drafts(drafts, rules=["token"]).best == rank_drafts(drafts).best


@dataclass(frozen=True)
class Half(TokenVerification):
    """Accepts half as often as token verification."""

    name: ClassVar[str] = "half"

    def acceptance(self, target: Any, draft: Any, k: int = 1) -> Any:  # noqa: D102
        return super().acceptance(target, draft, k) / 2


def test_a_trace_needs_scores_or_lengths(tmp_path: Path) -> None:
    text = (TextInfo("1", 2),)
    with pytest.raises(TraceError, match="lacks log_target, log_draft: both are required, or recorded lengths"):
        Trace({"lookup_match": np.zeros(2, np.int16)}, text)
    for bad in ([-1, 0], [2000, 0]):
        with pytest.raises(TraceError, match="recorded_match"):
            Trace({"recorded_match": np.array(bad)[:, None]}, text)
    trace = read_any(SAMPLE)
    trace.write(tmp_path / "trace.parquet")
    again = Trace.read(tmp_path)
    np.testing.assert_array_equal(again.columns["recorded_match"], trace.columns["recorded_match"])
    assert (again.recorded, again.provenance["recorded"]) == (True, DRAFTS)


def test_first_choices_of_drafts_that_depend_on_the_start_are_an_estimate() -> None:
    """Copied drafts at every start: runs at some k are outside the ends of another's, so these bound nothing.

    The control: the draft model of the same texts, whose runs are inside at every k.
    """
    outside = {"draft": 0, "suffix": 0}
    for name in outside:
        logs = {k: CallLog(tuple(run_at(each, k) for each in listed(name)), k=k) for k in (1, 2, 5, 8)}
        for logged, log in logs.items():
            rows = readings(log, k_max=8).rows
            for k in logs.keys() - {logged}:
                true, ends = readings(logs[k]).counted.tokens_per_call.best, rows[k - 1].first_choices
                assert ends is not None
                assert ends.kind == "estimate"
                outside[name] += not ends.low - 1e-9 <= true <= ends.high + 1e-9
    assert outside["draft"] == 0
    assert outside["suffix"] > 3


def run_at(lengths: list[int], k: int) -> Request:
    """The calls of k drafts over a text with these accepted lengths, bonus included, at every start."""
    accepted, at = [], 0
    while at < len(lengths):
        accepted.append(min(lengths[at] - 1, k, len(lengths) - at - 1))
        at += accepted[-1] + 1
    return Request(str(lengths), accepted=tuple(accepted), drafted=(k,) * len(accepted))
