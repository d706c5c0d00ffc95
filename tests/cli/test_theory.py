"""`spectheory rules`, `bounds` and `tree`: their numbers against slow forms, every form of input, bad input."""

from __future__ import annotations

import heapq
import itertools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.cli import console, main
from spectheory.trace import GIVEN_TEXT, SAMPLED_TEXT, TextInfo, Trace
from spectheory.verification import rule_order
from tests.made_up import race_g

EXACT = 1e-11
"""Two float64 routes to one number of order one, thousands of operations each."""
SINGLE = 1e-6
"""Pmfs rounded to single precision: 24 bits, a few of them lost in sums."""

PRINTED = 0.05
"""Calls are stated to one digit after the point."""

P, Q = [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]
TABLE_P = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.05, 0.05, 0.9]]
TABLE_Q = [[0.2, 0.3, 0.5], [0.3, 0.3, 0.4], [0.6, 0.3, 0.1]]
RANKS = "0.6,0.25,0.1"

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command with --json; nothing on stderr, one object on stdout without NaN or infinity."""

    def run(*arguments: object) -> dict[str, Any]:
        assert main([*map(str, arguments), "--json"]) == 0
        out, err = capsys.readouterr()
        assert err == ""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} in JSON")

        return dict(json.loads(out, parse_constant=refuse))

    return run


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command on a terminal of a given width and return what it prints."""

    def run(*arguments: object, width: int = 80) -> str:
        monkeypatch.setattr(console.answers, "_width", width)
        assert main(list(map(str, arguments))) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run bad input; check status 2, one line on stderr, nothing on stdout; return the line."""
    status = main(arguments)
    out, err = capsys.readouterr()
    assert (status, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert err.startswith("spectheory: ")
    return err


def full_trace(path: Path, *, texts: int = 6, tokens: int = 30, drop: tuple[str, ...] = (), **origin: Any) -> Trace:
    """A trace with every column the commands read, of made-up but consistent values; two texts a prompt."""
    rng = np.random.default_rng(3)
    rows = texts * tokens
    log_target = -rng.exponential(1.5, rows)
    log_draft = np.minimum(0.0, log_target + rng.normal(0.0, 0.8, rows))
    entropy = rng.exponential(1.5, rows)
    columns: dict[str, Any] = {
        "log_target": log_target,
        "log_draft": log_draft,
        "race_g": race_g(rng, log_target, log_draft),
        "target_entropy": entropy,
        "target_second_moment": entropy**2 + rng.exponential(9.0, rows),
        "rejection_rank": rng.dirichlet([4.0, 2.0, *[1.0] * 7], rows)[:, :8],
        "race_rank": rng.dirichlet([4.0, 3.0, *[1.0] * 7], rows)[:, :8],
        "draft_rank": rng.geometric(0.5, rows),
        "greedy_agreement": rng.random(rows) < 0.7,
        "kl": rng.exponential(0.3, rows),
        "total_variation": rng.random(rows),
        "distinct_rank": rng.dirichlet([4.0, 3.0, *[1.0] * 3], rows)[:, :4],
    }
    kept = {name: column for name, column in columns.items() if name not in drop}
    infos = tuple(TextInfo(f"t{i}", tokens, prompt=f"p{i // 2}") for i in range(texts))
    trace = Trace(kept, infos, {"origin": SAMPLED_TEXT, **origin})
    trace.write(path)
    return trace


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "measured" / "trace.parquet"
    full_trace(path)
    return path


# Rules


def best_acceptance(p: list[float], q: list[float], k: int) -> float:
    """R4 over all sets of tokens."""
    sets = itertools.chain.from_iterable(itertools.combinations(range(len(p)), n) for n in range(len(p) + 1))
    return 1 + min(math.fsum(p[i] for i in chosen) - math.fsum(q[i] for i in chosen) ** k for chosen in sets)


def text_of(values: list[float]) -> str:
    return ",".join(map(str, values))


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
        accepted = [row["acceptance"]["best"] for row in content["rules"]]
        assert accepted == sorted(accepted, reverse=True)


def test_r4_is_a_limit_for_iid_candidates_alone(ask: Ask) -> None:
    """The gap is never negative where R4 is said to be a limit; elsewhere it is negative at one pair at least."""
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for p, q in zip(TABLE_P, TABLE_Q, strict=True):
        for row in ask("rules", "--target-pmf", text_of(p), "--draft-pmf", text_of(q), "--candidates", 2)["rules"]:
            if row["gap"] is not None:
                gaps[row["optimum_is_limit"]].append(row["gap"])
    assert min(gaps[True]) > -EXACT
    assert min(gaps[False]) < -0.01


def test_rank_entropy_stands_beside_kl_only_where_it_bounds_it(ask: Ask, read: Callable[..., str]) -> None:
    """Distinct tokens at a pair where H(R) is far below KL: no entropy is shown for them."""
    arguments = ["rules", "--target-pmf", "0.999,0.001", "--draft-pmf", "0.001,0.999", "--candidates", 2]
    content = ask(*arguments)
    shown = {name: row["rank_entropy"] for name, row in by_rule(content).items() if row["rank_entropy"]}
    assert set(shown) == {"poisson", "recursive"}
    assert all(entropy["low"] >= content["kl"]["best"] for entropy in shown.values())
    assert "not comparable with KL" in " ".join(read(*arguments).split())


def test_a_table_of_pmfs_gives_means(ask: Ask, tmp_path: Path) -> None:
    for name, table in (("p", TABLE_P), ("q", TABLE_Q)):
        np.save(tmp_path / f"{name}.npy", np.array(table))
    whole = ask("rules", "--target-pmf", tmp_path / "p.npy", "--draft-pmf", tmp_path / "q.npy", "--candidates", 3)
    single = [
        ask("rules", "--target-pmf", text_of(p), "--draft-pmf", text_of(q), "--candidates", 3)
        for p, q in zip(TABLE_P, TABLE_Q, strict=True)
    ]
    assert whole["positions"] == 3
    assert "mean over 3 pairs" in " ".join(whole["notes"])
    for name, row in by_rule(whole).items():
        rows = [by_rule(content)[name] for content in single]
        mean = np.mean([r["acceptance"]["best"] for r in rows])
        assert row["acceptance"]["best"] == pytest.approx(mean, abs=EXACT), name
    for name in ("kl", "total_variation"):
        assert whole[name]["best"] == pytest.approx(np.mean([content[name]["best"] for content in single]), abs=EXACT)
    assert whole["optimum"]["3"] == pytest.approx(np.mean([c["optimum"]["3"] for c in single]), abs=EXACT)


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


def test_what_would_take_minutes_is_estimated_or_bounded(
    ask: Ask, read: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With hardly any work allowed: what is shown instead, with its reason, and drawn from the seed."""
    p, q = "0.4,0.3,0.1,0.1,0.05,0.05", "0.1,0.1,0.3,0.3,0.1,0.1"
    monkeypatch.setattr("spectheory.verification.means.MOST_WORK", 1 << 7)
    arguments = ["rules", "--target-pmf", p, "--draft-pmf", q, "--candidates", 3]
    rough = by_rule(ask(*arguments, "--seed", 1))
    estimate = rough["recursive-distinct"]
    assert (estimate["side"], estimate["acceptance"]["kind"]) == ("estimate", "statistical")
    assert "95% interval" in estimate["reason"]
    for name in ("race", "gumbel-list"):
        assert (rough[name]["side"], rough[name]["acceptance"]["kind"]) == ("lower bound", "bound")
        assert "the bound is" in rough[name]["reason"]
    assert by_rule(ask(*arguments, "--seed", 1)) == rough
    assert by_rule(ask(*arguments, "--seed", 2))["recursive-distinct"] != estimate
    out = read(*arguments, "--seed", 1)
    assert re.search(r"^race +lower bound +3 +0\.\d{4} +≤", out, re.M)
    assert re.search(r"^recursive-distinct +estimate +3 +0\.\d{4}±0\.\d{4} ", out, re.M)


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
        found = rows[name]["acceptance"]
        assert found["best"] == pytest.approx(np.mean(values), abs=EXACT), name
        assert found["kind"] == "statistical"
        assert found["low"] < found["best"] < found["high"]
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
    out = read("bounds", "--mu", 1.7, "--mu2", 5)
    assert re.search(r"^ 1 +1\.00 +2\.00\* +2\.00\* +1\.9\d *$", out, re.M)
    assert "the most that P nodes can give" in out
    assert ask("bounds", "--mu", 0, "--mu2", 0)["rows"][2]["sharp"] == 65


