"""Times of calls: as measured, and as a latency table predicts them for the same calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spectheory.cost import LatencyTable
from spectheory.drafting import Shape
from spectheory.measure.decoders.events import Call
from spectheory.measure.validation.budget import CallTime, Floats, Timing
from spectheory.measure.validation.runs import Run
from spectheory.prediction.over_prompts import left_out


@dataclass(frozen=True)
class Timed:
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


def timed(runs: Sequence[Run]) -> Timed:
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
    return Timed(*(left_out(np.array(column, dtype=float)) for column in zip(*rows, strict=True)))


@dataclass(frozen=True)
class Known:
    """What a trace predicts of a setting's calls, ``[1 + prompts]`` each; `verified`: shares by the tokens of a target
    pass.
    """

    shape: Shape
    tokens_per_call: Floats
    full_share: Floats
    verified: Mapping[int, Floats]


def by_table(table: LatencyTable, known: Known) -> CallTime:
    """The mean call by the trace, in the table's own plain steps (C2)."""
    step, verify = table.target_step().best, table.verification(known.shape).best
    # The time of a call is linear in the share of full calls; a head reads all accepted tokens in its first pass.
    most = known.shape.depth if table.reads_accepted else 1
    late = (known.tokens_per_call - 1) / most if table.reads_accepted else known.full_share
    without, with_ = (table.call(known.shape, more).best - verify for more in (0.0, float(most)))
    verifying = sum(share * table.target_pass(tokens).best for tokens, share in known.verified.items())
    return CallTime((without + late * (with_ - without)) / step, np.asarray(verifying) / step)


def in_loop(table: LatencyTable, shape: Shape, passes: CallTime) -> Timing:
    """The passes of a call with the time around them and around plain steps, if the table has a loop."""
    if table.loop is None:
        return Timing(passes)
    step = table.target_step().best
    return Timing(replace(passes, overhead=table.loop.of(shape) / step), table.loop.plain / step)


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
