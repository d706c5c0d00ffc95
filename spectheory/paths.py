"""The path theorem (§7): exact predictions for a text from the statistics along it.

Given the whole output text, the accepted drafts of a call have a known survival function, and calls are independent.
So the expected number of calls obeys a linear recursion along the text, and one triangular banded system answers for
all texts at once. What is predicted here is conditional on the text; averaging over texts is the only sampling error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TextCalls:
    """Calls that each text takes, conditional on the text.

    Attributes
    ----------
    expected : array ``[texts]``
        Expected number of target calls (exact).
    variance : array ``[texts]``
        Variance of that number (exact).
    full : array ``[texts]``
        Expected number of calls, the last one left out, in which every draft was accepted (exact); the draft's
        first pass after such a call is on two tokens.
    """

    expected: Floats
    variance: Floats
    full: Floats


def calls_of_texts(survival: Floats, lengths: NDArray[np.int64], *, prefill_emits_token: bool = False) -> TextCalls:
    r"""Expected calls, their variance and the full acceptances of each text (§7, exact).

    With n tokens present, :math:`C(n) = 1 + \sum_i P(\tau=i\mid n)\,C(n+i+1)` and C = 0 from the end of the text on.

    Parameters
    ----------
    survival : array ``[N, k]``
        P(tau >= i) of a call whose first draft stands at each position, texts concatenated. Entries that reach past
        the end of a text are ignored: cutting the drafts there changes no call.
    lengths : array ``[texts]``
        Tokens of each text, N in all.
    prefill_emits_token : bool
        False: the first call carries prompt and drafts, C(0). True: the prompt's own pass emits one token without
        drafts and counts as a call, 1 + C(1).

    Returns
    -------
    TextCalls

    Examples
    --------
    One draft, always accepted: two tokens a call.

    >>> import numpy as np
    >>> calls_of_texts(np.ones((6, 1)), np.array([6])).expected
    array([3.])
    """
    tokens, k = survival.shape
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    remaining = np.repeat(starts + lengths, lengths) - np.arange(tokens)
    accepted = np.hstack([np.ones((tokens, 1)), survival])
    accepted[:, :-1] -= survival
    # P(tau = i) leads from n to n + i + 1; a step past the end of the text leads nowhere.
    accepted *= np.arange(1, k + 2) < remaining[:, None]
    band = np.zeros((k + 2, tokens))
    for step in range(1, min(k + 1, tokens - 1) + 1):
        band[k + 1 - step, step:] = -accepted[: tokens - step, step - 1]
    calls = _solve(band, np.ones(tokens))
    moments = _solve(band, np.stack([2 * calls - 1, accepted[:, k]], axis=1))
    first = starts + 1 if prefill_emits_token else starts
    more = np.ones(len(lengths), dtype=bool) if not prefill_emits_token else lengths > 1
    at = np.minimum(first, tokens - 1)
    expected, square, full = (np.where(more, v[at], 0.0) for v in (calls, moments[:, 0], moments[:, 1]))
    variance = np.maximum(square - expected**2, 0.0)
    return TextCalls(expected + float(prefill_emits_token), variance, full)


def _solve(band: Floats, right: Floats) -> Floats:
    """Solve the unit upper triangular banded system."""
    solution, info = lapack.dtbtrs(band, right, uplo="U", diag="U")
    if info != 0:
        raise AssertionError(f"the triangular solver reported {info}")
    return solution if right.ndim == 2 else solution.reshape(-1)


def one_call_terms(log_ratio: Floats, lengths: NDArray[np.int64], k: int) -> tuple[Floats, NDArray[np.bool_]]:
    r"""Terms of the one-call upper bound at each start (§7).

    For any lossless verification, :math:`E[\tau] \le \sum_{i\le k} E \min(1, \prod_{l\le i}\rho_{n+l})`: an upper
    bound on the accepted drafts of one call, with the expectation over target-sampled text. It is no survival
    function and no bound over several calls.

    Parameters
    ----------
    log_ratio : array ``[N]``
        log q - log p of the tokens, texts concatenated.
    lengths : array ``[texts]``
        Tokens of each text.
    k : int
        Drafts per call.

    Returns
    -------
    terms : array ``[N, k]``
        min(1, product of the first i ratios) at each start, i = 1..k.
    whole : array ``[N]`` of bool
        Starts with k tokens left in their text; only these estimate the bound.
    """
    ends = np.repeat(np.cumsum(lengths), lengths)
    padded = np.concatenate([log_ratio, np.zeros(k - 1)])
    cumulative = np.cumsum(np.lib.stride_tricks.sliding_window_view(padded, k), axis=1)
    return np.exp(np.minimum(0.0, cumulative)), np.arange(len(log_ratio)) + k <= ends
