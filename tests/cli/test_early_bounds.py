"""`spectheory bounds` before there is a draft: entropies, a wanted speed-up, the target's own scores."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cost import iid_speedup
from spectheory.cost.iid import draft_needed
from tests.cli.theory_cases import EXACT, Ask
from tests.commands import refused


def test_cross_entropies(ask: Ask) -> None:
    content = ask("bounds", "--target-nats", 1.9, "--draft-nats", 2.3, "--vocabulary", 50_000)
    values = {name: each["value"] for name, each in content["readings"].items()}
    distance = math.sqrt(0.4 / 2)
    assert values["acceptance"] == pytest.approx(1 - distance, rel=EXACT)
    assert values["race_acceptance"] == pytest.approx((1 - distance) / (1 + distance), rel=EXACT)
    assert values["first_choice_least"] == pytest.approx(math.exp(-1.9), rel=EXACT)
    misses = 1 - values["first_choice_most"]
    fano = -misses * math.log(misses / 49_999) - (1 - misses) * math.log(1 - misses)
    assert fano == pytest.approx(1.9, rel=1e-9)
    sides = {name: each["side"] for name, each in content["readings"].items()}
    assert sides["acceptance"] == "lower bound"
    assert sides["first_choice_most"] == "upper bound"
    assert "perplexity 9.974 against 6.686" in content["headline"]
    assert any("is not a KL divergence and gives no bound" in note for note in content["notes"])


def test_a_wanted_speed_up(ask: Ask) -> None:
    content = ask("bounds", "--need", 2, "--c", 0.1)
    assert [each["k"] for each in content["needed"]] == list(range(2, 65))
    for each in content["needed"]:
        assert iid_speedup(each["acceptance"], each["k"], 0.1) == pytest.approx(2.0, rel=1e-9)
    least = content["least"]
    assert least["acceptance"] == min(each["acceptance"] for each in content["needed"])
    assert least["k"] == 4
    ratios = np.linspace(0, 1, 1001)
    brute = next(a for a in ratios if max(iid_speedup(float(a), k, 0.1) for k in range(1, 65)) >= 2)
    assert abs(brute - least["acceptance"]) <= 1e-3
    (only,) = ask("bounds", "--need", 2, "--c", 0.1, "--k", 8)["needed"]
    assert only in content["needed"]


@pytest.mark.parametrize(("draft", "words"), [(1.95, "which is assured"), (2.3, "not assured")])
def test_needs_beside_entropies(draft: float, words: str, ask: Ask) -> None:
    content = ask("bounds", "--need", 2, "--c", 0.1, "--target-nats", 1.9, "--draft-nats", draft)
    assert content["headline"].endswith(f"{words}.")
    assured = content["readings"]["acceptance"]["value"] >= content["least"]["acceptance"]
    assert assured == (draft - 1.9 <= content["least"]["divergence"]) == (words == "which is assured")


def test_the_target_s_own_scores(ask: Ask, tmp_path: Path) -> None:
    """B6 needs the target alone: it is that of a trace, whatever draft that has."""
    rng = np.random.default_rng(0)
    texts = [(-rng.exponential(1.0, 60)).tolist() for _ in range(10)]
    alone, paired = tmp_path / "alone.jsonl", tmp_path / "paired.jsonl"
    alone.write_text("\n".join(json.dumps({"target": text}) for text in texts))
    paired.write_text("\n".join(json.dumps({"target": text, "draft": [-3.0] * 60}) for text in texts))
    from_scores, beside = ask("bounds", "--target-logprobs", alone), ask("bounds", paired)
    assert [row["text"] for row in from_scores["rows"]] == [row["text"] for row in beside["rows"]]
    assert set(from_scores["columns"]) == {"text", "numeric"}, "a draft is not known, so nothing is said of it"
    assert from_scores["rows"] == ask("bounds", "--target-logprobs", paired)["rows"]
    assert from_scores["nats_per_token"] == pytest.approx(-np.mean(texts), rel=EXACT)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--c", "1"], "--c is given without --need"),
        (["--draft-nats", "2"], "--draft-nats is given without --target-nats"),
        (["--target-nats", "2", "--draft-nats", "1"], "--draft-nats is 1, below --target-nats 2"),
        (["--target-nats", "nan"], "--target-nats is nan: must be >= 0 and finite"),
        (["--target-nats", "2", "--nodes", "4"], "--nodes is given with entropies"),
        (["--target-nats", "3", "--vocabulary", "2"], "must be in [0, log 2 = 0.693147] nats"),
        (["--need", "2"], "--need is given without --c"),
        (["--need", "20", "--c", "0.1"], "accepting no draft gives 0.909, and every draft 8.78"),
        (["--need", "2", "--c", "0.1", "--k", "1"], "accepting no draft gives 0.909, and every draft 1.82"),
        (["--need", "0.5", "--c", "0.1"], "the speed-up is 0.5: must be > 1; plain decoding gives 1"),
        (["--need", "2", "--c", "0.1", "--mu", "1"], "--mu with --mu2 and --target-nats or --need are given"),
        (["--target-logprobs", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_bad_input(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refused(["bounds", *arguments], capsys)


def test_help_names_the_speed_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bounds", "--help"]) == 0
    assert "the acceptance that a draft of cost --c needs" in " ".join(capsys.readouterr().out.split())


def test_lengths_that_cannot_give_it_are_left_out() -> None:
    """Two drafts give at most 3 tokens a call: 3/(2c+1) times plain decoding."""
    assert [each.k for each in draft_needed(2.4, 0.1, [1, 2, 3, 4])] == [2, 3, 4]
    assert [each.k for each in draft_needed(2.6, 0.1, [1, 2, 3, 4])] == [3, 4]