def heaviest(rows: list[list[float]], nodes: int) -> float:
    """Weight of the heaviest prefixes where the pmf at depth d is rows[d]."""
    heap, total = [(-1.0, 0)], 0.0
    for taken in range(nodes + 1):
        weight, depth = heapq.heappop(heap)
        total += -weight if taken else 0.0
        for probability in rows[depth % len(rows)]:
            heapq.heappush(heap, (weight * probability, depth + 1))
    return total


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
    """The limits are those that predict shows; the readings by hand."""
    content = ask("bounds", trace_file, "--nodes", 2, "--nodes", 8, "--nodes", 1000)
    predicted = {
        p["k"]: p["limits"] for p in ask("predict", trace_file, "--rule", "token", "--k-max", 8)["predictions"]
    }
    columns = Trace.read(trace_file).columns
    mu, mu2 = columns["target_entropy"].mean(), columns["target_second_moment"].mean()
    for row in content["rows"][:2]:
        limits = predicted[row["nodes"]]
        for mine, theirs in (("text", "text"), ("one_call", "one_call")):
            assert row[mine] == limits[theirs]
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
    assert claim.endswith("averaged over all starting positions; consecutive calls may exceed them")
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


# Trees


def heaviest_paths(law: list[float], nodes: int) -> list[tuple[float, tuple[int, ...]]]:
    """The heaviest paths of all, by brute force."""
    ranks = range(1, len(law) + 1)
    paths = itertools.chain.from_iterable(itertools.product(ranks, repeat=d) for d in range(1, nodes + 1))
    weighed = [(math.prod(law[r - 1] for r in path), path) for path in paths]
    return sorted(weighed, key=lambda found: (-found[0], len(found[1])))[:nodes]


