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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from spectheory import kernels
from spectheory.distributions import Floats
from spectheory.drafting import Tree
from spectheory.prediction.law import moves_of


class PathLaws:
    """P(R = r | text) of the drafts of calls that start at each position.

    `law` is ``[N, A]``, the law at each position, where a draft's pmf depends on its position alone; else
    ``[N, K, A]``, the law by start and depth. `deepest` is K, None in the first case; `columns` ``[A, N]`` or
    ``[K, A, N]`` is the law by rank.

    Examples
    --------
    The second draft of a call from the first position, of rank 1, under both:

    >>> law = np.array([[0.5], [0.2], [0.1]])
    >>> PathLaws(law).times(np.ones(3), 2, 1).tolist()
    [0.2, 0.1, 0.0]
    >>> PathLaws(np.stack([law, law / 2], axis=1)).times(np.ones(3), 2, 1).tolist()
    [0.25, 0.1, 0.05]
    """

    def __init__(self, law: Floats) -> None:
        self.starts, self.ranks = len(law), law.shape[-1]
        self.deepest = law.shape[1] if law.ndim == 3 else None
        self.columns = np.ascontiguousarray(np.moveaxis(law, 0, -1))

    def times(self, weight: Floats, depth: int, rank: int) -> Floats:
        """`weight` ``[N]`` times the probability that the draft of this depth has this rank; 0 past the end.

        Where the laws are by start, entries past the end of a text carry no meaning.
        """
        if self.deepest is not None:
            return weight * self.columns[depth - 1, rank - 1]
        product, inside = np.zeros_like(weight), self._inside(depth)
        np.multiply(weight[:inside], self.columns[rank - 1, depth - 1 :], out=product[:inside])
        return product

    def sums(self, weight: Floats, depth: int) -> Floats:
        """Sums over the starts of :meth:`times`, for every rank ``[A]``."""
        if self.deepest is not None:
            return np.asarray(self.columns[depth - 1] @ weight)
        return np.asarray(self.columns[:, depth - 1 :] @ weight[: self._inside(depth)])

    def _inside(self, depth: int) -> int:
        """Starts with a position at that depth."""
        return max(self.starts - depth + 1, 0)


@dataclass(frozen=True)
class TextCalls:
    """Calls that each text takes, conditional on the text (exact), ``[texts]`` each.

    `expected` and `variance` are those of the number of target calls; the variance is NaN where it was not asked for.
    `full` is the expected number of calls, the last one excepted, in which every draft was accepted: the draft's first
    pass after such a call is on two tokens.
    """

    expected: Floats
    full: Floats
    variance: Floats


