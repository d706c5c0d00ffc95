"""Causes in a model's settings: the pair is read again as the fault would have it, and counts are compared with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spectheory.distributions import Sampling
from spectheory.errors import TextError, TraceError
from spectheory.judging.causes.base import EXPLAINED, Cause, Context, Finding
from spectheory.judging.changes import DRAFT_CUTS, SETTINGS_CHANGES, LogitChange
from spectheory.judging.output import output_tests
from spectheory.trace import Trace

if TYPE_CHECKING:
    from spectheory.judging.standing import Standing

Model = Literal["draft", "target", "draft and target"]


@dataclass(frozen=True)
class Explained:
    """A rule that is refuted as stated and not under a change."""

    change: LogitChange
    before: Standing
    after: Standing


def draft_changed(name: str, meaning: str, changes: Sequence[LogitChange]) -> Cause:
    """A cause in how drafts are sampled; the output stays right."""

    def explains(context: Context) -> Finding | None:
        read = _readings(context, "draft", changes)
        found = [one for change, trace in read for one in _fitting(context, change, trace)]
        return _finding(name, found) if found else None

    return Cause(name, meaning, explains)


def target_changed(name: str, meaning: str, model: Model) -> Cause:
    """A cause in how the output is sampled: refuted as stated it must, with the counts, be right under the change."""

    def explains(context: Context) -> Finding | None:
        wrong = min(output_tests(context.trace), key=lambda test: test.p, default=None)
        if wrong is None or not wrong.refuted:
            return None
        unexplained = bool(context.refuted) and all(one.refuted for one in context.refuted)
        for change, trace in _readings(context, model, SETTINGS_CHANGES):
            least = min(output_tests(trace), key=lambda test: test.p)
            fitting = _fitting(context, change, trace)
            if least.refuted or (unexplained and not fitting):
                continue
            sentence = (
                f"the {model} {'are' if ' ' in model else 'is'} {change.says}: the output is then right "
                f"(smallest p = {least.p:.2g}), and as stated it is not ({wrong.name}: p = {wrong.p:.2g})"
            )
            evidence = {"change": change.name, "before": wrong, "after": least}
            after = max((one.after for one in fitting), key=lambda one: one.closeness, default=None)
            return Finding(name, sentence, after.rule if after else "", evidence, after.closeness if after else None)
        return None

    return Cause(name, meaning, explains, of_output=True)


def _readings(context: Context, model: Model, changes: Sequence[LogitChange]) -> Iterator[tuple[LogitChange, Trace]]:
    """The pair read under each change that can matter; one that cannot be read is left out."""
    sampling = context.log.sampling or context.trace.sampling or Sampling()
    if context.reread is None:
        return
    for change in changes:
        if change.differs(sampling):
            changed = {f"{one}_change": change for one in ("draft", "target") if one in model}
            with suppress(TextError):
                yield change, context.reread(**changed)


def _fitting(context: Context, change: LogitChange, trace: Trace) -> list[Explained]:
    """Refuted rules that are not refuted on this reading; those that need columns it lacks are left out."""
    found = []
    for before in context.refuted:
        try:
            after = context.judge(before.rule, context.counting, trace)
        except TraceError:
            continue
        if before.refuted and after.p >= EXPLAINED:
            found.append(Explained(change, before, after))
    return found


def _finding(name: str, found: Sequence[Explained]) -> Finding:
    """The best fit in one sentence, with the calls before and after, and what else fits."""
    best = max(found, key=lambda one: (one.before.served, one.after.closeness))
    before, after = best.before.calls, best.after.calls
    others = [one.change.name for one in found if one.before is best.before and one is not best]
    sentence = (
        f"the draft is {best.change.says}: rule {best.before.rule} then expects {_expected(after.low, after.high)} "
        f"calls, {after.counted} are counted (z = {after.z:+.1f}, p = {best.after.p:.2g}); as stated it expects "
        f"{_expected(before.low, before.high)} (z = {before.z:+.1f})"
    ) + (f"; {', '.join(others)} would fit too" if others else "")
    evidence = {"change": best.change.name, "before": before, "after": after, "others": others}
    return Finding(name, sentence, best.before.rule, evidence, best.after.closeness)


def _expected(low: float, high: float) -> str:
    return f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}"


DRAFT_CUT = draft_changed("draft cut", "drafts are drawn from the draft's most probable tokens alone", DRAFT_CUTS)
DRAFT_SETTINGS = draft_changed(
    "draft settings",
    "temperature or filters are left out, applied twice or in another order when drafts are drawn",
    SETTINGS_CHANGES,
)
TARGET_SETTINGS = target_changed(
    "target settings", "temperature or filters of the output are other than stated, those of drafts as stated", "target"
)
PAIR_SETTINGS = target_changed(
    "settings of both", "temperature or filters of output and drafts are other than stated", "draft and target"
)
