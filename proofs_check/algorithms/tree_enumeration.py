"""Whole decodings by draft trees in fractions: every path through the tree, several calls in a row.

A tree is the set of its nodes, each the ranks on the way to it. :func:`tree_walk` decodes with any joint law of
(rank, output) at a position. :func:`drawn_tree` runs SpecInfer's algorithm as it is written instead: all candidates of
the tree are drawn, then tried one by one; that both give one law is evidence, not definition.
:mod:`proofs_check.twins.tree_theorem` states what comes out; the two share no line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations

from proofs_check.algorithms.enumeration import Calls, Model, Pmf, Prefix, Rule, TextLaw, normalised, positive_part
from proofs_check.algorithms.rank_laws import JointLaw, Ranked, recursive_rejection
from proofs_check.statement.fractions import Fraction, law, law_of, total

Path = tuple[int, ...]
"""A node: the ranks from the root, which is (), to it; ranks are counted from 1."""

Tree = frozenset[Path]
"""The nodes of a draft tree but for the root; a node's parent is among them."""

Joint = Callable[[Pmf, Pmf, int], JointLaw]
"""The joint law of (rank, output) at a position: target pmf, draft pmf, candidates >= 0; rank 0: none of them."""

Report = Callable[[Path], int]
"""What a call's law tells of the node at which the call ends."""


def children(tree: Tree, node: Path) -> list[Path]:
    """The children of a node in order of rank."""
    return sorted(path for path in tree if path[:-1] == node)


def node_number(tree: Tree) -> Report:
    """Numbers the nodes, 0 for the root, in the order of :func:`nodes_of`."""
    return nodes_of(tree).index


def nodes_of(tree: Tree) -> list[Path]:
    """The root and the nodes, parents before children."""
    return [(), *sorted(tree, key=lambda path: (len(path), path))]


# What happens at one position, besides the laws of :mod:`proofs_check.algorithms.rank_laws`


@law_of
def independent_list(p: Pmf, q: Pmf, candidates: int) -> Ranked:
    """The output and i.i.d. candidates are drawn independently; the first candidate equal to the output counts."""
    for x in range(len(p)):
        yield from (((r, x), p[x] * (1 - q[x]) ** (r - 1) * q[x]) for r in range(1, candidates + 1))
        yield (0, x), p[x] * (1 - q[x]) ** candidates


@law_of
def race_list(p: Pmf, q: Pmf, candidates: int) -> Ranked:
    r"""R2: the candidates are the first arrivals of the draft race E_y/q_y, the output wins the target race E_y/p_y.

    The winner i and its time u ~ Exp(1) are independent, and y arrives before i with probability 1 - exp(-u l_y),
    l_y = (q_y p_i/q_i - p_y)+, independently; S is the set of those that do:

    .. math:: \int e^{-u} \prod_{y \in S} (1 - e^{-u l_y}) \prod_{y \notin S} e^{-u l_y}\,du
        = \sum_{T \subseteq S} \frac{(-1)^{|T|}}{1 + \sum_{y \in T \cup S^c} l_y}.
    """
    for i in range(len(p)):
        others = [y for y in range(len(p)) if y != i and q[y] > 0]
        if q[i] == 0:
            yield (0, i), p[i]
            continue
        rates = [max(q[y] * p[i] / q[i] - p[y], Fraction(0)) for y in others]
        for size in range(len(rates) + 1):
            rank = size + 1 if size < candidates else 0
            for before in combinations(range(len(rates)), size):
                after = total(rate for y, rate in enumerate(rates) if y not in before)
                yield (rank, i), p[i] * _all_before([rates[y] for y in before], after)


def _all_before(rates: Sequence[Fraction], after: Fraction) -> Fraction:
    chosen = (some for size in range(len(rates) + 1) for some in combinations(rates, size))
    return total(Fraction((-1) ** len(some)) / (1 + after + total(some)) for some in chosen)


@law_of
def poisson_list(p: Pmf, q: Pmf, candidates: int) -> Ranked:
    r"""R1: the candidates are the first arrivals of one Poisson stream per token, of rate q_y, duplicates included.

    The output is the arrival with the least :math:`T q_y/p_y`; its value of that, u ~ Exp(1), and its token x are
    independent, and the arrivals before it are those at times :math:`u p_y/q_y < T < u p_x/q_x`: a Poisson number of
    mean u g, :math:`g = \sum_y (q_y p_x/q_x - p_y)_+`. So

    .. math:: P(R = r, x) = p_x \int e^{-u} e^{-ug} \frac{(ug)^{r-1}}{(r-1)!}\,du = p_x \frac{g^{r-1}}{(1+g)^r} .

    Tokens the draft lacks win with their p_x and have no rank.
    """
    for x in range(len(p)):
        shares: list[Fraction] = []
        if q[x] > 0:
            g = total(max(q[y] * p[x] / q[x] - p[y], Fraction(0)) for y in range(len(p)))
            shares = [p[x] * g ** (rank - 1) / (1 + g) ** rank for rank in range(1, candidates + 1)]
        yield from (((rank, x), share) for rank, share in enumerate((p[x] - total(shares), *shares)))


