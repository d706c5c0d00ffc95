"""Quantities of two pmfs in any arithmetic, and two claims of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs_check import POSITIVE, Claim, absolute, at_most, log, smaller


def overlap(p: Sequence[Any], q: Sequence[Any]) -> Any:
    return sum(smaller(a, b) for a, b in zip(p, q, strict=True))


def distance(p: Sequence[Any], q: Sequence[Any]) -> Any:
    return sum(absolute(a - b) for a, b in zip(p, q, strict=True)) / 2


def kl(p: Sequence[Any], q: Sequence[Any]) -> Any:
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True))


PINSKER = Claim("2 TV^2 <= KL", lambda p, q: at_most(2 * distance(p, q) ** 2, kl(p, q)), (POSITIVE,))
TOO_MUCH = Claim("3 TV^2 <= KL", lambda p, q: at_most(3 * distance(p, q) ** 2, kl(p, q)), (POSITIVE,))
