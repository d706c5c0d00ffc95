"""The tokens that truncated sampling keeps in one row of logits, by partial selection.

The readable twin is :func:`spectheory.measure.columns.pmf.kept_tokens`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.kernels import Floats
from spectheory.kernels.compiling import compiled, plus, scratch
from spectheory.kernels.logits import _sum_of_exponentials, exponentials

Ids = NDArray[np.int64]

GROUPS_PER_TOKEN, LEAST_GROUPS = 8, 1024
"""Groups whose largest entries bound the k-th largest entry of a row: with 8 k of them, few other tokens pass."""
_RUN = 64
"""Entries compared together; where none passes, the next ones follow."""
_INTERVALS, _LEAST_RANGE = 1024, 1e-300
"""Equal parts of the logits' range, of which one is searched for a nucleus's last token; the least range."""
_COLUMNS = ("values", "log", "weights", "spare")


def support(logits: NDArray[np.floating], best: float, sampling: Sampling, admitted: int) -> tuple[Ids, Floats]:
    """Ids (ascending) and log-probabilities of the kept tokens of logits ``[V]`` with maximum `best`; valid until the
    next call.

    The temperature is positive. `admitted` is never cut; -1 for none.
    """
    size, warmth = logits.size, max(sampling.temperature, float(np.finfo(np.float64).tiny))
    top_k, top_p = sampling.top_k or size, sampling.top_p or 1.0
    log_min_p = math.log(sampling.min_p) if sampling.min_p else -math.inf
    ids, total = scratch("kept ids", size + 1, np.int64), 0.0
    if top_k < size:
        floor = _bound(logits, top_k, min(size, max(LEAST_GROUPS, GROUPS_PER_TOKEN * top_k)))
    else:
        log_floor = log_min_p
        if top_p < 1:
            total = _sum_of_exponentials(logits, best, warmth)
            # All tokens of less than this weight together have less than the share that the nucleus leaves out.
            log_floor = max(log_floor, math.log(total * ((1 - top_p) / size)))
        floor = best + warmth * log_floor
        floor -= 1e-6 * (1 + abs(floor))
    count = _above(logits, floor, ids)
    values, log, weights, spare = (scratch(f"kept {name}", size + 1)[: count + 1] for name in _COLUMNS)
    _scale(logits, ids, best, warmth, values[:count], log)
    exponentials(log[:count], weights[:count])
    count, mass = _cut(values[:count], weights, spare, top_k, top_p, total, log_min_p, ids, log)
    if admitted >= 0:
        count, mass = _admit((float(logits[admitted]) - best) / warmth, admitted, ids, log, count, mass)
    log[:count] -= math.log(mass)
    return ids[:count], log[:count]


@compiled
def _bound(logits: NDArray[np.floating], k: int, groups: int) -> float:
    """The k-th largest of the groups' largest entries: the k-th largest entry is no smaller."""
    maxima = logits[:groups].copy()
    for start in range(groups, logits.size - groups + 1, groups):
        for j in range(groups):
            value = logits[start + j]
            maxima[j] = value if value > maxima[j] else maxima[j]
    return _reached(maxima.astype(np.float64), np.ones(groups), float(k))[0]


@compiled
def _above(values: NDArray[np.floating], floor: float, ids: Ids) -> int:
    """Write the ids of the entries of at least `floor`; return how many there are."""
    count, typed = 0, values[:1].copy()
    typed[0] = floor
    least = typed[0]
    for start in range(0, values.size, _RUN):
        run, passing = values[start : start + _RUN], np.float32(0.0)
        for value in run:
            passing = plus(passing, np.float32(1.0) if value >= least else np.float32(0.0))
        if passing > 0:
            for j in range(run.size):
                ids[count] = start + j
                count += run[j] >= least
    return count


@compiled
def _scale(logits: NDArray[np.floating], ids: Ids, best: float, warmth: float, values: Floats, log: Floats) -> None:
    """Write the logits of the first ids, and these relative to the largest and divided by the temperature."""
    for i in range(values.size):
        values[i] = logits[ids[i]]
        log[i] = (values[i] - best) / warmth


@compiled
def _interval(value: float, low: float, scale: float) -> int:
    """The number of a value's interval; all are the last where their range is infinite."""
    place = (value - low) * scale
    if 0.0 <= place < _INTERVALS - 1:
        return int(place)
    return 0 if place < 0.0 else _INTERVALS - 1


@compiled
def _nucleus(values: Floats, weights: Floats, spare: Floats, need: float) -> tuple[float, float]:
    """What :func:`_reached` gives, and the arrays unchanged: it looks at the entries of one of many equal intervals."""
    low, high, above = values.min(), values.max(), 0.0
    masses, scale = np.zeros(_INTERVALS), (_INTERVALS - 1) / max(high - low, _LEAST_RANGE)
    for i in range(values.size):
        masses[_interval(values[i], low, scale)] += weights[i]
    k = _INTERVALS - 1
    while k > 0 and above + masses[k] < need:
        above += masses[k]
        k -= 1
    count = 0
    for i in range(values.size):
        spare[count] = i
        count += _interval(values[i], low, scale) == k
    equals, mass = np.empty(count), np.empty(count)
    for j in range(count):
        equals[j], mass[j] = values[int(spare[j])], weights[int(spare[j])]
    cut, more = _reached(equals, mass, need - above)
    return cut, above + more


