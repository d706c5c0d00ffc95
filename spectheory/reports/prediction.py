"""The predictions of a trace: tables of tokens per call and speed-ups, the bias trade-off, and the outside check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.limits.claims import (
    BY_START,
    IID_BRANCHING,
    IID_CHANNEL,
    IID_FORMULA,
    ON_DECODINGS,
    ON_TRACES,
    TEXT,
    WHOLE_DECODING,
    LimitClaim,
    footnotes,
)
from spectheory.prediction import Label, Plan, Prediction
from spectheory.prediction.adaptive import AdaptiveWorth
from spectheory.prediction.bias_tradeoff import BiasPoint
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.recorded_readings import RecordedReading
from spectheory.prediction.shape_calls import BestTree
from spectheory.reports.adaptive import adaptive_sentence, adaptive_table
from spectheory.reports.base import Report
from spectheory.reports.policies import policies
from spectheory.reports.recorded import recorded_notes, recorded_table
from spectheory.reports.remarks import IN_LOOP, NO_COST, origin
from spectheory.reports.table import Cell, Column, Table
from spectheory.reports.whole_decoding import whole_decoding
from spectheory.verification import GreedyMatch, RankRule

Aside = tuple[str, Callable[[Sequence[Prediction]], float | None]]
"""A column to compare with: its heading, and its value from the predictions of one size."""
Records = Sequence[Mapping[str, Any]]
TOKENS = "Tokens per target call"
COUNTED = "Tokens per call count accepted drafts and the recovered or bonus token of each target call."


def prediction_report(
    plan: Plan,
    *,
    in_loop: bool = False,
    bias: Sequence[BiasPoint] = (),
    check: Records | None = None,
    recorded: Sequence[RecordedReading] = (),
    adaptive: Sequence[AdaptiveWorth] = (),
) -> Report:
    """Every prediction of a plan; `in_loop` says whether speed-ups count the loop around the passes.

    `recorded` are the readings of recorded lengths, which have no limits.
    """
    best = plan.best.as_dict()
    content = {
        **best,
        "best": {
            "rule": best["rule"],
            "shape": best["shape"],
            "by": "speedup" if best["speedup"] else "tokens_per_call",
        },
        "predictions": [prediction.as_dict() for prediction in plan.predictions],
        "prompts": plan.prompts,
        "provenance": dict(plan.best.provenance),
        "in_loop": in_loop,
        "bias": [point.as_dict() for point in bias],
        **({"check": check} if check else {}),
        **({"adaptive": [each.as_dict() for each in adaptive]} if adaptive else {}),
        **({"recorded": [reading.as_dict() for reading in recorded]} if recorded else {}),
    }
    pieces = [
        *([_chains_table(plan, with_limits=not recorded)] if plan.chains else []),
        *([_trees_table(plan)] if plan.trees else []),
        *([_by_nodes("Speed-up over plain decoding", plan, plan.labels, lambda p: p.speedup)] if _timed(plan) else []),
        *([_drafted_table(plan)] if _stopped(plan) else []),
        *([adaptive_table(adaptive)] if adaptive else []),
        *([_bias_table(bias)] if bias else []),
        *([_check_table(check)] if check else []),
        *([recorded_table(recorded)] if recorded else []),
    ]
    notes = _recorded_notes(plan, in_loop, recorded) if recorded else _notes(plan, in_loop)
    headline = f"{_headline(plan)}. {adaptive_sentence(adaptive)}" if adaptive else _headline(plan)
    return Report(content, pieces, headline, notes)


def _timed(plan: Plan) -> bool:
    return plan.best.speedup is not None


def _headline(plan: Plan) -> str:
    best = plan.best
    chain = isinstance(best.shape, Chain) and not best.label.stop
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
        *(_first(claim, f"\n{plan.chains[0]}") for claim in _of_fixed(plan)),
        *(_first(claim) for claim in (*_of_decodings(plan), TEXT, IID_BRANCHING)),
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


def _stopped(plan: Plan) -> list[Label]:
    """The labels of chains that a stopping rule may end."""
    return [label for label in plan.chains if label.stop]


def _drafted_table(plan: Plan) -> Table:
    """Drafted tokens per call where the draft decides."""
    notes = [
        "Calls are exact. Drafted tokens are estimated from likelihood ratios of the texts, inside certain bounds; a "
        "range a..b is those bounds. Past the end of a text nothing stops."
    ]
    title = "Drafted tokens per call, at most k, where the draft stops"
    return replace(_by_nodes(title, plan, _stopped(plan), lambda p: p.drafted), notes=notes)


def _of_decodings(plan: Plan) -> list[LimitClaim]:
    """The limit of whole decodings, unless a column of the table is that limit: block verification is B7."""
    chains = [p for label in plan.chains for p in plan.of(label)]
    if not plan.of("block") and any(p.limits.decoding for p in chains):
        return [WHOLE_DECODING]
    return [BY_START] if any(p.limits.decoding_by_start for p in chains) else []


def _of_fixed(plan: Plan) -> list[LimitClaim]:
    """C1, which knows no stopping rule, where the first chains have none."""
    return [] if plan.chains[0].stop else [IID_FORMULA]


def _first(claim: LimitClaim, of: str = "") -> Aside:
    """A limit as the first rule of a row has it."""
    return claim.heading + of, lambda row: row[0].compared(claim)


def _channel(rule: str) -> Aside:
    """T1 with the ranks of one rule."""
    heading = f"{IID_CHANNEL.heading}\n{rule}"
    return heading, lambda row: next((p.limits.iid_channel for p in row if p.rule.name == rule), None)


def _by_nodes(
    title: str,
    plan: Plan,
    labels: Sequence[Label],
    value: Callable[[Prediction], Interval | None],
    asides: Sequence[Aside] = (),
) -> Table:
    """A row per number of nodes, a column per label; the best of the plan is marked."""
    of_label = {label: {p.shape.nodes: p for p in plan.of(label)} for label in labels}
    rows: list[list[Cell | int | float | None]] = []
    for nodes in sorted({nodes for of in of_label.values() for nodes in of}):
        row = [of.get(nodes) for of in of_label.values()]
        known = [p for p in row if p]
        cells = [Cell(value(p), best=p is plan.best) if p else None for p in row]
        rows.append([nodes, *cells, *(compared(known) for _, compared in asides)])
    columns = [Column("k"), *(Column(str(label)) for label in labels)]
    return Table(title, [*columns, *(Column(heading, aside=True) for heading, _ in asides)], rows)


def _bias_table(points: Sequence[BiasPoint]) -> Table:
    """Tokens per call against the bias, a row per share; both sides where they differ."""
    cut = any(point.upper_tokens_per_call for point in points)
    columns = [Column("share"), Column("tokens per call"), *([Column("upper estimate")] if cut else [])]
    rows = [
        [
            f"{point.rule.share:g}",
            point.tokens_per_call,
            *([point.upper_tokens_per_call] if cut else []),
            point.speedup,
            *(interval and interval.best for interval in (point.bias, point.uno_bias)),
        ]
        for point in points
    ]
    return Table(
        f"Token verification with over-acceptance, calls from lossless starts, chains of k = {points[0].k}",
        [*columns, Column("speed-up"), Column("bias per token", digits=4), Column("UNO's bias", digits=4)],
        rows,
        _bias_notes(cut),
    )


def _bias_notes(cut: bool) -> list[str]:
    """What the columns of the bias table mean."""
    sides = (
        "The target's tokens are cut (temperature 0, or a filter), or the trace does not say. After a draft that the "
        "target cannot output, tokens per call and speed-up count what the share alone accepts: a lower estimate. The "
        "upper estimate counts every draft. Noise may swap the two where they are close."
    )
    return [
        "share: how far acceptance is raised, b = (1 - share) min(1, p/q) + share; 0 is lossless, 1 outputs the draft.",
        "The starts and prefixes of a biased decoder drift; these calls start where lossless ones do.",
        *([sides] if cut else []),
        "bias: total variation per token with the best recovery (Y6), and with recovery from the target (UNO).",
    ]


def _check_table(records: Records) -> Table:
    """Predicted against counted target calls, and predicted against measured speed-up."""
    columns = [Column("k"), Column("tokens"), Column("calls counted"), Column("predicted", digits=1)]
    columns += [Column("diff / s.e.", signed=True), Column("measured", "x"), Column("loop without overhead", "x")]
    rows = [
        [
            *(record[name] for name in ("k", "tokens", "counted")),
            float(record["predicted"]),
            "inf" if record["z"] is None else record["z"],
            record["measured_speedup"],
            record["predicted_speedup"],
        ]
        for record in records
    ]
    return Table("Against transformers' assisted generation (token verification)", columns, rows)


# Notes


def _recorded_notes(plan: Plan, in_loop: bool, recorded: Sequence[RecordedReading]) -> list[str]:
    """The same, of recorded lengths."""
    lines = [COUNTED, *recorded_notes(plan.best.provenance, recorded)]
    lines += ([IN_LOOP] if in_loop else []) if _timed(plan) else [NO_COST]
    return [*lines, *few_prompts(plan.prompts)]


def _notes(plan: Plan, in_loop: bool) -> list[str]:
    """What a reader must know to trust the numbers, one sentence each."""
    provenance = plan.best.provenance
    estimated = dict.fromkeys(p.rule.name for p in plan.predictions if _from_estimates(p))
    lines = [
        *policies(plan),
        *whole_decoding(plan.predictions),
        COUNTED,
        "They are exact for the texts of the trace; intervals (95%) are over prompts.",
    ]
    lines += [
        f"{name} with several candidates is not exact: its rank laws are unbiased estimates, whose noise the intervals "
        "include."
        for name in estimated
    ]
    lines += origin(provenance)
    absent = [claim.name for claim in (IID_BRANCHING, IID_CHANNEL) if plan.best.compared(claim) is None]
    bounded = dict.fromkeys(p.rule.name for p in plan.predictions if p.certified)
    if bounded:
        lines.append(
            f"{', '.join(bounded)}: not exact, but from lists of the most probable tokens. The range that they allow "
            "(`certified`) is certain for these texts; intervals join the 95% ones over prompts at both of its ends "
            "(with one prompt, the ends alone). The middle is no estimate: settings are compared by the low end."
        )
    elif absent:
        absent = ["the race rule", *absent]
    if absent:
        lines.append(f"Absent, as they need full pmfs: {', '.join(absent)}.")
    if any(isinstance(p.wanted, BestTree) for p in plan.predictions):
        lines.append("Trees are the best that a local search found, one for each rule and size.")
        lines.append(
            "Each text is scored by a tree found on other prompts; the intervals treat the trees as fixed."
            if all(p.held_out for p in plan.predictions)
            else "With one prompt they are scored on the text they were found on: too high."
        )
    if not _timed(plan):
        lines.append(NO_COST)
    elif in_loop:
        lines.append(IN_LOOP)
    if any(isinstance(p.rule, GreedyMatch) for p in plan.predictions) and not _greedy(provenance):
        lines.append("Greedy verification outputs the target's first choices: on other text its numbers are idealised.")
    return [*lines, *few_prompts(plan.prompts), *_claims(plan)]


def _claims(plan: Plan) -> list[str]:
    """What the limits claim that the tables show."""
    others = [claim for claim in ON_TRACES if claim.scope is not ON_DECODINGS]
    shown = [*_of_decodings(plan), *others, *_of_fixed(plan)] if plan.chains else others
    known = [claim for claim in shown if any(p.compared(claim) is not None for p in plan.predictions)]
    lumped = (
        "T1 counts all ranks above 8 (or above those recorded) as one. For rules without ranks it uses the ranks of "
        "recursive rejection."
    )
    return [*footnotes(known), *([lumped] if IID_CHANNEL in known else [])]


def _greedy(provenance: Mapping[str, Any]) -> bool:
    """Whether the text was decoded at temperature 0."""
    settings = provenance.get("settings")
    sampling = settings.get("sampling") if isinstance(settings, dict) else None
    return isinstance(sampling, dict) and sampling.get("temperature") == 0


def _from_estimates(prediction: Prediction) -> bool:
    rule = prediction.rule
    return isinstance(rule, RankRule) and rule.estimated and prediction.shape.max_rank > 1
