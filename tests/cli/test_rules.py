"""`spectheory rules`: its numbers against slow forms, every form of input."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.verification import rule_order
from tests.cli.theory_cases import EXACT, TABLE_P, Ask, P, full_trace, text_of

SINGLE = 1e-6
"""Pmfs rounded to single precision: 24 bits, a few of them lost in sums."""

TABLE_Q = [[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]]


# Rules


def best_acceptance(p: list[float], q: list[float], k: int) -> float:
    """R4 over all sets of tokens."""
    sets = itertools.chain.from_iterable(itertools.combinations(range(len(p)), n) for n in range(len(p) + 1))
    return 1 + min(math.fsum(p[i] for i in chosen) - math.fsum(q[i] for i in chosen) ** k for chosen in sets)


def by_rule(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in content["rules"]}


@pytest.mark.parametrize("k", [1, 2, 4])
def test_rules_of_two_pmfs(ask: Ask, k: int) -> None:
    """The rows are those of rule_order; the rules with one candidate and R4 by hand besides."""
    for p, q in zip(TABLE_P, TABLE_Q, strict=True):
        content = ask("rules", "--target-pmf", text_of(p), "--draft-pmf", text_of(q), "--candidates", k)
        rows = by_rule(content)
        by_hand = {
            "token": math.fsum(map(min, p, q)),
            "block": math.fsum(map(min, p, q)),
            "independent": math.fsum(a * b for a, b in zip(p, q, strict=True)),
            "argmax": p[q.index(max(q))],
            "greedy": float(q.index(max(q)) == p.index(max(p))),
        }
        for name, value in by_hand.items():
            assert rows[name]["acceptance"]["best"] == pytest.approx(value, abs=EXACT), name
        order = rule_order(p, q, k)[1:]
        assert set(rows) == {row.rule for row in order}
        for row in order:
            shown = rows[row.rule]
            assert row.acceptance is not None
            assert shown["acceptance"] == row.acceptance.as_dict()
            assert (shown["k"], shown["side"], shown["gap"]) == (row.k, "exact", row.gap)
        assert content["optimum"][str(k)] == pytest.approx(best_acceptance(p, q, k), abs=EXACT)
        assert rows["token"]["gap"] == pytest.approx(0, abs=EXACT)
        assert content["kl"]["best"] == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
        accepted = [(row["k"], row["acceptance"]["best"]) for row in content["rules"]]
        assert accepted == sorted(accepted, reverse=True), "compared at the same number of candidates"


def write_forms(folder: Path) -> dict[str, str]:
    """One pmf in every form that is read."""
    np.save(folder / "p.npy", np.array(P))
    (folder / "p.json").write_text(json.dumps(P))
    (folder / "row.txt").write_text("# a pmf\n0.5, 0.3, 0.2\n")
    (folder / "column.txt").write_text("0.5\n0.3\n\n0.2\n")
    files = {name: str(folder / name) for name in ("p.npy", "p.json", "row.txt", "column.txt")}
    return {**files, "numbers": "0.5,0.3,0.2", "blanks": "0.5 0.3 0.2", "brackets": "[0.5, 0.3, 0.2]"}


def test_every_form_of_a_pmf_reads_the_same(ask: Ask, tmp_path: Path) -> None:
    contents = [
        ask("rules", "--target-pmf", form, "--draft-pmf", "0.2,0.3,0.5") for form in write_forms(tmp_path).values()
    ]
    assert all(content == contents[0] for content in contents)
    ranks = [ask("tree", "--rank-pmf", form, "--nodes", 4) for form in write_forms(tmp_path).values()]
    assert all(content == ranks[0] for content in ranks)


def test_single_precision_is_scaled_and_said(ask: Ask, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(50), 4)
    np.save(tmp_path / "double.npy", table)
    np.save(tmp_path / "single.npy", table.astype(np.float32))
    double, single = (ask("bounds", "--target-pmf", tmp_path / f"{name}.npy") for name in ("double", "single"))
    assert "--target-pmf is in float32" in " ".join(single["notes"])
    assert "float32" not in " ".join(double["notes"])
    for one, other in zip(double["rows"], single["rows"], strict=True):
        assert one["sharp"] == pytest.approx(other["sharp"], rel=SINGLE)


def test_a_draft_that_lacks_a_token(ask: Ask, read: Callable[..., str]) -> None:
    arguments = ["rules", "--target-pmf", "0.5,0.5,0", "--draft-pmf", "1,0,0"]
    content = ask(*arguments)
    assert content["kl"] is None
    assert "KL is infinite" in " ".join(content["notes"])
    assert by_rule(content)["poisson"]["rank_entropy"] is None
    assert "KL infinite" in read(*arguments)


def test_rules_of_a_trace(ask: Ask, trace_file: Path) -> None:
    columns = Trace.read(trace_file).columns
    content = ask("rules", trace_file, "--candidates", 3)
    rows = by_rule(content)
    ratio = np.exp(np.minimum(0, columns["log_draft"] - columns["log_target"]))
    missed = columns["race_g"] / (1 + columns["race_g"])
    expected = {
        "token": ratio,
        "block": ratio,
        "race": columns["race_rank"][:, :3].sum(axis=1),
        "poisson": 1 - missed**3,
        "recursive": columns["rejection_rank"][:, :3].sum(axis=1),
        "recursive-distinct": columns["distinct_rank"][:, :3].sum(axis=1),
        "independent": np.exp(columns["log_draft"]),
        "argmax": columns["draft_rank"] == 1,
        "greedy": columns["greedy_agreement"],
        "topk": columns["draft_rank"] <= 3,
    }
    for name, values in expected.items():
        acceptance = rows[name]["acceptance"]
        assert acceptance["best"] == pytest.approx(np.mean(values), abs=EXACT), name
        assert acceptance["kind"] == "statistical"
        assert acceptance["low"] < acceptance["best"] < acceptance["high"]
    for name in ("kseq", "gumbel-list"):
        assert rows[name]["acceptance"] is None
        assert "needs full pmfs" in rows[name]["reason"]
    assert set(rows) == {*expected, "kseq", "gumbel-list"}
    assert "recursive-distinct with several candidates is not exact" in " ".join(content["notes"])
    assert content["kl"]["best"] == pytest.approx(columns["kl"].mean(), abs=EXACT)
    assert content["optimum"] == {"3": None}
    assert ask("rules", trace_file.parent, "--candidates", 3) == content
    # Ranks are recorded up to 8.
    many = by_rule(ask("rules", trace_file, "--candidates", 9))
    assert many["race"]["acceptance"] is None
    assert "up to 8" in many["race"]["reason"]
    assert "up to 4" in many["recursive-distinct"]["reason"]
    assert many["poisson"]["acceptance"]["best"] == pytest.approx(np.mean(1 - missed**9), abs=EXACT)


def test_a_trace_without_pmfs_or_of_one_prompt(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    few = ("race_g", "kl", "total_variation", "draft_rank", "greedy_agreement")
    laws = ("race_rank", "rejection_rank", "distinct_rank")
    full_trace(path, texts=2, drop=few + laws, origin=GIVEN_TEXT)
    content = ask("rules", path)
    known = {name for name, row in by_rule(content).items() if row["acceptance"]}
    assert known == {"token", "block", "independent"}
    assert content["kl"] is None
    notes = " ".join(content["notes"])
    assert "given, not sampled" in notes
    assert "One prompt gives no 95% interval" in notes
    columns = {**full_trace(path).columns}
    columns["kl"] = np.where(np.arange(len(columns["kl"])) == 7, np.inf, columns["kl"])
    Trace(columns, Trace.read(path).texts, {}).write(path)
    content = ask("rules", path)
    assert content["kl"] is None
    assert "KL is infinite" in " ".join(content["notes"])


def test_one_text_with_lists_shows_its_certain_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No spread over prompts: both ends stand in the table. One candidate of recursive is exact from the text."""
    half = -0.6931471805599453
    line = {"target": [half] * 2, "draft": [-1.5] * 2, "token": [0, 0], "vocabulary": 9}
    tops = {"target_top": [[[0, half]]] * 2, "draft_top": [[[1, -0.7], [0, -1.5]]] * 2}
    (tmp_path / "log").write_text(json.dumps(line | tops))
    command = ["rules", str(tmp_path / "log"), "--rule", "race", "--rule", "recursive", "--rule", "token"]
    assert main([*command, "--candidates", "1", "--json"]) == 0
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)["rules"]}
    assert rows["recursive"]["acceptance"] == rows["token"]["acceptance"]
    assert rows["race"]["side"] == "bounds"
    assert main([*command, "--candidates", "1"]) == 0
    low, high = (rows["race"]["acceptance"][end] for end in ("low", "high"))
    assert f"{low:.4f}..{high:.4f}" in capsys.readouterr().out
    assert main(["tree", str(tmp_path / "log")]) == 2
    assert "lists of the most probable tokens bound rules in predict only" in capsys.readouterr().err
