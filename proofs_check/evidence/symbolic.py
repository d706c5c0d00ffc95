"""Proofs in small steps, each checked: identities by algebra (sympy), inequalities by a solver over the reals (z3).

A step says what it shows and how it is checked, and which part it has in the proof. :func:`same` is an identity of
rational functions, sums, integrals or limits; with :func:`valid` the negation of a statement is unsatisfiable over the
reals. Both carry the argument. :func:`in_words` is a step whose formula is an identity as soon as it is written, so
that nothing is left to check; :func:`cited` names a theorem of the literature and checks nothing.
"""

from __future__ import annotations

import inspect
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from proofs_check.evidence.solver import DIVIDES, SECONDS, alike, decide, no_branches
from proofs_check.statement.arithmetic import nonzero_terms
from proofs_check.statement.claims import Compared, shown
from proofs_check.statement.findings import Effort, Finding
from spectheory.errors import load_extra

Part = Literal["argument", "words", "cited"]
"""What a step is in its proof: checked and carrying the argument, stated in words, or a named theorem."""

PARTS: tuple[Part, ...] = ("argument", "words", "cited")

Sides = Callable[..., tuple[Any, Any]]

LARGER = "the left side + 1"

AS_WRITTEN = "the two sides are the same as soon as they are written: the formula shows nothing, state it in_words"


@dataclass(frozen=True)
class Step:
    """One step of a proof: what it shows, how (algebra, solver, words or the citation), and seconds to a `Finding`.

    as_written: whether the formula is an identity as soon as it is written. A step that carries the argument is none.
    damaged: checks of the step with one thing changed, by what was changed: an assumption dropped, a parameter that is
    one larger on the left side, or the whole left side one larger.
    """

    says: str
    how: str
    check: Callable[[float], Finding]
    part: Part = "argument"
    as_written: Callable[[], bool] = lambda: False
    damaged: Callable[[float], Iterable[tuple[str, Finding]]] = lambda seconds: ()


def same(says: str, sides: Sides, *, integers: Sequence[str] = ()) -> Step:
    """A step: the two sides are the same expression, once it is multiplied out, integrated or brought to its limit.

    sides: takes one symbol for each of its parameters and returns both sides; sums, integrals, derivatives and limits
        are left for the check (:mod:`proofs_check.statement.calculus`).
    integers: parameters that are positive integers; the others are positive reals.

    Examples
    --------
    >>> same("the square", lambda a, b: ((a + b) ** 2, a**2 + 2 * a * b + b**2)).check(1).status
    'held'
    >>> same("not the square", lambda a, b: ((a + b) ** 2, a**2 + b**2)).check(1).status
    'refuted'
    >>> same("a definition", lambda a, b: (a * b / b, a)).check(1).status
    'undecided'
    """

    def check(_: float) -> Finding:
        difference, symbols = _difference(sides, integers)
        if difference == 0:
            return Finding("undecided", 1, note=AS_WRITTEN)
        return _vanishes(difference.doit(), symbols)

    def damaged(_: float) -> Iterator[tuple[str, Finding]]:
        left, right, symbols = _sides(sides, integers)
        for symbol in (each for each in symbols if each in left.free_symbols):
            moved = left.subs(symbol, symbol + 1) - right
            yield f"{symbol} + 1 for {symbol} on the left", _vanishes(moved.doit(), symbols)
        yield LARGER, _vanishes((left + 1 - right).doit(), symbols)

    return Step(says, "algebra", check, as_written=lambda: bool(_difference(sides, integers)[0] == 0), damaged=damaged)


def in_words(says: str, sides: Sides) -> Step:
    """A step that its words carry: its formula is an identity as soon as it is written, and leaves nothing to check.

    Examples
    --------
    >>> in_words("a/b of b is a", lambda a, b: (a * b / b, a)).check(1)
    Finding(status='held', cases=0, gap=None, at='', note='')
    >>> in_words("the square", lambda a, b: ((a + b) ** 2, a**2 + 2 * a * b + b**2)).check(1).status
    'undecided'
    """

    def as_written() -> bool:
        return bool(_difference(sides, ())[0] == 0)

    def check(_: float) -> Finding:
        return Finding("held", 0) if as_written() else Finding("undecided", 1, note="not the same as written: use same")

    return Step(says, "words", check, "words", as_written)


def _difference(sides: Sides, integers: Sequence[str]) -> tuple[Any, list[Any]]:
    """Left minus right as it is written, and the symbols in it."""
    left, right, symbols = _sides(sides, integers)
    return left - right, symbols


def _sides(sides: Sides, integers: Sequence[str]) -> tuple[Any, Any, list[Any]]:
    """Both sides as they are written, and the symbols in them."""
    sympy = load_extra("sympy", extra="proofs")
    names = list(inspect.signature(sides).parameters)
    symbols = [sympy.Symbol(name, positive=True, integer=name in integers or None) for name in names]
    left, right = map(sympy.sympify, sides(*symbols))
    return left, right, symbols


def _vanishes(difference: Any, symbols: Sequence[Any]) -> Finding:
    """Whether an expression is zero; if it is not at some point, that point."""
    import sympy

    if sympy.expand(difference) == 0 or (simple := sympy.simplify(difference)) == 0:
        return Finding("held", 1)
    rng = random.Random(1)
    point = {s: rng.randint(1, 9) if s.is_integer else sympy.Rational(rng.randint(1, 99), 37) for s in symbols}
    away = abs(sympy.N(simple.subs(point).doit(), 30))
    at = shown({str(symbol): value for symbol, value in point.items()})
    apart = away.is_number and away > sympy.Rational(1, 10**20)
    return Finding("refuted" if apart else "undecided", 1, at=at)


