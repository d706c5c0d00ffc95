"""The predictions of a trace: tables of tokens per call and speed-ups, the bias trade-off, and the outside check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from spectheory.answers.prediction import PredictionJson
from spectheory.cost import LatencyTable, LoopedTable
from spectheory.intervals import Interval
from spectheory.limits.claims import (
    IID_BRANCHING,
    IID_CHANNEL,
    TEXT,
    LimitClaim,
)
from spectheory.prediction import Label, Plan, Prediction
from spectheory.prediction.per_prompt import PerPrompt
from spectheory.reports.adaptive import adaptive_sentence, adaptive_table
from spectheory.reports.base import Report
from spectheory.reports.bias import bias_table
from spectheory.reports.check import Records, check_table, of_all
from spectheory.reports.meanings import claimed
from spectheory.reports.prediction_brief import label_column, prediction_brief
from spectheory.reports.prediction_notes import formulas, notes_of, notes_of_recorded
from spectheory.reports.provisional import provisional_words
from spectheory.reports.recorded import kept, recorded_table
from spectheory.reports.table import Cell, Column, Table
from spectheory.reports.timing import timing_notes
from spectheory.reports.whole_decoding import limits_of_decodings
from spectheory.trace import PROVISIONAL
from spectheory.verification import RankRule

Aside = tuple[Column, Callable[[Sequence[Prediction]], float | None]]
"""A column to compare with, and its value from the predictions of one size."""
TOKENS = "Tokens per target call"


def prediction_report(plan: Plan, check: Records | None = None) -> Report:
    """Every prediction of a plan, and what else was asked for; recorded lengths have no limits."""
    best, adaptive, recorded = plan.best, plan.adaptive, plan.recorded
    in_loop = isinstance(plan.cost, LoopedTable)
    content = PredictionJson.view(
        best,
        best=PredictionJson.Best(
            rule=best.rule.name, shape=str(best.shape), by="speedup" if best.speedup else "tokens_per_call"
        ),
        predictions=plan.predictions,
        prompts=plan.prompts,
        chosen_on=plan.chosen_on,
        provisional=best.provenance.get(PROVISIONAL),
        in_loop=in_loop,
        bias=plan.bias,
        check=check,
        check_of_all=of_all(check) if check else None,
        adaptive=adaptive,
        new_prompts=plan.new_prompts,
        recorded=recorded,
    )
    asked = [
        *([adaptive_table(adaptive)] if adaptive else []),
        *([_new_prompts_table(plan, plan.new_prompts)] if plan.new_prompts else []),
        *([bias_table(plan.bias)] if plan.bias else []),
        *([check_table(check)] if check else []),
    ]
    pieces = [
        *([_chains_table(plan, with_limits=not recorded)] if plan.chains else []),
        *([_trees_table(plan)] if plan.trees else []),
        *([_speedups_table(plan)] if plan.timed else []),
        *([_drafted_table(plan)] if _stopped(plan) else []),
        *asked,
        *([recorded_table(recorded)] if recorded else []),
    ]
    notes = notes_of_recorded(plan, in_loop, recorded) if recorded else notes_of(plan, in_loop)
    words = provisional_words(plan.best.provenance) or kept(plan.best.provenance, recorded)
    headline = f"{words}. {_headline(plan)}" if words else _headline(plan)
    headline = f"{headline}. {adaptive_sentence(adaptive)}" if adaptive else headline
    notes += timing_notes(plan.cost) if isinstance(plan.cost, LatencyTable) else []
    return Report(content, pieces, headline, notes, prediction_brief(plan, asked, recorded))


def _headline(plan: Plan) -> str:
    best = plan.best
    chain = best.shape.is_chain and not best.label.stop
    shape = f"k = {best.shape.nodes}" if chain else str(best.shape)
    setting = f"{best.rule.label}, {shape}"
    tokens = f"{best.tokens_per_call} tokens per target call"
    if best.speedup is None:
        return f"Most tokens per call: {setting}: {tokens}"
    if best.speedup.high < 1 and best.speedup.kind != "estimate":
        return f"Do not speculate: the best setting ({setting}) gives {best.speedup}x"
    return f"Best: {setting}: speed-up {best.speedup}x, {tokens}"


# Tables


def _chains_table(plan: Plan, *, with_limits: bool) -> Table:
    """Chains with a row per k: each rule, then the i.i.d. formula and the limits."""
    if not with_limits:
        return _by_nodes(TOKENS, plan, plan.chains, lambda p: p.tokens_per_call)
    ranked = plan.of(plan.chains[0])[0].rule
    t1 = f"\n{ranked.name}" if isinstance(ranked, RankRule) and ranked.name != "recursive" else ""
    asides = [
        *(_first(claim, f"\n{plan.chains[0]}") for claim in formulas(plan)),
        *(_first(claim) for claim in (*limits_of_decodings(plan), TEXT, IID_BRANCHING)),
        _first(IID_CHANNEL, t1),
    ]
    return _by_nodes(TOKENS, plan, plan.chains, lambda p: p.tokens_per_call, asides)


def _trees_table(plan: Plan) -> Table:
    """The other shapes with a row per number of nodes, then the limits of such trees."""
    known = (p for label in plan.trees for p in plan.of(label) if p.limits.iid_channel is not None)
    channels = [_channel(rule) for rule in dict.fromkeys(p.rule.name for p in known)]
    asides = [_first(TEXT), _first(IID_BRANCHING), *channels]
    title = "Tokens per target call, trees of k nodes"
    return _by_nodes(title, plan, plan.trees, lambda p: p.tokens_per_call, asides)


def _speedups_table(plan: Plan) -> Table:
    return _by_nodes("Speed-up over plain decoding", plan, plan.labels, lambda p: p.speedup, what="speed-up")


def _stopped(plan: Plan) -> list[Label]:
    """The labels of chains that a stopping rule may end."""
    return [label for label in plan.chains if label.stop]


def _drafted_table(plan: Plan) -> Table:
    """Drafted tokens per call where the draft decides."""
    notes = [
        "Calls are exact. Drafted tokens are estimated from likelihood ratios of the texts, inside certain bounds; a "
        "range a..b is those bounds. With r tokens to go a call drafts r - 1 at most."
    ]
    title = "Drafted tokens per call, at most k, where the draft stops"
    return replace(_by_nodes(title, plan, _stopped(plan), lambda p: p.drafted, what="drafted"), notes=notes)


def _new_prompts_table(plan: Plan, per_prompt: Sequence[PerPrompt]) -> Table:
    """The best rule's pooled tokens per call, the mean over prompts, and the range of the mean over new ones."""
    pooled = {each.wanted: each for each in plan.of(plan.best.label)}
    rows: list[list[Cell | Interval | int | None]] = [
        [pooled[each.wanted].shape.nodes, pooled[each.wanted].tokens_per_call, each.mean, each.new]
        for each in per_prompt
    ]
    notes = [
        "pooled: tokens of all prompts over their calls. mean of prompts: of each one's own tokens per call. Both have "
        "95% confidence intervals, for all prompts of this kind. new: 95% prediction interval of the second over so "
        "many new prompts of the same kind."
    ]
    new = f"mean of {per_prompt[0].prompts} new"
    title = f"{plan.best.label}: tokens per call of prompts to come"
    return Table(title, [Column("k"), Column("pooled"), Column("mean of prompts"), Column(new)], rows, notes)


