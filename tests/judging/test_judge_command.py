"""``spectheory judge`` from its files to its answer: statuses, tables, JSON, and bad input in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import console, main
from spectheory.errors import TextError, TraceError
from spectheory.judging.judgement import judge
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters
from spectheory.verification.registry import path_rule
from tests.commands import answer
from tests.commands import refused as refused_line
from tests.judging.toy_engines import ToyEngine, dead_beyond, read, toy_pair
from tests.made_up import all_refused, each

PAIR = toy_pair(3)
ENGINE = ToyEngine(PAIR)
LOG = ENGINE.log(40)
TRACE = read(PAIR, LOG)


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., list[str]]:
    """A log and the trace of its texts, as files."""

    def write(log: CallLog = LOG, trace: Trace | None = None) -> list[str]:
        log.write(tmp_path / "calls.jsonl")
        (trace or read(PAIR, log)).write(tmp_path / "trace.parquet")
        return [str(tmp_path / "calls.jsonl"), str(tmp_path / "trace.parquet")]

    return write


Files = Callable[..., list[str]]


def answered(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> dict[str, Any]:
    return answer(capsys, "judge", *arguments, status=status)


def test_the_answer_begins_with_the_rule(
    files: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.answers, "_width", 100)
    assert main(["judge", *files(), "--all"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Counts fit rule token: ")
    assert max(map(len, out.splitlines())) <= 100
    for words in ("refuted: block, argmax, race", "recursive-distinct", "at known starts", "Is the output right?"):
        assert words in " ".join(out.split()), words


def test_the_json_has_counts_expectations_and_verdicts(
    files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = answered(capsys, 0, *files(), "--out", str(tmp_path / "out"))
    assert content["fitting"] == ["token"]
    assert (content["refuted"], content["output_refuted"], content["causes"]) == (False, False, [])
    calls = content["rules"][0]["calls"]
    assert calls["counted"] == sum(request.calls or 0 for request in LOG.requests)
    assert calls["z"] == pytest.approx((calls["counted"] - calls["expected"]["low"]) / calls["deviation"])
    assert [one["calls"]["z"] for one in content["rules"] if one["rule"] == "argmax"] == [None], "infinite"
    assert json.loads((tmp_path / "out" / "judgement.json").read_text()) == content


def test_a_stated_rule_that_does_not_run_is_status_1(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    content = answered(capsys, 1, *files(ToyEngine(PAIR, "argmax").log(40)), "--rule", "token")
    assert content["headline"].startswith("Rule token is REFUTED: ")
    assert "; argmax fits" in content["headline"]
    assert [cause["cause"] for cause in content["causes"]] == ["argmax drafts"]
    content = answered(capsys, 1, *files(replace(ENGINE, bend=dead_beyond(1)).log(40)))
    assert content["headline"].startswith("NO rule fits the counts")
    assert [cause["cause"] for cause in content["causes"]] == ["dead beyond a depth"]


def test_output_that_is_no_sample_is_status_1(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """The same texts read by another target: the counts of independent match depend on the draft alone."""
    log = ToyEngine(PAIR, "independent").log(40)
    other = replace(toy_pair(4), draft=PAIR.draft)
    content = answered(capsys, 1, *files(log, read(other, log)), "--rule", "independent")
    assert (content["refuted"], content["output_refuted"]) == (False, True)
    assert "Output: REFUTED" in content["headline"]


def test_temperature_0(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    content = answered(capsys, 0, *files(ToyEngine(PAIR, "greedy").log(20)))
    assert content["fitting"] == ["greedy"]
    assert not content["output_refuted"]
    content = answered(capsys, 0, *files(ToyEngine(PAIR, "greedy").log(20)), "--rule", "token")
    assert content["stated"] == ["greedy"], "greedy text has one rule"


def test_totals_beside_texts(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = replace(LOG, requests=tuple(replace(r, accepted=(), drafted=(), calls=None) for r in LOG.requests))
    calls = sum(request.calls or 0 for request in LOG.requests)
    Counters(calls=calls, accepted=1, engine="toy").write(tmp_path / "counters.json")
    content = answered(capsys, 0, *files(bare), str(tmp_path / "counters.json"))
    assert content["rules"][0]["calls"]["counted"] == calls
    assert "token" in content["fitting"]


def test_counts_without_texts_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing of them can be refuted, so a test that asks for a judgement must not pass."""
    bare = replace(LOG, requests=tuple(replace(r, prompt=(), output=()) for r in LOG.requests))
    bare.write(tmp_path / "calls.jsonl")
    line = refused_line(["judge", tmp_path / "calls.jsonl"], capsys)
    assert "nothing can be judged without token ids of the output" in line
    assert "ask vLLM for return_token_ids" in line


