"""The predictions of a trace: the best setting, tables of tokens per call and speed-ups, and what is shown first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from spectheory.answers import Part
from spectheory.answers.prediction import PredictionJson
from spectheory.cost import LatencyTable, LoopedTable
from spectheory.deployment import EngineSettings
from spectheory.deployment.candidates import in_words
from spectheory.deployment.engines import lossy_settings
from spectheory.deployment.next_steps import steps_of
from spectheory.intervals import Interval
from spectheory.limits.claims import IID_BRANCHING, IID_CHANNEL, TEXT, LimitClaim
from spectheory.prediction import Label, Plan, Prediction
from spectheory.prediction.answer import RecordedReading, merit
from spectheory.prediction.guessed_ratio import other_ratios
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.remarks import about_texts
from spectheory.reports.base import WIDTH, Brief, Report, point, range_words, short, sizes_shown
from spectheory.reports.first_screen import engines_table, how_sure, last_notes, verdict
from spectheory.reports.meanings import TERMS, claimed
from spectheory.reports.notes import (
    NO_COST,
    QUIET,
    disturbed_words,
    formulas,
    guessed_notes,
    heavy_tail,
    limits_of_decodings,
    prediction_notes,
    provisional_words,
    requests_left_out,
    timing_notes,
)
from spectheory.reports.optional_tables import (
    Records,
    adaptive_sentence,
    adaptive_tables,
    bias_table,
    check_table,
    new_prompts_table,
    of_all,
    recorded_table,
)
from spectheory.reports.table import Cell, Column, Table
from spectheory.trace import PROVISIONAL
from spectheory.verification import RankRule

Sizes = Mapping[Label, Prediction]
"""The predictions of one number of nodes, by label: the row of a table."""
_RULES, _RULES_WITHOUT_COSTS = 3, 5
"""Most rules beside each other in a brief answer, with and without speed-ups."""
_LONGEST_LABEL = 60
"""Letters of an n-gram draft with its settings, and of the rule that follows it."""
_LONGEST_HEADING = 31
"""Letters of a rule above a column."""
_CERTIFIED = "Ranges without ± are certain bounds; settings are compared by their low ends."
_SHOWN = 5
"""Settings that a provisional answer shows."""


def prediction_report(
    plan: Plan, check: Records | None = None, engines: Sequence[EngineSettings] = (), *, trace: str = "TRACE"
) -> Report:
    """Every prediction of a plan, and what else was asked for; recorded lengths have no limits.

    What `engines` run comes first, the fastest of them at the top. `trace` is how the trace is written in commands.
    """
    best, adaptive, recorded = plan.best, plan.adaptive, plan.recorded
    in_loop, guessed = isinstance(plan.cost, LoopedTable), other_ratios(plan)
    content = PredictionJson.view(
        best,
        plan,
        best=PredictionJson.Best(
            rule=best.rule.name, shape=str(best.shape), by="speedup" if best.speedup else "tokens_per_call"
        ),
        provisional=best.provenance.get(PROVISIONAL),
        in_loop=in_loop,
        bias=plan.bias,
        check=check,
        check_of_all=of_all(check) if check else None,
        adaptive=adaptive,
        new_prompts=plan.new_prompts,
        recorded=recorded,
        guessed=guessed,
        engines=engines,
    )
    asked = [
        *adaptive_tables(adaptive),
        *([new_prompts_table(plan, plan.new_prompts)] if plan.new_prompts else []),
        *([bias_table(plan.bias)] if plan.bias else []),
        *([check_table(check)] if check else []),
    ]
    words = provisional_words(best.provenance) or requests_left_out(best.provenance, recorded)
    adapted = adaptive_sentence(adaptive) if adaptive else ""
    headline = [*plan.warnings, words, "; ".join(_verdict(plan, engines)), disturbed_words(best, plan.cost), adapted]
    timing = timing_notes(plan.cost) if isinstance(plan.cost, LatencyTable) else []
    changing = lossy_settings(point.rule for point in plan.bias if point.bias.best > 0)
    notes = [*prediction_notes(plan, in_loop, recorded), *timing, *guessed_notes(guessed), *changing]
    pieces = [
        *engines_table(engines),
        *_tables(plan, recorded),
        *asked,
        *([recorded_table(recorded)] if recorded else []),
    ]
    brief = _brief(plan, asked, engines, [*guessed_notes(guessed), *changing], trace)
    return Report(content, pieces, ". ".join(filter(None, headline)), notes, brief, engines)


def provisional_report(plan: Plan, *, seconds: float | None, trees_follow: bool) -> Report:
    """The best setting of each rule and kind of shape, the best first; `seconds` are those that the rest takes."""
    best = sorted((max(plan.of(label), key=merit) for label in plan.labels), key=merit, reverse=True)[:_SHOWN]
    columns = [
        Column("rule", kind="names", at="rule.label"),
        Column("shape", kind="names", at=lambda each: str(each.shape)),
        Column("tokens per call", at=lambda each: Cell(each.tokens_per_call, best=each is plan.best)),
        Column("speed-up", "x", at=lambda each: Cell(each.speedup, best=each is plan.best)),
    ]
    rest = f"The rest takes about {seconds:.0f} s." if seconds is not None else "The rest is being measured."
    notes = [f"Intervals (95%) are over these prompts. {'Trees follow with the whole answer. ' * trees_follow}{rest}"]
    table = Table.of("", columns if plan.timed else columns[:-1], best)
    return Report(Part(), [table], f"{provisional_words(plan.best.provenance)}:", notes)


# Tables: a row per number of nodes


def _tables(plan: Plan, recorded: Sequence[RecordedReading]) -> list[Table]:
    """Tokens per call of chains and trees with their limits, speed-ups, and drafted tokens where the draft decides."""

    def table(title: str, labels: Sequence[Label], columns: Sequence[Column], notes: Sequence[str] = ()) -> Table:
        return _by_nodes(title, plan, labels, columns, notes)

    tokens, stopped = "Tokens per target call", [label for label in plan.chains if label.stop]
    tables = []
    if plan.chains:
        tables.append(table(tokens, plan.chains, _tokens(plan, plan.chains) + ([] if recorded else _of_chains(plan))))
    if plan.trees:
        tables.append(table(f"{tokens}, trees of k nodes", plan.trees, _tokens(plan, plan.trees) + _of_trees(plan)))
    if plan.timed:
        gains = [_column(plan, label, "speed-up", lambda p: p.speedup) for label in plan.labels]
        tables.append(table("Speed-up over plain decoding", plan.labels, gains))
    if stopped:
        drafted = [_column(plan, label, "drafted", lambda p: p.drafted) for label in stopped]
        note = (
            "Calls are exact. Drafted tokens are estimated from likelihood ratios of the texts, inside certain bounds; "
            "a range a..b is those bounds. With r tokens to go a call drafts r - 1 at most."
        )
        title = "Drafted tokens per call, at most k, where the draft stops"
        tables.append(table(title, stopped, drafted, [note]))
    return tables


def _by_nodes(
    title: str,
    plan: Plan,
    labels: Sequence[Label],
    columns: Sequence[Column],
    notes: Sequence[str] = (),
    best: int | None = None,
) -> Table:
    """A row per number of nodes; where one is the `best`, for those around it and one at least of every label."""
    of_label = {label: {p.shape.nodes: p for p in plan.of(label)} for label in labels}
    sizes = {nodes for of in of_label.values() for nodes in of}
    if best is not None:
        sizes = set(sizes_shown(sizes, best))
        sizes |= {min(of) for of in of_label.values() if of and sizes.isdisjoint(of)}
    rows = [{label: of[nodes] for label, of in of_label.items() if nodes in of} for nodes in sorted(sizes)]
    return Table.of(title, [Column("k", at=lambda row: next(iter(row.values())).shape.nodes), *columns], rows, notes)


def _column(
    plan: Plan, label: Label, what: str, value: Callable[[Prediction], Interval | float | None], heading: str = ""
) -> Column:
    """The column of a rule and kind of shape, where the best is marked; `what` of it is shown is a term."""

    def at(row: Sizes) -> Cell | None:
        return Cell(value(row[label]), best=row[label] is plan.best) if label in row else None

    return Column(heading or str(label), meaning=f"{what} under that rule: {TERMS[what]}", at=at)


def _tokens(plan: Plan, labels: Sequence[Label]) -> list[Column]:
    return [_column(plan, label, "tokens per call", lambda p: p.tokens_per_call) for label in labels]


def _limit(claim: LimitClaim, of: str = "", rule: str = "", *, brief: bool = False) -> Column:
    """A limit as the first rule of a row has it, or the one that is named; in a `brief` answer in words, as the first
    rule that knows it has it.
    """

    def at(row: Sizes) -> float | None:
        values = (p.compared(claim) for p in row.values() if p.rule.name == (rule or p.rule.name))
        return next(filter(None, values) if brief else values, None)

    return Column(claim.plain_heading if brief else f"{claim.heading}{of}", aside=True, meaning=claimed(claim), at=at)


def _of_chains(plan: Plan) -> list[Column]:
    """The i.i.d. formula of the first rule, and the limits of chains."""
    ranked = plan.of(plan.chains[0])[0].rule
    t1 = f"\n{ranked.name}" if isinstance(ranked, RankRule) and ranked.name != "recursive" else ""
    return [
        *(_limit(claim, f"\n{plan.chains[0]}") for claim in formulas(plan)),
        *map(_limit, (*limits_of_decodings(plan), TEXT, IID_BRANCHING)),
        _limit(IID_CHANNEL, t1),
    ]


def _of_trees(plan: Plan) -> list[Column]:
    """The limits of trees; T1 has the ranks of one rule."""
    known = (p for label in plan.trees for p in plan.of(label) if p.limits.iid_channel is not None)
    rules = dict.fromkeys(p.rule.name for p in known)
    return [*map(_limit, (TEXT, IID_BRANCHING)), *(_limit(IID_CHANNEL, f"\n{rule}", rule) for rule in rules)]


# What is shown first


def _brief(
    plan: Plan, asked: Sequence[Table], engines: Sequence[EngineSettings], said: Sequence[str], trace: str
) -> Brief:
    """The best setting, what engines run or else a few rules with k up to two beyond the best, and the tables that were
    `asked` for.
    """
    best, provenance = engines[0].candidate.prediction if engines else plan.best, plan.best.provenance
    provisional = provisional_words(provenance)
    notes = [
        *([f"{provisional}."] if provisional else []),
        *heavy_tail(plan.recorded, plan.best),
        *([_CERTIFIED] if any(p.certified for p in plan.predictions) else []),
        *([] if plan.timed else [NO_COST]),
        *said,
        *about_texts(provenance),
        *([QUIET] if plan.best.disturbed else []),
        *([] if provisional else few_prompts(plan.prompts)),
        *last_notes(best, plan.cost, steps_of(plan, best, trace)),
    ]
    lines = [*plan.warnings, *_verdict(plan, engines), disturbed_words(plan.best, plan.cost)]
    shown = engines_table(engines) or [_few_rules(plan)]
    return Brief.of([*lines, requests_left_out(provenance, plan.recorded)], [*shown, *asked], notes)


def _verdict(plan: Plan, engines: Sequence[EngineSettings]) -> list[str]:
    """The fastest setting that an engine runs, then the best of all; without engines the best; then a rule's gain."""
    said = [*(verdict(engines, plan.best, plan.cost) if engines else _best(plan)), *_changing(plan)]
    if plan.over is None:
        return said
    low, best, high = (f"{end - 1:+.1%}" for end in (plan.over.ratio.low, plan.over.ratio.best, plan.over.ratio.high))
    known = f" (95%: {low} to {high}, paired)" if plan.over.ratio.kind == "statistical" else ""
    return [*said, f"{plan.over.rule} over {plan.over.other}, each at its best k: {best}{known}"]


