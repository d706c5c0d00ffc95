"""One prompt decoded with one setting: what was counted, timed and expected, and its form in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spectheory.errors import LogitsError, TextError
from spectheory.judging.comparison import Comparison, compare_calls
from spectheory.measure.assisted import generate
from spectheory.measure.columns.noise import text_key
from spectheory.measure.decoders import Call, decode
from spectheory.measure.pair import ModelPair
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.validation.expected import ExpectedCalls, expected_calls
from spectheory.measure.validation.settings import Setting


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

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; :meth:`from_dict` returns the same run."""
        return {
            "output": list(self.output),
            "count": self.count,
            "seconds": self.seconds,
            "calls": [list(astuple(call)) for call in self.calls],
            "expected": None if self.expected is None else asdict(self.expected),
            "remarks": list(self.remarks),
            "drafted": self.drafted,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Run:
        """The run that was written."""
        expected = content["expected"]
        return cls(
            tuple(content["output"]),
            content["count"],
            content["seconds"],
            tuple(Call(*call) for call in content["calls"]),
            None if expected is None else ExpectedCalls.from_dict(expected),
            tuple(content["remarks"]),
            content["drafted"],
        )


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
    return {
        setting.name: _held_against(pair, prompt_ids, number, setting, how, run, name) for setting, run in runs.items()
    }


def run_once(pair: ModelPair, prompt_ids: Tensor, number: int, setting: Setting, how: MeasureSettings) -> Run:
    """Decode one prompt; its randomness depends only on seed, setting, temperature and the prompt's number."""
    try:
        return _decoded(pair, prompt_ids, number, setting, how)
    except LogitsError as error:
        what = f"prompt {number + 1} by {setting.name}: {error.what}"
        raise TextError(what, limit=error.limit, remedy=error.remedy) from error


def _decoded(pair: ModelPair, prompt_ids: Tensor, number: int, setting: Setting, how: MeasureSettings) -> Run:
    place = setting.key >> 32, setting.key & 0xFFFFFFFF, int(how.sampling.temperature * _FINEST)
    seed = text_key(how.seed, number, *place)
    if setting.judged:
        k = None if setting.shape is None else setting.shape.depth
        made = generate(
            pair,
            prompt_ids,
            how.sampling,
            k,
            how.tokens,
            np.random.SeedSequence(seed),
            own_filters=setting.own_filters,
            stop=setting.stop,
        )
        return Run(tuple(made.output_ids.tolist()), made.calls, made.seconds, drafted=made.drafted)
    (text,) = decode(
        pair, [prompt_ids], setting.method, tokens=how.tokens, sampling=how.sampling, seed=seed, chunk=how.chunk
    )
    seconds = sum(call.seconds for call in text.calls)
    drafted = sum(call.drafted for call in text.calls)
    return Run(tuple(text.output_ids.tolist()), len(text.calls), seconds, text.calls, None, text.remarks, drafted)


def _held_against(
    pair: ModelPair, prompt_ids: Tensor, number: int, setting: Setting, how: MeasureSettings, run: Run, name: str
) -> Run:
    """The run with the calls that the path theorem expects of its text."""
    if setting.shape is None:
        return run
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
    return replace(run, expected=expected)
