"""Times of calls: as they were measured, and what a latency table says of the same calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spectheory.cost import LatencyTable
from spectheory.drafting import Shape
from spectheory.measure.validation.budget import CallTime, Timing
from spectheory.measure.validation.runs import Run
from spectheory.prediction.over_prompts import left_out

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Timed:
    """Sums ``[1 + prompts]`` over the runs of one setting.

    Attributes
    ----------
    tokens, calls : array
        Output tokens and target calls.
    drafting, verifying, seconds : array
        Seconds in the draft's passes, in the target's, and in all.
    """

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


def timed(runs: Sequence[Run]) -> Timed:
    """The sums of a setting's runs, one per prompt."""
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
    return Timed(*(left_out(np.array(column, dtype=float)) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class Known:
    """What a trace says of a setting's calls, ``[1 + prompts]`` each.

    Attributes
    ----------
    shape : Shape
        What they draft.
    tokens_per_call : array
        Output tokens of a call.
    full_share : array
        Share of calls after a full acceptance.
    verified : mapping of int to array
        Share of calls by the tokens of the target's pass.
    """

    shape: Shape
    tokens_per_call: Floats
    full_share: Floats
    verified: Mapping[int, Floats]


def by_table(table: LatencyTable, known: Known) -> CallTime:
    """The mean call by the trace, in the table's own plain steps (C2)."""
    step, verify = table.target_step().best, table.verification(known.shape).best
    # The time of a call is linear in the share.
    without, with_ = (table.call(known.shape, share).best - verify for share in (0.0, 1.0))
    verifying = sum(share * table.target_pass(tokens).best for tokens, share in known.verified.items())
    return CallTime((without + known.full_share * (with_ - without)) / step, np.asarray(verifying) / step)


def in_loop(table: LatencyTable, shape: Shape, passes: CallTime) -> Timing:
    """The passes of a call and the loop around them, and that around plain steps, as far as the table knows it."""
    if table.loop is None:
        return Timing(passes)
    step = table.target_step().best
    return Timing(replace(passes, overhead=table.loop.of(shape) / step), table.loop.plain / step)


def made_by_table(table: LatencyTable, shape: Shape, runs: Sequence[Run]) -> CallTime:
    """Calls as they were made, in the table's own plain steps: drafts as many as there were, full ones as counted."""
    step = table.target_step().best
    rows = [_seconds(table, shape, run) for run in runs]
    drafting, verifying = (left_out(np.array(column)) for column in zip(*rows, strict=True))
    calls = left_out(np.array([float(run.count) for run in runs])) * step
    return CallTime(drafting / calls, verifying / calls)


def _seconds(table: LatencyTable, shape: Shape, run: Run) -> tuple[float, float]:
    """Seconds in the passes of one text's calls."""
    drafting = verifying = 0.0
    full = False  # the draft's first pass is on two tokens after a call in which every draft was accepted
    for call in run.calls:
        verifying += table.target_pass(call.drafted + 1).best
        # With one node a level the drafts are a chain, as those of a draft that has a single token.
        passes = shape.passes[: call.depth]
        widths = (1,) * len(passes) if call.drafted == call.depth else passes
        for number, width in enumerate(widths):
            drafting += table.draft_pass(width + (full and number == 0)).best
        full = call.last == "bonus"
    return drafting, verifying
