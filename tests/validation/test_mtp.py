"""MTP modules of a checkpoint decoded: calls counted are those expected by start and depth."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spectheory.drafting import Chain
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.model_files import quiet
from spectheory.measure.validation import Validation
from spectheory.measure.validation.run import decoded_rounds
from spectheory.measure.validation.runs import compare_runs
from tests.measure.native_made import save_native, save_near
from tests.measure.test_native_mtp import judge_of
from tests.validation.validation_cases import HOW, PROMPTS, WARM

FALSE = 1e-9
"""Of each comparison of a right expectation, of which there are six."""
CHAIN = Chain(4)
BY_TRANSFORMERS = {"mtp_fed_normed": True, "mtp_zero_first": False}
"""Fields of config.json that measure what its `use_mtp` does."""


@pytest.fixture(scope="module", params=[("qwen3_5_text", 1), ("glm4_moe", 4)])
def mtp(
    request: pytest.FixtureRequest, save_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> ModelPair:
    """A target with one module, and one with as many as the chain is long."""
    folder = tmp_path_factory.mktemp("native")
    return load_pair(save_near(save_native(save_model, folder, *request.param)), "mtp", device="cpu")


def decoded(
    pair: ModelPair, temperature: float, rules: tuple[str, ...], path: Path, chain: Chain = CHAIN
) -> dict[str, list[Any]]:
    how = dataclasses.replace(HOW, tokens=60)
    question = Validation(rules, (chain,), (temperature,), how).with_draft(pair.draft)
    settings = question.settings(temperature)
    rounds = decoded_rounds(pair, PROMPTS[:4], settings, question.at(temperature), path)
    return {setting.rule: [one[setting.name] for one in rounds] for setting in settings}


def test_greedy_calls_are_exact(mtp: ModelPair, tmp_path: Path) -> None:
    runs = decoded(mtp, 0.0, ("token",), tmp_path / "rounds.jsonl")
    assert all(compare_runs(of_one).z == 0 for of_one in runs.values())


def test_sampled_calls_are_those_expected(mtp: ModelPair, tmp_path: Path) -> None:
    """The control: argmax drafts, whose calls are certain given the text, are not those per position."""
    runs = decoded(mtp, WARM, ("token", "block", "argmax"), tmp_path / "rounds.jsonl")
    for rule, of_one in runs.items():
        assert compare_runs(of_one).p > FALSE, rule
    assert compare_runs(runs["argmax"]).z == 0
    assert abs(compare_runs(runs["argmax"], "per_position").z) == math.inf


def test_transformers_makes_the_same_calls(save_model: Callable[..., Path], tmp_path: Path) -> None:
    """Its own decoding by `use_mtp`, one draft for each module; the passes of the target are counted.

    The control: with the states that vLLM feeds back, calls differ.
    """
    counted = {}
    for name, fields in (("transformers", BY_TRANSFORMERS), ("vllm", {})):
        folder = save_near(save_native(save_model, tmp_path / name, "glm4_moe", 2, **fields))
        pair = load_pair(folder, "mtp", device="cpu")
        runs = decoded(pair, 0.0, ("token",), tmp_path / f"{name}.jsonl", Chain(2))["token"]
        assert compare_runs(runs).z == 0
        counted[name] = [run.count for run in runs]
    judge_of(pair, folder, modules=2)  # says in the target's configuration how many there are
    passes = list[int]()
    for prompt, run in zip(PROMPTS[:4], runs, strict=True):
        ids = torch.tensor([pair.tokenizer.encode(prompt.text)])
        passes.append(0)
        with pair.target.network.register_forward_hook(lambda *_: passes.append(passes.pop() + 1)), quiet():
            text = pair.target.network.generate(
                ids, use_mtp=True, do_sample=False, max_new_tokens=len(run.output), eos_token_id=None, pad_token_id=0
            )
        assert text[0, ids.shape[1] :].tolist() == list(run.output)
    assert passes == counted["transformers"]
    assert passes != counted["vllm"]
