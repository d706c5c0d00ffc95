"""Results of `vllm bench serve`: JSON and printed block give the same numbers; definitions are checked."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.engines.vllm.bench import _read_run, read_runs
from spectheory.errors import TextError
from spectheory.trace.counters import BenchRun, Counters
from spectheory.trace.reading import read_evidence
from tests.made_up import each
from tests.toy_server import affine, served

RUN = served(np.random.default_rng(0), affine(1e-3, 1e-4, 0, 0, 1e-4, 0, 0), 4, 3, survival=[0.8, 0.5, 0.2])
PRINTED = """
============ Serving Benchmark Result ============
Successful requests:                     64
Failed requests:                         0
Maximum request concurrency:             4
Benchmark duration (s):                  2.00
Total input tokens:                      6400
Total generated tokens:                  4160
Output token throughput (tok/s):         2080.00
---------------Time to First Token----------------
Mean TTFT (ms):                          5.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          1.50
P99 TPOT (ms):                           2.01
---------------Speculative Decoding---------------
Acceptance rate (%):                     50.00
Acceptance length:                       2.50
Drafts:                                  1700
Draft tokens:                            5100
Accepted tokens:                         2550
Per-position acceptance (%):
  Position 0:                            80.00
  Position 1:                            50.00
  Position 2:                            20.00
==================================================
"""

CAPTURES = sorted((Path(__file__).parents[2] / "benchmarks" / "results" / "bench_serve").glob("*.json"))
"""Of vLLM 0.32.0, greedy, on the built-in pair."""


def saved(tmp_path: Path, content: Any, name: str = "run.json") -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_json_is_recognised_and_checked(tmp_path: Path) -> None:
    """Percentages become fractions; the bench's own numbers stay in the provenance."""
    counters = read_evidence(saved(tmp_path, RUN))
    assert isinstance(counters, Counters)
    drafted, accepted = RUN["spec_decode_draft_tokens"], RUN["spec_decode_accepted_tokens"]
    assert (counters.calls, counters.drafted, counters.accepted) == (RUN["spec_decode_num_drafts"], drafted, accepted)
    assert accepted / drafted == pytest.approx(RUN["spec_decode_acceptance_rate"] / 100)
    assert counters.length == pytest.approx(RUN["spec_decode_acceptance_length"])
    assert counters.survival == pytest.approx(RUN["spec_decode_per_position_acceptance_rates"])
    assert (counters.k, counters.tokens, counters.engine) == (3, 64 * 65, "vllm")
    bench = counters.provenance["bench"]
    assert (bench["concurrency"], bench["tpot"], bench["input_tokens"]) == (4, RUN["mean_tpot_ms"] / 1e3, 6400)
    assert any("past the end" in remark for remark in counters.remarks)


def test_printed_block(tmp_path: Path) -> None:
    (run,) = read_runs(saved(tmp_path, "Namespace(...)\n" + PRINTED, "console.txt"))
    assert run.survival == pytest.approx((0.8, 0.5, 0.2)), "percentages there, fractions in JSON"
    assert (run.calls, run.drafted, run.accepted, run.concurrency) == (1700, 5100, 2550, 4)
    assert (run.ttft, run.tpot, run.decoding) == pytest.approx((5e-3, 1.5e-3, 1.5e-3 * 64 * 64))
    assert isinstance(read_evidence(tmp_path / "console.txt"), Counters)


