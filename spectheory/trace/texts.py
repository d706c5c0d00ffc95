"""Texts of two log-probabilities per token, and perhaps lists, as a trace (§7, §9).

With lists of the most probable tokens of both models, a line of JSON has beside ``target`` and ``draft``

- ``token``: the id of each token of the text;
- ``target_top`` and ``draft_top``: for each token a list of pairs [id, log-probability], the m most probable tokens
  at its position in any order; m may differ. -Infinity says that a token, and every token not listed, is impossible;
- ``vocabulary``: the number of tokens of both models;
- ``error`` (optional): by how much a log-probability may be rounded, nats; 1e-6 if absent.

``sampling`` (optional, as ``{"temperature": 0.7, "top_p": 0.9}``) says that the log-probabilities are raw and how the
text was drawn. Raw ones are those of the text's pmfs at temperature 1 without cuts alone; with other settings they are
refused, unless the lists hold all tokens, from which the pmfs are computed, with an error of 2 `error` / T.

"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.errors import SpectheoryError, TextError, page
from spectheory.trace.record import LOWEST, Trace
from spectheory.truncated.top import TopLogProbs

SINGLE_PRECISION = 1e-6
"""Error of a log-probability in nats, if a line does not say: that of a softmax in single precision."""
AGREE = 1e-3
"""How far a token's own log-probability may be from that in its list, nats, before they are of different passes."""
MODELS = ("target", "draft")
KEYS = ("token", "target_top", "draft_top", "vocabulary")
Text = Mapping[str, Any]
Pair = tuple[TopLogProbs, TopLogProbs]


def _positions(text: Text, where: str) -> Iterator[tuple[int, Pair]]:
    """The id of each token of the text, and both lists at its position."""
    for name in KEYS:
        if name not in text:
            raise TextError(
                f"{where} has no {name!r}", limit=f"lists need {', '.join(KEYS)}", remedy="give all, on every line"
            )
    columns = [text[name] for name in KEYS[:3]]
    if not all(isinstance(column, list) and len(column) == len(text["target"]) for column in columns):
        raise TextError(
            f"{where} has {', '.join(KEYS[:3])} of other lengths than 'target'",
            limit="needs one entry per token",
            remedy="list every position of the text",
        )
    for at, (token, *tops) in enumerate(zip(*columns, strict=True)):
        try:
            target, draft = (_top(text, top, token, text[model][at]) for model, top in zip(MODELS, tops, strict=True))
        except (SpectheoryError, TypeError, ValueError, OverflowError) as error:
            raise _refused(
                error, f"{where}, token {at + 1}", "its lists are no lists of [id, log-probability]"
            ) from error
        yield token, (target, draft)


def _top(text: Text, top: Any, token: Any, log_prob: float) -> TopLogProbs:
    """One list; a token of the text that is not in it is known beside it."""
    listed = dict(top)
    if len(listed) < len(top) or type(token) is not int:
        raise ValueError
    error = text.get("error", SINGLE_PRECISION)
    if token not in listed:
        return TopLogProbs(list(listed), list(listed.values()), text["vocabulary"], [token], [log_prob], error)
    if log_prob != listed[token] and not abs(log_prob - listed[token]) <= AGREE + 2 * error:
        raise TextError(
            f"its own log-probability is {log_prob:g}, in the list {listed[token]:g}",
            limit=f"must agree within {AGREE:g} nats",
            remedy="take both from one pass over the same text",
        )
    return TopLogProbs(list(listed), list(listed.values()), text["vocabulary"], error=error)


def _as_drawn(text: Text, where: str) -> Text:
    """The line with the log-probabilities of the pmfs that the text was drawn from, if it says that its own are raw."""
    if "sampling" not in text:
        return text
    try:
        sampling = Sampling(**text["sampling"])
    except (SpectheoryError, TypeError) as error:
        raise _refused(error, where, "its sampling has unknown settings") from error
    if sampling == Sampling():
        return text
    columns: list[Any] = [text.get(f"{model}_top") for model in MODELS]
    full = all(
        isinstance(tops, list)
        and tops
        and all((isinstance(top, list) and len(top) == text.get("vocabulary")) for top in tops)
        for tops in columns
    )
    if not full:
        raise TextError(
            f"{where} holds raw log-probabilities of a text drawn with {text['sampling']}",
            limit="they are valid at temperature 1 without cuts, or with lists of all tokens",
            remedy="have the server apply the settings, or list all tokens",
        )
    for _ in _positions(text, where):
        pass  # the raw lists are checked like any others: from here on each holds every id once
    raw_error = text.get("error", SINGLE_PRECISION)
    # Dividing by T divides the error, and the normaliser has as much again.
    sampled = {**text, "error": 2 * raw_error / (sampling.temperature or 1.0)}
    for model, tops in zip(MODELS, columns, strict=True):
        raw = np.array([[log for _, log in sorted(top)] for top in tops])
        try:
            array = sampling.log_pmf(raw)
        except (SpectheoryError, TypeError, ValueError) as error:
            raise _refused(error, where, f"{model}_top holds no lists of [id, log-probability]") from error
        _check_cut(sampling, raw, raw_error, f"{where}, {model}_top")
        logs = array.tolist()
        sampled[f"{model}_top"] = [list(enumerate(row)) for row in logs]
        sampled[model] = [row[token] for row, token in zip(logs, text["token"], strict=True)]
    return sampled


