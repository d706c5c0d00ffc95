"""What limits are given, checked once: the number of draft nodes P, surprisals of texts, pmfs by depth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import real, several
from spectheory.distributions import Floats, as_numpy, validate_pair
from spectheory.errors import SettingError, ShapeError, TextError


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


def pmfs_by_depth(target: Sequence[Any], draft: Sequence[Any], most: int) -> Iterator[tuple[Floats, Floats]]:
    """The conditional pmfs of both models at each depth, ``[V] * depth``: all runs of tokens before, then the next.

    At most `most` runs to any depth.
    """
    target, draft = (
        several(name, pmfs, remedy="give one array a depth") for name, pmfs in (("target", target), ("draft", draft))
    )
    if len(target) != len(draft) or not len(target):
        raise SettingError(
            f"{len(target)} depths of the target, {len(draft)} of the draft",
            limit="as many pmfs of both, one at least",
            remedy="give both models' pmfs at each depth",
        )
    tokens = None
    for depth, given in enumerate(zip(target, draft, strict=True), 1):
        p, q = (as_numpy(each) for each in validate_pair(*given)[:2])
        tokens = tokens or p.shape[-1]
        if p.shape != (tokens,) * depth or q.shape != p.shape:
            raise ShapeError(
                f"the pmfs at depth {depth} are {p.shape} and {q.shape}",
                limit="depth i has an axis for each of i tokens",
                remedy="repeat the pmfs where they do not depend on the tokens before",
            )
        if p.size > most:
            raise SettingError(
                f"{p.size} runs of {depth} tokens", limit=f"must be at most {most}", remedy="use fewer depths"
            )
        yield p, q
