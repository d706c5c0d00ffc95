"""A deployment plan: what to run, what it gives, what it would take to pay, and how far the limits are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from spectheory.answers.plan import PlanJson
from spectheory.deployment import BreakEven, Candidate, EngineSettings, LockStepChoice
from spectheory.deployment.candidates import DO_NOT
from spectheory.deployment.deployment import Deployment
from spectheory.deployment.engines import fastest_of_each
from spectheory.limits.claims import footnotes
from spectheory.prediction.over_prompts import few_prompts
from spectheory.reports.base import LONGEST_NAME, MOST_ROWS, Brief, Report, point, short
from spectheory.reports.first_screen import PAYS, engines_table, how_sure, last_notes, verdict
from spectheory.reports.load import best_lengths_table, load_sentence, load_tables, missed, room_words
from spectheory.reports.notes import (
    QUIET,
    deployment_notes,
    disturbed_words,
    heavy_tail,
    requests_left_out,
    whole_decoding,
)
from spectheory.reports.optional_tables import adaptive_sentence, adaptive_tables, recorded_table
from spectheory.reports.table import Cell, Column, Table, Value

_ENGINES = 2
"""That are shown above another table."""
_LETTERS = 13
"""Of a draft's name in a brief answer."""
_SIDES = {"limit": "upper bound", "reading": "idealised"}
"""What the sides of limits are called in the table."""


def deployment_report(answer: Deployment, *, trace: str = "TRACE") -> Report:
    """The plan in tables and as JSON, with settings to paste; `trace` is how the trace is written in commands."""
    ranking, best, engines = answer.ranking, answer.ranking.best, fastest_of_each(answer.engines)
    adaptive = adaptive_tables(answer.adaptive)
    of = f"{answer.chain.prediction.rule.name}, draft {answer.chain.draft.name}"
    batches = load_tables(answer.load, of) if answer.load else []
    of_engines = [Column("engine", kind="words"), *_columns("candidate.")]
    pieces = [
        Table.of("Drafts, rules and shapes by speed-up", _columns(), ranking.candidates, best=best),
        *adaptive,
        _break_even_table(answer.break_even),
        *([_distances_table(answer)] if answer.distances else []),
        *batches,
        *([lock_step_table(answer.lock_step, len(answer.chain.draft.trace.texts))] if answer.lock_step else []),
        *([Table.of("Under each engine's own rule", of_engines, answer.engines)] if answer.engines else []),
        *([recorded_table(answer.recorded)] if answer.recorded else []),
    ]
    headline = [
        requests_left_out(best.prediction.provenance, answer.recorded),
        *_warned(answer),
        "; ".join([*_verdict(answer, engines), *_runner_up(answer)]),
        *_reads(answer),
        load_sentence(answer.load),
        disturbed_words(best.prediction, best.draft.cost),
        adaptive_sentence(answer.adaptive) if answer.adaptive else "",
    ]
    notes = [
        *deployment_notes(answer),
        *whole_decoding([answer.chain.prediction]),
        *footnotes(distance.limit for distance in answer.distances),
    ]
    loads = load_tables(answer.load, of, brief=True) if answer.load else []
    brief = _brief(answer, engines, [*adaptive, *loads], trace)
    settings = [*engines, *(each for each in answer.engines if each not in engines)]
    return Report(_content(answer), pieces, ". ".join(filter(None, headline)), notes, brief, settings)


def _warned(answer: Deployment) -> list[str]:
    """What does not fit into memory, and where costs and traces contradict each other."""
    return [*filter(None, [room_words(answer.load)]), *(said[0].upper() + said[1:] for said in answer.warnings)]


def _reads(answer: Deployment) -> list[str]:
    """What verifying reads of a target with experts, and whether that loses."""
    reading, speedup = answer.reading, answer.ranking.best.speedup
    if reading is None:
        return []
    low, high = (f"{end:.1f}" for end in (reading.ratio.low, reading.ratio.high))
    times = low if low == high else f"{low} to {high}"
    of, one = (f" of {reading.batch} sequences", "each") if reading.batch > 1 else ("", "token")
    lines = [f"Verifying {reading.tokens} tokens{of} reads {times} times the weights of one {one} (experts)"]
    loses = answer.ranking.best.verdict == DO_NOT
    if loses or speedup.low < 1:
        known = "" if reading.logged or low == high else ": measure --experts, plan --routing say by how much"
        lines.append(f"So speculation {'loses' if loses else 'may lose'}{known}")
    return lines


def _runner_up(answer: Deployment) -> list[str]:
    """The next fastest draft, rule or kind of shape."""
    runner_up = answer.ranking.runner_up
    fits = answer.load is None or answer.load.fits
    if runner_up is None or answer.ranking.best.verdict == DO_NOT or not fits:
        return []
    close = "" if answer.ranking.told_apart else ", too close to call"
    return [f"runner-up{close}: {runner_up.setting}: {point(runner_up.speedup, 'x')}"]


def _content(answer: Deployment) -> PlanJson:
    ranking, chain = answer.ranking, answer.chain
    batches = PlanJson.Batches.view(
        answer, draft=chain.draft.name, rule=chain.prediction.rule.name, choices=answer.batches
    )
    return PlanJson.view(
        ranking.best,
        ranking,
        answer,
        answer.load,
        break_even=asdict(answer.break_even),
        limits=PlanJson.Limits.view(ranking.best.prediction.limits, distances=answer.distances),
        batches=batches if answer.batches else None,
        provenance={each.draft.name: dict(each.prediction.provenance) for each in ranking.by_draft},
    )


