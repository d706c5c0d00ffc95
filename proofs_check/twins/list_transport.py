"""R4 as transport: lists of k i.i.d. candidates, an output they may hold, and the most that can be carried.

A lossless rule is a joint law of list and output with the right margins; what it accepts is a flow from lists to the
tokens in them. The formula of R4 is written here over every set of tokens, the flow by augmenting paths and, on three
tokens, in closed form. Nothing of the library is used.
"""

from __future__ import annotations

from functools import reduce

from proofs_check.prelude import *
from proofs_check.statement.arithmetic import is_interval, is_term

Drawn = tuple[int, ...]
"""A list of candidates."""

Flow = dict[tuple[Drawn, int], Real]
"""(list, output) to the probability that the candidates are this list and this output is accepted."""


def sets(tokens: int) -> list[tuple[int, ...]]:
    """Every set of tokens."""
    return [chosen for size in range(tokens + 1) for chosen in combinations(range(tokens), size)]


def optimum(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """R4: 1 + min over every set H of p(H) - q(H)^k."""
    return _least_over(p, q, k, sets(len(p)))


def by_one_sort(p: AnyPmf, q: AnyPmf, k: int) -> Real:
    """The same over the prefixes alone of the tokens in ascending order of p/q, q = 0 last."""
    order = sorted(range(len(p)), key=lambda x: (not q[x], p[x] / q[x] if q[x] else 0))
    return prefix_minimum(p, q, k, order)


def prefix_minimum(p: AnyPmf, q: AnyPmf, k: int, order: Sequence[int]) -> Real:
    """The same over the prefixes of the tokens in any order."""
    return _least_over(p, q, k, [order[:size] for size in range(len(order) + 1)])


def least(values: Iterable[Real]) -> Real:
    """The least of some numbers, in any arithmetic."""
    listed = list(values)
    if not any(is_term(value) or is_interval(value) for value in listed):
        return min(listed)
    return reduce(smaller, listed)


def lists(q: AnyPmf, k: int) -> dict[Drawn, Real]:
    """Every list of k candidates and its probability."""
    return {picks: math.prod(q[x] for x in picks) for picks in product(range(len(q)), repeat=k)}


def largest_flow(p: AnyPmf, weights: Mapping[Drawn, Real]) -> Flow:
    """The largest flow from lists of known weights to the tokens they hold, of capacity p, by augmenting paths."""
    flow = {(picks, x): 0 * p[0] for picks in weights for x in sorted(set(picks))}
    while True:
        spare = {picks: weight - sum(flow[picks, x] for x in set(picks)) for picks, weight in weights.items()}
        room = [share - sum(flow[picks, y] for picks in weights if y in picks) for y, share in enumerate(p)]
        path = _augmenting(flow, spare, room)
        if not path:
            return flow
        # A path alternates: a list gives more to a token, which takes less from another list.
        amount = min([spare[path[0][0]], room[path[-1][1]], *(flow[edge] for edge in path[1::2])])
        for step, edge in enumerate(path):
            flow[edge] += -amount if step % 2 else amount


def flow_on_three(p: AnyPmf, w: Mapping[str, Real]) -> dict[str, Real]:
    """The largest flow in closed form, on three tokens 1, 2, 3: ``"12>1"`` is what the lists of set {1, 2} give to 1.

    Lists of one token serve it first. The lists of 1 and 2 give what those of 1, 3 and of 2, 3 cannot, then the rest.
    Lists of all three fill what is left; of them and of the room only the sums matter.
    """
    single = [smaller(share, w[name]) for share, name in zip(p, "123", strict=True)]
    first, second, third = (share - used for share, used in zip(p, single, strict=True))
    a = smaller(w["12"], positive_part(first - w["13"]))
    b = smaller(w["12"] - a, positive_part(second - w["23"]))
    c = smaller(w["12"] - a - b, first - a)
    d = smaller(w["12"] - a - b - c, second - b)
    flow = {"1>1": single[0], "2>2": single[1], "3>3": single[2], "12>1": a + c, "12>2": b + d}
    flow["13>1"] = smaller(w["13"], first - a - c)
    flow["23>2"] = smaller(w["23"], second - b - d)
    flow["13>3"] = smaller(w["13"] - flow["13>1"], third)
    flow["23>3"] = smaller(w["23"] - flow["23>2"], third - flow["13>3"])
    flow["123>any"] = smaller(w["123"], 1 - sum(flow.values()))
    return flow


def least_cut_on_three(p: AnyPmf, w: Mapping[str, Real]) -> Real:
    """1 + the least of p(H) - w(lists inside H)."""
    names = [("".join("123"[x] for x in chosen), sum(p[x] for x in chosen)) for chosen in sets(3)]
    return 1 + least(mass - sum(w[name] for name in w if set(name) <= set(inside)) for inside, mass in names)


def _least_over(p: AnyPmf, q: AnyPmf, k: int, chosen: Iterable[Sequence[int]]) -> Real:
    return 1 + least(sum(p[x] for x in each) - math.prod([sum(q[x] for x in each)] * k) for each in chosen)


def _augmenting(flow: Flow, spare: Mapping[Drawn, Real], room: Sequence[Real]) -> list[tuple[Drawn, int]]:
    """The shortest way from a list with weight to spare to a token with room, as edges; empty if there is none."""
    paths: list[list[tuple[Drawn, int]]] = [[(picks, x)] for picks, x in flow if spare[picks] > 0]
    reached = {path[-1] for path in paths}
    for path in paths:  # grows while it is read
        token = path[-1][1]
        if room[token] > 0:
            return path
        for other in (picks for picks, x in flow if x == token and flow[picks, x] > 0):
            further = [edge for edge in flow if edge[0] == other and edge not in reached]
            reached.update(further)
            paths.extend([*path, (other, token), edge] for edge in further)
    return []