def test_tree_of_ranks(ask: Ask, read: Callable[..., str]) -> None:
    law = [0.6, 0.25, 0.11]
    content = ask("tree", "--rank-pmf", text_of(law), "--nodes", 7)
    expected = heaviest_paths(law, 7)
    assert content["weights"] == pytest.approx([weight for weight, _ in expected], rel=EXACT)
    assert content["tokens_per_call"]["best"] == pytest.approx(1 + sum(w for w, _ in expected), rel=EXACT)
    for path, weight in zip(content["paths"], content["weights"], strict=True):
        assert weight == pytest.approx(math.prod(law[r - 1] for r in path), rel=EXACT)
        assert path[:-1] in [[], *content["paths"]]
    depths = [sum(w for w, path in expected if len(path) == d) for d in range(1, content["depth"] + 1)]
    assert content["survival"] == pytest.approx(depths, rel=EXACT)
    assert content["others"]["chain"]["best"] == pytest.approx(sum(0.6**i for i in range(8)), rel=EXACT)
    whole = [*law, 1 - sum(law)]
    entropy = -sum(p * math.log(p) for p in whole)
    assert content["iid_channel"] == pytest.approx(math.log(8 * 3 + 1) / entropy, rel=EXACT)
    out = read("tree", "--rank-pmf", text_of(law), "--nodes", 7)
    assert len(re.findall(r"[├└]── \d  0\.\d{4}$", out, re.M)) == 7


