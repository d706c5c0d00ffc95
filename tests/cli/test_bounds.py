"""`spectheory bounds` against its calculators: of moments, pmfs and traces, and before there is a draft."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cost import iid_speedup
from spectheory.cost.iid import draft_needed
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.text_limit import one_call_bound
from spectheory.trace import GIVEN_TEXT, SAMPLED_TEXT, Trace
from tests.cli.theory_cases import EXACT, TABLE_P, Ask, P, full_trace, heaviest, text_of

# Limits


def closed_forms(mu: float, mu2: float, nodes: int) -> dict[str, float]:
    """B1, B2 and B2' as the theory states them, plus the bonus token."""
    excess = mu2 / mu**2 - 1
    forms = {
        "published": (mu + mu2) * math.log(nodes) / mu**2,
        "lorden": math.log(nodes) / mu + mu2 / mu**2,
        "best_t": (math.log(nodes) + math.log(mu) + 1) / mu + excess if nodes * mu >= 1 else nodes,
        "sharp": excess + math.log(1 + mu * (nodes - excess)) / mu if nodes >= excess else nodes,
    }
    return {name: min(value, nodes) + 1 for name, value in forms.items()}


def test_bounds_of_moments(ask: Ask, read: Callable[..., str]) -> None:
    content = ask("bounds", "--mu", 1.7, "--mu2", 5, "--nodes", 64, "--nodes", 1, "--nodes", 8)
    assert [row["nodes"] for row in content["rows"]] == [1, 8, 64]
    for row in content["rows"]:
        expected = closed_forms(1.7, 5.0, row["nodes"])
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=EXACT)
    assert content["columns"]["published"]["claim"] == "No bound at P = 1, a loose one beyond"
    out = read("bounds", "--mu", 1.7, "--mu2", 5, "--all")
    assert re.search(r"^ 1 +1\.00 +2\.00\* +2\.00\* +1\.9\d *$", out, re.M)
    assert "the most that P nodes can give" in out
    assert ask("bounds", "--mu", 0, "--mu2", 0)["rows"][2]["sharp"] == 65


def test_bounds_of_one_pmf_hold_and_are_ordered(ask: Ask) -> None:
    content = ask("bounds", "--target-pmf", "0.5,0.3,0.2", "--nodes", 1, "--nodes", 5, "--nodes", 40)
    for row in content["rows"]:
        value = row["best_tree"]["best"]
        assert value == pytest.approx(heaviest([P], row["nodes"]) + 1, rel=EXACT)
        assert row["best_tree"]["kind"] == "exact"
        assert value <= row["numeric"]["high"] * (1 + EXACT)
        assert row["numeric"]["high"] <= row["sharp"] <= min(row["lorden"], row["best_t"])
        assert row["numeric"]["kind"] == "bound"
    moments = [-sum(p * math.log(p) for p in P), sum(p * math.log(p) ** 2 for p in P)]
    assert [content["mu"], content["mu2"]] == pytest.approx(moments, rel=EXACT)


def test_random_trees_from_rows(ask: Ask, tmp_path: Path) -> None:
    """One node: the mean of the largest entries, within five standard errors (the seed is fixed)."""
    np.save(tmp_path / "p.npy", np.array(TABLE_P))
    arguments = ["bounds", "--target-pmf", tmp_path / "p.npy", "--nodes", 1, "--nodes", 12, "--trees", 400]
    first, second = ask(*arguments)["rows"]
    value = first["best_tree"]
    assert value["kind"] == "statistical"
    # The half-width of a 95% interval is 1.97 standard errors.
    assert abs(value["best"] - 1 - np.mean(np.max(TABLE_P, axis=1))) < 5 / 1.97 * (value["high"] - value["best"])
    assert first["best_tree"]["high"] < first["numeric"]["high"] + 0.05
    assert second["best_tree"]["low"] < second["numeric"]["high"] < second["sharp"]
    assert ask(*arguments)["rows"][0] == first
    assert ask(*arguments, "--seed", 1)["rows"][0]["best_tree"] != value
    assert "best_tree" not in ask("bounds", "--target-pmf", tmp_path / "p.npy")["rows"][0]


def test_a_certain_target_has_no_limit_but_the_nodes(ask: Ask) -> None:
    (row,) = ask("bounds", "--target-pmf", "1,0", "--nodes", 3)["rows"]
    assert (row["best_tree"]["best"], row["numeric"]["best"], row["sharp"]) == (4, 4, 4)


def test_bounds_of_ranks(ask: Ask) -> None:
    """T1 by hand; the alphabet does not grow by the rounding of a sum that is one."""
    for law in ([0.6, 0.3, 0.1], [0.6, 0.3]):
        content = ask("bounds", "--rank-pmf", text_of(law), "--nodes", 1, "--nodes", 8)
        whole = [0.6, 0.3, 0.1]
        entropy = -sum(p * math.log(p) for p in whole)
        assert (content["letters"], content["rank_entropy"]) == (3, pytest.approx(entropy, rel=EXACT))
        for row in content["rows"]:
            k = row["nodes"]
            assert row["channel"] == pytest.approx(min(math.log((k + 1) * 2 + 1) / entropy, k + 1), rel=EXACT)
            assert row["chain"] == pytest.approx(sum(0.6**i for i in range(k + 1)), rel=EXACT)
            assert row["optimal_tree"] == pytest.approx(heaviest([law], k) + 1, rel=EXACT)
            assert row["chain"] <= row["optimal_tree"] <= row["channel"]


