"""Random numbers by place, not by order: a hash of a text's key, a position and a counter.

The numbers of a position do not depend on chunks, blocks, the number of workers, or whether the run was resumed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
"""One key per position, ``[n]``."""

DEFAULT_KEY = 0
"""Default key of a text."""
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def text_key(seed: int, *place: int) -> int:
    """The key of a text from the root seed and the text's place, such as prompt and continuation."""
    return int(np.random.SeedSequence(seed, spawn_key=place).generate_state(1, np.uint64)[0])


def position_keys(key: int, first: int, count: int) -> Keys:
    """Keys ``[count]`` of the positions from `first` on of the text with this key; all keys of a text differ."""
    return _hashed(np.array([key], dtype=np.uint64), np.arange(first, first + count, dtype=np.uint64))


def uniforms(keys: Keys, count: int) -> NDArray[np.float64]:
    """Independent uniform numbers in [0, 1) at each position, ``[n, count]``, multiples of 2^-53."""
    bits = _hashed(keys[:, None], np.arange(count, dtype=np.uint64))
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


def _hashed(state: Keys, counter: Keys) -> Keys:
    """Number `counter` of the SplitMix64 generator started at `state` (Steele, Lea and Flood 2014)."""
    x = state + (counter + np.uint64(1)) * _STEP
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        x = (x ^ (x >> shift)) * factor
    return x ^ (x >> _SHIFTS[2])
