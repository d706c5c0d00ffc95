"""Measure a pair on prompts: sample or take the texts, read them with both models, keep what is finished."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.drafting import Grown
from spectheory.errors import SettingError, TextError, TraceError
from spectheory.files import held
from spectheory.measure.by_start import check_prompt, depth_of
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.machine import hardware, versions
from spectheory.measure.noise import text_key
from spectheory.measure.pair import ModelPair
from spectheory.measure.sampling import sample_continuations
from spectheory.measure.suffix import with_suffix
from spectheory.measure.tokens import check_window, encode_output, encode_prompt
from spectheory.prompts import Prompt
from spectheory.trace import BY_START, GIVEN_TEXT, MEASURED, SAMPLED_TEXT, SOURCES, TextInfo, Trace
from spectheory.trace.parts import PartStore, concatenate
from spectheory.verification import SuffixDrafts

_ROWS = 1
"""Version of the columns by position, for the fingerprint: runs of the first schema of traces can go on."""

_ADDED = ("grown", "suffix")
"""Settings that the fingerprint has where they are used: runs of earlier versions can go on."""


@dataclass(frozen=True)
class MeasureSettings:
    """What is measured; equal settings, prompts and models give the same trace.

    `count` texts are sampled per prompt. With `given_text` the `output` of each prompt is measured instead. `race` says
    whether to compute the expensive columns: the race's, those of distinct candidates and of biased rules. Each prompt
    has its own random stream, and each text its own key for estimated columns. `depth` is that of a draft head, which
    is measured at every start (§10); None: as many drafts as it was trained for. `grown` is the size of the trees that
    the draft grows at every start, as 16x4x5; None: none. `suffix` says what suffix decoding drafts, for its columns;
    texts are served in the order of the file.

    Examples
    --------
    >>> MeasureSettings(tokens=64, count=2).sampling.temperature
    1.0
    """

    sampling: Sampling = field(default_factory=Sampling)
    tokens: int = 128
    count: int = 1
    seed: int = 0
    given_text: bool = False
    stop_at_end: bool = True
    chat_template: bool = False
    chunk: int = 256
    race: bool = True
    depth: int | None = None
    grown: str | None = None
    suffix: SuffixDrafts | None = None

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("count", 1), ("seed", 0), ("chunk", 1)):
            whole(name, getattr(self, name), least=least, remedy=f"use {least} or more")
        if self.grown is not None:
            Grown.sized_as(self.grown)
        if self.given_text and self.count != 1:
            raise SettingError(
                f"count is {self.count}", limit="a prompt has one given text", remedy="leave out the count"
            )


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
    on_progress: Callable[[Progress], None] | None = None,
) -> Trace:
    """Measure a pair and write the trace to `out`; a run that was stopped at any moment resumes where it stopped.

    The texts of each prompt become a file next to `out` when they are finished; the trace appears when it is complete.
    The numbers of a prompt depend only on its place in the file, the settings and the models, so a resumed measurement
    equals an uninterrupted one. Returns the trace as read back from `out`.
    """
    report = on_progress or (lambda _: None)
    settings = replace(settings, depth=depth_of(pair.draft, settings.depth))
    store = PartStore(out, fingerprint_of_run(pair, prompts, settings))
    with held(out):
        return _measured(pair, prompts, settings, store, report)


def _measured(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: MeasureSettings,
    store: PartStore,
    report: Callable[[Progress], None],
) -> Trace:
    """The trace; no other run writes its files."""
    total = len(prompts)
    if store.final.exists():
        trace = _finished_trace(store.final, store.fingerprint)
        shutil.rmtree(store.folder, ignore_errors=True)  # left by a stop between writing and removing
        report(Progress(total, total, total))
        return trace
    texts = [_encode(pair, prompt, settings) for prompt in prompts]
    finished = store.finished()
    done = resumed = len(finished)
    report(Progress(done, total, resumed))
    for index, (prompt, (prompt_ids, given)) in enumerate(zip(prompts, texts, strict=True)):
        if index in finished:
            continue
        store.add(index, _part(pair, prompt, prompt_ids, given, settings, index))
        done += 1
        report(Progress(done, total, resumed))
    ends = pair.end_of_text if settings.stop_at_end else frozenset[int]()
    more = partial(with_suffix, prompts=[ids for ids, _ in texts], drafts=settings.suffix, ends=ends)
    return store.merge(_provenance(pair, prompts, settings), more)


def _encode(pair: ModelPair, prompt: Prompt, settings: MeasureSettings) -> tuple[Tensor, Tensor | None]:
    """Token ids of a prompt and of its given text, checked before the first model runs."""
    prompt_ids = encode_prompt(pair.tokenizer, prompt, chat_template=settings.chat_template)
    given = encode_output(pair.tokenizer, prompt)[: settings.tokens] if settings.given_text else None
    check_prompt(pair.draft, prompt.id, len(prompt_ids))
    beyond = Grown.sized_as(settings.grown).depth if settings.grown else 0
    output = settings.tokens if given is None else len(given)
    check_window(prompt.id, len(prompt_ids), output, pair.window, beyond=beyond)
    return prompt_ids, given


def _part(
    pair: ModelPair, prompt: Prompt, prompt_ids: Tensor, given: Tensor | None, settings: MeasureSettings, index: int
) -> Trace:
    """The trace of one prompt's texts."""
    if given is None:
        texts = sample_continuations(
            pair,
            prompt_ids,
            settings.sampling,
            tokens=settings.tokens,
            count=settings.count,
            rng=np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(index,))),
            stop_at_end=settings.stop_at_end,
            chunk=settings.chunk,
        )
    else:
        texts = [given]
    traces = []
    for j, text in enumerate(texts):
        name = prompt.id if len(texts) == 1 else f"{prompt.id}#{j + 1}"
        columns = teacher_forced(
            pair,
            prompt_ids,
            text,
            settings.sampling,
            chunk=settings.chunk,
            race=settings.race,
            sampled=given is None,
            stop_at_end=settings.stop_at_end,
            key=text_key(settings.seed, index, j),
            name=name,
            depth=settings.depth,
        )
        if settings.grown is not None:
            shape = Grown.sized_as(settings.grown)
            columns |= grown_columns(pair, prompt_ids, text, shape, chunk=settings.chunk, name=name)
        ended = settings.stop_at_end and int(text[-1]) in pair.end_of_text
        info = TextInfo(name, len(text), prompt.id, prompt.category, ended, len(prompt_ids))
        traces.append(Trace(columns, (info,)))
    return concatenate(traces, {})


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


