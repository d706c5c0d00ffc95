"""One prompt decoded with one setting: what was counted, timed and expected of its text, and its form in a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape
from spectheory.errors import LogitsError, TextError
from spectheory.judging.comparison import READINGS, CallLaw, Comparison, compare_calls
from spectheory.measure.assisted import generate
from spectheory.measure.columns.noise import text_key
from spectheory.measure.copied import suffix_columns
from spectheory.measure.decoders import Call, decode
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.job import MeasureSettings
from spectheory.measure.pair import ModelPair
from spectheory.measure.validation.settings import Setting
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.stopped import Drafted, lengths_of_calls
from spectheory.trace import TextInfo, Trace
from spectheory.verification import PathRule, RankRule, SuffixMatch
from spectheory.verification.by_start import by_position, deepest
from spectheory.verification.suffix import OWN_TEXT

CONTROLS = ("per_position", "fixed")
"""Wrong readings that the calls must refute."""
_EXPENSIVE = ("race_rank", "distinct_rank")
"""Columns that are computed only where they are needed."""


@dataclass(frozen=True)
class ExpectedCalls(CallLaw):
    """Calls of one text, given the text, with what wrong readings expect of it.

    `per_position` is the control of a draft head: what its first draft at each position would give if the pmfs did not
    depend on the start (§10). `fixed` is the control of a stopping rule: the chain that always drafts k (§11).
    `drafted` are the drafts of all calls of a stopped chain: certain lower bound, the two estimates of
    :mod:`~spectheory.prediction.drafted_lengths`, certain upper bound.
    """

    per_position: ExpectedCalls | None = None
    fixed: ExpectedCalls | None = None
    drafted: tuple[float, float, float, float] | None = None


def expected_calls(
    pair: ModelPair,
    prompt_ids: Tensor,
    text: Tensor,
    sampling: Sampling,
    rule: PathRule,
    shape: Shape,
    *,
    key: int = 0,
    chunk: int = 256,
    name: str = "",
    tokens: int | None = None,
) -> ExpectedCalls:
    """Expected calls of a text from the decoder under test; one teacher-forced pass, or several for estimated laws.

    A call drafts nothing at or past the last of `tokens` (those of the text), nor after the text's end.
    """
    expensive = isinstance(rule, RankRule) and not shape.is_chain and rule.recorded_in in _EXPENSIVE
    estimated = isinstance(rule, RankRule) and rule.estimated and shape.max_rank > 1
    deep = shape.depth if pair.draft.head is not None and rule.uses_draft else None

    def read(number: int) -> dict[str, Any]:
        return teacher_forced(
            pair,
            prompt_ids,
            text,
            sampling,
            chunk=chunk,
            race=expensive,
            sampled=True,
            key=text_key(key, number),
            name=name,
            depth=deep,
        )

    readings, controls, fixed = [], [], []
    for number in range(READINGS if estimated else 1):
        if isinstance(shape, Grown):
            columns = grown_columns(pair, prompt_ids, text, shape, chunk=chunk, name=name)
        else:
            columns = read(number)
        if isinstance(rule, SuffixMatch):
            columns |= suffix_columns([(prompt_ids.cpu(), text.cpu())], OWN_TEXT, pair.end_of_text)
        readings.append(survival_of(rule, shape, columns)[0])
        if rule.uses_draft and shape.depth > 1 and deepest(columns) is not None:
            controls.append(survival_of(rule, shape, by_position(columns))[0])
        if shape.stop:
            fixed.append(survival_of(rule, Chain(shape.depth), columns)[0])
    found = replace(ExpectedCalls.of(readings), per_position=ExpectedCalls.of(controls) if controls else None)
    if not shape.stop:
        return found
    tokens = tokens or len(text)
    info = TextInfo("", len(text), ended=len(text) < tokens)  # a text with fewer tokens ended by itself
    trace = Trace(dict(columns), (info,), {"settings": {"tokens": tokens}})
    _, drafts = lengths_of_calls(Drafted(trace, rule, shape.depth), shape.stop, columns)
    low, going, stopping, high = (float(x.sum()) for x in (drafts.low, drafts.going, drafts.stopping, drafts.high))
    return replace(found, fixed=ExpectedCalls.of(fixed), drafted=(low, going, stopping, high))


@dataclass(frozen=True)
class Run:
    """One text: its tokens (end of text included), target calls and seconds.

    Seconds leave out reading the prompt, except for transformers, which records no calls either. `expected` is what the
    path theorem says of this text; `remarks` say what made decoding slower than necessary. `drafted` are the drafts of
    all calls.
    """

    output: tuple[int, ...]
    count: int
    seconds: float
    calls: tuple[Call, ...] = ()
    expected: ExpectedCalls | None = None
    remarks: tuple[str, ...] = ()
    drafted: int = 0


def compare_runs(runs: Sequence[Run], control: str = "") -> Comparison:
    """Counted calls of some runs against those expected; of the wrong reading `control` those that it expects."""
    known = [
        (run.count, getattr(run.expected, control) if control else run.expected)
        for run in runs
        if run.expected is not None
    ]
    laws = [(count, law) for count, law in known if law is not None]
    return compare_calls(sum(count for count, _ in laws), [law for _, law in laws])


_FINEST = 1 << 20
"""Temperatures that differ by less than its inverse get the same randomness, which is harmless."""
Round = dict[str, Run]
"""A prompt's runs by the name of the setting."""


def run_round(
    pair: ModelPair, prompt_ids: Tensor, number: int, settings: list[Setting], how: MeasureSettings, *, name: str
) -> Round:
    """Decode one prompt with every setting, then read the texts with both models."""
    runs = {setting: run_once(pair, prompt_ids, number, setting, how) for setting in settings}
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


def run_once(pair: ModelPair, prompt_ids: Tensor, number: int, setting: Setting, how: MeasureSettings) -> Run:
    """Decode one prompt; its randomness depends only on seed, setting, temperature and the prompt's number."""
    place = setting.key >> 32, setting.key & 0xFFFFFFFF, int(how.sampling.temperature * _FINEST)
    seed = text_key(how.seed, number, *place)
    try:
        if setting.judged:
            k, random = setting.shape.depth if setting.shape else None, np.random.SeedSequence(seed)
            made = generate(
                *(pair, prompt_ids, how.sampling, k, how.tokens, random),
                own_filters=setting.own_filters,
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
