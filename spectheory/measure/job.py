"""A measurement as whoever runs it needs it: settings, encoded prompts, what identifies it, what its trace says of it.

Prompts are measured in stages, so that whatever is finished first represents the whole file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from torch import Tensor

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.drafting import Grown
from spectheory.errors import SettingError, TextError, argument
from spectheory.measure.columns.noise import text_key
from spectheory.measure.forward import Statistics, check_prompt, depth_of, read_text
from spectheory.measure.grown import grown_columns
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.sampling import sample_together
from spectheory.measure.tokens import _encode_output, check_window, encode_prompt
from spectheory.ngrams import read_ngrams
from spectheory.prompts import Prompt
from spectheory.trace import BY_START, GIVEN_TEXT, MEASURED, SAMPLED_TEXT, SCHEMA_VERSION, SOURCES, TextInfo, Trace
from spectheory.trace.columns import BETTER
from spectheory.trace.parts import concatenate


@dataclass(frozen=True)
class MeasureSettings:
    """What is measured; equal settings, prompts and models give the same trace.

    `count` texts are sampled per prompt. With `given_text` the `output` of each prompt is measured instead. `race` says
    whether to compute the expensive columns: the race's, those of distinct candidates and of biased rules. Each prompt
    has its own random stream, and each text its own key for estimated columns. `depth` is that of a draft head, which
    is measured at every start (§10); None: as many drafts as it was trained for. `grown` is the size of the trees that
    the draft grows at every start, as 16x4x5; None: none. `ngrams` are n-gram drafts of engines (as
    ``spectheory.ngrams.read_ngrams`` takes them); texts are served in the order of the file. `better_drafts` says
    whether to record what the geometric path of a better draft reads
    (:mod:`spectheory.prediction.what_if_answer`), which no head has.

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
    ngrams: tuple[str, ...] = ()
    better_drafts: bool = False

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("count", 1), ("seed", 0), ("chunk", 1)):
            whole(name, getattr(self, name), least=least, remedy=f"use {least} or more")
        object.__setattr__(self, "ngrams", tuple(str(draft) for draft in read_ngrams(self.ngrams)))
        if self.grown is not None:
            Grown.sized_as(self.grown)
        if self.given_text and self.count != 1:
            raise SettingError(
                f"count is {self.count}", limit="a prompt has one given text", remedy="leave out the count"
            )


@dataclass(frozen=True)
class Encoded:
    """A prompt at its `place` in the file, with its token ids ``[n]`` and those of its given text, if it has one."""

    place: int
    prompt: Prompt
    ids: Tensor
    given: Tensor | None


