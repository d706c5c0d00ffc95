"""The recursion of the path theorem (§7) text by text: calls of chains and trees, and where calls start."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spectheory.kernels import Floats, Integers
from spectheory.kernels.compiling import compiled

CHUNK = 256
"""Positions at which the nodes of a tree are weighed together."""


@compiled
def chain_calls(
    survival: Floats, lengths: Integers, ks: Integers, prefill: int, expected: Floats, full: Floats
) -> None:
    """Expected calls and full acceptances ``[ks, texts]`` of chains of rising lengths, from `survival` ``[N, depth]``.

    What is ahead is kept for one call's reach: rows take turns, one position each, with a value for each k.
    """
    reach, end = ks[-1] + 2, 0
    calls, ends = np.zeros((reach, ks.size)), np.zeros((reach, ks.size))
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        calls[:], ends[:] = 0.0, 0.0
        place, first = 0, begin + prefill
        for n in range(end - 1, first - 1, -1):
            place = place - 1 if place > 0 else reach - 1
            calls[place], ends[place] = 1.0, 0.0
            above, longer = 1.0, 0
            for i in range(min(ks[-1] + 1, end - n - 1)):
                ahead = place + i + 1
                ahead = ahead - reach if ahead >= reach else ahead
                if longer < ks.size and ks[longer] == i:  # the chain that ends here
                    calls[place, longer] += above * calls[ahead, longer]
                    ends[place, longer] += above * (1.0 + ends[ahead, longer])
                    longer += 1
                if longer == ks.size:
                    break
                below = survival[n, i]
                for k in range(longer, ks.size):
                    calls[place, k] += (above - below) * calls[ahead, k]
                    ends[place, k] += (above - below) * ends[ahead, k]
                above = below
        if first < end:
            expected[:, text], full[:, text] = calls[place], ends[place]


@compiled
def tree_calls(law: Floats, by_start: bool, tree: Integers, lengths: Integers, prefill: int, totals: Floats) -> None:
    """Expected calls, calls that end at a leaf, and sums of P(tau >= 1), ``[3, texts]``, of a draft tree.

    `law` ``[K, A, N]`` is by start; by position K is 1. `tree` ``[3, nodes]`` has parents, ranks and depths, which
    count from 1; a node comes after its parent.
    """
    parents, deepest, end = tree[0], tree[2].max(), 0
    reach = deepest + 2
    calls, ends = np.zeros(reach), np.zeros(reach)
    weights = np.empty((parents.size, CHUNK))
    survival, leaves = np.empty((reach, CHUNK)), np.empty((reach, CHUNK))
    leaf = np.ones(parents.size, np.bool_)
    leaf[parents[parents >= 0]] = False
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        first = begin + prefill
        calls[:], ends[:] = 0.0, 0.0
        place = 0
        for stop in range(end, begin, -CHUNK):
            start = max(begin, stop - CHUNK)
            _tree_survival(law, by_start, tree, leaf, start, stop, end, weights, survival, leaves)
            totals[2, text] += survival[1, : stop - start].sum()
            for n in range(stop - 1, max(start, first) - 1, -1):
                place = place - 1 if place > 0 else reach - 1
                at, call, ended, above = n - start, 1.0, 0.0, 1.0
                for i in range(min(deepest + 1, end - n - 1)):
                    ahead = place + i + 1
                    ahead = ahead - reach if ahead >= reach else ahead
                    below = survival[i + 1, at]
                    call += (above - below) * calls[ahead]
                    ended += (above - below) * ends[ahead] + leaves[i, at]
                    above = below
                calls[place], ends[place] = call, ended
        if first < end:
            totals[0, text], totals[1, text] = calls[place], ends[place]


@compiled
def _tree_survival(
    law: Floats,
    by_start: bool,
    tree: Integers,
    leaf: NDArray[np.bool_],
    start: int,
    stop: int,
    end: int,
    weights: Floats,
    survival: Floats,
    leaves: Floats,
) -> None:
    """P(tau >= i) at positions `start` to `stop` of a text that ends at `end`, and how much of it ends at leaves."""
    parents, ranks, depths = tree[0], tree[1], tree[2]
    survival[:], leaves[:] = 0.0, 0.0
    for node in range(parents.size):
        depth, parent = depths[node], parents[node]
        inside = max(0, min(stop - start, end - start - depth + 1))
        at = start if by_start else start + depth - 1
        drafted = law[depth - 1 if by_start else 0, ranks[node] - 1, at : at + inside]
        weight, above = weights[node], weights[max(parent, 0)]
        if parent < 0:
            for j in range(inside):
                weight[j] = drafted[j]
        else:
            for j in range(inside):
                weight[j] = above[j] * drafted[j]
        for j in range(inside):
            survival[depth, j] += weight[j]
        for j in range(inside, stop - start):
            weight[j] = 0.0
    for node in range(parents.size):
        if leaf[node]:
            for j in range(stop - start):
                leaves[depths[node], j] += weights[node, j]


@compiled
def visits(survival: Floats, lengths: Integers, prefill: int, starts: Floats) -> None:
    """Expected calls that start at each position, ``[N]``, zeros at first."""
    depth, end = survival.shape[1], 0
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        if begin + prefill < end:
            starts[begin + prefill] = 1.0
        for n in range(begin + prefill, end):
            if starts[n] == 0.0:
                continue
            above = 1.0
            for i in range(min(depth + 1, end - n - 1)):
                below = survival[n, i] if i < depth else 0.0
                starts[n + i + 1] += starts[n] * (above - below)
                above = below


@compiled
def policy_calls(
    survival: Floats,
    lengths: Integers,
    room: Integers,
    drafts: Integers,
    after: Integers,
    prefill: int,
    counts: Floats,
    full: Floats,
) -> None:
    """Expected calls of each text by the tokens that they draft, ``[texts, K + 1]``, and those that accept all of them
    before the end, ``[texts]``, zeros at first (§18).

    State z drafts ``drafts[z]`` tokens, as far as there is `room` ``[N]``, and becomes ``after[z, accepted]``; a text
    begins in state 0.
    """
    reach, end = survival.shape[1] + 2, 0
    ahead = np.zeros((reach, drafts.size))
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        ahead[:] = 0.0
        if begin + prefill < end:
            ahead[(begin + prefill) % reach, 0] = 1.0
        for n in range(begin + prefill, end):
            for state in range(drafts.size):
                weight, k = ahead[n % reach, state], drafts[state]
                if weight == 0.0:
                    continue
                ahead[n % reach, state] = 0.0
                counts[text, min(k, room[n])] += weight
                above = 1.0
                for i in range(min(k + 1, end - n - 1)):
                    below = survival[n, i] if i < k else 0.0
                    ahead[(n + i + 1) % reach, after[state, i]] += weight * (above - below)
                    if i == k and k > 0:
                        full[text] += weight * above
                    above = below


@compiled
def budget_calls(
    survival: Floats,
    weights: Floats,
    along: Integers,
    room: Integers,
    lengths: Integers,
    prefill: int,
    calls: Floats,
    sums: Floats,
    tokens: Floats,
) -> None:
    """Calls that draft `along` ``[N]`` tokens where the drafts equal the text, at most `room` ``[N]`` (§11, §15).

    Expected `calls` ``[texts]``, those that output j tokens, `tokens` ``[K + 2]``, and sums over the calls with room
    for 1, ..., K drafts, `sums` ``[5, texts, K]``, all zeros at first. `weights` ``[N, K]`` are products of the first
    0, ..., K - 1 likelihood ratios: sums are of the weights of calls that draft on and of those that stopped, of all
    calls, and the certain bounds of those that draft on. Without weights (``[0, K]``) what is drafted does not depend
    on the drafts, and each sum but the second is that of the calls that draft on.
    """
    k, end = survival.shape[1], 0
    starts = np.zeros(k + 2)
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        starts[:] = 0.0
        starts[(begin + prefill) % (k + 2)] = 1.0
        for n in range(begin + prefill, end):
            visits, left = starts[n % (k + 2)], end - n
            starts[n % (k + 2)] = 0.0
            if visits == 0.0:
                continue
            calls[text] += visits
            drafts, above = min(along[n], room[n]), 1.0
            if weights.size > 0:  # past the end of a text nothing is known of drafts
                drafts = min(drafts, left)
            for i in range(drafts + 1):
                below = survival[n, i] if i < drafts else 0.0
                if i + 1 >= left:  # the text ends, whatever is accepted
                    tokens[left] += visits * above
                    break
                tokens[i + 1] += visits * (above - below)
                starts[(n + i + 1) % (k + 2)] += visits * (above - below)
                above = below
            if weights.size == 0:
                for j in range(drafts):
                    for row in (0, 2, 3, 4):
                        sums[row, text, j] += visits
                continue
            stops = weights[n, drafts] if drafts < k else 0.0
            sure = survival[n, drafts - 1] if drafts > 0 else 1.0
            for j in range(room[n]):
                sums[2, text, j] += visits
                if j < drafts:
                    sums[0, text, j] += visits * weights[n, j]
                    sums[3, text, j] += visits * (survival[n, j - 1] if j > 0 else 1.0)
                    sums[4, text, j] += visits
                else:
                    sums[1, text, j] += visits * stops
                    sums[4, text, j] += visits * (1.0 - sure)


@compiled
def least_times(survival: Floats, lengths: Integers, least: Floats, first: int, seconds: Floats) -> None:
    """The least time of each text, ``[texts]``, where a call takes ``least[L]`` for the L drafts it accepts (§11)."""
    k, end = survival.shape[1], 0
    ahead = np.zeros(k + 2)
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        ahead[:] = 0.0
        place = 0
        for n in range(end - 1, begin + first - 1, -1):
            place = place - 1 if place > 0 else k + 1
            left, best = end - n, least[0]
            if left > 1:
                best += ahead[(place + 1) % (k + 2)]
            time = best
            for i in range(1, k + 1):
                after = least[i]
                if left > i + 1:
                    after += ahead[(place + i + 1) % (k + 2)]
                if after < best:
                    time += survival[n, i - 1] * (after - best)
                    best = after
            ahead[place] = time
        seconds[text] = ahead[place] if begin + first < end else 0.0


@compiled
def copied_calls(
    matched: Integers, drafted: Integers, lengths: Integers, most: Integers, k: int, first: int, counts: Integers
) -> None:
    """Calls of each text by the tokens that they copy, ``[texts, k + 1]``, zeros at first."""
    end = 0
    for text in range(lengths.size):
        begin, end = end, end + lengths[text]
        n = begin + first
        while n < end:
            counts[text, min(drafted[n], k, most[text] - (n - begin) - 1)] += 1
            n += min(matched[n], k) + 1


# B6's terms along texts: one pass serves every number of nodes


FAR = 600.0
"""Walks beyond it come near the largest exponent of a float."""


@compiled
def text_terms(
    surprisals: Floats, lengths: Integers, half: Integers, thresholds: Floats, ks: Integers, terms: Floats
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
                        terms[n, k] += 1.0 - grown * scale[k] if t[k] < FAR else -math.expm1(walk - t[k])
