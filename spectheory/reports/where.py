"""Where calls start and where they are lost, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from spectheory.answers.prediction import PredictionJson
from spectheory.prediction.where import Costly, Group, Where
from spectheory.reports.base import Brief, Report
from spectheory.reports.table import Column, Row, Table

_MOST_ROWS = 16
"""Depths of a table; the JSON has all."""
_TOKEN_LETTERS = 24
_SURVIVAL = "share of the calls that accept at least i drafts"
_SEEN = 0.01
"""Share of the lost calls from which on a class may be called the costliest."""


def where_report(settings: Sequence[Where], answer: Report, notes: Sequence[str] = ()) -> Report:
    """Acceptance by depth for every setting; positions, contexts and tokens for the last. The content of the `answer`
    is added to.
    """
    assert isinstance(answer.content, PredictionJson)
    last = settings[-1]
    pieces = [
        *(_depths_table(each) for each in settings if each.depths),
        *_groups_tables(last),
        *([_costliest(last)] if last.text.costliest else []),
    ]
    return Report(
        replace(answer.content, where=[PredictionJson.Where.view(each) for each in settings]),
        pieces,
        ". ".join(_lines(last)),
        [*_meanings(last), *notes],
        _brief(last, pieces, notes) if pieces else None,
    )


def _lines(losses: Where) -> Iterator[str]:
    """How many calls are lost, in which class of tokens most are, and which class costs most per token."""
    yield f"{_setting(losses)}: {losses.lost:.0f} of {losses.calls:.0f} calls end with a rejection"
    if losses.classes and losses.lost:
        most = max(losses.classes, key=lambda group: group.calls)
        seen = [group for group in losses.classes if group.share.best >= _SEEN]
        costliest = max(seen, key=lambda group: group.rate.best)
        yield (
            f"Most are lost at: {most.name} ({most.share.best:.0%}). "
            f"Most per token: {costliest.name} ({costliest.rate.best:.2f})"
        )


def _brief(losses: Where, tables: Sequence[Table], notes: Sequence[str]) -> Brief:
    """The verdict; the classes of tokens, or what is known instead."""
    by_depth = _depths_table(losses) if losses.depths else tables[0]
    table = next((table for table in tables if table.columns[0].heading == "class"), by_depth)
    return Brief.of(list(_lines(losses)), [table], notes)


def _setting(losses: Where) -> str:
    return f"{losses.rule.label}, {losses.shape}"


def _meanings(losses: Where) -> Iterator[str]:
    yield (
        "Acceptance by depth is that of calls, which start where the last one ended. It depends on k without any "
        "fault, and falls where hard tokens come together."
    )
    yield "Counters of an engine show these numbers, not the mean over all positions."
    yield "Calls without room for all drafts in their text are left out of it, and of the tokens per call by position."
    yield "Lost: the call ends with a rejection at this token."
    yield "Numbers are exact for the texts; intervals (95%) are over prompts."
    if not losses.by_context:
        yield "No table by context length: the trace does not know the lengths of the prompts; measure again."
    if not losses.classes:
        yield "No classes of tokens: the trace has no token ids."
    elif losses.named is None:
        yield (
            "Classes are by frequency of the ids in the trace: no tokenizer was found; name the target's folder with "
            "--target."
        )
    else:
        yield f"Strings are those of {losses.named}."


def _depths_table(losses: Where) -> Table:
    """A row per depth: survival of the shortest, a middle and the longest chain, and what is compared."""
    depths, longest = losses.depths, losses.depths[-1]
    shown = [depths[i] for i in sorted({0, (len(depths) - 1) // 2, len(depths) - 1})]
    rows: list[Row] = []
    for i in range(min(len(longest.survival), _MOST_ROWS)):
        survival = [at.survival[i] if i < len(at.survival) else None for at in shown]
        conditional = longest.conditional[i] if i < len(longest.conditional) else None
        rows.append([i + 1, *survival, conditional, longest.everywhere[i]])
    columns = [
        Column("i"),
        *(Column(f"accepts ≥ i\n{at.shape}", digits=3, meaning=_SURVIVAL) for at in shown),
        Column(f"given i - 1\n{longest.shape}", digits=3, meaning="the same among the calls that accept i - 1"),
        Column("over all\npositions", digits=3, aside=True),
    ]
    return Table(f"Acceptance by depth at the calls' own starts: {losses.rule.label}", columns, rows)


def _groups_tables(losses: Where) -> Iterator[Table]:
    setting = _setting(losses)
    for title, what, groups in (
        (f"Calls by the position where they start: {setting}", "position", losses.by_position),
        (f"Calls by the context before them, prompt included: {setting}", "tokens before", losses.by_context),
    ):
        if groups:
            yield _groups(title, what, "calls start", Column("tokens per call there", at="rate"), groups)
    for title, what, groups in (
        (f"Calls lost by class of token: {setting}", "class", losses.classes),
        (f"Calls lost by token: {setting}", "token", losses.ids),
    ):
        if groups:
            yield _groups(title, what, "calls lost", Column("lost per token", digits=3, at="rate"), groups)


def _groups(title: str, what: str, calls: str, rate: Column, groups: Sequence[Group]) -> Table:
    place = "place of the call in its text" if what == "position" else ""
    columns = [
        Column(what, kind="names", meaning=place, at=lambda g: f"'{_escaped(g.name)}'" if what == "token" else g.name),
        Column("tokens"),
        Column(calls, digits=1, at="calls"),
        Column(
            "share",
            "%",
            digits=1,
            meaning=f"share of all {calls.removeprefix('calls ')} calls",
            at=lambda group: group.share * 100.0,
        ),
        rate,
    ]
    return Table.of(title, columns, groups)


def _costliest(losses: Where) -> Table:
    """The tokens of one text at which most calls are lost, with what stands around them."""

    def around(row: Costly) -> str:
        """A token in brackets, with what stands around it."""
        before, token, after = (_escaped(part) for part in (row.before, row.token, row.after))
        return f"{before[-_TOKEN_LETTERS:]}[{token}]{after[:_TOKEN_LETTERS]}"

    columns = [
        Column("position", meaning="place of the token in the text"),
        Column("calls lost", digits=3, at="lost"),
        Column("text", kind="names", at=around),
    ]
    title = f"The costliest tokens of text {losses.text.id}: {_setting(losses)}"
    return Table.of(title, columns, losses.text.costliest)


def _escaped(text: str) -> str:
    """White space as it is written in code, so that a token stands on one line."""
    return repr(text)[1:-1]
