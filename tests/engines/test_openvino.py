"""OpenVINO GenAI as evidence: exact at temperature 0; sampling is refuted with a draft, and passes without."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spectheory.distributions import Sampling
from spectheory.engines.openvino.running import _OpenVinoEngine
from spectheory.judging.judgement import judge
from spectheory.judging.output import output_tests
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.engines import Job, Models, find_engine
from spectheory.measure.engines.validation import _run_job
from spectheory.measure.judged import judged_trace
from spectheory.measure.tokens import encode_prompt
from spectheory.pairs import resolve
from spectheory.prompts import read_prompts
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog

pytestmark = pytest.mark.evidence

PROMPTS, TOKENS, KS = 16, 96, (1, 3, 5)
PAIR = [Path(resolve(f"builtin:{name}")) for name in ("target", "distilled")]
FLOAT32 = 1e-4
"""Logits of two float32 implementations: 1e-5 was seen of logits up to 16, with 12 layers of sums in another order."""

LOGITS = """
import sys
import numpy as np, openvino as ov
exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
ids, state = np.load(sys.argv[2]), ov.Core().compile_model(sys.argv[1], "CPU", exact).create_infer_request()
found, done = [], 0
for part in np.split(ids, [40, 41, 45], axis=1):
    whole, places = done + part.shape[1], np.arange(done, done + part.shape[1])[None]
    beam = np.zeros(1, np.int32)
    mask = np.ones((1, whole), np.int64)
    given = {"input_ids": part, "attention_mask": mask, "position_ids": places, "beam_idx": beam}
    found.append(state.infer(given)[0].copy())
    done = whole
np.save(sys.argv[3], np.concatenate(found, axis=1))
"""
"""Logits of a text that is read in parts, with the state between them."""


@pytest.fixture(scope="module")
def pair() -> ModelPair:
    return load_pair(*PAIR, dtype="float32")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("openvino")


def ran(pair: ModelPair, work: Path, temperature: float, k: int | None) -> tuple[CallLog, Trace]:
    """The engine's log, and its output read by both models."""
    prompts = read_prompts(PAIR[0].parent / "question.jsonl")[:PROMPTS]
    ids = tuple((prompt.id, tuple(encode_prompt(pair.tokenizer, prompt).tolist())) for prompt in prompts)
    job = Job(ids, TOKENS, k, Sampling(temperature), seed=5)
    log = _run_job(find_engine("openvino"), job, Models(*PAIR, work / "models"), work / f"{temperature}-{k}")
    return log, judged_trace(pair, log)


@pytest.mark.parametrize("model", PAIR, ids=lambda path: path.name)
def test_logits_are_torchs(model: Path, pair: ModelPair, tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 512, (1, 64))
    np.save(tmp_path / "ids.npy", ids)
    for command in (
        [str(_OpenVinoEngine.writes), str(model), str(tmp_path / "written")],
        ["-c", LOGITS, *(str(tmp_path / name) for name in ("written/openvino_model.xml", "ids.npy", "logits.npy"))],
    ):
        subprocess.run([sys.executable, *command], check=True)
    network = (pair.target if model == PAIR[0] else pair.draft).network
    with torch.no_grad():
        expected = network(torch.tensor(ids)).logits.numpy()
    assert np.abs(np.load(tmp_path / "logits.npy") - expected).max() < FLOAT32


def test_at_temperature_0_counts_are_exactly_those_expected(pair: ModelPair, work: Path) -> None:
    """Nothing is random: calls, accepted tokens at every position, and the calls of each single text are equal."""
    for k in KS:
        log, trace = ran(pair, work, 0.0, k)
        (standing,) = judge(log, trace).standings
        assert sum(request.calls or 0 for request in log.requests) == standing.calls.low == standing.calls.high
        assert all(one.counted == one.low == one.high for one in standing.starts)
        assert len(standing.starts) == k
        assert standing.texts == (), "each text has its own calls"
        other = replace(trace, columns={**trace.columns, "draft_rank": np.roll(trace.columns["draft_rank"], 1)})
        assert judge(log, other).refuted, "another draft's first choices are not what was counted"


def test_sampling_without_a_draft_is_the_targets(pair: ModelPair, work: Path) -> None:
    log, trace = ran(pair, work, 1.0, None)
    assert {request.calls for request in log.requests} == {None}
    assert not [test for test in output_tests(trace) if test.refuted]


def test_sampling_with_a_draft_is_refuted(pair: ModelPair, work: Path) -> None:
    """Its counts are those of no rule, and its text is not the target's: known of 2026.4.1, from its source."""
    for k in KS:
        log, trace = ran(pair, work, 1.0, k)
        judged = judge(log, trace)
        assert {"token", "argmax", "independent"} <= {
            name for one in judged.standings for name in (one.rule, *one.same)
        }
        assert judged.refuted, f"k = {k}: {[one.rule for one in judged.fitting]} fits; see docs/engines.md"
        assert any(test.refuted for test in output_tests(trace)), f"k = {k}"