def fingerprint_of_run(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> str:
    """Hash of everything that decides the numbers; device, library versions and `chunk` change only rounding."""
    if not prompts:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt file")
    # The token ids represent the tokenizer and its chat template.
    encoded = [_encode(pair, prompt, settings) for prompt in prompts]
    content = {
        "schema": _ROWS,
        "columns": sorted(MEASURED),
        "models": [[m.fingerprint, m.dtype] for m in (pair.target, pair.draft)],
        "prompts": _prompts_hash(prompts),
        "ids": [[ids.tolist(), None if given is None else given.tolist()] for ids, given in encoded],
        "ends": sorted(pair.end_of_text),
        "settings": {name: value for name, value in asdict(settings).items() if name not in _without(settings)},
    }
    depth = depth_of(pair.draft, settings.depth)
    if depth is not None:
        content |= {"depth": depth, "by_start": sorted(BY_START)}
    if pair.vocabulary < min(pair.target.outputs, pair.draft.outputs):  # earlier versions decoded padding too
        content["vocabulary"] = pair.vocabulary
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _without(settings: MeasureSettings) -> tuple[str, ...]:
    """Settings that decide no number, or that stand elsewhere: the depth of a head."""
    unset = [name for name in _ADDED if getattr(settings, name) is None]
    return ("chunk", "depth", *unset)


def _prompts_hash(prompts: Sequence[Prompt]) -> str:
    return hashlib.sha256(json.dumps([asdict(prompt) for prompt in prompts]).encode()).hexdigest()


def _provenance(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> dict[str, Any]:
    return {
        **pair.describe(),
        SOURCES: {"target": pair.target.source, "draft": pair.draft.source},
        "settings": asdict(settings),
        "origin": GIVEN_TEXT if settings.given_text else SAMPLED_TEXT,
        "prompts": {"count": len(prompts), "sha256": _prompts_hash(prompts)},
        "versions": versions(),
        "hardware": hardware(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
