"""A job run by an engine: every finished request is on the disk, and a rerun continues."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from spectheory.errors import EngineError, TextError
from spectheory.measure.engines.base import Engine, Job, Models
from spectheory.measure.folder import fingerprint_of
from spectheory.measure.machine import hardware, versions
from spectheory.store import Contents, Store
from spectheory.trace.calls import CALLS_FILE, MARK, SCHEMA, CallLog, Request, request_line

OnRequest = Callable[[int, int], None]
"""Told how many requests are finished, and of how many."""
CALLS = Contents(
    MARK,
    SCHEMA,
    "calls of requests",
    TextError,
    "choose another --out, or delete the file",
    "another job (engine, version, models, prompts or settings differ)",
    "a rerun continues the same job",
    identity=lambda head: head["provenance"].get("job"),
    sealed=False,
)


def run_job(engine: Engine, job: Job, models: Models, out: Path, *, on_progress: OnRequest | None = None) -> CallLog:
    """The calls of `engine` on the prompts of `job`, in their order; `out` gets ``calls.jsonl``.

    Each finished request is written and synced at once. A rerun of the same job asks for the missing ones alone;
    another job in the same folder is refused. If the engine fails, its error is raised and what is finished stays.
    """
    with Store(out / CALLS_FILE, CALLS, _header(engine, job, models).header()) as store:
        log = CallLog.read(store.path)
        done = {request.id: request for request in log.requests}
        missing = tuple(prompt for prompt in job.prompts if prompt[0] not in done)
        if on_progress:
            on_progress(len(done), len(job.prompts))
        for request in _answers(engine, replace(job, prompts=missing), models) if missing else ():
            store.add(request_line(request))
            done[request.id] = request
            if on_progress:
                on_progress(len(done), len(job.prompts))
    return replace(log, requests=tuple(done[name] for name, _ in job.prompts))


def _answers(engine: Engine, job: Job, models: Models) -> Iterator[Request]:
    """The engine's requests; one that is no prompt of the job, or without output, or missing, is refused."""
    asked = dict(job.prompts)
    with closing(iter(engine.requests(job, models))) as requests:  # type: ignore[type-var]
        for request in requests:
            if request.id not in asked or not request.output or request.prompt != asked[request.id]:
                raise EngineError(
                    f"{engine.name} answered request {request.id!r} without output or with another prompt",
                    limit="needs the ids of every prompt and its output",
                    remedy="see its log",
                )
            del asked[request.id]
            yield request
    if asked:
        raise EngineError(
            f"{engine.name} ended with {len(asked)} of {len(job.prompts)} requests unanswered",
            limit="needs an answer to each",
            remedy="run the same command again; finished requests are kept",
        )


def _header(engine: Engine, job: Job, models: Models) -> CallLog:
    """The log of a job before its first request."""
    settings = dict(engine.settings(job))
    version = engine.version()
    sampling = job.sampling
    provenance = {
        "job": _fingerprint(engine.name, version, job, settings, models),
        "models": {name: _described(getattr(models, name)) for name in ("target", "draft")},
        "tokens": job.tokens,
        "seed": job.seed,
        "drafts": job.drafts,
        "settings": settings,
        "hardware": hardware(),
        "versions": versions(),
        "date": time.strftime("%Y-%m-%d"),
    }
    return CallLog(
        (),
        engine=engine.name,
        version=version,
        k=job.k,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        prefill_emits_token=engine.prefill_emits_token,
        counts_past_end=engine.counts_past_end,
        provenance=provenance,
    )


def _described(folder: Path) -> dict[str, str]:
    return {"name": folder.name, "fingerprint": fingerprint_of(folder, None)}


def _fingerprint(name: str, version: str, job: Job, settings: Mapping[str, Any], models: Models) -> str:
    """A hash of all that decides the requests."""
    parts = [name, version, asdict(job), settings, _described(models.target), _described(models.draft)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
