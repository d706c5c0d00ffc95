"""Limits on tokens per call, a row for each number of nodes; before there is a draft, what entropies or an acceptance
rate alone say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from spectheory.answers.theory import AcceptanceJson, BoundsJson, NeedsJson
from spectheory.intervals import Interval
from spectheory.limits import (
    acceptance_at_least,
    first_choice_at_least,
)
from spectheory.limits.claims import IID_PMFS, LimitClaim, footnotes
from spectheory.prediction.bounds_answer import DETERMINISTIC, RANKS, SAMPLED, BoundsAnswer, EarlyAnswer
from spectheory.prediction.from_acceptance import AtLength, FromAcceptance
from spectheory.reports.base import Brief, Report, sizes_shown
from spectheory.reports.meanings import claimed
from spectheory.reports.notes import NO_COST
from spectheory.reports.table import Cell, Column, Row, Table, number

_WHICH = {
    DETERMINISTIC: "that do not sample",
    SAMPLED: "sampled in a chain",
    RANKS: "in a tree of i.i.d. ranks",
}
"""The drafts that the limits of each table are about."""


def bounds_report(answer: BoundsAnswer) -> Report:
    """A row per number of nodes, a footnote per claim."""
    claims = {key: claim for part in answer.tables.values() for key, claim in part.items()}
    most = any(_is_most(value, nodes) for nodes, row in answer.rows.items() for value in row.values())
    content = BoundsJson.view(
        answer.facts,
        source=answer.source,
        unit="tokens per call, recovered or bonus token counted",
        rows=[{"nodes": nodes, **row} for nodes, row in answer.rows.items()],
        columns=claims,
    )
    notes = [
        "Tokens per call count the recovered or bonus token: X + 1 for limits on X predicted tokens.",
        *(["* P + 1, the most that P nodes can give."] if most else []),
        *footnotes(claims.values()),
        *answer.notes,
    ]
    facts = ", ".join(f"{name} = {_fact(value)}" for name, value in answer.facts.items())
    marked = {
        nodes: {key: Cell(value, after="*" if _is_most(value, nodes) else " ") for key, value in row.items()}
        for nodes, row in answer.rows.items()
    }
    pieces = [_table(title, part, marked) for title, part in answer.tables.items()]
    return Report(content, pieces, facts, notes, _brief(answer))


def _fact(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_fact(entry) for entry in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_most(value: Interval | float | None, nodes: int) -> bool:
    best = _best(value)
    return best is not None and best >= nodes + 1


def _table(
    title: str, claims: Mapping[str, LimitClaim], rows: Mapping[int, Mapping[str, Any]], *, brief: bool = False
) -> Table:
    """The values of some claims, a row per number of nodes; headings of a `brief` answer are words."""
    columns = [
        Column(claim.plain_heading if brief else claim.heading, meaning=claimed(claim)) for claim in claims.values()
    ]
    return Table(title, [Column("P"), *columns], [[nodes, *map(row.get, claims)] for nodes, row in rows.items()])


# What is shown first


def _brief(answer: BoundsAnswer) -> Brief:
    """The limits of every table side by side, of several with one assumption the tightest; no idealised values."""
    of_tables = {title: _matter(part, answer) for title, part in answer.tables.items()}
    claims = {key: claim for part in of_tables.values() for key, claim in part.items()}
    known = {nodes: row for nodes, row in answer.rows.items() if any(row[key] is not None for key in claims)}
    lines = [line for title, part in of_tables.items() for line in _sentences(title, part, answer)]
    return Brief.of(lines[:2], [_table("Tokens per call, at most, by draft nodes P", claims, known, brief=True)])


def _matter(claims: Mapping[str, LimitClaim], answer: BoundsAnswer) -> dict[str, LimitClaim]:
    """The claims that are no idealised values and known somewhere; of those for i.i.d. pmfs the tightest."""
    known = [
        key
        for key, claim in claims.items()
        if claim.scope.side != "reading" and any(row[key] is not None for row in answer.rows.values())
    ]
    alike = [key for key in known if claims[key].scope is IID_PMFS]
    tightest = min(alike, key=lambda key: sum(_best(row[key]) or 0.0 for row in answer.rows.values()), default=None)
    return {key: claims[key] for key in known if key not in alike or key == tightest}


def _sentences(title: str, claims: Mapping[str, LimitClaim], answer: BoundsAnswer) -> Iterator[str]:
    """What each limit is for the most nodes for which it is known."""
    for key, claim in claims.items():
        nodes = max(nodes for nodes, row in answer.rows.items() if row[key] is not None)
        value = answer.rows[nodes][key]
        if claim.scope.side == "limit" and value is not None:
            name = "" if claim.words else f" ({claim.name})"
            yield f"At most {number(value)} tokens per call with {nodes} drafts {_WHICH[title]}{name}"


def _best(value: Interval | float | None) -> float | None:
    return value.best if isinstance(value, Interval) else value


# Before there is a draft

_OF_TEXT = (
    "Entropies are means in nats over text sampled from the target, with the sampling settings in use. On other text "
    "the difference of cross-entropies is not a KL divergence and gives no bound."
)
_NO_UPPER = (
    "Means give no upper bound on acceptance but 1: drafts that miss rare tokens alone have any KL. Two "
    "log-probabilities per token give it exactly: spectheory predict --logprobs FILE."
)
_OF_TREES = (
    "The entropy alone does not limit chains or trees of drafts. The target's log-probabilities along its text do (B6, "
    "--target-logprobs FILE), as do both moments if pmfs are i.i.d. (B2', --mu with --mu2)."
)
_OF_NEED = (
    "C1 assumes i.i.d. acceptances and verification in the time of a plain step: on real text an estimate. Rates that "
    "differ between calls alone give at least as many tokens per call as their mean; dependence within a call may do "
    "either."
)
_SUFFICES = (
    "'KL that suffices': a draft whose cross-entropy on the target's text exceeds the target's by no more is sure to "
    "have this mean acceptance (A1, a sufficient condition)."
)
_ASSURED = (
    "Tokens per call are least where as many rejections as these entropies allow follow each other (C6). These bounds "
    "are means over texts that the target samples, but for a text's last call; they are for a draft model, not for a "
    "head whose later drafts are worse. Block verification needs no more calls than token verification (B7)."
)
_SHOWN = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)
"""Lengths of chains in the table, beside the best one."""


def early_report(answer: EarlyAnswer) -> Report:
    """Entropies, then needs; each row says its side."""
    readings = list(answer.readings())
    tables = []
    if readings:
        marks = {"lower bound": "≥", "upper bound": "≤"}
        rows: list[Row] = [[what, marks.get(side, "="), value, side] for _, what, value, side in readings]
        sign = Column("", kind="names", meaning="≥ of a lower bound, ≤ of an upper bound")
        columns = [Column("what", kind="words"), sign, Column("value", digits=3), Column("side", kind="words")]
        tables.append(Table("What the entropies say, means over the text", columns, rows))
    if answer.assured:
        tables.append(_assured(answer))
    if answer.needed:
        few = len(answer.needed) <= len(_SHOWN)
        sizes = [each.k for each in answer.needed if few or each is answer.least or each.k in _SHOWN]
        tables.append(_needs(answer, sizes))
    notes = [
        *([_OF_TEXT] if readings else []),
        *([_NO_UPPER, _ASSURED] if answer.divergence is not None else []),
        *([_OF_TREES] if answer.target_nats is not None else []),
        *([_OF_NEED, _SUFFICES] if answer.needed else []),
    ]
    values = {key: {"value": value, "side": side} for key, _, value, side in readings}
    content = NeedsJson.view(answer, source="entropies" if readings else "need", readings=values)
    said, divergence = list(_early_sentences(answer)), answer.divergence
    if divergence is not None:
        against = f"perplexity {_perplexity(answer.draft_nats)} against {_perplexity(answer.target_nats)}"
        said.insert(0, f"The draft is {divergence:.3f} nats above the target, {against}")
    return Report(content, tables, f"{'. '.join(said)}.", notes, _early_brief(answer, tables))


def _early_brief(answer: EarlyAnswer, tables: Sequence[Table]) -> Brief:
    """The needs if they were asked for, else what the entropies say."""
    least = answer.least
    if least:
        tables = [_needs(answer, sizes_shown((each.k for each in answer.needed), least.k))]
    elif answer.assured:
        tables = [_assured(answer)]
    return Brief.of(list(_early_sentences(answer)), tables[:1])


def _early_sentences(answer: EarlyAnswer) -> Iterator[str]:
    """What is accepted at least, and what a speed-up needs."""
    divergence, least = answer.divergence, answer.least
    known = None if divergence is None else acceptance_at_least(divergence)
    if known is not None:
        if least is None:
            last = answer.assured[-1]
            yield f"At least {last.tokens_per_call:.2f} tokens per call at k = {last.k}, token or block verification"
        yield f"Token verification accepts at least {known:.3f} of such drafts"
    elif answer.target_nats is not None:
        share = first_choice_at_least(answer.target_nats)
        yield f"The target's first choice is its output in at least {share:.3f} of the positions"
    if least is not None:
        assured = "" if known is None else ", which is assured" if known >= least.acceptance else ", not assured"
        rate = f"an acceptance rate of {least.acceptance:.3f} (k = {least.k})"
        yield f"A speed-up of {answer.need:g} needs {rate}{assured}"


def _assured(answer: EarlyAnswer) -> Table:
    columns = [
        Column("k"),
        Column("token or block\nverification", at="tokens_per_call", meaning="lower bound (A1, C6, B7)"),
        Column("race", meaning="lower bound (A3, C6)"),
    ]
    return Table.of("Tokens per call of chains of k drafts, at least", columns, answer.assured)


def _perplexity(nats: float | None) -> str:
    assert nats is not None
    return f"{math.exp(nats):.4g}" if nats < 700 else f"e^{nats:.4g}"


def _needs(answer: EarlyAnswer, sizes: Sequence[int]) -> Table:
    columns = [
        Column("k"),
        Column("tokens per call"),
        Column("acceptance needed", digits=3, at="acceptance"),
        Column("KL that suffices", " nats", digits=3, at="divergence"),
    ]
    title = f"What chains of k drafts need for a speed-up of {answer.need:g} at c = {answer.c:g}"
    return Table.of(title, columns, [each for each in answer.needed if each.k in sizes])


# From an acceptance rate alone

_CERTAIN = (
    "Ranges hold for every text with exactly this acceptance, whichever way it is spread (C6), if the rule decides "
    "each position alone, in the same way at every depth of a call: token verification or matching of a draft model, "
    "not of a head whose later drafts are worse. The error of the rate itself comes on top, and a text's last call is "
    "left out, which matters for short texts."
)
_FOR = "Ranges are for a draft model that is verified token by token; a head, worse at later drafts, may get less."
_COUNTED = "Block verification is not covered, as the rate was counted in calls of one k."
_BLOCK = (
    "Lower ends hold for block verification too in the mean over texts that the target samples (B7), not for each text."
)
_IDEALISED = "i.i.d.: the idealised value if every draft is accepted with the same chance, independently (C1)."
_GIVEN = "Given this c, and beside it half and twice as much: c is seldom known better until it is timed."
_FREE = "Drafts that cost nothing: the speed-up is the number of tokens per call."
_TO_NARROW = (
    "Counts by position or a measured pair narrow the range: spectheory import LOG --out DIR, or spectheory measure."
)


def acceptance_report(answer: FromAcceptance) -> Report:
    """The range of every length; first the safest."""
    best = answer.safest
    content = AcceptanceJson.view(answer, source="acceptance")
    cost = (_GIVEN if answer.c else _FREE) if answer.cs else NO_COST
    notes = [_CERTAIN, _BLOCK if answer.counted_k is None else _COUNTED, _IDEALISED, cost, _TO_NARROW]
    lines = _acceptance_lines(answer)
    shown = sizes_shown((row.k for row in answer.rows), best.k)
    tables = [_lengths_table(answer, [row for row in answer.rows if row.k in shown])]
    brief = Brief.of(lines, tables, [_FOR, cost, _TO_NARROW])
    return Report(content, [_lengths_table(answer, answer.rows)], "; ".join(lines), notes, brief)


def _acceptance_lines(answer: FromAcceptance) -> list[str]:
    """Whether it pays, and the range at the safest length."""
    best = answer.safest
    if not answer.cs:
        return [f"From this acceptance alone: {_tokens(best)}"]
    given, most = answer.gain(best), max(answer.rows, key=lambda row: answer.gain(row).high)
    highest = answer.gain(most)
    if given.low > 1:
        verdict = f"Pays at k = {best.k}: speed-up {_ends(given, 'x')}, given c = {answer.c:g}"
    elif highest.high > 1:
        verdict = f"May pay: speed-up {_ends(highest, 'x')} at k = {most.k}, given c = {answer.c:g}"
    else:
        tried = f"No k up to {answer.rows[-1].k} pays"
        verdict = f"{tried}: at most {highest.high:.2f}x, at k = {most.k}, given c = {answer.c:g}"
    return [verdict, _tokens(best if given.low > 1 else most)]


def _tokens(row: AtLength) -> str:
    tokens = row.tokens_per_call
    return f"{_ends(tokens)} tokens per call at k = {row.k}; i.i.d. {tokens.best:.2f}"


def _lengths_table(answer: FromAcceptance, rows: Sequence[AtLength]) -> Table:
    costs = [
        Column(f"speed-up\nc = {c:g}", "x", at=lambda row, i=i: _both(row.speedups[i]), aside=c != answer.c)  # type: ignore[misc]
        for i, c in enumerate(answer.cs)
    ]
    columns = [
        Column("k"),
        Column(
            "tokens per call",
            meaning="range over all texts with this acceptance",
            at=lambda row: _both(row.tokens_per_call),
        ),
        Column("i.i.d.", at="tokens_per_call.best", meaning="C1: idealised"),
        *costs,
    ]
    return Table.of(f"Chains of k drafts at acceptance {answer.acceptance:g}", columns, rows, best=answer.safest)


def _both(value: Interval) -> Interval:
    """The range by both ends, though its idealised value is one of them."""
    return replace(value, best=(value.low + value.high) / 2)


def _ends(value: Interval, unit: str = "") -> str:
    """Both ends, or the value if they are one."""
    low, high = (f"{end:.2f}{unit}" for end in (value.low, value.high))
    return low if low == high else f"{low} to {high}"
