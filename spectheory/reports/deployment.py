"""A deployment plan: what to run, what it gives, what it would take to pay, and how far the limits are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spectheory.deployment import BatchChoice, BreakEven, Candidate, Distance, EngineSettings, Ranking
from spectheory.deployment.candidates import DO_NOT, Draft
from spectheory.drafting import Chain
from spectheory.reports.base import Report, number, table

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class DeploymentAnswer:
    """A plan, worked out.

    Attributes
    ----------
    ranking : Ranking
        Drafts, rules and shapes.
    break_even : BreakEven
        Of the best setting.
    distances : sequence of Distance
        Limits beside the best setting.
    chain : Candidate
        The fastest chain, whose rule and draft `batches` is for.
    batches : sequence of BatchChoice
        Best lengths by context and batch; empty where the costs know one batch alone.
    engines : sequence of EngineSettings
        Settings to paste.
    notes : sequence of str
        What a reader must know, one sentence each.
    """

    ranking: Ranking
    break_even: BreakEven
    distances: Sequence[Distance]
    chain: Candidate
    batches: Sequence[BatchChoice]
    engines: Sequence[EngineSettings]
    notes: Sequence[str] = ()


def deployment_report(answer: DeploymentAnswer) -> Report:
    """The plan in tables and as JSON; settings to paste stand in the JSON and are printed by the command line."""
    pieces = [_ranking_table(answer.ranking), _break_even_table(answer.break_even), _distances_table(answer)]
    if answer.batches:
        pieces.append(_batches_table(answer))
    pieces.append(_engines_table(answer.engines))
    claims = [f"{distance.name}: {distance.claim}." for distance in answer.distances]
    return Report(_content(answer), pieces, headline(answer), [*answer.notes, *claims])


def headline(answer: DeploymentAnswer) -> str:
    """The answer in a few words; where it loses, what it would take."""
    best, runner_up, needs = answer.ranking.best, answer.ranking.runner_up, answer.break_even
    if best.verdict == DO_NOT:
        free, now = needs.draft_ratio_needed, needs.draft_ratio
        cost = "no draft is cheap enough" if free is None else f"a draft pass of {free:.3f} target steps"
        return (
            f"Do not speculate: the best setting ({best.setting}) gives {best.speedup}x. As fast as plain decoding it "
            f"would be with {needs.tokens_per_call_needed:.3f} tokens per call (now {needs.tokens_per_call:.3f})"
            + ("." if now is None else f", or {cost} (now {now:.3f}).")
        )
    beside = ""
    if runner_up is not None:
        apart = "" if answer.ranking.told_apart else ", intervals overlap"
        beside = f"; runner-up{apart}: {runner_up.setting}: {runner_up.speedup}x"
    verdict = best.verdict[0].upper() + best.verdict[1:]
    gives = f"speed-up {best.speedup}x, {best.prediction.tokens_per_call} tokens per call"
    return f"{verdict}: {best.setting}: {gives}{beside}"


def _content(answer: DeploymentAnswer) -> dict[str, Any]:
    ranking = answer.ranking
    best, runner_up, shape = ranking.best, ranking.runner_up, ranking.best.prediction.shape
    return {
        **best.as_dict(),
        "paths": None if isinstance(shape, Chain) else shape.tree().paths,
        "runner_up": runner_up.as_dict() if runner_up else None,
        "told_apart": ranking.told_apart,
        "drafts": [candidate.as_dict() for candidate in ranking.by_draft],
        "candidates": [candidate.as_dict() for candidate in ranking.candidates],
        "break_even": answer.break_even.as_dict(),
        "limits": {
            **best.prediction.limits.as_dict(),
            "distances": [distance.as_dict() for distance in answer.distances],
        },
        "batches": {
            "draft": answer.chain.draft.name,
            "rule": answer.chain.prediction.rule.name,
            "choices": [choice.as_dict() for choice in answer.batches],
        }
        if answer.batches
        else None,
        "engines": [settings.as_dict() for settings in answer.engines],
        "provenance": {c.draft.name: dict(c.prediction.provenance) for c in ranking.by_draft},
    }


def _ranking_table(ranking: Ranking) -> Table:
    columns = ["draft", "rule", "shape", "tokens per call", "speed-up"]
    made = table("Drafts, rules and shapes by speed-up", columns, words=3)
    for candidate in ranking.candidates:
        cells = [
            _name(candidate.draft),
            candidate.prediction.rule.name,
            candidate.shape,
            number(candidate.prediction.tokens_per_call),
            f"{number(candidate.speedup)}x",
        ]
        made.add_row(*(f"[bold]{cell}[/]" if candidate is ranking.best else cell for cell in cells))
    return made


def _break_even_table(needs: BreakEven) -> Table:
    made = table("Where the best setting is as fast as plain decoding", ["what", "now", "needed"], words=1)
    made.add_row("tokens per call", number(needs.tokens_per_call, 3), number(needs.tokens_per_call_needed, 3))
    if needs.draft_ratio is not None:
        most = "-" if needs.draft_ratio_needed is None else f"≤ {needs.draft_ratio_needed:.3f}"
        made.add_row("draft pass, plain steps", number(needs.draft_ratio, 3), most)
    if needs.acceptance is not None:
        made.add_row("acceptance if i.i.d. (C1)", number(needs.acceptance, 3), number(needs.acceptance_needed, 3))
    if needs.least_acceptance is not None:
        what = f"acceptance if i.i.d., chain of {needs.least_acceptance_k}"
        made.add_row(what, "-", number(needs.least_acceptance, 3))
    return made


def _distances_table(answer: DeploymentAnswer) -> Table:
    nodes = answer.ranking.best.prediction.shape.nodes
    columns = ["limit", "side", "tokens per call", "reached", "speed-up there"]
    made = table(f"Limits and readings at {nodes} draft nodes", columns, words=2)
    for distance in answer.distances:
        made.add_row(
            distance.name,
            distance.side + ("" if distance.binds else " *"),
            number(distance.tokens_per_call),
            f"{distance.reached:.0%}",
            "-" if distance.speedup is None else f"{distance.speedup:.2f}x",
        )
    if not all(distance.binds for distance in answer.distances):
        made.caption, made.caption_justify = "* about other settings than the best", "left"
    return made


def _batches_table(answer: DeploymentAnswer) -> Table:
    contexts = sorted({choice.context for choice in answer.batches})
    rule, draft = answer.chain.prediction.rule.name, _name(answer.chain.draft)
    title = f"Best k by batch and context ({rule}, draft {draft}; roofline, 0: plain decoding)"
    made = table(title, ["batch", *(f"L = {context}" for context in contexts)])
    at = {(choice.batch, choice.context): choice for choice in answer.batches}
    for batch in sorted({choice.batch for choice in answer.batches}):
        row = [at[batch, context] for context in contexts]
        made.add_row(str(batch), *(f"{c.k} ({c.speedup:.2f}x)" if c.k else "0" for c in row))
    return made


def _engines_table(engines: Sequence[EngineSettings]) -> Table:
    columns = ["engine", "draft", "rule", "shape", "tokens per call", "speed-up"]
    made = table("Under each engine's own rule", columns, words=4)
    for settings in engines:
        candidate = settings.candidate
        made.add_row(
            settings.engine,
            _name(candidate.draft),
            candidate.prediction.rule.name,
            candidate.shape,
            number(candidate.prediction.tokens_per_call),
            f"{number(candidate.speedup)}x",
        )
    return made


def _name(draft: Draft) -> str:
    """What a draft is called, for tables: brackets in it are no markup."""
    from rich.markup import escape

    return escape(draft.name)
