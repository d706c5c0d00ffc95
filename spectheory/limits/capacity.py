"""The number of draft nodes P that a limit is about."""

from __future__ import annotations

import math
from typing import Any

from spectheory.checks import real


def checked_capacity(capacity: Any, name: str = "capacity") -> float:
    """A number of draft nodes, or of drafts, as a float; it may be larger than any tree that fits a memory.

    Raises
    ------
    SettingError
        If it is no whole number >= 1.
    """
    return real(
        name,
        capacity,
        lambda nodes: 1 <= nodes < math.inf and nodes == math.floor(nodes),
        limit="must be a whole number >= 1",
        remedy="no draft means plain decoding",
    )
