"""``prompt_logprobs`` of vLLM's server: every token of a given prompt under one model, by id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.responses import PROMPT, ids_at
from spectheory.trace.importers.scored import mostly, said, scores, top
from spectheory.trace.scored_text import ScoredText, Top
from spectheory.trace.scores import Scores

PLACES = ("choices.0.prompt_logprobs", "prompt_logprobs")
NAME = "vllm-logprobs"


def read_vllm_logprobs(path: Path) -> Scores:
    """Read responses, a list of them or one a line.

    A position maps ids to ``logprob`` and ``rank``; its own token comes first, and is in the list of the most probable
    ones if its rank says so. Tied tokens all have the last of their ranks.
    """
    return scores(path, NAME, _text)


def _text(entry: Json) -> ScoredText:
    positions = at(entry, *PLACES)
    own = [_own(position) for position in positions]
    given = ids_at(entry, *PROMPT)
    if given and len(given) != len(positions):
        raise ValueError(f"{len(given)} prompt ids, {len(positions)} positions")
    ids = tuple(token for token, _ in own)
    if given and any(token not in (None, known) for token, known in zip(ids, given, strict=True)):
        raise ValueError("its positions are of other tokens than prompt_token_ids")
    return ScoredText(
        log_probs=tuple(at(value, "logprob") for _, value in own),
        tokens=given or ids,
        prompt=at(entry, "prompt_tokens") or 0,
        tops=mostly(_top(position) for position in positions),
        ranks=tuple(at(value, "rank") for _, value in own),
        **{**said(entry), "ended": False},
    )


def _own(position: Any) -> tuple[int | None, Any]:
    """The text's own token and what is said of it; the server lists it first."""
    if position is None:
        return None, None
    if not position:
        raise ValueError("a position has no token")
    token, value = next(iter(position.items()))
    return int(token), value


def _top(position: Any) -> Top | None:
    """The most probable tokens; the own one is among them if its rank is no lower than the list is long."""
    if position is None:
        return None
    (own, value), *others = position.items()
    rank = value.get("rank")
    listed = others if rank is None or rank > len(position) else [(own, value), *others]
    return top((int(token), each["logprob"]) for token, each in listed)


VLLM_LOGPROBS = Format(
    NAME,
    lambda head: b'"prompt_logprobs"' in head and _has_values(head),
    read_vllm_logprobs,
    title="vLLM's `prompt_logprobs`",
    gives="with the log of the other model a trace: two numbers per token, their ranks, and lists of top tokens",
    lacks="how the text was drawn, and where its output begins, unless it is added",
)


def _has_values(head: bytes) -> bool:
    """Whether ``prompt_logprobs`` is a list: completions have it as null."""
    after = head.partition(b'"prompt_logprobs"')[2].lstrip(b" \r\n\t:")
    return after.startswith(b"[")
