"""One text token by token: where its calls end, and its costliest tokens (§13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.trace import Trace
from spectheory.trace.strings import TokenStrings

Floats = NDArray[np.float64]
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


def one_text(trace: Trace, strings: TokenStrings | None, lost: Floats, ended: Floats, prefilled: int) -> OneText:
    """The text whose lost calls per token are the median of those at least half as long as the longest."""
    ends = np.cumsum(trace.lengths)
    sums = np.add.reduceat(lost, ends - trace.lengths) / trace.lengths
    long = np.flatnonzero(2 * trace.lengths >= trace.lengths.max())
    number = int(long[np.argsort(sums[long], kind="stable")[(len(long) - 1) // 2]])
    rows = np.arange(ends[number] - trace.lengths[number], ends[number])
    ids: Sequence[Any] = trace.columns["token"][rows].tolist() if "token" in trace.columns else [None] * len(rows)
    names = tuple(f"#{i}" if token is None else named(token, strings) for i, token in enumerate(ids))
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


def named(token: int, strings: TokenStrings | None) -> str:
    """The string of an id, or the id itself."""
    return strings[token] if strings else str(token)