def _best(plan: Plan) -> tuple[str, str]:
    """The best setting, and what is known of it."""
    best = plan.best
    setting, tokens = f"{short(best.rule.label, _LONGEST_LABEL)}, {in_words(best.shape)}", best.tokens_per_call
    if best.speedup is None:
        known = ", ".join(filter(None, [f"{point(tokens)} tokens per target call", range_words(tokens)]))
        return f"Most tokens per call: {setting}", known
    slower = best.speedup.high < 1 and best.speedup.kind != "estimate"
    says = "Do not speculate; best" if slower else "Best"
    return f"{says}: {setting}: speed-up {point(best.speedup, 'x')}", how_sure(plan.cost, best.speedup, tokens)


def _changing(plan: Plan) -> list[str]:
    """The fastest rule of those that change the text, or that with the most tokens per call."""
    if not plan.bias:
        return []
    most = max(plan.bias, key=lambda point: (point.speedup or point.tokens_per_call).best)
    gain = f"{point(most.tokens_per_call)} tokens per call" if most.speedup is None else point(most.speedup, "x")
    return [f"{most.rule.name} changes the text: {gain} at k = {most.k} ({most.side})"]


def _few_rules(plan: Plan) -> Table:
    """As many of the best labels as fit, chains and the best stopping rule that was asked for first, with intervals if
    these fit too.
    """
    gains = {label: max(p.gain for p in plan.of(label)) for label in plan.labels}
    asked = max((label for label in plan.labels if label.stop), key=gains.__getitem__, default=None)
    first = (plan.best.label, asked)
    by_gain = sorted(plan.labels, key=lambda label: (label not in first, not label.chain, -gains[label]))
    most = min(_RULES if plan.timed else _RULES_WITHOUT_COSTS, len(by_gain))
    tables = [
        _of_labels(plan, [label for label in plan.labels if label in by_gain[:rules]], ranges=ranges)
        for rules in range(most, 0, -1)
        for ranges in (True, False)
    ]
    return next((table for table in tables if table.width <= WIDTH), tables[-1])


