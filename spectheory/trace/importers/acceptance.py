"""Acceptance as other programs state it, without calls: by position at one k, or tokens per call at several k."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from spectheory.errors import TextError, argument
from spectheory.files import parsed_json
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import NUMBER

_ROUNDED = 5e-7
"""Half a unit of the last of six digits, with which ``plan --export acceptance`` writes."""


def _read_acceptance(path: Path) -> Counters:
    """Survival by position at one k; the number of calls is unknown."""
    stated = parsed_json(text_of(path), str(path))
    survival, kind = tuple(map(float, stated["survival"])), str(stated["kind"])
    counters = Counters(
        survival=survival,
        k=stated["k"],
        rounding=_ROUNDED,
        engine=str(stated.get("engine", "")),
        remarks=(f"Survival is stated ({kind}) without a number of calls: the error of counting is unknown.",),
        provenance={"kind": kind},
    )
    apart = abs((counters.length or 0.0) - stated["tokens_per_call"])
    if counters.k != len(survival) or not apart <= _ROUNDED * (len(survival) + 2):
        raise TextError(
            f"{path} has k {stated['k']}, {len(survival)} shares and {stated['tokens_per_call']} tokens per call",
            limit="needs a share for each of k drafts, and 1 + their sum",
            remedy="export it again",
        )
    return counters


ACCEPTANCE = Format(
    "acceptance",
    lambda head: all(f'"{name}"'.encode() in head for name in ("survival", "tokens_per_call", "kind")),
    _read_acceptance,
    title='`{"k": 2, "survival": [0.7, 0.5], "tokens_per_call": 2.2, "kind": "counted"}`, as '
    "`plan --export acceptance` writes it",
    gives="survival by position at one k",
    lacks="calls, so no error of counting; requests, texts",
)

_LINE = re.compile(rf"( *)(?:\"([^\"]+)\"|'([^']+)'|([^\s'\"#:][^#:]*?)) *:(?: +({NUMBER})| +([^#]*?))? *(?:#.*)?")
_NAME, _LONGEST = "lengths-by-k", 1000
_ROUNDED_LENGTHS = "Tokens per call are means without counts: how much they vary by chance is unknown."


def _lines(path: Path) -> Iterator[tuple[tuple[str, ...], float | None]]:
    """Names from the outermost to that of each line, and its number; comments and blank lines are left out."""
    above: list[tuple[int, str]] = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", "---")):
            continue
        match = _LINE.fullmatch(line) if len(line) <= _LONGEST else None
        if match is None or (match[6] and (match[4] or "").isdecimal()):
            raise TextError(
                f"{path} line {number} is {line.strip()[:60]!r}",
                limit="needs names, and lines 'k: tokens per call' under them",
                remedy="correct or remove the line",
            )
        indent, value = len(match[1]), match[5]
        above = [each for each in above if each[0] < indent] + [(indent, match[2] or match[3] or match[4])]
        yield tuple(name for _, name in above), None if value is None else float(value)


def _read_lengths(path: Path, mode: str = "") -> Counters:
    """Tokens per call by k of the one curve of a file, or of that under the name `mode`."""
    curves: dict[tuple[str, ...], dict[int, float]] = {}
    for (*names, last), value in _lines(path):
        if value is not None and last.isdecimal() and (not mode or mode in names):
            curve = curves.setdefault(tuple(names), {})
            if int(last) in curve:
                raise TextError(f"{path} has k = {last} twice", limit="each k once", remedy="remove a line")
            curve[int(last)] = value
    if len(curves) != 1:
        listed = ", ".join("/".join(names) for names in curves) or "none"
        raise TextError(
            f"{path} has {len(curves)} curves of tokens per call by k ({listed})",
            limit="one is read at a time",
            remedy=f"keep the lines of one, or import one mode: {argument('format')} {_NAME}-on or {_NAME}-off",
        )
    ((keys, curve),) = curves.items()
    lengths = tuple(sorted(curve.items()))
    k, length = lengths[-1]
    provenance = {"curve": "/".join(keys)}
    return Counters(k=k, mean_length=length, lengths=lengths, remarks=(_ROUNDED_LENGTHS,), provenance=provenance)


def _has_lengths(head: bytes) -> bool:
    """Whether lines ``k: number`` stand under names."""
    begins = re.match(rb"(?:#.*\n|[ \t\r]*\n|---\r?\n)*[\w'\"]", head)
    return begins is not None and re.search(rb"^ +\d+: +[\d.]+ *(?:#.*)?\r?$", head, re.M) is not None


LENGTHS = tuple(
    Format(
        name,
        _has_lengths,
        partial(_read_lengths, mode=mode),
        title=title,
        gives="tokens per call at each k that is listed, means",
        lacks="counts, survival by position, errors of chance",
    )
    for name, mode, title in (
        (_NAME, "", "YAML of acceptance lengths by k under a model's name, as InferenceX publishes them"),
        (f"{_NAME}-on", "thinking_on", "the same, the curve `thinking_on`"),
        (f"{_NAME}-off", "thinking_off", "the same, the curve `thinking_off`"),
    )
)
