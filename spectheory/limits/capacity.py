"""The number of draft nodes P, checked once for every limit."""

from __future__ import annotations

import math
from typing import Any

from spectheory.checks import real


def checked_capacity(capacity: Any, name: str = "capacity") -> float:
    """A number of draft nodes, or of drafts, as a float, as it may exceed every integer type."""
    return real(
        name,
        capacity,
        lambda nodes: 1 <= nodes < math.inf and nodes == math.floor(nodes),
        limit="must be a whole number >= 1",
        remedy="no draft means plain decoding",
    )
