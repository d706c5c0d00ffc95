"""``spectheory measure``, and what ``predict`` measures where no trace is given, with its provisional answer."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from spectheory.checks import in_range
from spectheory.cli.console import answers, ready_folder, remark, remarks
from spectheory.cli.inputs import read_latencies, remark_slower
from spectheory.cli.loading import _runner_of, earlier_threads, load_named, settings_of
from spectheory.cli.options import (
    LATENCY_FILE,
    MOST_TEXTS,
    MeasureOptions,
    MeasuringOptions,
    PairOptions,
    PredictOptions,
    SweptText,
    TextOptions,
)
from spectheory.cli.progress import Bar, progress, working
from spectheory.cost import ConstantRatio, CostModel, LatencyTable
from spectheory.drafting import Chain
from spectheory.errors import SettingError
from spectheory.files import cache_folder, sole_writer
from spectheory.intervals import Interval
from spectheory.measure import (
    AssistedComparison,
    MeasureSettings,
    ModelPair,
    Progress,
    Timing,
    compare_with_assisted,
    differences,
)
from spectheory.measure.assistants import drafts_of_head
from spectheory.measure.job import Measurement, measurement_of, stages_of
from spectheory.measure.latency import kept_beside
from spectheory.measure.machine import threads_in_use, use_threads
from spectheory.measure.rounds import Budget
from spectheory.measure.routing import routing_of_trace
from spectheory.measure.run import check_out, run_measurement, run_together
from spectheory.measure.runners import Runner, here, works_here
from spectheory.pairs import PROMPTS
from spectheory.plots.measured import write_measured
from spectheory.prompts import Prompt, read_prompts
from spectheory.reports import Report
from spectheory.reports.notes import timing_notes
from spectheory.reports.optional_tables import settings_table
from spectheory.reports.table import for_terminal
from spectheory.trace import TRACE_FILE, Trace
from spectheory.verification.by_start import deepest

Brief = Callable[[Trace, float | None], Report]
"""A short answer from a provisional trace, with the seconds that the rest takes, if they are known."""


class _Pace:
    """How long the prompts that are left will take, if they take as long as those measured so far."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._state: Progress | None = None

    def at(self, state: Progress) -> None:
        """Note how far the measurement is."""
        self._state = state

    @property
    def left(self) -> float | None:
        """Seconds; None before a prompt was measured here."""
        state = self._state
        if state is None or state.done == state.resumed:
            return None
        return (time.monotonic() - self._began) / (state.done - state.resumed) * (state.total - state.done)


def _show_briefly(bar: Bar, pace: _Pace, brief: Brief) -> Callable[[Trace], None]:
    """What shows the short answer of each stage; without a terminal that of the first stage alone."""
    done = False

    def show(trace: Trace) -> None:
        nonlocal done
        if remarks.is_terminal:
            bar.put(Group(*_lines(brief(trace, pace.left))))
        elif not done:
            for line in _lines(brief(trace, pace.left)):
                remarks.print(line)
        done = True

    return show


def _lines(report: Report) -> list[RenderableType]:
    """Headline, tables and notes; what is shown in place is wrapped here, since the bar cuts long lines."""
    wrapped = partial(Text, no_wrap=False, overflow="fold") if remarks.is_terminal else Text
    notes = [wrapped(note, style="dim") for note in report.notes]
    return [wrapped(report.headline, style="bold"), *map(for_terminal, report.pieces), *notes]


LONGEST_CALL = 64
ROUTING_FILE = "routing.npz"


def _measured_as(text: TextOptions) -> MeasureSettings:
    """What the options say of the text."""
    return settings_of(
        text,
        text.temperature,
        count=1 if text.given_text else text.continuations,
        given_text=text.given_text,
        ngrams=tuple(text.ngram or ()),
        better_drafts=text.better_drafts,
    )


CHECK_TOKENS, PLAIN_EVERY = 80, 3
"""Of the check: tokens of a text, and every how many prompts one is also decoded plainly, for the measured speed-up."""


