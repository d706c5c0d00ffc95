"""Timed runs with and without speculation, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.prediction.renewal import tokens_counted
from spectheory.trace.timed import NO_PREFILL, TimedRun

ALIKE = 0.1
"""Loads of two runs closer than this, in proportion, are one load."""


@dataclass(frozen=True)
class Pair:
    """A plain run and a run with drafts of one server.

    Examples
    --------
    >>> load = {"prompt_tokens": 10, "output_tokens": 21, "requests": 2}
    >>> plain = TimedRun("vllm", 1, 20.5, 0, 0.2, seconds=10.0, **load)
    >>> drafted = TimedRun("vllm", 1, 20.5, 1, 0.32, 2.0, seconds=8.0, **load)
    >>> pair = Pair(plain, drafted)
    >>> round(pair.speedup.best, 6), round(pair.whole.best, 6), round(pair.ratio, 6)
    (1.25, 1.25, 1.6)
    """

    plain: TimedRun
    drafted: TimedRun

    @property
    def speedup(self) -> Interval:
        """Of decoding: time of an output token after the first (an estimate: one run each)."""
        return Interval.estimate(self._tokens * self.step / self.call)

    @property
    def whole(self) -> Interval | None:
        """Of whole requests, prompts and waiting included (an estimate); None where a run has no duration."""
        times = [
            run.seconds / (run.requests * run.output_tokens)
            for run in (self.plain, self.drafted)
            if run.seconds and run.requests and run.output_tokens
        ]
        return Interval.estimate(times[0] / times[1]) if len(times) == 2 else None

    @property
    def tokens(self) -> Interval:
        """Output tokens of a call, with the 95% error of counting independent calls where these are counted."""
        run = self.drafted
        if not (run.calls and run.survival):
            return Interval.estimate(self._tokens)
        counted = tokens_counted(run.survival, run.calls)
        return counted * (self._tokens / counted.best)

    @property
    def _tokens(self) -> float:
        assert self.drafted.tokens_per_call is not None
        return self.drafted.tokens_per_call

    @property
    def step(self) -> float:
        """Seconds of a plain step."""
        return self.plain.step_seconds

    @property
    def call(self) -> float:
        """Seconds of a call."""
        return self.drafted.step_seconds

    @property
    def ratio(self) -> float:
        """Plain steps of a call."""
        return self.call / self.step

    def alone(self, beside: Sequence[Pair]) -> tuple[float, float]:
        """Seconds of a plain step and of a call without the prompts that are read in the same steps (an estimate).

        A prompt takes as long as the first token of a plain run without other requests, at the same context. Of B
        requests B - 1 wait for it, once in each request's further tokens. Times of `spectheory bench`
        hold none.
        """
        if NO_PREFILL in (self.plain.note, self.drafted.note):
            return self.step, self.call
        lone = [each.plain.ttft for each in (self, *beside) if each.plain.batch == 1 and self.as_long(each)]
        if not lone or lone[0] is None or not self.plain.output_tokens:
            return self.step, self.call
        share = lone[0] * (self.drafted.batch - 1) / (self.plain.output_tokens - 1)
        return max(self.step - share, 0.0), max(self.call - self.tokens.best * share, 0.0)

    def as_long(self, other: Pair) -> bool:
        """Whether another pair has the same context."""
        return abs(self.drafted.context / other.drafted.context - 1) <= ALIKE

    @property
    def apart(self) -> list[str]:
        """In what the loads of both runs differ, in words."""
        one, other = self.plain, self.drafted
        loads = {
            "concurrency": (one.batch, other.batch),
            "prompt tokens of a request": (one.prompt_tokens, other.prompt_tokens),
            "output tokens of a request": (one.output_tokens, other.output_tokens),
        }
        return [
            f"{name} {without:.4g} without and {drafted:.4g} with drafts"
            for name, (without, drafted) in loads.items()
            if without is not None and drafted is not None and abs(without - drafted) > ALIKE * max(without, drafted)
        ]

    def same_but(self, other: Pair, what: str) -> bool:
        """Whether another pair has the same load and k but for `what`: batch, context or k."""
        alike = {
            "batch": self.drafted.batch == other.drafted.batch,
            "context": self.as_long(other),
            "k": self.drafted.k == other.drafted.k,
        }
        return not alike.pop(what) and all(alike.values())


def pairs_of(runs: Sequence[TimedRun]) -> list[Pair]:
    """Each run with drafts and the plain run whose load is nearest to its own, the slowest pair first."""
    plain, drafted = ([run for run in runs if bool(run.k) is side] for side in (False, True))
    if not (plain and drafted):
        raise SettingError(
            f"{len(runs)} runs are given, none {'with' if plain else 'without'} speculation",
            limit="a call is measured in plain steps, which need runs of both kinds",
            remedy="add one, or give " + argument("speedup", "--speedup"),
        )

    if unknown := [run for run in drafted if run.tokens_per_call is None]:
        raise SettingError(
            f"{len(unknown)} runs with drafts have no tokens per call",
            limit="a speed-up is that of output tokens",
            remedy="log what was accepted, or give numbers",
        )

    def apart(one: TimedRun, other: TimedRun) -> tuple[bool, float, float]:
        longer = abs((one.output_tokens or 0) - (other.output_tokens or 0))
        return one.batch != other.batch, abs(one.context - other.context), longer

    made = [Pair(min(plain, key=lambda each: apart(run, each)), run) for run in drafted]
    return sorted(made, key=lambda pair: pair.speedup.best)
