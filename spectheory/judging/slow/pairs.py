"""Timed runs with and without speculation, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction.renewal import tokens_counted
from spectheory.trace.counters import BenchRun

ALIKE = 0.1
"""Loads of two runs closer than this, in proportion, are one load."""


@dataclass(frozen=True)
class Pair:
    """A plain run and a run with drafts of one server.

    Examples
    --------
    >>> plain = BenchRun("a", 1, 2, 0, 10.0, 20, 42, ttft=0.1, tpot=0.2, decoding=8.0)
    >>> drafted = BenchRun("b", 1, 2, 0, 8.0, 20, 42, 0.1, 0.16, 6.4, 20, 20, 20, (1.0,))
    >>> pair = Pair(plain, drafted)
    >>> round(pair.speedup.best, 6), round(pair.whole.best, 6), round(pair.call, 6)
    (1.25, 1.25, 0.32)
    """

    plain: BenchRun
    drafted: BenchRun

    @property
    def speedup(self) -> Interval:
        """Of decoding: time of an output token after the first (an estimate: one run each)."""
        times = [run.decoding / run.decoded for run in (self.plain, self.drafted)]
        return Interval.estimate(times[0] / times[1])

    @property
    def whole(self) -> Interval | None:
        """Of whole requests, prompts and waiting included (an estimate); None where a run has no duration."""
        if not (self.plain.duration and self.drafted.duration):
            return None
        times = [(run.duration or 0.0) / run.output_tokens for run in (self.plain, self.drafted)]
        return Interval.estimate(times[0] / times[1])

    @property
    def tokens(self) -> Interval:
        """Output tokens of a call, with the 95% error of counting independent calls."""
        run = self.drafted
        assert run.calls
        counted = tokens_counted(run.survival, run.calls)
        return counted * (run.decoded / run.calls / counted.best)

    @property
    def step(self) -> float:
        """Seconds of a plain step."""
        return self.plain.decoding / self.plain.decoded

    @property
    def call(self) -> float:
        """Seconds of a call."""
        return self.drafted.decoding / (self.drafted.calls or 1)

    @property
    def ratio(self) -> float:
        """Plain steps of a call."""
        return self.call / self.step

    def alone(self, beside: Sequence[Pair]) -> tuple[float, float]:
        """Seconds of a plain step and of a call without the prompts that are read in the same steps (an estimate).

        A prompt takes as long as the first token of a plain run without other requests, at the same context. Of B
        requests B - 1 wait for it, once in each request's further tokens.
        """
        lone = [each.plain for each in (self, *beside) if each.plain.concurrency == 1 and self.as_long(each)]
        if not lone or not self.drafted.concurrency:
            return self.step, self.call
        further = self.plain.decoded / self.plain.completed
        share = lone[0].ttft * (self.drafted.concurrency - 1) / further
        return max(self.step - share, 0.0), max(self.call - self.tokens.best * share, 0.0)

    def as_long(self, other: Pair) -> bool:
        """Whether another pair has the same context."""
        return abs(self.drafted.context / other.drafted.context - 1) <= ALIKE

    @property
    def apart(self) -> list[str]:
        """In what the loads of both runs differ, in words."""
        loads: dict[str, list[float]] = {
            "concurrency": [run.concurrency or 0 for run in (self.plain, self.drafted)],
            "prompt tokens of a request": [run.input_tokens / run.completed for run in (self.plain, self.drafted)],
            "output tokens of a request": [run.output_tokens / run.completed for run in (self.plain, self.drafted)],
        }
        return [
            f"{name} {one:.4g} without and {other:.4g} with drafts"
            for name, (one, other) in loads.items()
            if abs(one - other) > ALIKE * max(one, other)
        ]

    def same_but(self, other: Pair, what: str) -> bool:
        """Whether another pair has the same load and k but for `what`: batch, context or k."""
        alike = {
            "batch": self.drafted.concurrency == other.drafted.concurrency,
            "context": self.as_long(other),
            "k": self.drafted.k == other.drafted.k,
        }
        return not alike.pop(what) and all(alike.values())


def pairs_of(runs: Sequence[BenchRun]) -> list[Pair]:
    """Each run with drafts and the plain run whose load is nearest to its own, the slowest pair first."""
    plain, drafted = ([run for run in runs if bool(run.calls) is side] for side in (False, True))
    if not (plain and drafted):
        raise SettingError(
            f"{len(runs)} runs are given, none {'with' if plain else 'without'} speculation",
            limit="a call is measured in plain steps, which need runs of both kinds",
            remedy="add one, or give " + argument("speedup", "--speedup"),
        )

    def apart(one: BenchRun, other: BenchRun) -> tuple[bool, float, float]:
        loads = (
            abs(one.context - other.context),
            abs(one.output_tokens / one.completed - other.output_tokens / other.completed),
        )
        return (one.concurrency != other.concurrency, *loads)

    made = [Pair(min(plain, key=lambda each: apart(run, each)), run) for run in drafted]
    return sorted(made, key=lambda pair: pair.speedup.best)
