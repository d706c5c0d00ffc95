"""Finished validations as one page: pairs side by side, then every setting; nothing here is decoded or timed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from spectheory.reports.validation_table import undecided, z_cell
from spectheory.reports.validation_terms import FALSE_ALARMS, WITHIN, median_miss

Content = Mapping[str, Any]

_SUMMARY = (
    "pair",
    "temperature",
    "comparisons",
    "largest |z|",
    f"beyond {WITHIN:g}",
    "calls refuted",
    "counted / trace",
    "speed-up, median miss",
    "of the passes alone",
)
_SETTINGS = ("rule, shape", "counted", "expected", "z", "from trace", "speed-up", "predicted", "miss %", "largest part")


_ABOUT = """# Predicted against measured

![Counted against predicted tokens per call and wall-clock against predicted speed-ups of {count} pairs on the diagonal;
the parts of the misses of the speed-ups](validation-pairs.svg)

Left: tokens per call counted by our decoders and by transformers' assisted generation, against those predicted from a
trace of other texts of the same prompts. Middle: wall-clock speed-up over our plain decoder, against that predicted
from trace and latency table. Right: what the misses of the speed-ups are made of. Intervals are 95%, over prompts.
[Validating](../validating.md) says what is compared and what each part means; [validation.svg](validation.svg) names
the rules.

z is counted less expected calls over the standard deviation, where the path theorem gives both for the very texts that
were decoded; calls are refuted if a tail is below {alarms:g} over the comparisons of the pair. `counted / trace` is the
median over the settings; at temperature 0 the trace holds the same greedy texts, and it repeats `expected`.
"""


def page(answers: Sequence[Content]) -> str:
    """Markdown: a line for each pair and temperature, then a table of all settings of each.

    Parameters
    ----------
    answers : sequence of dict
        As :func:`~spectheory.measure.validation.validate` gives them, or their files.
    """
    parts = [
        _ABOUT.format(count=len(answers), alarms=FALSE_ALARMS).rstrip(),
        summary(answers),
        "\n".join(
            f"- {pair_name(answer)}: {' '.join([_circumstances(answer), *undecided(answer)])}" for answer in answers
        ),
    ]
    for answer in answers:
        for found in answer["temperatures"]:
            title = f"{pair_name(answer)}, temperature {found['temperature']:g}"
            parts.append(f"## {title}\n\n{_table(_SETTINGS, map(_setting, found['settings']))}")
    return "\n\n".join(parts) + "\n"


def summary(answers: Sequence[Content]) -> str:
    """A Markdown table with a line for each pair and temperature.

    Tokens per call are held against the path theorem for the very texts (`z`, refuted by tails at a rate of
    false alarms that all comparisons of a pair share) and against the trace of other texts (the median ratio);
    speed-ups against trace and latencies.
    """
    return _table(_SUMMARY, (_line(answer, found) for answer in answers for found in answer["temperatures"]))


def pair_name(answer: Content) -> str:
    """Target and draft by name."""
    models = answer["provenance"]
    return f"{models['target']['name']} with {models['draft']['name']}"


def _circumstances(answer: Content) -> str:
    made = answer["provenance"]
    how, machine, versions = made["settings"], made["hardware"], made["versions"]
    where = ", ".join(f"{name} {value}" for name, value in machine.items())
    return (
        f"{made['prompts']} prompts, {how['tokens']} tokens a text, seed {how['seed']}, {where}, "
        f"torch {versions['torch']}, transformers {versions['transformers']}."
    )


def _line(answer: Content, found: Content) -> list[str]:
    compared = [record["expected"] for record in found["settings"] if record["expected"]]
    expected = [one for one in compared if one.get("decides", True)]
    sizes = [abs(one["z"]) if one["z"] is not None else np.inf for one in expected]
    ratios = [r["trace"]["counted_over_predicted"]["best"] for r in found["settings"] if r["trace"]]
    misses = [record["speedup"] for record in found["settings"] if "miss" in record["speedup"]]
    limit = FALSE_ALARMS / max(answer["comparisons"], 1)
    return [
        pair_name(answer),
        f"{found['temperature']:g}",
        str(len(expected)),
        f"{max(sizes, default=0):.2f}",
        str(sum(size > WITHIN for size in sizes)),
        str(sum(one["p"] < limit for one in expected)),
        f"{np.median(ratios):.3f}" if ratios else "-",
        _percent(median_miss([one["miss"] for one in misses])),
        _percent(median_miss([one["miss_of_passes"] for one in misses])),
    ]


def _setting(record: Content) -> list[str]:
    expected, speedup = record["expected"], record["speedup"]
    cells = ["-", "-", "-"]
    if expected:
        cells = [
            f"{expected['tokens_per_call']:.3f}",
            z_cell(expected),
            f"{record['trace']['tokens_per_call']['best']:.2f}",
        ]
    miss = ["-", "-"]
    if "miss" in speedup:
        part = speedup["largest"]
        miss = [f"{speedup['miss']['best']:+.0f}", f"{part} {speedup['budget'][part]['best']:+.0f}"]
    predicted = f"{speedup['predicted']['best']:.2f}" if speedup["predicted"] else "-"
    counted = f"{record['tokens_per_call']['best']:.3f}"
    return [record["name"], counted, *cells, f"{speedup['measured']['best']:.2f}", predicted, *miss]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}%"


def _table(head: Sequence[str], rows: Iterable[list[str]]) -> str:
    ruler = ["---", *["---:"] * (len(head) - 1)]
    lines = [" | ".join(cell.replace("|z|", "\\|z\\|") for cell in row) for row in [head, ruler, *rows]]
    return "\n".join(f"| {line} |" for line in lines)
