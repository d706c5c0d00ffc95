"""One run of a server under load, as a benchmark sums it up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BenchRun:
    """One run of `vllm bench serve`; times in seconds, None is unknown.

    `ttft` is the mean time to a first token and `tpot` the mean time of each further one. `decoding` sums, over
    requests, the time after the first token: from their latencies where the file has them, or else from `tpot`, which
    is right if outputs are equally long. Without speculation `calls` is None. `survival` has the share of calls that
    accepted at least i tokens, fractions, each rounded by at most `rounding`.
    """

    name: str
    concurrency: int | None
    completed: int
    failed: int
    duration: float | None
    input_tokens: int
    output_tokens: int
    ttft: float
    tpot: float
    decoding: float
    calls: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    survival: tuple[float, ...] = ()
    rounding: float = 0.0

    @property
    def k(self) -> int:
        """The longest chain of a call; 0 without speculation."""
        return len(self.survival)

    @property
    def context(self) -> float:
        """Mean cached tokens of a sequence while it decodes: its prompt and half of its output."""
        return (self.input_tokens + self.output_tokens / 2) / self.completed

    @property
    def decoded(self) -> int:
        """Output tokens after the first of each request, which the prompt's own pass emits."""
        return self.output_tokens - self.completed

    @property
    def in_flight(self) -> float | None:
        """Requests that were decoding at a time, the mean over the run (Little's law)."""
        return self.decoding / self.duration if self.duration else None
