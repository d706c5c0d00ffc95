"""The ledger's fractions, gmpy2's: faster than Python's, and they mix with them. Laws of outcomes in fractions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from numbers import Rational
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spectheory.errors import load_extra

if TYPE_CHECKING:
    from fractions import Fraction
else:
    Fraction = load_extra("gmpy2", extra="proofs").mpq

__all__ = ["Fraction", "end_of", "is_exact", "is_fraction", "law", "law_of", "plain", "total"]

T = TypeVar("T", bound=Hashable)
P = ParamSpec("P")


def is_exact(value: object) -> bool:
    """Whether a value is an integer or a fraction, gmpy2's or Python's."""
    return type(value) is not bool and isinstance(value, Rational)


def is_fraction(value: object) -> bool:
    """Whether it is a fraction."""
    return is_exact(value) and type(value) is not int


def plain(value: Any) -> Any:
    """The value; what gmpy2 makes of a float and a fraction is the float again."""
    return float(value) if type(value).__module__ == "gmpy2" and not is_exact(value) else value


def total(values: Iterable[Any]) -> Fraction:
    """The sum of fractions; of none the fraction 0."""
    return sum(values, Fraction(0))


def law(outcomes: Iterable[tuple[T, Fraction]]) -> dict[T, Fraction]:
    """The law of outcomes that are listed with their probabilities, once or more; what has probability 0 is left out.

    Examples
    --------
    >>> from fractions import Fraction
    >>> law((x > 1, Fraction(1, 3)) for x in (1, 2, 3)) == {False: Fraction(1, 3), True: Fraction(2, 3)}
    True
    """
    shares: dict[T, Fraction] = {}
    for outcome, share in outcomes:
        if share:
            shares[outcome] = shares[outcome] + share if outcome in shares else share
    return shares


def law_of(algorithm: Callable[P, Iterable[tuple[T, Fraction]]]) -> Callable[P, dict[T, Fraction]]:
    """The law of an algorithm that yields its outcomes, every draw and every coin, with their probabilities."""

    @wraps(algorithm)
    def whole(*args: P.args, **kwargs: P.kwargs) -> dict[T, Fraction]:
        return law(algorithm(*args, **kwargs))

    return whole


def end_of(start: T, step: Callable[[T], Iterable[tuple[T, Fraction]] | None]) -> dict[T, Fraction]:
    """The law of where a process ends: `step` lists what follows a state, None if it is an end.

    Examples
    --------
    >>> from fractions import Fraction
    >>> coin = Fraction(1, 2)
    >>> end_of(0, lambda n: None if n >= 2 else [(n + 1, coin), (n + 2, coin)]) == {2: 3 * coin / 2, 3: coin / 2}
    True
    """
    ends: dict[T, Fraction] = {}
    running = {start: Fraction(1)}
    while running:
        following: list[tuple[T, Fraction]] = []
        for state, weight in running.items():
            after = step(state)
            if after is None:
                ends[state] = ends.get(state, Fraction(0)) + weight
            else:
                following += [(one, weight * share) for one, share in after]
        running = law(following)
    return ends
