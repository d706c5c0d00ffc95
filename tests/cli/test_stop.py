"""``--stop`` of predict and plan: tables, figures, JSON, what adapting is worth, and bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.trace import TextInfo, Trace
from tests.commands import refused
from tests.made_up import each


def written(path: Path, prompts: int = 8, **columns: Any) -> Path:
    rng, rows = np.random.default_rng(0), 20 * prompts
    log_target = -rng.exponential(1.0, rows)
    log_draft = np.minimum(0, log_target + rng.normal(0, 0.5, rows))
    known = {"log_target": log_target, "log_draft": log_draft, "draft_entropy": rng.exponential(1.0, rows), **columns}
    provenance = {"origin": "sampled from the target", "settings": {"sampling": {"temperature": 1.0}}}
    Trace(known, tuple(TextInfo(str(i), 20) for i in range(prompts)), provenance).write(path)
    return path


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return written(tmp_path / "trace.parquet")


def test_stopping_rules_are_columns_of_their_own(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    asked = ["predict", str(recorded), "--rule", "token", "--k-max", "3", "--c", "0.1", "--stop", "token<0.4"]
    assert main([*asked, "--stop", "entropy>1", "--all", "--out", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert out.count("token, token<0.4") == 3, "tokens, speed-ups and drafted tokens"
    assert "where the draft stops" in out
    content = json.loads((tmp_path / "out" / "prediction.json").read_text())
    of = {(p["shape"]): p for p in content["predictions"]}
    assert len(of) == 9
    assert of["chain k=3, token<0.4"]["drafted"]["kind"] == "statistical"
    assert "drafted" not in of["chain k=3"]
    assert of["chain k=3, token<0.4"]["tokens_per_call"]["best"] < of["chain k=3"]["tokens_per_call"]["best"]
    assert (tmp_path / "out" / "speedup.png").exists()


def test_a_stopping_rule_that_was_asked_for_is_shown_first(recorded: Path, tmp_path: Path, capsys: Any) -> None:
    """It is beside the fixed lengths, though three rules without it are faster."""
    trace = Trace.read(recorded)
    ratio = np.exp(trace.columns["log_target"] - trace.columns["log_draft"])
    replace(trace, columns={**trace.columns, "race_g": np.maximum(ratio - 0.99, 0)}).write(tmp_path / "ranked.parquet")
    asked = ["predict", str(tmp_path / "ranked.parquet"), "--k-max", "3", "--c", "0.01", "--stop", "token<0.4"]
    assert main([*asked, "--rule", "token", "--rule", "block", "--rule", "race", "--json"]) == 0
    gains: dict[str, float] = {}
    for one in json.loads(capsys.readouterr().out)["predictions"]:
        label = one["rule"] + one["shape"].partition(",")[2]
        gains[label] = max(gains.get(label, 0), one["speedup"]["best"])
    assert [" token<0.4" in label for label in sorted(gains, key=gains.__getitem__)] == [True] * 3 + [False] * 3
    assert main([*asked, "--rule", "token", "--rule", "block", "--rule", "race"]) == 0
    assert ", token<0.4" in capsys.readouterr().out


def test_what_adapting_is_worth_in_one_line(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [str(recorded), "--rule", "token", "--rule", "block", "--k-max", "3", "--c", "0.1", "--stop", "best"]
    assert main(["predict", *asked, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [each["rule"] for each in content["adaptive"]] == ["token", "block"]
    best = max(content["adaptive"], key=lambda one: one["fixed"]["speedup"]["best"])
    sentence = f"Adaptive lengths are worth at most {100 * best['worth']:.1f}% with {best['rule']} verification"
    assert sentence in content["headline"]
    assert f"no adaptive length more than {best['limit']['best']:.2f}x" in content["headline"]
    assert main(["plan", *asked, "--nodes-max", "1", "--stop", "token<0.3", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert "Adaptive lengths are worth at most" in planned["headline"]
    assert {c["shape"] for c in planned["candidates"]} >= {"chain k=3, token<0.3"}


def test_the_formula_of_fixed_lengths_is_not_compared_with_stopped_ones(tmp_path: Path, capsys: Any) -> None:
    ranks = np.tile([0.7, 0.2, 0.1, 0.0], (160, 1))
    trace = written(tmp_path / "trace.parquet", rejection_rank=ranks)
    asked = ["predict", str(trace), "--rule", "recursive", "--shape", "chain", "--k-max", "2"]
    assert main([*asked, "--all"]) == 0
    assert "C1" in capsys.readouterr().out
    assert main([*asked[:4], "--shape", "2x1", "--k-max", "2", "--stop", "token<0.4", "--all"]) == 0
    out = capsys.readouterr().out
    assert "recursive, token<0.4" in out
    assert "C1" not in out, "it knows no stopping rule"


def test_adapting_is_worth_nothing_where_plain_decoding_is_faster(recorded: Path, capsys: Any) -> None:
    asked = [str(recorded), "--rule", "token", "--k-max", "2", "--c", "50", "--stop", "best"]
    for command in ("predict", "plan"):
        assert main([command, *asked, "--json"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert content["headline"].startswith("Do not speculate")
        assert "worth at most 0.0%" in content["headline"], "the longest of adaptive lengths is none"
        assert ".. " not in content["headline"]


def greedy(path: Path, **columns: Any) -> Path:
    """A trace of temperature 0: one-hot q, right in about two thirds of the positions."""
    rows = 160
    right = np.random.default_rng(1).random(rows) < 0.66
    known = {"log_target": np.zeros(rows), "log_draft": np.where(right, 0.0, -np.inf), "draft_entropy": np.zeros(rows)}
    provenance = {"origin": "sampled from the target", "settings": {"sampling": {"temperature": 0.0}}}
    Trace(known | columns, tuple(TextInfo(str(i), 20) for i in range(8)), provenance).write(path)
    return path


@each("command", ["predict", "plan"])
def test_greedy_traces_stop_by_the_plain_softmax(command: str, tmp_path: Path, capsys: Any) -> None:
    """Where the softmax is below a threshold nothing more is drafted; q alone (1 everywhere) is refused."""
    old = greedy(tmp_path / "old.parquet")
    asked = ["--c", "0.1", "--k-max", "3", "--rule", "token", "--stop"]
    for stop in ("token<0.4", "top<0.6"):
        line = f"{stop} cannot be predicted at temperature 0: the trace has no draft_top"
        assert line in refused([command, str(old), *asked, stop], capsys)
    assert "no threshold fits the trace" in refused([command, str(old), *asked, "best"], capsys)
    new = greedy(tmp_path / "new.parquet", draft_top=np.tile([0.9, 0.5, 0.3, 0.7], 40))
    assert "entropy>1 is asked for at temperature 0" in refused([command, str(new), *asked, "entropy>1"], capsys)


def test_greedy_calls_and_sweeps(tmp_path: Path, capsys: Any) -> None:
    new = greedy(tmp_path / "new.parquet", draft_top=np.tile([0.9, 0.5, 0.3, 0.7], 40))
    asked = [str(new), "--c", "0.1", "--k-max", "3", "--rule", "token", "--stop"]
    per_call = {}
    for stop in ("token<0.4", "top<0.1"):
        assert main(["predict", *asked, stop, "--json"]) == 0
        shown = capsys.readouterr()
        every = json.loads(shown.out)["predictions"]
        per_call |= {p["shape"]: p["tokens_per_call"]["best"] for p in every}
        of_text = int(np.isneginf(Trace.read(new).columns["log_draft"]).sum())
        assert f"{of_text} of 160 tokens of the texts have q = 0" in shown.err
        assert "the upper one counts them" in shown.err
    assert per_call["chain k=3, token<0.4"] < per_call["chain k=3"] == per_call["chain k=3, top<0.1"]
    assert main(["predict", *asked, "best", "--json"]) == 0
    assert "entropy" not in json.loads(capsys.readouterr().out)["adaptive"][0]["stopped"]["shape"]


def test_sweeps_that_are_refused(tmp_path: Path, recorded: Path, capsys: Any) -> None:
    short = ["--k-max", "2", "--stop"]
    few = written(tmp_path / "few.parquet", prompts=7)
    assert "over 7 prompts: needs 8" in refused(["predict", few, "--c", "0.1", *short, "best"], capsys)
    assert "without costs" in refused(["predict", recorded, *short, "best"], capsys)
    copied = dict.fromkeys(("lookup_match", "lookup_drafted"), np.ones(160, int))
    lookup = written(tmp_path / "copied.parquet", **copied)
    assert "that a model makes" in refused(["predict", lookup, "--rule", "lookup", *short, "token<0.4"], capsys)
    far = written(tmp_path / "far.parquet", log_target=np.full(160, -800.0), log_draft=np.full(160, -1.0))
    assert "likelihood ratio of 1 drafts" in refused(["predict", far, *short, "token<0.4"], capsys)
    assert "--bench or --export" in refused(["plan", recorded, "--export", "guidellm", *short, "token<0.4"], capsys)
