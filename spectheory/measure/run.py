"""Measure a pair on prompts: sample or take the texts, read them with both models, keep what is finished."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from spectheory.checks import whole
from spectheory.errors import TraceError
from spectheory.files import sole_writer
from spectheory.measure.copied import removed_from_equal
from spectheory.measure.job import (
    Encoded,
    Measurement,
    MeasureSettings,
    _last_complete,
    _provenance_of,
    _Stage,
    measurement_of,
    stages_of,
    traces_of,
)
from spectheory.measure.machine import _most_threads, free_bytes, threads_in_use, use_threads
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.reading import _bytes_per_token, cache_of_causal, takes, why_alone
from spectheory.measure.runners import Due, Read, Runner, Sample, _workers_of, here, works_here
from spectheory.prediction.ngrams import with_ngrams
from spectheory.prompts import Prompt
from spectheory.trace import PROVISIONAL, Trace
from spectheory.trace.parquet import parts_of
from spectheory.trace.parts import PartStore, concatenate

MOST_PROMPTS = {"cpu": 16}
"""Most prompts that are sampled together unless more are asked for; a larger batch of a CPU is hardly faster."""
MOST_ELSEWHERE = 64
MOST_TEXTS = 512
"""Most texts of a batch, continuations counted."""
_SHARE = 0.25
"""Share of the free memory that a batch may take: the estimate of what it takes is rough."""
_DRAWING = 32
"""Bytes for each entry of a row of logits while a token is drawn: some float32 and two float64 copies."""
_WASTE = 1 / 3
"""Share of padding in the prompts' tokens from which on there is a remark."""


