"""The path theorem (§7): exact predictions for a text from the statistics along it.

Given the whole output text, the accepted drafts of a call have a known survival function, and calls are independent.
So the expected number of calls obeys a linear recursion along the text, and one triangular banded system gives it for
all texts at once. Predictions are conditional on the text; averaging over texts is the only sampling error.

Texts are concatenated throughout: `survival` ``[N, depth]`` holds P(tau >= i) of a call whose first draft stands at
each position, `lengths` ``[texts]`` the tokens of each text, N in all. Entries of `survival` that reach past the end of
a text are ignored. By default the first call carries prompt and drafts; with `prefill_emits_token` the prompt's own
pass emits one token without drafts and counts as a call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.drafting import Tree
from spectheory.prediction import compiled_calls
from spectheory.prediction.call_system import CallSystem, TextCalls, system_of
from spectheory.prediction.law import moves_of
from spectheory.prediction.path_laws import PathLaws

Floats = NDArray[np.float64]


def calls_of_texts(survival: Floats, lengths: NDArray[np.int64], *, prefill_emits_token: bool = False) -> TextCalls:
    r"""Expected calls, their variance and the full acceptances of each text (§7, exact).

    With n tokens present, :math:`C(n) = 1 + \sum_i P(\tau=i\mid n)\,C(n+i+1)`, and C = 0 from the end of the text on.

    Examples
    --------
    One draft, always accepted: two tokens a call.

    >>> import numpy as np
    >>> calls_of_texts(np.ones((6, 1)), np.array([6])).expected
    array([3.])
    """
    k = survival.shape[1]
    return calls_of_chains(survival, lengths, [k], prefill_emits_token=prefill_emits_token, variance=True)[k]


def calls_of_chains(
    survival: Floats,
    lengths: NDArray[np.int64],
    ks: Iterable[int],
    *,
    prefill_emits_token: bool = False,
    variance: bool = False,
) -> dict[int, TextCalls]:
    """:func:`calls_of_texts` for chains of several lengths k, whose survival is a prefix of the longest one's.

    The laws of tau for two lengths differ in their last entries alone, so the systems share their band.
    """
    ordered = sorted(set(ks))
    if not variance and compiled_calls.pays(len(survival)):
        expected, full = compiled_calls.chains(survival, lengths, ordered, prefill_emits_token)
        unknown = np.full(len(lengths), np.nan)
        return {k: TextCalls(*of_k, unknown) for k, of_k in zip(ordered, zip(expected, full, strict=True), strict=True)}
    system = CallSystem(lengths, survival.shape[1], prefill_emits_token)
    results: dict[int, TextCalls] = {}
    filled = 0
    for k in ordered:
        for step in range(filled + 1, k + 1):
            before = survival[:, step - 2] if step > 1 else 1.0
            system.put(step, before - survival[:, step - 1])
        filled = k
        system.put(k + 1, survival[:, k - 1])
        results[k] = system.solve(variance=variance)
    return results


def tree_survival(law: Floats | PathLaws, tree: Tree) -> tuple[Floats, Floats]:
    r"""Survival of a draft tree's accepted drafts at every start, and how much of it ends at leaves (§7, exact).

    .. math:: P(\tau \ge i \mid x) = \sum_{v:\ \text{depth } i}\ \prod_{j\le i} P(R_{n+j} = r_j(v) \mid x_{n+j})

    `law` ``[N, A]`` is P(R = r | text) at each position, r = 1..A, with A at least the tree's largest rank; of drafts
    by start it is ``[N, K, A]``, the law by start and depth, with K at least the tree's depth (§10). Both results are
    ``[N, depth]``; the second is the probability that the call ends at a leaf of each depth, after which the draft's
    next pass is on two tokens.
    """
    laws = law if isinstance(law, PathLaws) else PathLaws(law)
    survival, leaves = np.zeros((tree.depth, laws.starts)), np.zeros((tree.depth, laws.starts))
    above = [np.ones(laws.starts)]
    inner = set(tree.parents.tolist())
    paths = tree.paths
    for node in sorted(range(tree.nodes), key=paths.__getitem__):  # depth first: only one path is held
        depth = len(paths[node])
        weight = laws.times(above[depth - 1], depth, paths[node][-1])
        survival[depth - 1] += weight
        if node in inner:
            above[depth:] = [weight]
        else:
            leaves[depth - 1] += weight
    return survival.T, leaves.T


def calls_of_tree(
    survival: Floats,
    leaves: Floats,
    lengths: NDArray[np.int64],
    *,
    prefill_emits_token: bool = False,
    variance: bool = False,
) -> TextCalls:
    """:func:`calls_of_texts` for a tree, from :func:`tree_survival`; `full` counts the calls that end at a leaf."""
    return system_of(survival, lengths, prefill_emits_token, leaves).solve(variance=variance)


def calls_of_laws(
    laws: PathLaws, tree: Tree, lengths: NDArray[np.int64], *, prefill_emits_token: bool = False
) -> tuple[TextCalls, Floats]:
    """:func:`calls_of_tree` from the laws of :func:`tree_survival`, and each text's sum of P(tau >= 1), ``[texts]``."""
    if compiled_calls.pays(laws.starts):
        expected, full, first = compiled_calls.tree(laws, tree, lengths, prefill_emits_token)
        return TextCalls(expected, full, np.full(len(lengths), np.nan)), first
    survival, leaves = tree_survival(laws, tree)
    calls = calls_of_tree(survival, leaves, lengths, prefill_emits_token=prefill_emits_token)
    return calls, by_text(survival[:, 0], lengths)


