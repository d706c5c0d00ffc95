"""Counts under other names, in differences, rounded, or in the pieces of a stream."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.errors import TextError
from spectheory.trace.calls import CallLog
from spectheory.trace.counters import Counters
from spectheory.trace.reading import read_files
from tests.made_up import each
from tests.trace.counter_cases import SAMPLES, counters_of, sample


def text(name: str) -> str:
    return (SAMPLES / name).read_text()


def vllm_line(accepted: list[int], drafted: list[int], k: int) -> str:
    """What vLLM logs of calls: means and shares rounded."""
    n, total = len(accepted), sum(accepted)
    shares = ", ".join(f"{sum(a > i for a in accepted) / n:.3f}" for i in range(k))
    return (
        f"INFO SpecDecoding metrics: Mean acceptance length: {1 + total / n:.2f}, Accepted throughput: 1.00 tokens/s, "
        f"Drafted throughput: 1.00 tokens/s, Accepted: {total} tokens, Drafted: {sum(drafted)} tokens, "
        f"Per-position acceptance rate: {shares}, Avg Draft acceptance rate: {100 * total / sum(drafted):.1f}%\n"
    )


def made_calls(kind: str, calls: int, k: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Accepted and drafted tokens of calls of a draft that always drafts k, or as many as it can."""
    full = np.full(calls, k)
    varied = {"fixed": full, "n-gram": rng.integers(1, k + 1, calls), "cut": np.minimum(k, rng.geometric(0.2, calls))}
    drafted = varied["n-gram"] if kind == "suffix" else varied[kind]
    accepted = np.minimum(drafted, rng.geometric(0.3 if kind == "suffix" else 0.5, calls) - 1)
    return accepted.tolist(), drafted.tolist()


@each("kind", ["fixed", "n-gram", "cut", "suffix"])
def test_a_line_of_any_draft_holds_its_number_of_calls(kind: str, tmp_path: Path) -> None:
    """300 lines of 5 to 2,000 calls: none is refused, and the interval of calls holds the true one.

    Control: a line whose mean length is off by a half is refused.
    """
    rng = np.random.default_rng(11)
    off = []
    for _ in range(75):
        calls, k = int(rng.integers(5, 2000)), int(rng.integers(2, 9))
        accepted, drafted = made_calls(kind, calls, k, rng)
        line = vllm_line(accepted, drafted, k)
        (tmp_path / "log").write_text(line)
        counters = counters_of(tmp_path / "log")
        said = next((each for each in counters.remarks if "between" in each), "")
        least, most = map(int, re.findall(r"\d+", said)) if said else (counters.calls, counters.calls)
        assert least is not None
        assert least <= calls <= most or (not said and sum(drafted) == k * (counters.calls or 0))
        off.append(abs((counters.calls or 0) / calls - 1))
    assert max(off) < 0.1
    assert np.mean(off) < 0.01
    mean = 1 + sum(accepted) / len(accepted)
    (tmp_path / "log").write_text(line.replace(f"length: {mean:.2f}", f"length: {mean + 0.5:.2f}"))
    with pytest.raises(TextError, match=r"fits? no number of calls|by position|at most k"):
        counters_of(tmp_path / "log")


def test_lines_without_accepted_tokens_are_joined_with_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    parts = [made_calls("n-gram", n, 4, rng) for n in (40, 700)] + [([0] * 9, [1, 2, 3, 4, 4, 3, 2, 1, 2])]
    (tmp_path / "log").write_text("".join(vllm_line(*part, 4) for part in parts))
    counters = counters_of(tmp_path / "log")
    assert counters.accepted == sum(sum(accepted) for accepted, _ in parts)
    assert counters.calls == pytest.approx(749, abs=3)


def written(tmp_path: Path, content: str) -> Any:
    (tmp_path / "log").write_text(content)
    return counters_of(tmp_path / "log")


def test_vllms_counters_under_other_names(tmp_path: Path) -> None:
    """LMDeploy has a prefix of its own, and Ray renames what it serves."""
    of_vllm, scrape = sample("vllm_metrics.txt"), text("vllm_metrics.txt")
    for engine, changed in (
        ("lmdeploy", scrape.replace("vllm:", "lmdeploy:")),
        ("vllm", scrape.replace("vllm:", "ray_vllm_")),
        ("vllm", scrape.replace("vllm:", "ray_vllm:")),
    ):
        counters = written(tmp_path, changed)
        assert (counters.engine, counters.calls, counters.accepted, counters.survival) == (
            engine,
            of_vllm.calls,
            of_vllm.accepted,
            of_vllm.survival,
        )


