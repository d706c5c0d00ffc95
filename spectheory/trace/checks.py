"""Check the columns of a trace against their table, and against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import TextError
from spectheory.intervals import martingale_p
from spectheory.trace.columns import BY_START, COLUMNS, REQUIRED, ROUNDING
from spectheory.trace.text_info import TextInfo
from spectheory.verification.by_start import PREFIX, deepest

Columns = Mapping[str, NDArray[Any]]
Bad = NDArray[np.bool_]

_CHANCE = 1e-6
"""Probability that texts are said not to be sampled from the target, though they are."""
_FAR = 1e30
"""Ratios p/q beyond it may overflow single precision in the sums behind ``race_g``."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a column: in which row (None: in all), what stands there, and what could."""

    column: str
    row: int | None
    what: str
    limit: str


def faults(columns: Columns) -> Iterator[Fault]:
    """What is wrong with equally long columns: types and shapes, then entries, then columns that contradict others."""
    known = {name: values for name, values in columns.items() if name in COLUMNS}
    for name, values in known.items():
        if not (isinstance(values, np.ndarray) and COLUMNS[name].fits(values)):
            yield Fault(name, None, f"is {_described(values)}", f"needs for each token {COLUMNS[name].type}")
            return  # the checks below assume the types
    for name in known:
        if COLUMNS[name].by_start and known[name].shape[1] != (depth := deepest(known)):
            yield Fault(name, None, f"has {known[name].shape[1]} depths", f"other columns by start have {depth}")
            return
    for name, values in known.items():
        yield from _entries(name, values)
        if COLUMNS[name].law:
            yield from _sums(name, values.sum(axis=-1))
    for relation in _RELATIONS:
        if {relation.column, *relation.beside} <= set(known):
            yield from relation.check(known)


def repeated(texts: Sequence[TextInfo], columns: Columns) -> list[str]:
    """The id of the earlier text that each equals in tokens and log-probabilities; empty for new ones.

    Texts with fewer than two log-probabilities below 0, as at temperature 0, say too little to be equal.
    """
    seen, ids, end = dict[bytes, str](), [], 0
    for text in texts:
        start, end = end, end + text.tokens
        here = [columns[name][start:end] for name in (*REQUIRED, "token") if name in columns]
        telling = len(np.unique(here[0][here[0] < 0])) > 1
        first = seen.setdefault(b"".join(each.tobytes() for each in here), text.id) if telling else text.id
        ids.append("" if first == text.id else first)
    return ids


def _draft_ahead(columns: Columns) -> float:
    r"""Nats per token by which the draft explains texts better than the target, if more than chance; else 0.

    On texts sampled from the target :math:`\prod_n q(x_n) / p(x_n)` has mean 1 at most, whatever the pmfs and the
    lengths are, so by Markov's inequality its logarithm exceeds log(1e6) with probability 1e-6 at most.
    """
    with np.errstate(invalid="ignore"):
        ratios = columns["log_draft"] - columns["log_target"]
    return float(ratios.mean()) if ratios.sum() > -math.log(_CHANCE) else 0.0


def _refuse_foreign(columns: Columns) -> None:
    """Refuse texts said to be sampled from the target that are not; right ones with probability 2e-6 at most.

    The likelihood ratio to the draft (:func:`_draft_ahead`) shows models that are exchanged, the surprisal against the
    entropy, a martingale, rows that belong to other tokens and other settings.
    """
    surprisal, entropy = -columns["log_target"], columns["target_entropy"]
    steps, variance = surprisal - entropy, np.maximum(columns["target_second_moment"] - entropy**2, 0.0)
    off = martingale_p(float(steps.sum()), float((steps**2).sum()), float(variance.sum())) < _CHANCE
    if off or _draft_ahead(columns):
        target, draft = (-columns[name].mean() for name in REQUIRED)
        raise TextError(
            f"tokens have {target:.3g} nats each under the target, {draft:.3g} under the draft; the target has entropy "
            f"{entropy.mean():.3g}",
            limit="tokens that the target sampled have its entropy, and no fewer nats under the draft",
            remedy="give in row t the logits from which token t was drawn (shifted by one? models exchanged? other "
            "sampling settings?), or pass sampled=False",
        )


