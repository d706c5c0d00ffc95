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


def judgement_report(answer: Judgement) -> Report:
    """Rules against counts, the positions of the rule in question, causes, and the tests of the output."""
    pieces = [_rules(answer), *_positions(shown(answer)), *_causes(answer), *_output(answer)]
    notes = [*_would_show(answer), *answer.notes, *_terms(answer)]
    return Report(content(answer), pieces, headline(answer), notes, _brief(answer))


def content(answer: Judgement) -> JudgementJson:
    """The judgement as data."""
    log, counting = answer.log, answer.counting
    return JudgementJson.view(
        answer,
        counting,
        log,
        requests=len(log),
        tokens=sum(len(request.output) for request in log.requests),
        prefill_emits_token=counting.prefill,
        counts_past_end=counting.past_end,
        false_alarms=FALSE_ALARMS,
        fitting=[one.rule for one in answer.fitting],
        causes=[JudgementJson.Cause.view(cause, evidence=plain(_evidence(cause.evidence))) for cause in answer.causes],
    )


def _evidence(value: Any) -> Any:
    """Evidence in the types of the answer."""
    if isinstance(value, Mapping):
        return {name: _evidence(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_evidence(entry) for entry in value]
    part = _PARTS_OF.get(type(value))
    return part.view(value) if part else value


def shown(answer: Judgement) -> Standing:
    """The rule whose positions are shown: a stated one, or the one that fits best, or that a cause is about."""
    blamed = [cause.rule for cause in answer.causes]
    return min(answer.questioned, key=lambda one: one.refuted and one.rule not in blamed)


def headline(answer: Judgement) -> str:
    """Which rule runs, which others are refuted, and whether the output is right, in a sentence."""
    refuted = ", ".join(one.rule for one in answer.standings if one.refuted and not answer.refuted)
    counts = f"{_of_counts(answer)}{_instead(answer)}{f'; refuted: {refuted}' if refuted else ''}"
    return f"{_doubt(answer)} {'. '.join(filter(None, [counts, _of_output(answer)]))}".lstrip()


def _brief(answer: Judgement) -> Brief:
    """The verdicts on counts and output in a line each, and the rules; a cause if one explains the counts."""
    doubt = ["No serving engine is known to run it; --rule names the rule that yours runs."] if answer.doubtful else []
    also = "Also explained" if answer.doubtful else "Explained"
    causes = [f"{also} by: {cause.cause} (--all says how)." for cause in answer.causes[:1]]
    notes = [*doubt, *causes, *_would_show(answer)]
    return Brief.of([_doubt(answer), _of_counts(answer), _of_output(answer)], [_rules(answer, brief=True)], notes)


def _doubt(answer: Judgement) -> str:
    """The question whether the models are exchanged."""
    return answer.doubt[:1].upper() + answer.doubt[1:]


def _of_counts(answer: Judgement) -> str:
    """Which rule the counts fit."""
    calls = shown(answer).calls
    counts = f"{calls.counted} calls, expected {_expected(calls)}"
    named = " and ".join(one.rule for one in answer.questioned)
    fitting = " or ".join(one.rule for one in answer.fitting)
    if answer.doubtful:
        return f"Counts fit NO rule that engines run, only {fitting}: {counts}"
    if not answer.refuted:
        return f"Counts fit rule {named if answer.stated else fitting}: {counts}"
    if answer.stated:
        return f"Rule {named} is REFUTED: {counts}; {f'{fitting} fits' if fitting else 'no rule fits'}"
    return f"NO rule fits the counts: {counts} by {named}"


def _of_output(answer: Judgement) -> str:
    """Whether the output is right."""
    if not answer.output:
        return ""
    greedy = answer.log.temperature == 0
    if any(test.name == POSSIBLE for test in answer.output):
        return "Output: WRONG, impossible under these settings"
    wrong = "REFUTED, not the target's first choices" if greedy else "REFUTED, no sample of the target"
    right = "the target's first choices" if greedy else "as sampled from the target"
    return f"Output: {wrong if answer.output_refuted else right}"


def _would_show(answer: Judgement) -> Iterator[str]:
    """The smallest departures that this log would have shown."""
    loss = "no loss of acceptance" if answer.smallest is None else f"acceptance lower by {_share(answer.smallest)}"
    share = next((test for test in answer.output if test.name == SHARE and math.isfinite(test.smallest)), None)
    also = f", {_share(share.smallest)} of the tokens drawn from the draft" if share else ""
    yield f"This log would show, with probability {POWER:g}: {loss}{also}."


def _share(share: float) -> str:
    return f"{max(share, 1e-3):.1%}" if share < 0.1 else f"{share:.0%}"


def _instead(answer: Judgement) -> str:
    """What to hold of a rule that no engine is known to run, and of the closest cause beside it."""
    if not answer.doubtful:
        return ""
    cause = next((each for each in answer.causes if each.closeness and each.rule), None)
    if cause is None or cause.closeness is None:
        return ""
    closer = cause.closeness > max(one.closeness for one in answer.fitting)
    return f" (rule {cause.rule} with {cause.cause} fits {'better' if closer else 'too'})"


def _rules(answer: Judgement, *, brief: bool = False) -> Table:
    """Every rule's calls; in brief short names, and without the rules that texts cannot tell apart."""
    log, k = answer.log, answer.counting.k
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
    drafts = f"k = {k}" if isinstance(answer.shape, Chain | None) else str(answer.shape)
    return Table.of(f"{requests}, {drafts}{at}: calls", columns, answer.standings)


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


def _causes(answer: Judgement) -> Iterator[Table]:
    if answer.causes:
        columns = [Column("cause", kind="names"), Column("evidence", kind="words", at="sentence")]
        title = "What else explains the counts" if answer.doubtful else "What explains it"
        yield Table.of(title, columns, answer.causes)


def _output(answer: Judgement) -> Iterator[Table]:
    if answer.output:
        columns = [
            Column("test of the output", kind="names", at="name"),
            Column("statistic", kind="names", at=lambda test: f"{test.symbol} = {test.statistic:.3g}"),
            Column("p", kind="names", at=lambda test: _p(test.p)),
            Column("verdict", kind="names", at=lambda test: ("passes", "REFUTED")[test.refuted]),
        ]
        yield Table.of("Is the output right?", columns, answer.output)


def _terms(answer: Judgement) -> Iterator[str]:
    """What the columns mean."""
    yield (
        "expected: the path theorem for the engine's own texts, exact; z: counted minus expected calls in standard "
        "deviations."
    )
    yield (
        f"p, all counts: over calls and positions together, exact or an upper bound; below {FALSE_ALARMS:g} a rule is "
        f"refuted, so the rule that runs is refuted at most this often."
    )
    if shown(answer).starts:
        yield "at known starts: each listed call is compared at its own start; the two columns after it belong to it."
    if any(one.low != one.high for one in shown(answer).positions):
        yield "Expected intervals: acceptance past the end of a text is unknown; z is from the nearer end."
    rare = shown(answer).rare
    if rare is not None and rare.counted:
        yield (
            f"Calls whose accepted length has a probability below {RARE:g} under rule {shown(answer).rule}: "
            f"{rare.counted}, expected {rare.low:.1f}; rounding may explain {ROUNDED:.1%} of calls."
        )
    if shown(answer).texts:
        names = ", ".join(shown(answer).texts[:5])
        yield f"Requests whose calls differ though nothing is random: {len(shown(answer).texts)} ({names})."
    yield from (f"{test.name}: {test.asks.rstrip('.')}." for test in answer.output)


def _expected(one: Comparison) -> str:
    return f"{one.low:.1f}" if one.high - one.low < 0.05 else f"{one.low:.1f} to {one.high:.1f}"


def _p(p: float) -> str:
    """A p-value; far below any false-alarm rate its size says nothing."""
    return f"{p:.2g}" if p > 1e-12 else "< 1e-12"