def tokens_left(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tokens from each position to the end of its text, its own included, ``[N]``."""
    return np.repeat(np.cumsum(lengths), lengths) - np.arange(int(np.sum(lengths)))


class _CallSystem:
    """The recursion C = 1 + A C as a unit upper triangular banded system; A[n, n + step] = P(tau = step - 1 | n)."""

    def __init__(self, lengths: NDArray[np.int64], depth: int, prefill_emits_token: bool) -> None:
        self.tokens = int(np.sum(lengths))
        self.width = depth + 1
        ends = np.cumsum(lengths)
        self.remaining = tokens_left(lengths)
        self.prefill_emits_token = prefill_emits_token
        self.first = ends - lengths + int(prefill_emits_token)
        self.longer = lengths > int(prefill_emits_token)
        # LAPACK wants Fortran order: row j of this array is column j of the band.
        self.band = np.zeros((self.tokens, self.width + 1))
        self.full = np.zeros(self.tokens)

    def put(self, step: int, probability: Floats) -> None:
        """Set the probability of moving `step` positions; a step past the end of its text leads nowhere."""
        inside = np.where(self.remaining > step, probability, 0.0)
        self.full = inside
        self.band[step:, self.width - step] = -inside[: max(self.tokens - step, 0)]

    def solve(self, *, variance: bool) -> TextCalls:
        """The calls of each text."""
        calls, full = self.solved(np.stack([np.ones(self.tokens), self.full]))
        expected = self.at_start(calls)
        spread = np.full_like(expected, np.nan)
        if variance:
            # E[T^2] = 1 + 2 A C + A E[T^2], and A C = C - 1.
            (square,) = self.solved((2 * calls - 1)[None])
            spread = np.maximum(self.at_start(square) - expected**2, 0.0)
        return TextCalls(expected + float(self.prefill_emits_token), self.at_start(full), spread)

    def values(self) -> Floats:
        """Calls left from each position."""
        return self.solved(np.ones((1, self.tokens)))[0]

    def visits(self) -> Floats:
        """Expected calls that start at each position."""
        starts = np.zeros((1, self.tokens))
        starts[0, self.first[self.longer]] = 1.0
        return self.solved(starts, trans="T")[0]

    def at_start(self, values: Floats) -> Floats:
        """Values ``[..., N]`` where each text's first call starts, ``[..., texts]``; 0 where there is none."""
        if not self.tokens:
            return np.zeros((*values.shape[:-1], len(self.first)))
        return np.where(self.longer, values[..., np.minimum(self.first, self.tokens - 1)], 0.0)

    def solved(self, rows: Floats, trans: str = "N") -> Floats:
        """What rewards ``[rows, N]`` of the calls by their start add up to from each position."""
        solution, info = lapack.dtbtrs(self.band.T, rows.T, uplo="U", trans=trans, diag="U")
        if info != 0:
            raise AssertionError(f"the triangular solver reported {info}")
        return solution.T


def _system_of(
    survival: Floats, lengths: NDArray[np.int64], prefill_emits_token: bool, leaves: Floats | None = None
) -> _CallSystem:
    """The whole band of one law of tau."""
    depth = survival.shape[1]
    system = _CallSystem(lengths, depth, prefill_emits_token)
    for step in range(1, depth + 1):
        system.put(step, (survival[:, step - 2] if step > 1 else 1.0) - survival[:, step - 1])
    system.put(depth + 1, survival[:, depth - 1])
    if leaves is not None:
        inside = system.remaining[:, None] > np.arange(2, depth + 2)
        system.full = np.sum(np.where(inside, leaves, 0.0), axis=1)
    return system


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
    if not variance and kernels.pays(len(survival)):
        from spectheory.kernels.path_calls import chain_calls

        expected, full = np.zeros((2, len(ordered), len(lengths)))
        chain_calls(
            np.ascontiguousarray(survival), lengths, np.array(ordered), int(prefill_emits_token), expected, full
        )
        unknown = np.full(len(lengths), np.nan)
        each = zip(ordered, expected + int(prefill_emits_token), full, strict=True)
        return {k: TextCalls(calls, after_all, unknown) for k, calls, after_all in each}
    system = _CallSystem(lengths, survival.shape[1], prefill_emits_token)
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
    inner = set(tree.parents.tolist())
    for node, depth, weight in _weights_of_nodes(laws, tree):
        survival[depth - 1] += weight
        if node not in inner:
            leaves[depth - 1] += weight
    return survival.T, leaves.T


def _weights_of_nodes(laws: PathLaws, tree: Tree) -> Iterator[tuple[int, int, Floats]]:
    """Each node with its depth and the probability ``[N]`` that a call accepts it; depth first: one path is held."""
    above, paths = [np.ones(laws.starts)], tree.paths
    for node in sorted(range(tree.nodes), key=paths.__getitem__):
        depth = len(paths[node])
        above[depth:] = [laws.times(above[depth - 1], depth, paths[node][-1])]
        yield node, depth, above[depth]


def calls_of_tree(
    survival: Floats,
    leaves: Floats,
    lengths: NDArray[np.int64],
    *,
    prefill_emits_token: bool = False,
    variance: bool = False,
) -> TextCalls:
    """:func:`calls_of_texts` for a tree, from :func:`tree_survival`; `full` counts the calls that end at a leaf."""
    return _system_of(survival, lengths, prefill_emits_token, leaves).solve(variance=variance)


def calls_of_laws(
    laws: PathLaws, tree: Tree, lengths: NDArray[np.int64], *, prefill_emits_token: bool = False
) -> tuple[TextCalls, Floats]:
    """:func:`calls_of_tree` from the laws of :func:`tree_survival`, and each text's sum of P(tau >= 1), ``[texts]``."""
    if kernels.pays(laws.starts):
        from spectheory.kernels.path_calls import tree_calls

        by_start, sums = laws.deepest is not None, np.zeros((3, len(lengths)))
        nodes = np.array([tree.parents, tree.ranks, tree.depths], np.int64)
        law = laws.columns if by_start else laws.columns[None]
        tree_calls(law, by_start, nodes, lengths, int(prefill_emits_token), sums)
        return TextCalls(sums[0] + int(prefill_emits_token), sums[1], np.full(len(lengths), np.nan)), sums[2]
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
    system = _system_of(survival, lengths, False)
    return system.values(), system.visits()


def visits_of(survival: Floats, lengths: NDArray[np.int64], *, prefill_emits_token: bool = False) -> Floats:
    """The second of :func:`calls_and_visits` alone; with `prefill_emits_token` without the prompt's own pass."""
    if kernels.pays(len(survival)):
        from spectheory.kernels.path_calls import visits

        starts = np.zeros(len(survival))
        visits(np.ascontiguousarray(survival), lengths, int(prefill_emits_token), starts)
        return starts
    return _system_of(survival, lengths, prefill_emits_token).visits()


@dataclass(frozen=True)
class TextSums:
    """What the calls of each text add up to, conditional on the text (exact).

    Several counts at once: their `expected` values and their `variance`, ``[texts, counts]`` each.
    """

    expected: Floats
    variance: Floats


def sums_of_texts(survival: Floats, counted: NDArray[Any], lengths: NDArray[np.int64]) -> TextSums:
    r"""Means and variances of counts over the calls of each text (§13, exact).

    `counted` ``[..., depth + 1, counts]`` says what a call with 0, 1, ... accepted tokens adds; entries of
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
    system, moves = _system_of(survival, lengths, False), moves_of(survival)
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
