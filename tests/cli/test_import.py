"""``spectheory import``, and an engine's counts in predict and plan: what is written, shown and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.trace import TRACE_FILE, Trace, read_evidence
from spectheory.trace.calls import CALLS_FILE, CallLog, Request
from spectheory.trace.counters import COUNTERS_FILE, Counters
from tests.commands import answer, refused
from tests.made_up import each
from tests.trace.counter_cases import HELD, SAMPLES, sample

COUNTED = "llamacpp:spec_decode"
LOG = SAMPLES / "vllm_specdecoding_log_line.txt"
SCRAPE = SAMPLES / "llama_server_metrics.txt"


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A log of calls of requests, two of them."""
    requests = (Request("a", accepted=(2, 0, 1), drafted=(2, 2, 2)), Request("b", accepted=(0, 2), drafted=(2, 2)))
    CallLog(requests, engine="toy", version="1", k=2, temperature=0.0).write(tmp_path / "log.jsonl")
    return tmp_path / "log.jsonl"


@each("name", HELD)
def test_every_sample_is_imported_and_read_again(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, expected = tmp_path / name, HELD[name]
    content = answer(capsys, "import", SAMPLES / name, "--out", out, "--format", expected["format"])
    assert (content["format"], content.get("engine", ""), content["calls"]) == (
        expected["format"],
        expected["engine"],
        expected["calls"],
    )
    assert content["written"] == str(out / COUNTERS_FILE)
    assert content["gives"]
    assert content["lacks"]
    read = read_evidence(out)
    answers = not isinstance(read, Counters) or read.length is not None
    assert bool(content["next"]) == answers, "what predict would refuse is no next step"
    assert read_evidence(out) == sample(name)


def test_an_import_says_what_follows_and_what_to_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(LOG), "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("vllm-log: engine vllm, k 7, calls 188, drafted 1316, accepted 151, tokens per call 1.8032\n")
    assert "Next: spectheory predict " in out, "totals are not judged"
    for words in ("Accepted by position", "Follows: calls", "Does not follow: requests", "past the end", "predict"):
        assert words in out


def test_traces_and_calls_are_written_as_such(calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(capsys, "import", calls, calls, "--out", tmp_path / "calls")
    assert (content["requests"], content["calls"], content["engine"], content["version"]) == (4, 10, "toy", "1")
    assert isinstance(read_evidence(tmp_path / "calls" / CALLS_FILE), CallLog)
    (tmp_path / "log.txt").write_text('{"target": [-1, -0.5], "draft": [-2, -0.1]}\n')
    assert answer(capsys, "import", tmp_path / "log.txt", "--out", tmp_path / "trace")["tokens"] == 2
    assert len(Trace.read(tmp_path / "trace" / TRACE_FILE)) == 2


def test_log_probabilities_of_two_models_make_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, draft = tmp_path / "target", tmp_path / "draft"
    for file, logs in ((target, (-0.5, -1.0)), (draft, (-0.7, -0.9))):
        tokens = [None, *({str(i + 3): {"logprob": log, "rank": 1}} for i, log in enumerate(logs))]
        file.write_text(json.dumps({"choices": [{"prompt_logprobs": tokens}]}))
    content = answer(capsys, "import", target, draft, "--out", tmp_path / "out")
    assert (content["format"], content["kind"], content["tokens"]) == ("vllm-logprobs", "trace", 2)
    for command in (["import", target, "--out", tmp_path], ["predict", target], ["plan", draft], ["rules", draft]):
        assert "holds log-probabilities of one model: a trace needs" in refused(command, capsys)


def test_of_two_scrapes_the_difference_is_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    later = "\n".join(
        f"{line.rpartition(' ')[0]} {2 * float(line.rpartition(' ')[2]):g}" if line.startswith(COUNTED) else line
        for line in SCRAPE.read_text().splitlines()
    )
    (tmp_path / "later").write_text(later.replace("8895", "20000") + "\n")
    content = answer(capsys, "import", SCRAPE, tmp_path / "later", "--out", tmp_path / "out")
    assert (content["calls"], content["accepted"]) == (3006, 5767)
    line = refused(["import", tmp_path / "later", SCRAPE, "--out", tmp_path / "out"], capsys)
    assert "calls went from 6012 to 3006 between two scrapes" in line


@each(
    "arguments, message",
    [
        (["import", "nowhere", "--out", "OUT"], "nowhere is missing: there is no such file; check the path"),
        (["judge", "nowhere"], "nowhere is missing: there is no such file; check the path"),
        (["import", SCRAPE], "missing option '--out': it has no default; write it as in spectheory import"),
        (
            ["predict", SCRAPE, SCRAPE],
            "too: that is more than it takes: see spectheory predict -h; leave it out; spectheo",
        ),
        (["predict", SCRAPE, "--what-if", "prompts=2%"], "counts and rates have no texts: of them c alone can change"),
        (["predict", SCRAPE, "--what-if", "prompts=200"], "prompts=2% asks how many prompts give ±2%"),
        (["import", SCRAPE, SCRAPE, "--out", "OUT"], "no calls were counted between the two scrapes"),
        (["import", LOG, "--out", "OUT", "--format", "guess"], "format 'guess' is unknown: there are trace, calls"),
        (["import", LOG, "--out", "OUT", "--format", "prometheus"], "no whole scrape"),
        (["import", LOG, SCRAPE, "--out", "OUT"], "differ in engine: 'vllm' and 'llama.cpp'"),
        (["predict", LOG, "--rule", "tokens"], "rule 'tokens' is unknown: there are"),
        (["predict", LOG, "--rule", "token", "--rule", "block"], "2 rules given with an engine's counts"),
        (["predict", LOG, "--check"], "--check is given with a recorded trace"),
        (["predict", LOG, "--tokens", "9"], "--tokens given with a recorded trace"),
        (["predict", LOG, "--k-max", "0"], "--k-max is 0"),
        (["plan", LOG, "--nodes-max", "4"], "--nodes-max given with an engine's counts"),
        (["plan", LOG, "--c", "0.1", "--latency", "x"], "one source of costs"),
        (["bounds", LOG], "holds totals of an engine: this needs a trace"),
        (["predict", SAMPLES / "llama_older.txt"], "do not say tokens per call"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"OUT": tmp_path, "nowhere": tmp_path / "nowhere"}
    line = refused([places.get(str(each), each) for each in arguments], capsys)
    assert message in line


def test_predict_answers_with_readings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(capsys, "predict", SCRAPE, "--c", "0.05", "--out", tmp_path)
    assert (content["source"], content["k"], content["rule"], content["best"]["k"]) == ("counts", 3, None, 3)
    assert content["tokens_per_call"]["best"] == pytest.approx(1 + 5767 / 3006)
    assert content["speedup"]["best"] == pytest.approx((1 + 5767 / 3006) / 1.15)
    assert [row["basis"] for row in content["rows"][:4]] == ["own starts", "own starts", "counted", "constant hazard"]
    assert json.loads((tmp_path / "prediction.json").read_text())["headline"] == content["headline"]
    assert main(["predict", str(SCRAPE), "--all"]) == 0
    out = capsys.readouterr().out
    assert "2.92 tokens per call counted at k = 3\n" in out
    assert "No speed-up without costs" in out


def test_the_verdict_does_not_contradict_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows beyond the served k are faster here: the verdict says what it ranges over, and how to see further."""
    assert main(["predict", str(SCRAPE), "--c", "0.05"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Pays: k = 3 (k above 3 not counted): speed-up 2.54x over plain decoding"
    assert lines[1] == "given c = 0.05: 2.50x to 2.58x (95% over calls); counted 2.92 at k = 3"
    assert any("serve with k above 3, the largest that was counted" in line for line in lines)


def test_a_shorter_k_is_compared_with_the_one_that_was_served(capsys: pytest.CaptureFixture[str]) -> None:
    """Where drafts are dear: the gain, and the lengths that are as good within the error; not where k is the best."""
    rows = answer(capsys, "predict", SCRAPE, "--c", "0.6")["rows"]
    assert main(["predict", str(SCRAPE), "--c", "0.6"]) == 0
    line = capsys.readouterr().out.splitlines()[2]
    (best, served), low = (rows[k - 1]["speedup"]["best"] for k in (1, 3)), rows[0]["speedup"]["low"]
    near = [row["k"] for row in rows[:3] if row["speedup"]["best"] >= low]
    rest = f"; k = {near[0]}..{near[-1]} lie within its range" if len(near) > 1 else ""
    assert line == f"{best / served - 1:+.0%} over k = 3 as served ({served:.2f}x){rest}"
    assert main(["predict", str(SCRAPE), "--c", "0.05"]) == 0
    assert "as served" not in capsys.readouterr().out


def test_terms_of_rows_stand_under_tables_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    beyond = "Beyond the engine's k nothing was counted"
    assert not any(
        note.startswith(beyond) for note in answer(capsys, "predict", LOG, "--c", "0.1", "--k-max", "7")["notes"]
    )
    assert any(note.startswith(beyond) for note in answer(capsys, "predict", SCRAPE, "--c", "0.05")["notes"])


def test_calls_of_requests_give_ends_for_first_choices(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(capsys, "predict", calls, "--c", "0.1")
    assert content["noise"] == "requests"
    ends = [row["first_choices"] for row in content["rows"][:2]]
    assert [each["kind"] for each in ends] == ["estimate", "estimate"], "the log does not say what its draft is"
    assert ends[0]["low"] < ends[0]["high"]
    assert ends[1]["low"] == ends[1]["high"]


def test_plan_compares_logs_at_position_1(capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(capsys, "plan", "--trace", f"long={LOG}", "--trace", f"short={SCRAPE}")
    assert list(content["logs"]) == ["long", "short"]
    assert content["comparisons"][0]["differ"] is True
    assert "Acceptance at position 1: 0.202 in long, 0.767 in short" in content["notes"][-1]
    assert answer(capsys, "plan", SCRAPE, "--c", "0.05")["best"]["k"] == 3
    two = answer(capsys, "plan", "--trace", f"long={LOG}", "--trace", f"short={SCRAPE}", "--c", "0.05")
    assert [each["best"]["k"] for each in two["logs"].values()] == [5, 3]


def test_traces_and_counts_are_not_ranked_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Trace.from_log_probabilities([([-1.0], [-2.0])]).write(tmp_path / TRACE_FILE)
    line = refused(["plan", "--trace", f"a={tmp_path}", "--trace", f"b={LOG}"], capsys)
    assert "b holds counts of an engine, the others traces" in line


def test_two_logs_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    log = SAMPLES / "vllm_metrics.txt"
    assert "a names 2 logs" in refused(["plan", "--trace", f"a={log}", "--trace", f"a={log}"], capsys)