@each("parameters", [(9, 8, True), (8, 9, False), (None, 8, False), (8, 8, False)])
def test_exchanged_models_are_asked_for(
    parameters: tuple[int | None, int, bool], files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    draft, target, said = parameters
    trace = replace(
        TRACE, provenance={**TRACE.provenance, "draft": {"parameters": draft}, "target": {"parameters": target}}
    )
    headline = answered(capsys, 0, *files(LOG, trace))["headline"]
    assert headline.startswith("Draft and target have ") is said
    assert ("are they exchanged?" in headline) is said


def without(name: str) -> Trace:
    return Trace({key: column for key, column in TRACE.columns.items() if key != name}, TRACE.texts, TRACE.provenance)


def changed(**fields: Any) -> CallLog:
    """The log with fields of its first request changed."""
    first, *others = LOG.requests
    return replace(LOG, requests=(replace(first, **fields), *others))


UNCOUNTED = {"accepted": (), "drafted": (), "calls": None, "total_accepted": None, "total_drafted": None}

test_bad_evidence_is_refused = all_refused(
    {
        "no ids": (
            lambda: judge(changed(output=(), tokens=30), TRACE),
            TextError,
            "request '0' has no output token ids",
        ),
        "no request": (lambda: judge(CallLog(()), TRACE), TextError, "the log has no request"),
        "other ids": (
            lambda: judge(changed(output=(7,) * 30), TRACE),
            TextError,
            "request '0': its output is no text of the trace",
        ),
        "no calls": (lambda: judge(changed(**UNCOUNTED), TRACE), TextError, "request '0' has no number of calls"),
        "no k": (
            lambda: judge(CallLog((Request("0", (1,), LOG.requests[0].output, calls=9),)), TRACE),
            TextError,
            "the log does not say k",
        ),
        "a small k": (lambda: judge(LOG, TRACE, k=2), TextError, "a call accepted 3 tokens"),
        "other settings": (
            lambda: judge(replace(LOG, temperature=0.7), TRACE),
            TraceError,
            "temperature is 1.0 in the trace and 0.7 in the log",
        ),
        "a text without ids": (lambda: judge(LOG, without("token")), TraceError, "the trace has no token ids"),
        "a rule without columns": (
            lambda: judge(LOG, without("race_g"), rules=[path_rule("race")]),
            TraceError,
            "the trace has no race_g",
        ),
        "copied drafts that were not read": (
            lambda: judge(replace(LOG, temperature=0.0), TRACE, rules=[path_rule("lookup")]),
            TraceError,
            "the trace has no lookup_match",
        ),
        "greedy text without the draft's order": (
            lambda: judge(replace(LOG, temperature=0.0), without("draft_rank")),
            TraceError,
            "the trace has no draft_rank",
        ),
        "counters without calls": (
            lambda: judge(LOG, TRACE, counters=Counters(accepted=3)),
            TextError,
            "the counters hold no calls",
        ),
    }
)


def test_a_log_that_cannot_be_judged_is_refused_before_models_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = LOG.requests[0].output
    for request, fragment in (
        (Request("0", (), output, calls=9), "request '0' has no ids of its prompt"),
        (Request("0", (1,), output, accepted=(3,)), "a call accepted 3 tokens"),
        (Request("0", (1,), output), "the log has no call with drafts"),
    ):
        k = ["--k", "2"] if request.calls else []
        CallLog((request,), temperature=1.0).write(tmp_path / "calls.jsonl")
        command = ["judge", str(tmp_path), *k, "--target", str(tmp_path / "no model")]
        assert fragment in refused_line(command, capsys)


def test_counts_beyond_the_texts_are_refused(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the log does not say k: it is known once it is given."""
    surplus = 26
    requests = tuple(
        Request(r.id, r.prompt, r.output, calls=r.calls, total_accepted=(r.total_accepted or 0) + surplus)
        for r in LOG.requests
    )
    with pytest.raises(TextError, match="may exceed a text by one call, here of 4 tokens"):
        replace(LOG, requests=requests)
    vague = tuple(replace(r, total_drafted=(r.calls or 0) * 3) for r in requests)
    log, trace = files(replace(LOG, k=None, requests=vague))
    said = refused_line(["judge", log, trace, "--k", "3"], capsys)
    assert "may exceed a text by one call, here of 4 tokens" in said


def test_bad_files_are_one_line(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, trace = files()
    (tmp_path / "half.jsonl").write_text(Path(log).read_text()[:-20])
    for arguments, fragment in (
        ([trace], "there are no calls to judge"),
        ([log, trace, trace], "2 traces are given"),
        ([str(tmp_path / "none"), trace], "none"),
        ([str(tmp_path / "half.jsonl"), trace], "line"),
        ([log, trace, "--k", "0"], "--k is 0"),
        ([log, trace, "--rule", "nothing"], "rule 'nothing' is unknown"),
        ([log, trace, "--temperature", "-1"], "temperature"),
    ):
        assert fragment in refused_line(["judge", *arguments], capsys)


def test_a_stopping_rule_is_read_first(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """The engine drafts k tokens: expected as it stands, refuted as one that stops."""
    assert main(["judge", *files(), "--stop", "luck>1"]) == 2
    assert "the stopping rule is 'luck>1'" in " ".join(capsys.readouterr().err.split())
    greedy = [*files(), "--temperature", "0"]
    assert "entropy>1 is asked for at temperature 0" in refused_line(["judge", *greedy, "--stop", "entropy>1"], capsys)
    content = answered(capsys, 1, *files(), "--stop", "token<0.9", "--rule", "token")
    assert content["refuted"]


def test_counts_that_only_a_rule_of_no_engine_fits_are_a_disagreement(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless that rule was asked for: a draft at another temperature may look like a race."""
    log = ToyEngine(PAIR, "race").log(60, seed=1)
    content = answered(capsys, 1, *files(log, read(PAIR, log)))
    assert (content["doubtful"], content["fitting"]) == (True, ["race"])
    assert not answered(capsys, 0, *files(log, read(PAIR, log)), "--rule", "race")["doubtful"]
