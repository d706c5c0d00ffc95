"""The first screen: does it pay, which setting, how sure, why no more, what next; in 24 lines of 80 letters."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spectheory.cli import console, main
from spectheory.cost import ConstantRatio, LatencyTable, LoopTime
from spectheory.deployment import Draft, deployable
from spectheory.deployment import plan as deployed
from spectheory.deployment.next_steps import next_steps, why_not_more
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction import plan, predict
from spectheory.trace import Trace
from spectheory.trace.counters import Counters
from spectheory.trace.samples import PAIR
from tests.cli.plan_cases import measured
from tests.cost.roofline_cases import PUBLISHED
from tests.made_up import each

WIDTH, HEIGHT = 80, 24
Screen = Callable[..., list[str]]


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Screen:
    """What a command prints on a terminal of 80 letters, in the folder of files; lines to paste wrap by themselves."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> list[str]:
        monkeypatch.setattr(console.answers, "_width", WIDTH)
        assert main(list(words)) in (0, 1)
        lines = capsys.readouterr().out.splitlines()
        return [line[at : at + WIDTH] for line in lines for at in range(0, max(len(line), 1), WIDTH)]

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Counters(calls=100, drafted=300, accepted=190, survival=(0.8, 0.6, 0.5), k=3).write(tmp_path / "counters.json")
    head, file = Trace.read(measured(tmp_path / "head") / "trace.parquet"), tmp_path / "head" / "trace.parquet"
    replace(head, provenance={**head.provenance, "draft": {"name": "head", "kind": "eagle3"}}).write(file)
    for name, published in (("large", "meta-llama/Llama-3.1-8B"), ("small", "meta-llama/Llama-3.2-1B")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(PUBLISHED[published][0]), encoding="utf-8")
    return measured(tmp_path / "pair")


QUESTIONS = {
    "trace": ["predict", "PAIR"],
    "trace, c": ["predict", "PAIR", "--c", "0.1"],
    "counters": ["predict", "AT/counters.json", "--c", "0.1"],
    "plan": ["plan", "PAIR"],
    "head": ["predict", "AT/head"],
    "plan of hardware": [
        *["plan", "PAIR", "--hardware", "H100-SXM", "--batch", "32", "--context", "4096"],
        *["--target-architecture", "AT/large", "--draft-architecture", "AT/small"],
    ],
    "plan of drafts": ["plan", "--trace", "small=PAIR", "--trace", "head=AT/head"],
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_first_screen_says_what_to_run_and_what_next(name: str, folder: Path, screen: Screen) -> None:
    lines = screen(
        *(word.replace("PAIR", folder.name).removeprefix("AT/").replace("=AT/", "=") for word in QUESTIONS[name])
    )
    assert len(lines) < HEIGHT, "and the prompt"
    assert lines[0].startswith(("Pays", "May pay", "Do not speculate", "No ")), "does it pay, which setting"
    assert "x to " in lines[1] or "estimate" in lines[1], "how sure"
    whole = " ".join(lines)
    assert "Why not more: " in whole
    assert "Next: " in whole
    if "counters" not in name:
        assert "To run it (" in whole
        assert ("vllm" in lines[0] and "block" in lines[0]) == ("model runner V2, the default on GPUs" in whole)


@pytest.mark.parametrize("command", ["predict", "plan"])
def test_the_setting_is_pasted_with_and_without_all(command: str, folder: Path, screen: Screen) -> None:
    for more in ([], ["--all"]):
        assert any(line.startswith("vllm serve ") for line in screen(command, str(folder), *more))


def test_a_tree_leads_a_plan_of_chains_alone(folder: Path, screen: Screen) -> None:
    """SGLang's trees are the fastest that it runs, and no tree was asked for."""
    lines = screen("predict", str(folder), "--engine", "sglang", "--shape", "chain", "--k-max", "4")
    assert "sglang, topk verification, tree of" in lines[0]
    assert any(line.startswith("Next: ") for line in lines)


def test_an_uncertain_setting_may_pay(folder: Path, screen: Screen) -> None:
    """A draft step takes up to three plain steps: the interval holds 1."""
    draft, step = Interval(0.05, 0.4, 3.0, "statistical"), Interval.exact(1.0)
    LatencyTable({1: step, 33: step}, {1: draft, 2: draft}, 64).write(folder / "latency.json")
    assert screen("predict", str(folder), "--k-max", "4")[0].startswith("May pay: vllm")


def steps_of(cost: ConstantRatio | LatencyTable, k_max: int) -> list[str]:
    trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.1] * 40), ([-1.0] * 40, [-1.0] * 40)])
    answer = plan(trace, cost, rules="token", k_max=k_max)
    return list(next_steps(answer.best, cost, tried=k_max, prompts=2, trace="here"))


def test_next_steps_follow_the_answer() -> None:
    """A longer k where the longest is best, what was timed where that is the end, c where it is a guess, a draft."""
    assert any("set --k-max 8" in step for step in steps_of(ConstantRatio(0.001), 4))
    assert not any("--k-max" in step for step in steps_of(ConstantRatio(0.5), 8))
    assert any("guessed c" in step for step in steps_of(ConstantRatio(0.1), 4))
    assert not any("guessed c" in step for step in steps_of(ConstantRatio(0.0), 4)), "free drafts are no guess"
    assert "better draft" in steps_of(ConstantRatio(3.0), 4)[0]
    timed = LatencyTable(
        {m: Interval.exact(1.0) for m in (1, 5)}, {1: Interval.exact(1e-3), 2: Interval.exact(1e-3)}, 8
    )
    assert "longest that was timed" in steps_of(timed, 4)[0]
    assert not any("guessed c" in step for step in steps_of(timed, 4))
    assert steps_of(timed, 4)[-1].endswith("spectheory predict here --where")


