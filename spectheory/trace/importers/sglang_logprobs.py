"""``input_token_logprobs`` of SGLang's ``/generate``: every token of a given input under one model, by id."""

from __future__ import annotations

from pathlib import Path

from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.scored import mostly, said, scores, top
from spectheory.trace.scored_text import ScoredText
from spectheory.trace.scores import Scores

SCORED, TOPS = "meta_info.input_token_logprobs", "meta_info.input_top_logprobs"
NAME = "sglang-logprobs"


def read_sglang_logprobs(path: Path) -> Scores:
    """Read responses, a list of them or one a line: positions ``[logprob, id, text]``, the first without a value."""
    return scores(path, NAME, _text)


def _text(entry: Json) -> ScoredText:
    logs, tokens, strings = zip(*at(entry, SCORED), strict=True)
    return ScoredText(
        log_probs=logs,
        tokens=tokens,
        strings=strings if None not in strings else (),
        prompt=at(entry, "prompt_tokens") or 0,
        tops=mostly(top((token, log) for log, token, _ in row or ()) for row in at(entry, TOPS) or ()),
        **{**said(entry), "ended": False},
    )


SGLANG_LOGPROBS = Format(
    NAME,
    lambda head: b'"input_token_logprobs"' in head,
    read_sglang_logprobs,
    title="SGLang's `input_token_logprobs`",
    gives="with the log of the other model a trace: two numbers per token, and lists of top tokens",
    lacks="how the text was drawn, and where its output begins, unless it is added",
)
