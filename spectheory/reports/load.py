"""Chains under a load: the best k by batch and context, times of requests, and what meets a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from spectheory.deployment.batches import BATCHES
from spectheory.deployment.load import Load, LoadAnswer, LoadPoint
from spectheory.intervals import Interval
from spectheory.reports.table import Cell, Column, Row, Table, Value

_CHOICE = "best k and its speed-up with so many cached tokens; 0: plain decoding"
_NO_ROOM = "* caches and weights do not fit into memory."
_BESIDE = 2
"""How many lengths on either side of the best are shown first."""
_TIMES = (
    "A request's prompt is read in a pass of its own while the others wait; TPOT: milliseconds per output token after "
    "the first, TTFT: to the first, without a queue. Engines that read prompts in pieces beside decoding take less."
)
_GOODPUT = (
    "Goodput: the most output tokens per second at a concurrency that meets the targets, and fits into memory or was "
    "timed. A k without a row meets them at none."
)


def load_tables(load: LoadAnswer, of: str, *, brief: bool = False) -> list[Table]:
    """Tables of a load; `of` says whose chains they are. In brief, the one that answers what was asked."""
    tables = [_batches_table(load, of)]
    if load.requests:
        lengths = f"{load.load.prompt_tokens} prompt and {load.load.output_tokens} output tokens"
        title = f"Requests of {lengths}: the k of most tokens per second"
        tables.append(Table.of(title, [Column("concurrency", at="batch"), *_columns()], load.requests, [_TIMES]))
    tables += targets_table(load, brief=brief)
    return tables[-1:] if brief else tables


def targets_table(load: LoadAnswer | None, *, brief: bool = False) -> list[Table]:
    """What meets the targets, a row for each k; none without targets, or where nothing meets them."""
    if load is None or not load.load.targeted or missed(load):
        return []
    columns = _columns()
    columns.insert(1, Column("concurrency", at="batch"))
    points, best = load.targets, load.goodput
    if brief and best is not None:  # plain decoding, and the lengths around the best
        points = [point for point in points if point.k == 0 or abs(point.k - best.k) <= _BESIDE]
    title = f"Within {_targets(load.load)}: the largest concurrency"
    return [Table.of(title, columns, points, [_GOODPUT], best=best)]


def roofline_words(value: Interval) -> str:
    """What is known of a speed-up by a roofline."""
    return f"{value.low:.2f}x to {value.high:.2f}x with the roofline's error"


def room_words(load: LoadAnswer | None) -> str:
    """The batches asked for whose best setting does not fit into memory; of the usual ones if the first does not."""
    if load is None or (load.fits and tuple(load.load.batches) == BATCHES):
        return ""
    asked = load.load.batches[:1] if tuple(load.load.batches) == BATCHES else load.load.batches
    large = [
        f"{each.batch} at context {each.context}" for each in load.batches if not each.fits and each.batch in asked
    ]
    return f"Does not fit into memory: batch {', '.join(large)}" if large else ""


def missed(load: LoadAnswer | None) -> bool:
    """Whether nothing meets the targets that were asked for: then that is the answer."""
    return load is not None and load.load.targeted and load.goodput is None


def load_sentence(load: LoadAnswer | None) -> str:
    """The goodput and that of plain decoding; empty without targets."""
    if load is None or not load.load.targeted:
        return ""
    best = load.goodput
    if best is None:
        least = f" ms per token (at least {load.least_tpot:.3g})" if load.least_tpot else " ms per token"
        return f"Out of reach: {_targets(load.load).replace(' ms per token', least)}"
    plain = next((point for point in load.targets if point.k == 0), None)
    others = "plain decoding meets no target" if plain is None else f"plain decoding {_gives(plain, 'at')}"
    if best.k == 0:
        return f"Goodput: plain decoding, {_gives(best)}; no k gives more"
    return f"Goodput: k = {best.k}, {_gives(best)}; {others}"


def best_lengths_table(
    title: str,
    choices: Iterable[Any],
    text: Callable[[Any], Value | Cell],
    *,
    meaning: str = _CHOICE,
    batch: str = "batch",
    notes: Sequence[str] = (),
) -> Table:
    """The best k by batch, a row each, and by context, a column each."""
    at = {(choice.batch, choice.context): choice for choice in choices}
    contexts = dict.fromkeys(context for _, context in at)
    rows: list[Row] = [
        [each, *(text(at[each, context]) for context in contexts)] for each in dict.fromkeys(each for each, _ in at)
    ]
    columns = [Column(batch), *(Column(f"context {context:.0f}", meaning=meaning) for context in contexts)]
    return Table(title, columns, rows, notes)


def _batches_table(load: LoadAnswer, of: str) -> Table:
    choices = sorted(load.batches, key=lambda choice: (choice.batch, choice.context))
    return best_lengths_table(
        f"Best k by batch and context ({of}; roofline, 0: plain decoding)",
        choices,
        lambda one: Cell(one.k, after=f" ({one.speedup:.2f}x)" * bool(one.k) + "*" * (not one.fits)),
        notes=[] if all(choice.fits for choice in choices) else [_NO_ROOM],
    )


def _columns() -> list[Column]:
    """What a point of a load has beside its concurrency."""
    return [
        Column("k", at=lambda one: Cell(one.k)),
        Column("TPOT, ms", at="tpot", meaning="per output token of a request after its first"),
        Column("TTFT, ms", at="ttft", digits=1, meaning="from a request to its first token"),
        Column(
            "prompts",
            "%",
            digits=0,
            at=lambda point: None if point.prompt_share is None else 100 * point.prompt_share,
            aside=True,
            meaning="share of the time spent on prompts",
        ),
        Column("tokens/s", at="tokens_per_second", digits=0, meaning="output tokens of all requests"),
        Column("requests/s", at="requests_per_second", aside=True, meaning="requests that end"),
        Column("speed-up", "x", at="speedup", meaning="in tokens per second, over plain decoding of as many requests"),
    ]


def _targets(load: Load) -> str:
    named = ((load.tpot, "ms per token"), (load.ttft, "ms to the first"))
    return " and ".join(f"{limit:g} {what}" for limit, what in named if limit is not None)


def _gives(point: LoadPoint, at: str = "tokens/s at concurrency") -> str:
    return f"{point.tokens_per_second:.0f} {at} {point.batch}"
