"""C3's fallback: the affine fit to timings is the best of all with coefficients that are not negative."""

from __future__ import annotations

from operator import mul

from proofs_check.prelude import *
from spectheory.cost import AffineCost, AffineTime
from spectheory.drafting import Chain


def best_fit(rows: Sequence[Sequence[Fraction]], y: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Coefficients >= 0 of least squares and what is left over, by trying every choice of those that are 0."""
    found = []
    for size in range(len(rows[0]) + 1):
        for chosen in combinations(range(len(rows[0])), size):
            solution = _normal_equations([[row[j] for j in chosen] for row in rows], y)
            if min(solution, default=Fraction(0)) >= 0:
                full = [solution[chosen.index(j)] if j in chosen else Fraction(0) for j in range(len(rows[0]))]
                left = sum(((_dot(row, full) - t) ** 2 for row, t in zip(rows, y, strict=True)), Fraction(0))
                found.append((left, *full))
    left, *best = min(found)
    return (*best, left)


def fits_agree(timings: Sequence[Sequence[int]]) -> Iterator[Compared]:
    """The library's affine fit, and a pass by it."""
    tokens, batch, context, y = (list(map(Fraction, column)) for column in zip(*timings, strict=True))
    rows = [[Fraction(1), b * m, b * length] for m, b, length in zip(tokens, batch, context, strict=True)]
    *best, left = best_fit(rows, y)
    fit = AffineTime.fit(*([float(value) for value in column] for column in (tokens, batch, context, y)))
    for value, coefficient in zip((fit.fixed, fit.per_token, fit.per_cached), best, strict=True):
        yield computed(value, coefficient)
    yield computed(fit.error**2, left / len(timings))
    yield computed(fit.seconds(3, 2, 5), best[0] + 6 * best[1] + 10 * best[2])
    cost = AffineCost(fit, fit, context=5, batch=2)
    yield computed(cost.call(Chain(2)).best, 3 * best[0] + 10 * best[1] + 30 * best[2])


def all_timings(effort: Effort) -> Iterator[Case]:
    """Timings of four passes, some of which want a negative coefficient."""
    passes = ((1, 1, 0), (4, 1, 2), (2, 3, 1), (1, 2, 8))
    for y in product(range(1, effort.pick(4, 8)), repeat=4):
        yield {"timings": tuple((*each, value) for each, value in zip(passes, y, strict=True))}


def unconstrained(timings: Sequence[Sequence[int]]) -> Iterator[Compared]:
    """Plain least squares, coefficients of either sign."""
    rows = [[Fraction(1), Fraction(b * m), Fraction(b * length)] for m, b, length, _ in timings]
    free = _normal_equations(rows, [Fraction(y) for *_, y in timings])
    columns = [[float(value) for value in column] for column in zip(*timings, strict=True)]
    yield computed(AffineTime.fit(*columns).fixed, free[0])


def _dot(row: Sequence[Fraction], column: Sequence[Fraction]) -> Fraction:
    return sum(map(mul, row, column), Fraction(0))


def _normal_equations(rows: Sequence[Sequence[Fraction]], y: Sequence[Fraction]) -> list[Fraction]:
    """Least squares without constraints, by elimination."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = [[*(_dot(left, right) for right in columns), _dot(left, y)] for left in columns]
    for i in range(len(table)):  # a Gram matrix of independent columns has positive pivots
        table[i] = [value / table[i][i] for value in table[i]]
        for j in range(len(table)):
            if j != i:
                table[j] = [a - table[j][i] * b for a, b in zip(table[j], table[i], strict=True)]
    return [row[-1] for row in table]


FIT = agreement(
    Claim("the affine fit is the best of all with coefficients >= 0", fits_agree),
    all_timings,
    over="every timing of 1 to 3 seconds of four passes",
    wrong=Claim("the affine fit is that of plain least squares", unconstrained),
)
"""Evidence of C3."""
