"""A rule, one with ranks, a shape, a stopping rule and a head, each from one file: those of docs/extending.md."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import extensions
from spectheory.cli import main
from spectheory.drafting.shapes import read_shape
from spectheory.prediction import plan
from spectheory.trace import SAMPLED_TEXT, Trace
from spectheory.verification.registry import path_rule
from tests.commands import refused
from tests.made_up import trace as made_up

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
PMFS = ("--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5")
OVERLAP = 0.7
"""The sum of min(p, q) of these."""
HEADS = 0.4
"""What the ranked toy accepts of each candidate."""
CLOSE = 1e-9

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's files, half.py to tally.py, on Python's path; those of an engine follow."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = ("half", "coin", "comb", "surprise", "medusa", "hydra", "tally")
    for name, block in zip(names, blocks[: len(names)], strict=True):
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def package(toys: Path) -> Iterator[None]:
    """The two rules as entry points of an installed package."""
    info = toys / "toys-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[spectheory.rules]\nhalf = half:Half\ncoin = coin:Coin\n")
    extensions.installed.cache_clear()
    yield
    extensions.installed.cache_clear()


def test_a_package_that_is_broken_or_takes_a_name_is_left_out(
    toys: Path, package: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help and answers go on, with a remark for each rule that is left out; built-in rules keep their names."""
    (toys / "thief.py").write_text((toys / "coin.py").read_text().replace('= "coin"', '= "token"'))
    entries = toys / "toys-1.dist-info" / "entry_points.txt"
    entries.write_text("[spectheory.rules]\nhalf = half:Half\ngone = nowhere:Rule\nthief = thief:Coin\n")
    assert main(["predict", "--help"]) == 0
    pmfs = ("--target-pmf", "0.5,0.5", "--draft-pmf", "0.9,0.1")
    assert main(["rules", *pmfs, "--json"]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out[out.index("\n{") :])
    by_name = {rule["rule"]: rule["acceptance"] for rule in answer["rules"]}
    assert "half" in by_name
    assert by_name["token"]["best"] == pytest.approx(0.6)
    assert "'gone' of an installed package is left out: 'nowhere:Rule of toys' cannot be loaded" in err
    assert "'thief' of an installed package is left out: 'token' is a built-in rule" in err


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    made = made_up(40, 30, 25, 35, origin=SAMPLED_TEXT)
    made.write(tmp_path / "trace.parquet")
    return made


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    def run(*arguments: object) -> dict[str, Any]:
        assert main([*map(str, arguments), "--json"]) == 0, capsys.readouterr().err
        return dict(json.loads(capsys.readouterr().out))

    return run


def half_accepted(trace: Trace) -> np.ndarray:
    """What the first toy accepts of each position's draft."""
    return np.minimum(1, np.exp(trace.columns["log_draft"] - trace.columns["log_target"])) / 2


def tokens_of_chains_of_one(accepted: np.ndarray, trace: Trace) -> float:
    """Tokens per call with one draft a call, by recursion over the starts of each text."""
    calls = 0.0
    for row in np.split(accepted, np.cumsum(trace.lengths)[:-1]):
        left = [0.0, 0.0]
        for a in row[::-1]:
            left = [1 + a * left[1] + (1 - a) * left[0], left[0]]
        calls += left[0]
    return len(trace) / calls


def test_predict(toys: Path, trace: Trace, ask: Ask) -> None:
    """Chains and trees of both rules and of the shape, their figures, and the numbers that their laws say."""
    rules = ("--rule", "token", "--rule", "half:Half", "--rule", "coin:Coin")
    content = ask("predict", toys / "trace.parquet", *rules, "--k-max", 3, "--c", 0.1, "--out", toys / "out")
    assert content == json.loads((toys / "out" / "prediction.json").read_text())
    of = {(p["rule"], p["wanted"]): p for p in content["predictions"]}
    accepted = half_accepted(trace)
    one = of["half", "chain k=1"]
    assert one["acceptance"]["best"] == pytest.approx(accepted.mean(), abs=CLOSE)
    assert one["tokens_per_call"]["best"] == pytest.approx(tokens_of_chains_of_one(accepted, trace), abs=CLOSE)
    coin = tokens_of_chains_of_one(np.full(len(trace), HEADS), trace)
    assert of["coin", "chain k=1"]["tokens_per_call"]["best"] == pytest.approx(coin, abs=CLOSE)
    assert ("coin", "best tree of 3") in of
    assert ("half", "best tree of 3") not in of
    written = {name: (toys / "out" / f"{name}.svg").exists() for name in ("tokens_per_call", "trees", "speedup")}
    assert all(written.values()), written


