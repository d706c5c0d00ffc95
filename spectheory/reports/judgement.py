"""A judgement: the rule that an engine runs, what is refuted, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from spectheory.answers import Part, plain
from spectheory.answers.judged import CountedJson, JudgementJson
from spectheory.drafting import Chain
from spectheory.judging.comparison import Comparison
from spectheory.judging.judgement import Judgement
from spectheory.judging.output import POSSIBLE, POWER, SHARE, OutputTest
from spectheory.judging.standing import FALSE_ALARMS, Standing
from spectheory.judging.starts import RARE, ROUNDED
from spectheory.reports.base import Brief, Report, short
from spectheory.reports.table import Column, Table

_PARTS_OF: Mapping[type, type[Part]] = {
    Standing: JudgementJson.Rule,
    OutputTest: JudgementJson.Output,
    Comparison: CountedJson,
}
"""What a cause may have as evidence, and how an answer holds it."""


def judgement_report(found: Judgement) -> Report:
    """Rules against counts, the positions of the rule in question, causes, and the tests of the output."""
    pieces = [_rules(found), *_positions(shown(found)), *_causes(found), *_output(found)]
    notes = [*_would_show(found), *found.notes, *_terms(found)]
    return Report(content(found), pieces, headline(found), notes, _brief(found))


def content(found: Judgement) -> JudgementJson:
    """The judgement as data."""
    log, counting = found.log, found.counting
    return JudgementJson.view(
        found,
        counting,
        log,
        requests=len(log),
        tokens=sum(len(request.output) for request in log.requests),
        prefill_emits_token=counting.prefill,
        counts_past_end=counting.past_end,
        false_alarms=FALSE_ALARMS,
        fitting=[one.rule for one in found.fitting],
        causes=[JudgementJson.Cause.view(cause, evidence=plain(_evidence(cause.evidence))) for cause in found.causes],
    )


def _evidence(value: Any) -> Any:
    """Evidence in the types of the answer."""
    if isinstance(value, Mapping):
        return {name: _evidence(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_evidence(entry) for entry in value]
    part = _PARTS_OF.get(type(value))
    return part.view(value) if part else value


def shown(found: Judgement) -> Standing:
    """The rule whose positions are shown: a stated one, or the one that fits best, or that a cause is about."""
    blamed = [cause.rule for cause in found.causes]
    return min(found.questioned, key=lambda one: one.refuted and one.rule not in blamed)


def headline(found: Judgement) -> str:
    """Which rule runs, which others are refuted, and whether the output is right, in a sentence."""
    refuted = ", ".join(one.rule for one in found.standings if one.refuted and not found.refuted)
    counts = f"{_of_counts(found)}{_instead(found)}{f'; refuted: {refuted}' if refuted else ''}"
    return ". ".join(filter(None, [counts, _of_output(found)]))


def _brief(found: Judgement) -> Brief:
    """The verdicts on counts and output in a line each, and the rules; a cause if one explains the counts."""
    doubt = ["No serving engine is known to run it; --rule names the rule that yours runs."] if found.doubtful else []
    also = "Also explained" if found.doubtful else "Explained"
    causes = [f"{also} by: {cause.cause} (--all says how)." for cause in found.causes[:1]]
    notes = [*doubt, *causes, *_would_show(found)]
    return Brief.of([_of_counts(found), _of_output(found)], [_rules(found, brief=True)], notes)


def _of_counts(found: Judgement) -> str:
    """Which rule the counts fit."""
    calls = shown(found).calls
    counts = f"{calls.counted} calls, expected {_expected(calls)}"
    named = " and ".join(one.rule for one in found.questioned)
    fitting = " or ".join(one.rule for one in found.fitting)
    if found.doubtful:
        return f"Counts fit NO rule that engines run, only {fitting}: {counts}"
    if not found.refuted:
        return f"Counts fit rule {named if found.stated else fitting}: {counts}"
    if found.stated:
        return f"Rule {named} is REFUTED: {counts}; {f'{fitting} fits' if fitting else 'no rule fits'}"
    return f"NO rule fits the counts: {counts} by {named}"


def _of_output(found: Judgement) -> str:
    """Whether the output is right."""
    if not found.output:
        return ""
    greedy = found.log.temperature == 0
    if any(test.name == POSSIBLE for test in found.output):
        return "Output: WRONG, impossible under these settings"
    wrong = "REFUTED, not the target's first choices" if greedy else "REFUTED, no sample of the target"
    right = "the target's first choices" if greedy else "as sampled from the target"
    return f"Output: {wrong if found.output_refuted else right}"


def _would_show(found: Judgement) -> Iterator[str]:
    """The smallest departures that this log would have shown."""
    loss = "no loss of acceptance" if found.smallest is None else f"acceptance lower by {_share(found.smallest)}"
    share = next((test for test in found.output if test.name == SHARE and math.isfinite(test.smallest)), None)
    also = f", {_share(share.smallest)} of the tokens drawn from the draft" if share else ""
    yield f"This log would show, with probability {POWER:g}: {loss}{also}."


def _share(share: float) -> str:
    return f"{max(share, 1e-3):.1%}" if share < 0.1 else f"{share:.0%}"


def _instead(found: Judgement) -> str:
    """What to hold of a rule that no engine is known to run, and of the closest cause beside it."""
    if not found.doubtful:
        return ""
    cause = next((each for each in found.causes if each.closeness and each.rule), None)
    if cause is None or cause.closeness is None:
        return ""
    closer = cause.closeness > max(one.closeness for one in found.fitting)
    return f" (rule {cause.rule} with {cause.cause} fits {'better' if closer else 'too'})"


def _rules(found: Judgement, *, brief: bool = False) -> Table:
    """Every rule's calls; in brief short names, and without the rules that texts cannot tell apart."""
    log, k = found.log, found.counting.k
    at = "" if log.temperature is None else f", temperature {log.temperature:g}"
    columns = [
        Column("rule", kind="names", at=lambda one: short(one.rule) if brief else one.rule),
        Column("calls", digits=0, meaning="target calls of the log", at="calls.counted"),
        Column("expected", digits=1, meaning="calls that the rule expects on these texts", at="calls.low"),
        Column("sd", digits=1, at="calls.deviation"),
        Column("z", signed=True, digits=1, at=lambda one: float(one.calls.z)),
        Column("p, all counts", kind="names", at=lambda one: _p(one.p)),
        Column("verdict", kind="names", at=lambda one: ("fits", "REFUTED")[one.refuted]),
        Column("cannot be told apart", kind="words", aside=True, at=lambda one: ", ".join(one.same)),
    ]
    requests = "1 request" if len(log) == 1 else f"{len(log)} requests"
    drafts = f"k = {k}" if isinstance(found.shape, Chain | None) else str(found.shape)
    return Table.of(f"{requests}, {drafts}{at}: calls", columns, found.standings)