def run_measure(question: MeasureOptions, pair: PairOptions, text: SweptText, how: MeasuringOptions) -> None:
    """Measure a pair into a folder, or one for each setting of sampling, and say in short what was found.

    Settings share the loaded models, and the passes over given texts. Texts that are sampled are draws of different
    pmfs, so that no pass over them is shared; the decoding loop is timed as each setting samples.
    """
    texts, out = text.each, ready_folder(question.out)
    first = Session.load(pair, next(iter(texts.values())), how)
    if len(texts) == 1:
        _say(*_measured(first, out), out)
        _record_experts(question, first, {out: first})
        return
    sessions = {out / name: replace(first, settings=_measured_as(each)) for name, each in texts.items()}
    for folder, session in sessions.items():
        check_out(session.job, ready_folder(folder) / TRACE_FILE)
    together = text.given_text and works_here(first.runner)
    shared = dict(zip(sessions, _measured_together(sessions), strict=True)) if together else {}
    measured = {}
    for folder, session in sessions.items():
        answers.print(f"{folder.name}:", highlight=False)
        measured[folder.name] = shared.get(folder) or _measured(session, folder)
        _say(*measured[folder.name], folder)
    _record_experts(question, first, sessions)
    answers.print(for_terminal(settings_table(measured)), highlight=False)
    whose = "the same texts" if text.given_text else "its own texts"
    remarks.print(f"each setting has {whose} and its own latencies: differences of speed-ups hold both errors")


def _measured(session: Session, out: Path) -> tuple[Trace, LatencyTable]:
    """Measure one setting of sampling into a folder."""
    with session.timing(out / LATENCY_FILE, longest=LONGEST_CALL) as known:
        trace = session.trace(out / TRACE_FILE, on_idle=known.reach)
    return trace, LatencyTable.read(out / LATENCY_FILE)


def _measured_together(sessions: Mapping[Path, Session]) -> list[tuple[Trace, LatencyTable]]:
    """Measure settings that read the same given texts, each into its folder, by one pass over each text."""
    jobs = {out / TRACE_FILE: session.job for out, session in sessions.items()}

    def reach_all(share: float) -> None:
        for known in timings:
            known.reach(share)

    with ExitStack() as opened:
        timings = [
            opened.enter_context(session.timing(out / LATENCY_FILE, longest=LONGEST_CALL))
            for out, session in sessions.items()
        ]
        bar = opened.enter_context(progress())
        task = bar.add_task(f"measuring prompts at {len(jobs)} settings")
        traces = run_together(
            jobs,
            on_progress=lambda state: bar.update(task, completed=state.done, total=state.total),
            on_remark=remark,
            on_idle=reach_all,
        )
    return [(trace, LatencyTable.read(out / LATENCY_FILE)) for trace, out in zip(traces, sessions, strict=True)]


def _record_experts(question: MeasureOptions, first: Session, sessions: Mapping[Path, Session]) -> None:
    """Write the routing log of each setting's texts, if it is asked for."""
    if not question.experts:
        return
    prompts = {each.prompt.id: each.ids for each in first.job.prompts}
    for folder in sessions:
        trace = Trace.read(folder / TRACE_FILE)
        with progress() as bar:
            task = bar.add_task("recording experts", total=len(trace.texts))
            log = routing_of_trace(first.pair.target, trace, prompts, partial(bar.update, task, advance=1))
        log.write(folder / ROUTING_FILE)
        two = log.distinct(min(2, log.longest))
        answers.print(f"{log.chosen} of {log.experts} experts for a token; 2 consecutive ones touch {two:.2f} (mean)")
        answers.print(f"written: {folder / ROUTING_FILE}", highlight=False, markup=False)


def _say(trace: Trace, table: LatencyTable, out: Path) -> None:
    """What was measured, in short, and where it is written."""
    answers.print(
        f"{len(trace)} positions in {len(trace.texts)} texts; {_acceptance(trace)}; "
        f"target entropy {trace.columns['target_entropy'].mean():.3f} nats; draft step / target step {table.ratio:.3f}",
        highlight=False,
    )
    for note in timing_notes(table):
        remark(note)
    written = [out / TRACE_FILE, out / LATENCY_FILE, *write_measured(trace, table, out)]
    answers.print(f"written: {', '.join(map(str, written))}", highlight=False, markup=False)


def _acceptance(trace: Trace) -> str:
    """The mean acceptance rate 1 - TV; of a draft head that of each depth, over the calls that it lies in the text."""
    depth = deepest(trace.columns)
    if depth is None:
        return f"acceptance rate 1 - TV {1 - trace.columns['total_variation'].mean():.3f}"
    left = np.concatenate([np.arange(n, 0, -1) for n in trace.lengths])
    deep = trace.columns["start_total_variation"]
    rates = [f"{1 - deep[left > i, i].mean():.3f}" for i in range(depth) if (left > i).any()]
    return f"measured by start to depth {depth}; acceptance rate 1 - TV by depth {', '.join(rates)}"