def test_limits_of_a_tree(ask: Ask) -> None:
    assert ask("tree", "--rank-pmf", RANKS, "--nodes", 9, "--max-depth", 2)["depth"] == 2
    narrow = ask("tree", "--rank-pmf", RANKS, "--nodes", 6, "--max-width", 1)
    assert narrow["paths"] == [[1] * d for d in range(1, 7)]
    skipping = ask("tree", "--rank-pmf", "0.1,0.8", "--nodes", 2)
    assert skipping["paths"] == [[2], [2, 2]]
    in_order = ask("tree", "--rank-pmf", "0.1,0.8", "--nodes", 2, "--consecutive")
    assert sorted(in_order["paths"]) == [[1], [2]]
    full = ask("tree", "--rank-pmf", "0.5,0.25", "--nodes", 9, "--max-depth", 1)
    assert full["nodes"] == 2
    assert "2 of 9" in " ".join(full["notes"])


def test_a_large_tree_is_summed_up_by_depth(read: Callable[..., str]) -> None:
    for arguments in (["0.5,0.3,0.1", "--nodes", 65], ["0.99", "--nodes", 60]):
        out = read("tree", "--rank-pmf", *arguments)
        assert "──" not in out
        assert "P(tau >= depth)" in out
        assert len(out.splitlines()) < 35


def alternating(path: Path) -> None:
    """A trace of two alternating positions with opposite ranks."""
    law = np.zeros((40, 8))
    law[::2, :2], law[1::2, :2] = (0.0002, 0.9997), (0.955, 0.026)
    columns = {
        "log_target": np.full(40, -1.0),
        "log_draft": np.full(40, -1.0),
        "race_g": np.zeros(40),
        "race_rank": law,
    }
    Trace(columns, (TextInfo("one", 40),), {"origin": SAMPLED_TEXT}).write(path)


def test_tree_where_greed_fails(ask: Ask, tmp_path: Path) -> None:
    """Two alternating positions, 40 tokens, three nodes: the greedy tree needs 20 calls, the found one 10.4."""
    alternating(tmp_path / "trace.parquet")
    content = ask("tree", tmp_path, "--rule", "race", "--nodes", 3)
    assert content["paths"] == [[2], [2, 1], [2, 1, 2]]
    assert 40 / content["tokens_per_call"]["best"] == pytest.approx(10.4, abs=PRINTED)
    assert 40 / content["others"]["greedy"]["best"] == pytest.approx(20.0, abs=PRINTED)
    assert content["tokens_per_call"] == content["others"]["same_texts"]
    assert content["tokens_per_call"]["kind"] == "estimate"
    assert "With one prompt it is scored on the text it was found on" in " ".join(content["notes"])


def calls_by_hand(law: np.ndarray, paths: list[list[int]]) -> float:
    """The calls of one text, by the recursion over its starts; a path beyond the end of the text is not drafted."""
    tokens = len(law)
    calls = [0.0] * (tokens + 1)
    for n in range(tokens - 1, -1, -1):
        depth = max(map(len, paths))
        reached = [1.0] + [0.0] * (depth + 1)
        for path in paths:
            if n + len(path) <= tokens:
                reached[len(path)] += math.prod(law[n + j, r - 1] for j, r in enumerate(path))
        calls[n] = 1 + sum((reached[i] - reached[i + 1]) * calls[min(n + i + 1, tokens)] for i in range(depth + 1))
    return calls[0]


LAWS = [("race", "race_rank"), ("recursive", "rejection_rank"), ("recursive-distinct", "distinct_rank")]


@pytest.mark.parametrize(("rule", "column"), LAWS)
def test_tree_of_a_trace(ask: Ask, trace_file: Path, rule: str, column: str) -> None:
    content = ask("tree", trace_file, "--rule", rule, "--nodes", 5)
    trace = Trace.read(trace_file)
    laws = np.split(trace.columns[column], len(trace.texts))
    calls = sum(calls_by_hand(law, content["paths"]) for law in laws)
    same_texts = content["others"]["same_texts"]["best"]
    assert same_texts == pytest.approx(len(trace) / calls, rel=EXACT)
    chain = sum(calls_by_hand(law, [[1] * d for d in range(1, 6)]) for law in laws)
    assert content["others"]["chain"]["best"] == pytest.approx(len(trace) / chain, rel=EXACT)
    iid = [list(path) for _, path in heaviest_paths(trace.columns[column].mean(axis=0)[:5].tolist(), 5)]
    of_iid = sum(calls_by_hand(law, iid) for law in laws)
    assert content["others"]["iid_optimal"]["best"] == pytest.approx(len(trace) / of_iid, rel=EXACT)
    assert same_texts >= content["others"]["greedy"]["best"]
    assert content["tokens_per_call"]["best"] <= same_texts
    assert content["nodes"] == len(content["paths"]) == 5


