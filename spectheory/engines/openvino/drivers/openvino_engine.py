"""OpenVINO GenAI as the driver runs it: one pipeline for a job, token ids in and out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
import openvino_genai as genai


class Steps(genai.StreamerBase):  # type: ignore[misc]
    """The tokens that each call of the target hands out."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []

    def write(self, tokens: int | list[int]) -> genai.StreamingStatus:
        """Note a call."""
        self.steps.append(len(tokens) if isinstance(tokens, list) else 1)
        return genai.StreamingStatus.RUNNING

    def end(self) -> None:
        """Do nothing at the end."""


def generator(job: dict[str, Any]) -> Callable[[list[int], int], dict[str, Any]]:
    """What answers a prompt: its output, and the accepted tokens of each call after the prompt's."""
    pipeline, config = _pipeline(job), _config(job)

    def generate(prompt: list[int], seed: int) -> dict[str, Any]:
        config.rng_seed = seed
        steps = Steps()
        result = pipeline.generate(ov.Tensor(np.array([prompt], np.int64)), config, steps)
        output = [int(token) for token in result.tokens[0]]
        if not job["k"]:
            return {"output": output}
        if sum(steps.steps) != len(output):
            raise RuntimeError(f"its calls handed out {sum(steps.steps)} tokens, the output has {len(output)}")
        return {"output": output, "accepted": [tokens - 1 for tokens in steps.steps[1:]]}

    return generate


def _pipeline(job: dict[str, Any]) -> genai.LLMPipeline:
    scheduler = genai.SchedulerConfig()
    for name, value in job["scheduler"].items():
        setattr(scheduler, name, value)
    options = {**job["device"], "scheduler_config": scheduler}
    if job["k"]:
        options["draft_model"] = genai.draft_model(job["draft"], "CPU", **job["device"])
    return genai.LLMPipeline(job["target"], "CPU", **options)


def _config(job: dict[str, Any]) -> genai.GenerationConfig:
    config = genai.GenerationConfig()
    config.apply_chat_template = False
    config.max_new_tokens = job["tokens"]
    config.ignore_eos = not job["end"]
    config.set_eos_token_id((job["end"] or [0])[0])
    config.stop_token_ids = set(job["end"])
    if job["k"]:
        config.num_assistant_tokens = job["k"]
    if job["temperature"] > 0:
        config.do_sample = True
        for name in ("temperature", "top_k", "top_p", "min_p"):
            if job[name] is not None:
                setattr(config, name, job[name])
    return config
