"""A measurement as whoever runs it needs it: encoded prompts, what identifies it, what its trace says of it.

Prompts are measured in stages, so that whatever is finished first represents the whole file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from spectheory.errors import TextError
from spectheory.measure.by_start import depth_of
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.texts import Encoded, encode
from spectheory.prompts import Prompt
from spectheory.trace import BY_START, GIVEN_TEXT, MEASURED, SAMPLED_TEXT, SCHEMA_VERSION, SOURCES

_ELSEWHERE = ("chunk", "depth")
"""Settings that decide no number, or that stand elsewhere in the fingerprint: the depth of a head."""
FIRST = 12
"""Prompts of the first stage."""


@dataclass(frozen=True)
class Job:
    """A measurement as whoever runs it needs it: its encoded prompts in the order of the file."""

    pair: ModelPair
    prompts: Sequence[Encoded]
    settings: MeasureSettings
    fingerprint: str


def job_of(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> Job:
    """The measurement as a job: its prompts are encoded, and each is checked to fit the models' window."""
    if not prompts:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt file")
    settings = replace(settings, depth=depth_of(pair.draft, settings.depth))
    encoded = encode(pair, prompts, settings)
    return Job(pair, encoded, settings, _fingerprint(pair, encoded, settings))


def fingerprint_of_run(pair: ModelPair, prompts: Sequence[Prompt], settings: MeasureSettings) -> str:
    """Hash of everything that decides the numbers; devices, versions, `chunk` and batches change only rounding."""
    return job_of(pair, prompts, settings).fingerprint


def _fingerprint(pair: ModelPair, encoded: Sequence[Encoded], settings: MeasureSettings) -> str:
    """The hash; the ids represent the tokenizer and its chat template."""
    content = {
        "schema": SCHEMA_VERSION,
        "vocabulary": pair.vocabulary,
        "columns": sorted(MEASURED),
        "models": [[m.fingerprint, m.dtype] for m in (pair.target, pair.draft)],
        "prompts": _prompts_hash([each.prompt for each in encoded]),
        "ids": [[each.ids.tolist(), None if each.given is None else each.given.tolist()] for each in encoded],
        "ends": sorted(pair.end_of_text),
        "settings": {name: value for name, value in asdict(settings).items() if name not in _ELSEWHERE},
    }
    depth = depth_of(pair.draft, settings.depth)
    if depth is not None:
        content |= {"depth": depth, "by_start": sorted(BY_START)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _prompts_hash(prompts: Sequence[Prompt]) -> str:
    return hashlib.sha256(json.dumps([asdict(prompt) for prompt in prompts]).encode()).hexdigest()


def provenance_of(job: Job) -> dict[str, Any]:
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
class Stage:
    """The places of its own prompts, batch by batch, and `places`, with all those of the stages before."""

    batches: tuple[tuple[int, ...], ...]
    places: frozenset[int]


def stages_of(total: int, batch: int = 1) -> tuple[Stage, ...]:
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
    left, made = list(range(total)), list[Stage]()
    done: frozenset[int] = frozenset()
    while left:
        own = _spread(left, math.ceil(len(done) / batch) * batch if done else FIRST)
        size = math.ceil(len(own) / math.ceil(len(own) / batch))
        done |= set(own)
        left = [place for place in left if place not in done]
        made.append(Stage(tuple(tuple(own[i : i + size]) for i in range(0, len(own), size)), done))
    return tuple(made)


def completed(stages: Sequence[Stage], finished: Collection[int]) -> Stage | None:
    """The last stage of which every prompt is finished, and of those before it."""
    whole = [stage for stage in stages if stage.places <= set(finished)]
    return whole[-1] if whole else None


def _spread(places: Sequence[int], count: int) -> list[int]:
    """So many of the places, one from the middle of each of equal parts."""
    count = min(count, len(places))
    return [places[(2 * i + 1) * len(places) // (2 * count)] for i in range(count)]