SGLANG = """# TYPE sglang:spec_verify_calls_total counter
sglang:spec_verify_calls_total{{model_name="m"}} {calls}
sglang:generation_tokens_total{{model_name="m"}} {tokens}
sglang:num_requests_total{{model_name="m"}} {requests}
sglang:spec_num_steps{{model_name="m"}} 3.0
sglang:spec_accept_length{{model_name="m"}} 9.99
"""


def test_two_scrapes_of_sglang_are_a_difference(tmp_path: Path) -> None:
    """Calls and output tokens are counters from 0.5.23 on; the gauge of the last interval is left alone."""
    for name, counts in {"before": (100, 320, 20), "after": (300, 920, 50)}.items():
        (tmp_path / name).write_text(SGLANG.format(**dict(zip(("calls", "tokens", "requests"), counts, strict=True))))
    counters = read_files([tmp_path / "before", tmp_path / "after"])
    assert isinstance(counters, Counters)
    assert (counters.calls, counters.tokens, counters.accepted, counters.k) == (200, 600, 600 - 200 - 30, 3)
    assert counters.length == pytest.approx(1 + 370 / 200)


def test_stats_of_lm_studio(tmp_path: Path) -> None:
    """Of its server and of its SDK; drafts that were not verified are not counted as drafted."""
    stats = {"total_draft_tokens_count": 40, "accepted_draft_tokens_count": 22, "ignored_draft_tokens_count": 4}
    server = {"stats": stats, "usage": {"completion_tokens": 50}}
    sdk = {"stats": {"predictedTokensCount": 30, "totalDraftTokensCount": 20, "acceptedDraftTokensCount": 10}}
    counters = written(tmp_path, f"{json.dumps(server)}\n{json.dumps(sdk)}\n")
    assert (counters.engine, counters.drafted, counters.accepted) == ("lm-studio", 56, 32)
    assert counters.calls == (50 - 22 - 1) + (30 - 10 - 1)


def test_results_of_sglangs_benchmark(tmp_path: Path) -> None:
    runs = [{"accept_length": length, "request_throughput": 1.0, "total_output_tokens": 900} for length in (2.5, 3.25)]
    counters = written(tmp_path, "".join(json.dumps(run) + "\n" for run in runs))
    assert (counters.engine, counters.mean_length, counters.tokens) == ("sglang", 3.25, 900)
    assert "1 earlier runs of the file are left out." in counters.remarks


def test_streamed_answers_are_put_together(tmp_path: Path) -> None:
    """VLLM's events of two requests: ids of all pieces, and the counts of the last one."""
    record = {"num_spec_steps": 2, "num_accepted_draft_tokens": 2, "num_draft_tokens": 6, "per_step_accepted": [2, 0]}
    lines = []
    for name in ("a", "b"):
        first = {"id": name, "choices": [{"token_ids": [5, 6], "prompt_token_ids": [1, 2], "finish_reason": None}]}
        last = {"id": name, "choices": [{"token_ids": [7, 8], "finish_reason": "stop"}]}
        lines += [first, {**last, "metrics": {"speculative_decoding": record}}]
    events = "".join(f"data: {json.dumps(each)}\n\n" for each in lines) + "data: [DONE]\n"
    for begins in ("", ": ping\n\n", "event: message\n", "id: 1\n"):
        (tmp_path / "log").write_text(begins + events)
        log = read_files([tmp_path / "log"])
        assert isinstance(log, CallLog)
        assert [(r.id, r.prompt, r.output, r.accepted, r.ended) for r in log.requests] == [
            (name, (1, 2), (5, 6, 7, 8), (2, 0), True) for name in ("a", "b")
        ]


def test_a_line_that_leaves_millions_of_calls_open_is_read_in_time(tmp_path: Path) -> None:
    """Nothing accepted of ten million drafts: one by one these were 14 GB. The most calls that fit are among those."""
    shares = ", ".join(["0.000"] * 60)
    line = text("vllm_log_line.txt").split("\n")[0].partition("SpecDecoding")[0] + (
        "SpecDecoding metrics: Mean acceptance length: 1.00, Accepted: 0 tokens, Drafted: 9999960 tokens, "
        f"Per-position acceptance rate: {shares}, Avg Draft acceptance rate: 0.0%\n"
    )
    tracemalloc.start()
    counters = written(tmp_path, line)
    assert tracemalloc.get_traced_memory()[1] < 5e8
    tracemalloc.stop()
    assert (counters.calls, counters.accepted, counters.length) == (166666, 0, 1.0)
