"""Expected calls of a whole decoding in fractions, from the masses of its calls (B7): readable, and slow.

A call after the text w is described by its masses s_i(x), the probability that it accepts i drafts or more and that its
drafts begin with the i tokens x. Whatever the rule, the masses of a lossless call whose later text is drawn afresh say
where it stops: with the i drafts x and one token z more with probability p(z|wx) s_i(x) - s_(i+1)(xz).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from math import prod

from scipy import sparse
from scipy.optimize import linprog

from proofs_check.prelude import *

Masses = list[dict[Prefix, Fraction]]
"""s_i(x) at index i, for every run x of i tokens; s_0 = 1."""

MassesOf = Callable[["Problem", Prefix], Masses]
"""The masses of a rule's call after a text."""

Value = Callable[[Prefix], Fraction]
"""A number for each text so far."""

ONE = Fraction(1)


@dataclass(frozen=True)
class Problem:
    """A text to decode: its target, the draft of the call after each text, drafts and cost of that call, its end.

    `ended` texts are done; a longer text is done too. `tokens` is the size of the vocabulary. Only the linear
    programmes know several i.i.d. `chains` of drafts.
    """

    target: Model
    draft_from: Callable[[Prefix], Model]
    drafts: Callable[[Prefix], int]
    ended: Callable[[Prefix], bool]
    tokens: int
    cost: Value = lambda _: ONE
    chains: int = 1

    def runs(self, length: int) -> Iterator[Prefix]:
        """Every run of so many tokens."""
        return product(range(self.tokens), repeat=length)

    def following(self, text: Prefix, of: Value) -> Fraction:
        """The target's mean, over the next token, of a value."""
        p = self.target(text)
        return total(p[z] * of((*text, z)) for z in range(self.tokens) if p[z])

    def drafting(self, drafts: int) -> Problem:
        """The same with so many drafts in every call."""
        return replace(self, drafts=lambda _: drafts)


def texts(target: Model, draft: Model, k: int, length: int, end: int | None = None) -> Problem:
    """Texts of `length` tokens, or up to the token `end`; calls of k drafts from a draft model."""
    return Problem(
        target, lambda _: draft, lambda _: k, lambda text: len(text) >= length or end in text, len(target(()))
    )


def going_on(given: Problem) -> Iterator[Prefix]:
    """Every text that has not ended, impossible ones too."""
    layer: list[Prefix] = [()]
    while layer:
        layer = [text for text in layer if not given.ended(text)]
        yield from layer
        layer = [(*text, z) for text in layer for z in range(given.tokens)]


# Masses


def block_masses(problem: Problem, text: Prefix) -> Masses:
    """mu_0 = 1, mu_(i+1)(xz) = min(p(z|wx) mu_i(x), q(xz|w)): block verification's."""
    return _grown(problem, text, lambda mass, p, q, run: min(mass * p, run))


def token_masses(problem: Problem, text: Prefix) -> Masses:
    """s_(i+1)(xz) = s_i(x) min(p(z|wx), q(z|wx)): token verification's."""
    return _grown(problem, text, lambda mass, p, q, run: mass * min(p, q))


def _grown(
    problem: Problem, text: Prefix, more: Callable[[Fraction, Fraction, Fraction, Fraction], Fraction]
) -> Masses:
    """Masses depth by depth: from a run's mass, p and q of the next token, and q of the longer run."""
    masses: Masses = [{(): ONE}]
    mass_of: dict[Prefix, Fraction] = {(): ONE}
    draft = problem.draft_from(text)
    for _ in range(problem.drafts(text)):
        grown: dict[Prefix, Fraction] = {}
        longer: dict[Prefix, Fraction] = {}
        for run, mass in masses[-1].items():
            p, q = problem.target(text + run), draft(text + run)
            for z in range(problem.tokens):
                longer[*run, z] = mass_of[run] * q[z]
                grown[*run, z] = more(mass, p[z], q[z], longer[*run, z])
        masses.append(grown)
        mass_of = longer
    return masses


def least_of_products(problem: Problem, text: Prefix) -> Masses:
    """The least over j of q(x_1..x_j) p(x_(j+1)..x_i): the closed form of block verification's masses."""
    p, q = problem.target, problem.draft_from(text)

    def least(run: Prefix) -> Fraction:
        ends = range(len(run) + 1)
        return min(probability(q, text, run[:j]) * probability(p, text + run[:j], run[j:]) for j in ends)

    return [{run: least(run) for run in problem.runs(i)} for i in range(problem.drafts(text) + 1)]


def masses_of_law(problem: Problem, law: CallLaw, drafts: int) -> Masses:
    """The masses of an algorithm, from the law of its whole call."""
    masses: Masses = [dict.fromkeys(problem.runs(i), Fraction(0)) for i in range(drafts + 1)]
    for (output, accepted), share in law.items():
        for i in range(accepted + 1):
            masses[i][output[:i]] += share
    return masses


# Values


def stops(problem: Problem, text: Prefix, masses: Masses) -> dict[Prefix, Fraction]:
    """Where the call stops: the probability of each output, of a run and one token more."""
    chances: dict[Prefix, Fraction] = {}
    for i, depth in enumerate(masses):
        for run, mass in depth.items():
            p = problem.target(text + run)
            for z in range(problem.tokens):
                deeper = masses[i + 1][*run, z] if i + 1 < len(masses) else 0
                chances[*run, z] = mass * p[z] - deeper
    return chances


