"""The part of docs/engines.md on predicted throughput, from what `serving.py` wrote."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

ANSWER = Path(__file__).parent / "results" / "serving.json"
PAGE = Path(__file__).parents[1] / "docs" / "engines.md"
BEGIN, END = "<!-- written by benchmarks/_serving_page.py -->", "<!-- end of serving -->"


def renewed(page: str) -> str:
    """The page with the part of the answer."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{_words()}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"


def table() -> str:
    """Every setting that was predicted, as Markdown."""
    lines = ["| concurrency | k | measured, tokens/s | predicted, tokens counted | predicted, tokens of a trace |"]
    lines.append("| ---: | ---: | ---: | ---: | ---: |")
    for row in _answer()["settings"]:
        cells = [f"{row[f'predicted_by_{name}']:.0f} ({row[f'miss_by_{name}']:+.0%})" for name in ("counts", "trace")]
        lines.append(f"| {row['concurrency']} | {row['k']} | {row['measured']:.0f} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def _words() -> str:
    """The miss in sentences."""
    answer = _answer()
    rows, again, loads = answer["settings"], answer["two_runs_differ"], answer["load_average"]
    within, beyond = (
        [abs(row["miss_by_trace"]) for row in rows if (row["concurrency"] > 1) is inside] for inside in (True, False)
    )
    tokens = max(abs(row["miss_by_trace"] - row["miss_by_counts"]) for row in rows)
    lines = [
        f"Between timed concurrencies, at 4 and 8, the prediction with the trace's tokens misses by {_miss(within)}.",
        f"At concurrency 1, below all that are left, it misses by {_miss(beyond)}.",
        f"With counted tokens per call instead it moves by {tokens:.1%} of the throughput at most: the miss is that of "
        "the times.",
        f"The two runs themselves differ by {again['median']:.0%} in the median and {again['largest']:.0%} at most.",
        *map(_few, answer["few_points"]),
        f"llama.cpp {answer['engine']} with `{answer['arguments']}`, {answer['machine']['processor']}; medians of "
        f"{answer['repeats']} repeats, context {answer['context']}; other work at load averages of {min(loads):.0f} to "
        f"{max(loads):.0f} was kept off by a real-time priority.",
    ]
    return "\n".join(fill(line, 120) for line in lines)


def _miss(misses: list[float]) -> str:
    return f"{statistics.median(misses):.0%} in the median and {max(misses):.0%} at most"


def _few(few: Mapping[str, Any]) -> str:
    """What a fit of a few concurrencies gives."""
    fit = f"A fit of concurrencies {', '.join(map(str, few['concurrencies']))} alone"
    if "refused" in few:
        return f"{fit} is refused: {few['refused']}."
    return (
        f"{fit} misses step times at the others by {few['median']:.0%} in the median and {few['largest']:.0%} at most."
    )


def _answer() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(ANSWER.read_text())
    return answer


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
