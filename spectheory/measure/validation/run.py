"""A validation from a loaded pair to its answer, one temperature after the other."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
import transformers
from torch import Tensor

import spectheory
from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape
from spectheory.errors import LogitsError, ModelError, SettingError, TextError, TraceError
from spectheory.files import sole_writer
from spectheory.measure.assisted import generate
from spectheory.measure.columns.noise import text_key
from spectheory.measure.copied import removed_from_equal
from spectheory.measure.decoders import decode
from spectheory.measure.job import MeasureSettings, fingerprint_of_run
from spectheory.measure.latency import differences, measure_latency
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.run import Progress, measure
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.answer import Evidence, _answer_at, answer
from spectheory.measure.validation.runs import Round, Run, expected_calls
from spectheory.measure.validation.settings import PLAINLY, Setting, _HeadLimits, _settings_for
from spectheory.prediction.ngrams import ngram_of, with_ngrams
from spectheory.prompts import Prompt
from spectheory.reports.validation import JUDGE, STRINGS
from spectheory.store import Contents, Store
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.verification import BiasedVerification, TokenVerification


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


_FINEST = 1 << 20
"""Temperatures that differ by less than its inverse get the same randomness, which is harmless."""


def _run_round(
    pair: ModelPair, prompt_ids: Tensor, number: int, settings: list[Setting], how: MeasureSettings, *, name: str
) -> Round:
    """Decode one prompt with every setting, then read the texts with both models."""
    runs = {setting: _run_once(pair, prompt_ids, number, setting, how) for setting in settings}
    for setting, run in runs.items():
        if setting.shape is not None:
            expected = expected_calls(
                pair,
                prompt_ids,
                torch.tensor(run.output),
                how.sampling,
                setting.path_rule,
                setting.shape,
                key=text_key(how.seed, number),
                chunk=how.chunk,
                name=f"{name} by {setting.name}",
                tokens=how.tokens,
            )
            runs[setting] = replace(run, expected=expected)
    return {setting.name: run for setting, run in runs.items()}


def _run_once(pair: ModelPair, prompt_ids: Tensor, number: int, setting: Setting, how: MeasureSettings) -> Run:
    """Decode one prompt; its randomness depends only on seed, setting, temperature and the prompt's number."""
    place = setting.key >> 32, setting.key & 0xFFFFFFFF, int(how.sampling.temperature * _FINEST)
    seed = text_key(how.seed, number, *place)
    try:
        if setting.judged:
            k, random = setting.shape.depth if setting.shape else None, np.random.SeedSequence(seed)
            made = generate(
                *(pair, prompt_ids, how.sampling, k, how.tokens, random),
                own_filters=setting.own_filters,
                strings=setting.strings,
                stop=setting.stop,
            )
            return Run(tuple(made.output_ids.tolist()), made.calls, made.seconds, drafted=made.drafted)
        (text,) = decode(
            pair, [prompt_ids], setting.method, tokens=how.tokens, sampling=how.sampling, seed=seed, chunk=how.chunk
        )
    except LogitsError as error:
        what = f"prompt {number + 1} by {setting.name}: {error.what}"
        raise TextError(what, limit=error.limit, remedy=error.remedy) from error
    seconds = sum(call.seconds for call in text.calls)
    drafted = sum(call.drafted for call in text.calls)
    return Run(tuple(text.output_ids.tolist()), len(text.calls), seconds, text.calls, None, text.remarks, drafted)


WARM_UP = 8
"""Tokens of an unmeasured run of each setting before the timed runs."""
LEAST_PROMPTS = 2
"""Fewer prompts give no interval."""
ROUNDS = Contents(
    "rounds of a validation",
    4,
    "rounds of a validation",
    TraceError,
    "choose another --out or remove the file",
    "the rounds of another validation",
    "models, prompts, settings and machine must be the same",
)


def decoded_rounds(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: Sequence[Setting],
    how: MeasureSettings,
    path: Path,
    *,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[Round]:
    """One round per prompt, kept at `path`: plain decoding and every setting, so that a slow phase affects all equally.

    The tokens depend only on seed, setting and prompt, so a resumed run has the texts and counts of an uninterrupted
    one.
    """
    report = on_progress or (lambda _: None)
    every = _with_plain(settings)
    fingerprint = _checked_fingerprint(pair, prompts, every, how)
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template) for prompt in prompts]
    with Store(path, ROUNDS, {"fingerprint": fingerprint}) as store:
        rounds = {row.content["prompt"]: msgspec.convert(row.content["runs"], dict[str, Run]) for row in store.earlier}
        resumed = len(rounds)
        report(Progress(resumed, len(prompts), resumed))
        if resumed < len(prompts):
            short = replace(how, tokens=min(how.tokens, WARM_UP))
            for setting in every:
                _run_once(pair, ids[0], 0, setting, short)
        for number, prompt in enumerate(prompts):
            if number not in rounds:
                rounds[number] = _run_round(pair, ids[number], number, every, how, name=prompt.id)
                store.add({"prompt": number, "runs": msgspec.to_builtins(rounds[number])})
                report(Progress(len(rounds), len(prompts), resumed))
    return [rounds[number] for number in range(len(prompts))]


def _with_copied(
    pair: ModelPair, prompts: Sequence[Prompt], settings: Sequence[Setting], how: MeasureSettings, trace: Trace
) -> Trace:
    """The trace with the n-gram drafts that are decoded."""
    drafts = [copied.copies for each in settings if (copied := ngram_of(each.path_rule)) is not None]
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template) for prompt in prompts]
    removed = removed_from_equal(pair.target.network, how.sampling)
    return with_ngrams(trace, drafts, prompts=ids, ends=pair.end_of_text, removed=removed, alone=True)


