"""llama.cpp: its server, with a draft model; both as GGUF in single precision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spectheory.engines.llamacpp.gguf import export_gguf
from spectheory.errors import SettingError
from spectheory.measure.engines import Engine, Job, Models
from spectheory.measure.engines.processes import find_program, output_of, serving
from spectheory.measure.engines.server import Dialect, Reply, sampled, send_prompts, token_ids
from spectheory.measure.model_files import fingerprint_of
from spectheory.trace.calls import Request

_PROGRAM = "llama-server"
_REMEDY = "install llama.cpp, or build it with cmake"
_SAMPLES = {"sampled": "probabilistic", "argmax": "greedy"}


class LlamaEngine(Engine):
    """llama.cpp's server, one request at a time, without prompt cache.

    `program` is ``llama-server``. By its own default it drafts first choices (`greedy`).
    """

    name = "llama.cpp"
    counts_past_end = True
    drafts = ("sampled", "argmax")

    def version(self) -> str:
        """What the program says of its build."""
        said = output_of(self.name, [self._program(), "--version"], _REMEDY)
        lines = [line.partition(":")[2].strip() for line in said.splitlines() if line.startswith("version:")]
        if not lines:
            raise SettingError(f"{_PROGRAM} says no version", limit="needs llama.cpp's server", remedy=_REMEDY)
        return lines[0].replace(", commit unknown", "")

    def _program(self) -> str:
        return find_program(self.name, self.program, _PROGRAM, _REMEDY)

    def settings(self, job: Job) -> Mapping[str, Any]:
        """Arguments of the server, paths and port left out."""
        return _options(job)

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Export the models, start the server for this job and run its prompts."""
        named = {"model": models.target, "spec-draft-model": models.draft if job.k else None}
        files = {name: gguf_of(folder, models.work) for name, folder in named.items() if folder}
        places = {"host": "127.0.0.1", "port": "{port}", **files}
        command = [self._program(), "--metrics", "--no-webui"]
        for name, value in (_options(job) | places).items():
            command += [f"--{name}", str(value)]
        with serving(command, models.work / "llama-server.log") as http:
            yield from send_prompts(http, job)


def gguf_of(saved: Path, work: Path) -> Path:
    """A model as GGUF; two models of one name, or one that was trained on, have files of their own."""
    return export_gguf(saved, work / f"{saved.name}-{fingerprint_of(saved, None)}.gguf")


def _options(job: Job) -> dict[str, Any]:
    """Caches are in single precision like the weights; a request is alone in its batch."""
    options: dict[str, Any] = {"parallel": 1, "cache-type-k": "f32", "cache-type-v": "f32", "flash-attn": "off"}
    if not job.k:
        return options
    options |= {"spec-type": "draft-simple", "spec-draft-n-max": job.k}
    options |= {f"spec-draft-type-{each}": "f32" for each in "kv"}
    return options | ({"spec-draft-sampling": _SAMPLES[job.drafts]} if job.drafts else {})


def _body(job: Job, name: str, prompt: tuple[int, ...], model: str) -> dict[str, Any]:
    return {
        "prompt": list(prompt),
        "n_predict": job.tokens,
        "return_tokens": True,
        "cache_prompt": False,
        "samplers": ["temperature", "top_k", "top_p", "min_p"],  # the order of transformers
        **sampled(job, name),
    }


def _reply(answer: Mapping[str, Any]) -> Reply:
    timings = answer.get("timings") or {}
    counts = {}
    if "draft_n" in timings:
        counts = {"total_drafted": timings["draft_n"], "total_accepted": timings["draft_n_accepted"]}
    return Reply(token_ids(answer.get("tokens") or ()), answer.get("stop_type") == "eos", counts)


RUNS = LlamaEngine
DIALECT = Dialect("llama.cpp", "/completion", _body, _reply, owner="llamacpp", decodes="llamacpp:n_decode_total")
