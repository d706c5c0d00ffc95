"""onnxruntime-genai as the driver runs it: a target with a draft beside it, token ids in and out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime_genai as genai


def generator(job: dict[str, Any]) -> Callable[[list[int], int], dict[str, Any]]:
    """What answers a prompt: its output, and the accepted and drafted tokens of each call."""
    with tempfile.TemporaryDirectory() as folder:
        model = genai.Model(_paired(job, Path(folder)) if job["k"] else job["target"])

    def generate(prompt: list[int], seed: int) -> dict[str, Any]:
        params = genai.GeneratorParams(model)
        params.set_search_options(max_length=len(prompt) + job["tokens"], random_seed=seed, **job["search"])
        if job["k"]:
            params.set_speculative_options(max_draft_tokens=job["k"])
        running = genai.Generator(model, params)
        running.append_tokens(np.array([prompt], np.int32))
        output: list[int] = []
        calls: list[tuple[int, int, int]] = []
        while not running.is_done():
            running.generate_next_token()
            output.append(int(running.get_next_tokens()[0]))  # its sequence lacks the end of text
            if job["k"]:
                said = running.get_speculative_stats()
                calls.append(tuple(said[name] for name in COUNTED))
        if (sequence := running.get_sequence(0)[len(prompt) :].tolist()) != output[: len(sequence)]:
            raise RuntimeError("its sequence is not of the tokens that it handed out")
        return {"output": output, **(_by_call(calls) if job["k"] else {})}

    return generate


COUNTED = ("rounds", "draft_tokens_accepted", "draft_tokens_proposed")
"""Totals that are read after every token."""


def _by_call(totals: list[tuple[int, int, int]]) -> dict[str, list[int]]:
    """Accepted and drafted tokens of each call; accepted ones past the end of the text are left out."""
    accepted, drafted, before = [], [], (0, 0, 0)
    emitted = [0] * totals[-1][0]
    for now in totals:
        emitted[now[0] - 1] += 1
        if now[0] > before[0]:
            accepted.append(now[1] - before[1])
            drafted.append(now[2] - before[2])
            before = now
    return {"accepted": [min(each) for each in zip(accepted, emitted, strict=True)], "drafted": drafted}


def _paired(job: dict[str, Any], folder: Path) -> str:
    """A folder with the configuration of both models, and links to them: paths that lead out of it are refused."""
    configs = {}
    for name in ("target", "draft"):
        (folder / name).symlink_to(Path(job[name]).resolve(), target_is_directory=True)
        configs[name] = json.loads((folder / name / "genai_config.json").read_text(encoding="utf-8"))
        decoder = configs[name]["model"]["decoder"]
        decoder["filename"] = f"{name}/{decoder['filename']}"
    configs["target"]["model"]["draft"] = configs["draft"]["model"]["decoder"]
    (folder / "genai_config.json").write_text(json.dumps(configs["target"]), encoding="utf-8")
    return str(folder)
