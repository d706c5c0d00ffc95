"""The solver (z3): whether a statement holds for all reals that meet its conditions, and a claim for every pmf.

What it cannot decide in its time is undecided, never proved.
"""

from __future__ import annotations

import fractions
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from numbers import Rational
from typing import Any

from proofs_check.evidence.judge import judge, leaves, outline
from proofs_check.statement.arithmetic import Transcendental, nonzero_terms
from proofs_check.statement.claims import POSITIVE, Case, Claim, ClaimError, Compared, laid_out, pmfs_of, shown
from proofs_check.statement.findings import Finding
from proofs_check.statement.fractions import Fraction
from spectheory.errors import load_extra

SECONDS = 60
"""Time a solver has for one step; what is not decided by then is undecided, never proved."""


def prove_claim(claim: Claim, tokens: int, seconds: float = SECONDS) -> Finding:
    """Ask the solver whether a claim holds for all pmfs on this many tokens, of one position or of two."""
    finding = _asked(claim, tokens, seconds)
    if finding.note not in (DIVIDES, VANISHES):
        return finding
    inside = _asked(Claim(claim.says, claim.holds, (*claim.assumes, POSITIVE)), tokens, seconds)
    if inside.status == "held":
        return Finding("undecided", 1, at=finding.at, note=f"proved where {POSITIVE.says}; undecided at zeros")
    return inside


INSIDE = "proved where what is divided by is not zero; undecided at zeros"
CONTRADICT = "the conditions contradict each other: nothing is shown"
DIVIDES = "the solver's counterexample divides by zero"
VANISHES = "the solver's counterexample does not stand in fractions"


def _asked(claim: Claim, tokens: int, seconds: float) -> Finding:
    z3 = load_extra("z3", extra="proofs")
    fresh = z3.Context()  # what was asked before changes no answer
    case = _each_share(claim, tokens, lambda label: z3.Real(label, fresh))
    conditions = [met for pmf in pmfs_of(case) for met in (*(share >= 0 for share in pmf), sum(pmf) == 1)]
    _refuse_floats(claim, tokens)
    try:
        with no_branches(), nonzero_terms() as nonzero:
            for each in claim.assumes:
                met = _truth(each.met(**case))
                if met is False:  # as of V: nothing after it need have a value
                    return Finding("undecided", 1, note=CONTRADICT)
                conditions.append(met)
            goals = claim.compare(case)
    except (Transcendental, ClaimError, z3.Z3Exception, TypeError) as error:
        raise ClaimError(
            f"the claim cannot be written for the solver ({' '.join(str(error).split())})",
            limit="a proof attempt needs + - * / and proofs_check.statement.arithmetic",
            remedy="write it with larger, smaller and positive_part, or go without a proof",
        ) from error
    return _confirmed(claim, decide(conditions, goals, leaves(case), seconds, nonzero), tokens)


def _each_share(claim: Claim, tokens: int, share: Callable[[str], Any]) -> Case:
    """A case of shares made by their labels, as p0 or q2[1]0."""
    return laid_out(claim.about, tokens, lambda pmf: tuple(share(f"{pmf}{x}") for x in range(tokens)))


def _truth(met: Any) -> Any:
    """What an assumption says, if that is a truth value."""
    import z3

    if not isinstance(met, bool | z3.BoolRef):
        raise TypeError(f"an assumption says {met!r}, which is no truth value")
    return met


def _refuse_floats(claim: Claim, tokens: int) -> None:
    """Try the assumptions on fractions that refuse floats; other trouble with them shows elsewhere."""
    flat = _each_share(claim, tokens, lambda _: Unmixed(1, tokens))
    for each in claim.assumes:
        with suppress(TypeError, ZeroDivisionError, Transcendental, LookupError):
            each.met(**flat)


def _confirmed(claim: Claim, finding: Finding, tokens: int) -> Finding:
    """The finding; a counterexample of the solver, for whom 1/0 is any number, is judged in fractions."""
    if finding.status != "refuted":
        return finding
    case = _each_share(claim, tokens, finding.values.__getitem__)
    try:
        judged = judge(claim, case)
    except ClaimError:
        return Finding("undecided", 1, at=shown(case), note=DIVIDES)
    if judged.status != "refuted":
        return Finding("undecided", 1, at=shown(case), note=VANISHES)
    return Finding("refuted", 1, judged.gap, shown(case), finding.note)


@contextmanager
def no_branches() -> Iterator[None]:
    """Terms have no truth value here: a Python ``if``, ``or`` or ``==`` of tuples would decide by how they look."""
    z3 = load_extra("z3", extra="proofs")

    def undecided(term: Any) -> bool:
        raise TypeError(f"whether {term} holds is not known of a solver's term")

    kept = z3.BoolRef.__bool__
    z3.BoolRef.__bool__ = undecided
    try:
        yield
    finally:
        z3.BoolRef.__bool__ = kept


