"""`spectheory rules` on two pmfs: all rules with k = 4, and the entropy and mean log rank of the Poisson race, over V.

The peer sums the same blocks of ranks over every token, as nothing is merged; it is left out where it takes a minute.
The limit is one sort of the p/q of all tokens. First is asserted that all intervals are as narrow as asked and that
those of ours and of the peer overlap: both are certain. Thread CPU time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from unittest.mock import patch

import numpy as np
from _rows import Row, language_logits, median_seconds, publish, softmax
from numpy.typing import NDArray

from spectheory.intervals import Interval
from spectheory.verification import PoissonRace, expected_log_rank, poisson_rank_entropy, rule_order
from spectheory.verification.rank_entropy import Atoms

Pmf = NDArray[np.float64]

SIZES = (4096, 32_768, 262_144, 1_000_000)
LONGEST_PEER = 32_768
CANDIDATES, TOLERANCE, REPEATS = 4, 1e-5, 3
WANTED = {262_144: 5.0, 1_000_000: 12.0}
FUNCTIONS: dict[str, Callable[..., Interval]] = {
    "H(R) of the Poisson race": poisson_rank_entropy,
    "E log R of the Poisson race": expected_log_rank,
}


def token_by_token(function: Callable[..., Interval], p: Pmf, q: Pmf) -> Interval:
    """The same interval with every token's odds by themselves."""
    module = import_module(Atoms.__module__)  # its name in the package is the function
    with patch.object(module, "merged", lambda weights, odds, step: (Atoms(weights, odds),) * 2):
        return function(p, q, tolerance=TOLERANCE)


def of_ranks(p: Pmf, q: Pmf) -> list[Row]:
    """The two quantities of the Poisson race's rank."""
    rows, tokens = [], p.size
    limit = median_seconds(lambda: np.sort(p / q), REPEATS)
    for what, function in FUNCTIONS.items():
        ours = partial(function, p, q, tolerance=TOLERANCE)
        enclosure, same, peer = ours(), f"an interval at most {TOLERANCE:g} nats wide", None
        assert enclosure.high - enclosure.low <= TOLERANCE
        if tokens <= LONGEST_PEER:
            other = token_by_token(function, p, q)
            assert max(enclosure.low, other.low) <= min(enclosure.high, other.high)
            assert other.high - other.low <= TOLERANCE
            peer, same = median_seconds(partial(token_by_token, function, p, q), 1), f"{same}, which meets the peer's"
        others = peer, "token by token" if peer else "", limit, "one sort"
        work, seconds = f"{what}, V = {tokens:,}", median_seconds(ours, REPEATS)
        rows.append(Row(work, "s", seconds, same, *others, at={"V": tokens}, curve=what))
    return rows


def of_all(p: Pmf, q: Pmf) -> Row:
    """Every rule, as the command works them out."""
    rng = np.random.default_rng(0)
    standing = {row.rule: row for row in rule_order(p, q, CANDIDATES, rng=rng)}
    poisson = standing["poisson"].acceptance
    assert poisson is not None
    assert poisson.best == float(PoissonRace().acceptance(p, q, CANDIDATES))
    took = median_seconds(lambda: rule_order(p, q, CANDIDATES, rng=rng), 1)
    tokens, same = p.size, "R1 is that of its closed form"
    return Row(
        f"all rules, V = {tokens:,}", "s", took, same, wanted=WANTED.get(tokens), at={"V": tokens}, curve="all rules"
    )


def measure() -> list[Row]:
    """Check, then time, from few tokens to many."""
    rows = []
    for tokens in SIZES:
        ((target, draft),) = language_logits(tokens, 1)
        p, q = softmax(target), softmax(draft)
        rows += [*of_ranks(p, q), of_all(p, q)]
    return rows


if __name__ == "__main__":
    publish(__file__, "Rules at one position, two pmfs", measure())
