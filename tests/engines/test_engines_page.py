"""The page of engines is the one that the saved answers give; its table and its figure show what a run says."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spectheory.plots.style import LOOKS, new_figure
from tests.made_up import each

script = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "_engines_page.py")))
REQUESTS, TOKENS = 10, 410


def run(k: int | None, *, fits: bool = True, right: bool = True, fitting: tuple[str, ...] = (), **fields: Any) -> Any:
    """A run at temperature 1 as `engines.json` has it."""
    calls = {"counted": 10, "expected": {"low": 12.2, "high": 12.2}, "deviation": 1.0, "z": -2.2}
    counts = {"counts": {"rule": "token", "fits": fits, "calls": calls}, "fitting": fitting, "causes": ()} if k else {}
    return (
        {"temperature": 1.0, "k": k, "drafts": "sampled" if k else None, "output": {"right": right}} | counts | fields
    )


def of(*runs: Any) -> list[Any]:
    return [{"engines": [{"engine": "toy", "version": "1", "date": "2026-01-02T00:00", "runs": list(runs)}]}]


def test_the_page_is_that_of_the_saved_answers() -> None:
    """To renew it: `python benchmarks/_engines_page.py`."""
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.renewed(page) == page
    assert len(script.answers()) == len(script.ORDER)


def test_a_row_for_each_way_to_draft() -> None:
    rows = script.engines_table(of(run(None), run(1), run(3, fits=False, right=False, fitting=("race",)))).texts
    assert rows == [
        ["toy 1, 2026-01-02", "1", "none", "", "", "", "", "right"],
        ["", "1", "sampled", "token", "10 / 12 (-2.2)", "10 / 12 (-2.2)", "not token: none fits", "WRONG at k = 3"],
    ]


def test_a_text_that_the_settings_exclude_has_no_counts() -> None:
    impossible = run(3, right=False) | {"output": {"right": False, "impossible": "token 3"}}
    del impossible["counts"]
    (row,) = script.engines_table(of(impossible)).texts
    assert row == ["toy 1, 2026-01-02", "1", "sampled", "", "", "", "WRONG"]
    assert list(script.figure_rows(of(impossible), 3)) == []


def test_the_rule_that_runs_fits_at_every_k() -> None:
    bad = {"fits": False, "fitting": ("race", "block")}
    assert script.rule_that_runs([run(1), run(3)]) == "token"
    assert script.rule_that_runs([run(1, fitting=("token", "race")), run(3, **bad)]) == "not token: race"
    assert script.rule_that_runs([run(1, **bad, causes=({"cause": "draft cut"},))]) == "not token: draft cut"


def test_the_figure_has_the_runs_of_one_k() -> None:
    (row,) = script.figure_rows(of(run(None), run(1), run(3, right=False)), 3)
    assert (row["engine"], row["k"], row["output_refuted"]) == ("toy", 3, True)


def rule(name: str, counted: int, mean: float, deviation: float, refuted: bool) -> dict[str, Any]:
    calls = {"counted": counted, "expected": {"low": mean, "high": mean}, "deviation": deviation}
    return {"rule": name, "refuted": refuted, "calls": calls}


def answer(engine: str = "toy", *, stated: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    """Two hundred calls, which token verification expects and block verification does not."""
    rules = [rule("token", 200, 198.0, 4.0, False), rule("block", 200, 180.0, 4.0, True)]
    refuted = bool(stated) and stated != ("token",)
    known = {"engine": engine, "version": "1", "requests": REQUESTS, "tokens": TOKENS, "k": 3, "temperature": 1.0}
    state = {"stated": list(stated), "fitting": ["token"], "refuted": refuted, "output_refuted": False}
    return {**known, "prefill_emits_token": True, "rules": rules, **state, **changes}


def test_tokens_per_call_leave_out_what_prompts_emit() -> None:
    judgement = answer()
    assert script.counted(judgement) == (TOKENS - REQUESTS) / 200
    assert script.counted({**judgement, "prefill_emits_token": False}) == TOKENS / 200
    low, best, high = script.expected(judgement, judgement["rules"][0]["calls"])
    assert best == pytest.approx(400 / 198)
    assert (low, high) == pytest.approx((400 / (198 + 1.96 * 4), 400 / (198 - 1.96 * 4)))


@each(
    "judgement, words",
    [
        (answer(), "token fits"),
        (answer(stated=("token",)), "token fits"),
        (answer(stated=("block",)), "block REFUTED\ntoken fits"),
        (answer(fitting=[], refuted=True), "every rule REFUTED"),
        (answer(output_refuted=True), "output REFUTED\ntoken fits"),
    ],
)
def test_verdicts(judgement: dict[str, Any], words: str) -> None:
    assert script.verdict(judgement) == words


def test_every_row_names_its_engine() -> None:
    rows = [answer("a"), answer("a", k=5, provenance={"drafts": "argmax"}), answer("b", temperature=None)]
    assert list(script.labels(rows)) == ["a 1\nk = 3, T = 1", "a 1\nk = 5, T = 1, argmax drafts", "b 1\nk = 3"]


def test_rules_at_one_place_stand_in_lanes() -> None:
    row = {"one": (1.9, 2.0, 2.1), "two": (1.9, 2.01, 2.1), "far": (2.9, 3.0, 3.1)}
    heights = script.lanes(row, 3.0)
    assert heights["one"] == -heights["two"] != 0
    assert heights["far"] == 0


def test_the_same_judgements_give_the_same_files(tmp_path: Path) -> None:
    rows = [answer("a"), answer("b", stated=("block",))]
    first, second = (script.write_figure(rows, tmp_path / name) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert [path.suffix for path in first] == [".png", ".svg"]


def test_every_dot_is_inside_and_refuted_ones_are_crossed() -> None:
    figure = new_figure((8, 3))
    script.draw(figure, [answer(), answer(stated=("block",))])
    (ax,) = figure.axes
    left, right = ax.get_xlim()
    marks = [line.get_marker() for line in ax.lines]
    assert (marks.count(LOOKS["token"].marker), marks.count(LOOKS["block"].marker)) == (2 + 1, 2 + 1), "rows and key"
    assert marks.count("x") == 2
    assert all(left <= x <= right for line in ax.lines for x in line.get_xdata())