def _of_labels(plan: Plan, labels: Sequence[Label], *, ranges: bool) -> Table:
    """Tokens per call of each label, a limit that binds one of them, and speed-ups; `ranges` are those of tokens."""

    def value(p: Prediction) -> Interval | float:
        return p.tokens_per_call if ranges or p.tokens_per_call.kind == "bound" else p.tokens_per_call.best

    names = {label: str(replace(label, rule=short(label.rule, _LONGEST_HEADING))) for label in labels}
    columns = [
        *(_column(plan, label, "tokens per call", value, name) for label, name in names.items()),
        *_binding(plan, labels),
        *(
            _column(plan, label, "speed-up", lambda p: p.speedup, f"{name}\nspeed-up")
            for label, name in names.items()
            if plan.timed
        ),
    ]
    title = f"Tokens per target call by drafts k{', then speed-up over plain decoding' if plan.timed else ''}"
    return _by_nodes(title, plan, labels, columns, best=plan.best.shape.nodes)


def _binding(plan: Plan, labels: Sequence[Label]) -> list[Column]:
    """A limit that is known and binds a rule that is shown, as the first rule that knows it has it."""
    shown = [p for label in labels for p in plan.of(label)]
    for claim in (*limits_of_decodings(plan), TEXT):
        if any(p.compared(claim) and claim.key in p.rule.bound_by for p in shown):
            return [_limit(claim, brief=True)]
    return []
