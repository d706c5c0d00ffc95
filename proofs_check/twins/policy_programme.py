"""The fewest expected calls of any policy, by one linear programme over whole decodings: no rule, no recursion (B7).

The unknowns are what happens: for each start of a call and each run of drafts, the joint probability that the call
starts there, draws these drafts, accepts some of them and puts one token after them. The only constraints are that
drafts are drawn from the draft, and that given all that was before, the text from the start on is the target's up to
where it ends. So a call may depend on all earlier calls and on coins, may draft less than it is allowed to, and may
treat its drafts in any way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field

from scipy import sparse
from scipy.optimize import linprog

from proofs_check.prelude import *
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


@dataclass(frozen=True)
class Goal:
    """What is made least: the price of the starts that a decoding comes to, the first left out; ended texts have none.

    - ``over``: stop after so many calls; the price is then of where they end alone.
    - ``remember``: a call may depend on where the earlier ones started.
    - ``fresh``: each call leaves the text after it a sample of the target; else the whole text alone must be one.
    """

    price: Callable[[Start], float]
    over: int | None = None
    remember: bool = False
    fresh: bool = True

    def leads(self, problem: Problem, start: Start, output: Prefix) -> tuple[Start, bool, float]:
        """Where a call comes to with an output, whether another call follows, and the price."""
        after = (start[0] + output, (*start[1], len(start[0])) if self.remember or self.over else ())
        if self.over is not None and len(after[1]) == self.over:
            return after, False, self.price(after)
        goes_on = not problem.ended(after[0])
        return after, goes_on, self.price(after) if goes_on and self.over is None else 0.0


def fewest_calls(problem: Problem, *, remember: bool = False, fresh: bool = True) -> float:
    """The least expected cost of all calls of any policy."""
    later = Goal(lambda start: float(problem.cost(start[0])), remember=remember, fresh=fresh)
    return float(problem.cost(())) + least(problem, later)


def least(problem: Problem, goal: Goal) -> float:
    """The optimum over all policies."""
    programme = Programme()
    waiting: set[Start] = {((), ())}
    finished: defaultdict[Prefix, list[int]] = defaultdict(list)
    while waiting:  # shorter texts first, so that all calls that lead to a start are known
        start = min(waiting, key=lambda each: (len(each[0]), each))
        waiting.discard(start)
        outputs = _acts(problem, programme, start, goal, waiting)
        if goal.fresh:
            _keep_the_law(problem, programme, start, outputs)
        for output, acts in outputs.items():
            if problem.ended(start[0] + output):
                finished[start[0] + output] += acts
    if not goal.fresh:
        for text, acts in finished.items():
            programme.rows.append((dict.fromkeys(acts, 1.0), float(_probability(problem.target, (), text))))
    return programme.least()


def _acts(
    problem: Problem, programme: Programme, start: Start, goal: Goal, waiting: set[Start]
) -> dict[Prefix, list[int]]:
    """The unknowns of the call from a start, by output; drafts have the draft's law. Adds the starts it leads to."""
    text, outputs = start[0], defaultdict(list)
    for path, share in draft_paths(problem.draft_from(text), text, problem.drafts(text)):
        acts: dict[int, float] = {}
        for accepted, token in product(range(len(path) + 1), range(problem.tokens)):
            output = _cut(problem, text, (*path[:accepted], token))
            after, goes_on, price = goal.leads(problem, start, output)
            act = programme.unknown(price)
            acts[act] = 1.0
            outputs[output].append(act)
            if goes_on:
                programme.arriving[after].append(act)
                waiting.add(after)
        programme.share_of(start, acts, float(share))
    return outputs


def _keep_the_law(problem: Problem, programme: Programme, start: Start, outputs: dict[Prefix, list[int]]) -> None:
    """Given the start, outputs followed by the target's text have the target's law, up to where the text ends."""
    text = start[0]
    for leaf, share in _leaves(problem, text, problem.drafts(text) + 1):
        agreeing: dict[int, float] = {}
        for end in range(1, len(leaf) + 1):
            rest = float(_probability(problem.target, text + leaf[:end], leaf[end:]))
            agreeing |= dict.fromkeys(outputs.get(leaf[:end], ()), rest)
        programme.share_of(start, agreeing, float(share))


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
