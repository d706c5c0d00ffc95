"""What a server's ``/metrics`` count, and the difference of two of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from spectheory.errors import FOREIGN, EngineError
from spectheory.trace.calls import MOST_COUNTED, MOST_DRAFTS

_SPECULATIVE = re.compile(r":spec_decode_num_(drafts|draft_tokens|accepted_tokens|accepted_tokens_per_pos)_total$")
_NAMES = {"drafts": "calls", "accepted_tokens": "total_accepted", "draft_tokens": "total_drafted"}


@dataclass(frozen=True)
class Scraped:
    """Counters summed over a server's engines, by name; `positions` is the longest chain, 0 if unknown."""

    values: Counter[str]
    positions: int = 0

    @classmethod
    def of(cls, text: str) -> Scraped:
        """The counters of a scrape in Prometheus' text format."""
        values: Counter[str] = Counter()
        positions = 0
        try:
            samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
            for sample in samples:
                known = _SPECULATIVE.search(sample.name)
                if known and known[1] == "accepted_tokens_per_pos":
                    positions = max(positions, _position(sample.labels))
                elif known or sample.name.endswith("_total"):
                    values[_NAMES[known[1]] if known else sample.name] += _whole(sample)
        except FOREIGN as error:
            raise EngineError(
                f"/metrics are no counters ({str(error)[:80] or type(error).__name__})",
                limit="needs Prometheus' text format",
                remedy="check the server",
            ) from error
        return cls(values, positions)

    def since(self, before: Scraped, decodes: str) -> dict[str, Any]:
        """Counts of one request under the names of ``Request``; with `decodes` all passes but the prompt's are calls.

        A counter that is smaller than before is refused: the server started anew.
        """
        gone = {name: self.values[name] - before.values[name] for name in (*_NAMES.values(), decodes) if name}
        back = [name for name, value in gone.items() if value < 0]
        if back:
            raise EngineError(
                f"counter {back[0]} went back by {-gone[back[0]]}",
                limit="counters only grow while a server runs",
                remedy="the server was restarted: run the same command again; finished prompts are kept",
            )
        if decodes and decodes in self.values:
            gone["calls"] = gone.pop(decodes) - 1
        return {name: gone[name] for name in _NAMES.values()} if "calls" in self.values else {}


def _position(labels: Mapping[str, str]) -> int:
    """The number of drafts that a counter at a position speaks of."""
    position = int(labels["position"])
    if not 0 <= position < MOST_DRAFTS:
        raise ValueError(f"position {position} of a draft, 0..{MOST_DRAFTS - 1} are possible")
    return position + 1


def _whole(sample: Any) -> int:
    """A counter's value: a number that counts can have."""
    if not 0 <= sample.value <= MOST_COUNTED:
        raise ValueError(f"{sample.name} is {sample.value}")
    return round(sample.value)