def _check_cut(sampling: Sampling, raw: NDArray[np.float64], error: float, where: str) -> None:
    """Refuse lists whose rounding leaves open which tokens the filters keep.

    Every probability is off by a factor of at most exp(2 error / T). So the kept set is certain if it is the same with
    both thresholds moved by that factor, and the least kept value is above the largest cut one by more than 2 error.
    """
    kept = np.isfinite(sampling.log_pmf(raw))
    factor = math.exp(2 * error / (sampling.temperature or 1.0))
    certain = True
    for by in (factor, 1 / factor):
        top_p = None if sampling.top_p is None else min(1.0, sampling.top_p * by)
        min_p = None if sampling.min_p is None else min(1.0, sampling.min_p / by)
        moved = replace(sampling, top_p=top_p, min_p=min_p)
        certain &= bool(np.array_equal(np.isfinite(moved.log_pmf(raw)), kept))
    least, most = np.where(kept, raw, np.inf).min(axis=1), np.where(kept, -np.inf, raw).max(axis=1)
    if not (certain and bool(np.all((most == -np.inf) | (least - most > 2 * error)))):
        raise TextError(
            f"{where}: rounding by {error:g} leaves open which tokens the filters keep",
            limit="the cut must be certain",
            remedy="log more digits, or have the server apply the settings",
        )


def _refused(error: Exception, where: str, otherwise: str) -> TextError:
    """The error with its place; `otherwise` says what is wrong if it is none of ours."""
    if isinstance(error, SpectheoryError):
        return TextError(f"{where}: {error.what}", limit=error.limit, remedy=error.remedy)
    return TextError(
        f"{where}: {otherwise}", limit=f"see {page('measuring_reference')}", remedy="write numbers with json.dumps"
    )


MISSING = -9999.0
"""What servers of OpenAI's format write in place of a log-probability that they do not have."""


def trace_of(texts: Mapping[str, Text], provenance: Mapping[str, Any] | None = None) -> Trace:
    """A trace of texts by their places: the keys of :mod:`spectheory.trace.importers.logprobs`, values checked."""
    lines = {where: _checked(text, where) for where, text in texts.items()}
    trace = Trace.from_log_probabilities(
        ((text["target"], text["draft"]) for text in lines.values()),
        ids=[str(text["id"]) for text in lines.values()],
        ended=[text.get("ended") is True for text in lines.values()],
        provenance=provenance,
    )
    if not any(name in text for text in lines.values() for name in KEYS):
        return trace
    listed = [each for where, text in lines.items() for each in _positions(text, where)]
    token, lists = zip(*listed, strict=True)
    return replace(trace, columns={**trace.columns, "token": np.array(token)}, lists=lists)


def _checked(text: Any, where: str) -> Text:
    """The text with the log-probabilities of what it was drawn from; malformed ones are named."""
    for name in ("target", "draft"):
        values = text.get(name) if isinstance(text, dict) else None
        if not isinstance(values, list):
            raise TextError(
                f"{where} has no list of numbers {name!r}",
                limit='needs {"target": [...], "draft": [...]}',
                remedy="give the log-probability of each token under both models",
            )
        for position, value in enumerate(values, start=1):
            _check_value(value, f"{where}, token {position} of {name!r}")
    return _as_drawn(text, where)


def _check_value(value: Any, where: str) -> None:
    """Refuse what is no number, and finite numbers whose sums overflow; the trace checks the rest."""
    number = type(value) in (int, float)
    if number and value != MISSING and (value == -math.inf or not abs(value) > -LOWEST):
        return
    shown = json.dumps(value)
    missing = number and value == MISSING
    possible = f"must be in {LOWEST:g}..0" if number else "must be a number"
    raise TextError(
        f"{where} is {shown if len(shown) <= 40 else shown[:37] + '...'}",
        limit="this stands for a missing value" if missing else possible,
        remedy="write -Infinity for probability zero" if number else "write natural logarithms",
    )
