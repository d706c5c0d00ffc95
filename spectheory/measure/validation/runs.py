"""Prompts decoded with every setting: what was counted, timed and expected of each text; finished rounds are kept.

A round is one prompt decoded with every setting, one after the other, so that a slow phase affects all equally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape
from spectheory.judging.comparison import READINGS, CallLaw, Comparison, compare_calls
from spectheory.measure.columns.noise import text_key
from spectheory.measure.copied import ngram_columns, removed_from_equal
from spectheory.measure.decoders import Call
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.pair import ModelPair
from spectheory.prediction.ngrams import ngram_of
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.stopped import Drafted, lengths_of_calls
from spectheory.trace import TextInfo, Trace
from spectheory.verification import LossyRule, PathRule, RankRule
from spectheory.verification.by_start import by_position, deepest, missing

CONTROLS = ("per_position", "fixed")
"""Wrong readings that the calls must refute."""
_EXPENSIVE = ("race_rank", "distinct_rank")
"""Columns that are computed only where they are needed."""


@dataclass(frozen=True)
class _ExpectedCalls(CallLaw):
    """Calls of one text, given the text, with what wrong readings expect of it.

    `per_position` is the control of a draft head: what its first draft at each position would give if the pmfs did not
    depend on the start (§10). `fixed` is the control of a stopping rule: the chain that always drafts k (§11).
    `drafted` are the drafts of all calls of a stopped chain: certain lower bound, the two estimates of
    :mod:`~spectheory.prediction.drafted_lengths`, certain upper bound.
    """

    per_position: _ExpectedCalls | None = None
    fixed: _ExpectedCalls | None = None
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
) -> _ExpectedCalls:
    """Expected calls of a text from the decoder under test; one teacher-forced pass, or several for estimated laws.

    A call drafts nothing at or past the last of `tokens` (those of the text), nor after the text's end.
    """
    if isinstance(rule, LossyRule):  # the law given its own text (Y7)
        plain = Sampling() if rule.greedy else sampling
        columns = teacher_forced(pair, prompt_ids, text, plain, chunk=chunk, race=False, sampled=True, name=name)
        return _ExpectedCalls.of([rule.path_survival(columns, shape.depth, ended=len(text) < (tokens or len(text)))])
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
        if (copied := ngram_of(rule)) is not None:
            removed = removed_from_equal(pair.target.network, sampling)
            columns |= ngram_columns(copied.copies, prompt_ids.cpu(), text.cpu(), pair.end_of_text, removed)
        readings.append(survival_of(rule, shape, columns)[0])
        if rule.uses_draft and shape.depth > 1 and deepest(columns) is not None:
            firsts = by_position(columns)
            if not (shape.stop and missing(firsts, [shape.stop.reads])):
                controls.append(survival_of(rule, shape, firsts)[0])
        if shape.stop:
            fixed.append(survival_of(rule, Chain(shape.depth), columns)[0])
    expected = replace(_ExpectedCalls.of(readings), per_position=_ExpectedCalls.of(controls) if controls else None)
    if not shape.stop:
        return expected
    tokens = tokens or len(text)
    info = TextInfo("", len(text), ended=len(text) < tokens)  # a text with fewer tokens ended by itself
    trace = Trace(dict(columns), (info,), {"settings": {"tokens": tokens}})
    _, drafts = lengths_of_calls(Drafted(trace, rule, shape.depth), shape.stop, columns)
    low, going, stopping, high = (float(x.sum()) for x in (drafts.low, drafts.going, drafts.stopping, drafts.high))
    return replace(expected, fixed=_ExpectedCalls.of(fixed), drafted=(low, going, stopping, high))


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
    expected: _ExpectedCalls | None = None
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


Round = dict[str, Run]
"""A prompt's runs by the name of the setting."""
