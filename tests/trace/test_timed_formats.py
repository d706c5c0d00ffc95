"""Timed runs of every tool: made files of the documented keys give the rows that they were made from."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import TextError
from spectheory.trace.reading import read_evidence
from spectheory.trace.samples import SAMPLES
from spectheory.trace.timed import TimedRun, timed_formats, timed_runs
from tests.made_up import each

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"


def read(folder: Path, content: Any, name: str = "run.json") -> list[TimedRun]:
    """The runs of a file: text, an object, or JSON lines of a list."""
    lines = content if isinstance(content, str) else "\n".join(map(json.dumps, content))
    (folder / name).write_text(lines)
    return timed_runs(folder / name)


def rows(runs: Sequence[TimedRun]) -> list[tuple[Any, ...]]:
    return [
        (run.batch, run.context, run.k, pytest.approx(run.step_seconds), pytest.approx(run.tokens_per_call or 0.0))
        for run in runs
    ]


SERVED = {
    "tag": None,
    "backend": "sglang",
    "max_concurrency": 8,
    "duration": 40.0,
    "completed": 50,
    "total_input_tokens": 50 * 1000,
    "total_output_tokens": 50 * 101,
    "request_throughput": 1.25,
    "mean_e2e_latency_ms": 1100.0,
    "mean_ttft_ms": 100.0,
    "mean_tpot_ms": 10.4,
    "accept_length": None,
    "server_info": {"speculative_algorithm": None, "speculative_num_steps": None},
}
SPECULATING = {"speculative_algorithm": "EAGLE3", "speculative_num_steps": 3, "speculative_eagle_topk": 1}


def test_sglang_serving(tmp_path: Path) -> None:
    """1 s after the first token for 100 tokens; k is the server's own, or that of a name."""
    drafted = SERVED | {"accept_length": 2.5, "server_info": SPECULATING | {"speculative_num_draft_tokens": 4}}
    block = SERVED | {"accept_length": 2.5, "server_info": {"speculative_algorithm": "DFLASH"}}
    block["server_info"] |= {"speculative_num_draft_tokens": 8}
    old = {name: value for name, value in drafted.items() if name != "server_info"}
    runs = read(tmp_path, [SERVED, drafted, block, old | {"tag": "k5"}], "serving.jsonl")
    assert rows(runs) == [(8, 1050.5, 0, 0.01, 0.0), *((8, 1050.5, k, 0.025, 2.5) for k in (3, 7, 5))]
    assert runs[0].ttft == 0.1
    assert runs[0].in_flight == pytest.approx(50 * 100 * 0.01 / 40)
    assert [run.k for run in read(tmp_path, [old], "k4_c8.jsonl")] == [4]


