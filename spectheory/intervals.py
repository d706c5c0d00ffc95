"""Interval: a number with its range, and what kind of range it is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from spectheory.checks import choice, real, whole
from spectheory.errors import SettingError

__all__ = ["Interval", "Kind", "weakest"]

Kind = Literal["exact", "bound", "statistical", "estimate"]
"""``exact``: equal up to rounding. ``bound``: certain to lie in [low, high]. ``statistical``: a 95% interval.
``estimate``: a value of unknown error; a range, where it has one, holds what is known of it: other readings and the
error of counting."""

_FROM_STRONGEST: tuple[Kind, ...] = ("exact", "bound", "statistical", "estimate")

_USUAL = {float, np.float64}
"""Types of numbers that need no closer look."""
_UNEVEN = 1.25
"""If one side of an interval is longer by more than this factor, both ends are shown."""
CONFIDENCE = 0.95
"""Level of every statistical interval."""
TILTS = np.concatenate([-(2.0 ** np.arange(-8, 4)), 2.0 ** np.arange(-8, 4)])
"""Exponents of the alternatives that a sum is tested against: log-odds from 1/256 to 8, each up to a factor two."""


def martingale_p(total: float, squares: float, variance: float) -> float:
    r"""A p-value, an upper bound at any size, of the sum of a martingale's steps, of their squares and variances.

    For every exponent t, :math:`\exp(t M - t^2 (\sum X^2 + 2 \sum \sigma^2) / 6)` is a supermartingale, as
    :math:`\exp(x - x^2/6) \le 1 + x + x^2/3`. By Ville's inequality 1 over the mean over :data:`TILTS` is a p-value.

    Examples
    --------
    >>> martingale_p(0.0, 100.0, 100.0), martingale_p(100.0, 100.0, 100.0) < 1e-6
    (1.0, True)
    """
    logs = TILTS * total - TILTS**2 * (squares + 2 * variance) / 6
    return math.exp(-max(float(np.logaddexp.reduce(logs)) - math.log(len(TILTS)), 0.0))


def weakest(*kinds: Kind) -> Kind:
    """The kind of a result computed from several values.

    Examples
    --------
    >>> weakest("exact", "statistical", "bound")
    'statistical'
    """
    return max(kinds, key=lambda kind: _FROM_STRONGEST.index(_checked(kind)))


def _checked(kind: Kind) -> Kind:
    choice("kind", kind, _FROM_STRONGEST, remedy="exact is a value without a range")
    return kind


def _number(name: str, value: float) -> float:
    return real(name, value, lambda _: True, limit="must be a number", remedy="pass a float")


@dataclass(frozen=True)
class Interval:
    """A number with its range: ``low <= best <= high``; all three are equal where `kind` is ``exact``.

    Examples
    --------
    >>> Interval(1.0, 1.5, 2.0, "statistical") * 2
    Interval(low=2.0, best=3.0, high=4.0, kind='statistical')
    >>> print(Interval.exact(1.25))
    1.250
    """

    low: float
    best: float
    high: float
    kind: Kind

    def __post_init__(self) -> None:
        _checked(self.kind)
        if not {type(self.low), type(self.best), type(self.high)} <= _USUAL:
            for name in ("low", "best", "high"):
                number = _number(name, getattr(self, name))
                if type(getattr(self, name)) is not int:
                    object.__setattr__(self, name, number)
        if not self.low <= self.best <= self.high:
            ends = f"low is {self.low:g}, best {self.best:g} and high {self.high:g}"
            raise SettingError(ends, limit="needs low <= best <= high", remedy="order them")
        if self.kind == "exact" and self.low != self.high:
            raise SettingError(
                f"the ends are {self.low:g} and {self.high:g}",
                limit="exact means no width",
                remedy="say bound, statistical or estimate",
            )

    @classmethod
    def exact(cls, value: float) -> Interval:
        """The interval of an exactly known value."""
        return cls(value, value, value, "exact")

    @classmethod
    def estimate(cls, value: float) -> Interval:
        """A value of unknown error."""
        return cls(value, value, value, "estimate")

    def __add__(self, shift: float) -> Interval:
        """Shift by a known number."""
        shift = _number("the shift", shift)
        return Interval(self.low + shift, self.best + shift, self.high + shift, self.kind)

    def __mul__(self, factor: Interval | float) -> Interval:
        """Multiply by a number or by another interval, both non-negative.

        The ends are multiplied, so the range is never too narrow; the kind is the weaker of the two. An estimate
        without a range leaves none.
        """
        if not isinstance(factor, Interval):
            factor = Interval.exact(_number("the factor", factor))
        if self.low < 0 or factor.low < 0:
            raise SettingError(
                f"the low ends are {self.low:g} and {factor.low:g}",
                limit="must be >= 0 in a product",
                remedy="multiply ends by hand",
            )
        kind = weakest(self.kind, factor.kind)
        if any(one.kind == "estimate" and one.low == one.high for one in (self, factor)):
            return Interval.estimate(self.best * factor.best)
        return Interval(self.low * factor.low, self.best * factor.best, self.high * factor.high, kind)

    def __str__(self) -> str:
        """The best value, and the range where there is one."""
        if math.isclose(self.low, self.high):
            return f"{self.best:.3f}"
        return f"{self.best:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def short(self, digits: int = 2) -> str:
        """The best value for a table, with its longer side or both ends if statistical; of a two-sided bound both ends.

        Examples
        --------
        >>> Interval(1.0, 1.5, 2.1, "statistical").short(), Interval(1.4, 1.5, 2.0, "statistical").short()
        ('1.50±0.60', '1.50 [1.40, 2.00]')
        >>> Interval(1.448, 1.571, 1.693, "bound").short()
        '1.45..1.69'
        """
        digits = whole("digits", digits, least=0, most=100, remedy="2 is usual")
        best = f"{self.best:.{digits}f}"
        if self.kind == "bound" and self.low < self.best < self.high:
            ends = (f"{end:.{digits}f}" for end in (self.low, self.high))
            return "..".join(dict.fromkeys(ends))
        if self.kind in ("exact", "bound") or self.low == self.high:
            return best
        sides = sorted((self.best - self.low, self.high - self.best))
        if sides[1] <= _UNEVEN * sides[0] + 10**-digits:
            return f"{best}±{sides[1]:.{digits}f}"
        return f"{best} [{self.low:.{digits}f}, {self.high:.{digits}f}]"

    def as_dict(self) -> dict[str, float | str]:
        """The fields as a JSON-ready dictionary."""
        return asdict(self)
