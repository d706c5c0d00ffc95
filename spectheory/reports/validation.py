"""Validations: counted, expected and predicted tokens per call, speed-ups, where they miss; several as one page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from spectheory.answers.judged import ValidationJson
from spectheory.prediction.over_prompts import FEW, few_prompts
from spectheory.reports.base import Brief, Report, deviations, short
from spectheory.reports.table import Cell, Column, Table, Value
from spectheory.verification.registry import COUNTED, find_rule

Content = Mapping[str, Any]

SCHEMA = 1
"""Version of ``validation.json``."""
FALSE_ALARMS = 1e-3
"""A validation in which every expectation is right reports a disagreement this often at most."""
_LONGEST_RULE = 24
"""Letters of an n-gram draft with its settings."""
WITHIN = 3.0
"""Standard deviations that a right prediction leaves in 0.27% of comparisons."""
JUDGE, FILTERS_JUDGE, STRINGS = JUDGES = ("assisted", "assisted-filters", COUNTED)
"""transformers' assisted generation, which is token verification; the same with its own filters; its string matching
of drafts with another tokenizer, which is counted alone."""
PARTS = {
    "texts": "the texts are others than the trace's",
    "acceptance": "calls counted against those expected of these very texts",
    "cut": "calls as made against those predicted: fewer drafts where a text ends or a draft has no more, full "
    "acceptances",
    "drafting": "draft passes as timed against the table",
    "verifying": "verifying passes as timed against the table",
    "overhead": "a call outside the passes (drawing, verifying, moving caches), against the loop in the table",
    "plain": "plain decoding outside its passes: the same for the denominator",
}
"""The parts of the budget and what each holds against what."""


def median_miss(misses: Sequence[Mapping[str, float]]) -> float | None:
    """Median of |measured / predicted - 1|, in per cent."""
    sizes = [100 * abs(math.expm1(one["best"] / 100)) for one in misses]
    return float(np.median(sizes)) if sizes else None


def _shape_name(record: Mapping[str, Any]) -> str:
    """A chain by its length, a k-ary tree by its branching; other shapes as they are written."""
    return str(record["shape"]).removeprefix("chain ").removeprefix("k-ary ")


def pair_name(answer: Mapping[str, Any]) -> str:
    """Target and draft by name."""
    models = answer["provenance"]
    return f"{models['target']['name']} with {models['draft']['name']}"


# What is shown

_CONTROLS = {"per_position": "z, control", "fixed": "z, always k"}
"""Wrong readings of a record, and the columns that show them."""
_UNREFUTED = {
    "control": "Too little text: the wrong reading of this head per position is not refuted (--all).",
    "control_of_stopping": "Too little text: chains that always draft k are not refuted (--all).",
}
"""What a brief answer says where a wrong reading was not refuted."""
_SHORT = {"acceptance": "accept"}
"""Names that are too long for a terminal of 80 columns."""


def validation_report(content: Content) -> Report:
    """Two tables for each temperature of an answer."""
    pieces = [table(at) for at in content["temperatures"] for table in (_tokens_table, _speedup_table)]
    missed = [line for key, line in _UNREFUTED.items() if not content.get(key, {"refuted": True})["refuted"]]
    off = ["Some comparisons decide nothing: rounding flips near-ties (--all)."] if _undecided(content) else []
    said = headline(content)
    miss = content["median_miss"]
    speed = "" if miss is None else f"Speed-ups, measured against predicted: median miss {miss:.1f}%"
    few = few_prompts(content["provenance"].get("prompts", FEW))
    notes = [*_changing(content), *missed, *off, *few]
    brief = Brief.of([said.partition(" (")[0], speed], [_fastest(content)], notes)
    return Report(ValidationJson.view(content), pieces, said, _notes(content), brief)


_NAMES = (Column("rule", kind="names"), Column("shape", kind="names", at=_shape_name))


def _tokens_table(at: Content) -> Table:
    """Tokens per call at one temperature: counted, expected of the same texts, predicted from others."""
    controls = {name: words for name, words in _CONTROLS.items() if any(name in record for record in at["settings"])}
    drafted = [Column("drafted", at="drafted.counted"), Column("estimated", at="drafted.expected")]
    columns = [
        *_NAMES,
        Column("counted", digits=3, at="tokens_per_call.best"),
        Column("expected", digits=3, at="expected.tokens_per_call"),
        Column("z, calls", signed=True, at=_z),
        Column("from trace", at="trace.tokens_per_call"),
        *(
            Column(words, signed=True, at=lambda record, name=name: _z(record, name))  # type: ignore[misc]
            for name, words in controls.items()
        ),
        *(drafted if any("drafted" in record for record in at["settings"]) else []),
    ]
    return Table.of(f"Temperature {at['temperature']:g}: tokens per call", columns, at["settings"])


def _z(record: Content, control: str = "expected") -> Value:
    """How far counted calls are off what is expected, or what a wrong reading expects: in standard deviations, or in
    calls where that decides nothing; None where there is no such reading.
    """
    if (other := record.get(control)) is None:
        return None
    if not record["expected"].get("decides", True):
        return f"({other['off']:+.0f} calls)"
    return deviations(other["z"], other["off"])


def _control(content: Content) -> list[str]:
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


def _refuted(control: Content, reading: str, telling: str, remedy: str) -> str:
    where = f"{control['name']} at temperature {control['temperature']:g}"
    most = (
        f"the calls of {where} are certain and differ"
        if control["z"] is None
        else f"the largest |z| of random calls is {abs(control['z']):.1f} ({where})"
    )
    if control["refuted"]:
        return (
            f"Control: the same texts refute {reading} in {control['refuted_in']} of {control['comparisons']} "
            f"comparisons; {most}."
        )
    return f"Control NOT refuted: these texts do not {telling}; {most}. The power is too low: {remedy}."


def _speedup_table(at: Content) -> Table:
    """Speed-up over plain decoding at one temperature: measured, predicted, and what the miss comes from."""
    columns = [
        *_NAMES,
        Column("measured", at="speedup.measured"),
        Column("predicted", at="speedup.predicted"),
        Column("miss %", digits=0, signed=True, at="speedup.miss"),
        Column("passes %", digits=0, signed=True, at="speedup.miss_of_passes"),
        Column("largest part", kind="words", at=lambda record: _largest_part(record, _SHORT) or ""),
    ]
    return Table.of(f"Temperature {at['temperature']:g}: speed-up over plain decoding", columns, at["settings"])


def _largest_part(record: Content, short: Mapping[str, str] = {}) -> str | None:
    """The part of the budget that explains most of the miss, in per cent."""
    speedup = record["speedup"]
    if "miss" not in speedup:
        return None
    largest = speedup["largest"]
    return f"{short.get(largest, largest)} {speedup['budget'][largest]['best']:+.0f}"


def headline(content: Content) -> str:
    """Whether counted and expected calls agree, in one sentence."""
    compared, beyond = content["comparisons"], content["disagreements"]
    rate = f"false alarms {content['false_alarms']:g} in all"
    if beyond:
        return f"Counted and expected calls DISAGREE in {beyond} of {compared} comparisons ({rate})"
    if not compared:
        return "Counted and expected calls are in no comparison that decides"
    every = f"all {compared} comparisons" if compared > 1 else "the only comparison"
    return f"Counted and expected calls agree in {every} ({rate})"


def _undecided(content: Content) -> list[str]:
    """Which comparisons decide nothing and why, in a sentence, if there are any."""
    records = [r["expected"] for f in content["temperatures"] for r in f["settings"] if r["rule"] != STRINGS]
    off = [round(abs(one["off"])) for one in records if not one.get("decides", True)]
    if not off:
        return []
    return [
        f"Comparisons that decide nothing: {len(off)}, of which off: {sum(map(bool, off))} (by {max(off)} calls at "
        "most). Nothing is random there given the text, but 16-bit models round a cached and a teacher-forced pass "
        "differently, and near-ties flip."
    ]


def _changing(content: Content) -> list[str]:
    """The rules whose output is not the target's."""
    records = [record for at in content["temperatures"] for record in at["settings"] if "lossless" in record]
    return [
        f"{rule} changes the text: expected is given its own texts (Y7), from trace an estimate along the target's."
        for rule in dict.fromkeys(record["rule"] for record in records)
    ]


