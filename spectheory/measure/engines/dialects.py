"""How servers are asked for token ids, and how their answers are read: a :class:`Dialect` each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spectheory.errors import FOREIGN
from spectheory.measure.engines.base import Job
from spectheory.trace.importers.acceptance import counts_of

PREFIX = "token_id:"
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
    - `decodes`: counter of all target passes in ``/metrics``, the prompt's included; empty if there is none.
    """

    engine: str
    path: str
    body: Callable[[Job, str, tuple[int, ...], str], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Reply]
    decodes: str = ""


def _sampled(job: Job, name: str) -> dict[str, Any]:
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
        **_sampled(job, name),
    }


def _openai_reply(answer: Mapping[str, Any]) -> Reply:
    choice = answer["choices"][0]
    ids = choice.get("token_ids") or _ids_of(choice.get("logprobs") or {})
    record = (answer.get("metrics") or {}).get("speculative_decoding")
    return Reply(_ids(ids), choice.get("finish_reason") == "stop", counts_of(record) if record else {})


def _ids_of(logprobs: Mapping[str, Any]) -> list[int]:
    """The ids of a list of log-probabilities: written as tokens, or beside them."""
    if content := logprobs.get("content"):
        return [each["id"] for each in content]
    tokens = logprobs.get("tokens") or ()
    return [int(str(token).removeprefix(PREFIX)) for token in tokens if str(token).startswith(PREFIX)]


def _llama_body(job: Job, name: str, prompt: tuple[int, ...], model: str) -> dict[str, Any]:
    return {
        "prompt": list(prompt),
        "n_predict": job.tokens,
        "return_tokens": True,
        "cache_prompt": False,
        "samplers": ["temperature", "top_k", "top_p", "min_p"],  # the order of transformers
        **_sampled(job, name),
    }


def _llama_reply(answer: Mapping[str, Any]) -> Reply:
    timings = answer.get("timings") or {}
    counts = {}
    if "draft_n" in timings:
        counts = {"total_drafted": timings["draft_n"], "total_accepted": timings["draft_n_accepted"]}
    return Reply(_ids(answer.get("tokens") or ()), answer.get("stop_type") == "eos", counts)


def _ids(values: Sequence[Any]) -> tuple[int, ...]:
    if any(type(value) is not int for value in values):
        raise TypeError("token ids are integers")
    return tuple(values)


VLLM = Dialect("vllm", "/v1/completions", _openai_body, _openai_reply)
LLAMA = Dialect("llama.cpp", "/completion", _llama_body, _llama_reply, decodes="llamacpp:n_decode_total")
OTHER = Dialect("server", "/v1/completions", _openai_body, _openai_reply)
OWNERS = {"vllm": VLLM, "llamacpp": LLAMA}
"""Dialects by what ``/v1/models`` calls the owner of a model; any other server is asked as :data:`OTHER`."""


def dialect_of(models: str | None) -> tuple[Dialect, str]:
    """The dialect and the model's name by the text of ``/v1/models``."""
    try:
        first = json.loads(models or "")["data"][0]
        return OWNERS.get(str(first.get("owned_by")), OTHER), str(first["id"])
    except FOREIGN:
        return OTHER, ""