def test_predict_with_the_shape(toys: Path, trace: Trace, ask: Ask) -> None:
    """Two candidates of a coin are a coin of 1 - 0.6^2; a comb is that batch at two nodes."""
    content = ask(
        *("predict", toys / "trace.parquet", "--rule", "coin:Coin", "--k-max", 3, "--out", toys / "out"),
        *("--shape", "comb:Comb", "--shape", "batch"),
    )
    of = {p["wanted"]: p for p in content["predictions"]}
    trees = plan(trace, rules=[path_rule("coin:Coin")], shapes=read_shape("comb:Comb", [1, 2, 3]))
    assert [str(label) for label in trees.labels] == ["coin comb"], "one column, and one line of a figure"
    assert of["comb k=3"]["paths"] == [[1], [2], [1, 1]]
    both = tokens_of_chains_of_one(np.full(len(trace), 1 - (1 - HEADS) ** 2), trace)
    for name in ("comb k=2", "batch k=2"):
        assert of[name]["tokens_per_call"]["best"] == pytest.approx(both, abs=CLOSE)


def test_plan(toys: Path, trace: Trace, ask: Ask) -> None:
    content = ask(
        *("plan", toys / "trace.parquet", "--rule", "half:Half", "--rule", "coin:Coin", "--c", 0.1, "--k-max", 2),
        *("--nodes-max", 3, "--out", toys / "out"),
    )
    assert {each["rule"] for each in content["candidates"]} == {"half", "coin"}
    binding = {limit["name"]: limit["binds"] for limit in content["limits"]["distances"]}
    assert binding.get("B7", content["kind"] == "tree")
    assert not binding.get("B6"), "the toys' drafts are drawn"
    assert all((toys / "out" / f"plan.{suffix}").exists() for suffix in ("png", "svg"))


def test_rules_and_bounds(toys: Path, package: None, trace: Trace, ask: Ask) -> None:
    """Installed rules stand beside the built-in ones, with the acceptances that they state."""
    for source, half in ((PMFS, OVERLAP / 2), ((toys / "trace.parquet",), half_accepted(trace).mean())):
        by_name = {row["rule"]: row for row in ask("rules", *source, "--candidates", 3)["rules"]}
        assert {"token", "race", "kseq"} < set(by_name)
        assert by_name["half"]["acceptance"]["best"] == pytest.approx(half, abs=CLOSE)
        assert (by_name["half"]["k"], by_name["coin"]["k"]) == (1, 3)
        assert by_name["coin"]["acceptance"]["best"] == pytest.approx(1 - (1 - HEADS) ** 3, abs=CLOSE)
        named = ask("rules", *source, "--candidates", 3, "--rule", "half", "--rule", "coin:Coin")["rules"]
        assert {row["rule"] for row in named} == {"half", "coin"}
    bounds = ask("bounds", toys / "trace.parquet", "--nodes", 2)
    assert "coin" in json.dumps(bounds)


