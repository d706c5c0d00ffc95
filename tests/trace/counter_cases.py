"""Logs of totals in tests: the samples, and what each holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectheory.trace.counters import Counters
from spectheory.trace.reading import read_evidence
from spectheory.trace.samples import SAMPLES

HELD: dict[str, dict[str, Any]] = {
    "vllm_metrics.txt": {
        "format": "prometheus", "engine": "vllm", "calls": 188, "drafted": 1316, "accepted": 151, "k": 7,
        "tokens": 335, "by_position": [38, 30, 24, 21, 16, 11, 11], "cumulative": True,
    },
    "llama_server_metrics.txt": {
        "format": "prometheus", "engine": "llama.cpp", "calls": 3006, "drafted": 8936, "accepted": 5767, "k": 3,
        "tokens": 8895, "seconds": 8.83389, "by_position": [2307, 1891, 1569], "cumulative": True,
    },
    "trtllm_metrics.txt": {
        "format": "prometheus", "engine": "tensorrt-llm", "calls": None, "drafted": 120, "accepted": 60,
        "mean_length": 2.5, "cumulative": True,
    },
    "sglang_metrics.txt": {"format": "prometheus", "engine": "sglang", "calls": None, "mean_length": 1.55, "k": 1},
    "vllm_specdecoding_log_line.txt": {
        "format": "vllm-log", "engine": "vllm", "calls": 188, "drafted": 1316, "accepted": 151, "k": 7,
        "by_position": [38, 30, 24, 21, 16, 11, 11],
    },
    "vllm_log_line.txt": {
        "format": "vllm-log", "engine": "vllm", "calls": 4774, "drafted": 14322, "accepted": 7667, "k": 3,
        "rounding": 5e-4, "survival": (0.906, 0.497, 0.203),
    },
    "vllm_offline.txt": {
        "format": "vllm-offline", "engine": "vllm", "calls": 4816, "drafted": 33712, "accepted": 12208, "k": 7,
        "tokens": 16990, "survival": (),
    },
    "vllm_offline_list.txt": {
        "format": "vllm-offline",
        "engine": "vllm",
        "calls": 50,
        "drafted": 150,
        "accepted": 75,
        "k": 3,
        "by_position": [40, 25, 10],
    },
    "trtllm_iterations.jsonl": {
        "format": "tensorrt-llm-stats", "engine": "tensorrt-llm", "calls": 4, "drafted": 12, "accepted": 6, "k": 3,
        "seconds": 0.0091, "draft_seconds": 0.0022,
    },
    "llama_timings.json": {
        "format": "llama.cpp-timings", "engine": "llama.cpp", "calls": 149, "drafted": 604, "accepted": 515,
        "tokens": 665, "k": None,
    },
    "llama_v1_completions.json": {
        "format": "llama.cpp-timings", "engine": "llama.cpp", "calls": 6, "drafted": 17, "accepted": 17, "tokens": 24,
    },
    "llama_completion_n_probs.json": {
        "format": "llama.cpp-timings", "engine": "llama.cpp", "calls": 7, "drafted": 21, "accepted": 16, "tokens": 24,
    },
    "llama_server_log_line.txt": {
        "format": "llama.cpp-log", "engine": "llama.cpp", "calls": 64, "drafted": 190, "accepted": 125, "k": None,
    },
    "llama_log.txt": {
        "format": "llama.cpp-log", "engine": "llama.cpp", "calls": 97, "drafted": 388, "accepted": 257, "k": 4,
        "by_position": [78, 68, 61, 50],
    },
    "llama_statistics.txt": {
        "format": "llama.cpp-log", "engine": "llama.cpp", "calls": 134, "drafted": 536, "accepted": 354, "k": 4,
        "by_position": [109, 96, 83, 66], "draft_seconds": 0.80856,
    },
    "llama_older.txt": {
        "format": "llama.cpp-log", "engine": "llama.cpp", "calls": None, "drafted": 297, "accepted": 171,
    },
    "sglang_log.txt": {"format": "sglang-log", "engine": "sglang", "calls": None, "mean_length": 1.9, "k": 3},
    "speculators.csv": {
        "format": "speculators", "engine": "vllm", "calls": 400, "drafted": 1200, "accepted": 661, "k": 3,
        "by_position": [341, 215, 105],
    },
    "acceptance.json": {
        "format": "acceptance", "engine": "", "calls": None, "k": 4, "rounding": 5e-7,
        "survival": (0.752994, 0.590869, 0.476194, 0.383467),
    },
    "acceptance_lengths.yaml": {
        "format": "lengths-by-k", "engine": "", "calls": None, "k": 8, "mean_length": 3.94, "survival": (),
        "lengths": ((1, 1.77), (2, 2.35), (3, 2.8), (4, 3.16), (5, 3.43), (6, 3.65), (7, 3.81), (8, 3.94)),
    },
    "sglang_sweep.jsonl": {
        "format": "sglang-sweep", "engine": "sglang", "calls": None, "k": 5,
        "lengths": ((1, (1.75 + 1.762) / 2), (3, (2.79 + 2.802) / 2), (5, (3.41 + 3.422) / 2)),
    },
    "llama_spec_bench.md": {
        "format": "llama-spec-bench", "engine": "ik_llama.cpp", "calls": 515, "drafted": 1543, "accepted": 921, "k": 3,
    },
    "llama_spec_bench.jsonl": {
        "format": "llama-spec-bench", "engine": "ik_llama.cpp", "calls": 515, "drafted": 1543, "accepted": 921, "k": 3,
        "by_position": [117 + 148 + 156, 93 + 112 + 91, 72 + 81 + 51],
    },
    "lmdeploy_log.txt": {
        "format": "vllm-log", "engine": "lmdeploy", "calls": 900, "drafted": 2700, "accepted": 1573, "k": 3,
        "by_position": [352 + 360, 251 + 259, 170 + 181],
    },
    "lmdeploy_log_later.txt": {
        "format": "vllm-log", "engine": "lmdeploy", "calls": 950, "drafted": 2850, "accepted": 1424, "k": 3,
    },
    "ollama_log.txt": {
        "format": "ollama-log", "engine": "ollama", "calls": 236, "drafted": 705, "accepted": 470, "k": 4,
    },
}  # fmt: skip
"""What each sample holds: `by_position` are calls that accepted at least so many tokens."""


def counters_of(path: Path, format: str | None = None) -> Counters:
    evidence = read_evidence(path, format)
    assert isinstance(evidence, Counters)
    return evidence


def sample(name: str) -> Counters:
    return counters_of(SAMPLES / name, HELD[name]["format"])
