"""The whole answer about a draft tree: the best one of a size, for i.i.d. ranks or for the texts of a trace.

``spectheory tree`` shows what :func:`tree` returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import in_range, instance, one_source
from spectheory.distributions import Floats, letters, rank_law
from spectheory.drafting import Chain, Tree, expected_tokens, node_weights, optimal_tree
from spectheory.errors import SettingError, argument
from spectheory.intervals import Interval
from spectheory.limits import tunstall_bound
from spectheory.prediction.best_tree import _cross_fitted, _searched_laws, text_tree
from spectheory.prediction.means import MeanLaws
from spectheory.prediction.over_prompts import PARTS, Prompts, few_prompts, ratio
from spectheory.prediction.paths import (
    PathLaws,
    _weights_of_nodes,
    calls_of_tree,
    tokens_left,
    tree_survival,
    visits_of,
)
from spectheory.prediction.remarks import about_texts
from spectheory.prediction.trace_limits import Limits
from spectheory.trace import RECORDED_RANKS, Trace
from spectheory.trace.reading import given_trace
from spectheory.verification import RankRule, rank_entropy
from spectheory.verification.by_start import AtDepth, within
from spectheory.verification.registry import DEFAULT_TREE_RULES, find_rule, ranked_names

MOST_NODES = 4096
"""The paths of a chain of this length are eight million ranks."""


@dataclass(frozen=True)
class TreeAnswer:
    """A draft tree and what it gives; `source` is ``ranks`` or ``trace``.

    `weights` ``[nodes]`` are the probabilities that the nodes are accepted, `channel` is T1 for as many nodes. A tree
    that was searched for has the `tokens_per_call` of other prompts. `others` are tokens per call of other trees of
    that size: ``same_texts``, this tree where it was found; ``greedy``, the best one for a call at a random position;
    ``iid_optimal``; ``chain``. `facts` say what the tree was computed from.
    """

    source: str
    tree: Tree
    weights: np.ndarray[Any, np.dtype[np.float64]]
    tokens_per_call: Interval
    channel: float | None
    others: Mapping[str, Interval]
    facts: Mapping[str, Any]
    notes: Sequence[str] = ()

    @property
    def survival(self) -> list[float]:
        """P(tau >= i), i = 1..depth: the weights of a depth, summed."""
        return np.bincount(self.tree.depths, self.weights)[1:].tolist()


def tree(
    trace: Trace | str | Path | None = None,
    *,
    rule: RankRule | str | None = None,
    rank_pmf: Any = None,
    nodes: int = 8,
    max_depth: int | None = None,
    max_width: int | None = None,
    consecutive: bool = False,
) -> TreeAnswer:
    """Find the best draft tree of `nodes` nodes for the texts of a trace (S4, §7), or for i.i.d. ranks (S2, exact).

    On a trace, or its file, a local search finds the tree for a `rule` with ranks, by its name or itself; it is scored
    on other prompts than those it was found on. For i.i.d. ranks `rank_pmf` is P(R = r), ``[A]``, and `max_width` the
    most nodes of one depth. `max_depth` limits the draft passes of a call. With `consecutive` siblings have ranks 1..m,
    as recursive rejection judges them.

    Raises
    ------
    SettingError
        No trace and no law, or both; a rule without ranks, or a number out of range.
    PmfError, TraceError
        A law that is none, a trace that lacks what the rule reads.

    Examples
    --------
    >>> answer = tree(rank_pmf=[0.6, 0.2, 0.1], nodes=4)
    >>> answer.tree.paths, round(answer.tokens_per_call.best, 3)
    ([(1,), (1, 1), (1, 1, 1), (2,)], 2.376)
    """
    for name, value in (("nodes", nodes), ("max_depth", max_depth), ("max_width", max_width)):
        if name == "nodes" or value is not None:
            in_range(argument(name), [value], MOST_NODES)
    instance("consecutive", consecutive, bool, remedy="True for siblings of ranks 1..m")
    idle = "max_width" if max_width is not None else ""
    if one_source({"a trace": trace is not None, argument("rank_pmf"): rank_pmf is not None}) != "a trace":
        idle = "rule" if rule is not None else ""
    if idle:
        raise SettingError(
            f"{argument(idle)} is given {'with' if trace is not None else 'without'} a trace",
            limit=f"{argument('rule')} is for the texts of a trace, {argument('max_width')} for {argument('rank_pmf')}",
            remedy="leave it out",
        )
    if trace is None:
        return _of_ranks(rank_law(rank_pmf, argument("rank_pmf")), nodes, max_depth, max_width, consecutive)
    ranked = find_rule(rule) if isinstance(rule, str) else rule or DEFAULT_TREE_RULES[0][0]
    if not isinstance(ranked, RankRule):
        raise SettingError(
            f"rule {getattr(ranked, 'name', ranked)!r} has no ranks",
            limit=f"a tree needs one of {ranked_names()}",
            remedy="name one",
        )
    return _of_trace(given_trace(trace), ranked, nodes, max_depth, consecutive)


def _of_ranks(law: Floats, nodes: int, max_depth: int | None, max_width: int | None, consecutive: bool) -> TreeAnswer:
    """The tree with the most expected tokens for ranks i.i.d. along the text (S2, exact)."""
    tree = optimal_tree(law, nodes, max_depth, max_width=max_width, consecutive=consecutive)
    chain = Chain(min(tree.nodes, max_depth or tree.nodes))
    entropy = float(rank_entropy(law))
    notes = [
        "Tokens per call count the recovered or bonus token; a node's weight is its marginal gain, P(it is accepted).",
        *([f"The chain has {chain.nodes} nodes."] if chain.nodes < nodes else []),
        "Exact for ranks i.i.d. along the text; T1 is the limit of every tree of as many nodes there.",
        "Ranks in the paths are counted from 1.",
    ]
    if tree.nodes < nodes:
        notes.append(f"No further node has positive weight within the limits: {tree.nodes} of {nodes}.")
    return TreeAnswer(
        source="ranks",
        tree=tree,
        weights=np.asarray(node_weights(tree, law)),
        tokens_per_call=Interval.exact(float(expected_tokens(tree, law))),
        channel=tunstall_bound(entropy, letters(law), tree.nodes),
        others={"chain": Interval.exact(float(expected_tokens(chain, law)))},
        facts={"rank_pmf": law, "rank_entropy": entropy},
        notes=notes,
    )


def _of_trace(trace: Trace, rule: RankRule, nodes: int, max_depth: int | None, consecutive: bool) -> TreeAnswer:
    """A tree for the texts of a trace under the real dependence of their ranks, beside simpler ones (S4, §7)."""
    trace.require_scores("a draft tree")
    rule.require(trace.columns)
    law, lengths = _searched_laws(rule, trace.columns, nodes), trace.lengths
    first = rule.rank_law(AtDepth(trace.columns, 1), law.shape[-1]).mean(axis=0)
    deepest = within(trace.columns, max_depth or nodes)
    # Recursive rejection judges its candidates in order, whatever is asked for.
    consecutive = rule.consecutive or consecutive
    prompts = Prompts(trace.texts)

    def search(law: Floats, lengths: NDArray[np.int64]) -> Any:
        return text_tree(law, lengths, nodes, max_depth=max_depth, consecutive=consecutive)

    def calls_with(tree: Tree) -> Floats:
        """Expected calls of each text (exact)."""
        return calls_of_tree(*tree_survival(law, tree), lengths).expected

    searched = search(law, lengths)
    held_out = np.zeros(len(lengths))  # with the tree found on the other parts
    parts = prompts.folds(PARTS)
    for inside, rows, tree in _cross_fitted(law, lengths, parts, lambda law, lengths: search(law, lengths).tree):
        held_out[inside] = calls_of_tree(*tree_survival(law[rows], tree), lengths[inside]).expected
    chain = Chain(min(nodes, deepest)).tree()
    calls = {
        "held_out": held_out,
        "same_texts": calls_with(searched.tree),
        "iid_optimal": calls_with(optimal_tree(first, nodes, deepest, consecutive=consecutive)),
        "chain": calls_with(chain),
    }
    most = (1.0, nodes + 1.0)
    per_call = {name: ratio(prompts.sum(lengths), prompts.sum(of), limits=most) for name, of in calls.items()}
    best = per_call.pop("held_out")
    return TreeAnswer(
        source="trace",
        tree=searched.tree,
        weights=_weights(law, lengths, searched.tree),
        tokens_per_call=best,
        channel=Limits().of(rule, searched.tree, MeanLaws(trace)).iid_channel,
        others={"greedy": Interval.estimate(len(trace) / searched.greedy_calls), **per_call},
        facts={"rule": rule.name, "texts": len(trace.texts), "positions": len(trace)},
        notes=_notes(trace, rule, prompts.count, chain.nodes, nodes),
    )


def _weights(law: Floats, lengths: NDArray[np.int64], tree: Tree) -> Floats:
    """Share of the calls in which each node is accepted, over the starts that this tree's calls have (exact)."""
    visits = visits_of(tree_survival(law, tree)[0], lengths)
    left, laws = tokens_left(lengths), PathLaws(law)
    shares = np.zeros(tree.nodes)
    for node, depth, weight in _weights_of_nodes(laws, tree):
        shares[node] = weight @ np.where(left >= depth, visits, 0.0) / visits.sum()
    return shares


def _notes(trace: Trace, rule: RankRule, prompts: int, chain: int, nodes: int) -> list[str]:
    notes = [
        f"Rule {rule.name}; tokens per call count the recovered or bonus token; intervals (95%) are over prompts.",
        "A node's weight is the share of this tree's calls in which it is accepted.",
        "The tree was found on all texts. "
        + (
            "Its tokens per call are cross-validated: each prompt is scored with a tree found on other prompts. The "
            "intervals treat these trees as fixed."
            if prompts > 1
            else "With one prompt it is scored on the text it was found on: too high."
        ),
        "On the same texts: this tree where it was found (exact by the path theorem), usually a little higher than on "
        "fresh texts.",
        "Greedy tree: the best tree for a call at a random position of the same texts, where the search begins.",
        f"T1 is from the mean law of ranks up to {rule.known_ranks(trace.columns, RECORDED_RANKS)}: an idealised value "
        "under i.i.d., which real text may exceed.",
        "Ranks in the paths are counted from 1.",
    ]
    if chain < nodes:
        notes.append(f"The chain has {chain} nodes, as deep as the limit of depth and the trace allow.")
    return [*notes, *about_texts(trace.provenance), *few_prompts(prompts)]
