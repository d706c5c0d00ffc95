"""`spectheory tree`: its numbers against slow forms, narrow terminals."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spectheory.trace import SAMPLED_TEXT, TextInfo, Trace
from tests.cli.theory_cases import EXACT, TABLE_P, Ask, P, Q, full_trace, text_of

PRINTED = 0.05
"""Calls are stated to one digit after the point."""

RANKS = "0.6,0.25,0.1"


# Trees


def heaviest_paths(law: list[float], nodes: int) -> list[tuple[float, tuple[int, ...]]]:
    """The heaviest paths of all, by brute force."""
    ranks = range(1, len(law) + 1)
    paths = itertools.chain.from_iterable(itertools.product(ranks, repeat=d) for d in range(1, nodes + 1))
    weighed = [(math.prod(law[r - 1] for r in path), path) for path in paths]
    return sorted(weighed, key=lambda pair: (-pair[0], len(pair[1])))[:nodes]


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
        (["rules", "--target-pmf", text_of(P), "--draft-pmf", text_of(Q), "--all"], 12),
        (["rules", trace_file, "--all"], 12),
        (["bounds", "--target-pmf", tmp_path / "p.npy", "--trees", 5, "--all"], 3),
        (["bounds", trace_file, "--all"], 6),
        (["tree", trace_file, "--nodes", 6], 3),
    ):
        for width in (80, 120):
            lines = read(*arguments, width=width).splitlines()
            assert max(map(len, lines)) <= width
            assert (
                sum(bool(re.search(r"\d\.\d{2,4}(±\d\.\d+| \[[\d., ]+\])?[*†]? *-?$| -$", line)) for line in lines)
                >= rows
            )
