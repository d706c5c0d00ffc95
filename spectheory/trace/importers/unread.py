"""Files that hold no acceptance, or none that follows from them: what each is, and what to give in its place."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from spectheory.errors import argument

_BEGINNING = 200
"""Bytes that name the unit of a latency table."""
_SERVER = "save the responses of llama-server, or its log"


@dataclass(frozen=True)
class Unread:
    """A kind of file: how its first bytes are known, what it is, what it lacks, and what to give instead."""

    recognises: Callable[[bytes], bool]
    what: str
    limit: str
    remedy: Callable[[], str]


def _holds(*words: bytes) -> Callable[[bytes], bool]:
    return lambda head: all(word in head for word in words)


UNREAD = (
    Unread(
        lambda head: b'"unit": "seconds"' in head[:_BEGINNING],
        "a latency table",
        "it has times of passes, and no text",
        lambda: f"name a trace, and this as {argument('its cost', '--latency of predict or plan')}",
    ),
    Unread(
        lambda head: head.startswith(b'{\n  "schema": '),
        "an answer of spectheory",
        "it has no text",
        lambda: "name what it is the answer of",
    ),
    Unread(
        lambda head: b'"guidellm_version"' in head or b'"generative_benchmark"' in head,
        "a report of GuideLLM",
        "it has times of requests, and no counts of drafts",
        lambda: "scrape the server's /metrics before and after the run, or keep the server's log",
    ),
    Unread(
        _holds(b'"eval_count"', b'"eval_duration"'),
        "an answer of Ollama",
        "it has durations, and no counts of drafts",
        lambda: "keep the log of ollama serve: its lines of draft acceptance or speculative decode stats",
    ),
    Unread(
        lambda head: re.search(rb"^Generation: \d+ tokens, [\d.]+ tokens-per-sec", head, re.M) is not None,
        "what mlx-lm prints",
        "it has speeds, and no counts of drafts",
        lambda: "write token, from_draft and finish_reason of each response of stream_generate, a line each",
    ),
    Unread(
        _holds(b'"speculative_windows"', b'"draft_tokens"'),
        "a report of mesh-llm's llama-spec-bench",
        "its loop adds no token after k accepted ones: its windows are not an engine's calls",
        lambda: _SERVER,
    ),
    Unread(
        lambda head: b"avg_accepted_prefix_len" in head or re.search(rb"draft_len=.*accept_ratio=", head) is not None,
        "a table of the llama-spec-bench for EAGLE's trees",
        "it has means over prompts of a tree, and no calls",
        lambda: _SERVER,
    ),
    Unread(
        lambda head: re.search(rb"\| gen +\d+ @ +[\d.]+ tok/s", head) is not None,
        "a print of a script that times llama-server",
        "it has no number of calls",
        lambda: "save the responses with their timings, or the server's log",
    ),
    Unread(
        lambda head: re.search(rb"^ +ref_al: [\d.]+", head, re.M) is not None,
        "a list of acceptance lengths of tests, as TensorRT-LLM has it",
        "it does not say k",
        lambda: "write them as YAML of k: length under a name",
    ),
)
