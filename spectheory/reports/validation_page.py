"""Finished validations as one page: pairs side by side, then every setting; nothing here is decoded or timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spectheory.reports.render import markdown
from spectheory.reports.table import Column, Table, Value
from spectheory.reports.validation import control, largest_part, undecided, z_cell, z_column
from spectheory.reports.validation_terms import FALSE_ALARMS, WITHIN, median_miss, pair_name

Content = Mapping[str, Any]

_SUMMARY = (
    Column("pair", kind="words"),
    Column("temperature"),
    Column("comparisons"),
    Column("largest |z|"),
    Column(f"beyond {WITHIN:g}"),
    Column("calls refuted"),
    Column("counted / trace", digits=3),
    Column("speed-up, median miss", "%", digits=1),
    Column("of the passes alone", "%", digits=1),
)
_SETTINGS = (
    Column("rule, shape", kind="words"),
    Column("counted", digits=3),
    Column("expected", digits=3),
    z_column("z"),
    Column("from trace"),
    Column("speed-up"),
    Column("predicted"),
    Column("miss %", digits=0, signed=True),
    Column("largest part"),
)

_ABOUT = """# Predicted against measured

![Counted against predicted tokens per call and wall-clock against predicted speed-ups of {count} pairs on the diagonal;
the parts of the misses of the speed-ups](validation-pairs.svg)

(a) tokens per call counted by our decoders and by transformers' assisted generation, against those predicted from a
trace of other texts of the same prompts. (b) wall-clock speed-up over our plain decoder, against that predicted
from trace and latency table. (c) what the misses of the speed-ups are made of. Intervals are 95%, over prompts.
[Validating](../validating.md) says what is compared and what each part means; [validation.svg](validation.svg) names
the rules.

z is counted less expected calls over the standard deviation, where the path theorem gives both for the very texts that
were decoded; calls are refuted if a tail is below {alarms:g} over the comparisons of the pair. `counted / trace` is the
median over the settings; at temperature 0 the trace holds the same greedy texts, and it repeats `expected`.
"""


def page(answers: Sequence[Content]) -> str:
    """Markdown of the files that validations wrote: a line for each pair and temperature, then all settings of each."""
    parts = [
        _ABOUT.format(count=len(answers), alarms=FALSE_ALARMS).rstrip(),
        markdown(_summary(answers)),
        "\n".join(
            f"- {pair_name(answer)}: {' '.join([_circumstances(answer), *undecided(answer), *control(answer)])}"
            for answer in answers
        ),
    ]
    for answer in answers:
        for found in answer["temperatures"]:
            title = f"{pair_name(answer)}, temperature {found['temperature']:g}"
            parts.append(f"## {title}\n\n{markdown(Table(title, _SETTINGS, list(map(_setting, found['settings']))))}")
    return "\n\n".join(parts) + "\n"


def _summary(answers: Sequence[Content]) -> Table:
    """A line for each pair and temperature: calls against the path theorem and the trace, speed-ups against both."""
    lines = [_line(answer, found) for answer in answers for found in answer["temperatures"]]
    return Table("Validations", _SUMMARY, lines)


def _circumstances(answer: Content) -> str:
    made = answer["provenance"]
    how, machine, versions = made["settings"], made["hardware"], made["versions"]
    where = ", ".join(f"{name} {value}" for name, value in machine.items())
    return (
        f"{made['prompts']} prompts, {how['tokens']} tokens a text, seed {how['seed']}, {where}, "
        f"torch {versions['torch']}, transformers {versions['transformers']}."
    )


def _line(answer: Content, found: Content) -> list[Value]:
    expected = [one for one in (record["expected"] for record in found["settings"]) if one.get("decides", True)]
    sizes = [abs(one["z"]) if one["z"] is not None else np.inf for one in expected]
    ratios = [record["trace"]["counted_over_predicted"]["best"] for record in found["settings"]]
    misses = [record["speedup"] for record in found["settings"] if "miss" in record["speedup"]]
    limit = FALSE_ALARMS / max(answer["comparisons"], 1)
    return [
        pair_name(answer),
        f"{found['temperature']:g}",
        len(expected),
        float(max(sizes, default=0)),
        sum(size > WITHIN for size in sizes),
        sum(one["p"] < limit for one in expected),
        float(np.median(ratios)) if ratios else None,
        median_miss([one["miss"] for one in misses]),
        median_miss([one["miss_of_passes"] for one in misses]),
    ]


def _setting(record: Content) -> list[Value]:
    expected, speedup = record["expected"], record["speedup"]
    return [
        record["name"],
        record["tokens_per_call"]["best"],
        expected["tokens_per_call"],
        z_cell(expected),
        record["trace"]["tokens_per_call"]["best"],
        speedup["measured"]["best"],
        speedup["predicted"]["best"] if speedup["predicted"] else None,
        speedup["miss"]["best"] if "miss" in speedup else None,
        largest_part(speedup),
    ]