def _columns(of: str = "") -> list[Column]:
    """The setting of a candidate, which stands at `of` in a row, and what it gives."""
    return [
        Column("draft", kind="words", at=f"{of}draft.name"),
        Column("kind", kind="words", aside=True, at=f"{of}draft_kind"),
        Column("rule", kind="words", at=f"{of}prediction.rule.name"),
        Column("shape", kind="words", at=f"{of}shape"),
        Column("passes", aside=True, at=f"{of}passes"),
        Column("tokens per call", at=f"{of}prediction.tokens_per_call"),
        Column("speed-up", "x", at=f"{of}speedup"),
    ]


def _break_even_table(needs: BreakEven) -> Table:
    rows: list[list[Value | Cell]] = [["tokens per call", needs.tokens_per_call, needs.tokens_per_call_needed]]
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
    columns = [
        Column("limit", kind="words", at="limit.name"),
        Column(
            "side", kind="words", at=lambda one: Cell(_SIDES[one.limit.scope.side], after="" if one.binds else " *")
        ),
        Column("tokens per call"),
        Column("reached", "%", digits=0, at=lambda one: 100 * one.reached),
        Column("speed-up there", "x", at="speedup"),
    ]
    others = ["* does not apply to the best setting"] if not all(each.binds for each in answer.distances) else []
    return Table.of(f"Limits and idealised values at {nodes} draft nodes", columns, answer.distances, others)


# Batches

_NOTE = (
    "B texts, drawn from the trace's with replacement, begin together; each leaves when it has ended, and the batch "
    "lasts until the slowest has. Speed-up over plain decoding of the same batches; in [ ] the calls of the slowest "
    "over the mean calls of a text."
)
_FEW = "Batches of more than {} texts repeat texts of the trace: the slowest of that many different texts takes longer."


def lock_step_table(choices: Sequence[LockStepChoice], texts: int) -> Table:
    """Best k of lock-step batches (§12); `texts` is how many they are drawn from."""
    few = [_FEW.format(texts)] if max(choice.batch for choice in choices) > texts else []
    return best_lengths_table(
        "The same in lock-step: best k, its speed-up, and waiting",
        choices,
        lambda one: f"{one.k}{f' ({one.speedup:.2f}x)' if one.k else ''} [{one.waiting:.2f}]",
        meaning="best k, its speed-up, and in [ ] calls of the slowest text over the mean; so many cached tokens",
        notes=[_NOTE, *few],
    )


# What is shown first


def _brief(answer: Deployment, engines: Sequence[EngineSettings], asked: Sequence[Table], trace: str) -> Brief:
    """The verdict, what engines run or else the best settings, and the tables that were `asked` for."""
    best, cost = answer.ranking.best.prediction, answer.ranking.best.draft.cost
    timing = disturbed_words(best, cost)
    warned, goodput = _warned(answer), load_sentence(answer.load)
    said = _verdict(answer, engines)
    first = [goodput, *said] if missed(answer.load) else [*said, goodput]
    lines = [*warned, *first, *_reads(answer), timing, requests_left_out(best.provenance, answer.recorded)]
    quiet = [QUIET] if best.disturbed else []
    leading, steps = answer.leading, answer.next_steps(trace)
    notes = [*heavy_tail(answer.recorded, best), *quiet, *few_prompts(answer.prompts)]
    most = _ENGINES if asked else None
    shown = engines_table(engines, several=_several(answer), most=most) or [_fastest(answer)]
    return Brief.of(lines, [*shown, *asked], [*notes, *last_notes(leading.prediction, leading.draft.cost, steps)])


def _verdict(answer: Deployment, engines: Sequence[EngineSettings]) -> list[str]:
    """The fastest setting that an engine runs, then the best of all; where nothing pays, what it would take; nothing
    of what does not fit into memory.
    """
    best, needs = answer.ranking.best, answer.break_even
    if answer.load and not answer.load.fits:
        return []
    if best.verdict == DO_NOT:
        free = needs.draft_ratio_needed
        cheaper = "" if free is None else f" or a draft pass of {free:.2f} target steps"
        return [
            f"Do not speculate; best: {_named(best, answer)}: speed-up {point(best.speedup, 'x')}",
            f"Pays with {needs.tokens_per_call_needed:.2f} tokens per call (now {needs.tokens_per_call:.2f}){cheaper}",
        ]
    if engines:
        return verdict(engines, best.prediction, best.draft.cost, several=_several(answer))
    setting = f"{PAYS[best.verdict]}: {_named(best, answer)}: speed-up {point(best.speedup, 'x')}"
    return [setting, how_sure(best.draft.cost, best.speedup, best.prediction.tokens_per_call)]


def _named(candidate: Candidate, answer: Deployment) -> str:
    """Rule and shape without a tree's depth, with the draft if there are several."""
    rule, shape = candidate.prediction.rule, candidate.shape.partition(", depth")[0]
    if _several(answer):
        return f"{short(candidate.draft.name, _LETTERS)}, {short(rule.name)}, {shape}"
    return f"{short(rule.label, LONGEST_NAME + _LETTERS)}, {shape}"


def _several(answer: Deployment) -> bool:
    """Whether several draft models are compared."""
    return len({c.draft.name for c in answer.ranking.candidates if c.prediction.rule.uses_draft}) > 1


def _fastest(answer: Deployment) -> Table:
    """The fastest settings; the draft is named if there are several."""
    by = {column.heading: column for column in _columns()}
    draft = [replace(by["draft"], at=lambda each: short(each.draft.name, _LETTERS))]
    columns = [
        *(draft if _several(answer) else []),
        replace(by["rule"], at=lambda each: short(each.prediction.rule.name)),
        by["shape"],
        replace(by["tokens per call"], aside=True),
        by["speed-up"],
    ]
    shown = answer.ranking.candidates[:MOST_ROWS]
    return Table.of("The fastest settings over plain decoding", columns, shown, best=answer.ranking.best)
