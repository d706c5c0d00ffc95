"""Expected calls of a whole decoding in fractions, from the masses of its calls (B7): readable, and slow.

A call after the text w is described by its masses s_i(x), the probability that it accepts i drafts or more and that its
drafts begin with the i tokens x. Whatever the rule, the masses of a lossless call whose later text is drawn afresh say
where it stops: with the i drafts x and one token z more with probability p(z|wx) s_i(x) - s_(i+1)(xz).
"""

from __future__ import annotations

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

    `ended` texts are done; a longer text is done too. `tokens` is the size of the vocabulary.
    """

    target: Model
    draft_from: Callable[[Prefix], Model]
    drafts: Callable[[Prefix], int]
    ended: Callable[[Prefix], bool]
    tokens: int
    cost: Value = lambda _: ONE

    def runs(self, length: int) -> Iterator[Prefix]:
        """Every run of so many tokens."""
        return product(range(self.tokens), repeat=length)

    def following(self, text: Prefix, of: Value) -> Fraction:
        """The target's mean, over the next token, of a value."""
        p = self.target(text)
        return sum((p[z] * of((*text, z)) for z in range(self.tokens) if p[z]), Fraction(0))

    def drafting(self, drafts: int) -> Problem:
        """The same with so many drafts in every call."""
        return replace(self, drafts=lambda _: drafts)


def texts(target: Model, draft: Model, k: int, length: int, end: int | None = None) -> Problem:
    """Texts of `length` tokens, or up to the token `end`; calls of k drafts from a draft model."""
    return Problem(
        target, lambda _: draft, lambda _: k, lambda text: len(text) >= length or end in text, len(target(()))
    )


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
    drawn: dict[Prefix, Fraction] = {(): ONE}
    draft = problem.draft_from(text)
    for _ in range(problem.drafts(text)):
        grown: dict[Prefix, Fraction] = {}
        longer: dict[Prefix, Fraction] = {}
        for run, mass in masses[-1].items():
            p, q = problem.target(text + run), draft(text + run)
            for z in range(problem.tokens):
                longer[*run, z] = drawn[run] * q[z]
                grown[*run, z] = more(mass, p[z], q[z], longer[*run, z])
        masses.append(grown)
        drawn = longer
    return masses


def least_of_products(problem: Problem, text: Prefix) -> Masses:
    """The least over j of q(x_1..x_j) p(x_(j+1)..x_i): the closed form of block verification's masses."""
    p, q = problem.target, problem.draft_from(text)

    def probability(model: Model, run: Prefix, start: int, end: int) -> Fraction:
        product_ = ONE
        for n in range(start, end):
            product_ *= model(text + run[:n])[run[n]]
        return product_

    def least(run: Prefix) -> Fraction:
        i = len(run)
        return min(probability(q, run, 0, j) * probability(p, run, j, i) for j in range(i + 1))

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
    found: dict[Prefix, Fraction] = {}
    for i, depth in enumerate(masses):
        for run, mass in depth.items():
            p = problem.target(text + run)
            for z in range(problem.tokens):
                deeper = masses[i + 1][*run, z] if i + 1 < len(masses) else 0
                found[*run, z] = mass * p[z] - deeper
    return found


def now_and_then(problem: Problem, text: Prefix, masses: Masses, after: Value) -> Fraction:
    """The cost of one call with these masses and of what comes after it."""
    later = (share * after(text + output) for output, share in stops(problem, text, masses).items() if share)
    return problem.cost(text) + sum(later, Fraction(0))


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
    return sum((mass * of(text + run) for depth in masses for run, mass in depth.items() if mass), Fraction(0))


# Laws, not means: what the theorem does not speak of


def beyond(problem: Problem, calls: int, of: MassesOf = block_masses) -> Fraction:
    """P(the decoding takes more than so many calls), if every call has the masses of one rule."""

    @cache
    def more(text: Prefix, left: int) -> Fraction:
        if problem.ended(text) or not left:
            return Fraction(not problem.ended(text))
        found = stops(problem, text, of(problem, text)).items()
        return sum((share * more(text + output, left - 1) for output, share in found if share), Fraction(0))

    return more((), calls)


def tokens_after(problem: Problem, calls: int, of: MassesOf = block_masses) -> Fraction:
    """The expected number of tokens that so many calls give, of a text that goes on."""

    @cache
    def mean(text: Prefix, left: int) -> Fraction:
        if not left:
            return Fraction(0)
        found = stops(problem, text, of(problem, text)).items()
        given = (share * (len(output) + mean(text + output, left - 1)) for output, share in found if share)
        return sum(given, Fraction(0))

    return mean((), calls)
