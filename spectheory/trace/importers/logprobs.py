"""JSON lines of log-probabilities that any server can give: two numbers per token (§7), and perhaps lists (§9)."""

from __future__ import annotations

import re
from pathlib import Path

from spectheory.errors import TextError
from spectheory.trace.foreign import parsed_json
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.record import Trace
from spectheory.trace.texts import trace_of
from spectheory.trace.top_lists import Text

MOST_BYTES = 1 << 31
"""Of a file of log-probabilities: some hundred million tokens."""


_KEY = re.compile(rb'"target"\s*:')


def read_log_probabilities(path: Path) -> Trace:
    """Read one text per line: ``{"target": [...], "draft": [...], "id": "optional"}``, natural logarithms.

    Each list holds the log-probabilities of the text's own tokens under that model, with the sampling settings in use
    and on one tokenisation. Token and block verification follow exactly; B6 and the one-call bound are estimates.
    ``"ended": true`` says that the text ended by itself and was not cut at a length. Blank lines are skipped. With the
    lists of :mod:`spectheory.trace.top_lists` the trace has ``token`` and :attr:`Trace.lists` besides. A ``TextError``
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
    read_log_probabilities,
    title='JSON lines `{"target": [...], "draft": [...]}`, two numbers per token',
    gives="token and block verification exactly; certified ranges for other rules where lists are given",
    lacks="rules that need full pmfs, where no lists are given",
)