def _first(claim: LimitClaim, of: str = "") -> Aside:
    """A limit as the first rule of a row has it."""
    return _claim(claim, claim.heading + of), lambda row: row[0].compared(claim)


def _channel(rule: str) -> Aside:
    """T1 with the ranks of one rule."""
    column = _claim(IID_CHANNEL, f"{IID_CHANNEL.heading}\n{rule}")
    return column, lambda row: next((p.limits.iid_channel for p in row if p.rule.name == rule), None)


def _claim(claim: LimitClaim, heading: str) -> Column:
    return Column(heading, aside=True, meaning=claimed(claim))


def _by_nodes(
    title: str,
    plan: Plan,
    labels: Sequence[Label],
    value: Callable[[Prediction], Interval | None],
    asides: Sequence[Aside] = (),
    *,
    what: str = "tokens per call",
) -> Table:
    """A row per number of nodes, a column per label; the best of the plan is marked."""
    of_label = {label: {p.shape.nodes: p for p in plan.of(label)} for label in labels}
    rows: list[list[Cell | int | float | None]] = []
    for nodes in sorted({nodes for of in of_label.values() for nodes in of}):
        row = [of.get(nodes) for of in of_label.values()]
        known = [p for p in row if p]
        cells = [Cell(value(p), best=p is plan.best) if p else None for p in row]
        rows.append([nodes, *cells, *(compared(known) for _, compared in asides)])
    columns = [Column("k"), *(label_column(label, what) for label in labels), *(column for column, _ in asides)]
    return Table(title, columns, rows)