def test_recursive_rejection_skips_no_rank(ask: Ask, tmp_path: Path) -> None:
    """Second candidates are likelier than first ones, and yet need them."""
    path = tmp_path / "trace.parquet"
    trace = full_trace(path)
    law = np.tile([0.1, 0.8, *[0.0] * 6], (len(trace), 1))
    columns = {**trace.columns, "rejection_rank": law, "race_rank": law}
    Trace(columns, trace.texts, trace.provenance).write(path)
    free, recursive = (ask("tree", path, "--rule", rule, "--nodes", 2)["paths"] for rule in ("race", "recursive"))
    assert free == [[2], [2, 2]]
    assert recursive == [[1], [2]]


def test_weights_are_shares_of_calls(ask: Ask, tmp_path: Path) -> None:
    """Where no call can end beyond its text, one and the weights add up to tokens per call."""
    path = tmp_path / "trace.parquet"
    trace = full_trace(path)
    law = trace.columns["race_rank"].copy()
    law[29::30] = 0.0  # the last token of each text is never drafted
    Trace({**trace.columns, "race_rank": law}, trace.texts, trace.provenance).write(path)
    content = ask("tree", path, "--nodes", 6)
    assert 1 + sum(content["weights"]) == pytest.approx(content["others"]["same_texts"]["best"], rel=EXACT)
    assert sum(content["survival"]) == pytest.approx(sum(content["weights"]), rel=EXACT)


def test_weights_stop_at_the_end_of_a_text(ask: Ask, tmp_path: Path) -> None:
    """Two texts of four tokens, first candidates always right: the second call of each has one token left."""
    law = np.zeros((8, 8))
    law[:, 0] = 1.0
    columns = {"log_target": np.full(8, -1.0), "log_draft": np.full(8, -1.0), "race_g": np.zeros(8), "race_rank": law}
    Trace(columns, (TextInfo("a", 4), TextInfo("b", 4)), {}).write(tmp_path / "trace.parquet")
    content = ask("tree", tmp_path, "--nodes", 2)
    assert content["paths"] == [[1], [1, 1]]
    assert content["weights"] == [1.0, 0.5]


def test_a_tree_is_scored_on_other_prompts(ask: Ask, tmp_path: Path) -> None:
    """Two prompts of opposite ranks: the tree of each fails on the other."""
    law = np.zeros((40, 8))
    law[:20, 0], law[20:, 1] = 1.0, 1.0
    columns = {
        "log_target": np.full(40, -1.0),
        "log_draft": np.full(40, -1.0),
        "race_g": np.zeros(40),
        "race_rank": law,
    }
    Trace(columns, (TextInfo("a", 20), TextInfo("b", 20)), {}).write(tmp_path / "trace.parquet")
    content = ask("tree", tmp_path, "--nodes", 2)
    assert content["tokens_per_call"]["best"] == 1
    assert content["others"]["same_texts"]["best"] > 1.5


# Shown and refused


def test_tables_fit_a_narrow_terminal(read: Callable[..., str], trace_file: Path, tmp_path: Path) -> None:
    """At 80 columns every row of a table is one line, and nothing is longer than the terminal."""
    np.save(tmp_path / "p.npy", np.array(TABLE_P))
    for arguments, rows in (
        (["rules", "--target-pmf", text_of(P), "--draft-pmf", text_of(Q)], 12),
        (["rules", trace_file], 12),
        (["bounds", "--target-pmf", tmp_path / "p.npy", "--trees", 5], 3),
        (["bounds", trace_file], 6),
        (["tree", trace_file, "--nodes", 6], 3),
    ):
        for width in (80, 120):
            lines = read(*arguments, width=width).splitlines()
            assert max(map(len, lines)) <= width
            assert (
                sum(bool(re.search(r"\d\.\d{2,4}(±\d\.\d+| \[[\d., ]+\])?[*†]? *-?$| -$", line)) for line in lines)
                >= rows
            )


