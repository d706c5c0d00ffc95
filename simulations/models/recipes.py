"""Chains named by a recipe in a task's parameters: a task stays small, matrices are made where they are used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from simulations.draws.alias import Floats
from spectheory.errors import SettingError

PAPER_TOKENS, PAPER_SEED = 7, 10


class Pair(NamedTuple):
    """Target and draft as transition pmfs ``[V, V]`` or ``[T, V, V]``, and the pmf ``[V]`` of the token before."""

    target: Floats
    draft: Floats
    initial: Floats


@cache
def paper_chains(length: int) -> Pair:
    """The chains of yin2024: seven tokens, uniform matrices normalised by rows, the draft's drawn first."""
    rng = np.random.RandomState(PAPER_SEED)  # the paper's generator
    shape = (length, PAPER_TOKENS, PAPER_TOKENS)
    draft, target = (m / m.sum(axis=-1, keepdims=True) for m in (rng.rand(*shape), rng.rand(*shape)))
    return Pair(target, draft, np.full(PAPER_TOKENS, 1 / PAPER_TOKENS))


def chains_of(parameters: Mapping[str, Any]) -> Pair:
    """The chains a task asks for: ``target``, ``draft`` and ``initial``, or ``{"chains": "yin2024", "length": T}``."""
    recipe = parameters.get("chains")
    if recipe is None:
        return Pair(*(np.asarray(parameters[name], dtype=np.float64) for name in ("target", "draft", "initial")))
    if recipe != "yin2024":
        raise SettingError(f"chains are {recipe!r}", limit="the recipe known is 'yin2024'", remedy="give the matrices")
    return paper_chains(parameters["length"])
