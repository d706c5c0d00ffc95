"""A validation's answer: counted, expected and predicted tokens per call, speed-ups, and where they miss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from scipy.special import ndtr

from spectheory.intervals import Interval
from spectheory.prediction.over_prompts import FEW, few_prompts
from spectheory.reports.base import Brief, Report
from spectheory.reports.brief import narrowed, short, verdict
from spectheory.reports.table import Cell, Column, Row, Table, Value
from spectheory.reports.validation_terms import FILTERS_JUDGE, JUDGES, PARTS, WITHIN, shape_name

Content = Mapping[str, Any]

_NAMES = (Column("rule", kind="names"), Column("shape", kind="names"))
CONTROLS = {"per_position": "z, control", "fixed": "z, always k"}
"""Wrong readings of a record, and the columns that show them."""
UNREFUTED = {
    "control": "Too little text: the wrong reading of this head per position is not refuted (--all).",
    "control_of_stopping": "Too little text: chains that always draft k are not refuted (--all).",
}
"""What a brief answer says where a wrong reading was not refuted."""
_SHORT = {"acceptance": "accept"}
"""Names that are too long for a terminal of 80 columns."""
COPIED = {"lookup": "", "suffix": ", from this request's prompt and text alone, as decoded and expected"}
"""Rules whose drafts are copied, and what more is to say of their seconds."""


def validation_report(content: Content) -> Report:
    """Two tables for each temperature of an answer."""
    pieces = [table(found) for found in content["temperatures"] for table in (_tokens_table, _speedup_table)]
    missed = [line for key, line in UNREFUTED.items() if not content.get(key, {"refuted": True})["refuted"]]
    off = ["Some comparisons decide nothing: rounding flips near-ties (--all)."] if undecided(content) else []
    brief = validation_brief(content, headline(content).partition(" (")[0], [*missed, *off])
    return Report(content, pieces, headline(content), _notes(content), brief)


def _tokens_table(found: Content) -> Table:
    """Tokens per call at one temperature: counted, expected of the same texts, predicted from others."""
    columns = [Column("counted", digits=3), Column("expected", digits=3), z_column("z, calls"), Column("from trace")]
    controls = [name for name in CONTROLS if any(name in record for record in found["settings"])]
    rows = [
        [
            *_names(record),
            record["tokens_per_call"]["best"],
            record["expected"]["tokens_per_call"],
            z_cell(record["expected"]),
            Interval(**record["trace"]["tokens_per_call"]),
            *(_control_cell(record, name) for name in controls),
            *([record["drafted"]["counted"], Interval(**record["drafted"]["expected"])] if "drafted" in record else []),
        ]
        for record in found["settings"]
    ]
    columns += [z_column(CONTROLS[name]) for name in controls]
    if any("drafted" in record for record in found["settings"]):
        columns += [Column("drafted", digits=2), Column("estimated")]
    return Table(_title(found, "tokens per call"), [*_NAMES, *columns], rows)


def z_column(heading: str) -> Column:
    """The column of :func:`z_cell`."""
    return Column(heading, signed=True)


def z_cell(expected: Content) -> Value:
    """How far counted calls are off: in standard deviations, or in calls where that decides nothing."""
    if not expected.get("decides", True):
        return f"({expected['off']:+.0f} calls)"
    return math.copysign(math.inf, expected["off"]) if expected["z"] is None else float(expected["z"])


def _control_cell(record: Content, name: str) -> Value:
    """How far counted calls are off what a wrong reading expects; None where there is none."""
    control = record.get(name)
    return None if control is None else z_cell(control | {"decides": record["expected"]["decides"]})


def control(content: Content) -> list[str]:
    """Whether the wrong readings were refuted, a sentence each; nothing where there are none."""
    return [_refuted(content[key], *words) for key, words in _READINGS.items() if key in content]


_READINGS = {
    "control": (
        "the reading of this head per position",
        "tell this head's pmfs by start from those per position",
        "decode more tokens or longer drafts",
    ),
    "control_of_stopping": (
        "chains that always draft k",
        "tell stopped chains from those that always draft k",
        "decode more tokens, or use another threshold",
    ),
}
"""The wrong readings: what they are, what texts do that refute them, and what to do where none does."""


def _refuted(found: Content, reading: str, telling: str, remedy: str) -> str:
    where = f"{found['name']} at temperature {found['temperature']:g}"
    most = (
        f"the calls of {where} are certain and differ"
        if found["z"] is None
        else f"the largest |z| of random calls is {abs(found['z']):.1f} ({where})"
    )
    if found["refuted"]:
        return (
            f"Control: the same texts refute {reading} in {found['refuted_in']} of {found['comparisons']} comparisons; "
            f"{most}."
        )
    return f"Control NOT refuted: these texts do not {telling}; {most}. The power is too low: {remedy}."


def _speedup_table(found: Content) -> Table:
    """Speed-up over plain decoding at one temperature: measured, predicted, and what the miss comes from."""
    columns = [Column("measured"), Column("predicted"), Column("miss %", digits=0, signed=True)]
    rows = [
        [
            *_names(record),
            *(Interval(**record["speedup"][name]) for name in ("measured", "predicted")),
            *(Interval(**record["speedup"][n]) if n in record["speedup"] else None for n in ("miss", "miss_of_passes")),
            largest_part(record["speedup"], _SHORT) or "",
        ]
        for record in found["settings"]
    ]
    columns += [Column("passes %", digits=0, signed=True), Column("largest part", kind="words")]
    return Table(_title(found, "speed-up over plain decoding"), [*_NAMES, *columns], rows)


def largest_part(speedup: Content, short: Mapping[str, str] = {}) -> str | None:
    """The part of the budget that explains most of the miss, in per cent."""
    if "miss" not in speedup:
        return None
    largest = speedup["largest"]
    return f"{short.get(largest, largest)} {speedup['budget'][largest]['best']:+.0f}"


def _title(found: Content, what: str) -> str:
    return f"Temperature {found['temperature']:g}: {what}"


def _names(record: Content) -> tuple[str, str]:
    return record["rule"], shape_name(record)


def headline(content: Content) -> str:
    """Whether counted and expected calls agree, in one sentence."""
    compared, beyond = content["comparisons"], content["disagreements"]
    rate = f"false alarms {content['false_alarms']:g} in all"
    if beyond:
        return f"Counted and expected calls DISAGREE in {beyond} of {compared} comparisons ({rate})"
    if not compared:
        return "Counted and expected calls are in no comparison that decides"
    return f"Counted and expected calls agree in all {compared} comparisons ({rate})"


def undecided(content: Content) -> list[str]:
    """Which comparisons decide nothing and why, in a sentence, if there are any."""
    records = [r["expected"] for f in content["temperatures"] for r in f["settings"] if r["expected"]]
    off = [round(abs(one["off"])) for one in records if not one.get("decides", True)]
    if not off:
        return []
    return [
        f"Comparisons that decide nothing: {len(off)}, of which off: {sum(map(bool, off))} (by {max(off)} calls at "
        "most). Nothing is random there given the text, but 16-bit models round a cached and a teacher-forced pass "
        "differently, and near-ties flip."
    ]


def _notes(content: Content) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    expected = content["comparisons"] * 2 * ndtr(-WITHIN)
    lines = [
        f"|z| > {WITHIN:g} in {content['beyond_3']} of {content['comparisons']} comparisons; "
        f"in the normal limit chance gives {expected:.2g}.",
        *undecided(content),
        *control(content),
        *content.get("left_out", ()),
        "expected: the path theorem for the very texts decoded; z: counted minus expected calls, in standard "
        "deviations (0 where nothing is random and both are equal).",
        "from trace: predicted from other texts of the same prompts (at temperature 0 the same greedy texts, so it "
        "repeats expected); intervals (95%) are over prompts.",
    ]
    if content["median_miss"] is not None:
        lines += [
            "Speed-up, measured against predicted from trace and latencies: median miss "
            f"{content['median_miss']:.1f}%; of the models' passes alone {content['median_miss_of_passes']:.1f}%.",
            "miss %: 100 log(measured / predicted), the sum of the parts below; passes %: the same without the time "
            "outside the models' passes. Parts:",
            *(f"  {name}: {what}." for name, what in PARTS.items()),
        ]
    rules = {record["rule"] for found in content["temperatures"] for record in found["settings"]}
    lines += [
        f"{name}: nothing is random given the text; predicted seconds are of as many tokens as each call copies{more}."
        for name, more in COPIED.items()
        if name in rules
    ]
    if rules & set(JUDGES):
        lines.append(
            "assisted: transformers decodes (token verification); its speed-up is over its own plain generation, its "
            "loop and the prompts included; predicted is of the models' passes alone."
        )
    if FILTERS_JUDGE in rules:
        lines.append("assisted-filters: the same with transformers' own temperature, top-k, top-p and min-p.")
    if "control_of_stopping" in content:
        lines.append(
            "A stopping rule reads q after temperature and filters, at temperature 0 the plain softmax, as engines do. "
            "Speed-ups have no parts: what is drafted after a mismatch is estimated."
        )
        drafted = [r["drafted"] for f in content["temperatures"] for r in f["settings"] if "drafted" in r]
        lines.append(
            f"drafted: tokens drafted per call, counted and estimated by likelihood ratios along the same texts; "
            f"{sum(one['inside'] for one in drafted)} of {len(drafted)} counts are within their 95% intervals."
        )
    if any(r["expected"]["of_estimates"] for f in content["temperatures"] for r in f["settings"]):
        lines.append(
            "recursive-distinct trees: the rank law is estimated without bias; its error is part of z's and p's."
        )
    return [*lines, *few_prompts(content["provenance"].get("prompts", FEW))]


def validation_brief(content: Content, agreement: str, notes: Sequence[str]) -> Brief:
    """The `agreement` of counts, how far speed-ups miss, and a row for each temperature and rule."""
    miss = content["median_miss"]
    speed = "" if miss is None else f"Speed-ups, measured against predicted: median miss {miss:.1f}%"
    prompts = few_prompts(content["provenance"].get("prompts", FEW))
    return Brief(verdict(agreement, speed), [narrowed(_table(content))], [*notes, *prompts])


def _table(content: Content) -> Table:
    columns = [
        Column("T", digits=1),
        Column("rule", kind="names"),
        Column("largest |z|"),
        Column("fastest shape", kind="words", meaning="shape with the largest measured speed-up"),
        Column("tokens per call", meaning="tokens per call of that shape, counted"),
        Column("measured", "x", meaning="speed-up over plain decoding that was timed"),
        Column("predicted", "x", meaning="speed-up that the trace and the latencies predict"),
    ]
    rows = [row for found in content["temperatures"] for row in _rows(found)]
    return Table("The fastest shape of each rule, the fastest rule first", columns, rows)


def _rows(found: Content) -> list[Row]:
    """The rules at one temperature."""
    by_rule = [list(records) for _, records in groupby(sorted(found["settings"], key=_rule), key=_rule)]
    by_rule.sort(key=lambda records: -max(map(_measured, records)))
    return [
        [found["temperature"], *(Cell(value, best=i == 0) for value in _row(records))]
        for i, records in enumerate(by_rule)
    ]


def _rule(record: Content) -> str:
    return str(record["rule"])


def _measured(record: Content) -> float:
    return float(record["speedup"]["measured"]["best"])


def _row(records: Sequence[Content]) -> list[Value]:
    fastest = max(records, key=_measured)
    predicted, tokens = fastest["speedup"]["predicted"], fastest["tokens_per_call"]["best"]
    speedups = [_measured(fastest), predicted["best"] if predicted else None]
    return [short(_rule(fastest)), _largest(records), shape_name(fastest), tokens, *speedups]


def _largest(records: Sequence[Content]) -> Value:
    """The largest |z| of the comparisons that decide; infinite where certain calls differ."""
    deciding = [one for one in (record["expected"] for record in records) if one.get("decides", True)]
    if any(one["z"] is None for one in deciding):
        return "inf"
    return max((abs(float(one["z"])) for one in deciding), default=None)
