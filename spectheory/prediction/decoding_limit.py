r"""Limits over a whole decoding (§12): the fewest calls of any lossless rule that judges one chain a call.

*Rules*: every call outputs a sample of the target and leaves the text after it a fresh sample, and its drafts are one
chain drawn from q. Its length, the rule and their choice may depend on everything before.

*A draft model* (B7): in expectation over target-sampled text, no such rule needs fewer calls than block verification
with the longest chain.

*Drafts by start* (§10) escape B7. With :math:`M_{n,i}` block verification's survival of a call from n,

.. math:: L(n) = 1 + \sum_{i=0}^{k} (M_{n,i} - M_{n,i+1}) \min_{j \le i} L(n+j+1),
    \qquad M_{n,0} = 1,\ M_{n,k+1} = 0,

and L = 0 from the end on: no such rule has P(tau >= i | text, history) above :math:`M_{n,i}`, so L(0) is a lower bound
on its calls for every text. It need not be attained. Argmax drafts, copied drafts and trees are not bound by either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spectheory.limits.claims import BY_START, WHOLE_DECODING, LimitClaim
from spectheory.prediction.block_calls import columns_of
from spectheory.prediction.call_system import tokens_left
from spectheory.prediction.paths import calls_of_chains
from spectheory.trace import GIVEN_TEXT, Trace
from spectheory.verification.block import BlockVerification
from spectheory.verification.by_start import deepest, within

Floats = NDArray[np.float64]
_LENGTHS_AT_ONCE = 16
"""Chain lengths that one pass over the texts serves."""


def claim_of(trace: Trace) -> LimitClaim:
    """Which limit holds for the draft of a trace: B7 for a draft model, L for drafts by start."""
    return WHOLE_DECODING if deepest(trace.columns) is None else BY_START


def fewest_calls(
    trace: Trace, ks: Sequence[int], *, prefill_emits_token: bool = False, block: Mapping[int, Floats] | None = None
) -> dict[int, Floats]:
    """Lower bound on the calls of each text with chains of at most k drafts, ``[texts]`` by k (§12, B7 or L).

    Under B7 it is block verification's value, a bound in expectation over the texts; under L one for every text. There
    is none for given text, which is no sample of the target, for recorded lengths, and for chains longer than a draft
    is recorded by start. `block` has the expected calls of block verification by k, as far as they are known.
    """
    ks = [k for k in ks if k <= within(trace.columns, k)]
    if not ks or trace.recorded or trace.provenance.get("origin") == GIVEN_TEXT:
        return {}
    known = block if block and claim_of(trace) is WHOLE_DECODING else {}
    if known.keys() >= set(ks):
        return {k: known[k] for k in ks}
    names = columns_of(BlockVerification(), [], trace.columns)
    found = [_fewest(block, ks, claim_of(trace), prefill_emits_token) for block in trace.blocks(names)]
    return {k: np.concatenate([of_block[k] for of_block in found]) for k in ks}


def _fewest(block: Trace, ks: Sequence[int], limit: LimitClaim, prefill: bool) -> dict[int, Floats]:
    """Those of the texts of a block."""
    survival = BlockVerification().path_survival(block.columns, max(ks))
    if limit is BY_START:
        return least_calls(survival, block.lengths, ks, prefill_emits_token=prefill)
    found = calls_of_chains(survival, block.lengths, ks, prefill_emits_token=prefill)
    return {k: calls.expected for k, calls in found.items()}


def least_calls(
    survival: Floats, lengths: NDArray[np.int64], ks: Sequence[int], *, prefill_emits_token: bool = False
) -> dict[int, Floats]:
    """L(0) of each text for chains of at most k drafts, ``[texts]`` by k (§12/L, lower bound for every text).

    `survival` ``[N, K]`` is block verification's by start, :math:`M_{n,i}`, with K at least the largest k; entries past
    the end of a text are ignored. With `prefill_emits_token` it is 1 + L(1). Linear in text times depth.

    Examples
    --------
    A call from 0 drafts right, wrong; from 1 right, right; from 2 and 3 wrong. Block verification takes 3 calls;
    rejecting all drafts of the first call takes 2:

    >>> survival = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    >>> least_calls(survival, np.array([4]), [2])[2]
    array([2.])
    """
    prefill, depth = int(prefill_emits_token), max(ks)
    order = np.argsort(-lengths, kind="stable")
    inside = np.arange(1, depth + 1) < tokens_left(lengths)[:, None]
    masses = -np.diff(np.where(inside, survival[:, :depth], 0.0), axis=1, prepend=1.0, append=0.0)
    found: dict[int, Floats] = {}
    wanted = sorted(set(ks))
    for group in (wanted[at : at + _LENGTHS_AT_ONCE] for at in range(0, len(wanted), _LENGTHS_AT_ONCE)):
        calls = np.zeros((len(group), len(lengths)))
        for texts, ahead in _backwards(masses, lengths[order], np.cumsum(lengths)[order], np.array(group), prefill):
            calls[:, order[texts]] = ahead[texts].T
        found |= dict(zip(group, calls + prefill, strict=True))
    return found


def _backwards(
    masses: Floats, lengths: NDArray[np.int64], ends: NDArray[np.int64], ks: NDArray[np.int64], first: int
) -> Iterator[tuple[slice, Floats]]:
    """L after `first` tokens, ``[texts, ks]``, and the place of the texts that are in it; the longest texts first.

    `masses` ``[N, depth + 1]`` are M_i - M_{i+1}. Drafts beyond a chain's k count as its k-th.
    """
    depth = masses.shape[1] - 1
    low = np.zeros((len(lengths), len(ks), depth + 1))  # least L after 1, 2, ... tokens more
    before = np.arange(len(ks))[:, None] * (depth + 1) + np.clip(np.arange(depth + 1) - 1, 0, ks[:, None] - 1)
    as_long = len(lengths) - np.searchsorted(lengths[::-1], np.arange(1, lengths.max(initial=0) + first + 2))
    counts = as_long.tolist()
    for left, (texts, begun, longer) in enumerate(zip(counts, counts[first:], counts[first + 1 :], strict=False), 1):
        new = 1.0 + np.vecdot(low[:texts], masses.take(ends[:texts] - left, 0)[:, None])
        low = low[:texts].reshape(texts, -1).take(before, 1)
        low[..., 0] = new
        np.minimum(low, new[..., None], out=low)
        if longer < begun:
            yield slice(longer, begun), new
