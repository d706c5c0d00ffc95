"""What adaptive draft lengths are worth: a sentence, a table, and what its columns mean (§11)."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.prediction.answer import AdaptiveWorth
from spectheory.reports.table import Column, Row, Table

NOTES = (
    "Best stopping rule: thresholds at quantiles of what the trace records of the draft. The one shown is best on all "
    "prompts; each prompt is scored with the one that is best on others.",
    "No adaptive length more than: an upper bound. It knows the accepted drafts of every call beforehand, so no rule "
    "that looks at the draft or at the text so far reaches it.",
)


def adaptive_sentence(found: Sequence[AdaptiveWorth]) -> str:
    """What adapting is worth for the rule that is fastest with fixed lengths."""
    best = max(found, key=lambda each: each.fixed.gain)
    fixed, stopped = best.fixed.speedup, best.stopped.speedup
    assert fixed is not None
    assert stopped is not None
    return (
        f"Adaptive lengths are worth at most {100 * best.worth:.1f}% {_of(best)}: best fixed k "
        f"{best.fixed.shape.nodes} gives {fixed.best:.2f}x, the best stopping rule {_stop(best)} {stopped.short()}x, "
        f"no adaptive length more than {best.limit.best:.2f}x"
    )


def adaptive_table(found: Sequence[AdaptiveWorth]) -> Table:
    """A row per rule: fixed lengths, stopping rules, and the limit of all adaptive lengths."""
    columns = [
        *([Column("draft", kind="words")] if found[0].draft else []),
        Column("rule", kind="words"),
        Column("best\nfixed k"),
        Column("speed-up", "x", meaning="with that k"),
        Column("best\nstopping rule", kind="names"),
        Column("speed-up", "x", meaning="with that stopping rule, on prompts it was not chosen on"),
        Column("drafted\nper call", aside=True),
        Column("no adaptive\nlength more than", "x"),
    ]
    rows: list[Row] = [
        [
            *([each.draft] if each.draft else []),
            each.rule.name,
            each.fixed.shape.nodes,
            each.fixed.speedup,
            _stop(each),
            each.stopped.speedup,
            each.stopped.drafted,
            each.limit,
        ]
        for each in found
    ]
    title = f"What adaptive lengths are worth, at most {found[0].stopped.shape.nodes} drafts a call"
    return Table(title, columns, rows, NOTES)


def _of(found: AdaptiveWorth) -> str:
    """The setting that is compared."""
    return f"with {found.rule.label}" + (f" of draft {found.draft}" if found.draft else "")


def _stop(found: AdaptiveWorth) -> str:
    """The stopping rule that is best on all prompts."""
    return str(found.stopped.label.stop)
