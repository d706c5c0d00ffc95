"""A validation from a loaded pair to its answer, one temperature after the other."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Shape
from spectheory.errors import SettingError, TraceError
from spectheory.files import sole_writer
from spectheory.measure.job import MeasureSettings
from spectheory.measure.latency import differences, measure_latency
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.run import Progress, measure
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.answer import Evidence, answer, answer_at
from spectheory.measure.validation.runs import checked_fingerprint, decoded_rounds, with_plain, write_logs
from spectheory.measure.validation.settings import HeadLimits, Setting, settings_for
from spectheory.prompts import Prompt
from spectheory.verification import SuffixMatch, TokenVerification
from spectheory.verification.suffix import OWN_TEXT


def kept_latencies(
    pair: ModelPair,
    context: int,
    longest: int,
    path: Path,
    *,
    sampling: Sampling,
    on_progress: Callable[[Progress], None],
) -> LatencyTable:
    """The table at `path`, measured if there is none: passes up to `longest` tokens, the loop with this sampling."""
    if not path.exists():
        sizes = [2**i for i in range(longest.bit_length()) if 2**i < longest]
        table = measure_latency(
            pair,
            context=context,
            tokens=(*sizes, longest),
            loop=sampling,
            on_progress=lambda done, total: on_progress(Progress(done, total, 0)),
        )
        table.write(path)
        return table
    table = LatencyTable.read(path)
    other = differences(table, pair, context=context, longest=longest, sampling=sampling)
    if other:
        raise TraceError(
            f"{path} is a latency table of another run ({', '.join(other)})",
            limit="models, machine, threads, context, sampling and shapes must be the same",
            remedy="choose another --out or remove the file",
        )
    return table


def context_of(pair: ModelPair, prompts: Sequence[Prompt], how: MeasureSettings, longest: int) -> int:
    """Tokens in the cache halfway through a text of the mean prompt, reduced so that a call fits the window."""
    lengths = [len(encode_prompt(pair.tokenizer, each, chat_template=how.chat_template)) for each in prompts]
    halfway = round(sum(lengths) / len(lengths)) + how.tokens // 2
    if pair.window is None:
        return halfway
    room = pair.window - longest
    if room < 1:
        raise SettingError(
            f"a call verifies {longest} tokens",
            limit=f"the models' window is {pair.window}, with at least one token before",
            remedy=f"use shapes of {pair.window - 2} nodes at most",
        )
    return min(halfway, room)


Shown = Callable[[str, Progress], None]


@dataclasses.dataclass(frozen=True)
class Validation:
    """What is validated: rules (empty for the usual ones), shapes, temperatures; `how` has everything else.

    `head` limits what a draft head is asked for; :func:`validate` sets it.
    """

    rules: tuple[str, ...]
    shapes: tuple[Shape, ...]
    temperatures: tuple[float, ...]
    how: MeasureSettings
    head: HeadLimits | None = None

    def __post_init__(self) -> None:
        if not self.shapes or not self.temperatures:
            raise SettingError(
                "there is nothing to validate", limit="needs a shape and a temperature", remedy="give both"
            )
        if self.how.given_text:
            raise SettingError(
                "given text is set", limit="decoders generate their own text", remedy="leave it out, or use predict"
            )
        for temperature in self.temperatures:
            self.at(temperature)
            self.settings(temperature)
        names = dict.fromkeys(f"{temperature:g}" for temperature in self.temperatures)
        if len(names) < len(set(self.temperatures)):
            raise SettingError(
                f"temperatures are {', '.join(map(str, self.temperatures))}",
                limit="files are named by six digits, and two temperatures have the same",
                remedy="leave one out",
            )

    def settings(self, temperature: float) -> list[Setting]:
        """The settings at a temperature."""
        return settings_for(self.rules, self.shapes, temperature, self.head)

    def at(self, temperature: float) -> MeasureSettings:
        """How texts are made at a temperature; at 0 one text per prompt, since all would be equal."""
        sampling = dataclasses.replace(self.how.sampling, temperature=temperature)
        count = 1 if temperature == 0 else self.how.count
        suffix = OWN_TEXT if SuffixMatch.name in self.rules else None
        return dataclasses.replace(self.how, sampling=sampling, count=count, suffix=suffix)

    def with_draft(self, draft: Model) -> Validation:
        """The same of this draft: a head is measured as deep as its shapes are."""
        head = HeadLimits.of(draft)
        if head is None:
            return self
        deepest = max(self.shapes, key=lambda shape: shape.depth)
        refused = head.refusal(TokenVerification.name, deepest)
        if refused and not self.rules:  # the usual rules would leave the shape out
            raise refused
        deep = head.within(deepest.depth)
        if self.how.depth is not None and self.how.depth < deep:
            raise SettingError(
                f"--depth is {self.how.depth}", limit=f"a shape is {deep} deep", remedy="leave it out, or cut the shape"
            )
        how = self.how if self.how.depth else dataclasses.replace(self.how, depth=deep)
        return dataclasses.replace(self, head=head, how=how)

    @property
    def longest(self) -> int:
        """Most tokens of a pass: the target's on all nodes, the draft's on a level, a head's on what was accepted."""
        return max(max(shape.nodes, shape.depth, *shape.passes) for shape in self.shapes) + 1


def validate(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    question: Validation,
    out: Path,
    *,
    on_progress: Shown | None = None,
) -> dict[str, Any]:
    """Predict from a trace and a latency table, decode, and report the difference and its causes.

    Finished work is kept in the folder `out`: for each temperature T ``latency-T.json``, ``rounds-T.jsonl``,
    ``trace-T.parquet``, and the call log of each setting in ``calls-T``. At least two prompts are needed. Returns a
    JSON-ready object, described in docs/validating.md.
    `on_progress` gets a title and a :class:`~spectheory.measure.run.Progress`.
    """
    question = question.with_draft(pair.draft)
    for temperature in question.temperatures:  # before anything runs
        checked_fingerprint(pair, prompts, with_plain(question.settings(temperature)), question.at(temperature))
    context = context_of(pair, prompts, question.how, question.longest)
    show = on_progress or (lambda what, state: None)
    with sole_writer(out / "validation.json"):
        records, draft_steps = {}, []
        for temperature in dict.fromkeys(question.temperatures):
            how, settings, at = question.at(temperature), question.settings(temperature), f"{temperature:g}"
            table = kept_latencies(
                pair,
                context,
                question.longest,
                out / f"latency-{at}.json",
                sampling=how.sampling,
                on_progress=partial(show, f"measuring latencies at {at}"),
            )
            draft_steps.append(table.ratio)
            rounds = decoded_rounds(
                pair, prompts, settings, how, out / f"rounds-{at}.jsonl", on_progress=partial(show, f"decoding at {at}")
            )
            trace = measure(
                pair, prompts, how, out / f"trace-{at}.parquet", on_progress=partial(show, f"measuring at {at}")
            )
            write_logs(pair, prompts, settings, how, rounds, out / f"calls-{at}")
            names = tuple(prompt.id for prompt in prompts)
            records[temperature] = answer_at(Evidence(tuple(settings), names, rounds, trace, table))
    asked = dataclasses.asdict(question.how)
    del asked["sampling"]["temperature"]  # there are several
    provenance = {
        **pair.describe(),
        "settings": asked,
        "prompts": len(prompts),
        "hardware": hardware(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "context": context,
        "draft_step": statistics.fmean(draft_steps),
    }
    return answer(records, provenance, () if question.head is None else question.head.left_out(question.rules))