@each(
    "change, words",
    [
        ({"accept_length": 2.5, "server_info": None}, "does not say k: the drafts of a call must be known; name it k3"),
        ({"max_concurrency": None}, "has no concurrency"),
        ({"server_info": SPECULATING | {"speculative_adaptive": True}}, "is of an adaptive server"),
        ({"server_info": SPECULATING | {"speculative_eagle_topk": 4}}, "drafted trees"),
        ({"completed": 0}, "is not of the format sglang-bench (division by zero)"),
        ({"mean_e2e_latency_ms": "slow"}, "is not of the format sglang-bench"),
    ],
)
def test_sglang_serving_that_says_too_little(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(TextError) as refused:
        read(tmp_path, [SERVED | change], "serving.jsonl")
    assert words in str(refused.value)


def test_sglang_batches(tmp_path: Path) -> None:
    one = {"run_name": "default", "batch_size": 4, "input_len": 256, "output_len": 64, "prefill_latency": 0.1}
    plain = one | {"median_decode_latency": 0.012, "total_latency": 1.0, "overall_throughput": 1.0}
    assert rows(read(tmp_path, [one, plain], "result.jsonl")) == [(4, 288, 0, 0.012, 0.0)]
    server = {"batch_size": 4, "input_len": 256, "output_len": 65, "latency": 1.0, "last_ttft": 0.36}
    pair = [server | {"run_name": name, "acc_length": length} for name, length in (("plain", -1), ("k3", 2.0))]
    assert rows(read(tmp_path, pair, "r.jsonl")) == [(4, 288.5, 0, 0.01, 0.0), (4, 288.5, 3, 0.02, 2.0)]
    with pytest.raises(TextError, match="does not say k"):
        read(tmp_path, [pair[1] | {"run_name": "default"}], "r.jsonl")


def test_sglang_sweep() -> None:
    """Chains of the sample, plain steps among them; trees are left out."""
    lines = [json.loads(line) for line in (SAMPLES / "sglang_sweep.jsonl").read_text().splitlines()]
    chains = [line for line in lines if line["topk"] <= 1]
    assert rows(timed_runs(SAMPLES / "sglang_sweep.jsonl")) == [
        (
            line["batch_size"],
            line["completion_tokens"] / 2,
            line["steps"],
            line["step_time"],
            line["steps"] and line["acc_length"],
        )
        for line in chains
    ]
    assert len(chains) < len(lines)


BENCH = {"model_filename": "target.gguf", "n_prompt": 0, "n_gen": 0, "n_depth": 0, "avg_ns": 0, "avg_ts": 0.0}
TIMED = [
    BENCH | {"n_gen": 128, "avg_ns": 1_280_000_000, "avg_ts": 100.0},
    BENCH | {"n_gen": 128, "n_depth": 4096, "avg_ns": 1_600_000_000, "avg_ts": 80.0},
    BENCH | {"n_prompt": 5, "n_depth": 4096, "avg_ns": 15_625_000, "avg_ts": 320.0},
    BENCH | {"n_prompt": 512, "avg_ns": 200_000_000, "avg_ts": 2560.0},
    BENCH | {"n_prompt": 512, "n_gen": 128, "avg_ns": 1_500_000_000, "avg_ts": 400.0},
]
EXPECTED = [(1, 64, 0, 0.01, 0.0), (1, 4160, 0, 0.0125, 0.0), (1, 4098.5, 4, 0.015625, 0.0)]


def test_llama_bench_in_all_its_forms(tmp_path: Path) -> None:
    """Plain steps, and passes that verify drafts; prompts are no passes. Forms: lines, JSON, CSV, table."""
    assert rows(read(tmp_path, TIMED, "bench.jsonl")) == EXPECTED
    assert rows(read(tmp_path, "load_backend: loaded\n" + "\n".join(map(json.dumps, TIMED)), "b.jsonl")) == EXPECTED
    assert rows(read(tmp_path, json.dumps(TIMED))) == EXPECTED
    table = io.StringIO()
    writer = csv.DictWriter(table, BENCH, quoting=csv.QUOTE_ALL)
    table.write(",".join(BENCH) + "\n")
    writer.writerows(TIMED)
    assert rows(read(tmp_path, table.getvalue(), "bench.csv")) == EXPECTED
    tests = ("tg128", "tg128 @ d4096", "pp5 @ d4096", "pp 512", "pp512+tg128")
    cells = [
        f"| llama 7B | 3.56 GiB | CUDA | {test:>15} | {row['avg_ts']:.2f} ± 0.55 |"
        for test, row in zip(tests, TIMED, strict=True)
    ]
    page = "\n".join(
        ["| model | size | backend | test | t/s |", "| --- | ---: | --- | --: | --: |", *cells, "", "build: 1"]
    )
    assert rows(read(tmp_path, page, "bench.md")) == EXPECTED
    with pytest.raises(TextError, match="has runs of 2 models"):
        read(tmp_path, [*TIMED, TIMED[0] | {"model_filename": "draft.gguf"}], "bench.jsonl")


BATCHED = """
llama_batched_bench: n_kv_max = 16384, n_batch = 2048

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   128 |    128 |    1 |    256 |    0.108 |  1186.64 |    3.079 |    41.57 |    3.187 |    80.32 |
|   128 |    128 |    8 |   2048 |    0.751 |  1363.27 |    5.120 |   200.00 |    4.344 |   471.40 |
"""


def test_llama_batched_bench(tmp_path: Path) -> None:
    expected = [(1, 192, 0, 3.079 / 128, 0.0), (8, 192, 0, 0.04, 0.0)]
    assert rows(read(tmp_path, BATCHED, "batched.md")) == expected
    lines = [{"n_kv": 0, "pp": 128, "tg": 128, "pl": b, "t_pp": 0.1, "t_tg": t} for b, t in ((1, 3.079), (8, 5.12))]
    assert rows(read(tmp_path, lines, "batched.jsonl")) == expected


def test_llama_spec_bench(tmp_path: Path) -> None:
    """Three tasks of one k: calls are tokens less accepted ones. The table and the lines say the same."""
    (line,), (table,) = (timed_runs(SAMPLES / f"llama_spec_bench.{form}") for form in ("jsonl", "md"))
    tokens, accepted, seconds = 412 + 512 + 512, 282 + 341 + 298, 6.25 + 8.125 + 9.5
    assert rows([line]) == [(1, line.context, 3, seconds / (tokens - accepted), tokens / (tokens - accepted))]
    assert rows([table]) == rows([line])
    assert "context is half of the output" in line.note
    row = {"row_type": "attempt", "ok": True, "timing": {"decode_s": 2.0}, "tokens": {"prompt": 100, "generated": 200}}
    (plain,) = read(tmp_path, [row | {"speculative": {"stages": []}}], "plain.jsonl")
    assert (plain.k, plain.step_seconds, plain.note) == (0, 0.01, "")


def timings(prompt: int, output: int, milliseconds: float, drafts: Sequence[int] = ()) -> dict[str, Any]:
    known = {"cache_n": 4, "prompt_n": prompt - 4, "predicted_n": output, "predicted_ms": milliseconds}
    return {"timings": known | dict(zip(("draft_n", "draft_n_accepted"), drafts, strict=False))}


def test_llama_server_answers(tmp_path: Path) -> None:
    """121 tokens, 60 accepted: 60 calls that drafted 180. Answers of one k and context are one run."""
    same = [timings(1000, 121, 1200.0, (180, 60))] * 2
    runs = read(tmp_path, [timings(1000, 101, 1000.0), *same, timings(8000, 121, 1500.0, (180, 60))], "t.jsonl")
    assert rows(runs) == [(1, 1050.5, 0, 0.01, 0.0), (1, 1060.5, 3, 0.02, 2.0), (1, 8060.5, 3, 0.025, 2.0)]
    assert [(run.requests, run.calls) for run in runs] == [(1, None), (2, 120), (1, 60)]
    for drafted, name, words in ((90, "t", "1.50 drafts per call"), (180, "k4", "its name says k = 4")):
        with pytest.raises(TextError, match=re.escape(words)):
            read(tmp_path, [timings(1000, 121, 1200.0, (drafted, 60))], f"{name}.jsonl")
    assert not timed_runs(SAMPLES / "llama_timings.json")[0].survival


LOG = """
0.01 I slot print_timing: id  0 | task 1 | prompt eval time =     252.01 ms /   996 tokens (    63.00 ms per token)
0.01 I slot print_timing: id  0 | task 1 |        eval time =    1200.00 ms /   121 tokens (    60.31 ms per token)
0.01 I slot print_timing: id  0 | task 1 |       total time =    1452.01 ms /  1117 tokens
0.01 I slot print_timing: id  0 | task 1 | draft acceptance = 0.33333 (   60 accepted /   180 generated)
0.01 I slot      release: id  0 | task 1 | stop processing: n_tokens = 1121, truncated = 0
slot print_timing: id  0 | task 124 |
prompt eval time =    5093.47 ms /  1000 tokens (    3.75 ms per token,   267.01 tokens per second)
       eval time =    1000.00 ms /   101 tokens (   31.96 ms per token,    31.29 tokens per second)
      total time =    6093.47 ms /  1101 tokens
"""


def test_llama_server_log(tmp_path: Path) -> None:
    """Two requests, in both forms of the lines."""
    assert rows(read(tmp_path, LOG, "server.log")) == [(1, 1050.5, 0, 0.01, 0.0), (1, 1060.5, 3, 0.02, 2.0)]
    with pytest.raises(TextError, match="without its times: needs the lines of eval time"):
        timed_runs(SAMPLES / "llama_log.txt")


def report(**decoding: Any) -> dict[str, Any]:
    return {
        "engine": {"model": "m", "backend": "Pytorch"},
        "request_info": {
            "num_requests": 100,
            "avg_num_concurrent_requests": 7.6,
            "avg_input_length": 1000.0,
            "avg_output_length": 121.0,
        },
        "performance": {"total_latency_ms": 20000.0},
        "streaming_metrics": {"avg_ttft_ms": 50.0, "avg_tpot_ms": 10.0},
    } | decoding


def drafts(drafted: float, accepted: float) -> dict[str, Any]:
    names = ("num_draft_tokens_percentiles", "num_accepted_draft_tokens_percentiles")
    means = ({"average": value, "p50": 0.0} for value in (drafted, accepted))
    return {"decoding_stats": {"mode": "Eagle3"} | dict(zip(names, means, strict=True))}


def test_tensorrt_reports(tmp_path: Path) -> None:
    """121 tokens in 61 iterations, the first of which reads the prompt."""
    assert rows(read(tmp_path, json.dumps(report()))) == [(8, 1060.5, 0, 0.01, 0.0)]
    (run,) = read(tmp_path, json.dumps(report(**drafts(183.0, 60.0))))
    assert rows([run]) == [(8, 1060.5, 3, 0.02, 2.0)]
    assert (run.calls, run.ttft) == (6000, 0.05)
    for change, words in (
        (drafts(150.0, 60.0), "2.46 drafts in an iteration"),
        ({"streaming_metrics": None}, "--streaming"),
    ):
        with pytest.raises(TextError, match=words):
            read(tmp_path, json.dumps(report(**change)))


def test_ollama_answers(tmp_path: Path) -> None:
    answer = {"model": "m", "done": True, "prompt_eval_count": 1000, "eval_count": 101, "eval_duration": 1_000_000_000}
    (run,) = read(tmp_path, [{"response": "a", "done": False}, answer], "answers.jsonl")
    assert rows([run]) == [(1, 1050.5, 0, 0.01, 0.0)]
    assert "read as plain decoding" in run.note
    with pytest.raises(TextError, match="keep the log of ollama serve"):
        read(tmp_path, [answer], "k3.jsonl")


@each(
    "content, words",
    [
        ({"avg_latency": 1.0, "latencies": [1.0], "percentiles": {}}, "is a result of vllm bench latency"),
        ({"elapsed_time": 1.0, "num_requests": 1, "total_num_tokens": 3}, "is a result of vllm bench throughput"),
    ],
)
def test_files_without_times_of_steps(content: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(TextError) as refused:
        read(tmp_path, json.dumps(content))
    assert words in str(refused.value)
    assert "use vllm bench serve" in str(refused.value)


@each(
    "name, remedy",
    [
        ("vllm_metrics.txt", "use vllm bench serve"),
        ("vllm_log_line.txt", "use vllm bench serve"),
        ("sglang_log.txt", "sglang.bench_serving"),
        ("trtllm_iterations.jsonl", "trtllm-bench"),
        ("ollama_log.txt", "keep the log"),
        ("lmdeploy_log.txt", "use vllm bench serve"),
        ("mlx_lm.jsonl", "timed_formats() lists them"),
    ],
)
def test_logs_of_counts_say_what_to_run(name: str, remedy: str) -> None:
    with pytest.raises(TextError) as refused:
        timed_runs(SAMPLES / name)
    assert remedy in str(refused.value)


def test_a_sweep_of_vllm_is_read_once(tmp_path: Path) -> None:
    """Runs, their summary beside them, a warm-up and a failure."""
    captured = (Path(__file__).parents[2] / "benchmarks" / "results" / "bench_serve" / "k3_c8_in128.json").read_text()
    place = tmp_path / "SERVE--a-BENCH--b"
    place.mkdir()
    for name, content in (("run=0", captured), ("summary", f"[{captured}]"), ("warmup", captured), ("x.failure", "{}")):
        (place / f"{name}.json").write_text(content)
    (tmp_path / "summary.csv").write_text("a,b\n")
    (run,) = timed_runs(tmp_path)
    assert (run.k, run.batch) == (3, 8)
    assert timed_runs(place / "summary.json")[0].step_seconds == run.step_seconds


def test_the_page_lists_the_formats() -> None:
    """Every format of timed runs is a row of docs/formats.md."""
    assert table() in PAGE.read_text(encoding="utf-8")


def table() -> str:
    """The rows of the page."""
    lines = (f"| `{one.name}` | {one.title} | {one.lacks or '-'} |" for one in timed_formats().values())
    return "\n".join(["| format | what it is | what it lacks |", "|---|---|---|", *lines])


def test_files_of_counts_are_still_counts() -> None:
    """The same files are logs of counts for other commands."""
    for name in ("sglang_sweep.jsonl", "llama_spec_bench.md", "llama_timings.json"):
        assert read_evidence(SAMPLES / name)


Damage = Callable[[str], str]


@each(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: re.sub(r"\d+", '"x"', text),
        lambda text: text.replace(":", ": {"),
    ],
)
def test_damaged_files_give_one_line(damage: Damage, tmp_path: Path) -> None:
    """No traceback of another kind comes through; a whole file of the format is read (control)."""
    files = {"serving.jsonl": [SERVED], "bench.jsonl": TIMED, "report.json": [report(**drafts(183.0, 60.0))]}
    for name, content in files.items():
        whole = "\n".join(map(json.dumps, content))
        assert read(tmp_path, whole, name)
        with pytest.raises(TextError):
            read(tmp_path, damage(whole), name)
