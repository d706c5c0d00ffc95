"""Expected calls by compiled loops, where texts are long enough and numba is installed (§7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spectheory import kernels
from spectheory.drafting import Tree
from spectheory.kernels import Floats, Integers
from spectheory.prediction.path_laws import PathLaws


def pays(positions: int) -> bool:
    """Whether so many positions are worth a compiled loop, and there is one."""
    return positions >= kernels.SMALLEST and kernels.installed()


def chains(survival: Floats, lengths: Integers, ks: Sequence[int], prefill: bool) -> tuple[Floats, Floats]:
    """Expected calls and full acceptances of chains of rising lengths, ``[ks, texts]`` each."""
    from spectheory.kernels.path_calls import chain_calls

    expected, full = np.zeros((2, len(ks), len(lengths)))
    chain_calls(np.ascontiguousarray(survival), lengths, np.array(ks), int(prefill), expected, full)
    return expected + int(prefill), full


def tree(laws: PathLaws, tree: Tree, lengths: Integers, prefill: bool) -> tuple[Floats, Floats, Floats]:
    """Expected calls, those that end at a leaf, and sums of P(tau >= 1), ``[texts]`` each."""
    from spectheory.kernels.path_calls import tree_calls

    by_start = laws.deepest is not None
    law = laws.columns if by_start else laws.columns[None]
    found = np.zeros((3, len(lengths)))
    nodes = np.array([tree.parents, tree.ranks, tree.depths], np.int64)
    tree_calls(law, by_start, nodes, lengths, int(prefill), found)
    return found[0] + int(prefill), found[1], found[2]


def visits(survival: Floats, lengths: Integers, prefill: bool) -> Floats:
    """Expected calls that start at each position, ``[N]``."""
    from spectheory.kernels.path_calls import visits

    found = np.zeros(len(survival))
    visits(np.ascontiguousarray(survival), lengths, int(prefill), found)
    return found