def test_tree(toys: Path, trace: Trace, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    content = ask("tree", toys / "trace.parquet", "--rule", "coin:Coin", "--nodes", 2)
    assert content["rule"] == "coin"
    assert "'half' has no ranks" in refused(["tree", toys / "trace.parquet", "--rule", "half:Half"], capsys)


def test_simulate(toys: Path, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    """A shape of the user's is simulated; a rule without a simulator is refused, and the refusal names those there."""
    law = ("--rank-pmf", "0.4,0.24", "--trials", 20_000, "--workers", 1)
    content = ask("simulate", "tree", *law, "--shape", "comb:Comb", "--k", 3)
    assert content["task"]["parameters"]["paths"] == [[1], [2], [1, 1]]
    assert content["agree"]
    assert content["comparisons"][0]["predicted"] == pytest.approx(0.4 + 0.24 + 0.16)
    assert "is one of token, " in refused(["simulate", "decode", "--rule", "half:Half"], capsys)


def test_a_claim_about_a_rule(toys: Path, ask: Ask) -> None:
    (toys / "claim.py").write_text(
        "from coin import Coin\nfrom proofs_check import Claim, at_most\n"
        "ACCEPTED = Claim(f'{Coin.name} accepts at most 2/3', lambda p, q: at_most(2 * (p[0] * 0 + 1), 3))\n"
    )
    (trial,) = ask("verify", "--claim", toys / "claim.py")["claims"]
    assert trial["claim"] == "coin accepts at most 2/3"
    assert trial["verdict"] != "refuted"


def test_validate_refuses_a_rule_without_a_decoder(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["validate", "--rule", "half:Half", "--out", toys / "out"], capsys)
    assert "rule 'half' has no decoder: there are token" in line


BAD = {
    "nothing:There": "No module named 'nothing'",
    "half:Nothing": "no attribute 'Nothing'",
    "comb:Comb": "it is not a Rule",
    "half:": "cannot be loaded",
    "broken:Broken": "division by zero",
    "lacking:Lacking": "abstract",
    "nobody": "there are token, block",
    "taken:Taken": "a built-in rule has this name",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_names_give_one_line(name: str, toys: Path, trace: Trace, capsys: pytest.CaptureFixture[str]) -> None:
    (toys / "broken.py").write_text("1 / 0\n")
    head = "from spectheory.verification import PositionRule, TokenVerification\n"
    (toys / "lacking.py").write_text(f"{head}class Lacking(PositionRule):\n    name = 'lacking'\n")
    (toys / "taken.py").write_text(f"{head}class Taken(TokenVerification):\n    pass\n")
    for command in ("predict", "rules"):
        assert BAD[name] in refused([command, toys / "trace.parquet", "--rule", name], capsys)
    if name != "nobody":
        assert main(["predict", str(toys / "trace.parquet"), "--shape", name.replace("comb:Comb", "half:Half")]) == 2


@pytest.mark.evidence
@pytest.mark.usefixtures("quick_latencies")
def test_a_stopping_rule(
    toys: Path, tiny_folders: tuple[Path, Path], ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file and its line: predicted, planned, swept and decoded like token< at the same probability."""
    from spectheory.drafting import stopping
    from spectheory.prediction import adaptive

    kinds = [*stopping.STOPPING, importlib.import_module("surprise").Surprise]
    for module in (stopping, adaptive):
        monkeypatch.setattr(module, "STOPPING", kinds)
    made_up(*[30] * 8, origin=SAMPLED_TEXT).write(toys / "trace.parquet")
    same = "surprise>1", f"token<{np.exp(-1)}"
    stops = [word for stop in same for word in ("--stop", stop)]
    for command, listed, more in (("predict", "predictions", ()), ("plan", "candidates", ("--nodes-max", 1))):
        asked = (command, toys / "trace.parquet", "--rule", "token", "--k-max", 3, "--c", 0.1, *more)
        entries = ask(*asked, *stops)[listed]
        ours, theirs = ([each for each in entries if name in json.dumps(each)] for name in ("surprise>1", "token<"))
        assert len(ours) == len(theirs) >= (command == "predict") * 3
        for one, other in zip(ours, theirs, strict=True):
            assert one["speedup"] == other["speedup"]
    monkeypatch.setattr(adaptive, "STOPPING", kinds[-1:])  # of rules that are equal the first is the best
    assert "surprise>" in json.dumps(ask(*asked, "--stop", "best")["adaptive"])
    pair = ("--target", tiny_folders[0], "--draft", tiny_folders[1], "--device", "cpu", "--first", 2, "--tokens", 24)
    (toys / "prompts.jsonl").write_text(
        '{"question_id": 1, "turns": ["t3 t7 t2"]}\n{"question_id": 2, "turns": ["t9 t5"]}'
    )
    how = ("--prompts", toys / "prompts.jsonl", "--rule", "token", "--k", 3, "--temperature", 1, "--continuations", 1)
    checked = ask("validate", *pair, *how, *stops, "--out", toys / "out")
    assert (checked["comparisons"], checked["disagreements"]) == (2, 0)


@pytest.mark.evidence
@pytest.mark.usefixtures("quick_latencies")
def test_a_kind_of_head(
    toys: Path,
    tiny_folders: tuple[Path, Path],
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One file and its line: measured in one pass for all depths, predicted, planned, and validated."""
    from spectheory.measure.heads.load import HEADS
    from tests.measure.heads_made import config_of, made_head, save_head

    monkeypatch.setitem(HEADS, "medusa", importlib.import_module("medusa").Medusa)
    raw = config_of("medusa")
    folder = save_head(toys / "head", made_head(raw), raw, without=("embed_tokens.weight", "lm_head.weight"))
    (toys / "prompts.jsonl").write_text(
        '{"question_id": 1, "turns": ["t3 t7 t2"]}\n{"question_id": 2, "turns": ["t9 t5"]}'
    )
    pair = ("--target", tiny_folders[0], "--draft", folder, "--prompts", toys / "prompts.jsonl", "--tokens", 12)
    assert main([*map(str, ("measure", *pair, "--device", "cpu", "--out", toys / "measured"))]) == 0
    capsys.readouterr()
    chosen = ("--rule", "token", "--rule", "argmax", "--c", 0.1)
    content = ask("predict", toys / "measured" / "trace.parquet", *chosen, "--k-max", 4)
    assert (content["provenance"]["draft"]["kind"], content["provenance"]["settings"]["depth"]) == ("medusa", 4)
    assert ("argmax", "chain k=4") in {(p["rule"], p["wanted"]) for p in content["predictions"]}
    planned = ask("plan", toys / "measured" / "trace.parquet", *chosen, "--k-max", 2, "--nodes-max", 2)
    assert {each["passes"] for each in planned["candidates"]} == {1}
    checked = ask(
        "validate", *pair, "--device", "cpu", "--rule", "argmax", "--k", 3, "--temperature", 0, "--out", toys / "v"
    )
    assert (checked["comparisons"], checked["disagreements"]) == (1, 0)


def test_a_format_of_heads(toys: Path, tiny_folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """One function and its line: the same head from another tool's files, and without the line no model."""
    from safetensors.torch import load_file, save_file

    from spectheory.errors import ModelError
    from spectheory.measure import load_pair
    from spectheory.measure.heads import load
    from tests.measure.heads_made import config_of, made_head, save_head

    monkeypatch.setitem(load.HEADS, "medusa", importlib.import_module("medusa").Medusa)
    raw = config_of("medusa", {"model_type": "llama"})
    folder = save_head(toys / "head", made_head(raw), raw)
    theirs = {**raw["transformer_layer_config"], "architectures": ["Hydra"], "heads": 4, "draft_vocab_size": None}
    (folder / "config.json").write_text(json.dumps(theirs))
    weights = {name.replace("layers.", "heads."): t for name, t in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(ModelError):
        load_pair(tiny_folders[0], folder, device="cpu")
    monkeypatch.setattr(load, "FORMATS", (*load.FORMATS, importlib.import_module("hydra").HYDRA))
    head = load_pair(tiny_folders[0], folder, device="cpu").draft.head
    assert head is not None
    assert (head.kind, head.trained) == ("medusa", 4)


def test_what_lacks_a_decoder() -> None:
    """Every built-in rule with a path form is decoded, every way of drafting has its drafter."""
    from spectheory.measure.decoders.methods import CANDIDATES
    from spectheory.measure.decoders.verifiers import _verifier_of
    from spectheory.verification import PATH_RULES

    assert [name for name, rule in PATH_RULES.items() if _verifier_of(rule) is None] == []
    drafted = {name: (rule.drafts, rule.by_arrival) for name, rule in PATH_RULES.items() if rule.uses_draft}
    assert [name for name, how in drafted.items() if how not in CANDIDATES] == []
