"""The door for arguments that are no arrays: whole and real numbers, words, objects, random generators.

What is refused is a :class:`~spectheory.errors.SettingError`. Arrays come in by :mod:`spectheory.distributions`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from spectheory.errors import SettingError, SpectheoryError

T = TypeVar("T")

BEYOND = 1e100
"""Larger than every time and every ratio of times; sums, products and ratios of smaller values stay finite."""
MOST_EXACT = 2**53
"""Largest number up to which floats hold every integer."""
_NO_REAL = (np.complexfloating, np.ma.MaskedArray)
"""What floats would be made of with a warning."""
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
            f"{name} is {shown(value)}", limit=f"must be a whole number >= {least}", remedy=remedy
        ) from None
    if number < least:
        raise SettingError(f"{name} is {shown(number)}", limit=f"must be >= {least}", remedy=remedy)
    if most is not None and number > most:
        raise SettingError(f"{name} is {shown(number)}", limit=f"must be at most {most}", remedy="use a smaller one")
    return number


def in_range(name: str, given: Any, most: int) -> list[int]:
    """Whole numbers in ``1..most``: one, several, or none where None is given.

    Examples
    --------
    >>> in_range("nodes", [1, 8], 64), in_range("k", 3, 64), in_range("k", None, 64)
    ([1, 8], [3], [])
    """
    values = [] if given is None else [given]
    if isinstance(given, Iterable):
        values = several(name, given, remedy="name numbers")
    limit, numbers = f"must be in 1..{most}", []
    for value in values:
        try:
            numbers.append(index(value))
        except TypeError:
            raise SettingError(f"{name} is {shown(value)}", limit=limit, remedy="use a whole number") from None
        if not 1 <= numbers[-1] <= most:
            raise SettingError(f"{name} is {shown(numbers[-1])}", limit=limit, remedy="choose a number in that range")
    return numbers


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
        if getattr(value, "ndim", 0) or isinstance(value, _NO_REAL):
            raise TypeError
        number = math.ldexp(value.detach() if hasattr(value, "detach") else value, 0)  # unlike float(), takes no text
    except (TypeError, ValueError, OverflowError, RuntimeError):  # torch raises the last for arrays
        raise SettingError(f"{name} is {shown(value)}", limit=limit, remedy=remedy) from None
    if math.isnan(number) or not inside(number):
        raise SettingError(f"{name} is {number:g}", limit=limit, remedy=remedy)
    return number


def amount(name: str, value: Any, *, positive: bool = False, below: float = math.inf, remedy: str) -> float:
    """`value` as a float that is >= 0 and less than `below`, so finite; if `positive`, also more than 1 over `below`.

    Examples
    --------
    >>> amount("seconds", 0, positive=True, remedy="measure again")
    Traceback (most recent call last):
    spectheory.errors.SettingError: seconds is 0: must be > 0 and finite; measure again
    """
    if positive:
        inside, least = (lambda number: 1 / below < number < below), f"> {1 / below:g}"
    else:
        inside, least = (lambda number: 0 <= number < below), ">= 0"
    limit = f"must be {least} and {'finite' if below == math.inf else f'below {below:g}'}"
    return real(name, value, inside, limit=limit, remedy=remedy)


def choice(name: str, value: Any, words: Collection[str], *, remedy: str) -> str:
    """`value` if it is one of some words."""
    if isinstance(value, str) and value in words:
        return value
    raise SettingError(f"{name} is {shown(value)}", limit=f"must be one of {', '.join(words)}", remedy=remedy)


def instance(name: str, value: T, kind: Any, *, remedy: str) -> T:
    """`value` if it is of a class.

    Examples
    --------
    >>> instance("trace", "a.parquet", dict, remedy="read the file first")
    Traceback (most recent call last):
    spectheory.errors.SettingError: trace is 'a.parquet': needs a dict; read the file first
    """
    if isinstance(value, kind):
        return value
    raise SettingError(f"{name} is {shown(value)}", limit=f"needs a {kind.__name__}", remedy=remedy)


def several(name: str, values: Iterable[T], *, remedy: str, error: type[SpectheoryError] = SettingError) -> list[T]:
    """The entries of `values`: a list, a tuple, a range, an array or any other iterable but a text or a mapping."""
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        try:
            return list(values)
        except (TypeError, RuntimeError):  # arrays of no dimension, and tensors without numbers
            pass
    raise error(f"{name} is {shown(values)}", limit="needs a list", remedy=remedy)


def instances(name: str, values: Iterable[T], kind: Any, *, remedy: str) -> list[T]:
    """The entries of `values`, all of one class."""
    entries = several(name, values, remedy=remedy)
    for i, each in enumerate(entries):
        if not isinstance(each, kind):
            instance(f"{name}[{i}]", each, kind, remedy=remedy)
    return entries


def one_source(given: Mapping[str, bool]) -> str:
    """The one source of numbers that was given."""
    chosen = [name for name, here in given.items() if here]
    if len(chosen) != 1:
        raise SettingError(
            f"{' and '.join(chosen)} are given" if chosen else "no input is given",
            limit=f"needs one of {', '.join(given)}",
            remedy="leave the others out" if chosen else "name one",
        )
    return chosen[0]


def located(path: Any) -> Path:
    """The path of a file or a folder, from a text or a Path."""
    try:
        name = os.fspath(path)
        if isinstance(name, str) and 0 not in os.fsencode(name):
            return Path(name)
    except (TypeError, UnicodeEncodeError):
        pass
    raise SettingError(f"the path is {shown(path)}", limit="needs a text or a Path", remedy="name a file or folder")


def generator(rng: Any) -> np.random.Generator:
    """A generator of random numbers: `rng` itself, or a new one that a whole number or None begins."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    return np.random.default_rng(whole("rng", rng, least=0, remedy="pass a numpy.random.Generator or a seed"))


def shown(value: Any) -> str:
    """A value as text, shortened."""
    if isinstance(value, int) and value.bit_length() > _SHOWN_BITS:
        return f"a number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # what an object of any class may raise here says nothing
        return f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
