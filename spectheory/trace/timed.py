"""Timed runs of servers: one row for each run, whatever tool timed it (C3)."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from spectheory.cost.served import StepTime
from spectheory.engines import of_engines
from spectheory.errors import FOREIGN, SettingError, SpectheoryError, TextError, argument, page, reason_of
from spectheory.trace.importers.answers import entries

SCHEMA = "spectheory-bench/1"
NO_PREFILL = (
    "Times of steps are without prefill: where prompts of other requests are read beside them, steps take longer."
)
"""What the times of `spectheory bench` leave out."""
_LOOKED_AT = 1 << 20
_OF_FILES = ("*.json", "*.jsonl"), ("*.csv", "*.md", "*.txt", "*.log")


@dataclass(frozen=True)
class TimedRun:
    """One timed run: the mean `step_seconds` of a step of `batch` sequences that each have `context` cached tokens.

    A step of k = 0 is plain decoding. With k > 0 it is a call, drafting and verification, which outputs
    `tokens_per_call` tokens of a sequence, in the mean; None where the tool does not say it. `prompt_tokens` and
    `output_tokens` are of one request, `seconds` the wall time of the run, `started` an ISO 8601 time.

    `calls` and `survival`, the share of calls that accepted at least i drafts, are there if they were counted. `ttft`
    is the mean time to a first token, waiting included. `note` says what the times leave out. An estimate, whose error
    the fit of several runs shows.

    Examples
    --------
    >>> run = TimedRun("vllm", batch=8, context=300.0, k=3, step_seconds=0.012, tokens_per_call=2.6)
    >>> round(run.token_seconds * 1e3, 2), run.step.k
    (4.62, 3)
    >>> TimedRun.of_line(run.line()) == run
    True
    """

    engine: str
    batch: int
    context: float
    k: int
    step_seconds: float
    tokens_per_call: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    requests: int | None = None
    seconds: float | None = None
    started: str | None = None
    calls: int | None = None
    survival: tuple[float, ...] = ()
    ttft: float | None = None
    name: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        step, tokens = self.step, self.tokens_per_call  # the step checks its own numbers
        if self.k and tokens is not None and not 1 <= tokens <= self.k + 1:
            raise _refused(f"tokens_per_call is {tokens:g}", f"a call of k = {self.k} gives 1..{self.k + 1}")
        if self.survival and not (len(self.survival) == step.k and all(0 <= share <= 1 for share in self.survival)):
            raise _refused(f"survival is {list(self.survival)}", f"needs k = {self.k} fractions")
        known = (self.prompt_tokens, self.output_tokens, self.requests, self.seconds, self.calls, self.ttft)
        if not all(value is None or 0 <= value < math.inf for value in known):
            raise _refused(f"{self}", "counts and times are numbers from 0")

    @property
    def step(self) -> StepTime:
        """What the fit of step times reads."""
        accepted = min(max((self.tokens_per_call or 1.0) - 1, 0.0), float(self.k)) if self.k else 0.0
        return StepTime(self.batch, self.context, self.k, self.step_seconds, accepted)

    @property
    def token_seconds(self) -> float | None:
        """Seconds of an output token of a sequence; None if tokens per call are not known."""
        tokens = self.tokens_per_call if self.k else 1.0
        return None if tokens is None else self.step_seconds / tokens

    @property
    def decoded(self) -> float | None:
        """Output tokens of the run after the first of each request, which the prompt's own pass emits."""
        if self.requests is None or self.output_tokens is None:
            return None
        return self.requests * (self.output_tokens - 1)

    @property
    def counted_calls(self) -> float | None:
        """Calls of the run: as counted, or tokens over tokens per call."""
        if self.calls is not None or not (self.k and self.decoded and self.tokens_per_call):
            return self.calls
        return self.decoded / self.tokens_per_call

    @property
    def in_flight(self) -> float | None:
        """Sequences that were decoding at a time, the mean over the run (Little's law)."""
        if not (self.seconds and self.decoded is not None and self.token_seconds):
            return None
        return self.decoded * self.token_seconds / self.seconds

    def line(self) -> str:
        """The run as one line of JSON."""
        known = {
            name: value for name, value in asdict(self).items() if name in _REQUIRED or value not in (None, (), "")
        }
        return json.dumps({"schema": SCHEMA, **known})

    @classmethod
    def of_line(cls, line: str | bytes) -> TimedRun:
        """The run of such a line; other keys are passed over."""
        return cls._of(json.loads(line))

    @classmethod
    def _of(cls, entry: dict[str, Any]) -> TimedRun:
        if entry.get("schema") != SCHEMA:
            raise _refused(f"schema is {entry.get('schema')!r}", f"needs {SCHEMA}")
        known = {field.name for field in fields(cls)}
        try:
            return msgspec.convert({name: value for name, value in entry.items() if name in known}, cls)
        except msgspec.MsgspecError as error:  # no ValueError in older versions
            cause = error.__cause__
            raise (cause if isinstance(cause, SpectheoryError) else ValueError(str(error))) from error