# Whole calls


def tree_walk(joint: Joint, tree: Tree, report: Report = len) -> Rule:
    """A call walks down the tree, cut to depth k: an output that has the rank of a child is accepted.

    At every node the pair (rank, output) is drawn from `joint`; at a leaf the bonus token is drawn from the target.
    """

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> Calls:
        waiting: list[tuple[Path, Prefix, Fraction]] = [((), (), Fraction(1))]
        while waiting:
            node, tokens, weight = waiting.pop()
            ranks = [child[-1] for child in children(tree, node) if len(child) <= k]
            at = joint(target(prefix + tokens), draft(prefix + tokens), max(ranks, default=0))
            for (rank, token), share in at.items():
                output = (*tokens, token)
                if rank in ranks and share:
                    waiting.append(((*node, rank), output, weight * share))
                else:
                    yield (output, report(node)), weight * share

    return call


def drawn_tree(tree: Tree, report: Report = len, *, replacement: bool = True) -> Rule:
    """SpecInfer's call as miao2024specinfer writes it (without replacement: as chen2024sequoia does).

    First the whole tree is drafted, without replacement each child from the draft without its older siblings' tokens.
    Then the siblings are tried in order, from the root on: accepted with probability min(1, residual/draft), else the
    residual becomes norm (residual - draft)+; after none it gives the recovered token, at a leaf the bonus token.
    """

    @law_of
    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> Calls:
        cut = frozenset(path for path in tree if len(path) <= k)
        for tokens, weight in drafted_trees(draft, prefix, cut, replacement):
            for output, node, share in _verified(target, draft, prefix, cut, tokens, replacement):
                yield (output, report(node)), weight * share

    return call


Drafts = Mapping[Path, int]
"""The token drafted at every node."""


def without(q: Pmf, gone: Prefix) -> Pmf:
    """The draft without its rejected tokens, uniform over the others when none of them has mass."""
    left = tuple(Fraction(0) if x in gone else share for x, share in enumerate(q))
    return normalised(left if sum(left) > 0 else tuple(Fraction(int(x not in gone)) for x in range(len(q))))


def drafted_trees(draft: Model, prefix: Prefix, tree: Tree, replacement: bool) -> Iterator[tuple[Drafts, Fraction]]:
    """Every way to draw the tokens of all nodes, with its probability."""
    drafts: list[tuple[dict[Path, int], Fraction]] = [({}, Fraction(1))]
    for node in nodes_of(tree)[1:]:
        longer: list[tuple[dict[Path, int], Fraction]] = []
        for tokens, weight in drafts:
            before = tuple(tokens[node[: i + 1]] for i in range(len(node) - 1))
            q = draft(prefix + before)
            if not replacement:
                gone = tuple(tokens[sibling] for sibling in children(tree, node[:-1]) if sibling < node)
                if len(gone) == len(q):
                    raise ValueError("more siblings than tokens")
                q = without(q, gone)
            longer += [({**tokens, node: x}, weight * share) for x, share in enumerate(q) if share > 0]
        drafts = longer
    return iter(drafts)


def _verified(
    target: Model, draft: Model, prefix: Prefix, tree: Tree, tokens: Drafts, replacement: bool
) -> Iterator[tuple[Prefix, Path, Fraction]]:
    """Outputs of a call with these drafts, the node at which it ends, and the probability."""
    waiting: list[tuple[Path, Fraction]] = [((), Fraction(1))]
    while waiting:
        node, alive = waiting.pop()
        output = tuple(tokens[node[: i + 1]] for i in range(len(node)))
        residual, q = target(prefix + output), draft(prefix + output)
        tried: Prefix = ()
        for child in children(tree, node):
            x = tokens[child]
            proposal = q if replacement else without(q, tried)
            accept = min(Fraction(1), residual[x] / proposal[x])
            if accept > 0:
                waiting.append((child, alive * accept))
            alive, tried = alive * (1 - accept), (*tried, x)
            if alive == 0:
                break
            residual = normalised(positive_part(residual, proposal))
        for token, share in enumerate(residual):
            if alive * share > 0:
                yield (*output, token), node, alive * share


def given_text(whole: TextLaw, text: Prefix, tree: Tree) -> dict[tuple[Path, ...], Fraction]:
    """Law of the nodes at which the calls end, given the whole text; the last call is cut to the text."""
    nodes = nodes_of(tree)
    weights = {numbers: weight for (output, numbers), weight in whole.items() if output == text}

    def cut(numbers: tuple[int, ...]) -> tuple[Path, ...]:
        ends = [nodes[number] for number in numbers]
        start = sum(len(node) + 1 for node in ends[:-1])
        return (*ends[:-1], ends[-1][: len(text) - start])

    return law((cut(numbers), weight / total(weights.values())) for numbers, weight in weights.items())


REJECTION: dict[bool, Joint] = {r: partial(recursive_rejection, replacement=r) for r in (True, False)}