BAD_INPUT = [
    (["rules"], "no input is given: needs one of a trace, --target-pmf with --draft-pmf"),
    (["rules", "T", "--target-pmf", "1"], "a trace and --target-pmf with --draft-pmf are given"),
    (["rules", "--target-pmf", "1"], "--draft-pmf is missing"),
    (["rules", "--draft-pmf", "1"], "--target-pmf is missing"),
    (["rules", "T", "--candidates", "0"], "--candidates is 0: must be in 1..1024"),
    (["rules", "T", "--seed", "-1"], "seed is -1"),
    (["rules", "absent"], "absent is missing"),
    (
        ["rules", "--target-pmf", "0.5,0.4", "--draft-pmf", "1,0"],
        "--target-pmf sums to 0.9, 0.1 too little: must sum to 1",
    ),
    (["rules", "--target-pmf", "1,0", "--draft-pmf", "0.7,0.4"], "--draft-pmf sums to 1.1, 0.1 too much"),
    (["rules", "--target-pmf", "1,0", "--draft-pmf", "1,nan"], "--draft-pmf[1] is nan"),
    (["rules", "--target-pmf", "-0.5,1.5", "--draft-pmf", "1,0"], "--target-pmf[0] is -0.5"),
    (["rules", "--target-pmf", "inf,0", "--draft-pmf", "1,0"], "--target-pmf[0] is inf"),
    (["rules", "--target-pmf", "0.5,0.5", "--draft-pmf", "1"], "target has 2 tokens and draft 1"),
    (
        ["rules", "--target-pmf", "0.5,half", "--draft-pmf", "1"],
        "--target-pmf '0.5,half' is neither numbers nor a file",
    ),
    (["rules", "--target-pmf", "", "--draft-pmf", "1"], "--target-pmf is empty"),
    (["rules", "--target-pmf", "FOLDER", "--draft-pmf", "1"], "Is a directory"),
    (["rules", "--target-pmf", "table.npy", "--draft-pmf", "two.npy"], "--target-pmf has 3 rows and --draft-pmf 2"),
    (["rules", "--target-pmf", "off.npy", "--draft-pmf", "1,0"], "--target-pmf row 1 sums to 0.5, 0.5 too little"),
    (["rules", "--target-pmf", "cube.npy", "--draft-pmf", "1,0"], "--target-pmf is an array (1, 1, 1) of float64"),
    (["rules", "--target-pmf", "words.npy", "--draft-pmf", "1,0"], "--target-pmf is an array (1,) of str32"),
    (["rules", "--target-pmf", "torn.npy", "--draft-pmf", "1,0"], "cannot be read"),
    (["rules", "--target-pmf", "empty.txt", "--draft-pmf", "1,0"], "it holds no list of numbers"),
    (["rules", "--target-pmf", "words.txt", "--draft-pmf", "1,0"], "line 2 is not a row of numbers"),
    (["rules", "--target-pmf", "ragged.txt", "--draft-pmf", "1,0"], "its rows differ in length"),
    (["rules", "--target-pmf", "bad.json", "--draft-pmf", "1,0"], "an entry is no number"),
    (["rules", "--target-pmf", "object.json", "--draft-pmf", "1,0"], "it holds no list of numbers"),
    (["rules", "--target-pmf", "torn.json", "--draft-pmf", "1,0"], "cannot be read"),
    (["rules", "--target-pmf", "nan.json", "--draft-pmf", "1,0"], "--target-pmf[0] is nan"),
    (["bounds"], "no input is given"),
    (["bounds", "T", "--mu", "1", "--mu2", "2"], "a trace and --mu with --mu2 are given"),
    (["bounds", "--mu", "1"], "--mu2 is missing"),
    (["bounds", "--mu2", "1"], "--mu is missing"),
    (["bounds", "--mu", "2", "--mu2", "3"], "mu is 2, mu2 is 3: needs mu >= 0 and mu2 >= mu^2"),
    (["bounds", "--mu", "nan", "--mu2", "3"], "must be finite"),
    (["bounds", "--mu", "1", "--mu2", "3", "--nodes", "0"], "--nodes is 0"),
    (["bounds", "--mu", "1", "--mu2", "3", "--trees", "9"], "--trees is given without --target-pmf"),
    (["bounds", "--target-pmf", "table.npy", "--trees", "0"], "--trees is 0"),
    (["bounds", "--target-pmf", "table.npy", "--trees", "1"], "trees is 1: must be >= 2"),
    (["bounds", "--target-pmf", "table.npy", "--trees", "99999", "--nodes", "9999"], "that would take many minutes"),
    (["bounds", "--rank-pmf", "0.9,0.2"], "--rank-pmf sums to 1.1, 0.1 too much: must sum to at most 1"),
    (["bounds", "--rank-pmf", "0,0"], "--rank-pmf is zero everywhere"),
    (["bounds", "--rank-pmf", "table.npy"], "--rank-pmf holds 3 rows"),
    (["bounds", "--rank-pmf", "0.5", "--nodes", "999999"], "--nodes is 999999"),
    (["rules", "--target-pmf", "0.5,,0.5", "--draft-pmf", "0.5,0.5"], "'0.5,,0.5' is neither numbers nor a file"),
    (["tree"], "no input is given: needs one of a trace, --rank-pmf"),
    (["tree", "T", "--rank-pmf", "0.5"], "a trace and --rank-pmf are given"),
    (
        ["tree", "T", "--rule", "magic"],
        "rule 'magic' is unknown: there are token, block, race",
    ),
    (["tree", "T", "--rule", "token"], "rule 'token' has no ranks"),
    (["tree", "T", "--max-width", "2"], "--max-width is given with a trace"),
    (["tree", "--rank-pmf", "0.5", "--rule", "race"], "--rule is given without a trace"),
    (["tree", "--rank-pmf", "0.5", "--nodes", "0"], "--nodes is 0"),
    (["tree", "--rank-pmf", "0.5", "--max-depth", "0"], "--max-depth is 0"),
    (["tree", "--rank-pmf", "0.1,0.2", "--consecutive", "--max-width", "2"], "max width is 2"),
    (["tree", "--rank-pmf", "0.5,nan"], "--rank-pmf[1] is nan"),
]