_REQUIRED: tuple[str, ...] = (
    *("engine", "batch", "prompt_tokens", "output_tokens", "context", "k", "step_seconds", "tokens_per_call"),
    *("requests", "seconds", "started"),
)
"""Keys of every line; those not known are null."""


def _refused(what: str, limit: str) -> SettingError:
    return SettingError(what, limit=limit, remedy="drop this run, or time it again")


@dataclass(frozen=True)
class TimedFormat:
    """A format of timed runs: how its first bytes are known, its reader, which tool writes it, and what it lacks."""

    name: str
    recognises: Callable[[bytes], bool]
    read: Callable[[Path], Iterable[TimedRun]]
    title: str
    lacks: str = ""


@dataclass(frozen=True)
class Untimed:
    """A file of an engine's tool that says no time of a step: what it is, and what to give in its place."""

    recognises: Callable[[bytes], bool]
    what: str
    limit: str
    remedy: str


OWN = TimedFormat(
    "spectheory-bench",
    lambda head: f'"{SCHEMA}"'.encode() in head,
    lambda path: _own(path),
    title=f"a JSON object a line, schema `{SCHEMA}`",
)


def _own(path: Path) -> Iterator[TimedRun]:
    for where, entry in entries(path).items():
        if "spectheory" in entry:  # the first line of `spectheory bench`
            continue
        try:
            yield TimedRun._of(dict(entry))
        except SpectheoryError as error:
            raise TextError(f"{where}: {error.what}", limit=error.limit, remedy=error.remedy) from error
        except FOREIGN as error:
            raise TextError(
                f"{where} is no timed run ({error})", limit=f"needs {', '.join(_REQUIRED)}", remedy="mend the line"
            ) from error


def timed_runs(path: Path) -> list[TimedRun]:
    """The runs of a file, or of all files of a folder and those in it, of whatever tools wrote them."""
    runs = [run for file in _files(path) for run in _read(file)]
    if not runs:
        raise TextError(f"{path} holds no runs", limit="needs one at least", remedy="check that the tool finished")
    return runs


def _files(path: Path) -> list[Path]:
    """The results of a folder, tables and logs where it has no JSON; or the file itself."""
    if not path.is_dir():
        return [path]
    for kinds in _OF_FILES:
        if found := sorted(file for kind in kinds for file in path.rglob(kind) if not _is_aside(file)):
            return found
    names = ", ".join(kind.removeprefix("*") for kinds in _OF_FILES for kind in kinds)
    raise SettingError(f"{path} holds no results", limit=f"needs files {names}", remedy="check the folder")


def _is_aside(file: Path) -> bool:
    """Whether a file of `vllm bench sweep` warms up, failed, or repeats the runs beside it.

    (vllm-project/vllm, vllm/benchmarks/sweep/serve.py)
    """
    repeats = file.name == "summary.json" and any(file.parent.glob("run=*.json"))
    return repeats or file.name == "warmup.json" or file.name.endswith("failure.json")


