"""A deployment plan: what to run, what it gives, what it would take to pay, and how far the limits are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from spectheory.answers.plan import PlanJson
from spectheory.deployment import BatchChoice, BreakEven, Candidate, EngineSettings
from spectheory.deployment.candidates import DO_NOT
from spectheory.deployment.whole import Deployment
from spectheory.limits.claims import footnotes
from spectheory.reports.adaptive import adaptive_sentence, adaptive_table
from spectheory.reports.base import Report
from spectheory.reports.deployment_brief import deployment_brief
from spectheory.reports.deployment_notes import deployment_notes
from spectheory.reports.lock_step import lock_step_table
from spectheory.reports.recorded import kept, recorded_table
from spectheory.reports.table import Cell, Column, Row, Table, Value
from spectheory.reports.whole_decoding import whole_decoding


def deployment_report(answer: Deployment) -> Report:
    """The plan in tables and as JSON; settings to paste stand in the JSON and are printed by the command line."""
    asked = [
        *([adaptive_table(answer.adaptive)] if answer.adaptive else []),
        *([_batches_table(answer)] if answer.batches else []),
    ]
    pieces = [
        _candidates("Drafts, rules and shapes by speed-up", answer.ranking.candidates, answer.ranking.best),
        *([adaptive_table(answer.adaptive)] if answer.adaptive else []),
        _break_even_table(answer.break_even),
        *([_distances_table(answer)] if answer.distances else []),
        *([_batches_table(answer)] if answer.batches else []),
        *([lock_step_table(answer.lock_step, len(answer.chain.draft.trace.texts))] if answer.lock_step else []),
        *([_engines_table(answer.engines)] if answer.engines else []),
        *([recorded_table(answer.recorded)] if answer.recorded else []),
    ]
    limit = whole_decoding([answer.chain.prediction])
    claims = footnotes(distance.limit for distance in answer.distances)
    of = kept(answer.ranking.best.prediction.provenance, answer.recorded)
    headline = f"{of}. {_headline(answer)}" if of else _headline(answer)
    if answer.adaptive:
        headline = f"{headline}. {adaptive_sentence(answer.adaptive)}"
    return Report(
        _content(answer),
        pieces,
        headline,
        [*deployment_notes(answer), *limit, *claims],
        deployment_brief(answer, asked),
    )


def _headline(answer: Deployment) -> str:
    """The best setting and the runner-up; if it loses, what it would take to pay."""
    best, runner_up, needs = answer.ranking.best, answer.ranking.runner_up, answer.break_even
    if best.verdict == DO_NOT:
        free, now = needs.draft_ratio_needed, needs.draft_ratio
        cost = "no draft is cheap enough" if free is None else f"a draft pass of {free:.3f} target steps"
        return (
            f"Do not speculate: the best setting ({best.setting}) gives {best.speedup}x. As fast as plain decoding it "
            f"would be with {needs.tokens_per_call_needed:.3f} tokens per call (now {needs.tokens_per_call:.3f})"
            + ("" if now is None else f", or {cost} (now {now:.3f})")
        )
    beside = ""
    if runner_up is not None:
        apart = "" if answer.ranking.told_apart else ", intervals overlap"
        beside = f"; runner-up{apart}: {runner_up.setting}: {runner_up.speedup}x"
    verdict = best.verdict[0].upper() + best.verdict[1:]
    gives = f"speed-up {best.speedup}x, {best.prediction.tokens_per_call} tokens per call"
    return f"{verdict}: {best.setting}: {gives}{beside}"


def _content(answer: Deployment) -> PlanJson:
    ranking, chain = answer.ranking, answer.chain
    batches = PlanJson.Batches.view(
        draft=chain.draft.name,
        rule=chain.prediction.rule.name,
        choices=answer.batches,
        lock_step=answer.lock_step,
    )
    return PlanJson.view(
        ranking.best,
        runner_up=ranking.runner_up,
        told_apart=ranking.told_apart,
        drafts=ranking.by_draft,
        candidates=ranking.candidates,
        break_even=asdict(answer.break_even),
        limits=PlanJson.Limits.view(ranking.best.prediction.limits, distances=answer.distances),
        batches=batches if answer.batches else None,
        engines=answer.engines,
        adaptive=answer.adaptive,
        recorded=answer.recorded,
        provenance={each.draft.name: dict(each.prediction.provenance) for each in ranking.by_draft},
    )


SIDES = {"limit": "upper bound", "reading": "idealised"}
"""What the sides of limits are called in the table."""
_GIVES = (
    Column("draft", kind="words"),
    Column("kind", kind="words", aside=True),
    *(Column(heading, kind="words") for heading in ("rule", "shape")),
    Column("passes", aside=True),
    Column("tokens per call"),
    Column("speed-up", "x"),
)


def _gives(candidate: Candidate) -> list[Value]:
    """The setting of a candidate and what it gives."""
    prediction = candidate.prediction
    drafted = [candidate.draft.name, candidate.draft_kind, prediction.rule.name, candidate.shape]
    return [*drafted, candidate.passes, prediction.tokens_per_call, candidate.speedup]


def _candidates(title: str, candidates: Sequence[Candidate], best: Candidate) -> Table:
    rows = [[Cell(value, best=candidate is best) for value in _gives(candidate)] for candidate in candidates]
    return Table(title, _GIVES, rows)


def _break_even_table(needs: BreakEven) -> Table:
    rows: list[Row] = [["tokens per call", needs.tokens_per_call, needs.tokens_per_call_needed]]
    if needs.draft_ratio is not None:
        most = needs.draft_ratio_needed
        rows.append(["draft pass, plain steps", needs.draft_ratio, Cell(most, "" if most is None else "≤ ")])
    if needs.acceptance is not None:
        rows.append(["acceptance if i.i.d. (C1)", needs.acceptance, needs.acceptance_needed])
    if needs.least_acceptance is not None:
        rows.append([f"acceptance if i.i.d., chain of {needs.least_acceptance_k}", None, needs.least_acceptance])
    columns = [Column("what", kind="words"), Column("now", digits=3), Column("needed", digits=3)]
    return Table("Break-even: values at which the speed-up is 1", columns, rows)


def _distances_table(answer: Deployment) -> Table:
    nodes = answer.ranking.best.prediction.shape.nodes
    rows = [
        [
            distance.limit.name,
            Cell(SIDES[distance.limit.scope.side], after="" if distance.binds else " *"),
            distance.tokens_per_call,
            100 * distance.reached,
            distance.speedup,
        ]
        for distance in answer.distances
    ]
    columns = [Column("limit", kind="words"), Column("side", kind="words"), Column("tokens per call")]
    columns += [Column("reached", "%", digits=0), Column("speed-up there", "x")]
    title = f"Limits and idealised values at {nodes} draft nodes"
    others = ["* does not apply to the best setting"] if not all(each.binds for each in answer.distances) else []
    return Table(title, columns, rows, others)


def _batches_table(answer: Deployment) -> Table:
    contexts = sorted({choice.context for choice in answer.batches})
    rule, draft = answer.chain.prediction.rule.name, answer.chain.draft.name
    at = {(choice.batch, choice.context): choice for choice in answer.batches}
    rows: list[Row] = [
        [batch, *(_best_length(at[batch, context]) for context in contexts)]
        for batch in sorted({choice.batch for choice in answer.batches})
    ]
    title = f"Best k by batch and context ({rule}, draft {draft}; roofline, 0: plain decoding)"
    return Table(title, [Column("batch"), *(Column(f"L = {context}", meaning=CHOICE) for context in contexts)], rows)


CHOICE = "best k and its speed-up with so many cached tokens; 0: plain decoding"


def _best_length(choice: BatchChoice) -> Cell:
    return Cell(choice.k, after=f" ({choice.speedup:.2f}x)" if choice.k else "")


def _engines_table(engines: Sequence[EngineSettings]) -> Table:
    rows = [[settings.engine, *_gives(settings.candidate)] for settings in engines]
    return Table("Under each engine's own rule", [Column("engine", kind="words"), *_GIVES], rows)
