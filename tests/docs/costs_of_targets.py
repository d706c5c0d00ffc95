"""The tables of docs/costs_of_targets.md: what published targets read, keep and compute.

``python -m tests.docs.costs_of_targets`` writes them into the page.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from spectheory.cost import ModelShape

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "costs_of_targets.md"
FACTS: dict[str, dict[str, Any]] = json.loads((ROOT / "tests/cost/published_targets.json").read_text(encoding="utf-8"))
"""Configurations and counts of parameters as published, with where."""
TOKENS = (1, 4, 8, 64)
CONTEXTS = (4096, 131072)


def shape(name: str) -> ModelShape:
    """A target, stored as its config says."""
    return ModelShape.from_config(FACTS[name]["config"])


def tables() -> dict[str, str]:
    """The tables by their names in the page."""
    return {"weights": _weights(), "caches": _caches(), "sources": _sources()}


def _weights() -> str:
    rows = [("target", "total", "active", *(f"{m} token{'s' * (m > 1)}" for m in TOKENS), "8 tokens over 1")]
    for name in FACTS:
        model = shape(name)
        read = [model.pass_bytes(m) for m in TOKENS]
        eight = model.pass_bytes(8)
        ratio = _between(eight.low / read[0].best, eight.high / read[0].best, 1)
        sizes = [f"{count / 1e9:.1f}" for count in (model.parameters, model.active)]
        rows.append((name, *sizes, *(_between(one.low / 1e9, one.high / 1e9, 1) for one in read), ratio))
    return _table(rows)


def _caches() -> str:
    heads = ("target", "bytes per token", *(f"GB at {context // 1024}k" for context in CONTEXTS))
    rows = [(*heads, "GFLOP per token at 4k", "a rejection costs")]
    for name in FACTS:
        model = shape(name)
        kept = [f"{model.cache_bytes(context) / 1e9:.2f}" for context in CONTEXTS]
        state = model.state_bytes
        costs = f"a copy of {state / 1e6:.0f} MB per verified token, or a second pass" if state else "nothing"
        done = f"{model.operations_per_token(4096) / 1e9:.1f}"
        rows.append((name, f"{model.kv_bytes_per_token:,.0f}", *kept, done, costs))
    return _table(rows)


def _sources() -> str:
    rows = [("target", "billions published, active", "counted at", "configuration")]
    for name, fact in FACTS.items():
        counts = f"{fact['billions']:g}, {fact['billions_active']:g}"
        rows.append((name, counts, f"<{fact['source']}>", fact["config_source"]))
    return _table(rows)


def _between(low: float, high: float, digits: int) -> str:
    ends = [f"{end:.{digits}f}" for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _table(rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def with_tables(text: str) -> str:
    """The page with the tables as they are now."""
    for name, made in tables().items():
        found = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        assert found.search(text), name
        text = found.sub(lambda match, made=made: match[1] + made + match[2], text)
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