def decide(
    conditions: Sequence[Any], goals: Sequence[Compared], reals: Sequence[Any], seconds: float, nonzero: Sequence[Any]
) -> Finding:
    """Whether the conditions can hold together, and whether they can with the negation of the goals.

    A division by zero has any value for the solver: a proof covers all of them, a refutation may rest on one. Terms
    that were taken not to be zero must follow not to be.
    """
    import z3

    if not goals:
        raise ValueError("nothing is stated")
    context = reals[0].ctx if reals else None
    if _solver(seconds, conditions, context).check() == z3.unsat:
        return Finding("undecided", 1, note=CONTRADICT)
    partly = any(_solver(seconds, [*conditions, term == 0], context).check() != z3.unsat for term in nonzero)
    missed = z3.Not(z3.And(*(_term(goal, context) for goal in goals)))
    solver = _solver(seconds, [*conditions, *(term != 0 for term in nonzero), missed], context)
    answer = solver.check()
    if answer == z3.unsat:
        return Finding("undecided", 1, note=INSIDE) if partly else Finding("held", 1)
    if answer == z3.sat:
        model = solver.model()
        values = {str(real): _value(model.eval(real, model_completion=True)) for real in reals}
        return Finding("refuted", 1, at=shown(values), note="the solver's counterexample", values=values)
    return Finding("undecided", 1, note=f"undecided by the solver within {seconds:g} s")


def _solver(seconds: float, conditions: Sequence[Any], context: Any) -> Any:
    """A fresh solver: one that is asked twice gives up its best method for products."""
    import z3

    solver = z3.Solver(ctx=context)
    solver.set("timeout", max(1, int(1000 * seconds)))
    solver.add(*(z3.BoolVal(each, context) if isinstance(each, bool) else each for each in conditions))
    return solver


def alike(goal: Compared) -> bool:
    """Whether both sides of a solver's comparison are the same term, or no terms at all but a comparison that holds."""
    import z3

    if outline(goal.left) != outline(goal.right):
        return False
    pairs = list(zip(leaves(goal.left), leaves(goal.right), strict=True))
    if any(z3.is_expr(a) != z3.is_expr(b) for a, b in pairs):
        return False
    return all(a.eq(b) if z3.is_expr(a) else (a == b or (goal.relation == "<=" and a <= b)) for a, b in pairs)


def _term(goal: Compared, context: Any) -> Any:
    import z3

    if goal.relation == "~":
        raise ValueError("a solver knows no rounding")
    if goal.relation == "<=":
        terms = [goal.left <= goal.right]
    elif outline(goal.left) != outline(goal.right):
        terms = [False]
    else:
        terms = [a == b for a, b in zip(leaves(goal.left), leaves(goal.right), strict=True)]
    return z3.And(*(z3.BoolVal(term, context) if isinstance(term, bool) else term for term in terms))


def _value(value: Any) -> Any:
    """A solver's number as a fraction, or as it prints if it is irrational."""
    try:
        return Fraction(value.numerator_as_long(), value.denominator_as_long())
    except AttributeError:
        return str(value)


# Fractions that refuse floats: z3 reads 0.3 as 3/10, and a fraction is compared with the float's exact value.


_OF_TWO = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "mod", "rmod", "pow", "rpow")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_OF_ONE = ("neg", "pos", "abs")


class Unmixed(fractions.Fraction):
    """A fraction whose arithmetic and comparisons with a float raise a `ClaimError`; so do those of its results.

    The ledger's own fractions, on its left too, become one of these.

    Examples
    --------
    >>> from proofs_check.statement.fractions import Fraction as Constant
    >>> Unmixed(1, 2) + 1 >= 1
    True
    >>> type(Constant(1, 3) - Unmixed(1, 2)).__name__
    'Unmixed'
    """


def _refusing(name: str) -> Callable[[fractions.Fraction, Any], Any]:
    exact = getattr(fractions.Fraction, name)

    def operation(self: fractions.Fraction, *others: Any) -> Any:
        for other in others:
            if isinstance(other, float):
                raise ClaimError(
                    f"an assumption uses the float {other!r}",
                    limit="a float is another number to a solver than to a fraction",
                    remedy="write it as a Fraction",
                )
        result = exact(self, *(fractions.Fraction(each) if isinstance(each, Rational) else each for each in others))
        return Unmixed(result) if isinstance(result, fractions.Fraction) else result

    return operation


for _operation in (*_OF_TWO, *_COMPARISONS, *_OF_ONE):
    setattr(Unmixed, f"__{_operation}__", _refusing(f"__{_operation}__"))
Unmixed.__hash__ = fractions.Fraction.__hash__  # type: ignore[method-assign]