def _read(path: Path) -> list[TimedRun]:
    try:
        with path.open("rb") as opened:
            head = opened.read(_LOOKED_AT).removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise TextError(
            f"{path} cannot be read ({reason_of(error)})", limit="needs a file or folder", remedy="check the path"
        ) from error
    for untimed in (one for of_one in of_engines("timed", "UNTIMED") for one in of_one):
        if untimed.recognises(head):
            raise TextError(f"{path} is {untimed.what}", limit=untimed.limit, remedy=untimed.remedy)
    chosen = next((each for each in timed_formats().values() if each.recognises(head)), None)
    if chosen is None:
        known = argument("spectheory.trace.timed.timed_formats()", page("formats"))
        raise TextError(f"{path} is no file of timed runs", limit="needs a known format", remedy=f"{known} lists them")
    try:
        return list(chosen.read(path))
    except SpectheoryError:
        raise
    except FOREIGN as error:
        raise TextError(
            f"{path} is not of the format {chosen.name} ({reason_of(error)})",
            limit="numbers and names must be those that its tool writes",
            remedy="check the file for damage",
        ) from error


def k_named(name: str) -> int | None:
    """The k that a name says, as that of a file of a tool which does not say it.

    Examples
    --------
    >>> k_named("run_k3_bs8"), k_named("k-means"), k_named("bulk3")
    (3, None, None)
    """
    match = re.search(r"(?<![A-Za-z0-9])k(\d{1,3})(?![A-Za-z0-9])", name)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Answer:
    """One answer of a server that serves one request at a time: seconds of its further tokens, and its counts."""

    prompt: float
    tokens: int
    seconds: float
    accepted: int = 0
    drafted: int = 0
    note: str = ""

    @property
    def calls(self) -> int:
        """Steps after the prompt's own token."""
        return self.tokens - 1 - self.accepted

    @property
    def context(self) -> float:
        """Mean cached tokens."""
        return self.prompt + self.tokens / 2


_LEAST_WHOLE = 0.9
"""Drafts of a call over k: the last call of a text may draft fewer."""
_ALIKE = 1.5
"""Contexts within this factor of the shortest are one run."""


def runs_of_answers(engine: str, answers: Iterable[Answer], path: Path) -> Iterator[TimedRun]:
    """Answers of a file as runs of batch 1, a run for each k and context.

    Calls are tokens less accepted ones, less the prompt's own (an estimate: a last call may accept tokens past the
    end). k is that of the file's name, or drafted tokens per call, which must be nearly whole.
    """
    named, groups = k_named(path.stem), list[tuple[int, list[Answer]]]()
    known = [(_k_of(each, named, path), each) for each in answers if each.calls > 0 and 0 < each.seconds < math.inf]
    for k, each in sorted(known, key=lambda one: (one[0], one[1].context)):
        if groups and groups[-1][0] == k and each.context <= _ALIKE * groups[-1][1][0].context:
            groups[-1][1].append(each)
        else:
            groups.append((k, [each]))
    for k, same in groups:
        decoded, calls = sum(each.tokens - 1 for each in same), sum(each.calls for each in same)
        yield TimedRun(
            engine,
            1,
            sum(each.context * (each.tokens - 1) for each in same) / decoded,
            k,
            math.fsum(each.seconds for each in same) / calls,
            min(decoded / calls, k + 1.0) if k else None,
            sum(each.prompt for each in same) / len(same),
            1 + decoded / len(same),
            len(same),
            calls=calls if k else None,
            name=path.stem,
            note=same[0].note,
        )


def _k_of(answer: Answer, named: int | None, path: Path) -> int:
    """Drafts of the calls of an answer."""
    if not answer.drafted:
        return 0
    per_call = answer.drafted / answer.calls
    k = named or round(per_call)
    if not k or not _LEAST_WHOLE <= per_call / k <= 2 - _LEAST_WHOLE:
        raise TextError(
            f"{path} has an answer with {per_call:.2f} drafts per call",
            limit="calls must draft k tokens each" + (f", and its name says k = {k}" if named else ""),
            remedy="serve with one k that no confidence cuts, and name the file k3.json if it is 3",
        )
    return k


def timed_formats() -> dict[str, TimedFormat]:
    """Every format of timed runs by its name."""
    return {each.name: each for each in (OWN, *(one for of_one in of_engines("timed", "TIMED") for one in of_one))}