def encode(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> list[Encoded]:
    """The prompts in token ids, checked before the first model runs."""
    encoded = []
    for place, prompt in enumerate(prompts):
        ids = encode_prompt(pair.tokenizer, prompt, chat_template=settings.chat_template)
        given = _encode_output(pair.tokenizer, prompt)[: settings.tokens] if settings.given_text else None
        check_prompt(pair.draft, prompt.id, len(ids))
        beyond = Grown.sized_as(settings.grown).depth if settings.grown else 0
        output = settings.tokens if given is None else len(given)
        check_window(prompt.id, len(ids), output, pair.window, beyond=beyond)
        encoded.append(Encoded(place, prompt, ids, given))
    return encoded


def texts_of(
    pair: ModelPair,
    batch: Sequence[Encoded],
    settings: MeasureSettings,
    *,
    remark: Callable[[str], None] | None = None,
) -> list[list[Tensor]]:
    """The texts of each prompt of a batch: given, or sampled from the target, each prompt with its own randomness.

    The same batch gives the same texts, bit for bit; another batch changes them by rounding alone. `remark` is that of
    :func:`~spectheory.measure.sampling.sample_together`.
    """
    if settings.given_text:
        return [[each.given] for each in batch if each.given is not None]
    return sample_together(
        pair,
        [each.ids for each in batch],
        settings.sampling,
        tokens=settings.tokens,
        count=settings.count,
        rngs=[np.random.default_rng(np.random.SeedSequence(settings.seed, spawn_key=(each.place,))) for each in batch],
        stop_at_end=settings.stop_at_end,
        chunk=settings.chunk,
        remark=remark,
    )


def traces_of(
    pair: ModelPair, encoded: Encoded, texts: Sequence[Tensor], settings: Sequence[MeasureSettings]
) -> list[Trace]:
    """The traces of one prompt's texts under settings that differ in sampling alone; each text is read once."""
    first, prompt = settings[0], encoded.prompt
    traces: list[list[Trace]] = [[] for _ in settings]
    for j, text in enumerate(texts):
        name = prompt.id if len(texts) == 1 else f"{prompt.id}#{j + 1}"
        same = first.race, encoded.given is None, text_key(first.seed, encoded.place, j), name, first.better_drafts
        columns = read_text(
            pair,
            encoded.ids,
            text,
            [Statistics(each.sampling, *same) for each in settings],
            chunk=first.chunk,
            stop_at_end=first.stop_at_end,
            depth=first.depth,
        )
        grown = {}
        if first.grown is not None:
            grown = grown_columns(pair, encoded.ids, text, Grown.sized_as(first.grown), chunk=first.chunk, name=name)
        ended = first.stop_at_end and int(text[-1]) in pair.end_of_text
        info = TextInfo(name, len(text), prompt.id, prompt.category, ended, len(encoded.ids))
        for parts, each in zip(traces, columns, strict=True):
            parts.append(Trace(each | grown, (info,)))
    return [concatenate(parts, {}) for parts in traces]


_ELSEWHERE = ("chunk", "depth", "ngrams", "better_drafts")
"""Settings that decide no number, or that stand elsewhere in the fingerprint: the depth of a head, further columns."""
FIRST = 12
"""Prompts of the first stage."""


@dataclass(frozen=True)
class Measurement:
    """A measurement as whoever runs it needs it: its encoded prompts in the order of the file."""

    pair: ModelPair
    prompts: Sequence[Encoded]
    settings: MeasureSettings
    fingerprint: str


def measurement_of(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> Measurement:
    """The measurement as a job: its prompts are encoded, and each is checked to fit the models' window."""
    if not prompts:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt file")
    settings = replace(settings, depth=depth_of(pair.draft, settings.depth))
    if settings.better_drafts and settings.depth is not None:
        raise SettingError(
            f"{argument('better_drafts', '--better-drafts')} is given for the head {pair.draft.name!r}",
            limit="its columns are by position, and a head drafts by start",
            remedy="leave it out: the mixed path needs none",
        )
    if settings.grown is not None and pair.draft.common:
        raise SettingError(
            f"--grow is {settings.grown} for the draft {pair.draft.name!r}, which has another tokenizer",
            limit="trees grow from drafts in the target's own ids",
            remedy="leave it out",
        )
    encoded = encode(pair, prompts, settings)
    return Measurement(pair, encoded, settings, _fingerprint(pair, encoded, settings))


def fingerprint_of_run(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> str:
    """Hash of everything that decides the numbers; devices, versions, `chunk` and batches change only rounding."""
    return measurement_of(pair, prompts, settings).fingerprint


def _fingerprint(pair: ModelPair, encoded: Sequence[Encoded], settings: MeasureSettings) -> str:
    """The hash; the ids represent the tokenizer and its chat template."""
    content = {
        "schema": SCHEMA_VERSION,
        "vocabulary": pair.vocabulary,
        "columns": sorted(MEASURED + BETTER * settings.better_drafts),
        "models": [[m.fingerprint, m.dtype] for m in (pair.target, pair.draft)],
        "prompts": _prompts_hash([each.prompt for each in encoded]),
        "ids": [[each.ids.tolist(), None if each.given is None else each.given.tolist()] for each in encoded],
        "ends": sorted(pair.end_of_text),
        "settings": {name: value for name, value in asdict(settings).items() if name not in _ELSEWHERE},
    }
    if settings.ngrams:
        content["ngrams"] = settings.ngrams
    if common := pair.draft.common:
        content["common"] = [common.outside, common.unknown, common.to_draft.tolist()]
        content["read"] = [common.of_prompt(each.ids.tolist()) for each in encoded]
    depth = depth_of(pair.draft, settings.depth)
    if depth is not None:
        content |= {"depth": depth, "by_start": sorted(BY_START)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _prompts_hash(prompts: Sequence[Prompt]) -> str:
    return hashlib.sha256(json.dumps([asdict(prompt) for prompt in prompts]).encode()).hexdigest()


def _provenance_of(job: Measurement) -> dict[str, Any]:
    """What the trace of a job says of its origin."""
    pair, settings, prompts = job.pair, job.settings, [each.prompt for each in job.prompts]
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


@dataclass(frozen=True)
class _Stage:
    """The places of its own prompts, batch by batch, and `places`, with all those of the stages before."""

    batches: tuple[tuple[int, ...], ...]
    places: frozenset[int]


def stages_of(total: int, batch: int = 1) -> tuple[_Stage, ...]:
    """The stages of a file of `total` prompts that are sampled at most `batch` at a time.

    The first has :data:`FIRST` prompts; each further one as many as all before it, rounded up to whole batches. The
    prompts of a stage are spread evenly over those that are left. Its batches are as few as can be, of about equal
    size, and each of neighbours. Places and batches follow from the two numbers alone.

    Examples
    --------
    >>> [len(stage.places) for stage in stages_of(60, batch=8)]
    [12, 28, 60]
    >>> [list(map(len, stage.batches)) for stage in stages_of(60, batch=8)]
    [[6, 6], [8, 8], [8, 8, 8, 8]]
    >>> stages_of(48, batch=16)[0].batches
    ((2, 6, 10, 14, 18, 22, 26, 30, 34, 38, 42, 46),)
    """
    left, made = list(range(total)), list[_Stage]()
    done: frozenset[int] = frozenset()
    while left:
        count = min(math.ceil(len(done) / batch) * batch if done else FIRST, len(left))
        # The middle of each of equal parts.
        stage = [left[(2 * i + 1) * len(left) // (2 * count)] for i in range(count)]
        size = math.ceil(len(stage) / math.ceil(len(stage) / batch))
        done |= set(stage)
        left = [place for place in left if place not in done]
        made.append(_Stage(tuple(tuple(stage[i : i + size]) for i in range(0, len(stage), size)), done))
    return tuple(made)


def _last_complete(stages: Sequence[_Stage], finished: Collection[int]) -> _Stage | None:
    """The last stage of which every prompt is finished, and of those before it."""
    whole = [stage for stage in stages if stage.places <= set(finished)]
    return whole[-1] if whole else None