@dataclass(frozen=True)
class _Costs:
    """Costs that may still be measured: `reach` measures what is due at a part of the other work, `now` has them."""

    reach: Callable[[float], None]
    now: Callable[[], CostModel]

    @classmethod
    def known(cls, cost: CostModel) -> _Costs:
        """Costs that are known already."""
        return cls(lambda part: None, lambda: cost)


@dataclass(frozen=True)
class Session:
    """A loaded pair with its prompts and settings."""

    pair: ModelPair
    prompts: tuple[Prompt, ...]
    settings: MeasureSettings
    how: MeasuringOptions
    budget: Budget
    threads: int | None = None
    """Torch's threads if they were asked for."""
    runner: Runner = here
    """Who reads the prompts."""

    @classmethod
    def load(cls, pair: PairOptions, text: TextOptions, how: MeasuringOptions) -> Session:
        """Check the settings and prompts first, then load the models."""
        in_range("--continuations", text.continuations, MOST_TEXTS)
        in_range("--batch", how.batch, MOST_TEXTS)
        budget = Budget(how.latency_width, how.latency_seconds)
        settings = _measured_as(text)
        prompts = read_prompts(text.prompts or PROMPTS)
        runner = _runner_of(how, pair, len(prompts))
        return cls(load_named(pair, text.depth), prompts, settings, how, budget, pair.threads, runner)

    @cached_property
    def job(self) -> Measurement:
        """The measurement, its prompts encoded and checked."""
        return measurement_of(self.pair, self.prompts, self.settings)

    def require_room(self, longest: int) -> None:
        """Check that a call of `longest` tokens fits the models' window, before anything is measured."""
        if self.pair.window is not None and longest >= self.pair.window:
            raise SettingError(
                f"a call verifies {longest} tokens",
                limit=f"the models' window is {self.pair.window}, with at least one token before",
                remedy=f"use --k-max {self.pair.window - 2} or less",
            )

    def context(self, longest: int) -> int:
        """Tokens in the cache halfway through a typical text, as far as the window lets the longest call follow."""
        lengths = [len(self.pair.tokenizer(prompt.text).input_ids) for prompt in self.prompts]
        halfway = int(statistics.median(lengths)) + self.settings.tokens // 2
        room = halfway if self.pair.window is None else self.pair.window - longest
        return max(1, min(halfway, room))

    def trace(
        self,
        path: Path,
        *,
        quick: bool = False,
        brief: Brief | None = None,
        on_idle: Callable[[float], None] | None = None,
    ) -> Trace:
        """Measure, or go on with what an earlier run left; `brief` says in short what follows from the first stages.

        `on_idle` is that of :func:`~spectheory.measure.run.run_measurement`.
        """
        with progress() as bar:
            task = bar.add_task("measuring prompts", total=len(self.prompts))
            pace = _Pace()

            def show(state: Progress) -> None:
                pace.at(state)
                bar.update(task, completed=state.done, total=state.total)
                if 0 < state.resumed == state.done:
                    bar.console.print(f"resumed: {state.resumed} of {state.total} prompts were finished before")

            def idle(share: float) -> None:
                bar.update(task, description="measuring latencies between prompts")
                if on_idle:
                    on_idle(share)
                bar.update(task, description="measuring prompts")

            return run_measurement(
                self.job,
                path,
                batch=self.how.batch,
                runner=self.runner,
                quick=quick,
                on_progress=show,
                on_remark=remark,
                on_stage=_show_briefly(bar, pace, brief) if brief else None,
                on_idle=idle if on_idle else None,
            )

    @contextmanager
    def timing(self, path: Path, *, longest: int) -> Iterator[_Costs]:
        """The latencies at `path`, measured if there are none of this pair, machine and context.

        Groups of rounds are measured before the block, wherever it calls ``reach``, and after it.
        """
        with sole_writer(path):
            if (table := self._kept(path, longest)) is not None:
                yield _Costs.known(table)
                return
            sizes = sorted({2**i for i in range(int(math.log2(longest)) + 1)} | {longest})
            settings = self.settings
            timing = Timing(
                self.pair,
                self.context(longest),
                tuple(sizes),
                budget=self.budget,
                loop=settings.sampling,
                seed=settings.seed,
            )
            with kept_beside(path, timing):
                with working("measuring latencies"):
                    timing.reach(0.0 if works_here(self.runner) else 0.5)  # no worker lets it measure meanwhile
                yield _Costs(timing.reach, lambda: timing.table)
                with working("measuring latencies"):
                    timing.reach(1.0)
        remark_slower(timing.table, str(path))
        for name in timing.table.provenance["read_again"]:
            remark(f"{name} has no cache that can be cut back: every pass reads its text again")

    def _kept(self, path: Path, longest: int) -> LatencyTable | None:
        """The table at `path`; None if there is none, or one of another run."""
        if not path.exists():
            return None
        table = LatencyTable.read(path)
        before = earlier_threads([table])
        if self.threads is None and before not in (None, threads_in_use()):
            with suppress(SettingError):  # there are not so many cores now
                remarks.print(f"{use_threads(before)}: so it did before")
        other = differences(
            table,
            self.pair,
            context=self.context(longest),
            longest=longest,
            sampling=self.settings.sampling,
            budget=self.budget,
        )
        if other:
            remark(f"{path} is of another run ({', '.join(other)}): measuring again")
            return None
        remark(f"latencies were measured before: remove {path} to measure them again")
        return table

    @property
    def checked(self) -> tuple[int, ...]:
        """Drafts per call of the check, as transformers chooses them for a head; refuses one that it does not run."""
        drafts = drafts_of_head(self.pair)
        return CHECKED_K if drafts is None else (drafts,)

    def check(self, cost: CostModel | None) -> list[dict[str, Any]]:
        """Predicted against counted calls of transformers' assisted generation, on prompts spread over the file."""
        with progress() as bar:
            task = bar.add_task("last step: checking against assisted generation")
            first = sorted(stages_of(len(self.prompts))[0].places)
            records = compare_with_assisted(
                self.pair,
                [self.prompts[place] for place in first],
                self.settings.sampling,
                ks=self.checked,
                tokens=min(CHECK_TOKENS, self.settings.tokens),
                seed=self.settings.seed,
                chat_template=self.settings.chat_template,
                plain_every=PLAIN_EVERY,
                on_progress=lambda done, total: bar.update(task, completed=done, total=total),
            )
        return [_as_dict(record, cost) for record in records]


