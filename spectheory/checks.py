"""Checks of single numbers: one for whole numbers, one for real ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index
from typing import Any

from spectheory.errors import SettingError

BEYOND = 1e100
"""Larger than every time and every ratio of times; sums, products and ratios of smaller values stay finite."""
MOST_EXACT = 2**53
"""Largest number up to which floats hold every integer."""
_SHOWN, _SHOWN_BITS = 60, 128
"""Most characters, and most bits of an integer, that an error shows; Python refuses to print longer integers."""


def whole(name: str, value: Any, *, least: int = 1, most: int | None = None, remedy: str) -> int:
    """`value` as an int in ``least..most``; ints of numpy and torch are taken too.

    `name` and `remedy` are for the error message.

    Examples
    --------
    >>> whole("k", 4, remedy="use 1")
    4
    >>> whole("k", 2.5, remedy="use 1")
    Traceback (most recent call last):
    spectheory.errors.SettingError: k is 2.5: must be a whole number >= 1; use 1
    """
    try:
        number = index(value)
    except TypeError:
        raise SettingError(
            f"{name} is {_shown(value)}", limit=f"must be a whole number >= {least}", remedy=remedy
        ) from None
    if number < least:
        raise SettingError(f"{name} is {_shown(number)}", limit=f"must be >= {least}", remedy=remedy)
    if most is not None and number > most:
        raise SettingError(f"{name} is {_shown(number)}", limit=f"must be at most {most}", remedy="use a smaller one")
    return number


def real(name: str, value: Any, inside: Callable[[float], bool], *, limit: str, remedy: str) -> float:
    """`value` as a float for which `inside` holds; strings and NaN are refused.

    `name`, `limit` (the range in words) and `remedy` are for the error message.

    Examples
    --------
    >>> real("alpha", 0.5, lambda a: 0 <= a <= 1, limit="must be in [0, 1]", remedy="pass a rate")
    0.5
    >>> real("alpha", "0.5", lambda a: 0 <= a <= 1, limit="must be in [0, 1]", remedy="pass a rate")
    Traceback (most recent call last):
    spectheory.errors.SettingError: alpha is '0.5': must be in [0, 1]; pass a rate
    """
    try:
        number = math.ldexp(value, 0)  # unlike float(), takes no strings
    except (TypeError, ValueError, OverflowError, RuntimeError):  # torch raises the last for arrays
        raise SettingError(f"{name} is {_shown(value)}", limit=limit, remedy=remedy) from None
    if math.isnan(number) or not inside(number):
        raise SettingError(f"{name} is {number:g}", limit=limit, remedy=remedy)
    return number


def _shown(value: Any) -> str:
    """A value as text, shortened."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