def test_bounds_of_a_trace(ask: Ask, trace_file: Path) -> None:
    """B6 is what predict shows; the readings by hand."""
    content = ask("bounds", trace_file, "--nodes", 2, "--nodes", 8, "--nodes", 1000)
    predicted = {
        p["k"]: p["limits"] for p in ask("predict", trace_file, "--rule", "token", "--k-max", 8)["predictions"]
    }
    trace = Trace.read(trace_file)
    columns = trace.columns
    mu, mu2 = columns["target_entropy"].mean(), columns["target_second_moment"].mean()
    for row in content["rows"][:2]:
        limits = predicted[row["nodes"]]
        assert row["text"] == limits["text"]
        of_call = one_call_bound(Prompts(trace.texts), trace, [row["nodes"]])[row["nodes"]]
        assert row["one_call"] == of_call.as_dict()
        assert {name: row[name] for name in closed_forms(1, 1, 1)} == pytest.approx(
            closed_forms(mu, mu2, row["nodes"]), rel=EXACT
        )
        assert row["numeric"]["kind"] == "statistical"
        for rule, column in (("race", "race_rank"), ("recursive", "rejection_rank")):
            law = columns[column].mean(axis=0)
            law = np.append(law, 1 - law.sum())
            channel = math.log((row["nodes"] + 1) * 8 + 1) / -np.sum(law * np.log(law))
            assert row[f"channel_{rule}"] == pytest.approx(min(channel, row["nodes"] + 1), rel=EXACT)
    assert content["rows"][2]["text"] is None
    assert "longest text has 30" in " ".join(content["notes"])
    claim = content["columns"]["one_call"]["claim"]
    assert claim.endswith("consecutive calls may exceed them")
    assert content["columns"]["sharp"]["claim"] == "Idealised values under i.i.d.; real text may exceed them"
    assert content["columns"]["channel_race"]["claim"] == "Idealised values under i.i.d.; real text may exceed them"


def test_given_text_has_no_limits_of_samples(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    full_trace(path, drop=("target_entropy", "race_rank"), origin=GIVEN_TEXT)
    content = ask("bounds", path, "--nodes", 4)
    (row,) = content["rows"]
    assert [row[name] for name in ("text", "one_call", "numeric", "sharp")] == [None] * 4
    assert "channel_race" not in row
    assert row["channel_poisson"] > 1
    assert "given, not sampled" in " ".join(content["notes"])
    assert "no entropies" in " ".join(content["notes"])


def test_a_law_of_one_rank_has_no_channel(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    trace = full_trace(path)
    columns = {**trace.columns, "rejection_rank": trace.columns["rejection_rank"][:, :1]}
    Trace(columns, trace.texts, trace.provenance).write(path)
    content = ask("bounds", path, "--nodes", 4)
    assert "channel_recursive" not in content["rows"][0]
    assert content["rows"][0]["channel_race"] > 1
    assert "No T1 recursive: rejection_rank records one rank alone" in " ".join(content["notes"])


@pytest.mark.parametrize("origin", [None, 5, SAMPLED_TEXT])
def test_text_of_unknown_origin_is_assumed_sampled(origin: Any, ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    full_trace(path, origin=origin)
    notes = " ".join(ask("bounds", path, "--nodes", 4)["notes"])
    assert ("limits assume that the target sampled it" in notes) == (origin != SAMPLED_TEXT)


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


def test_entropies_assure_tokens_per_call(ask: Ask) -> None:
    """(k + 1) / (1 + k v), v the most that Pinsker's inequality allows; nothing without a draft's entropy."""
    v = math.sqrt(0.4 / 2)
    rows = ask("bounds", "--target-nats", 1.9, "--draft-nats", 2.3)["assured"]
    assert [row["k"] for row in rows] == list(range(1, 9))
    for row in rows:
        k = row["k"]
        assert row["tokens_per_call"] == pytest.approx((k + 1) / (1 + k * v), rel=EXACT)
        assert row["race"] == pytest.approx((k + 1) / (1 + k * 2 * v / (1 + v)), rel=EXACT)
    (only,) = ask("bounds", "--target-nats", 1.9, "--draft-nats", 2.3, "--k", 5)["assured"]
    assert only == rows[4]
    assert ask("bounds", "--target-nats", 1.9)["assured"] == []


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


def test_lengths_that_cannot_give_it_are_left_out() -> None:
    """Two drafts give at most 3 tokens a call: 3/(2c+1) times plain decoding."""
    assert [each.k for each in draft_needed(2.4, 0.1, [1, 2, 3, 4])] == [2, 3, 4]
    assert [each.k for each in draft_needed(2.6, 0.1, [1, 2, 3, 4])] == [3, 4]
