"""An answer as terminal tables and sentences; nothing here prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scipy.stats import norm

from spectheory.prediction.over_prompts import FEW, few_prompts
from spectheory.reports.validation_terms import FILTERS_JUDGE, JUDGES, PARTS, WITHIN

if TYPE_CHECKING:
    from rich.table import Table

_RULE = ("rule", "shape")
_SHORT = {"acceptance": "accept"}
"""Names that a column of 80 has no room for."""


def tokens_table(found: Mapping[str, Any]) -> Table:
    """Tokens per call at one temperature: counted, expected of the same texts, predicted from others."""
    table = _table(found, "tokens per call", "counted", "expected", "z, calls", "from trace")
    for record in found["settings"]:
        expected = record["expected"]
        cells = [f"{expected['tokens_per_call']:.3f}", z_cell(expected), _spread(record["trace"]["tokens_per_call"])]
        table.add_row(*_names(record), f"{record['tokens_per_call']['best']:.3f}", *cells)
    return table


def z_cell(expected: Mapping[str, Any]) -> str:
    """How far counted calls are off: in standard deviations, or in calls where that decides nothing."""
    if not expected.get("decides", True):
        return f"({expected['off']:+.0f} calls)"
    return "inf" if expected["z"] is None else f"{expected['z']:+.2f}"


def speedup_table(found: Mapping[str, Any]) -> Table:
    """Speed-up over plain decoding at one temperature: measured, predicted, and what the miss comes from."""
    names = ("measured", "predicted", "miss %", "passes %", "largest part")
    table = _table(found, "speed-up over plain decoding", *names)
    for record in found["settings"]:
        speedup, cells = record["speedup"], ["-", "-", ""]
        if "miss" in speedup:
            largest = speedup["largest"]
            part = f"{_SHORT.get(largest, largest)} {speedup['budget'][largest]['best']:+.0f}"
            cells = [_spread(speedup["miss"], "+.0f"), _spread(speedup["miss_of_passes"], "+.0f"), part]
        table.add_row(*_names(record), _spread(speedup["measured"]), _spread(speedup["predicted"]), *cells)
    return table


def _table(found: Mapping[str, Any], what: str, *columns: str) -> Table:
    from rich.table import Table

    title = f"Temperature {found['temperature']:g}: {what}"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 0, 0, 2))
    for column in (*_RULE, *columns):
        left = column in _RULE or column.startswith("largest")
        table.add_column(column, justify="left" if left else "right", no_wrap=column in _RULE)
    return table


def _names(record: Mapping[str, Any]) -> tuple[str, str]:
    return record["rule"], record["shape"].removeprefix("chain ").removeprefix("k-ary ")


def _spread(interval: Mapping[str, Any], form: str = ".2f") -> str:
    """The best value and half the width of its interval."""
    half = (interval["high"] - interval["low"]) / 2
    return f"{interval['best']:{form}}±{half:{form.removeprefix('+')}}"


def headline(content: Mapping[str, Any]) -> str:
    """Whether counted and expected calls agree, in one sentence."""
    compared, beyond = content["comparisons"], content["disagreements"]
    rate = f"false alarms {content['false_alarms']:g} in all"
    if beyond:
        return f"Counted and expected calls DISAGREE in {beyond} of {compared} comparisons ({rate})"
    if not compared:
        return "Counted and expected calls are in no comparison that decides"
    return f"Counted and expected calls agree in all {compared} comparisons ({rate})"


def undecided(content: Mapping[str, Any]) -> list[str]:
    """What decides nothing and why, in a sentence, if there is any."""
    records = [r["expected"] for f in content["temperatures"] for r in f["settings"] if r["expected"]]
    off = [round(abs(one["off"])) for one in records if not one.get("decides", True)]
    if not off:
        return []
    return [
        f"Comparisons that decide nothing: {len(off)}, of which off: {sum(map(bool, off))} (by {max(off)} calls at "
        "most). Nothing is random there given the text, but 16-bit models round a cached and a teacher-forced pass "
        "differently, and near-ties flip."
    ]


def notes(content: Mapping[str, Any]) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    expected = content["comparisons"] * 2 * norm.sf(WITHIN)
    lines = [
        f"|z| > {WITHIN:g} in {content['beyond_3']} of {content['comparisons']} comparisons; "
        f"in the normal limit chance gives {expected:.2g}.",
        *undecided(content),
        "expected: the path theorem for the very texts decoded; z: counted less expected calls, in standard "
        "deviations (0 where nothing is random and both are equal).",
        "from trace: predicted from other texts of the same prompts (at temperature 0 the same greedy texts, so it "
        "repeats expected); intervals (95%) are over prompts.",
    ]
    if content["median_miss"] is not None:
        lines.append(
            "Speed-up, measured against predicted from trace and latencies: median miss "
            f"{content['median_miss']:.1f}%; of the models' passes alone {content['median_miss_of_passes']:.1f}%."
        )
        lines.append(
            "miss %: 100 log(measured / predicted), which the parts of the budget add up to; passes %: the same "
            "without what is outside the models' passes. Parts:"
        )
        lines += [f"  {name}: {what}." for name, what in PARTS.items()]
    rules = {record["rule"] for found in content["temperatures"] for record in found["settings"]}
    if "lookup" in rules:
        lines.append(
            "lookup: nothing is random given the text; predicted seconds are of as many tokens as each call copies."
        )
    if rules & set(JUDGES):
        lines.append(
            "assisted: transformers decodes (token verification); its speed-up is over its own plain generation, its "
            "loop and the prompts included; predicted is of the models' passes alone."
        )
    if FILTERS_JUDGE in rules:
        lines.append("assisted-filters: the same with transformers' own temperature, top-k, top-p and min-p.")
    if any(r["expected"]["of_estimates"] for f in content["temperatures"] for r in f["settings"]):
        lines.append(
            "recursive-distinct trees: the rank law is estimated without bias; its error is part of z's and p's."
        )
    return [*lines, *few_prompts(content["provenance"].get("prompts", FEW))]
