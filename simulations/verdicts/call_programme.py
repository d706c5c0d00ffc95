"""The fewest expected calls of any lossless fresh policy on Markov chains, by one linear programme (B7).

No rule and no recursion stands in it. Unknown are the visits y(n, s), the expected number of calls that start with n
tokens done after the token s, and for each the masses m_i(x): the call accepts i drafts or more, which begin with x.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from spectheory.errors import SettingError

Floats = NDArray[np.float64]
Terms = dict[int, float]


def fewest_calls(target: Floats, draft: Floats, initial: Floats, *, length: int, k: int) -> float:
    """The optimum, for transition pmfs ``[V, V]`` and the pmf ``[V]`` of the token before the text.

    A call from (n, s) has m_0 = y, m_(i+1)(xz) <= p(z|x) m_i(x) and m_i(x) <= Q(x|s) y. It stops with x and then z with
    p(z|x) m_i(x) - m_(i+1)(xz), which is a visit of (n + i + 1, z).
    """
    tokens = len(initial)
    arriving: defaultdict[tuple[int, int], Terms] = defaultdict(lambda: defaultdict(float))
    visits: dict[tuple[int, int], int] = {}
    rows: list[Terms] = []
    unknowns = 0
    for start in product(range(length), range(tokens)):
        visits[start], unknowns = unknowns, unknowns + 1
        runs = [(start[1], visits[start], 1.0)]  # last token, mass, probability that the draft draws the run
        for n in range(start[0] + 1, length + 1):
            longer = []
            for last, mass, drafted in runs:
                for z in range(tokens):
                    if n < length:
                        arriving[n, z][mass] += target[last, z]
                    if n < length and n - start[0] <= k:
                        more, unknowns = unknowns, unknowns + 1
                        rows.append({more: 1.0, mass: -target[last, z]})
                        rows.append({more: 1.0, visits[start]: -drafted * draft[last, z]})
                        arriving[n, z][more] -= 1.0
                        longer.append((z, more, drafted * draft[last, z]))
            runs = longer
    balance = [{**arriving[start], at: arriving[start].get(at, 0.0) - 1.0} for start, at in visits.items()]
    begun = [-float(initial[s]) if n == 0 else 0.0 for n, s in visits]
    cost = np.bincount(list(visits.values()), minlength=unknowns)
    solution = linprog(
        cost, _matrix(rows, unknowns), np.zeros(len(rows)), _matrix(balance, unknowns), begun, method="highs"
    )
    if not solution.success:
        raise SettingError(
            f"no policy was found ({solution.message})", limit="plain sampling is one", remedy="report it"
        )
    return float(solution.fun)


def _matrix(rows: list[Terms], columns: int) -> sparse.csr_array:
    """Rows of terms as a sparse matrix."""
    entries = [(i, n, factor) for i, row in enumerate(rows) for n, factor in row.items()]
    i, n, factors = (np.array(each) for each in zip(*entries, strict=True))
    return sparse.csr_array((factors, (i, n)), shape=(len(rows), columns))
