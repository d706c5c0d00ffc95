"""Totals that an engine counted over many requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

COUNTERS_FILE = "counters.json"
"""Name of counters in a folder."""
MARK = "spectheory counters"
SCHEMA = 1


@dataclass(frozen=True)
class Counters:
    """Totals of an engine's calls with drafts, pooled over requests whose texts are unknown.

    - `calls`, `drafted`, `accepted`: calls that verified drafts, drafted tokens, accepted ones; None if unknown.
    - `survival`: the share of calls that accepted at least i tokens, i = 1, 2, ...; empty if unknown.
    - `k`: the longest chain of a call; `tokens`: output tokens; `seconds`, `draft_seconds`: time of all calls and of
      their drafting.
    - `cumulative`: whether the totals count from the start of a server, so that two of them have a difference.
    - `remarks`: what the source leaves open or biases, one sentence each.
    """

    calls: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    survival: tuple[float, ...] = ()
    k: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    draft_seconds: float | None = None
    cumulative: bool = False
    engine: str = ""
    version: str = ""
    remarks: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> float | None:
        """Tokens per call, recovered and bonus ones included: 1 + accepted / calls."""
        if self.calls and self.accepted is not None:
            return 1 + self.accepted / self.calls
        return 1 + sum(self.survival) if self.survival else None
