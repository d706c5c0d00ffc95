"""Logs of vLLM: its answers, log-probabilities, log, offline example, and the table that speculators makes of it."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.engines.vllm import NO_DRAFTS
from spectheory.engines.vllm.bench import VLLM_BENCH
from spectheory.errors import FOREIGN, TextError
from spectheory.trace.calls import Request
from spectheory.trace.counters import PAST_END, Counters
from spectheory.trace.importers.answers import PROMPT, STEPS, Json, at, call_log, counts_of, ids_at, request_of
from spectheory.trace.importers.base import Format, fields_of, text_of
from spectheory.trace.importers.logprobs import known_lists, scores, text_fields, top_list
from spectheory.trace.importers.prometheus import POSITION, SPECULATION, Metrics
from spectheory.trace.importers.rounded import NUMBER, SLACK, calls_of, calls_within, half_unit, shares_of
from spectheory.trace.scores import ScoredText, Top

_RECORD = (
    "metrics.speculative_decoding",
    "choices.0.metrics.speculative_decoding",
    "speculative_decoding",
    "to_dict",
)
"""Where the record stands: in a response, alone, or in a dump of its own dictionary."""


def _record(entry: Json) -> Any:
    return entry if STEPS in entry else at(entry, *_RECORD)


def _requests(entry: Json) -> list[Request]:
    """Counts of a response; none where no call had drafts."""
    record = _record(entry)
    return [] if record is None else [request_of(entry, **counts_of(record))]


_POSITIONS = ("choices.0.prompt_logprobs", "prompt_logprobs")


def _text(entry: Json) -> ScoredText:
    """A position maps ids to ``logprob`` and ``rank``.

    Its own token comes first, and is in the list of the most probable ones if its rank says so. Tied tokens all have
    the last of their ranks.
    """
    positions = at(entry, *_POSITIONS)
    entries = [_own(position) for position in positions]
    given = ids_at(entry, *PROMPT)
    if given and len(given) != len(positions):
        raise ValueError(f"{len(given)} prompt ids, {len(positions)} positions")
    ids = tuple(token for token, _ in entries)
    if given and any(token not in (None, known) for token, known in zip(ids, given, strict=True)):
        raise ValueError("its positions are of other tokens than prompt_token_ids")
    return ScoredText(
        log_probs=tuple(at(value, "logprob") for _, value in entries),
        tokens=given or ids,
        prompt=at(entry, "prompt_tokens") or 0,
        tops=known_lists(_top(position) for position in positions),
        ranks=tuple(at(value, "rank") for _, value in entries),
        **{**text_fields(entry), "ended": False},
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
    (token_id, value), *others = position.items()
    rank = value.get("rank")
    listed = others if rank is None or rank > len(position) else [(token_id, value), *others]
    return top_list((int(token), each["logprob"]) for token, each in listed)


def _has_values(head: bytes) -> bool:
    """Whether ``prompt_logprobs`` is a list: completions have it as null."""
    after = head.partition(b'"prompt_logprobs"')[2].lstrip(b" \r\n\t:")
    return after.startswith(b"[")


_MARK = "SpecDecoding metrics:"
_FIELDS = {
    "length": rf"Mean acceptance length: ({NUMBER}),",
    "accepted": r"Accepted: (\d+) tokens",
    "drafted": r"Drafted: (\d+) tokens",
    "shares": rf"Per-position acceptance rate: ({NUMBER}(?:, {NUMBER})*)(?:, Avg|\s*$)",
    "rate": rf"Draft acceptance rate: ({NUMBER})%",
}
_BY_LMDEPLOY = "Avg thr (in/out):"
"""In LMDeploy's lines, which have the fields of vLLM's."""
_LENGTH_DIGITS, _SHARE_DIGITS = 2, 3
_MOST_DRAFTED = 10**7
"""Drafted tokens of one line, which is of ten seconds."""
_BETWEEN = "Calls drafted a variable number of tokens; their number follows from rounded shares: between {} and {}."


@dataclass(frozen=True)
class _Line:
    """What one line prints, and every number of `calls` that fits it."""

    accepted: int
    drafted: int
    shares: tuple[float, ...]
    calls: NDArray[np.int64]
    engine: str

    @property
    def full(self) -> int | None:
        """The calls if each drafted all k tokens, where that fits."""
        calls = self.drafted // len(self.shares)
        return calls if calls * len(self.shares) == self.drafted and calls in self.calls else None

    def counters(self, calls: int) -> Counters:
        """The counts, if there were so many calls."""
        shares, rounding = shares_of(self.shares, _SHARE_DIGITS, calls, self.accepted)
        k = len(shares)
        return Counters(calls, self.drafted, self.accepted, shares, k, rounding=rounding, engine=self.engine)


def _read_log(path: Path) -> Counters:
    """The sum of all intervals in a log.

    If every line fits calls of k drafts each, these are the calls. Else drafts vary in number (n-gram, suffix, drafts
    cut short), and each line says an interval of calls: the one nearest to what its shares add up to is taken.
    """
    numbered = [(n, line) for n, line in enumerate(text_of(path).split("\n"), 1) if _MARK in line]
    if not numbered:
        raise TextError(f"{path} has no {_MARK!r}", limit="vLLM logs it with speculation", remedy="log at level INFO")
    lines = [_line(line, f"{path} line {number}") for number, line in numbered]
    full = [line.full for line in lines if line.full is not None]
    varied = len(full) < len(lines)
    calls = _nearest(lines) if varied else full
    total = Counters.join([line.counters(n) for line, n in zip(lines, calls, strict=True)])
    ends = [sum(int(pick(line.calls)) for line in lines) for pick in (np.min, np.max)]
    return replace(total, remarks=(PAST_END, NO_DRAFTS, *([_BETWEEN.format(*ends)] if varied else [])))


def _nearest(lines: Sequence[_Line]) -> list[int]:
    """Of each line the fitting number of calls nearest to accepted / sum of shares; without any, by drafts per call."""
    accepting = [line for line in lines if line.accepted]
    calls = [
        float(line.accepted / sum(line.shares)) if sum(line.shares) else float(line.calls.max()) for line in accepting
    ]
    drafts = sum(line.drafted for line in accepting) / sum(calls) if accepting else float(len(lines[0].shares))
    meant = iter(calls)
    each = [next(meant) if line.accepted else line.drafted / drafts for line in lines]
    return [int(line.calls[abs(line.calls - n).argmin()]) for line, n in zip(lines, each, strict=True)]


def _line(line: str, where: str) -> _Line:
    value = fields_of(line, _FIELDS, where)
    shares = tuple(float(share) for share in value["shares"].split(","))
    accepted, drafted, length = int(value["accepted"]), int(value["drafted"]), float(value["length"])
    if drafted > _MOST_DRAFTED:
        raise TextError(
            f"{where} has {drafted:.3g} drafted tokens", limit=f"at most {_MOST_DRAFTED:g}", remedy="check the line"
        )
    calls = calls_within(accepted, drafted, (length, _LENGTH_DIGITS), (shares, _SHARE_DIGITS))
    if not len(calls):
        guess, _ = calls_of(accepted, length, _LENGTH_DIGITS, drafted, len(shares))  # says what is wrong, or the next
        Counters(guess, drafted, accepted, shares, len(shares), rounding=half_unit(_SHARE_DIGITS))
        raise TextError(
            f"{where}: a mean length of {length:g}, its shares and {accepted} accepted tokens fit no number of calls",
            limit="length = 1 + accepted / calls, and each share is a count over calls",
            remedy="remove the line if it is damaged",
        )
    return _Line(accepted, drafted, shares, calls, "lmdeploy" if _BY_LMDEPLOY in line else "vllm")


_PRINTED = {"calls": "num_drafts", "drafted": "num_draft_tokens", "accepted": "num_accepted_tokens"}
_PRINTED_DIGITS = 2


def _read_offline(path: Path) -> Counters:
    """Totals of a run of ``LLM.generate``."""
    text = text_of(path)
    totals: dict[str, Any] = {name: _printed(text, printed, path) for name, printed in _PRINTED.items()}
    tokens = re.search(r"total_num_output_tokens: (\d+)", text)
    vector = re.search(r"num_accepted_tokens_per_pos['\"],[^)]*?values=\[([\d, ]*)\]", text)
    calls = totals["calls"]
    if vector and calls:
        survival, rounding = tuple(int(count) / calls for count in vector[1].split(",") if count.strip()), 0.0
    else:
        shares = [float(share) for share in re.findall(rf"acceptance at token \d+: ({NUMBER})", text)]
        survival, rounding = shares_of(shares, _PRINTED_DIGITS, calls, totals["accepted"])
    even = calls and totals["drafted"] % calls == 0
    return Counters(
        **totals,
        survival=survival,
        k=len(survival) or (totals["drafted"] // calls if even else None),
        tokens=int(tokens[1]) if tokens else None,
        rounding=rounding,
        engine="vllm",
        remarks=(PAST_END, NO_DRAFTS),
    )


def _printed(text: str, name: str, path: Path) -> int:
    """The value after ``name:``, or of ``Counter(name='vllm:spec_decode_NAME', value=...)``."""
    forms = (rf"\b{name}: (\d+)", rf"spec_decode_{name}['\"],[^)]*?value=(\d+)")
    values = [match[1] for form in forms for match in re.finditer(form, text)]
    if len(values) != 1:
        raise TextError(
            f"{path} has {name} {len(values)} times",
            limit="needs the print of one run",
            remedy="keep the lines of one run in a file",
        )
    return int(values[0])


def _is_printed(head: bytes) -> bool:
    return re.search(rb"\bnum_drafts: \d", head) is not None or b"Counter(name='vllm:spec_decode" in head


_TOTALS = {"calls": "num_drafts", "drafted": "num_draft_tokens", "accepted": "num_accepted_tokens"}
_LENGTH, _SHARE = "acceptance_length", "acceptance_at_pos_"


def _read_speculators(path: Path) -> Counters:
    """The sum of all subsets; each counts once, however many loads the table has of it."""
    rows = list(csv.DictReader(text_of(path).splitlines()))
    if not rows:
        raise TextError(f"{path} has no row", limit="needs a subset", remedy="run the evaluation again")
    digits = max((_digits(row[name]) for row in rows for name in row if _is_share(name)), default=0)
    subsets = {_counts(row): _subset(row, digits, f"{path} line {number}") for number, row in enumerate(rows, 2)}
    return Counters.join(list(subsets.values()))


def _counts(row: dict[str, str]) -> tuple[str | None, ...]:
    """What a row counts: a sweep has a row for every load, each with the counts of the whole subset."""
    return tuple(row.get(name) for name in row if name in ("subset", *_TOTALS.values()) or _is_share(name))


def _subset(row: dict[str, str], digits: int, where: str) -> Counters:
    try:
        calls, drafted, accepted = (int(float(row[name])) for name in _TOTALS.values())
        length, shares = float(row[_LENGTH]), [float(row[name]) for name in row if _is_share(name)]
        if not all(map(math.isfinite, (length, *shares))):
            raise ValueError("not finite")
    except FOREIGN as error:
        raise TextError(
            f"{where} is no whole row",
            limit=f"needs {', '.join(_TOTALS.values())}, {_LENGTH}",
            remedy="export it again",
        ) from error
    off = half_unit(min(_digits(row[_LENGTH]), 6)) + SLACK
    if calls and abs(1 + accepted / calls - length) > off:
        raise TextError(
            f"{where} has a length of {length:g}, its counts {1 + accepted / calls:.6g}",
            limit="1 + accepted / drafts",
            remedy="check the row for other counts",
        )
    survival, rounding = shares_of(shares, digits, calls, accepted)
    return Counters(
        calls,
        drafted,
        accepted,
        survival,
        len(shares) or None,
        rounding=rounding,
        engine="vllm",
        remarks=(PAST_END, NO_DRAFTS),
    )


def _is_share(name: str | None) -> bool:
    return name is not None and name.startswith(_SHARE)


def _digits(number: str | None) -> int:
    """Digits after the point as written."""
    return len((number or "").partition(".")[2])


REQUESTS = (
    Format(
        "vllm-requests",
        lambda head: f'"{STEPS}"'.encode() in head,
        lambda path: call_log(
            path,
            "vllm-requests",
            _requests,
            k=lambda each: at(_record(each), "num_spec_tokens"),
            engine="vllm",
            prefill_emits_token=True,
            counts_past_end=True,
        ),
        title="vLLM's responses, served with `--per-request-spec-decode-metrics detailed`",
        gives="calls, accepted and drafted tokens of each request; with the setting detailed, of each call",
        lacks="calls without drafts (n-gram and suffix drafts count none); counts hold accepted tokens past the end",
    ),
)
SCORES = (
    Format(
        "vllm-logprobs",
        lambda head: b'"prompt_logprobs"' in head and _has_values(head),
        lambda path: scores(path, "vllm-logprobs", _text),
        title="vLLM's `prompt_logprobs`",
        gives="with the log of the other model a trace: two numbers per token, their ranks, and lists of top tokens",
        lacks="how the text was drawn, and where its output begins, unless it is added",
    ),
)
TOTALS = (
    Format(
        "vllm-log",
        lambda head: _MARK.encode() in head,
        _read_log,
        title="vLLM's log, or LMDeploy's, lines of `SpecDecoding metrics`; intervals are summed",
        gives="calls, drafted and accepted tokens, survival by position",
        lacks="requests, texts; calls without drafts",
    ),
    Format(
        "vllm-offline",
        _is_printed,
        _read_offline,
        title="vLLM's `llm.get_metrics()`, as its example prints it or as Python shows it",
        gives="calls, drafted and accepted tokens, output tokens, survival by position where it is printed",
        lacks="requests, texts; calls without drafts",
    ),
    VLLM_BENCH,
    Format(
        "speculators",
        lambda head: all(name.encode() in head.partition(b"\n")[0] for name in (*_TOTALS.values(), _LENGTH)),
        _read_speculators,
        title="the CSV of speculators' evaluation of a draft in vLLM; subsets are summed",
        gives="calls, drafted and accepted tokens, survival by position",
        lacks="requests, texts; calls without drafts",
    ),
)
METRICS = (
    Metrics(
        "vllm",
        "vllm:",
        {**SPECULATION, "tokens": "generation_tokens_total"},
        POSITION,
        started="spec_decode_num_drafts_created",
        remarks=(PAST_END, NO_DRAFTS),
    ),
)
