"""Pairs of pmfs cut to lists (§9): a grid in fractions, and draws over thirty orders of magnitude."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from proofs_check import cases
from proofs_check.claims import Case
from proofs_check.completions import NO_EXTRAS, Extras, Lengths
from proofs_check.findings import Effort
from proofs_check.strategies import exact_pairs

LAST = -1
"""The last token, of either size of vocabulary."""

SETTINGS: tuple[tuple[Lengths, Extras], ...] = (
    ((1, 1), NO_EXTRAS),
    ((1, 2), NO_EXTRAS),
    ((2, 1), NO_EXTRAS),
    ((1, 1), ((LAST,), ())),
    ((1, 1), ((), (0,))),
    ((2, 1), ((), (LAST,))),
)
"""Lengths of the lists and tokens asked for by name."""


@lru_cache(maxsize=4)
def grid(most: int, four: int) -> tuple[Case, ...]:
    """Every pair on three tokens of denominator up to `most` and on four up to `four`, each with one setting.

    Relabelling tokens changes nothing else, so p falls; settings are dealt out at random.
    """
    rng = random.Random(9)
    found: list[Case] = []
    for pair in (*cases.pairs(3, most), *cases.pairs(4, four)):
        if sorted(pair["p"], reverse=True) == list(pair["p"]):
            found.append(_with(pair, rng.choice(SETTINGS)))
    return tuple(found)


def _with(pair: Case, setting: tuple[Lengths, Extras]) -> Case:
    tokens, (m, extra) = len(pair["p"]), setting
    return {**pair, "m": m, "extra": (tuple(x % tokens for x in extra[0]), tuple(x % tokens for x in extra[1]))}


def pairs(effort: Effort) -> Iterable[Case]:
    """The grid of default and deep checks."""
    return grid(*effort.pick((4, 4), (7, 6)))


def few_pairs(effort: Effort) -> Iterable[Case]:
    """A smaller grid, for what takes long."""
    return grid(*effort.pick((4, 3), (6, 5)))


def every_setting(effort: Effort) -> Iterator[Case]:
    """The pairs of the grid with every setting."""
    for pair in pairs(effort):
        yield from (_with({"p": pair["p"], "q": pair["q"]}, setting) for setting in SETTINGS)


def drawn() -> Any:
    """A Hypothesis strategy of pairs over thirty orders of magnitude, on 2 to 4 tokens, with lists and extra tokens."""
    from hypothesis import strategies as st

    token = st.integers(0, 3)
    extra = st.one_of(st.just(()), st.tuples(token))
    setting = st.tuples(st.tuples(st.integers(1, 2), st.integers(1, 2)), st.tuples(extra, extra))
    return st.tuples(exact_pairs(4), setting).map(lambda drawn: _with(*drawn))
