"""Fractions: those of Python, compiled (quicktions), since their arithmetic is most of what the ledger costs.

Claims of users may hold either, so types are tested with :data:`EXACT`.
"""

from __future__ import annotations

import fractions
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractions import Fraction
else:
    from quicktions import Fraction

__all__ = ["EXACT", "Fraction"]

EXACT = (Fraction, fractions.Fraction)