def _positions(one: Standing) -> Iterator[Table]:
    """Accepted tokens by position, over whole texts and at the calls' own starts."""
    if not one.positions:
        return
    columns = [
        Column("position", digits=0),
        Column("accepted", digits=0, meaning="calls that accept at least so many drafts"),
        Column("expected", kind="names"),
        Column("z", signed=True, digits=1),
        Column("at known starts", digits=0, meaning="the same for listed calls, each at its own start"),
        Column("expected", digits=1),
        Column("z", signed=True, digits=1),
    ]
    rows = [
        [number, each.counted, _expected(each), float(each.z)]
        + ([None] * 3 if at is None else [at.counted, at.low, float(at.z)])
        for number, (each, at) in enumerate(zip_longest(one.positions, one.starts), start=1)
    ]
    yield Table(f"Rule {one.rule}: calls that accept at least so many drafts", columns, rows)


def _causes(found: Judgement) -> Iterator[Table]:
    if found.causes:
        columns = [Column("cause", kind="names"), Column("evidence", kind="words", at="sentence")]
        title = "What else explains the counts" if found.doubtful else "What explains it"
        yield Table.of(title, columns, found.causes)


def _output(found: Judgement) -> Iterator[Table]:
    if found.output:
        columns = [
            Column("test of the output", kind="names", at="name"),
            Column("statistic", kind="names", at=lambda test: f"{test.symbol} = {test.statistic:.3g}"),
            Column("p", kind="names", at=lambda test: _p(test.p)),
            Column("verdict", kind="names", at=lambda test: ("passes", "REFUTED")[test.refuted]),
        ]
        yield Table.of("Is the output right?", columns, found.output)


def _terms(found: Judgement) -> Iterator[str]:
    """What the columns mean."""
    yield (
        "expected: the path theorem for the engine's own texts, exact; z: counted minus expected calls in standard "
        "deviations."
    )
    yield (
        f"p, all counts: over calls and positions together, exact or an upper bound; below {FALSE_ALARMS:g} a rule is "
        f"refuted, so the rule that runs is refuted at most this often."
    )
    if shown(found).starts:
        yield "at known starts: each listed call is compared at its own start; the two columns after it belong to it."
    if any(one.low != one.high for one in shown(found).positions):
        yield "Expected intervals: acceptance past the end of a text is unknown; z is from the nearer end."
    rare = shown(found).rare
    if rare is not None and rare.counted:
        yield (
            f"Calls whose accepted length has a probability below {RARE:g} under rule {shown(found).rule}: "
            f"{rare.counted}, expected {rare.low:.1f}; rounding may explain {ROUNDED:.1%} of calls."
        )
    if shown(found).texts:
        names = ", ".join(shown(found).texts[:5])
        yield f"Requests whose calls differ though nothing is random: {len(shown(found).texts)} ({names})."
    yield from (f"{test.name}: {test.asks.rstrip('.')}." for test in found.output)


def _expected(one: Comparison) -> str:
    return f"{one.low:.1f}" if one.high - one.low < 0.05 else f"{one.low:.1f} to {one.high:.1f}"


def _p(p: float) -> str:
    """A p-value; far below any false-alarm rate its size says nothing."""
    return f"{p:.2g}" if p > 1e-12 else "< 1e-12"