def now_and_then(problem: Problem, text: Prefix, masses: Masses, after: Value) -> Fraction:
    """The cost of one call with these masses and of what comes after it."""
    later = (share * after(text + output) for output, share in stops(problem, text, masses).items() if share)
    return problem.cost(text) + total(later)


def expected_calls(problem: Problem, of: MassesOf = block_masses) -> Value:
    """V(w): the expected calls (or their cost) from each text on, if every call has the masses of one rule."""

    @cache
    def value(text: Prefix) -> Fraction:
        return Fraction(0) if problem.ended(text) else now_and_then(problem, text, of(problem, text), value)

    return value


def drop(problem: Problem, value: Value) -> Value:
    """D(w) = V(w) - the mean of V(wz) over the target's next token z: what one token given away would save."""
    return cache(lambda text: value(text) - problem.following(text, value))


def weighed(text: Prefix, masses: Masses, of: Value) -> Fraction:
    """Sum over depths and runs of mass times a value, the empty run included."""
    return total(mass * of(text + run) for depth in masses for run, mass in depth.items() if mass)


# Laws, not means: what the theorem does not speak of


def beyond(problem: Problem, calls: int, of: MassesOf = block_masses) -> Fraction:
    """P(the decoding takes more than so many calls), if every call has the masses of one rule."""

    @cache
    def more(text: Prefix, left: int) -> Fraction:
        if problem.ended(text) or not left:
            return Fraction(not problem.ended(text))
        outputs = stops(problem, text, of(problem, text)).items()
        return total(share * more(text + output, left - 1) for output, share in outputs if share)

    return more((), calls)


def tokens_after(problem: Problem, calls: int, of: MassesOf = block_masses) -> Fraction:
    """The expected number of tokens that so many calls give, of a text that goes on."""

    @cache
    def mean(text: Prefix, left: int) -> Fraction:
        if not left:
            return Fraction(0)
        outputs = stops(problem, text, of(problem, text)).items()
        given = (share * (len(output) + mean(text + output, left - 1)) for output, share in outputs if share)
        return total(given)

    return mean((), calls)


# The fewest expected calls of any policy, by one linear programme over whole decodings: no rule, no recursion (B7).


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
        solution = linprog(self.costs, A_eq=matrix, b_eq=[value for _, value in self.rows], method="highs")
        if not solution.success:
            raise ValueError(f"no policy was found, though plain sampling is one: {solution.message}")
        return float(solution.fun)


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


SOLVED = Fraction(1, 10**8)
"""What the optimum of a linear programme, solved in floats, may be off."""


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
            programme.rows.append((dict.fromkeys(acts, 1.0), float(probability(problem.target, (), text))))
    return programme.least()


def _acts(
    problem: Problem, programme: Programme, start: Start, goal: Goal, waiting: set[Start]
) -> dict[Prefix, list[int]]:
    """The unknowns of the call from a start, by output; drafts have the draft's law. Adds the starts it leads to."""
    text, outputs = start[0], defaultdict(list)
    for accepted, share in _drafted(problem, text):
        acts: dict[int, float] = {}
        for run, token in product(accepted, range(problem.tokens)):
            output = _cut(problem, text, (*run, token))
            after, goes_on, price = goal.leads(problem, start, output)
            act = programme.unknown(price)
            acts[act] = 1.0
            outputs[output].append(act)
            if goes_on:
                programme.arriving[after].append(act)
                waiting.add(after)
        programme.share_of(start, acts, float(share))
    return outputs


def _drafted(problem: Problem, text: Prefix) -> Iterator[tuple[list[Prefix], Fraction]]:
    """The runs that a call may accept, those that one of its chains begins with, and the probability of the chains."""
    paths = list(draft_paths(problem.draft_from(text), text, problem.drafts(text)))
    shares: defaultdict[frozenset[Prefix], Fraction] = defaultdict(Fraction)
    for chains in product(paths, repeat=problem.chains):
        shares[frozenset(path for path, _ in chains)] += prod((share for _, share in chains), start=ONE)
    for drafts, share in shares.items():
        yield sorted({path[:i] for path in drafts for i in range(len(path) + 1)}), share


def _keep_the_law(problem: Problem, programme: Programme, start: Start, outputs: dict[Prefix, list[int]]) -> None:
    """Given the start, outputs followed by the target's text have the target's law, up to where the text ends."""
    text = start[0]
    for leaf, share in _leaves(problem, text, problem.drafts(text) + 1):
        agreeing: dict[int, float] = {}
        for end in range(1, len(leaf) + 1):
            rest = float(probability(problem.target, text + leaf[:end], leaf[end:]))
            agreeing |= dict.fromkeys(outputs.get(leaf[:end], ()), rest)
        programme.share_of(start, agreeing, float(share))


def _cut(problem: Problem, text: Prefix, output: Prefix) -> Prefix:
    """The output up to where the text ends."""
    ends = (n for n in range(1, len(output)) if problem.ended(text + output[:n]))
    return output[: next(ends, len(output))]


def _leaves(problem: Problem, text: Prefix, length: int) -> Iterator[tuple[Prefix, Fraction]]:
    """Every text of so many tokens or up to the end, impossible ones too, with the target's probability."""
    for run in {_cut(problem, text, run) for run in problem.runs(length)}:
        yield run, probability(problem.target, text, run)