def _entries(name: str, values: NDArray[Any]) -> Iterator[Fault]:
    """The first entry that is out of range."""
    bad = COLUMNS[name].outside(values)
    if bad.any():
        row, *entry = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        value, at = _shown(values[(row, *entry)]), _depth(name, entry)
        place = entry[1:] if at else entry
        what = f"has {value} as entry {place[0] + 1}" if place else f"is {value}"
        yield Fault(name, row, what + at, f"must be {COLUMNS[name].type}")


def _sums(name: str, sums: NDArray[Any]) -> Iterator[Fault]:
    """The first row of probabilities with too large a sum."""
    bad = sums > 1 + _slack(name)
    if bad.any():
        row, *entry = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        what = f"sums to {_shown(sums[(row, *entry)])}{_depth(name, entry)}"
        yield Fault(name, row, what, "a row of probabilities sums to at most 1")


def _slack(name: str) -> float:
    """Relative error of a column: that of its sums, or of its bits on disk."""
    return max(ROUNDING, 2.0 ** -COLUMNS[name].bits)


def _depth(name: str, entry: Sequence[int]) -> str:
    """The depth of an entry in words, if its column is by start."""
    return f" at depth {entry[0] + 1}" if COLUMNS[name].by_start else ""


def _described(values: Any) -> str:
    if isinstance(values, np.ndarray):
        return f"an array {list(values.shape)} of {values.dtype.name}"
    return f"a {type(values).__name__}"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if np.issubdtype(type(value), np.floating) else str(value)


@dataclass(frozen=True)
class _Relation:
    """A column that others bound: `broken` gets its values, then those beside it."""

    column: str
    beside: tuple[str, ...]
    limit: str
    broken: Callable[..., Bad]

    def check(self, columns: Columns) -> Iterator[Fault]:
        """The first row where the relation is broken."""
        values = columns[self.column]
        bad = self.broken(values, *(columns[name] for name in self.beside))
        if bad.any():
            row = int(np.argmax(bad))
            yield Fault(self.column, row, f"is {_shown(np.ravel(values[row])[0])}", self.limit)


def _below_square(moment: NDArray[Any], entropy: NDArray[Any]) -> Bad:
    """Where the mean square of -log p is below the square of its mean."""
    square = entropy.astype(np.float64) ** 2
    return np.asarray(moment < square - ROUNDING * (1 + square))


def _impossible_race(g: NDArray[Any], log_target: NDArray[Any], log_draft: NDArray[Any]) -> Bad:
    """Where g(c), the sum of (c q - p)_+ at c = p/q of the token, is not in [c - 1, c]; where q = 0 it is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        c = np.exp(log_target - log_draft)
        slack = ROUNDING * (1 + c)
        off = ~((g >= c - 1 - slack) & (g <= c + slack))
    return np.asarray(np.where(c < _FAR, off, (log_draft == -math.inf) & (g != math.inf)))


def _not_the_first(slack: float, by_start: NDArray[Any], by_position: NDArray[Any]) -> Bad:
    """Where a column by start has another first draft than the column by position; of laws the ranks that both have."""
    first = by_start[:, 0]
    if first.ndim == 2:
        ranks = min(first.shape[1], by_position.shape[1])
        first, by_position = first[:, :ranks], by_position[:, :ranks]
    same = first == by_position
    if first.dtype.kind == "f":
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(first - by_position) <= slack * (1 + np.abs(by_position))
        same |= near & np.isfinite(by_position)
    return np.asarray(~same if same.ndim == 1 else ~same.all(axis=1))


_RELATIONS = (
    *(
        _Relation(name, (of_first,), f"at depth 1 it is what {of_first} says", partial(_not_the_first, _slack(name)))
        for name in BY_START
        if (of_first := name.removeprefix(PREFIX)) in COLUMNS
    ),
    _Relation(
        "target_second_moment", ("target_entropy",), "must be at least the square of target_entropy", _below_square
    ),
    _Relation("race_g", REQUIRED, "must be in [c - 1, c], c = exp(log_target - log_draft)", _impossible_race),
    _Relation("lookup_match", ("lookup_drafted",), "must be at most lookup_drafted", np.greater),
    _Relation("ngram_match", ("ngram_drafted",), "must be at most ngram_drafted", np.greater),
)
