r"""Times of calls, measured and by a latency table, and the error budget: what causes the error of a speed-up.

Times are in plain steps. With N tokens per call, drafting d, verifying v, all other time o per call, and p the time of
plain decoding outside its passes, measured and predicted speed-ups are

.. math:: S = \frac{N (1 + p)}{d + v + o}, \qquad \hat S = \frac{\hat N (1 + \hat p)}{\hat d + \hat v + \hat o},

so :math:`\log(S / \hat S)` is :math:`\log(N / \hat N)` plus :math:`\log(1 + p) - \log(1 + \hat p)` minus :math:`\log(t
/ \hat t)` for the time t of a call. That is :math:`(t - \hat t) / L` with the logarithmic mean L, and splits over the
terms of :math:`t - \hat t` without a remainder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import LatencyTable
from spectheory.drafting import Shape
from spectheory.measure.decoders.decode import Call
from spectheory.measure.validation.runs import Run
from spectheory.prediction.over_prompts import left_out

Floats = NDArray[np.float64]

_EQUAL = 1e-9
"""For numbers closer than this, logarithmic and arithmetic mean agree up to rounding."""


@dataclass(frozen=True)
class RunSums:
    """Sums over the runs of one setting, over all prompts, then without each: ``[1 + prompts]``."""

    tokens: Floats
    calls: Floats
    drafting: Floats
    verifying: Floats
    seconds: Floats

    def per_call(self, step: Floats) -> CallTime:
        """Time per call in units of `step` seconds."""
        unit = self.calls * step
        return CallTime(
            self.drafting / unit, self.verifying / unit, (self.seconds - self.drafting - self.verifying) / unit
        )


def sum_over_runs(runs: Sequence[Run]) -> RunSums:
    """The sums of a setting's runs, one run per prompt."""
    rows = [
        (
            len(run.output),
            run.count,
            sum(call.draft_seconds for call in run.calls),
            sum(call.target_seconds for call in run.calls),
            run.seconds,
        )
        for run in runs
    ]
    return RunSums(*(left_out(np.array(column, dtype=float)) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class TraceExpectation:
    """What a trace predicts of a setting's calls, ``[1 + prompts]`` each; `verified`: shares by the tokens of a target
    pass.
    """

    shape: Shape
    tokens_per_call: Floats
    full_share: Floats
    verified: Mapping[int, Floats]


def by_table(table: LatencyTable, known: TraceExpectation) -> CallTime:
    """The mean call by the trace, in the table's own plain steps (C2)."""
    step, verify = table.target_step().best, table.verification(known.shape).best
    # The time of a call is linear in the share of full calls; a head reads all accepted tokens in its first pass.
    most = known.shape.depth if table.reads_accepted else 1
    late = (known.tokens_per_call - 1) / most if table.reads_accepted else known.full_share
    without, with_ = (table.call(known.shape, more).best - verify for more in (0.0, float(most)))
    verifying = sum(share * table.target_pass(tokens).best for tokens, share in known.verified.items())
    return CallTime((without + late * (with_ - without)) / step, np.asarray(verifying) / step)


def in_loop(table: LatencyTable, shape: Shape, passes: CallTime) -> CallTime:
    """The passes of a call with the time around them and around plain steps, if the table has a loop."""
    if table.loop is None:
        return passes
    step = table.target_step().best
    return replace(passes, overhead=table.loop.of(shape) / step, plain=table.loop.plain / step)


def made_by_table(table: LatencyTable, shape: Shape, runs: Sequence[Run]) -> CallTime:
    """The calls as they were made, in the table's own plain steps: actual numbers of drafts, full calls as counted."""
    step = table.target_step().best
    rows = [_seconds(table, shape, run) for run in runs]
    drafting, verifying = (left_out(np.array(column)) for column in zip(*rows, strict=True))
    calls = left_out(np.array([float(run.count) for run in runs])) * step
    return CallTime(drafting / calls, verifying / calls)


def _seconds(table: LatencyTable, shape: Shape, run: Run) -> tuple[float, float]:
    """Seconds in the draft's and the target's passes of one text's calls."""
    drafting = verifying = 0.0
    late = 0  # the draft's first pass is on two tokens after a call in which every draft was accepted
    for call in run.calls:
        verifying += table.target_pass(call.drafted + 1).best
        for number, width in enumerate(_passes(shape, call)):
            drafting += table.draft_pass(width + (late if number == 0 else 0)).best
        late = call.accepted if table.reads_accepted else int(call.last == "bonus")
    return drafting, verifying


def _passes(shape: Shape, call: Call) -> tuple[int, ...]:
    """The draft passes that a call made, by their tokens; a grown tree and one pass for all depths are made in full."""
    if not call.drafted:
        return ()
    if len(shape.passes) < 2 or not shape.fixed:
        return shape.passes
    passes = shape.passes[: call.depth]
    # One node per level makes a chain, for example if the draft has a single token.
    return (1,) * len(passes) if call.drafted == len(passes) else passes


@dataclass(frozen=True)
class CallTime:
    """Time per call in plain steps, any shape: passes of the draft, passes of the target, and everything else; and the
    time of `plain` decoding outside its passes, per token.
    """

    drafting: Floats
    verifying: Floats
    overhead: Floats | float = 0.0
    plain: Floats | float = 0.0

    @property
    def total(self) -> Floats:
        """The whole call."""
        return self.drafting + self.verifying + self.overhead


def speedup(tokens: Floats, time: CallTime) -> Floats:
    """Tokens per second relative to plain decoding (C2)."""
    return tokens * (1 + time.plain) / time.total


def budget(
    of_trace: Floats, of_texts: Floats, counted: Floats, predicted: CallTime, made: CallTime, measured: CallTime
) -> dict[str, Floats]:
    """log(measured / predicted speed-up) in parts, which add up to it (exact); ``PARTS`` says what each is.

    Tokens per call are predicted by the trace, expected of the decoded texts, and counted. `predicted` is the whole
    shape by the table, `made` the passes of the calls as they were made by the table, `measured` as timed.

    Examples
    --------
    >>> one = np.ones(1)
    >>> table, timed = CallTime(0.5 * one, 1.1 * one, 0.1, 0.05), CallTime(0.6 * one, 1.0 * one, 0.2 * one, 0.1)
    >>> parts = budget(2.0 * one, 2.2 * one, 2.1 * one, table, table, timed)
    >>> miss = np.log(speedup(2.1 * one, timed) / speedup(2.0 * one, table))
    >>> bool(np.isclose(sum(parts.values()), miss, rtol=1e-12))
    True
    """
    mean = _logarithmic_mean(measured.total, predicted.total)
    return {
        "texts": np.log(of_texts / of_trace),
        "acceptance": np.log(counted / of_texts),
        "cut": -(made.drafting + made.verifying - predicted.drafting - predicted.verifying) / mean,
        "drafting": -(measured.drafting - made.drafting) / mean,
        "verifying": -(measured.verifying - made.verifying) / mean,
        "overhead": -(measured.overhead - predicted.overhead) / mean,
        "plain": np.log1p(measured.plain) - np.log1p(predicted.plain) + 0 * mean,
    }


def _logarithmic_mean(a: Floats, b: Floats) -> Floats:
    """(a - b) / log(a / b), and its limit a where both are equal.

    Examples
    --------
    >>> _logarithmic_mean(np.array([1.0, np.e]), np.array([1.0, 1.0])).round(6)
    array([1.      , 1.718282])
    """
    relative = a / b - 1
    near = np.abs(relative) < _EQUAL
    return np.where(near, (a + b) / 2, b * relative / np.log1p(np.where(near, 1.0, relative)))