def valid(
    says: str,
    statement: Callable[..., Compared | Iterable[Compared]],
    where: Callable[..., Iterable[Any]] | None = None,
) -> Step:
    """A step: the statement holds for all reals that meet the conditions.

    statement: takes one real for each of its parameters and returns comparisons.
    where: takes the same parameters and returns the conditions.

    Examples
    --------
    >>> from proofs_check.statement.claims import at_most
    >>> valid("AM-GM", lambda a, b: at_most(4 * a * b, (a + b) * (a + b))).check(5).status
    'held'
    >>> proof = valid("not so", lambda a: at_most(a, a * a), lambda a: [a > 0]).check(5)
    >>> proof.status, proof.at
    ('refuted', 'a = 1/2')
    """
    names = list(inspect.signature(statement).parameters)

    def built(moved: str = "") -> tuple[list[Compared], list[Any], list[Any], list[Any]]:
        """Goals, conditions, reals, terms that are not zero; on the left of the goals `moved` is one larger."""
        z3 = load_extra("z3", extra="proofs")
        fresh = z3.Context()  # what was asked before changes no answer
        reals = {name: z3.Real(name, fresh) for name in names}
        with no_branches(), nonzero_terms() as nonzero:
            goals = _goals(statement(**reals))
            if moved:
                other = _goals(statement(**{**reals, moved: reals[moved] + 1}))
                goals = [replace(goal, left=each.left) for goal, each in zip(goals, other, strict=True)]
            conditions = list(where(**reals)) if where else []
        return goals, conditions, list(reals.values()), nonzero

    def check(seconds: float) -> Finding:
        goals, conditions, reals, nonzero = built()
        if goals and all(map(alike, goals)):
            return Finding("undecided", 1, note=AS_WRITTEN)
        return decide(conditions, goals, reals, seconds, nonzero)

    def standing(finding: Finding, moved: str = "") -> Finding:
        """The finding; undecided where its counterexample divides by zero, which is any number for the solver."""
        values = finding.values
        try:
            if finding.status == "refuted" and not any(isinstance(value, str) for value in values.values()):
                for given in (values, {**values, moved: values[moved] + 1} if moved else values):
                    _goals(statement(**given))
        except ZeroDivisionError:
            return replace(finding, status="undecided", note=DIVIDES)
        return finding

    def damaged(seconds: float) -> Iterator[tuple[str, Finding]]:
        goals, conditions, reals, nonzero = built()
        for i, each in enumerate(conditions):
            left = [*conditions[:i], *conditions[i + 1 :]]
            yield f"without the assumption {each}", standing(decide(left, goals, reals, seconds, nonzero))
        for name in names:
            goals, conditions, reals, nonzero = built(name)
            finding = decide(conditions, goals, reals, seconds, nonzero)
            yield f"{name} + 1 for {name} on the left", standing(finding, name)
        goals, conditions, reals, nonzero = built()
        larger = [replace(goal, left=goal.left + 1) for goal in goals]
        yield LARGER, decide(conditions, larger, reals, seconds, nonzero)

    return Step(says, "solver", check, as_written=lambda: all(map(alike, built()[0])), damaged=damaged)


def _goals(given: Compared | Iterable[Compared]) -> list[Compared]:
    return [given] if isinstance(given, Compared) else list(given)


def cited(says: str, source: str) -> Step:
    """A step that is a theorem of the literature, named and not checked."""
    return Step(says, f"cited: {source}", lambda _: Finding("held", 0), "cited")


def prove(steps: Sequence[Step], effort: Effort) -> Finding:
    """Check every step; the first that is not shown decides. The cases are the steps that carry the argument."""
    counted = parts(steps)
    if not counted["argument"]:
        raise ValueError("a proof without steps that carry the argument")
    for step in steps:
        finding = step.check(effort.pick(SECONDS, 10 * SECONDS))
        if finding.status != "held":
            return Finding(finding.status, len(steps), at=finding.at, note=f"{step.says} ({finding.note or step.how})")
    besides = ((counted["words"], "in words"), (counted["cited"], "cited"))
    return Finding("held", counted["argument"], note=", ".join(f"{count} {word}" for count, word in besides if count))


def damaged(steps: Sequence[Step], effort: Effort) -> Finding:
    """Damage every step that carries the argument; held where one still holds whatever was changed in it.

    The first change that is refuted ends a step, assumptions first. What the steps have to do with each other is in
    words: leaving one out is not noticed.
    """
    changes: Counter[str] = Counter()
    for step in steps:
        if step.part == "argument":
            tried = step.damaged(effort.pick(SECONDS, 10 * SECONDS))
            refuted = (what for what, finding in tried if finding.status == "refuted")
            change = next(refuted, None)
            if change is None:
                return Finding("held", 1, note=f"no change of {step.says!r} is noticed")
            changes["an assumption dropped" if change.startswith("without") else "a side changed"] += 1
    return Finding("refuted", changes.total(), note=", ".join(f"{count} {what}" for what, count in changes.items()))


def parts(steps: Iterable[Step]) -> dict[Part, int]:
    """How many steps carry the argument, are in words, or cited; a step that several proofs share counts once."""
    counted = Counter(step.part for step in {id(step): step for step in steps}.values())
    return {part: counted[part] for part in PARTS}


def in_parts(counted: Mapping[Part, int]) -> str:
    """The counts as one sentence."""
    return f"{counted['argument']:,} carry the argument, {counted['words']} in words, {counted['cited']} cited"
