"""A server timed at few points: the runs that ``plan --bench`` needs, a line of JSON each."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from spectheory.checks import MOST_EXACT, in_range, whole
from spectheory.distributions import Sampling
from spectheory.errors import EngineError, SettingError, TextError, argument
from spectheory.measure.engines import Engine, Job, Models, Seats
from spectheory.measure.engines.design import Point, timed_points
from spectheory.measure.engines.load import Clock, Load, NotTogether, Streamed, together
from spectheory.measure.engines.processes import Http
from spectheory.measure.engines.server import Dialect, ServerEngine, _dialect_of, token_ids
from spectheory.measure.model_files import fingerprint_of
from spectheory.store import Contents, Store
from spectheory.trace.counters import Counters
from spectheory.trace.importers.prometheus import read_metrics
from spectheory.trace.timed import NO_PREFILL, TimedRun

__all__ = ["BENCH_FILE", "DEFAULT_KS", "Bench", "Benched", "bench"]

BENCH_FILE = "bench.jsonl"
_CONTENTS = Contents(
    "spectheory bench",
    1,
    "points of spectheory bench",
    TextError,
    "choose another --out, or delete the file",
    "points of another server or of other requests",
    "engine, models, output tokens, temperature, seed and prompts must be the same; "
    "batches, contexts, k and repeats may differ",
    sealed=False,
)
_WARM, _WARM_UPS = 16, 2
"""Output tokens of the requests before the first point, and how often they are sent."""
_TRIES = 3
"""How often a repeat is sent before its point is refused."""
_SLOW = ("logprobs", "return_tokens_as_token_ids")
"""What a request does not ask for: it takes time."""
_STREAMED = {
    "stream": True,
    "ignore_eos": True,
    "stream_options": {"include_usage": True, "continuous_usage_stats": True},
}
DEFAULT_KS = (1, 4)
"""Drafts per call beside plain decoding: a plan reads every k between them."""
_LEAST_DRAFTED = 0.9
"""Drafted tokens per call, as a share of k, below which calls are of several lengths."""

OnPoint = Callable[[str, int, int], None]
"""Told what is timed, how many points are finished, and of how many."""


@dataclass(frozen=True)
class Bench:
    """What is timed: the points of :func:`timed_points`, with requests of fixed lengths.

    A request reads a piece of `text` of ``context - output_tokens / 2`` tokens and outputs `output_tokens`, whether the
    text would end or not. Each point is timed `repeats` times with other pieces, the same at every k. `ks` are drafts
    per call beside plain decoding; none are those of a running server. `arguments` are further ones of the command
    line of an engine that is started.
    """

    batches: tuple[int, ...]
    contexts: tuple[int, ...]
    text: str
    ks: tuple[int, ...] = ()
    output_tokens: int = 64
    repeats: int = 5
    temperature: float = 0.0
    seed: int = 0
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        in_range(argument("output_tokens", "--output-tokens"), self.output_tokens, 1 << 20)
        in_range(argument("repeats", "--repeats"), self.repeats, 1000)
        whole(argument("seed"), self.seed, least=0, most=MOST_EXACT, remedy="0 is usual")
        timed_points(self.batches, self.contexts, self.ks)
        least = self.output_tokens // 2 + 1
        if self.output_tokens < 8 or min(self.contexts) < least:
            raise SettingError(
                f"context {min(self.contexts)} with {self.output_tokens} output tokens",
                limit=f"outputs have 8 tokens, a context half of them and a prompt: {least}",
                remedy="raise --context, or lower --output-tokens to 8 or more",
            )
        if not self.text.strip():
            raise SettingError("the prompts are empty", limit="requests read pieces of them", remedy="give a text")

    @property
    def seats(self) -> Seats:
        """The room that the largest point needs, with drafts past the end."""
        tokens = max(self.contexts) + self.output_tokens // 2 + max(self.ks, default=0) + 1
        return Seats(max(self.batches), tokens, "auto", self.arguments)

    def job(self, k: int) -> Job:
        """How requests are sampled."""
        return Job((), self.output_tokens, k or None, Sampling(self.temperature), self.seed)

    def pieces(self, ids: Sequence[int], point: Point, repeat: int) -> list[tuple[int, ...]]:
        """The prompts of a point: pieces of the text at random places."""
        size = point.context - self.output_tokens // 2
        whole = tuple(ids) * math.ceil((size + 1) / len(ids))
        rng = np.random.default_rng([self.seed, point.batch, point.context, repeat])
        room = len(whole) - size
        places = rng.choice(room, point.batch, replace=room < point.batch)
        return [whole[place : place + size] for place in places.tolist()]


@dataclass(frozen=True)
class Benched:
    """The runs that are timed, in `file`; `lacking` has what starts the server for each k that is not timed yet."""

    runs: tuple[TimedRun, ...]
    file: Path
    lacking: Mapping[int, str]
    seconds: float


def bench(
    engine: Engine,
    asked: Bench,
    out: Path,
    models: Models | None = None,
    *,
    on_progress: OnPoint | None = None,
    clock: Clock = time.perf_counter,
) -> Benched:
    """Time the points of `asked` on an engine that is started for each k, or on a server that runs.

    Requests are sent together and streamed. The time of a token is that between two steps of a request while all
    requests decode (:class:`~spectheory.measure.engines.load.Load`), so no prompt is read in it. The time of a step is
    that times tokens per call, which the server counts; the median over the repeats. With one request that is too long
    by v/(mN), with m and v the mean and variance of tokens per call and N output tokens. The context of a point is that
    of a whole request in the mean: its prompt and half of its output.

    A finished point is a line of ``bench.jsonl`` in `out`; a rerun times the missing ones. Raises ``EngineError``
    where the server fails or does not run so many requests at once, ``SettingError`` where it drafts another k.
    """
    began = clock()
    head = {"fingerprint": _fingerprint(engine, asked, models), "engine": engine.name}
    with Store(out / BENCH_FILE, _CONTENTS, head) as store, _if_any(store):
        runs = [TimedRun.of_line(json.dumps(row.content)) for row in store.earlier]
        if isinstance(engine, ServerEngine):
            timer = _Timer.of(engine.http, asked, clock)
            work: list[tuple[int, Callable[[], AbstractContextManager[_Timer]]]]
            work = [(timer.drafts(), lambda: nullcontext(timer))]
        else:
            assert models is not None, "an engine that is started needs models"
            work = [(k, partial(_started, engine, models, asked, k, clock)) for k in dict.fromkeys((0, *asked.ks))]
        done = Counter(Point(run.k, run.batch, round(run.context)) for run in runs)
        missing = {k: _missing(asked, k, done) for k, _ in work}
        total, finished = sum(map(len, missing.values())) + len(runs), len(runs)
        for k, ready in work:
            if not missing[k]:
                continue
            with ready() as timer:
                timer.check(k)
                for point in missing[k]:
                    if on_progress:
                        on_progress(f"k = {k}, batch {point.batch}, context {point.context}", finished, total)
                    runs.append(timer.timed(point))
                    store.add(json.loads(runs[-1].line()))
                    finished += 1
    return Benched(tuple(runs), out / BENCH_FILE, _lacking(engine, asked, runs), clock() - began)


@contextmanager
def _if_any(store: Store) -> Iterator[None]:
    """Leave no file without a point behind a failure: it would refuse other settings."""
    try:
        yield
    except BaseException:
        if not store.check().rows:
            store.path.unlink()
        raise


def _missing(asked: Bench, k: int, done: Mapping[Point, int]) -> list[Point]:
    """The points of this k that are not timed yet; one that stands twice is timed twice."""
    return list((Counter(timed_points(asked.batches, asked.contexts, [k])) - Counter(done)).elements())


@contextmanager
def _started(engine: Engine, models: Models, asked: Bench, k: int, clock: Clock) -> Iterator[_Timer]:
    with engine.server(asked.job(k), models, asked.seats) as http:
        yield _Timer.of(http, asked, clock)


def _lacking(engine: Engine, asked: Bench, runs: Sequence[TimedRun]) -> dict[int, str]:
    """What starts a running server for the k that are asked for and not timed; plain decoding is always needed."""
    if not isinstance(engine, ServerEngine):
        return {}
    timed = {run.k for run in runs}
    dialect, _ = _dialect_of(engine.http.get("/v1/models"))
    others = asked.ks or (() if timed - {0} else (DEFAULT_KS[-1],))
    return {k: dialect.drafting.format(k=k) if k else "no speculation" for k in (0, *others) if k not in timed}


def _fingerprint(engine: Engine, asked: Bench, models: Models | None) -> str:
    """Of all that a row does not say and that decides it."""
    which = [fingerprint_of(folder, None) for folder in (models.target, models.draft)] if models else []
    served = dict(engine.settings(asked.job(0))) if isinstance(engine, ServerEngine) else {}
    requests = [asked.text, asked.output_tokens, asked.temperature, asked.seed, asked.arguments]
    return hashlib.sha256(json.dumps([engine.version(), which, served, requests]).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Timer:
    """A server that is ready: how it is asked, and the ids of the text."""

    http: Http
    dialect: Dialect
    model: str
    asked: Bench
    ids: tuple[int, ...]
    clock: Clock

    @classmethod
    def of(cls, http: Http, asked: Bench, clock: Clock) -> _Timer:
        """Read the text's ids, and let the server run as many requests as it will."""
        dialect, model = _dialect_of(http.get("/v1/models"))
        ids = token_ids(http.post("/tokenize", {"model": model, dialect.text: asked.text}).get("tokens") or ())
        if not ids:
            raise EngineError(
                f"server {http.url} gives no ids at /tokenize",
                limit="prompts of a fixed length need them",
                remedy="use vLLM, SGLang or llama.cpp, or their versions that have it",
            )
        timer = cls(http, dialect, model, asked, ids, clock)
        for _ in range(_WARM_UPS):
            timer.sent(Point(0, max(asked.batches), min(asked.contexts)), 0, min(_WARM, asked.output_tokens))
        return timer

    def sent(self, point: Point, repeat: int, tokens: int) -> list[Streamed]:
        """The requests of one repeat of a point."""
        job = replace(self.asked.job(point.k), tokens=tokens)
        bodies = []
        for i, piece in enumerate(self.asked.pieces(self.ids, point, repeat)):
            body = self.dialect.body(job, f"{repeat}-{i}", piece, self.model)
            body = {name: value for name, value in body.items() if name not in _SLOW}
            bodies.append({**body, **_STREAMED})
        return together(self.http.url, self.dialect.path, bodies, timeout=self.http.timeout, clock=self.clock)

    def timed(self, point: Point) -> TimedRun:
        """All repeats of a point."""
        started, began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), self.clock()
        repeats = [self.repeated(point, repeat + 1) for repeat in range(self.asked.repeats)]
        loads, counts = [load for load, _ in repeats], [each for _, each in repeats if each]
        steps = [load.token_seconds * ((each and each.length) or 1.0) for load, each in repeats]
        whole = Counters.join(counts) if counts else None
        return TimedRun(
            self.dialect.engine,
            point.batch,
            float(point.context),
            point.k,
            statistics.median(steps),
            whole.length if whole else None,
            float(point.context - self.asked.output_tokens // 2),
            float(self.asked.output_tokens),
            self.asked.repeats * point.batch,
            self.clock() - began,
            started,
            calls=whole.calls if whole else None,
            survival=whole.survival[: point.k] if whole else (),
            ttft=statistics.fmean(load.ttft for load in loads),
            name=f"k{point.k}-b{point.batch}-c{point.context}",
            note=NO_PREFILL,
        )

    def repeated(self, point: Point, repeat: int) -> tuple[Load, Counters | None]:
        """One repeat, and what was counted in it; one that something held up is sent again, a few times."""
        for left in reversed(range(_TRIES)):
            before = self.counters() if point.k else None
            try:
                load = Load.of(self.sent(point, repeat, self.asked.output_tokens))
            except NotTogether:
                if not left:
                    raise
            else:
                return load, _between(before, self.counters(), point.k) if before else None
        raise AssertionError("the last try raises")

    def counters(self) -> Counters | None:
        """What the server has counted of its calls; None without such counters."""
        text = self.http.get("/metrics")
        try:
            return None if text is None else read_metrics(text, Path(f"{self.http.url}/metrics"))
        except TextError:
            return None

    def drafts(self) -> int:
        """The k that a running server drafts, by its counters; without any, the one k that is asked for."""
        counted, ks = self.counters(), self.asked.ks
        if counted is None and self.http.get("/metrics") is None:
            if ks != (0,):
                raise SettingError(
                    f"server {self.http.url} has no /metrics",
                    limit="they say how many tokens it drafts and accepts",
                    remedy="start llama.cpp with --metrics; for a server without speculation give --k 0",
                )
            return 0
        k = 0 if counted is None or not counted.calls else counted.k or round(counted.mean_drafted or 0)
        if ks and k not in ks:
            raise SettingError(
                f"server {self.http.url} drafts {k} tokens",
                limit=f"--k is {', '.join(map(str, ks))}",
                remedy=f"give --k {k} too, or start it with {self.dialect.drafting.format(k=max(ks))}",
            )
        return k

    def check(self, k: int) -> None:
        """Refuse a server that does not count its calls."""
        counted = self.counters()
        if k and (counted is None or not counted.calls or counted.length is None):
            raise EngineError(
                f"server {self.http.url} counts no drafts",
                limit="tokens per call are known from spec_decode counters in /metrics",
                remedy="start it with speculation and metrics (llama.cpp: --metrics)",
            )


def _between(before: Counters, after: Counters | None, k: int) -> Counters:
    """What one repeat counted; calls must be of one length."""
    if after is None:
        raise EngineError("/metrics went away", limit="needed at every point", remedy="check the server")
    counts = Counters.join([before, after])
    drafted = counts.mean_drafted
    if drafted is not None and drafted < _LEAST_DRAFTED * k:
        raise EngineError(
            f"calls drafted {drafted:.2f} tokens, k is {k}",
            limit="calls must be of one length",
            remedy="fix the length of drafts (llama.cpp: --spec-draft-p-min 0, no adaptive speculation)",
        )
    return counts