@compiled
def _reached(values: Floats, weights: Floats, need: float) -> tuple[float, float]:
    """The value at which weights, added from the largest value down, reach `need`, and the weight above it.

    Both arrays are overwritten; a need that is not reached gives the smallest value.
    """
    above, first, last = 0.0, 0, values.size
    while True:
        a, b, c = values[first], values[(first + last) // 2], values[last - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        greater = equal = 0.0
        low, i, high = first, first, last
        while i < high:
            value, weight = values[i], weights[i]
            if value > pivot:
                values[i], weights[i] = values[low], weights[low]
                values[low], weights[low] = value, weight
                greater += weight
                low += 1
                i += 1
            elif value < pivot:
                high -= 1
                values[i], weights[i] = values[high], weights[high]
                values[high], weights[high] = value, weight
            else:
                equal += weight
                i += 1
        if low > first and above + greater >= need:
            last = low
        elif above + greater + equal >= need or high == last:
            return pivot, above + greater
        else:
            above += greater + equal
            first = high


@compiled
def _cut(
    values: Floats,
    weights: Floats,
    spare: Floats,
    top_k: int,
    top_p: float,
    total: float,
    log_min_p: float,
    ids: Ids,
    log: Floats,
) -> tuple[int, float]:
    """Keep of the ids and logarithms those that stay after top-k, top-p and min-p; return their number and weight."""
    last, need, before = -math.inf, math.inf, 0.0
    if top_k < values.size:
        last = _reached(values.copy(), np.ones(values.size), float(top_k))[0]
    if top_p < 1:
        for i in range(values.size):
            weights[i] = weights[i] if values[i] >= last else 0.0
        need = top_p * (total if total > 0 else weights[: values.size].sum())
        nucleus, before = _nucleus(values, weights, spare, need)
        last = max(last, nucleus)
    kept, mass = 0, 0.0
    for i in range(values.size):
        value, weight = values[i], weights[i]
        stays = value > last or (value == last and before < need)
        before += weight if value == last else 0.0
        if stays and log[i] >= log_min_p and log[i] > -math.inf:
            ids[kept], log[kept] = ids[i], log[i]
            mass += weight
            kept += 1
    return kept, mass


@compiled
def _admit(log_mass: float, token: int, ids: Ids, log: Floats, count: int, mass: float) -> tuple[int, float]:
    """Insert a token with its relative logarithm, unless it is there or has none; return the number and weight."""
    place = np.searchsorted(ids[:count], token)
    if log_mass == -math.inf or (place < count and ids[place] == token):
        return count, mass
    for i in range(count, place, -1):
        ids[i], log[i] = ids[i - 1], log[i - 1]
    ids[place], log[place] = token, log_mass
    return count + 1, mass + math.exp(log_mass)


# The union of the tokens that two models keep, by merging.
#
# The readable twin is :func:`spectheory.measure.columns.statistics._union_in_torch`.


def merged(
    target: Ids, log_target: Floats, draft: Ids, log_draft: Floats, tokens: Ids, size: int
) -> tuple[Ids, Floats, Floats, Ids]:
    """Union ``[rows, W]`` of ascending ids ``[rows, n]``, padded with `size`, and one token of each row.

    Returns the ids, both log-probabilities (-inf where a list lacks the id), and each token's place ``[rows, 1]``.
    """
    shape = len(tokens), target.shape[1] + draft.shape[1] + 1
    ids, place = np.full(shape, size), np.empty((len(tokens), 1), dtype=np.int64)
    logs = np.full(shape, -math.inf), np.full(shape, -math.inf)
    width = _merge(target, log_target, draft, log_draft, tokens, size, ids, *logs, place)
    return ids[:, :width], logs[0][:, :width], logs[1][:, :width], place


@compiled
def _merge(
    target: Ids,
    log_target: Floats,
    draft: Ids,
    log_draft: Floats,
    tokens: Ids,
    size: int,
    ids: Ids,
    log_p: Floats,
    log_q: Floats,
    place: Ids,
) -> int:
    """Write the union of each row; return the width of the longest."""
    width = 0
    for row in range(tokens.size):
        i = j = count = 0
        while True:
            a = target[row, i] if i < target.shape[1] else size
            b = draft[row, j] if j < draft.shape[1] else size
            c = tokens[row] if count == 0 or ids[row, count - 1] < tokens[row] else size
            least = min(a, b, c)
            if least == size:
                break
            ids[row, count] = least
            if a == least:
                log_p[row, count] = log_target[row, i]
                i += 1
            if b == least:
                log_q[row, count] = log_draft[row, j]
                j += 1
            if c == least:
                place[row, 0] = count
            count += 1
        width = max(width, count)
    return width