def test_times_after_the_first_token(tmp_path: Path) -> None:
    """Latencies tell the time of decoding where outputs differ in length; mean_tpot weighs requests alike."""
    uneven = {
        **{name: RUN[name] for name in ("num_prompts", "max_concurrency", "total_input_tokens")},
        **{"completed": 2, "total_output_tokens": 102, "duration": 11.0, "mean_ttft_ms": 1000.0},
        # Two outputs of 2 and 100 tokens: 1 token in 1 s, 99 in 9.9 s.
        **{"mean_tpot_ms": 550.0, "latencies": [2.0, 10.9]},
    }
    run = _read_run(saved(tmp_path, uneven))
    assert run.decoding == pytest.approx(10.9)
    assert run.decoding / run.decoded == pytest.approx(0.109)
    assert run.in_flight == pytest.approx(10.9 / 11)
    del uneven["latencies"]
    assert _read_run(saved(tmp_path, {**uneven, "mean_e2el_ms": 6450.0})).decoding == pytest.approx(10.9)
    assert _read_run(saved(tmp_path, uneven)).decoding == pytest.approx(55.0), "right for equal outputs alone"


def test_several_runs_of_a_file(tmp_path: Path) -> None:
    appended, listed = "\n".join([json.dumps(RUN)] * 2), [RUN, RUN]
    for content in (appended, listed, PRINTED + PRINTED):
        path = saved(tmp_path, content)
        assert len(read_runs(path)) == 2
        with pytest.raises(
            TextError, match=r"holds 2 runs: one run is read at a time; split it, or give it to spectheory"
        ):
            _read_run(path)


def test_a_run_without_speculation(tmp_path: Path) -> None:
    plain = {name: value for name, value in RUN.items() if not name.startswith("spec_decode")}
    run = _read_run(saved(tmp_path, plain))
    assert (run.k, run.calls) == (0, None)
    counters = read_evidence(tmp_path / "run.json")
    assert isinstance(counters, Counters)
    assert (counters.calls, counters.length) == (None, None)
    assert isinstance(run, BenchRun)


