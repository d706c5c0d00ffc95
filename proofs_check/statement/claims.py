"""A claim: what is stated of every pair of pmfs (or tree, or chain), under which assumptions.

It is written once, with :mod:`proofs_check.statement.arithmetic`, and judged by every kind of evidence.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from proofs_check.statement.arithmetic import Transcendental, every
from proofs_check.statement.fractions import is_exact, plain
from spectheory.errors import SpectheoryError

Case = Mapping[str, Any]
"""What a claim is about: names to values, as p and q to pmfs."""

Relation = Literal["==", "<=", "~"]

PAIR = ("p", "q")
"""Target and draft at one position."""

TWO_POSITIONS = ("p1", "q1", "p2", "q2")
"""Target and draft at the first position; p2[x] and q2[x] are theirs at the second, after the first token x."""


class ClaimError(SpectheoryError):
    """A claim that cannot be judged: not a number, not a comparison."""


class AssumptionError(SpectheoryError):
    """An assumption of a claim is not met."""


@dataclass(frozen=True)
class Compared:
    """Two sides and their relation; ``~``: a double-precision number (left) is the exact one (right), rounded."""

    left: Any
    relation: Relation
    right: Any

    def __post_init__(self) -> None:
        """Check that an order is stated of numbers."""
        sides = (self.left, self.right) if self.relation != "==" else ()
        for side in sides:
            if isinstance(side, tuple | list | Mapping):
                raise ClaimError(
                    f"a {type(side).__name__} is compared by {self.relation}",
                    limit="tuples and dictionaries are compared by == alone",
                    remedy="compare number by number: return a list of comparisons",
                )


def equal(left: Any, right: Any) -> Compared:
    """The two sides are equal."""
    return Compared(left, "==", right)


def at_most(left: Any, right: Any) -> Compared:
    """The left side is no larger than the right one."""
    return Compared(left, "<=", right)


def at_least(left: Any, right: Any) -> Compared:
    """The left side is no smaller than the right one."""
    return Compared(right, "<=", left)


def computed(value: Any, exact: Any) -> Compared:
    """The library's double-precision value is the exact one, but for :data:`proofs_check.evidence.judge.ROUNDING`."""
    return Compared(float(value), "~", exact)


@dataclass(frozen=True)
class Assumption:
    """What a claim needs of its case: in words, and as a function that works on fractions and a solver's terms."""

    says: str
    met: Callable[..., Any]


