"""Logs of log-probabilities: ours, two numbers per token (§7) and perhaps lists (§9), and OpenAI's ``logprobs``.

In OpenAI's layout a line may have, beside what the server returned, ``prompt_tokens`` (leading tokens that are no
output), ``sampling``
(as ``{"temperature": 0.7}``: how the text was drawn), ``processed`` (true if the server applied it), ``vocabulary``
(number of tokens) and ``error`` (rounding of a log-probability, nats).

"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.files import parsed_json
from spectheory.trace.importers.answers import (
    ENDED,
    FINISH,
    MOST_BYTES,
    OUTPUT,
    Json,
    _settings_of,
    at,
    distinct,
    ids_at,
    name_of,
    read_each,
)
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.record import Trace
from spectheory.trace.scores import ScoredText, Scores, Top
from spectheory.trace.texts import MISSING, Text, trace_of

_KEY = re.compile(rb'"target"\s*:')


def _read_log_probabilities(path: Path) -> Trace:
    """Read one text per line: ``{"target": [...], "draft": [...], "id": "optional"}``, natural logarithms.

    Each list holds the log-probabilities of the text's own tokens under that model, with the sampling settings in use
    and on one tokenisation. Token and block verification follow exactly; B6 and the one-call bound are estimates.
    ``"ended": true`` says that the text ended by itself and was not cut at a length. Blank lines are skipped. With the
    lists of :mod:`spectheory.trace.texts` the trace has ``token`` and :attr:`Trace.lists` besides. A ``TextError``
    names the line that is malformed.
    """
    return trace_of(_texts(path))


def read_target(path: Path) -> Trace:
    """Read the target's own scores alone, ``{"target": [...]}`` per line: a trace whose draft is the target itself.

    What another model gives the tokens is not read.
    """
    texts = _texts(path)
    for where, text in texts.items():
        if isinstance(text, dict):
            kept = {name: text[name] for name in ("id", "target", "ended") if name in text}
            texts[where] = {**kept, "draft": text.get("target")}
    return trace_of(texts)


def _texts(path: Path) -> dict[str, Text]:
    """The objects of all lines by their places."""
    # Splitting at "\n" alone: JSON strings may hold other line separators of Unicode.
    lines = text_of(path, most=MOST_BYTES).split("\n")
    numbered = {number: line for number, line in enumerate(lines, 1) if line.strip()}
    if not numbered:
        raise TextError(f"{path} holds no text", limit="needs at least one line", remedy="write one text per line")
    return {f"{path} line {n}": _parse(line, f"{path} line {n}", f"line {n}") for n, line in numbered.items()}


def _parse(line: str, where: str, name: str) -> Text:
    """The object of a line, with a name."""
    text = parsed_json(line, where)
    return {"id": name, **text} if isinstance(text, dict) else text


LOG_PROBABILITIES = Format(
    "log-probabilities",
    lambda head: head.lstrip().startswith(b"{") and _KEY.search(head) is not None,
    _read_log_probabilities,
    title='JSON lines `{"target": [...], "draft": [...]}`, two numbers per token',
    gives="token and block verification exactly; certified ranges for other rules where lists are given",
    lacks="rules that need full pmfs, where no lists are given",
)


_MARKED = "token_id:"
"""How vLLM writes a token with ``return_tokens_as_token_ids``."""


def scores(path: Path, name: str, read: Callable[[Json], ScoredText]) -> Scores:
    """Every text of a file under one model."""
    contents = read_each(path, name, lambda entry: (read(entry), str(at(entry, "model") or "")))
    names = distinct([text.id for text, _ in contents.values()])
    texts = tuple(replace(text, id=name) for (text, _), name in zip(contents.values(), names, strict=True))
    models = {model for _, model in contents.values()}
    if len(models) > 1:
        raise TextError(
            f"{path} holds scores of {' and '.join(sorted(models))}",
            limit="a log of log-probabilities is of one model",
            remedy="keep one file per model",
        )
    return Scores(texts, name, models.pop())


def text_fields(entry: Json) -> dict[str, Any]:
    """The fields of a text that the entry says itself."""
    fields: dict[str, Any] = {"id": name_of(entry), "ended": at(entry, *FINISH) in ENDED}
    fields |= {name: at(entry, name) for name in ("vocabulary", "error") if at(entry, name) is not None}
    settings = _settings_of(entry)
    return {**fields, "sampling": settings or None, "processed": entry.get("processed") is True}


def _strings_or_ids(tokens: Sequence[Any]) -> dict[str, Any]:
    """Strings of tokens, and their ids where the strings are such."""
    strings = tuple(str(token) for token in tokens)
    if strings and all(each.startswith(_MARKED) for each in strings):
        return {"tokens": tuple(int(each.removeprefix(_MARKED)) for each in strings)}
    return {"strings": strings}


def top_list(pairs: Iterable[tuple[Any, Any]]) -> Top | None:
    """A list of the most probable ids, without stand-ins for missing values; None without ids."""
    listed = [(token, log) for token, log in pairs if log is not None and log > MISSING]
    if not listed or any(type(token) is not int for token, _ in listed):
        return None
    if len(dict(listed)) < len(listed):
        raise ValueError("a list names a token twice")
    return dict(listed)


def known_lists(tops: Iterable[Top | None]) -> tuple[Top | None, ...]:
    """The lists, or nothing where no position has one."""
    lists = tuple(tops)
    return lists if any(lists) else ()


def _text(entry: Json) -> ScoredText:
    """With ``echo`` the prompt is scored; one generated token after it is left out, more of them are the output.

    Without, the generated tokens are the text. Their ids come from ``token_ids``, from strings as ``token_id:7``, or
    from a content of chat that has ids; otherwise texts are joined by strings, and lists of strings are left out: two
    tokens may share a string.
    """
    content = at(entry, "choices.0.logprobs.content")
    return _chat(entry, content) if content is not None else _completion(entry)


def _completion(entry: Json) -> ScoredText:
    given = at(entry, "choices.0.logprobs")
    tokens, logs = given["tokens"], list(given["token_logprobs"])
    prompt, generated = _counts(entry, len(logs))
    echoed = len(logs) > generated
    end = prompt if echoed and generated == 1 else len(logs)
    before, output = ids_at(entry, "choices.0.prompt_token_ids", "prompt_token_ids"), ids_at(entry, *OUTPUT)
    known = _strings_or_ids(tokens[:end])
    if output and len(before) + len(output) >= end and "tokens" not in known:
        known["tokens"] = (before + output)[:end] if echoed else output
    text = ScoredText(
        log_probs=tuple(logs[:end]),
        prompt=_output_from(entry, echoed, generated, prompt),
        **known,
        **text_fields(entry),
    )
    return text if echoed or not (before and output) else _with_prompt(text, before)


def _counts(entry: Json, scored: int) -> tuple[int, int]:
    """Tokens of the prompt and generated ones; all scored tokens are generated if they are as many."""
    generated = at(entry, "usage.completion_tokens")
    if generated is None:
        generated = 0 if at(entry, "choices.0.logprobs.token_logprobs")[:1] == [None] else scored
    return scored - generated, generated


def _output_from(entry: Json, echoed: bool, generated: int, prompt: int) -> int:
    """Leading tokens that are no output."""
    if (said_so := at(entry, "prompt_tokens")) is not None:
        return int(said_so)
    return prompt if echoed and generated > 1 else 0


def _with_prompt(text: ScoredText, before: tuple[int, ...]) -> ScoredText:
    """The text with its prompt, which was not scored, so that it can be held against one that was."""
    return ScoredText(
        text.id,
        (None,) * len(before) + text.log_probs,
        before + text.tokens,
        prompt=len(before),
        ended=text.ended,
        sampling=text.sampling,
        processed=text.processed,
        vocabulary=text.vocabulary,
        error=text.error,
    )


def _chat(entry: Json, content: Any) -> ScoredText:
    """A list of positions, with ids in the responses of some servers."""
    if at(entry, "timings.draft_n"):
        refuse_speculated(entry)
    ids = [each.get("id") for each in content]
    output = tuple(ids) if all(type(token) is int for token in ids) else ids_at(entry, *OUTPUT)
    known = {"tokens": output} if output else _strings_or_ids([each["token"] for each in content])
    tops = ([(other.get("id"), other["logprob"]) for other in each.get("top_logprobs") or ()] for each in content)
    logs = tuple(each["logprob"] for each in content)
    return ScoredText(
        log_probs=logs,
        tops=known_lists(map(top_list, tops)),
        prompt=at(entry, "prompt_tokens") or 0,
        **known,
        **text_fields(entry),
    )


def refuse_speculated(entry: Json) -> None:
    """Refuse what llama.cpp returns beside drafts."""
    raise TextError(
        f"its {at(entry, 'timings.draft_n')} drafts leave tokens without log-probabilities",
        limit="llama.cpp writes 0 for every token of a call with drafts",
        remedy="score the text on a server without a draft model",
    )


OPENAI_LOGPROBS = Format(
    "openai-logprobs",
    lambda head: b'"token_logprobs"' in head or (b'"logprobs"' in head and b'"content"' in head),
    lambda path: scores(path, "openai-logprobs", _text),
    title="OpenAI's `logprobs`: completions with echo, and chats",
    gives="with the log of the other model a trace: two numbers per token; lists where tokens have ids",
    lacks="how the text was drawn, unless it is added; lists of tokens that are known as strings alone",
)