def _as_dict(record: AssistedComparison, cost: CostModel | None) -> dict[str, Any]:
    """A record with its difference in standard errors, and the speed-up measured and predicted."""
    per_call = Interval.exact(record.tokens / record.low)
    expected = cost.speedup(per_call, Chain(record.k), record.full_share).best if cost else None
    # Nothing random and yet a difference: infinitely many standard errors, which JSON cannot say.
    z = record.z if math.isfinite(record.z) else None
    same = ("full_share", "assisted_seconds", "plain_seconds", "plain_tokens", "p", "variance_slope")
    return {
        **{name: getattr(record, name) for name in ("k", "tokens", "counted")},
        "predicted": record.low,
        "standard_error": record.deviation,
        **{name: getattr(record, name) for name in same},
        "z": z,
        "measured_speedup": record.speedup,
        "predicted_speedup": expected,
    }


CHECKED_K = (1, 3, 5)
"""Drafts per call of the check."""


def opened(
    question: PredictOptions, pair: PairOptions, text: TextOptions, how: MeasuringOptions
) -> tuple[Session, Path]:
    """The loaded pair and the folder of its measurement; whatever can be refused is refused here."""
    session = Session.load(pair, text, how)
    session.require_room(_longest_call(question, session))
    folder = ready_folder(question.out or cache_folder() / session.job.fingerprint)
    check_out(session.job, folder / TRACE_FILE)
    return session, folder


@contextmanager
def costs(question: PredictOptions, session: Session, folder: Path) -> Iterator[_Costs]:
    """What was given, or latencies that are measured before, between and after the prompts."""
    if question.c is not None:
        yield _Costs.known(ConstantRatio(question.c))
    elif question.latency:
        yield _Costs.known(read_latencies(question.latency, session.pair.describe()))
    else:
        with session.timing(folder / LATENCY_FILE, longest=_longest_call(question, session)) as times:
            yield times


def _longest_call(question: PredictOptions, session: Session) -> int:
    """Tokens of the longest call that is predicted or checked."""
    return max([question.k_max, *(session.checked if question.check else ())]) + 1
