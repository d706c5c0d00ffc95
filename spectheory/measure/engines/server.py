"""Any OpenAI-compatible server that takes and gives token ids: ``validate --server URL``."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from spectheory.engines import of_engines
from spectheory.errors import FOREIGN, EngineError, SettingError
from spectheory.measure.engines import Engine, Job, Models
from spectheory.measure.engines.processes import LONGEST, MOST_BYTES, Http
from spectheory.trace.calls import MOST_COUNTED, MOST_DRAFTS, Request
from spectheory.trace.importers.answers import counts_of

_PREFIX = "token_id:"
"""What vLLM writes before an id where `return_tokens_as_token_ids` is set."""


@dataclass(frozen=True)
class Reply:
    """Output ids, whether the text ended by itself, and counts under the names of ``Request``; empty if not given."""

    output: tuple[int, ...]
    ended: bool
    counts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Dialect:
    """One way to ask.

    - `engine`: whose dialect it is; `path` takes what `body` makes of a job, a prompt (name and ids) and a model's
      name; `read` makes a reply of the answer, or raises ``KeyError``, ``ValueError`` or ``TypeError``.
    - `owner`: what ``/v1/models`` calls the owner of its models.
    - `decodes`: counter of all target passes in ``/metrics``, the prompt's included; empty if there is none.
    - `text`: what ``/tokenize`` calls the text; `drafting`: what sets the length of drafts when the server is started.
    """

    engine: str
    path: str
    body: Callable[[Job, str, tuple[int, ...], str], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Reply]
    owner: str = ""
    decodes: str = ""
    text: str = "prompt"
    drafting: str = "drafts of {k} tokens"


def sampled(job: Job, name: str) -> dict[str, Any]:
    """Sampling settings, all of them: a server may take what is left out from the model's own settings."""
    ours = job.sampling
    return {
        "temperature": ours.temperature,
        "top_k": -1 if ours.top_k is None else ours.top_k,
        "top_p": 1.0 if ours.top_p is None else ours.top_p,
        "min_p": 0.0 if ours.min_p is None else ours.min_p,
        "seed": job.seed_of(name),
        "stream": False,
    }


def _openai_body(job: Job, name: str, prompt: tuple[int, ...], model: str) -> dict[str, Any]:
    return {
        "model": model,
        "prompt": list(prompt),
        "max_tokens": job.tokens,
        "n": 1,
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        **sampled(job, name),
    }


def _openai_reply(answer: Mapping[str, Any]) -> Reply:
    choice = answer["choices"][0]
    logprobs = choice.get("logprobs") or {}
    tokens = map(str, logprobs.get("tokens") or ())
    ids = (  # by their own field; beside log-probabilities, or written as their tokens
        choice.get("token_ids")
        or [each["id"] for each in logprobs.get("content") or ()]
        or [int(token.removeprefix(_PREFIX)) for token in tokens if token.startswith(_PREFIX)]
    )
    record = (answer.get("metrics") or {}).get("speculative_decoding")
    return Reply(token_ids(ids), choice.get("finish_reason") == "stop", counts_of(record) if record else {})


def token_ids(values: Sequence[Any]) -> tuple[int, ...]:
    """Ids of an answer; a ``TypeError`` where they are none."""
    if any(type(value) is not int for value in values):
        raise TypeError("token ids are integers")
    return tuple(values)


OPENAI = Dialect("server", "/v1/completions", _openai_body, _openai_reply)
"""How a server is asked that is no known engine."""


def _dialect_of(models: str | None) -> tuple[Dialect, str]:
    """The dialect and the model's name by the text of ``/v1/models``."""
    known: dict[str, Dialect] = {each.owner: each for each in of_engines("running", "DIALECT")}
    try:
        first = json.loads(models or "")["data"][0]
        return known.get(str(first.get("owned_by")), OPENAI), str(first["id"])
    except FOREIGN:
        return OPENAI, ""


_SPECULATIVE = re.compile(r":spec_decode_num_(drafts|draft_tokens|accepted_tokens|accepted_tokens_per_pos)_total$")
_NAMES = {"drafts": "calls", "accepted_tokens": "total_accepted", "draft_tokens": "total_drafted"}


