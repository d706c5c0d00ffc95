"""What a validation decodes is judged: every rule and shape stands, with the same expectation; wrong ones do not."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import pytest

from spectheory.drafting import Chain, Grown, KAry, Shape, Tree, read_stop
from spectheory.errors import SettingError, TraceError
from spectheory.judging import Judgement, judge
from spectheory.measure import MeasureSettings, ModelPair
from spectheory.measure.judged import judged_trace
from spectheory.measure.validation import JUDGE, Setting, Validation
from spectheory.measure.validation.run import _file_name, _write_logs, decoded_rounds
from spectheory.measure.validation.runs import compare_runs
from spectheory.reports import judgement_report
from spectheory.trace.calls import CallLog
from spectheory.trace.reading import read_evidence
from spectheory.verification.registry import path_rule
from tests.made_up import each
from tests.validation.validation_cases import HOW, PROMPTS, WARM

CHAINS = [
    *(
        Setting(rule, Chain(3))
        for rule in ("token", "block", "race", "argmax", "lookup", "ngram-vllm:min=1,max=2", "suffix:max=3")
    ),
    Setting(JUDGE, Chain(3), judged=True),
]
TREES = [
    *(Setting(rule, KAry((2, 2))) for rule in ("race", "topk", "recursive", "recursive-distinct")),
    Setting("race", Tree.from_paths([(1,), (2,), (1, 1), (2, 1), (2, 2)])),
    Setting("grown", Grown(4, 2, 3)),
]
STOPPED = [Setting(rule, Chain(4, stop=read_stop("token<0.4"))) for rule in ("token", "argmax")]
SAME = 1e-6
"""Expectations that two passes over the same tokens may differ by, in calls: single precision."""
ESTIMATED = "recursive-distinct"


def asked(temperature: float) -> MeasureSettings:
    return Validation((), (Chain(3),), (temperature,), HOW).at(temperature)


def logs(pair: ModelPair, settings: list[Setting], temperature: float, folder: Path) -> dict[Setting, CallLog]:
    """Every setting decoded, written and read."""
    how = asked(temperature)
    rounds = decoded_rounds(pair, PROMPTS[:4], settings, how, folder / "rounds.jsonl")
    _write_logs(pair, PROMPTS[:4], settings, how, rounds, folder)
    return {setting: CallLog.read(folder / f"{_file_name(setting)}.jsonl") for setting in settings}


def judged(pair: ModelPair, log: CallLog, **options: object) -> Judgement:
    read = partial(judged_trace, pair, log)
    return judge(log, read(), reread=read, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings", [CHAINS, pytest.param(TREES, marks=pytest.mark.evidence), STOPPED], ids=["chains", "trees", "stopped"]
)
def test_each_is_as_expected(settings: list[Setting], tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Refuted with probability 1e-3 each, 0.015 in all, with fixed seeds; expectations are those of the validation.

    The control is the next test. The estimated law is that of other readings, so its expectation is near.
    """
    rounds = decoded_rounds(tiny_pair, PROMPTS[:4], settings, asked(WARM), tmp_path / "rounds.jsonl")
    for setting, log in logs(tiny_pair, settings, WARM, tmp_path).items():
        judgement = judged(tiny_pair, log)
        assert judgement.stated == (setting.path_rule.name,), setting.name
        assert not judgement.refuted, (setting.name, judgement_report(judgement).headline)
        ours = compare_runs([one[setting.name] for one in rounds])
        calls = judgement.questioned[0].calls
        assert calls.counted == ours.counted
        near = 4 * ours.of_estimates if setting.rule == ESTIMATED else SAME
        assert calls.low == pytest.approx(ours.low, abs=near), setting.name
        assert calls.deviation == pytest.approx(ours.deviation, abs=near), setting.name
        assert bool(judgement.questioned[0].starts) != (setting.judged or setting.rule == ESTIMATED), setting.name


def test_wrong_rules_shapes_and_counts_are_refuted(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Another rule, another tree, a stopped chain read as one of k, and one call more in each text."""
    tree, chain, stopped = TREES[1], CHAINS[3], STOPPED[1]
    made = logs(tiny_pair, [tree, chain, stopped], WARM, tmp_path)
    assert judged(tiny_pair, made[tree], rules=[path_rule("race")]).refuted
    for setting, wrong in ((tree, {"shape": "2x1"}), (stopped, {"stop": None})):
        log = made[setting]
        assert judged(tiny_pair, dataclasses.replace(log, provenance={**log.provenance, **wrong})).refuted, wrong
    more = [dataclasses.replace(r, accepted=(), calls=(r.calls or 0) + 1) for r in made[chain].requests]
    assert judged(tiny_pair, dataclasses.replace(made[chain], requests=tuple(more))).refuted


def test_greedy_chains_and_grown_trees_are_exact(tiny_pair: ModelPair, tmp_path: Path) -> None:
    settings = [Setting("token", Chain(3)), Setting("lookup", Chain(2)), TREES[-1]]
    for log in logs(tiny_pair, settings, 0.0, tmp_path).values():
        judgement = judged(tiny_pair, log)
        assert not judgement.refuted
        assert judgement.questioned[0].calls.z == 0
    (log,) = logs(tiny_pair, [TREES[0]], 0.0, tmp_path / "tree").values()
    with pytest.raises(SettingError, match="tree 1 2 1-1 1-2 2-1 2-2 are judged at temperature 0: a draft has one"):
        judged(tiny_pair, log)


def test_a_trace_alone_has_no_estimated_law(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Other rules of trees are judged by it; without laws of ranks none is."""
    (log,) = logs(tiny_pair, [TREES[3]], WARM, tmp_path).values()
    trace = judged_trace(tiny_pair, log)
    with pytest.raises(TraceError, match="recursive-distinct is judged on trees from one trace"):
        judge(log, trace)
    judgement = judge(log, trace, rules=[path_rule("topk")])
    assert judgement.refuted
    assert ESTIMATED not in {one.rule for one in judgement.standings}
    bare = {name: trace.columns[name] for name in ("token", "log_target", "log_draft")}
    unnamed = dataclasses.replace(log, provenance={"shape": "2x2"})
    with pytest.raises(TraceError, match="the trace has no columns by which"):
        judge(unnamed, dataclasses.replace(trace, columns=bare))


def test_a_folder_of_logs_is_read_as_one_or_asks_which(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """As ``validate`` leaves them: `calls-T` holds a log for each setting."""
    (log,) = logs(tiny_pair, CHAINS[:1], WARM, tmp_path / "calls-1").values()
    (tmp_path / "calls-1" / "rounds.jsonl").unlink()
    assert read_evidence(tmp_path) == read_evidence(tmp_path / "calls-1") == log
    log.write(tmp_path / "calls-0" / "token.jsonl")
    with pytest.raises(TraceError, match=r"2 call logs \(calls-0/token.jsonl, calls-1/token-chain.*name its file"):
        read_evidence(tmp_path)


@each("shape", [Chain(3), KAry((2, 2)), Tree.from_paths([(1,) * (i + 1) for i in range(60)])])
def test_files_have_names_that_systems_take(shape: Shape) -> None:
    name = _file_name(Setting("race", shape))
    assert len(name) < 128
    assert not set(name) & set('<>:"/\\|?* ')