def _with_plain(settings: Sequence[Setting]) -> list[Setting]:
    """The plain decoders that the settings are compared with, then the settings."""
    return [*dict.fromkeys([PLAINLY, *(setting.baseline for setting in settings)]), *settings]


def _checked_fingerprint(
    pair: ModelPair, prompts: Sequence[Prompt], settings: Sequence[Setting], how: MeasureSettings
) -> str:
    """Hash of everything that decides rounds and their times; what cannot run is refused."""
    if len(prompts) < LEAST_PROMPTS:
        raise TextError(
            f"there is {len(prompts)} prompt", limit="intervals over prompts need two at least", remedy="add prompts"
        )
    names = [prompt.id for prompt in prompts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TextError(f"two prompts are named {twice!r}", limit="ids must differ", remedy="rename one of them")
    devices = pair.target.device, pair.draft.device
    if devices[0] != devices[1] and any(setting.judged for setting in settings):
        raise ModelError(
            f"the target is on {devices[0]} and the draft on {devices[1]}",
            limit=f"{JUDGE} generation needs both on one device",
            remedy="use --device, or name the rules without it",
        )
    content = [
        fingerprint_of_run(pair, prompts, how),
        [setting.name for setting in settings],
        [str(device) for device in devices],
        hardware(),
        versions(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


LONGEST_NAME = 100
"""Characters of a file's name; a longer one, as of a large tree, ends in its hash."""


def _file_name(setting: Setting) -> str:
    """A name without characters that a file system refuses.

    Examples
    --------
    >>> _file_name(Setting("token", Chain(3)))
    'token-chain-k=3'
    """
    plain = re.sub(r"[^\w.=]+", "-", setting.name)
    return plain if len(plain) <= LONGEST_NAME else f"{plain[:LONGEST_NAME]}-{setting.key:x}"


def _write_logs(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: Sequence[Setting],
    how: MeasureSettings,
    rounds: Sequence[Round],
    folder: Path,
) -> None:
    """A call log for each setting in `folder`."""
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template).tolist() for prompt in prompts]
    ours = "spectheory", spectheory.__version__
    for setting in settings:
        # What was drafted is left out: a rejected draft may have ended the drafting, so it is not given.
        requests = tuple(
            Request(
                prompt.id,
                tuple(of),
                run.output,
                ended=run.output[-1] in pair.end_of_text,
                accepted=tuple(call.accepted for call in run.calls),
                calls=run.count,
                seconds=run.seconds,
            )
            for prompt, of, run in zip(prompts, ids, (one[setting.name] for one in rounds), strict=True)
        )
        shape = setting.shape
        assert shape is not None
        # As --shape reads it: by its size where it grows, else by the paths to its nodes.
        paths = () if isinstance(shape, Grown) else shape.tree().paths
        written = shape.written if isinstance(shape, Grown) else ",".join("-".join(map(str, path)) for path in paths)
        CallLog(
            requests,
            *(("transformers", transformers.__version__) if setting.judged else ours),
            k=shape.depth,
            **asdict(how.sampling),
            prefill_emits_token=False,
            counts_past_end=False,
            provenance={
                **pair.describe(),
                "rule": setting.path_rule.name,
                **({} if isinstance(shape, Chain) else {"shape": written}),
                **({"stop": str(setting.stop)} if setting.stop else {}),
                "dtype": pair.target.dtype,
                "tokens": how.tokens,
                "seed": how.seed,
                "hardware": hardware(),
                "versions": versions(),
            },
        ).write(folder / f"{_file_name(setting)}.jsonl")


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
    head: _HeadLimits | None = None

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
        cut = self.at(temperature).sampling.truncates and temperature > 0
        if cut and (drawn := [rule for rule in self.rules if rule.startswith(f"{BiasedVerification.name}:")]):
            raise SettingError(
                f"{drawn[0]} is asked for with top-k, top-p or min-p",
                limit="its texts may have tokens that these cut, whose calls are not known",
                remedy="leave the filters out, or ask `spectheory predict` about it",
            )
        return _settings_for(self.rules, self.shapes, temperature, self.head)

    def at(self, temperature: float) -> MeasureSettings:
        """How texts are made at a temperature; at 0 one text per prompt, since all would be equal."""
        sampling = dataclasses.replace(self.how.sampling, temperature=temperature)
        count = 1 if temperature == 0 else self.how.count
        return dataclasses.replace(self.how, sampling=sampling, count=count)

    def with_draft(self, draft: Model) -> Validation:
        """The same of this draft: a head is measured as deep as its shapes are."""
        head = _HeadLimits.of(draft)
        if head is None and draft.common is None and STRINGS in self.rules:
            raise SettingError(
                f"{STRINGS} is asked for with the draft {draft.name!r}",
                limit="strings are matched where the draft has another tokenizer",
                remedy=f"use {JUDGE}",
            )
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
        _checked_fingerprint(pair, prompts, _with_plain(question.settings(temperature)), question.at(temperature))
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
            trace = _with_copied(pair, prompts, settings, how, trace)
            _write_logs(pair, prompts, settings, how, rounds, out / f"calls-{at}")
            names = tuple(prompt.id for prompt in prompts)
            records[temperature] = _answer_at(Evidence(tuple(settings), names, rounds, trace, table))
    asked = dataclasses.asdict(question.how)
    del asked["sampling"]["temperature"]  # there are several
    asked["ngrams"] = list(asked["ngrams"])
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