def by_text(values: Floats, lengths: NDArray[np.int64]) -> Floats:
    """Sums of values ``[N, ...]`` of positions over each text."""
    return np.asarray(np.add.reduceat(values, np.cumsum(lengths) - lengths, axis=0))


def calls_and_visits(survival: Floats, lengths: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Calls left from each position, C(n), and the expected number of calls that start there, ``[N]`` each (§7, exact).

    The starts obey the transposed recursion: one call starts at position 0 of each text, and the next one starts after
    the tokens that a call outputs. They sum to the expected calls.
    """
    system = system_of(survival, lengths, False)
    return system.values(), system.visits()


def visits_of(survival: Floats, lengths: NDArray[np.int64], *, prefill_emits_token: bool = False) -> Floats:
    """The second of :func:`calls_and_visits` alone; with `prefill_emits_token` without the prompt's own pass."""
    if compiled_calls.pays(len(survival)):
        return compiled_calls.visits(survival, lengths, prefill_emits_token)
    return system_of(survival, lengths, prefill_emits_token).visits()


@dataclass(frozen=True)
class TextSums:
    """What the calls of each text add up to, conditional on the text (exact).

    Several counts at once: their `expected` values and their `variance`, ``[texts, counts]`` each.
    """

    expected: Floats
    variance: Floats


def sums_of_texts(survival: Floats, counted: NDArray[np.bool_], lengths: NDArray[np.int64]) -> TextSums:
    r"""Means and variances of counts over the calls of each text (§13, exact).

    `counted` ``[..., depth + 1, counts]`` says what a call with 0, 1, ... accepted tokens adds one to; entries of
    `survival` past the end of a text decide what is counted there. With v(n) the expected calls that start at n and
    m(n) the counts expected from there on, the parts by which a call moves them are uncorrelated:

    .. math:: \mathrm{Var} = \sum_n v(n)\, \mathrm{Var}\big(f(n, \tau) + m(n + \tau + 1) \mid n\big).

    Examples
    --------
    One draft, always accepted: six tokens are three calls and three accepted drafts.

    >>> calls_and_accepted = np.array([[True, False], [True, True]])
    >>> sums_of_texts(np.ones((6, 1)), calls_and_accepted, np.array([6])).expected
    array([[3., 3.]])
    """
    system, moves = system_of(survival, lengths, False), moves_of(survival)
    rewards = np.broadcast_to(counted, (len(survival), *counted.shape[-2:]))
    ahead = system.solved(np.einsum("nj,nja->an", moves, rewards)).T
    expected, left = system.at_start(ahead.T).T, system.remaining
    ahead = np.append(ahead, np.zeros((1, ahead.shape[1])), axis=0)  # its last row is the end of every text
    weights, spread = system.visits()[:, None] * moves, np.zeros((len(survival), ahead.shape[1]))
    for j, weight in enumerate(weights.T):
        (rows,) = weight.nonzero()
        after = ahead[np.where(left[rows] > j + 1, rows + j + 1, -1)]
        spread[rows] += weight[rows, None] * (rewards[rows, j] + after - ahead[rows]) ** 2
    texts = zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True)  # some may have no token
    return TextSums(expected, np.array([spread[end - length : end].sum(axis=0) for end, length in texts]))
