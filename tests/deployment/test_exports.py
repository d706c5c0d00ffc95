"""Exports: definitions round-trip, formats are those of the tools, and acceptance is at the starts of calls."""

from __future__ import annotations

import itertools
import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectheory.deployment.exports import EXPORTS, Acceptance, counted_acceptance
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.trace import Trace, read_evidence
from spectheory.trace.counters import Counters
from spectheory.verification import RULES, PathRule, TokenVerification
from tests.made_up import each
from tests.toy_drafts import text_trace

ROUNDED = 1e-6
"""Six digits after the point, over at most eight factors."""
GIVEN = Acceptance((0.9, 0.5, 0.2), ((1, 4, 3), (5, 8, 0)))


def test_definitions_round_trip() -> None:
    """Survival to hazards and back; what each tool computes from its own options is one mean."""
    rng = np.random.default_rng(0)
    for k in (1, 3, 5):
        given = Acceptance(tuple(np.sort(rng.random(k))[::-1].tolist()))
        assert np.cumprod(given.hazards) == pytest.approx(given.survival)
        options = {name: export.options(given) for name, export in EXPORTS.items() if not export.by_batch}
        rates = options["vllm-rates"]["synthetic_acceptance_rates"]
        hazards = options["dynamo"]["aic-nextn-accept-rates"]
        mean = options["aiconfigurator"]["nextn_accepted"]
        for other in (
            sum(rates),  # unconditional
            float(np.sum(np.cumprod(hazards))),  # conditional
            options["vllm-length"]["synthetic_acceptance_length"] - 1,
            options["sglang"]["SGLANG_SIMULATE_ACC_LEN"] - 1,
            options["tensorrt-llm"]["TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS"],
            options["atom"]["spec-decode-acceptance-length"] - 1,
            sum(options["llamacpp"]["spec-synth-rates"]),
            options["acceptance"]["tokens_per_call"] - 1,
            sum(options["acceptance"]["survival"]),
        ):
            assert other == pytest.approx(mean, abs=8 * ROUNDED)
        assert all(0 <= later <= earlier <= 1 for earlier, later in itertools.pairwise(rates))
    assert Acceptance((0.5, 0.0, 0.0)).hazards == (0.5, 0.0, 0.0)


def test_texts_are_as_the_tools_read_them() -> None:
    written = {name: export.text(export.of(GIVEN)) for name, export in EXPORTS.items()}
    assert json.loads(written["vllm-rates"]) == {
        **{"num_speculative_tokens": 3, "rejection_sample_method": "synthetic"},
        "synthetic_acceptance_rates": [0.9, 0.5, 0.2],
    }
    assert json.loads(written["vllm-length"])["synthetic_acceptance_length"] == 2.6
    assert json.loads(written["vllm-schedule"]) == {
        **{"num_speculative_tokens": 3, "num_speculative_tokens_per_batch_size": [[1, 4, 3], [5, 8, 0]]}
    }
    assert written["aiconfigurator"] == "nextn: 3\nnextn_accepted: 1.6"
    assert shlex.split(written["dynamo"]) == ["--aic-nextn", "3", "--aic-nextn-accept-rates", "0.9,0.555556,0.4"]
    assert written["tensorrt-llm"] == "TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS=1.6"
    assert shlex.split(written["atom"]) == ["--num-speculative-tokens", "3", "--spec-decode-acceptance-length", "2.6"]
    assert shlex.split(written["llamacpp"]) == ["--spec-draft-n-max", "3", "--spec-synth-rates", "0.9,0.5,0.2"]
    small = json.loads(written["acceptance"])
    assert small == {"k": 3, "survival": [0.9, 0.5, 0.2], "tokens_per_call": 2.6, "kind": "exact"}
    pairs = dict(word.split("=") for word in written["sglang"].split())
    assert pairs["SGLANG_SIMULATE_ACC_LEN"] == "2.6"
    assert pairs["SGLANG_SIMULATE_ACC_METHOD"] == "match-expected", "multinomial does not keep the mean"


@each("kind", ["exact", "counted"])
def test_stated_acceptance_is_read_as_it_was_written(kind: str, tmp_path: Path) -> None:
    given, export = replace(GIVEN, schedule=(), kind=kind), EXPORTS["acceptance"]
    (tmp_path / "small").write_text(export.text(export.of(given)))
    counts = read_evidence(tmp_path / "small")
    assert isinstance(counts, Counters)
    again, words = counted_acceptance({"small": counts})
    assert (again, words) == (given, f"small, {kind}, k = 3")


def calls_from(survival: np.ndarray, length: int, k: int) -> tuple[np.ndarray, float]:
    """Accepted at least i, and calls, summed over starts with k tokens left, walking all outcomes from token 1."""
    reached = np.zeros(length + k + 2)
    reached[1] = 1.0
    counts, calls = np.zeros(k), 0.0
    for n in range(1, length):
        law = np.concatenate([[1.0], survival[n], [0.0]])
        for tau in range(k + 1):
            reached[n + tau + 1] += reached[n] * (law[tau] - law[tau + 1])
        if length - n >= k:
            counts, calls = counts + reached[n] * survival[n], calls + reached[n]
    return counts, calls


@each("name", ["token", "block", "argmax"])
def test_survival_is_at_the_starts_of_calls(name: str) -> None:
    """Against a walk over all outcomes. Negative control: the mean over all positions is another number."""
    trace, rule, k = text_trace(4, 1.0, texts=3, tokens=60), RULES[name], 4
    assert isinstance(rule, PathRule)
    path = rule.path_survival(trace.columns, k)
    parts = [calls_from(path[start : start + 60], 60, k) for start in (0, 60, 120)]
    walked = sum(counts for counts, _ in parts) / sum(calls for _, calls in parts)
    survival = survival_at_starts(trace, rule, k)
    assert survival == pytest.approx(walked, rel=1e-9)
    inside = np.concatenate([np.arange(start + 1, start + 61 - k) for start in (0, 60, 120)])
    naive = path[inside].mean(axis=0)
    assert np.abs(naive - survival).max() > 0.01, "a naive average differs: the check can fail"


def test_position_one_differs_between_lengths() -> None:
    """Stretches of ten easy and ten hard tokens: a long chain passes over the easy ones in one call."""
    target, draft = [-1.0] * 200, ([-1.0] * 10 + [-3.0] * 10) * 10
    trace = Trace.from_log_probabilities([(target, draft)] * 2)
    first = [survival_at_starts(trace, TokenVerification(), k)[0] for k in (1, 8)]
    assert first[1] < first[0] - 0.1
