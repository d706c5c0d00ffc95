"""Recorded lengths: what other readings of the same log say, and what a reader must know of them (§10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spectheory.prediction import Prediction
from spectheory.prediction.answer import RecordedReading
from spectheory.prediction.per_prompt import HEAVY
from spectheory.prediction.recorded import BEST
from spectheory.reports.table import Column, Row, Table
from spectheory.trace import LEFT_OUT
from spectheory.trace.calls import is_count

OF_LENGTHS = (
    "From accepted lengths at every start: exact for the texts of the log and the decoding it was recorded in, for "
    "every k up to the longest length of each draft ({most}); intervals (95%) are over requests."
)
OF_BEST = (
    f"{BEST}: the draft that accepts more at each start, a choice that knows the text. No choice made before drafting "
    "is known to reach it. Every call is charged the draft model's passes."
)


def recorded_table(readings: Sequence[RecordedReading]) -> Table:
    """Tokens per call by start, by position and i.i.d., for every draft and k."""
    rows: list[Row] = [
        [each.draft, each.k, each.by_start, each.over_requests, each.by_position, each.iid, _percent(each)]
        for each in readings
    ]
    columns = [Column("draft", kind="words"), Column("k"), Column("by start"), Column("mean of requests")]
    columns += [
        Column("by position", aside=True),
        Column("i.i.d. (C1)", aside=True),
        Column("off", "%", digits=1, signed=True, aside=True),
    ]
    notes = (
        "by start: the calls of all requests pooled; mean of requests: of each one's own tokens per call.",
        "by position: each position's first draft, as if it did not depend on where the call starts; i.i.d.: the share "
        "of first drafts accepted, at every depth. Both are idealised values. off: by position against by start.",
    )
    return Table("What other readings of the log would have said, tokens per call", columns, rows, notes)


def _percent(reading: RecordedReading) -> float:
    return 100 * (reading.by_position / reading.by_start.best - 1)


def recorded_notes(provenance: Mapping[str, Any], readings: Sequence[RecordedReading]) -> list[str]:
    """What holds of recorded lengths, a sentence each."""
    drafts = {each.draft: each for each in readings if each.draft != BEST}.values()
    most = ", ".join(f"{each.draft} {each.most}" for each in drafts)
    lines = [OF_LENGTHS.format(most=most), _decoding(provenance)]
    for each in drafts:
        if each.recut is None:
            continue
        fails = "" if each.recut == 1.0 else ": a log of one k cannot be re-cut into another k"
        lines.append(
            f"{each.draft}: after a start that accepts a drafts, 0 < a < {each.most}, the next start accepts a - 1 in "
            f"{100 * (each.recut or 0):.1f}% of the cases{fails}."
        )
    if any(each.draft == BEST for each in readings):
        lines.append(OF_BEST)
    return [*lines, *(f"{_of_largest(each)}." for each in readings[:1] if not each.largest.heavy)]


def kept(provenance: Mapping[str, Any], readings: Sequence[RecordedReading]) -> str:
    """How many requests of the log the answer is of, where some are left out."""
    left_out = provenance.get(LEFT_OUT)
    if not (readings and is_count(left_out) and left_out):
        return ""
    requests = readings[0].largest.of
    return f"{requests} of {requests + left_out} requests: the others' lists are not of their text's length"


def heavy(readings: Sequence[RecordedReading], best: Prediction) -> list[str]:
    """A warning where a few long requests decide, with the mean over requests of the best setting."""
    here = [each for each in readings if (each.draft, each.k) == (best.rule.name, best.shape.nodes)]
    if not (here and here[0].largest.heavy):
        return []
    return [
        f"{_of_largest(here[0])}, above {100 * HEAVY:.0f}%: they decide tokens per call, whose 95% intervals are then "
        f"too short. The mean over requests is {here[0].over_requests} at this setting (pooled {here[0].by_start})."
    ]


def _of_largest(reading: RecordedReading) -> str:
    few = reading.largest
    return f"The longest 1% of the requests, {few.prompts} of {few.of}, hold {100 * few.share:.1f}% of the tokens"


def _decoding(provenance: Mapping[str, Any]) -> str:
    settings = provenance.get("settings")
    sampling = settings.get("sampling") if isinstance(settings, dict) else None
    temperature = sampling.get("temperature") if isinstance(sampling, dict) else None
    if temperature is None:
        return "The log does not say at which temperature it was recorded."
    return f"Recorded at temperature {temperature:g}; other settings accept other lengths."
