"""Logs of accepted lengths at every start: what is read, what is refused, and the commands that take them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import main
from spectheory.errors import TextError
from spectheory.prediction import plan
from spectheory.trace import Trace, read_evidence
from tests.trace.recorded_sample import SAMPLE

STARTS: dict[str, Any] = {
    "id": "149",
    "prompt_token_ids": [5, 6],
    "generated_token_ids": [1] * 9,
    "acc_eagle": {"acc_len": [1, 4, 3, 2, 1, 2, 1, 1]},
    "acc_ngram": {"acc_len": [1, 1, 3, 2, 1, 1, 1, 4, 1]},
}
"""The known defect of public data: the list of eagle is of another run of the text."""
WHOLE = {**STARTS, "id": "150", "acc_eagle": {"acc_len": [1, 4, 3, 2, 1, 2, 1, 1, 2]}}


def read(folder: Path, *lines: Any, format: str | None = None) -> Trace:
    file = folder / "acc.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    evidence = read_evidence(file, format)
    assert isinstance(evidence, Trace)
    return evidence


def test_every_draft_on_one_text(tmp_path: Path) -> None:
    trace = read(tmp_path, WHOLE, {**WHOLE, "id": "151"})
    assert trace.provenance["recorded"] == ["eagle", "ngram"]
    assert [(text.id, text.tokens) for text in trace.texts] == [("150", 9), ("151", 9)]
    assert trace.columns["recorded_match"][:9].T.tolist() == [[0, 3, 2, 1, 0, 1, 0, 0, 1], [0, 0, 2, 1, 0, 0, 0, 3, 0]]
    assert trace.sampling is not None
    assert trace.sampling.temperature == 0


def test_lists_of_other_runs_name_a_format_that_reads_them(tmp_path: Path) -> None:
    """One line with the request, both lengths and how many there are; each format it names reads the file."""
    with pytest.raises(TextError) as caught:
        read(tmp_path, STARTS, WHOLE, WHOLE)
    said = str(caught.value)
    assert "request '149' has 8 lengths of eagle for a text of 9 tokens, as have 1 of 3 requests" in said
    formats = {
        "specdecode-bench-agreeing": (2, 18),
        "specdecode-bench-model": (3, 26),
        "specdecode-bench-ngram": (3, 27),
    }
    for name, (texts, tokens) in formats.items():
        assert name in said
        trace = read(tmp_path, STARTS, WHOLE, WHOLE, format=name)
        assert (len(trace.texts), len(trace)) == (texts, tokens)
        assert trace.provenance.get("requests_left_out", 0) == 3 - texts


BAD: dict[str, tuple[list[Any], str]] = {
    "too short": ([{**WHOLE, "acc_eagle": {"acc_len": [1, 0]}}], "acc_len of acc_eagle holds 0, every call outputs"),
    "longer than the text": ([{**WHOLE, "acc_ngram": {"acc_len": [11] + [1] * 8}}], "holds 11, and its text has 9 tok"),
    "no list": ([{**WHOLE, "acc_ngram": {"acc_len": 3}}], "acc_len of acc_ngram must be a list of integers"),
    "no integers": (
        [{**WHOLE, "acc_ngram": {"acc_len": [1.5] * 9}}],
        "acc_len of acc_ngram must be a list of integers",
    ),
    "truth values": ([{**WHOLE, "acc_ngram": {"acc_len": [True] * 9}}], "acc_ngram must be a list of integers"),
    "empty": ([{**WHOLE, "acc_ngram": {"acc_len": []}}], "acc_len of acc_ngram must be a list of integers"),
    "mixed": (
        [WHOLE, {k: v for k, v in WHOLE.items() if k != "acc_ngram"}],
        "line 2 has the drafts eagle, others have",
    ),
    "without lengths": (
        [WHOLE, {"id": "1", "generated_token_ids": [1]}],
        "line 2 is not of the format specdecode-bench",
    ),
    "no tokens": ([{**WHOLE, "generated_token_ids": "abc"}], "generated_token_ids is no list"),
    "no object": ([WHOLE, [1]], "line 2 is no object"),
    "beyond what is recorded": (
        [{"id": "1", "generated_token_ids": [1] * 2000, "acc_eagle": {"acc_len": [1500] + [1] * 1999}}],
        "acc_len of acc_eagle holds 1500, at most 1025 are read",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_logs_are_refused_in_one_line(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, message = BAD[case]
    file = tmp_path / "acc.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["predict", str(file)]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert said.count("\n") <= 1


def test_lengths_past_the_end_are_cut(tmp_path: Path) -> None:
    """A draft that was right beyond the text ends the text."""
    past = {"id": "1", "generated_token_ids": [1] * 4, "acc_eagle": {"acc_len": [1, 1, 5, 5]}}
    trace = read(tmp_path, past)
    assert [p.tokens_per_call.best for p in plan(trace).predictions] == [4 / 3] * 4


def test_commands_answer_or_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`predict` and `plan` answer in words and JSON, the others name what they need."""
    log = str(SAMPLE)
    assert main(["predict", log, "--k-max", "4", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {each["draft"] for each in content["recorded"]} == {"draft", "ngram", "suffix", "best of each start"}
    assert main(["predict", log, "--all"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    for sentence in ("Recorded at temperature 0", "cannot be re-cut", "each draft (draft 8, ", "over requests"):
        assert sentence in words
    assert main(["plan", log, "--c", "0.1", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert (content["rule"], content["engines"]) == ("ngram", [])
    assert main(["plan", log, "--json"]) == 0
    out, err = capsys.readouterr()
    assert {each["rule"] for each in json.loads(out)["candidates"]} == {"ngram", "suffix", "best of each start"}
    assert "left out, as the costs of their passes are unknown: draft; give --c" in err
    refused = ["bounds", "tree", "rules", "judge"]
    for command in refused:
        assert main([command, log]) == 2, command
        assert "accepted lengths alone" in capsys.readouterr().err
    for options in (["--k-max", "17"], ["--rule", "lookup>token"], ["--bias", "0.1"], ["--shape", "2x2"]):
        assert main(["predict", log, *options]) == 2, options
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert said.count("\n") == 1


def test_requests_left_out_are_in_the_first_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the import, of both answers and of what JSON calls the headline; the control is a whole log."""
    log, out = tmp_path / "acc.jsonl", str(tmp_path / "out")
    for lines, first in (([STARTS, WHOLE, {**WHOLE, "id": "151"}], True), ([WHOLE, {**WHOLE, "id": "151"}], False)):
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert main(["import", str(log), "--format", "specdecode-bench-agreeing", "--out", out]) == 0
        assert ("texts 2, requests left out 1, tokens 18" in capsys.readouterr().out.split("\n")[0]) == first
        words = "2 of 3 requests: the others' lists are not of their text's length"
        for command in (["predict", out], ["plan", out, "--c", "0.1"]):
            assert main(command) == 0
            assert (words in capsys.readouterr().out.split("\n")[:3]) == first
            assert main([*command, "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["headline"].startswith(words) == first
