"""The surprisals of texts, checked once for every limit that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import several
from spectheory.distributions import as_numpy
from spectheory.errors import TextError


def checked_surprisals(texts: Sequence[Any]) -> list[NDArray[np.float64]]:
    """The surprisals of each text, ``[tokens]`` each, in double precision; finite and >= 0."""
    found = several("the list of texts", texts, remedy="pass a list of texts, [tokens] each", error=TextError)
    walks = [as_numpy(text, f"text {number}", TextError) for number, text in enumerate(found)]
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