def _batch_for(pair: ModelPair, prompts: Sequence[Encoded], settings: MeasureSettings, *, workers: int = 0) -> int:
    """How many prompts to sample together at most: as many as :data:`_SHARE` of the free memory holds (an estimate),
    and no more than pays; 1 for given text and for a target that reads no padding.

    The memory that so many `workers` on the target's device leave, each with the pair, is divided among them; 0: this
    process samples.
    """
    longest = max(len(each.ids) for each in prompts)
    if settings.given_text or why_alone(pair.target, longest + settings.tokens) is not None:
        return 1
    most = min(MOST_PROMPTS.get(pair.target.device.type, MOST_ELSEWHERE), MOST_TEXTS // settings.count)
    free = free_bytes(pair.target.device)
    if workers:  # weights that are shared count once
        weights = {id(each): each for model in (pair.target, pair.draft) for each in model.network.parameters()}
        free = max(0, free - workers * sum(each.nbytes for each in weights.values())) // workers
    needed = _prompt_bytes(pair.target, longest, settings)
    return max(1, min(most, len(prompts), int(_SHARE * free / needed)))


def _prompt_bytes(target: Model, longest: int, settings: MeasureSettings) -> float:
    """Bytes for a prompt of `longest` tokens and its texts, above the weights."""
    element = torch.finfo(target.network.dtype).bits // 8
    config = target.network.config.get_text_config()
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    chunk = min(longest, settings.chunk)
    logits = target.outputs * (1 if takes(target, "logits_to_keep") else chunk)
    reading = element * (chunk * (8 * config.hidden_size + 3 * inner) + logits)
    # While texts are selected, the old cache and the one that they move to are held.
    cache = 2 * _bytes_per_token(cache_of_causal(target)) * (longest + settings.tokens)
    return reading + settings.count * (cache + _DRAWING * target.outputs)


def _batch_remarks(
    pair: ModelPair, batches: Sequence[Sequence[Encoded]], tokens: int, batch: int, asked: int | None
) -> Iterator[str]:
    """What the user should know of sampling texts of up to `tokens` tokens in these batches of up to `batch` prompts,
    where `asked` were asked for.
    """
    if asked not in (None, batch):
        yield f"{batch} prompts are sampled together, as when this measurement began, not {asked}"
    lengths = [len(each.ids) for prompts in batches for each in prompts]
    reason = why_alone(pair.target, max(lengths) + tokens) if len(lengths) > 1 and asked != 1 else None
    if reason is not None:
        yield f"{pair.target.name} {reason}: prompts are sampled one after the other"
    elif _wasted(prompts := max(batches, key=_wasted)) > _WASTE:
        shortest, *_, longest = sorted(prompts, key=lambda each: len(each.ids))
        yield (
            f"prompts of {len(shortest.ids)} to {len(longest.ids)} tokens are sampled together "
            f"({shortest.prompt.id!r} and {longest.prompt.id!r} are among them): {_wasted(prompts):.0%} of what is "
            f"read of them is padding; use a smaller --batch than {batch}"
        )


def _wasted(prompts: Sequence[Encoded]) -> float:
    """The share of padding in what is read of these prompts together."""
    lengths = [len(each.ids) for each in prompts]
    return 1 - sum(lengths) / (len(lengths) * max(lengths))


@dataclass(frozen=True)
class Progress:
    """Prompts finished, all prompts, and how many of the finished ones an earlier run had finished."""

    done: int
    total: int
    resumed: int


def measure(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: MeasureSettings,
    out: Path,
    *,
    batch: int | None = None,
    runner: Runner = here,
    on_progress: Callable[[Progress], None] | None = None,
    on_remark: Callable[[str], None] | None = None,
) -> Trace:
    """Measure a pair and write the trace to `out`; a run that was stopped at any moment resumes where it stopped.

    Sampled texts, and the columns of each prompt, are rows of a file next to `out` when they are finished; the trace
    appears when it is complete. The numbers of a prompt depend only on its place in the file, the settings and the
    models, so a resumed measurement equals an uninterrupted one. `batch` prompts are sampled together, by default as
    many as memory allows (:func:`~spectheory.measure.run._batch_for`), which changes numbers by rounding alone; a
    resumed run keeps to the `batch` it began with, and `on_remark` takes sentences about it. `runner` decides where the
    work is done. Returns the trace as read back from `out`.
    """
    if batch is not None:
        whole("batch", batch, remedy="use 1 or more")
    job = measurement_of(pair, prompts, settings)
    return run_measurement(job, out, batch=batch, runner=runner, on_progress=on_progress, on_remark=on_remark)


def run_measurement(
    job: Measurement,
    out: Path,
    *,
    batch: int | None = None,
    runner: Runner = here,
    quick: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
    on_remark: Callable[[str], None] | None = None,
    on_stage: Callable[[Trace], None] | None = None,
    on_idle: Callable[[float], None] | None = None,
) -> Trace:
    """:func:`measure` of a job, in stages that each represent the file (:func:`~spectheory.measure.job.stages_of`).

    `on_stage` gets a provisional trace of every stage but the last when it is complete; of the stages that an earlier
    run completed, that of the last. With `quick` the first such trace is returned and nothing more is measured; what is
    finished is kept for a later run. `on_idle` gets the part of the prompts that is finished after each one, while
    nothing else of ours runs; with workers, which go on, it is not called.
    """
    report, remark = on_progress or (lambda _: None), on_remark or (lambda _: None)
    with sole_writer(out):
        if out.exists():
            trace = _finished_trace(out, job.fingerprint)
            with suppress(OSError):
                parts_of(out).unlink()  # left by a stop between writing and removing
            report(Progress(len(job.prompts), len(job.prompts), len(job.prompts)))
            return trace
        with PartStore(out, job.fingerprint) as store:
            fitting = batch or _batch_for(job.pair, job.prompts, job.settings, workers=_workers_of(runner))
            together = _begun(store, fitting, remark)
            idle = on_idle if works_here(runner) else None
            return _Run(job, out, store, runner, report, remark, idle).run(together, batch, quick, on_stage)


def _begun(store: PartStore, batch: int, remark: Callable[[str], None]) -> int:
    """The batch with which a measurement began, if it did, and its threads from now on."""
    batch, threads = store.began(batch, threads_in_use())
    if threads != threads_in_use():
        remark(f"{use_threads(min(threads, _most_threads()))}: so this measurement began")
    return batch


def run_together(
    jobs: Mapping[Path, Measurement],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_remark: Callable[[str], None] | None = None,
    on_idle: Callable[[float], None] | None = None,
) -> list[Trace]:
    """:func:`run_measurement` of jobs that read the same given texts under different sampling, each into its file.

    Both models read each text once for all jobs, here; a job alone gives the same numbers. What is finished is kept
    for each.
    """
    report, remark = on_progress or (lambda _: None), on_remark or (lambda _: None)
    idle, first = on_idle or (lambda _: None), next(iter(jobs.values()))
    with ExitStack() as opened:
        left = {out: job for out, job in jobs.items() if not out.exists()}
        for out in left:
            opened.enter_context(sole_writer(out))
        stores = [opened.enter_context(PartStore(out, job.fingerprint)) for out, job in left.items()]
        for store in stores:
            _begun(store, 1, remark)
        due = [each for each in first.prompts if any(each.place not in store.parts for store in stores)]
        total = len(first.prompts)
        for done, encoded in enumerate(due, total - len(due) + 1):
            assert encoded.given is not None, "texts are given"
            traces = traces_of(first.pair, encoded, [encoded.given], [job.settings for job in left.values()])
            for store, trace in zip(stores, traces, strict=True):
                store.keep(encoded.place, trace)
            report(Progress(done, total, total - len(due)))
            idle(done / total)
    return [run_measurement(job, out) for out, job in jobs.items()]


def check_out(job: Measurement, out: Path) -> None:
    """Refuse a file, or parts of one, that are of another measurement."""
    if out.exists():
        _finished_trace(out, job.fingerprint)
    else:
        PartStore(out, job.fingerprint).check()


@dataclass(frozen=True)
class _Run:
    """A job on its way to a trace; no other run writes its files."""

    job: Measurement
    out: Path
    store: PartStore
    runner: Runner
    report: Callable[[Progress], None]
    remark: Callable[[str], None]
    idle: Callable[[float], None] | None

    def run(self, batch: int, asked: int | None, quick: bool, on_stage: Callable[[Trace], None] | None) -> Trace:
        """Measure what is left and merge all, or with `quick` return the first stage that is complete."""
        stages, shown = stages_of(len(self.job.prompts), batch), None
        with closing(self._finishing(stages, batch, asked)) as states:
            for finished in states:
                reached = _last_complete(stages, finished)
                if reached in (shown, stages[-1]):
                    continue
                shown = reached
                if reached and quick:
                    return self._provisional(reached)
                if reached and on_stage:
                    on_stage(self._provisional(reached))
        trace = self._trace(range(len(self.job.prompts)), {})
        trace.write(self.out)
        self.store.path.unlink()
        return trace

    def _finishing(self, stages: Sequence[_Stage], batch: int, asked: int | None) -> Generator[set[int], None, None]:
        """The places that are finished: at first, and after each prompt."""
        finished, total = set(self.store.parts), len(self.job.prompts)
        resumed = len(finished)
        self.report(Progress(resumed, total, resumed))
        yield finished
        due = self._due(stages, finished)
        if batches := [task.prompts for task in due if isinstance(task, Sample)]:
            for said in _batch_remarks(self.job.pair, batches, self.job.settings.tokens, batch, asked):
                self.remark(said)
        with closing(self.runner(self.job.pair, self.job.settings, due)) as results:
            for task, result in results:
                if isinstance(result, Trace):
                    self.store.keep(task.prompts[0].place, result)
                    finished.add(task.prompts[0].place)
                    self.report(Progress(len(finished), total, resumed))
                    yield finished
                    if self.idle:
                        self.idle(len(finished) / total)
                else:
                    texts = {each.place: texts for each, texts in zip(task.prompts, result, strict=True)}
                    self.store.keep_texts({place: [text.tolist() for text in rows] for place, rows in texts.items()})
                    left = [each for each in task.prompts if each.place not in finished]
                    due.extendleft(reversed(_reads(left, texts)))

    def _due(self, stages: Sequence[_Stage], finished: Container[int]) -> Due:
        """What is left to do: prompts whose texts are known are read, of the others whole batches are sampled.

        A text's last bits depend on the shapes of its passes, so a batch is sampled whole although parts are finished.
        """
        prompts = self.job.prompts
        known = {place: [torch.tensor(text) for text in texts] for place, texts in self.store.texts.items()}
        known |= {each.place: [each.given] for each in prompts if each.given is not None}
        due = Due()
        for places in (places for stage in stages for places in stage.batches):
            batch = tuple(prompts[place] for place in places)
            left = [each for each in batch if each.place not in finished]
            if all(each.place in known for each in left):
                due.extend(_reads(left, known))
            else:
                due.append(Sample(batch))
        return due

    def _provisional(self, stage: _Stage) -> Trace:
        """The trace of a stage and those before it."""
        counts = {"prompts": len(stage.places), "of": len(self.job.prompts)}
        return self._trace(sorted(stage.places), {PROVISIONAL: counts})

    def _trace(self, places: Sequence[int], more: Mapping[str, object]) -> Trace:
        """The trace of the prompts at these places, with the columns that need all texts before."""
        provenance = {**_provenance_of(self.job), "fingerprint": self.job.fingerprint, **more}
        prompts = [self.job.prompts[place].ids for place in places]
        ends = self.job.pair.end_of_text if self.job.settings.stop_at_end else frozenset[int]()
        trace = concatenate(self.store.some(places), provenance)
        ngrams = self.job.settings.ngrams
        removed = removed_from_equal(self.job.pair.target.network, self.job.settings.sampling) if ngrams else ()
        return with_ngrams(trace, ngrams, prompts=prompts, ends=ends, removed=removed)


def _reads(prompts: Iterable[Encoded], texts: Mapping[int, Sequence[Tensor]]) -> list[Read]:
    return [Read(each, tuple(texts[each.place])) for each in prompts]


def _finished_trace(out: Path, fingerprint: str) -> Trace:
    try:
        trace = Trace.read(out)
    except TraceError as error:
        raise TraceError(error.what, limit=error.limit, remedy="choose another --out or remove the file") from error
    if trace.provenance.get("fingerprint") != fingerprint:
        raise TraceError(
            f"{out} is a trace of another measurement",
            limit="only a run with the same models, prompts and settings can resume",
            remedy="choose another --out or remove the file",
        )
    return trace
