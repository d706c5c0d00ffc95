"""The fewest expected calls of any policy, by one linear programme over whole decodings: no rule, no recursion (B7).

The unknowns are what happens: for each start of a call and each run of drafts, the joint probability that the call
starts there, draws these drafts, accepts some of them and puts one token after them. The only constraints are that
drafts are drawn from the draft, and that given all that was before, the text from the start on is the target's up to
where it ends. So a call may depend on all earlier calls and on coins, may draft less than it is allowed to, and may
treat its drafts in any way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from proofs_check.algorithms.enumeration import Model, Prefix, draft_paths
from proofs_check.twins.block_values import Problem

Start = tuple[Prefix, tuple[int, ...]]
"""The text before a call, and what is remembered of the calls before: where they started."""


@dataclass
class Programme:
    """Unknowns and equations as they are collected: `rows` are sums of terms {unknown: factor}, each with its value."""

    costs: list[float] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float]] = field(default_factory=list)
    arriving: defaultdict[Start, list[int]] = field(default_factory=lambda: defaultdict(list))

    def unknown(self, cost: float) -> int:
        """A new unknown."""
        self.costs.append(cost)
        return len(self.costs) - 1

    def share_of(self, start: Start, unknowns: dict[int, float], share: float) -> None:
        """Require that the sum is this share of the probability that a call starts here."""
        row = defaultdict(float, unknowns)
        for each in self.arriving[start]:
            row[each] -= share
        self.rows.append((dict(row), share if not start[0] else 0.0))

    def least(self) -> float:
        """The least total cost."""
        entries = [(i, n, factor) for i, (row, _) in enumerate(self.rows) for n, factor in row.items()]
        i, n, factors = (np.array(each) for each in zip(*entries, strict=True))
        matrix = sparse.csr_array((factors, (i, n)), shape=(len(self.rows), len(self.costs)))
        found = linprog(self.costs, A_eq=matrix, b_eq=[value for _, value in self.rows], method="highs")
        if not found.success:
            raise ValueError(f"no policy was found, though plain sampling is one: {found.message}")
        return float(found.fun)


Price = Callable[[Start], float]
"""What it costs to be at a start; `None` of the price is that no call follows."""


def fewest_calls(problem: Problem, *, remember: bool = False) -> float:
    """The least expected cost of all calls; with `remember` a call may depend on where the earlier ones started."""
    return float(problem.cost(())) + least(problem, lambda start: float(problem.cost(start[0])), remember=remember)


def least(problem: Problem, price: Price, *, remember: bool = True, over: int | None = None) -> float:
    """The least expected price of the starts that a decoding comes to, the first left out; ended texts have none.

    With `over` it stops after so many calls, and the price is of where they end alone.
    """
    programme = Programme()
    layer: set[Start] = {((), ())}
    while layer:  # shorter texts first, so that all calls that lead to a start are known
        start = min(layer, key=lambda each: (len(each[0]), each))
        layer.discard(start)
        layer |= _call(problem, programme, start, price, remember, over)
    return programme.least()


def _call(
    problem: Problem, programme: Programme, start: Start, price: Price, remember: bool, over: int | None
) -> set[Start]:
    """Add the unknowns and equations of the call after a text; the starts it can lead to."""
    text, cuts = start
    drafts, reached = problem.drafts(text), set()
    outputs: defaultdict[Prefix, list[int]] = defaultdict(list)
    for path, share in draft_paths(problem.draft_from(text), text, drafts):
        acts: dict[int, float] = {}
        for accepted in range(drafts + 1):
            for token in range(problem.tokens):
                output = _cut(problem, text, (*path[:accepted], token))
                after = (text + output, (*cuts, len(text)) if remember else ())
                last = over is not None and len(after[1]) == over
                done = last or problem.ended(after[0])
                act = programme.unknown(price(after) if (last or over is None) and not (done and not last) else 0.0)
                acts[act] = 1.0
                outputs[output].append(act)
                if not done:
                    programme.arriving[after].append(act)
                    reached.add(after)
        programme.share_of(start, acts, float(share))
    for leaf, share in _leaves(problem, text, drafts + 1):
        agreeing: dict[int, float] = {}
        for end in range(1, len(leaf) + 1):
            rest = float(_probability(problem.target, text + leaf[:end], leaf[end:]))
            agreeing |= dict.fromkeys(outputs[leaf[:end]], rest)
        programme.share_of(start, agreeing, float(share))
    return reached


def _cut(problem: Problem, text: Prefix, output: Prefix) -> Prefix:
    """The output up to where the text ends."""
    ends = (n for n in range(1, len(output)) if problem.ended(text + output[:n]))
    return output[: next(ends, len(output))]


def _leaves(problem: Problem, text: Prefix, length: int) -> Iterator[tuple[Prefix, Fraction]]:
    """Every text of so many tokens or up to the end, impossible ones too, with the target's probability."""
    for run in {_cut(problem, text, run) for run in problem.runs(length)}:
        yield run, _probability(problem.target, text, run)


def _probability(model: Model, before: Prefix, run: Prefix) -> Fraction:
    found = Fraction(1)
    for n, token in enumerate(run):
        found *= model(before + run[:n])[token]
    return found
