"""The figure of judgements: what is drawn, where, and what is said beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spectheory.plots.judgement import counted, expected, labels, lanes, verdict, write_figure
from spectheory.plots.style import LOOKS, new_figure
from tests.made_up import each

REQUESTS, TOKENS = 10, 410


def rule(name: str, found: int, mean: float, deviation: float, refuted: bool) -> dict[str, Any]:
    calls = {"counted": found, "expected": {"low": mean, "high": mean}, "deviation": deviation}
    return {"rule": name, "refuted": refuted, "calls": calls}


def answer(engine: str = "toy", *, stated: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    """Two hundred calls, which token verification expects and block verification does not."""
    rules = [rule("token", 200, 198.0, 4.0, False), rule("block", 200, 180.0, 4.0, True)]
    refuted = bool(stated) and stated != ("token",)
    known = {"engine": engine, "version": "1", "requests": REQUESTS, "tokens": TOKENS, "k": 3, "temperature": 1.0}
    state = {"stated": list(stated), "fitting": ["token"], "refuted": refuted, "output_refuted": False}
    return {**known, "prefill_emits_token": True, "rules": rules, **state, **changes}


def test_tokens_per_call_leave_out_what_prompts_emit() -> None:
    found = answer()
    assert counted(found) == (TOKENS - REQUESTS) / 200
    assert counted({**found, "prefill_emits_token": False}) == TOKENS / 200
    low, best, high = expected(found, found["rules"][0]["calls"])
    assert best == pytest.approx(400 / 198)
    assert (low, high) == pytest.approx((400 / (198 + 1.96 * 4), 400 / (198 - 1.96 * 4)))


@each(
    "found, words",
    [
        (answer(), "token fits"),
        (answer(stated=("token",)), "token fits"),
        (answer(stated=("block",)), "block REFUTED\ntoken fits"),
        (answer(fitting=[], refuted=True), "every rule REFUTED"),
        (answer(output_refuted=True), "output REFUTED\ntoken fits"),
    ],
)
def test_verdicts(found: dict[str, Any], words: str) -> None:
    assert verdict(found) == words


def test_engines_are_named_where_they_change() -> None:
    rows = [answer("a"), answer("a", k=5, provenance={"drafts": "argmax"}), answer("b", temperature=None)]
    assert list(labels(rows)) == ["a 1\nk = 3, T = 1", "k = 5, T = 1, argmax drafts", "b 1\nk = 3"]


def test_rules_at_one_place_stand_in_lanes() -> None:
    row = {"one": (1.9, 2.0, 2.1), "two": (1.9, 2.01, 2.1), "far": (2.9, 3.0, 3.1)}
    heights = lanes(row, 3.0)
    assert heights["one"] == -heights["two"] != 0
    assert heights["far"] == 0


def test_the_same_judgements_give_the_same_files(tmp_path: Path) -> None:
    rows = [answer("a"), answer("b", stated=("block",))]
    first, second = (write_figure(rows, tmp_path / name) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert [path.suffix for path in first] == [".png", ".svg"]


def test_every_dot_is_inside_and_refuted_ones_are_crossed() -> None:
    from spectheory.plots.judgement import draw

    figure = new_figure((8, 3))
    draw(figure, [answer(), answer(stated=("block",))])
    (ax,) = figure.axes
    left, right = ax.get_xlim()
    marks = [line.get_marker() for line in ax.lines]
    assert (marks.count(LOOKS["token"].marker), marks.count(LOOKS["block"].marker)) == (2 + 1, 2 + 1), "rows and key"
    assert marks.count("x") == 2
    assert all(left <= x <= right for line in ax.lines for x in line.get_xdata())