def write_bad_files(folder: Path) -> None:
    np.save(folder / "table.npy", np.array(TABLE_P))
    np.save(folder / "two.npy", np.array(TABLE_P[:2]))
    np.save(folder / "off.npy", np.array([[1.0, 0.0], [0.5, 0.0]]))
    np.save(folder / "cube.npy", np.ones((1, 1, 1)))
    np.save(folder / "words.npy", np.array(["a"]))
    (folder / "torn.npy").write_bytes((folder / "table.npy").read_bytes()[:100])
    for name, text in {
        "empty.txt": "",
        "words.txt": "0.5\nhalf\n",
        "ragged.txt": "0.5 0.5\n1.0\n",
        "bad.json": '[0.5, "0.5"]',
        "object.json": '{"pmf": [1]}',
        "torn.json": "[0.5, ",
        "nan.json": "[NaN, 1]",
    }.items():
        (folder / name).write_text(text)


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT, ids=[" ".join(a) for a, _ in BAD_INPUT])
def test_bad_input(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_bad_files(tmp_path)
    (tmp_path / "FOLDER").mkdir()
    full_trace(tmp_path / "T")
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments, capsys)


def test_a_folder_without_a_trace_and_a_trace_without_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is missing" in refused(["bounds", str(tmp_path)], capsys)
    full_trace(tmp_path / "trace.parquet", drop=("race_rank", "draft_rank"))
    assert "the trace has no race_rank" in refused(["tree", str(tmp_path)], capsys)
    assert "the trace has no draft_rank" in refused(["tree", str(tmp_path), "--rule", "topk"], capsys)