def _notes(content: Content) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    expected = content["comparisons"] * 2 * ndtr(-WITHIN)
    lines = [
        f"|z| > {WITHIN:g} in {content['beyond_3']} of {content['comparisons']} comparisons; "
        f"in the normal limit chance gives {expected:.2g}.",
        *_undecided(content),
        *_control(content),
        *content.get("left_out", ()),
        *_changing(content),
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
    rules = {record["rule"] for at in content["temperatures"] for record in at["settings"]}
    lines += [
        f"{name}: nothing is random given the text; predicted seconds are of as many tokens as each call copies, from "
        "this request's prompt and text alone."
        for name in sorted(rules)
        if name not in JUDGES and not find_rule(name).uses_draft
    ]
    if rules & set(JUDGES):
        lines.append(
            "assisted: transformers decodes (token verification); its speed-up is over its own plain generation, its "
            "loop and the prompts included; predicted is of the models' passes alone."
        )
    if FILTERS_JUDGE in rules:
        lines.append("assisted-filters: the same with transformers' own temperature, top-k, top-p and min-p.")
    if STRINGS in rules:
        lines.append(
            "strings: transformers' string matching (SLEM), counted; expected, z and predicted beside it are of token "
            "verification of the tokens in common, on the same texts, and decide nothing."
        )
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


def _fastest(content: Content) -> Table:
    """What is shown first: the fastest shape of each rule at each temperature, the fastest rule first."""
    columns = [
        Column("T", digits=1),
        Column("rule", kind="names"),
        Column("largest |z|"),
        Column("fastest shape", kind="words", meaning="shape with the largest measured speed-up"),
        Column("tokens per call", meaning="tokens per call of that shape, counted"),
        Column("measured", "x", meaning="speed-up over plain decoding that was timed"),
        Column("predicted", "x", meaning="speed-up that the trace and the latencies predict"),
    ]
    rows: list[list[Value | Cell]] = []
    for at in content["temperatures"]:
        by_rule: dict[str, list[Content]] = {}
        for record in sorted(at["settings"], key=lambda record: str(record["rule"])):
            by_rule.setdefault(record["rule"], []).append(record)
        fastest = {rule: max(records, key=_measured) for rule, records in by_rule.items()}
        for i, (rule, best) in enumerate(sorted(fastest.items(), key=lambda item: -_measured(item[1]))):
            predicted, sizes = best["speedup"]["predicted"], _sizes(by_rule[rule])
            largest = "inf" if math.inf in sizes else max(sizes, default=None)  # certain calls that differ
            values = [short(rule, _LONGEST_RULE), largest, _shape_name(best), best["tokens_per_call"]["best"]]
            values += [_measured(best), predicted["best"] if predicted else None]
            rows.append([at["temperature"], *(Cell(value, best=i == 0) for value in values)])
    return Table("The fastest shape of each rule, the fastest rule first", columns, rows)


def _measured(record: Content) -> float:
    return float(record["speedup"]["measured"]["best"])


def _deciding(records: Sequence[Content]) -> list[Content]:
    return [one for one in (record["expected"] for record in records) if one.get("decides", True)]


def _sizes(records: Sequence[Content]) -> list[float]:
    """|z| of the comparisons that decide."""
    return [math.inf if one["z"] is None else abs(float(one["z"])) for one in _deciding(records)]


# Several validations as one page


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
    Column("rule, shape", kind="words", at="name"),
    Column("counted", digits=3, at="tokens_per_call.best"),
    Column("expected", digits=3, at="expected.tokens_per_call"),
    Column("z", signed=True, at=_z),
    Column("from trace", at="trace.tokens_per_call.best"),
    Column("speed-up", at="speedup.measured.best"),
    Column("predicted", at="speedup.predicted.best"),
    Column("miss %", digits=0, signed=True, at="speedup.miss.best"),
    Column("largest part", at=_largest_part),
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
    lines = [_line(answer, at) for answer in answers for at in answer["temperatures"]]
    parts = [
        _ABOUT.format(count=len(answers), alarms=FALSE_ALARMS).rstrip(),
        Table("Validations", _SUMMARY, lines).markdown,
        "\n".join(
            f"- {pair_name(answer)}: {' '.join([_circumstances(answer), *_undecided(answer), *_control(answer)])}"
            for answer in answers
        ),
    ]
    for answer in answers:
        for at in answer["temperatures"]:
            title = f"{pair_name(answer)}, temperature {at['temperature']:g}"
            parts.append(f"## {title}\n\n{Table.of(title, _SETTINGS, at['settings']).markdown}")
    return "\n\n".join(parts) + "\n"


def _circumstances(answer: Content) -> str:
    made = answer["provenance"]
    how, machine, versions = made["settings"], made["hardware"], made["versions"]
    where = ", ".join(f"{name} {value}" for name, value in machine.items())
    return (
        f"{made['prompts']} prompts, {how['tokens']} tokens a text, seed {how['seed']}, {where}, "
        f"torch {versions['torch']}, transformers {versions['transformers']}."
    )


def _line(answer: Content, at: Content) -> list[Value]:
    """Calls against the path theorem and the trace, speed-ups against both, of a pair at a temperature."""
    settings, limit = at["settings"], FALSE_ALARMS / max(answer["comparisons"], 1)
    sizes = _sizes(settings)
    ratios = [record["trace"]["counted_over_predicted"]["best"] for record in settings]
    misses = [record["speedup"] for record in settings if "miss" in record["speedup"]]
    return [
        pair_name(answer),
        f"{at['temperature']:g}",
        len(sizes),
        float(max(sizes, default=0)),
        sum(size > WITHIN for size in sizes),
        sum(one["p"] < limit for one in _deciding(settings)),
        float(np.median(ratios)) if ratios else None,
        median_miss([one["miss"] for one in misses]),
        median_miss([one["miss_of_passes"] for one in misses]),
    ]
