"""Totals: what contradicts itself, sums of logs, differences of two scrapes, files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import SpectheoryError, TextError
from spectheory.trace import Trace, read_any, read_evidence, read_files
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import COUNTERS_FILE, Counters, pooled
from tests.made_up import all_refused, each, refused
from tests.trace.counter_cases import HELD, SAMPLES, sample

ONE = Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2, tokens=195, seconds=2.0, engine="e")


def scrape(calls: int, *by_position: int, started: float = 5.0) -> Counters:
    return Counters(
        calls=calls,
        drafted=2 * calls,
        accepted=sum(by_position),
        survival=tuple(count / calls for count in by_position),
        k=2,
        cumulative=True,
        provenance={"started": started},
    )


test_contradictions_are_refused = all_refused(
    {
        "negative": (lambda: Counters(calls=-1), TextError, "calls is -1"),
        "more accepted": (lambda: Counters(drafted=3, accepted=4), TextError, "accepted <= drafted"),
        "k": (lambda: Counters(calls=3, drafted=7, k=2), TextError, "at most k = 2 in a call"),
        "percentage": (lambda: Counters(survival=(61.5,)), TextError, "not percentages"),
        "negative share": (lambda: Counters(survival=(-0.1,)), TextError, "shares are in 0..1;"),
        "rising": (lambda: Counters(survival=(0.3, 0.4)), TextError, "falls with i"),
        "sum": (lambda: replace(ONE, accepted=91), TextError, "91 tokens accepted, by position 90"),
        "sum beyond rounding": (lambda: replace(ONE, accepted=93, rounding=0.01), TextError, "must agree within 2"),
        "another k": (lambda: Counters.join([ONE, replace(ONE, k=3)]), TextError, "differ in k: 2 and 3"),
        "another engine": (lambda: Counters.join([ONE, replace(ONE, engine="f")]), TextError, "differ in engine"),
        "means": (
            lambda: Counters.join([Counters(mean_length=2.0), Counters(mean_length=3.0)]),
            TextError,
            "means of different logs have no weights",
        ),
        "three scrapes": (lambda: Counters.join([scrape(9, 5, 2)] * 3), TextError, "before and after"),
        "went back": (
            lambda: Counters.join([scrape(20, 12, 6), scrape(10, 6, 3)]),
            TextError,
            "calls went from 20 to 10 between two scrapes",
        ),
        "a position went back": (
            lambda: Counters.join([scrape(20, 12, 6), scrape(30, 20, 5)]),
            TextError,
            "count of a position went back",
        ),
        "restarted, and passed": (
            lambda: Counters.join([scrape(10, 6, 3), scrape(20, 12, 6, started=8.0)]),
            TextError,
            "created at another time",
        ),
    }
)


def test_rounded_shares_may_differ_from_totals_by_their_rounding() -> None:
    assert replace(ONE, accepted=91, rounding=0.01).length == pytest.approx(1.91)


def test_logs_add_up() -> None:
    two = Counters.join([ONE, replace(ONE, calls=300, drafted=600, accepted=390, survival=(0.8, 0.5), tokens=None)])
    assert (two.calls, two.drafted, two.accepted, two.tokens, two.seconds) == (400, 800, 480, None, 4.0)
    assert two.survival == pytest.approx((0.75, 0.45))
    assert Counters.join([ONE]) is ONE


def test_of_two_scrapes_the_difference_is_taken() -> None:
    counters = Counters.join([scrape(20, 12, 6), scrape(50, 30, 12)])
    assert (counters.calls, counters.drafted, counters.accepted, counters.cumulative) == (30, 60, 24, False)
    assert counters.survival == pytest.approx((18 / 30, 6 / 30))
    refused(lambda: Counters.join([scrape(20, 12, 6)] * 2), TextError, "no calls were counted between the two")
    fresh = replace(scrape(20, 12, 6), calls=0, drafted=0, accepted=0, survival=(), k=None)
    counters = Counters.join([fresh, scrape(20, 12, 6)])
    assert (counters.calls, counters.k, counters.survival) == (20, 2, scrape(20, 12, 6).survival), (
        "a server without a call yet"
    )


def test_files_are_written_and_read(tmp_path: Path) -> None:
    for name in HELD:
        sample(name).write(tmp_path / name / COUNTERS_FILE)
        assert read_evidence(tmp_path / name) == sample(name)
    with pytest.raises(SpectheoryError, match="holds totals of an engine: this needs a trace"):
        read_any(tmp_path / "speculators.csv")


@each(
    "change",
    [
        {"survival": [10**400]},
        {"survival": ["a"]},
        {"rounding": 10**400},
        {"cumulative": None},
        {"engine": 1.0},
        {"provenance": "a"},
        {"remarks": [1]},
        {"calls": "3"},
        {"k": 0},
        {"mean_length": "2"},
    ],
)
def test_counters_of_other_types_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    content = {"spectheory": "spectheory counters", "schema": 1, **change}
    (tmp_path / COUNTERS_FILE).write_text(json.dumps(content))
    refused(lambda: Counters.read(tmp_path / COUNTERS_FILE), TextError, "holds no counters")


@each("content", ["{", "[]", '{"spectheory": "spectheory counters", "schema": 9}', '{"a": 1}'])
def test_other_files_are_no_counters(content: str, tmp_path: Path) -> None:
    (tmp_path / COUNTERS_FILE).write_text(content)
    refused(lambda: Counters.read(tmp_path / COUNTERS_FILE), TextError, "holds no counters")


def test_several_files_are_of_one_kind(tmp_path: Path) -> None:
    log = SAMPLES / "vllm_specdecoding_log_line.txt"
    assert read_files([log, log]).calls == 2 * 188  # type: ignore[union-attr]
    request = Request("r", accepted=(2, 0), drafted=(2, 2))
    CallLog((request,), k=2).write(tmp_path / "calls.jsonl")
    pooled_log = read_files([tmp_path / "calls.jsonl", tmp_path / "calls.jsonl"])
    assert isinstance(pooled_log, CallLog)
    assert len(pooled_log) == 2
    Trace.from_log_probabilities([([-1.0], [-2.0])]).write(tmp_path / "trace.parquet")
    kinds: dict[str, Any] = {
        "2 files hold totals and calls": [log, tmp_path / "calls.jsonl"],
        "2 files hold a trace": [tmp_path / "trace.parquet"] * 2,
        "differ in cumulative": [log, SAMPLES / "vllm_metrics.txt"],
    }
    for message, paths in kinds.items():
        refused(lambda paths=paths: read_files(paths), SpectheoryError, message)


def test_calls_of_requests_are_pooled() -> None:
    log = CallLog(
        (
            Request("a", output=(1, 2, 3, 4), accepted=(2, 0), drafted=(2, 1)),
            Request("b", tokens=5, by_drafted={2: (1, 0, 1)}),
        ),
        engine="e",
        counts_past_end=True,
    )
    counters = pooled(log)
    assert (counters.calls, counters.drafted, counters.accepted, counters.k, counters.tokens) == (4, 7, 4, 2, 9)
    assert counters.survival == (0.5, 0.5)
    assert counters.hazards == (0.5, 1.0), "the call of one draft says nothing of the second"
    assert "past the end" in counters.remarks[0]
    totals = CallLog((Request("a", calls=3, total_accepted=2),), k=2)
    assert (pooled(totals).length, pooled(totals).survival) == (1 + 2 / 3, ())