def test_why_not_more_has_the_speed_ups_of_better_drafts() -> None:
    """Of four drafts a call at c = 1/4: 2.5 plain steps' worth if all are accepted, the tokens themselves if free."""
    trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    cost = ConstantRatio(0.25)
    best = next(p for p in plan(trace, cost, rules="token", k_max=4).predictions if p.shape == Chain(4))
    said = why_not_more(best, cost)
    assert f"{best.acceptance.best:.0%} of first drafts are accepted (if all drafts were: 2.50x)" in said
    assert f"drafting takes 50% of a call (if free: {best.tokens_per_call.best:.2f}x)" in said
    assert best.limits.decoding is not None
    assert f"any lossless rule with this draft, k = 4: {best.limits.decoding.best:.2f} tokens" in said
    assert why_not_more(best, None) == ""


def test_drafting_counts_the_loop_around_draft_passes() -> None:
    """Passes of 1 and 0.1, a loop of 0.3 a call with drafts: free drafts save all but a step and what copying takes."""
    trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    step, draft = Interval.exact(1.0), Interval.exact(0.1)
    loop = LoopTime(plain=0.1, call=0.2, draft_pass=0.05, node=0.0, tree=0.0)
    cost = LatencyTable({1: step, 3: step}, {1: draft, 2: draft}, 8, loop=loop).looped
    best = next(p for p in plan(trace, cost, rules="token", k_max=2).predictions if p.shape == Chain(2))
    free, call = 1 + 0.1, 1 + 2 * 0.1 + 0.2 + 2 * 0.05
    said = why_not_more(best, cost)
    assert f"drafting takes {1 - free / call:.0%} of a call (if free: {best.tokens_per_call.best:.2f}x)" in said


@each("draft", [{}, {"kind": "eagle3"}])
def test_if_all_drafts_were_accepted_is_what_a_perfect_draft_gives(draft: dict[str, str]) -> None:
    """Its first pass is on two tokens, of a head on five, which take time here. Texts end: 1 call in 800."""
    perfect = Trace.from_log_probabilities([([-1.0] * 4000, [-1.0] * 4000)] * 2)
    timed = {m: Interval.exact(0.1 * m) for m in (1, 2, 8)}
    cost = LatencyTable({m: Interval.exact(1.0) for m in (1, 8)}, timed, 64, {"draft": draft})
    best = predict(perfect, "token", Chain(4), cost)
    assert best.speedup is not None
    assert f"(if all drafts were: {best.speedup.best:.2f}x)" in why_not_more(best, cost)
    assert f"{best.speedup.best:.2f}" != f"{5 / 1.4:.2f}"


def test_settings_are_of_what_was_asked() -> None:
    """Engines have the stopping rules and the prompt's token of the plan whose settings they are."""
    trace, cost = Trace.read(PAIR).in_memory(), ConstantRatio(0.3)
    asked = plan(trace, cost, rules="token", stops=["token<0.2"], prefill_emits_token=True)
    (settings,) = deployable(asked, trace, ["transformers"])
    assert settings.candidate.prediction == asked.best
    assert str(asked.best.shape.stop) == "token<0.2"
    other = replace(asked, prefill_emits_token=False)
    assert deployable(other, trace, ["transformers"])[0].candidate.prediction != asked.best, "the control"


def test_vllm_on_a_cpu_is_warned_of(folder: Path, screen: Screen) -> None:
    for where, warned in (("builtin:", True), (str(folder), False)):
        said = " ".join(screen("predict", where, "--engine", "vllm"))
        assert ("its CPU build writes wrong text" in " ".join(said.split())) is warned


def test_a_chain_that_stops_is_not_timed_as_one_that_does_not() -> None:
    found = plan(Trace.read(PAIR).in_memory(), ConstantRatio(0.2), rules="token", stops=["token<0.6"], k_max=8)
    stopped = next(each for each in found.predictions if each.shape.stop)
    assert why_not_more(stopped, found.cost).endswith("of first drafts are accepted")


def test_a_head_is_tried_as_deep_as_it_was_recorded() -> None:
    """A larger --k-max needs another measurement, and is not asked of a head that drafts no more."""
    trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.1] * 40), ([-1.0] * 40, [-1.0] * 40)])
    cost = ConstantRatio(0.001)
    best = plan(trace, cost, rules="token", k_max=4).best
    for deepest, said in ((None, "--depth 8"), (6, "--depth 6"), (4, "")):
        known = replace(best, provenance={"settings": {"depth": 4}, "draft": {"deepest": deepest}})
        steps = [step for step in next_steps(known, cost, tried=4, prompts=2) if "recorded" in step]
        assert steps == [f"k = 4 is the deepest that was recorded of this head: measure it with {said}"] * bool(said)


def test_rules_and_engines_are_not_asked_together(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("predict", "plan"):
        assert main([command, "builtin:", "--rule", "token", "--engine", "vllm"]) == 2
        assert "--rule and --engine are both given" in capsys.readouterr().err
    with pytest.raises(SettingError, match="rules and engines are both given"):
        deployed([Draft("pair", Trace.read(PAIR), ConstantRatio(0.1))], rules=["token"], engines=["vllm"])


def test_an_engine_without_settings_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "builtin:", "--engine", "openvino", "--shape", "chain", "--k-max", "2"]) == 0
    assert "no settings of openvino" in capsys.readouterr().err
