"""Any OpenAI-compatible server that takes and gives token ids: ``validate --server URL``."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import Any

from spectheory.errors import FOREIGN, EngineError, SettingError
from spectheory.measure.engines.base import Engine, Job, Models
from spectheory.measure.engines.dialects import LLAMA, Dialect, Reply, dialect_of
from spectheory.measure.engines.http import LONGEST, MOST_BYTES, Http
from spectheory.measure.engines.scraped import Scraped
from spectheory.trace.calls import Request


class ServerEngine(Engine):
    """A server that is already running, by its URL. Prompts are sent one after another.

    Whether it speculates, and how, was settled when it was started; nobody else should use it meanwhile, since a
    request's calls are the difference of two ``/metrics`` where its answer holds none.
    """

    name = "server"
    counts_past_end = True
    drafts = (None,)

    def __init__(self, program: str | None = None, timeout: float = LONGEST, most: int = MOST_BYTES) -> None:
        super().__init__(program)
        if not program:
            raise SettingError("no server is named", limit="needs its URL", remedy="as --server http://localhost:8000")
        self.http = Http(program, timeout, most)

    def version(self) -> str:
        """What the server says of itself, with the dialect that it is asked in."""
        dialect, _ = dialect_of(self.http.get("/v1/models"))
        return f"{dialect.engine} {said_version(self.http)}".strip()

    def chain(self) -> int | None:
        """The longest chain that the server drafts, by its counters; None if they do not say."""
        return Scraped.of(self.http.get("/metrics") or "").positions or None

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Run the prompts one after another."""
        return asked(self.http, job)

    def settings(self, job: Job) -> Mapping[str, Any]:
        """The model's name as the server has it."""
        dialect, model = dialect_of(self.http.get("/v1/models"))
        return {"dialect": dialect.engine, "model": model.rpartition("/")[2]}


def said_version(http: Http) -> str:
    """The version that a server answers, or nothing."""
    for path, name in (("/version", "version"), ("/props", "build_info")):
        try:
            return str(json.loads(http.get(path) or "")[name])
        except FOREIGN:
            continue
    return ""


def asked(http: Http, job: Job) -> Iterator[Request]:
    """The requests of a job, one after another; each with its calls where the job speculates."""
    dialect, model = dialect_of(http.get("/v1/models"))
    before = _scraped(http) if job.k else None
    for name, prompt in job.prompts:
        began = time.perf_counter()
        reply = _reply(http, dialect, dialect.body(job, name, prompt, model), name)
        seconds = time.perf_counter() - began
        counts: dict[str, Any] = {}
        if job.k:
            after = _scraped(http)
            counts = _counted(before, after, dict(reply.counts), dialect, name)
            before = after
        request = Request(name, prompt, reply.output, ended=reply.ended, seconds=round(seconds, 6), **counts)
        _check_alone(request, job.k)
        yield request


def _check_alone(request: Request, k: int | None) -> None:
    """Refuse counts that no single request can have: a call emits its accepted drafts and one token more."""
    emitted = (request.calls or 0) + (request.total_accepted or 0)
    most = len(request.output) + (k or 0)
    if emitted > most:
        raise EngineError(
            f"request {request.id!r} has {len(request.output)} tokens, its calls emitted {emitted}",
            limit=f"at most {most}, those past the end included",
            remedy="other requests ran on the server: let it serve this job alone",
        )


def _scraped(http: Http) -> Scraped | None:
    text = http.get("/metrics")
    return None if text is None else Scraped.of(text)


def _reply(http: Http, dialect: Dialect, body: dict[str, Any], name: str) -> Reply:
    """A server's answer, which must hold token ids."""
    answer = http.post(dialect.path, body)
    try:
        reply = dialect.read(answer)
    except FOREIGN as error:
        raise EngineError(
            f"server {http.url} answered request {name!r} in an unknown form ({type(error).__name__}: "
            f"{shorten(str(error), 120)})",
            limit="needs choices with token ids",
            remedy="use a server that speaks the completions of vLLM or llama.cpp",
        ) from error
    if not reply.output:
        raise EngineError(
            f"server {http.url} gives no token ids",
            limit="texts are judged by ids",
            remedy="use a server with return_token_ids (vLLM), return_tokens (llama.cpp) or token_id:... in logprobs",
        )
    return reply


def _counted(
    before: Scraped | None, after: Scraped | None, counts: dict[str, Any], dialect: Dialect, name: str
) -> dict[str, Any]:
    """The counts of a request: those in its answer, else the difference of two scrapes; never none."""
    if counts and dialect is not LLAMA:
        return counts
    found = after.since(before, dialect.decodes) if before and after else {}
    if not found:
        raise EngineError(
            f"the server counts no drafts of request {name!r}",
            limit="needs calls in its answers, or spec_decode counters in /metrics",
            remedy="start it with speculation, and vLLM with --per-request-spec-decode-metrics detailed, "
            "llama.cpp with --metrics",
        )
    return found
