"""Where the calls of a decoding start, and where they are lost (§13): by depth, position, context and token.

Everything is exact for the texts of the trace, given a rule and a shape; intervals are over prompts. A call is *lost*
at a token if it ends there with a rejection: had that draft been accepted, the call would have gone on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Floats
from spectheory.drafting import Chain, Shape
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction.answer import Plan, Prediction
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.over_prompts import Prompts, ratio
from spectheory.trace import Trace
from spectheory.trace.strings import TokenStrings
from spectheory.verification import PathRule
from spectheory.verification.by_start import within

COSTLIEST = 10
"""Rows of a list of tokens."""


@dataclass(frozen=True)
class Costly:
    """A token of a text where calls are lost: its row, position, string, what stands around it, expected calls."""

    position: int
    token: str
    before: str
    after: str
    lost: float


@dataclass(frozen=True)
class OneText:
    """One text token by token: its strings, and the probability that each token is output as an accepted draft."""

    id: str
    tokens: tuple[str, ...]
    accepted: tuple[float, ...]
    costliest: tuple[Costly, ...]


def _one_text(trace: Trace, strings: TokenStrings | None, lost: Floats, ended: Floats, prefilled: int) -> OneText:
    """The text whose lost calls per token are the median of those at least half as long as the longest."""
    ends = np.cumsum(trace.lengths)
    sums = np.add.reduceat(lost, ends - trace.lengths) / trace.lengths
    long = np.flatnonzero(2 * trace.lengths >= trace.lengths.max())
    number = int(long[np.argsort(sums[long], kind="stable")[(len(long) - 1) // 2]])
    rows = np.arange(ends[number] - trace.lengths[number], ends[number])
    ids: Sequence[Any] = trace.columns["token"][rows].tolist() if "token" in trace.columns else [None] * len(rows)
    names = tuple(f"#{i}" if token is None else _named(token, strings) for i, token in enumerate(ids))
    here = lost[rows]
    top = [i for i in np.argsort(-here, kind="stable")[:COSTLIEST].tolist() if here[i] > 0]
    glue = "" if strings else " "
    costly = [
        Costly(i, names[i], glue.join(names[max(i - 8, 0) : i]), glue.join(names[i + 1 : i + 5]), float(here[i]))
        for i in top
    ]
    accepted = np.clip(1 - ended[rows], 0.0, 1.0)
    accepted[-1:] = accepted[:prefilled] = 0.0  # the last call ends there; a prompt's own pass drafts nothing
    return OneText(trace.texts[number].id, names, tuple(accepted.tolist()), tuple(costly))


def _named(token: int, strings: TokenStrings | None) -> str:
    """The string of an id, or the id itself."""
    return strings[token] if strings else str(token)


NEWLINE, SPACE, NUMBER, START, INSIDE, PUNCTUATION, PART, SPECIAL = (
    "line break",
    "space",
    "number",
    "word start",
    "word continuation",
    "punctuation",
    "part of a character",
    "special token",
)
FREQUENT = ((10, "the 10 most frequent ids"), (100, "ids of places 11 to 100"), (None, "all other ids"))
"""Classes without strings: by the place of an id in the order of its occurrences in the trace."""


def _token_class(text: str, before: str = "") -> str:
    r"""The class of a token after another one, by its first letter that is no white space.

    A letter or low line starts a word if white space or another kind of sign stands before it.

    Examples
    --------
    >>> [_token_class(" def"), _token_class("ine", " def"), _token_class("x", "("), _token_class("\n   ")]
    ['word start', 'word continuation', 'word start', 'line break']
    """
    rest = text.strip()
    if not rest:
        return NEWLINE if "\n" in text else SPACE
    first = rest[0]
    if first == "\ufffd":
        return PART
    if first.isdigit():
        return NUMBER
    if not _of_word(first):
        return PUNCTUATION
    return INSIDE if text[0] == first and before and _of_word(before[-1]) else START


def _classes_by_string(
    tokens: NDArray[np.int64], firsts: NDArray[np.int64], strings: TokenStrings
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The class of each token ``[N]`` as a place in the names that follow; texts begin at the rows `firsts`."""
    begins, names = set(firsts.tolist()), []
    for row, token in enumerate(tokens.tolist()):
        before = "" if row in begins else strings[int(tokens[row - 1])]
        names.append(SPECIAL if token in strings.special else _token_class(strings[token], before))
    return _numbered(names, (NEWLINE, SPACE, NUMBER, START, INSIDE, PUNCTUATION, PART, SPECIAL))