@each(
    "change, words",
    [
        ({"spec_decode_acceptance_rate": 0.5}, "percent: the rate must be the percentage of accepted drafts"),
        ({"spec_decode_per_position_acceptance_rates": [80.0, 50.0, 20.0]}, "of a position is 80: must be a fraction"),
        ({"spec_decode_per_position_acceptance_rates": [0.9, 0.9, 0.9]}, "the two must agree"),
        ({"spec_decode_num_drafts": 0}, "counted no calls with drafts"),
        ({"mean_tpot_ms": float("nan")}, "nan seconds each"),
        ({"completed": 0}, "has 0 requests"),
        ({"total_output_tokens": None}, "is no result"),
        ({"mean_ttft_ms": "fast"}, "is no result"),
    ],
)
def test_wrong_numbers_are_one_line(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(TextError) as refused:
        _read_run(saved(tmp_path, RUN | change))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@each(
    "content, words", [(json.dumps(RUN)[:-9], "no whole JSON"), ("", "holds no results"), ("[1]", "holds no results")]
)
def test_torn_files_are_one_line(content: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match=words):
        read_runs(saved(tmp_path, content))


def test_real_captures() -> None:
    """Names say k and concurrency. Calls and accepted tokens hold the tokens past the end of texts, and no fewer."""
    assert len(CAPTURES) == 18
    for path in CAPTURES:
        run, counters = _read_run(path), read_evidence(path)
        assert path.stem.startswith(f"k{run.k}_c{run.concurrency}_")
        assert isinstance(counters, Counters)
        assert (counters.tokens, run.failed) == (64 * run.completed, 0)
        if run.calls:
            assert run.drafted == run.k * run.calls
            assert counters.length == pytest.approx(1 + math.fsum(run.survival))
            beyond = run.calls + (run.accepted or 0) - run.decoded
            assert 0 <= beyond <= run.k * run.completed


def test_a_printed_block_is_its_json() -> None:
    """To the digits that are printed."""
    (path,) = CAPTURES[0].parent.glob("*.txt")
    printed, saved_run = _read_run(path), _read_run(path.with_suffix(".json"))
    same = ("concurrency", "completed", "calls", "drafted", "accepted", "input_tokens", "output_tokens")
    assert [getattr(printed, name) for name in same] == [getattr(saved_run, name) for name in same]
    assert printed.survival == pytest.approx(saved_run.survival, abs=5.1e-5)
    assert (printed.tpot, printed.ttft) == pytest.approx((saved_run.tpot, saved_run.ttft), abs=5.1e-6)
    assert printed.decoding == pytest.approx(saved_run.decoding, rel=1e-3), "outputs are of one length"


def test_a_printed_block_is_imported() -> None:
    """Percentages of two digits give the counts back, where calls are few enough."""
    (path,) = CAPTURES[0].parent.glob("*.txt")
    counters = [read_evidence(each) for each in (path, path.with_suffix(".json"))]
    assert all(isinstance(each, Counters) for each in counters)
    assert [each.accepted for each in counters if isinstance(each, Counters)] == [1101, 1101]
    assert [each.survival for each in counters if isinstance(each, Counters)] == [(400 / 439, 366 / 439, 335 / 439)] * 2


def test_the_printed_block_of_many_calls_is_imported(tmp_path: Path) -> None:
    """Of 11043 calls a share of four digits may be that of several counts: shares stay rounded."""
    counts = np.array([8411, 6800, 2611])
    numbers = {"Acceptance rate (%)": f"{100 * counts.sum() / 33129:.2f}", "Drafts": 11043, "Draft tokens": 33129}
    numbers |= {"Accepted tokens": counts.sum()}
    numbers |= {f"  Position {i}": f"{100 * count / 11043:.2f}" for i, count in enumerate(counts)}
    block = PRINTED
    for label, value in numbers.items():
        block = re.sub(rf"(?m)^{re.escape(label)}: .*$", f"{label}: {value}", block)
    counters = read_evidence(saved(tmp_path, block, "console.txt"))
    assert isinstance(counters, Counters)
    assert (counters.accepted, counters.rounding, counters.survival) == (17822, 5e-5, (0.7617, 0.6158, 0.2364))


PASTED = """
---------------Speculative Decoding---------------
Acceptance rate (%):                     43.71
Acceptance length:                       4.50
Drafts:                                  11043
Draft tokens:                            88344
Accepted tokens:                         38611
Per-position acceptance (%):
  Position 0:                            76.17
  Position 1:                            61.58
  Position 2:                            51.25
  Position 3:                            42.43
  Position 4:                            36.40
  Position 5:                            30.94
  Position 6:                            27.22
  Position 7:                            23.65
"""
"""The lines on speculation alone, as pasted into vllm#48892."""


def test_lines_on_speculation_alone(tmp_path: Path) -> None:
    counters = read_evidence(saved(tmp_path, PASTED, "pasted.txt"))
    assert isinstance(counters, Counters)
    assert (counters.calls, counters.drafted, counters.accepted, counters.k) == (11043, 88344, 38611, 8)
    assert counters.length == pytest.approx(1 + 38611 / 11043)
    assert counters.survival[0] == 0.7617
    with pytest.raises(TextError, match="on speculation alone, without times"):
        read_runs(tmp_path / "pasted.txt")


@each(
    "change, words",
    [
        (("38611", "28611"), "the acceptance rate is 43.71, 28611 of 88344"),
        (("76.17", "16.17"), "positions sum to"),
        (("Draft tokens:  ", "Drafting tokens:"), r"lacks lines on speculation \(no 'spec_decode_draft_tokens'\)"),
        (("Drafts:", "Calls:"), "has no number of drafts"),
        (("Drafts:  ", PASTED + "Drafts:  "), "holds the lines of 2 runs"),
    ],
)
def test_torn_lines_on_speculation(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match=words):
        read_evidence(saved(tmp_path, PASTED.replace(*change), "pasted.txt"))


def test_drafts_without_tokens_are_refused(tmp_path: Path) -> None:
    for drafted, accepted in ((0, 0), (5100, 1e308)):
        counts = {"spec_decode_draft_tokens": drafted, "spec_decode_accepted_tokens": accepted}
        with pytest.raises(TextError, match="counted no calls"):
            read_evidence(saved(tmp_path, {**RUN, **counts}))
