"""Token verification at one position as a single draw: output token and mark, accepted or recovered, together.

A draft x ~ q is accepted with probability min(1, p/q), else a token is recovered from norm (p - q)+. So token x comes
out accepted with mass min(p, q) and recovered with mass (p - q)+, p in all. Both depend on the pmfs of the position
alone: on a Markov chain one alias table per state serves, and a draw whose mark is not read is a bonus token.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulations.draws.alias import Floats, alias

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """The alias tables of all states, one after the other; columns without mass are left out.

    A column is one word: from the top the probability to keep it, in multiples of `unit`, then the outcome it keeps and
    the outcome it gives else, `bits` bits each. With 512 tokens the law is off by less than 2^-43, and so is the chance
    of a draw that a table in floats would decide otherwise.

    - ``begin``, ``[states + 1]``: where the table of each state begins.
    - ``bits``: bits of an outcome; 2x is token x recovered, 2x + 1 is token x accepted.
    - ``unit``: ``2**(2 * bits - 63)``, or 2^-53 if that is larger.
    """

    columns: Ints
    begin: Ints
    bits: int
    unit: float


def acceptance_law(target: Floats, draft: Floats) -> Floats:
    """Joint mass ``[..., 2V]`` of output and mark: 2x is token x recovered, 2x + 1 is token x accepted."""
    mass = np.stack([np.maximum(target - draft, 0.0), np.minimum(target, draft)], axis=-1)
    return mass.reshape(*target.shape[:-1], -1)


def acceptance_rows(law: Floats) -> Rows:
    """The tables of the laws ``[..., 2V]`` of every state."""
    bits = max(1, (law.shape[-1] - 1).bit_length())
    unit = 2.0 ** -min(53, 63 - 2 * bits)
    columns, begin = [], [0]
    for mass in law.reshape(-1, law.shape[-1]):
        support = np.flatnonzero(mass)
        table = alias(mass[support])
        kept = np.minimum(np.rint(table.keep / unit), 1 / unit - 1).astype(np.int64)
        columns.append((kept << (2 * bits)) | (support << bits) | support[table.other])
        begin.append(begin[-1] + support.size)
    return Rows(np.concatenate(columns), np.array(begin), bits, unit)
