"""Before there is a draft: what entropies say of its acceptance, and what a speed-up needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from spectheory.answers.theory import NeedsJson
from spectheory.limits import acceptance_at_least, first_choice_at_least
from spectheory.prediction.whole_bounds import EarlyAnswer
from spectheory.reports.base import Brief, Report
from spectheory.reports.brief import narrowed, sizes_shown, verdict
from spectheory.reports.table import Column, Row, Table

OF_TEXT = (
    "Entropies are means in nats over text sampled from the target, with the sampling settings in use. On other text "
    "the difference of cross-entropies is not a KL divergence and gives no bound."
)
NO_UPPER = (
    "Means give no upper bound on acceptance but 1: drafts that miss rare tokens alone have any KL. Two "
    "log-probabilities per token give it exactly: spectheory predict --logprobs FILE."
)
OF_TREES = (
    "The entropy alone does not limit chains or trees of drafts. The target's log-probabilities along its text do (B6, "
    "--target-logprobs FILE), as do both moments if pmfs are i.i.d. (B2', --mu with --mu2)."
)
OF_NEED = (
    "C1 assumes i.i.d. acceptances and verification in the time of a plain step: on real text an estimate. Rates that "
    "differ between calls alone give at least as many tokens per call as their mean; dependence within a call may do "
    "either."
)
SUFFICES = (
    "'KL that suffices': a draft whose cross-entropy on the target's text exceeds the target's by no more is sure to "
    "have this mean acceptance (A1, a sufficient condition)."
)
_SHOWN = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)
"""Lengths of chains in the table, beside the best one."""


def early_report(answer: EarlyAnswer) -> Report:
    """Entropies, then needs; each row says its side."""
    readings = list(answer.readings())
    tables = [_readings(readings)] if readings else []
    tables += [_needs(answer, _sizes(answer))] if answer.needed else []
    notes = [
        *([OF_TEXT] if readings else []),
        *([NO_UPPER] if answer.divergence is not None else []),
        *([OF_TREES] if answer.target_nats is not None else []),
        *([OF_NEED, SUFFICES] if answer.needed else []),
    ]
    return Report(_content(answer, readings), tables, _headline(answer), notes, _brief(answer, tables))


def _brief(answer: EarlyAnswer, tables: Sequence[Table]) -> Brief:
    """The needs if they were asked for, else what the entropies say."""
    divergence, least = answer.divergence, answer.least
    known = None if divergence is None else acceptance_at_least(divergence)
    lines = [] if known is None else [f"Token verification accepts at least {known:.3f} of such drafts"]
    if least is not None:
        assured = "" if known is None else ", which is assured" if known >= least.acceptance else ", not assured"
        lines.append(
            f"A speed-up of {answer.need:g} needs an acceptance rate of {least.acceptance:.3f} (k = {least.k}){assured}"
        )
    if not lines and answer.target_nats is not None:
        share = first_choice_at_least(answer.target_nats)
        lines.append(f"The target's first choice is its output in at least {share:.3f} of the positions")
    tables = [_needs(answer, sizes_shown((each.k for each in answer.needed), least.k))] if least else tables[:1]
    return Brief(verdict(*lines), [*map(narrowed, tables)])


def _content(answer: EarlyAnswer, readings: Sequence[tuple[str, str, float, str]]) -> NeedsJson:
    values = {key: {"value": value, "side": side} for key, _, value, side in readings}
    return NeedsJson.view(answer, source="entropies" if readings else "need", readings=values)


def _sizes(answer: EarlyAnswer) -> list[int]:
    """The lengths of chains in the whole table."""
    few = len(answer.needed) <= len(_SHOWN)
    return [each.k for each in answer.needed if few or each is answer.least or each.k in _SHOWN]


def _headline(answer: EarlyAnswer) -> str:
    return ". ".join(_sentences(answer)) + "."


def _sentences(answer: EarlyAnswer) -> Iterator[str]:
    divergence, least = answer.divergence, answer.least
    assured = None if divergence is None else acceptance_at_least(divergence)
    if assured is not None:
        yield (
            f"Token verification accepts at least {assured:.3f} of such drafts: {divergence:.3f} nats above the "
            f"target, perplexity {_perplexity(answer.draft_nats)} against {_perplexity(answer.target_nats)}"
        )
    elif answer.target_nats is not None:
        best = first_choice_at_least(answer.target_nats)
        yield f"The target's first choice is its output in at least {best:.3f} of the positions"
    if least is not None:
        known = "" if assured is None else ", which is assured" if assured >= least.acceptance else ", not assured"
        yield (
            f"A speed-up of {answer.need:g} with draft steps of {answer.c:g} target steps needs an acceptance rate of "
            f"{least.acceptance:.3f} (k = {least.k}, if acceptances are i.i.d.){known}"
        )


def _perplexity(nats: float | None) -> str:
    assert nats is not None
    return f"{math.exp(nats):.4g}" if nats < 700 else f"e^{nats:.4g}"


def _readings(readings: Sequence[tuple[str, str, float, str]]) -> Table:
    marks = {"lower bound": "≥", "upper bound": "≤"}
    rows: list[Row] = [[what, marks.get(side, "="), value, side] for _, what, value, side in readings]
    sign = Column("", kind="names", meaning="≥ of a lower bound, ≤ of an upper bound")
    columns = [Column("what", kind="words"), sign, Column("value", digits=3), Column("side", kind="words")]
    return Table("What the entropies say, means over the text", columns, rows)


def _needs(answer: EarlyAnswer, sizes: Sequence[int]) -> Table:
    shown = [each for each in answer.needed if each.k in sizes]
    rows: list[Row] = [[each.k, each.tokens_per_call, each.acceptance, each.divergence] for each in shown]
    columns = [Column("k"), Column("tokens per call"), Column("acceptance (C1)", digits=3)]
    title = f"What chains of k drafts need for a speed-up of {answer.need:g} at c = {answer.c:g}"
    return Table(title, [*columns, Column("KL that suffices", " nats", digits=3)], rows)
