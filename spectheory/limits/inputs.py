"""What limits are given, checked once: the number of draft nodes P, and the surprisals of texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import real, several
from spectheory.distributions import as_numpy
from spectheory.errors import TextError


def checked_capacity(capacity: Any, name: str = "capacity") -> float:
    """A number of draft nodes, or of drafts, as a float, as it may exceed every integer type."""
    return real(
        name,
        capacity,
        lambda nodes: 1 <= nodes < math.inf and nodes == math.floor(nodes),
        limit="must be a whole number >= 1",
        remedy="count draft nodes from 1",
    )


# The surprisals of texts, checked once for every limit that reads them


def checked_surprisals(texts: Sequence[Any]) -> list[NDArray[np.float64]]:
    """The surprisals of each text, ``[tokens]`` each, in double precision; finite and >= 0."""
    entries = several("the list of texts", texts, remedy="pass a list of texts, [tokens] each", error=TextError)
    walks = [as_numpy(text, f"text {number}", TextError) for number, text in enumerate(entries)]
    for number, walk in enumerate(walks):
        if walk.ndim != 1:
            raise TextError(f"a text has shape {walk.shape}", limit="[tokens]", remedy="pass a list of texts")
        bad = ~((walk >= 0) & np.isfinite(walk))
        if bad.any():
            at = int(np.argmax(bad))
            raise TextError(
                f"surprisal {at} of text {number} is {walk[at]:g}",
                limit="must be finite and >= 0: every token has positive probability",
                remedy="pass -log p in nats, with the sampling settings the text was drawn with",
            )
    return walks