@dataclass(frozen=True)
class _Scrape:
    """Counters summed over a server's engines, by name; `positions` is the longest chain, 0 if unknown."""

    values: Counter[str]
    positions: int = 0

    @classmethod
    def of(cls, text: str) -> _Scrape:
        """The counters of a scrape in Prometheus' text format."""
        values: Counter[str] = Counter()
        positions = 0
        try:
            samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
            for sample in samples:
                known = _SPECULATIVE.search(sample.name)
                if known and known[1] == "accepted_tokens_per_pos":
                    position = int(sample.labels["position"])
                    if not 0 <= position < MOST_DRAFTS:
                        raise ValueError(f"position {position} of a draft, 0..{MOST_DRAFTS - 1} are possible")
                    positions = max(positions, position + 1)
                elif known or sample.name.endswith("_total"):
                    if not 0 <= sample.value <= MOST_COUNTED:
                        raise ValueError(f"{sample.name} is {sample.value}")
                    values[_NAMES[known[1]] if known else sample.name] += round(sample.value)
        except FOREIGN as error:
            raise EngineError(
                f"/metrics are no counters ({str(error)[:80] or type(error).__name__})",
                limit="needs Prometheus' text format",
                remedy="check the server",
            ) from error
        return cls(values, positions)

    def since(self, before: _Scrape, decodes: str) -> dict[str, Any]:
        """Counts of one request under the names of ``Request``; with `decodes` all passes but the prompt's are calls.

        A counter that is smaller than before is refused: the server started anew.
        """
        gone = {name: self.values[name] - before.values[name] for name in (*_NAMES.values(), decodes) if name}
        back = [name for name, value in gone.items() if value < 0]
        if back:
            raise EngineError(
                f"counter {back[0]} went back by {-gone[back[0]]}",
                limit="counters only grow while a server runs",
                remedy="the server was restarted: run the same command again; finished prompts are kept",
            )
        if decodes and decodes in self.values:
            gone["calls"] = gone.pop(decodes) - 1
        return {name: gone[name] for name in _NAMES.values()} if "calls" in self.values else {}


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
        dialect, _ = _dialect_of(self.http.get("/v1/models"))
        for path, name in (("/version", "version"), ("/props", "build_info")):
            with suppress(*FOREIGN):
                return f"{dialect.engine} {json.loads(self.http.get(path) or '')[name]}".strip()
        return dialect.engine

    def chain(self) -> int | None:
        """The longest chain that the server drafts, by its counters; None if they do not say."""
        return _Scrape.of(self.http.get("/metrics") or "").positions or None

    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Run the prompts one after another."""
        return send_prompts(self.http, job)

    def settings(self, job: Job) -> Mapping[str, Any]:
        """The model's name as the server has it."""
        dialect, model = _dialect_of(self.http.get("/v1/models"))
        return {"dialect": dialect.engine, "model": model.rpartition("/")[2]}


def send_prompts(http: Http, job: Job) -> Iterator[Request]:
    """The requests of a job, one after another; each with its calls where the job speculates."""
    dialect, model = _dialect_of(http.get("/v1/models"))
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
        emitted = (request.calls or 0) + (request.total_accepted or 0)  # a call emits accepted drafts and one token
        most = len(request.output) + (job.k or 0)
        if emitted > most:
            raise EngineError(
                f"request {request.id!r} has {len(request.output)} tokens, its calls emitted {emitted}",
                limit=f"at most {most}, those past the end included",
                remedy="other requests ran on the server: let it serve this job alone",
            )
        yield request


def _scraped(http: Http) -> _Scrape | None:
    text = http.get("/metrics")
    return None if text is None else _Scrape.of(text)


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
    before: _Scrape | None, after: _Scrape | None, counts: dict[str, Any], dialect: Dialect, name: str
) -> dict[str, Any]:
    """The counts of a request: those in its answer, else the difference of two scrapes; never none."""
    if counts and not dialect.decodes:
        return counts
    difference = after.since(before, dialect.decodes) if before and after else {}
    if not difference:
        raise EngineError(
            f"the server counts no drafts of request {name!r}",
            limit="needs calls in its answers, or spec_decode counters in /metrics",
            remedy="start it with speculation, and vLLM with --per-request-spec-decode-metrics detailed, "
            "llama.cpp with --metrics",
        )
    return difference