def _classes_by_frequency(tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """The same where no strings are known: by how often an id occurs, ties by id."""
    ids, which, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    place = np.empty(len(ids), dtype=np.int64)
    place[np.lexsort((ids, -counts))] = np.arange(len(ids))
    names = [next(name for most, name in FREQUENT if most is None or p < most) for p in place.tolist()]
    of_id, known = _numbered(names, tuple(name for _, name in FREQUENT))
    return of_id[which], known


def _of_word(letter: str) -> bool:
    return letter.isalpha() or letter == "_"


def _numbered(names: Sequence[str], order: Sequence[str]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Places of names among those of `order` that occur."""
    known = tuple(name for name in order if name in set(names))
    place = {name: i for i, name in enumerate(known)}
    return np.array([place[name] for name in names], dtype=np.int64), known


BINS = 8
"""Bins of positions at most."""


@dataclass(frozen=True)
class Group:
    """Some tokens of the texts, and the calls that start, or are lost, at them.

    `calls` are expected; `share` is their share of all such calls. `rate` is tokens per call for calls that start
    there with room for all their drafts (for all calls, where none has); of classes of tokens it is lost calls per
    token.
    """

    name: str
    tokens: int
    calls: float
    share: Interval
    rate: Interval


def _positions(trace: Trace) -> NDArray[np.int64]:
    """The place of each token in its text, from 0."""
    lengths = trace.lengths
    return np.arange(len(trace)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _contexts(trace: Trace) -> NDArray[np.int64] | None:
    """Tokens before each token, the prompt's included; None where a prompt's length is not known."""
    known = [text.prompt_tokens for text in trace.texts]
    prompts = [tokens for tokens in known if tokens is not None]
    return _positions(trace) + np.repeat(prompts, trace.lengths) if len(prompts) == len(known) else None


def _started(prompts: Prompts, starts: CallStarts, places: NDArray[np.int64] | None) -> Iterator[Group]:
    """Bins of equal width, a power of two, with the calls that start in each."""
    if places is None:
        return
    width = 1
    while (int(places.max()) - int(places.min())) // width >= BINS:
        width *= 2
    bins = places // width
    for number in np.unique(bins).tolist():
        inside = bins == number
        calls, whole = prompts.sum_rows(starts.visits * inside), starts.counted * inside
        if calls[0] > 0:
            share = ratio(calls, prompts.sum_rows(starts.visits), limits=(0.0, 1.0))
            among = whole if whole.any() else starts.visits * inside
            limits = (1.0, starts.survival.shape[1] + 1.0)
            rate = ratio(prompts.sum_rows(among * starts.tokens), prompts.sum_rows(among), limits=limits)
            name = f"{number * width}-{(number + 1) * width - 1}" if width > 1 else str(number)
            yield Group(name, int(inside.sum()), float(calls[0]), share, rate)


def _lost_by_class(prompts: Prompts, lost: Floats, trace: Trace, strings: TokenStrings | None) -> Iterator[Group]:
    """The calls lost at the tokens of each class."""
    if "token" not in trace.columns:
        return
    tokens = np.asarray(trace.columns["token"], dtype=np.int64)
    firsts = np.cumsum(trace.lengths) - trace.lengths
    of_token, names = _classes_by_string(tokens, firsts, strings) if strings else _classes_by_frequency(tokens)
    for number, name in enumerate(names):
        yield _lost(prompts, lost, of_token == number, name)


def _lost_by_id(prompts: Prompts, lost: Floats, trace: Trace, strings: TokenStrings | None) -> Iterator[Group]:
    """The ids at which most calls are lost."""
    if "token" not in trace.columns:
        return
    tokens = np.asarray(trace.columns["token"], dtype=np.int64)
    ids, which = np.unique(tokens, return_inverse=True)
    sums = np.bincount(which, lost, len(ids))
    for place in np.argsort(-sums, kind="stable")[:COSTLIEST].tolist():
        if sums[place] > 0:
            yield _lost(prompts, lost, which == place, _named(int(ids[place]), strings))


def _lost(prompts: Prompts, lost: Floats, inside: NDArray[np.bool_], name: str) -> Group:
    calls, every = prompts.sum_rows(lost * inside), prompts.sum_rows(lost)
    share = ratio(calls, every, limits=(0.0, 1.0)) if every[0] > 0 else Interval.estimate(0.0)
    rate = ratio(calls, prompts.sum_rows(inside), limits=(0.0, 1.0))
    return Group(name, int(inside.sum()), float(calls[0]), share, rate)


LENGTHS = (1, 2, 4, 8, 16, 32)
"""Chain lengths whose acceptance by depth is compared."""


@dataclass(frozen=True)
class AtDepths:
    """Acceptance by depth of one shape at the starts of its own calls (§13).

    `survival` is P(tau >= i), `conditional` P(tau >= i | tau >= i - 1); `everywhere` is the mean survival over all
    positions of the text, which is another number. Starts without room for all drafts are left out of all three.
    """

    shape: Shape
    survival: tuple[Interval, ...]
    conditional: tuple[Interval, ...]
    everywhere: tuple[float, ...]


@dataclass(frozen=True)
class Where:
    """Where the calls of one rule and shape start and where they are lost.

    `calls` is their expected number, of which `lost` end with a rejection, `full` after all drafts were accepted (or
    none were made), and one for each text with the text. `by_context` counts the prompt too, and is empty where the
    trace does not know its length.
    `classes` and `ids` are empty without token ids; `named` says what the strings were read from.
    """

    rule: PathRule
    shape: Shape
    calls: float
    lost: float
    full: float
    depths: tuple[AtDepths, ...]
    by_position: tuple[Group, ...]
    by_context: tuple[Group, ...]
    classes: tuple[Group, ...]
    ids: tuple[Group, ...]
    text: OneText
    named: str | None


def settings_of(plan: Plan, *, all_rules: bool = False) -> list[tuple[PathRule, Shape]]:
    """Rules of a plan with their best shapes: token verification's chain, or with `all_rules` all; the best last.

    Each stopping rule that was asked for follows, with its best length. Settings that a trace only bounds (from lists
    of the most probable tokens) have no calls to place.

    Raises
    ------
    SettingError
        If the trace settles none of them.
    """
    settled = [p for p in plan.predictions if not p.certified]

    def shown(p: Prediction) -> bool:
        usual = all_rules or (p.rule.name == "token" and p.wanted.is_chain)
        return usual or p is plan.best or p.wanted.stop is not None

    by_gain = sorted(filter(shown, settled), key=lambda p: p.gain)
    best = {(p.rule, p.wanted.stop): p for p in by_gain}
    if not best:
        raise SettingError(
            "where calls start is asked for, and the trace bounds the rules alone",
            limit="it needs full pmfs of this rule",
            remedy="use the rule token",
        )
    ordered = sorted(best.values(), key=lambda p: (p.wanted.stop is not None, p is plan.best))
    return [(p.rule, p.shape if isinstance(p.wanted, BestTree) else p.wanted) for p in ordered]


def where(
    trace: Trace,
    rule: PathRule,
    shape: Shape,
    strings: TokenStrings | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    prefill_emits_token: bool = False,
) -> Where:
    """Where the calls of a rule and shape start and are lost, along the texts of a trace (§13, exact for them).

    Chains are compared with chains of the other `lengths` that are no longer than they are. `strings` name the tokens;
    without them classes are by frequency, and without token ids there are none.

    Raises
    ------
    TraceError
        If the trace lacks what the rule reads.

    Examples
    --------
    Of two tokens in turn one is always accepted and one never: calls of two drafts are lost at every second token.

    >>> from spectheory.verification import TokenVerification
    >>> trace = Trace.from_log_probabilities([([-0.5, -0.5] * 8, [-0.1, -50.0] * 8)])
    >>> losses = where(trace, TokenVerification(), Chain(2))
    >>> round(losses.calls, 3), round(losses.lost, 3), losses.text.accepted[:4]
    (8.0, 7.0, (1.0, 0.0, 1.0, 0.0))
    """
    starts = CallStarts.of(trace, rule, shape, prefill_emits_token=prefill_emits_token)
    rejected, full = starts.ends
    prompts = Prompts(trace.texts)
    several = _shapes(trace, rule, shape, lengths)
    by_shape = [CallStarts.of(trace, rule, each, prefill_emits_token=prefill_emits_token) for each in several]
    return Where(
        rule,
        shape,
        calls=float(starts.visits.sum()),
        lost=float(rejected.sum()),
        full=float(full.sum()),
        depths=tuple(
            _depths(prompts, each, at) for each, at in zip(several, by_shape, strict=True) if at.counted.sum() > 0
        ),
        by_position=tuple(_started(prompts, starts, _positions(trace))),
        by_context=tuple(_started(prompts, starts, _contexts(trace))),
        classes=tuple(_lost_by_class(prompts, rejected, trace, strings)),
        ids=tuple(_lost_by_id(prompts, rejected, trace, strings)),
        text=_one_text(trace, strings, rejected, rejected + full, int(prefill_emits_token)),
        named=strings.source if strings else None,
    )


def _shapes(trace: Trace, rule: PathRule, shape: Shape, lengths: Iterable[int]) -> list[Shape]:
    if not isinstance(shape, Chain):
        return [shape]
    longest = rule.longest(trace.columns)
    most = within(trace.columns, shape.k if longest is None else min(shape.k, longest))
    return [shape.of_length(k) for k in sorted({*(k for k in lengths if k < most), most})]


def _depths(prompts: Prompts, shape: Shape, starts: CallStarts) -> AtDepths:
    weights, survival = starts.counted, starts.survival
    sums = [prompts.sum_rows(weights), *(prompts.sum_rows(weights * column) for column in survival.T)]
    return AtDepths(
        shape,
        tuple(ratio(each, sums[0], limits=(0.0, 1.0)) for each in sums[1:]),
        tuple(ratio(each, before, limits=(0.0, 1.0)) for before, each in pairwise(sums) if before[0] > 0),
        tuple(survival[starts.whole].mean(axis=0).tolist()),
    )
