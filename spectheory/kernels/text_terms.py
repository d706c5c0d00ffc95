"""B6's terms along texts: one pass serves every number of nodes."""

from __future__ import annotations

import math

import numpy as np

from spectheory.kernels import Floats, Integers
from spectheory.kernels.compiling import compiled

FAR = 600.0
"""Walks beyond it come near the largest exponent of a float."""


@compiled
def text_terms(
    surprisals: Floats, lengths: Integers, half: Integers, thresholds: Floats, ks: Integers, found: Floats
) -> None:
    r"""Terms :math:`\sum_{i \le k} (1 - e^{S_i - t})_+` of each start and each k, ``[N, ks]``, zeros at first.

    `ks` rise; `thresholds` ``[2, ks]`` are those of each half of the texts, `half` ``[texts]`` says which one it is.
    """
    end, most = 0, ks[-1]
    shrunk = np.exp(-thresholds)
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        t, scale = thresholds[half[text]], shrunk[half[text]]
        largest = t.max()
        for n in range(begin, end):
            walk, longer = 0.0, 0
            for i in range(min(most, end - n)):
                walk += surprisals[n + i]
                if walk >= largest:
                    break
                while ks[longer] <= i:  # chains that end before this step
                    longer += 1
                grown = math.exp(min(walk, FAR))
                for k in range(longer, ks.size):
                    if walk < t[k]:
                        found[n, k] += 1.0 - grown * scale[k] if t[k] < FAR else -math.expm1(walk - t[k])
