"""One door for evidence: a trace from whatever holds one."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from reprlib import repr as brief
from textwrap import shorten
from typing import TypeAlias, cast

from spectheory.checks import instance, located, several
from spectheory.errors import FOREIGN, SettingError, SpectheoryError, TextError, TraceError, argument, page
from spectheory.extensions import installed
from spectheory.files import loaded_json
from spectheory.trace.calls import CALLS_FILE, CallLog
from spectheory.trace.counters import COUNTERS_FILE, Counters
from spectheory.trace.importers import Evidence, Format, formats
from spectheory.trace.importers.base import TRACE
from spectheory.trace.importers.unread import UNREAD
from spectheory.trace.record import TRACE_FILE, Trace
from spectheory.trace.samples import BUILT_IN, PAIR
from spectheory.trace.scores import Scores

Whole: TypeAlias = Trace | CallLog | Counters
"""Evidence that answers by itself."""
KINDS: dict[type, str] = {
    Trace: "a trace",
    CallLog: "calls",
    Counters: "totals",
    Scores: "log-probabilities of one model",
}
"""What each kind of evidence is called."""
GROUP = "spectheory.formats"
"""Entry points of packages that bring formats."""
_LOOKED_AT = 1 << 20
"""Bytes by which a format recognises its files."""


def _named(path: Path) -> Path:
    """The path itself, or that of the recorded trace which ``builtin:`` names."""
    written = str(path).casefold()
    return PAIR if f"{written.removesuffix(':')}:" == BUILT_IN and not path.exists() else path


def evidence_file(path: Path) -> Path:
    """The file that holds what a folder of ``measure`` or ``import`` has; a file is itself. A pipe is refused: it would
    be read twice, and may have no writer.
    """
    path = _named(path)
    if path.is_fifo():
        raise TraceError(f"{path} is a pipe", limit="needs a file", remedy="save what it gives to a file first")
    if not path.is_dir():
        return path
    files = [path / name for name in (TRACE_FILE, CALLS_FILE, COUNTERS_FILE) if (path / name).exists()]
    # spectheory validate writes a call log for each setting, in calls-T.
    logs = [] if files else sorted(path.glob("*.jsonl" if path.match("calls-*") else "calls-*/*.jsonl"))
    if len(logs) > 1:
        names = ", ".join(str(each.relative_to(path)) for each in logs)
        raise TraceError(f"{path} holds {len(logs)} call logs ({names})", limit="needs one", remedy="name its file")
    if not (files or logs or any(path.glob(f"{TRACE_FILE}*"))):
        raise TraceError(
            f"{path} holds no {TRACE_FILE}, {CALLS_FILE} or {COUNTERS_FILE}",
            limit="needs a file, or a folder of spectheory measure, import or validate",
            remedy="name one file in it",
        )
    return [*files, *logs, path / TRACE_FILE][0]


def trace_file(path: Path) -> Path:
    """The file that holds the trace: of a folder that of the measurement in it."""
    path = _named(located(path))
    return path / TRACE_FILE if path.is_dir() else path


def read_any(path: Path) -> Trace:
    """A trace from a folder of ``spectheory measure``, a Parquet file, or a log of any format that is known.

    A log is recognised by its content, whatever its name. One that holds calls or totals alone is refused.
    """
    evidence = _whole(read_evidence(path), path)
    if isinstance(evidence, Trace):
        return evidence.in_memory()
    raise TraceError(
        f"{path} holds {KINDS[type(evidence)]} of an engine",
        limit="this needs a trace: statistics of texts",
        remedy="pass it to spectheory judge or predict",
    )


def given_trace(trace: Trace | str | Path) -> Trace:
    """A trace that is given itself, or by the path of a file or folder that :func:`read_any` reads."""
    return trace if isinstance(trace, Trace) else read_any(located(trace))


def read_evidence(path: Path, format: str | None = None) -> Evidence:
    """What a file holds, of the format named, or else recognised by its content."""
    file = evidence_file(located(path))
    chosen = format_of(file, format)
    try:
        return chosen.read(file)
    except SpectheoryError:
        raise
    except FOREIGN as error:
        reason = shorten(str(error), 120) or type(error).__name__
        raise TextError(
            f"{file} is not of the format {chosen.name} ({reason})",
            limit="numbers and names must be those that its tool writes",
            remedy=f"check the file for damage, or name another format with {argument('format')}",
        ) from error


def format_of(path: Path, name: str | None = None) -> Format:
    """The format of that name, or else that of the file's content; an unreadable file is left to the trace's reader."""
    if name is not None:
        known = all_formats()
        if instance("the format", name, str, remedy="None recognises it by the content") not in known:
            raise SettingError(
                f"format {name!r} is unknown", limit=f"there are {', '.join(known)}", remedy="name one, or leave it out"
            )
        return known[name]
    file = evidence_file(path)
    try:
        with file.open("rb") as opened:
            head = opened.read(_LOOKED_AT).removeprefix(codecs.BOM_UTF8)
    except OSError:
        return TRACE  # says why it cannot be read
    for unread in UNREAD:
        if unread.recognises(head):
            raise TraceError(f"{file} is {unread.what}", limit=unread.limit, remedy=unread.remedy())
    for each in all_formats().values():
        if each.recognises(head):
            return each
    if file.suffix == ".parquet":
        return TRACE  # says that it is torn
    raise TraceError(
        f"{file} {_nature(head)}",
        limit="needs a folder of spectheory measure, or a file of a known format",
        remedy=f"{argument('spectheory.trace.reading.all_formats()', page('formats'))} lists the formats",
    )


def _nature(head: bytes) -> str:
    """What a file is that no format knows."""
    if not head:
        return "is empty"
    if bytes(1) in head:
        return "holds zero bytes, which no text has"
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)  # a cut character at the end is no fault
    except UnicodeDecodeError:
        return "is no UTF-8 text, and no trace"
    for part in (text, text.partition("\n")[0]):
        with suppress(*FOREIGN):
            content = loaded_json(part)
            entry = content[0] if isinstance(content, list) and content else content
            names = {str(name).casefold() for name in entry} if isinstance(entry, dict) else set()
            if names >= {"target", "draft"}:
                return "is not written as log-probabilities are: an object a line, with the keys target and draft"
            if "choices" in names:
                asked = "serve vLLM with --per-request-spec-decode-metrics detailed, or keep the log of another server"
                return f"holds answers without counts of drafts: {asked}"
            keys = f"the keys {brief(list(entry))[1:-1]}" if isinstance(entry, dict) and entry else "no keys"
            return f"is of an unknown format, JSON with {keys}"
    return f"is of an unknown format, text that begins with {brief(text)}"


def read_files(paths: Sequence[Path], format: str | None = None) -> Whole:
    """What several files hold together; they must be of one kind.

    Calls of several logs are joined and totals added; of two scrapes of a server the difference is taken, in the order
    given; log-probabilities of the target and then of the draft are a trace. Traces are not joined.
    """
    parts = [read_evidence(path, format) for path in several("paths", paths, remedy="pass a list of them")]
    if not parts:
        raise SettingError("there is no file", limit="needs one or more", remedy="name a file")
    first = parts[0]
    if len(parts) == 1:
        return _whole(first, paths[0])
    kinds = list(dict.fromkeys(type(part) for part in parts))
    concatenate = getattr(first, "join", None)
    if len(kinds) > 1 or concatenate is None:
        listed = " and ".join(KINDS[kind] for kind in kinds)
        raise TraceError(
            f"{len(paths)} files hold {listed}",
            limit="several files are joined if all hold calls, all totals, or each one model's log-probabilities",
            remedy="pass each on its own",
        )
    return cast(Whole, concatenate(parts))


def _whole(evidence: Evidence, path: Path) -> Whole:
    """What one file holds, if that is enough for an answer."""
    if isinstance(evidence, Scores):
        raise TraceError(
            f"{path} holds {KINDS[Scores]}",
            limit="a trace needs those of the target and of the draft on the same texts",
            remedy="name the target's log first, then the draft's"
            + argument(": spectheory.trace.read_files reads both", " with --draft-log, or import both"),
        )
    return evidence


def all_formats() -> dict[str, Format]:
    """The built-in formats, then those that installed packages register as entry points ``spectheory.formats``.

    What cannot be loaded, or has the name of a built-in format, is left out; ``spectheory doctor`` says why.
    """
    made = [each for each in installed(GROUP, Format).values() if isinstance(each, Format)]
    return {**formats(), **{each.name: each for each in made if each.name not in formats()}}
