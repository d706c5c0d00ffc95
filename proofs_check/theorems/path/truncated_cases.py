"""Pairs of pmfs cut to lists (§9): a grid in fractions, and draws over thirty orders of magnitude.

For tests beyond the ledger, pairs in double precision with the extreme completions of their lists.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations

from proofs_check.library.strategies import Floats
from proofs_check.prelude import *
from proofs_check.theorems.path.completions import NO_EXTRAS, Extras, Lengths
from spectheory.truncated import TopLogProbs

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
    """Pairs, p falling, on 3 tokens of denominator up to `most` and on 4 up to `four`, each with a random setting."""
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


# In double precision


def small_pairs(seed: int, count: int, most: int) -> list[tuple[TopLogProbs, TopLogProbs]]:
    """Lists of 1 to 3 of pairs on 2 to `most` tokens: random and rounded pmfs (ties, zeros), some extra tokens."""
    rng = np.random.default_rng(seed)
    found: list[tuple[TopLogProbs, TopLogProbs]] = []
    while len(found) < count:
        tokens = int(rng.integers(2, most + 1))
        tops = []
        for _ in range(2):
            p = rng.dirichlet(np.full(tokens, 10.0 ** rng.uniform(-0.7, 1)))
            if rng.random() < 0.3:
                p = np.floor(p * 8) + (np.arange(tokens) == 0)
                p /= p.sum()
            extra = rng.integers(0, tokens, size=int(rng.random() < 0.3))
            tops.append(TopLogProbs.from_pmf(p, min(tokens, int(rng.integers(1, 4))), extra))
        found.append((tops[0], tops[1]))
    return found


def vertices(tokens: int, cap: float, mass: float) -> Iterator[Floats]:
    """The extreme points of {0 <= z <= cap, sum z = mass}: all but one token at 0 or at the cap."""
    full = min(math.floor(mass / cap), tokens) if cap > 0 else 0
    for chosen in permutations(range(tokens), full + (full < tokens)):
        if list(chosen[:full]) == sorted(chosen[:full]):
            z = np.zeros(tokens)
            z[list(chosen[:full])] = cap
            z[list(chosen[full:])] = max(0.0, mass - full * cap)
            yield z


def spread(top: TopLogProbs, tail: Floats) -> Floats:
    """The full pmf with this tail on the unseen tokens."""
    p = np.zeros(top.vocabulary)
    p[top.known] = top.probabilities
    p[np.setdiff1d(np.arange(top.vocabulary), top.known)] = tail
    return p


def corners(top: TopLogProbs) -> list[Floats]:
    """The full pmfs with extreme tails."""
    return [spread(top, tail) for tail in vertices(top.hidden, top.cap, top.unseen)]
