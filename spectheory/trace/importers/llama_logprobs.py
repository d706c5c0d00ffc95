"""``completion_probabilities`` of llama.cpp's ``/completion``: the generated tokens under the model that made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.openai_logprobs import refuse_speculated
from spectheory.trace.importers.scored import mostly, said, scores, top
from spectheory.trace.scored_text import ScoredText
from spectheory.trace.scores import Scores

NAME = "llama.cpp-logprobs"


def read_llama_logprobs(path: Path) -> Scores:
    """Read responses, a list of them or one a line, of a server without a draft model.

    With ``post_sampling_probs`` the server gives probabilities under its settings, otherwise raw log-probabilities.
    """
    return scores(path, NAME, _text)


def _text(entry: Json) -> ScoredText:
    if at(entry, "timings.draft_n"):
        refuse_speculated(entry)
    content = at(entry, "completion_probabilities")
    after = "prob" in content[0]
    tops = (each.get("top_probs" if after else "top_logprobs") or () for each in content)
    return ScoredText(
        log_probs=tuple(_log(each, after) for each in content),
        tokens=tuple(each["id"] for each in content),
        tops=mostly(top((other["id"], _log(other, after)) for other in row) for row in tops),
        **{**said(entry), "processed": after},
    )


def _log(each: Json, after: bool) -> Any:
    """The natural logarithm; a probability of zero has minus infinity."""
    if not after:
        return each["logprob"]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(each["prob"]))


LLAMA_LOGPROBS = Format(
    NAME,
    lambda head: b'"completion_probabilities"' in head,
    read_llama_logprobs,
    title="llama.cpp's `completion_probabilities`",
    gives="with the log of the other model a trace: two numbers per token, and lists of top tokens",
    lacks="given texts: this server scores what it generates alone",
)