@dataclass(frozen=True)
class Claim:
    """A statement about every case that meets the assumptions.

    Parameters
    ----------
    says : str
        The statement in words.
    holds : callable
        Takes the entries of a case by name and returns one :class:`Compared` or several. A trial gives it ``p`` and
        ``q``, or ``p1``, ``q1``, ``p2`` and ``q2`` if it has these parameters: ``p2[x]`` is the target's pmf of the
        second token after the first token x.
    assumes : tuple of Assumption

    Examples
    --------
    >>> from fractions import Fraction
    >>> claim = Claim("TV is at most 1", lambda p, q: at_most(sum(abs(a - b) for a, b in zip(p, q)) / 2, 1))
    >>> third = Fraction(1, 3)
    >>> claim.compare({"p": (third, 2 * third), "q": (2 * third, third)})
    [Compared(left=Fraction(1, 3), relation='<=', right=1)]
    """

    says: str
    holds: Callable[..., Compared | Iterable[Compared]]
    assumes: tuple[Assumption, ...] = ()

    def __post_init__(self) -> None:
        """Check the parts."""
        if not isinstance(self.says, str):
            raise ClaimError(f"a claim says {self.says!r}", limit="needs a string", remedy="Claim(says, holds)")
        if not callable(self.holds):
            raise ClaimError(
                f"claim {self.says!r} has no function", limit="needs one of p and q", remedy="pass a lambda"
            )
        if not isinstance(self.assumes, tuple) or not all(isinstance(each, Assumption) for each in self.assumes):
            raise ClaimError(
                f"claim {self.says!r} assumes {self.assumes!r}",
                limit="assumes is a tuple of Assumption",
                remedy="write (POSITIVE,) for one",
            )

    @property
    def about(self) -> tuple[str, ...]:
        """The names that a trial gives it: of two positions if it has a parameter of theirs, else of one."""
        try:
            parameters = inspect.signature(self.holds).parameters
        except (TypeError, ValueError):
            return PAIR
        return PAIR if parameters.keys().isdisjoint(TWO_POSITIONS) else TWO_POSITIONS

    def unmet(self, case: Case) -> Assumption | None:
        """The first assumption the case does not meet."""
        for each in self.assumes:
            try:
                if not each.met(**case):
                    return each
            except (SpectheoryError, Transcendental, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise ClaimError(
                    f"assumption {each.says!r} has no answer at {shown(case)} ({type(error).__name__}: {error})",
                    limit=f"is called with {', '.join(case)} by name and says yes or no",
                    remedy="mend the assumption",
                ) from error
        return None

    def compare(self, case: Case) -> list[Compared]:
        """Both sides at a case."""
        try:
            given = self.holds(**case)
            compared = list(given) if isinstance(given, Iterable) else [given]
        except (SpectheoryError, Transcendental, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise self._valueless(case, error) from error
        if not compared or not all(isinstance(each, Compared) for each in compared):
            raise ClaimError(
                f"claim {self.says!r} gives {given!r} at {shown(case)}",
                limit="needs at_most(left, right), at_least(left, right) or equal(left, right)",
                remedy="return one of them, or a list",
            )
        return compared

    def _valueless(self, case: Case, error: BaseException) -> ClaimError:
        what = f"claim {self.says!r} has no value at {shown(case)} ({type(error).__name__}: {error})"
        if isinstance(error, TypeError) and "argument" in str(error):
            limit, remedy = f"is called with {', '.join(case)} by name", "give its function these parameters"
        elif isinstance(error, ArithmeticError | ValueError):
            limit = "needs numbers on every case that meets its assumptions"
            remedy = "state what it needs in assumes, POSITIVE for instance"
        else:
            limit, remedy = "needs a comparison of numbers", "mend its function"
        return ClaimError(what, limit=limit, remedy=remedy)


def further(claim: Claim, one: Assumption | None, other: Assumption | None) -> Assumption | None:
    """The later of two assumptions that stopped a case: the one before it was met there."""
    order = [None, *claim.assumes]
    return max(one, other, key=order.index)


def pmfs_of(case: Case) -> Iterator[tuple[Any, ...]]:
    """The pmfs of a case; of p2 and q2 those after every first token."""
    for value in case.values():
        yield from value if isinstance(value[0], tuple) else [value]


def with_pmfs(case: Case, change: Callable[[Any], Any]) -> dict[str, Any]:
    """The case with another pmf in place of each."""
    rows = map(change, pmfs_of(case))
    return laid_out(case, len(next(pmfs_of(case))), lambda _: next(rows))


def laid_out(names: Iterable[str], tokens: int, pmf: Callable[[str], tuple[Any, ...]]) -> dict[str, Any]:
    """A case of pmfs made by their labels: one for each name, of p2 and q2 one after every first token.

    Examples
    --------
    >>> laid_out(("q1", "q2"), 2, lambda label: (label,))
    {'q1': ('q1',), 'q2': (('q2[0]',), ('q2[1]',))}
    """
    return {
        name: tuple(pmf(f"{name}[{x}]") for x in range(tokens)) if name.endswith("2") else pmf(name) for name in names
    }


POSITIVE = Assumption(
    "p and q are positive everywhere", lambda **case: every(share > 0 for pmf in pmfs_of(case) for share in pmf)
)
"""All pmfs have full support."""

LONG = 10**4
"""Denominators above this are shown as decimals where brevity is asked for."""

MANY = 16
"""Of a tuple with more entries than this, three and the last are shown where brevity is asked for."""


def shown(value: Any, *, brief: bool = False) -> str:
    """A case or a value on one line, fractions as 1/3; brief ones with decimals, and without the middle of long tuples.

    Examples
    --------
    >>> from fractions import Fraction
    >>> shown({"p": (Fraction(1, 3), Fraction(2, 3)), "k": 2})
    'p = (1/3, 2/3), k = 2'
    >>> shown((Fraction(1, 64),) * 64, brief=True)
    '(1/64, 1/64, 1/64, ..., 1/64: 64 entries)'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {shown(item, brief=brief)}" for name, item in value.items())
    if isinstance(value, tuple | list) and brief and len(value) > MANY:
        first, last = (", ".join(shown(item, brief=True) for item in part) for part in (value[:3], value[-1:]))
        return f"({first}, ..., {last}: {len(value)} entries)"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(shown(item, brief=brief) for item in value) + ")"
    if brief and is_exact(value) and value.denominator > LONG:
        return f"{float(value):.6g}"
    value = plain(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)
