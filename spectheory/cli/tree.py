"""``spectheory tree``: the best draft tree for i.i.d. ranks, or for the texts of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spectheory.cli.answer import show
from spectheory.cli.inputs import Floats, in_range, letters, one_source, read_rank_law
from spectheory.cli.progress import working
from spectheory.cli.theory_options import TreeOptions
from spectheory.drafting import Chain, Tree, expected_tokens, node_weights, optimal_tree
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.limits import tunstall_bound
from spectheory.prediction.best_tree import FoundTree, cross_fitted, searched_laws, text_tree
from spectheory.prediction.means import MeanLaws
from spectheory.prediction.over_prompts import PARTS, Prompts, few_prompts, ratio
from spectheory.prediction.paths import PathLaws, calls_of_tree, tokens_left, tree_survival, visits_of
from spectheory.prediction.trace_limits import Limits
from spectheory.reports import TreeAnswer, tree_report
from spectheory.reports.notes import given
from spectheory.trace import RECORDED_RANKS, Trace, read_any
from spectheory.verification import RankRule, rank_entropy
from spectheory.verification.by_start import AtDepth, within
from spectheory.verification.registry import DEFAULT_TREE_RULES, find_rule, ranked_names

MOST_NODES = 4096
"""The paths of a chain of this length are eight million ranks."""
DEFAULT_RULE = DEFAULT_TREE_RULES[0][0].name


def run_tree(question: TreeOptions) -> None:
    """Answer the question and show the answer."""
    _validate(question)
    if question.trace is None:
        answer = of_ranks(read_rank_law(question.rank_pmf or "", "--rank-pmf"), question)
    else:
        rule = _rule(question.rule or DEFAULT_RULE)
        answer = of_trace(read_any(question.trace), rule, question)
    show(tree_report(answer), as_json=question.json)


def _validate(question: TreeOptions) -> None:
    for name in ("nodes", "max_depth", "max_width"):
        in_range(f"--{name.replace('_', '-')}", getattr(question, name), MOST_NODES)
    given = {"a trace": question.trace is not None, "--rank-pmf": question.rank_pmf is not None}
    idle = "--max-width" if question.max_width is not None else ""
    if one_source(given) == "--rank-pmf":
        idle = "--rule" if question.rule is not None else ""
    if idle:
        raise SettingError(
            f"{idle} is given {'with' if question.trace else 'without'} a trace",
            limit="--rule is for the texts of a trace, --max-width for --rank-pmf",
            remedy="leave it out",
        )


def _rule(name: str) -> RankRule:
    rule = find_rule(name)
    if not isinstance(rule, RankRule):
        raise SettingError(
            f"rule {rule.name!r} has no ranks", limit=f"a tree needs one of {ranked_names()}", remedy="name one"
        )
    return rule


def of_ranks(law: Floats, question: TreeOptions) -> TreeAnswer:
    """The tree with the most expected tokens for ranks i.i.d. along the text (S2, exact)."""
    tree = optimal_tree(
        law, question.nodes, question.max_depth, max_width=question.max_width, consecutive=question.consecutive
    )
    chain = Chain(min(tree.nodes, question.max_depth or tree.nodes))
    entropy = float(rank_entropy(law))
    notes = [
        "Tokens per call count the recovered or bonus token; a node's weight is its marginal gain, P(it is accepted).",
        *([f"The chain has {chain.nodes} nodes."] if chain.nodes < question.nodes else []),
        "Exact for ranks i.i.d. along the text; T1 is the limit of every tree of as many nodes there.",
        "Ranks in the paths are counted from 1.",
    ]
    if tree.nodes < question.nodes:
        notes.append(f"No further node has positive weight within the limits: {tree.nodes} of {question.nodes}.")
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


# Along the texts of a trace


@dataclass(frozen=True)
class _Texts:
    """The rank laws along texts, by position or by start and depth, and how to search and to judge a tree there."""

    law: Floats
    lengths: NDArray[np.int64]
    nodes: int
    max_depth: int | None
    consecutive: bool

    def search(self, law: Floats, lengths: NDArray[np.int64]) -> FoundTree:
        """The tree that a local search finds for some texts."""
        return text_tree(law, lengths, self.nodes, max_depth=self.max_depth, consecutive=self.consecutive)

    def held_out_calls(self, part: NDArray[np.int64]) -> Floats:
        """Calls of each text with the tree found on the other parts."""
        calls = np.zeros(len(self.lengths))
        only = lambda law, lengths: self.search(law, lengths).tree  # noqa: E731
        for inside, rows, tree in cross_fitted(self.law, self.lengths, part, only):
            calls[inside] = calls_of_tree(*tree_survival(self.law[rows], tree), self.lengths[inside]).expected
        return calls

    def calls(self, tree: Tree) -> Floats:
        """Expected calls of each text (exact)."""
        return calls_of_tree(*tree_survival(self.law, tree), self.lengths).expected

    def weights(self, tree: Tree) -> Floats:
        """Share of the calls in which each node is accepted, over the starts that this tree's calls have (exact)."""
        visits = visits_of(tree_survival(self.law, tree)[0], self.lengths)
        left = tokens_left(self.lengths)
        laws = PathLaws(self.law)
        paths, shares = tree.paths, np.zeros(tree.nodes)
        above = [visits]
        for node in sorted(range(tree.nodes), key=paths.__getitem__):  # depth first: only one path is held
            depth = len(paths[node])
            weight = laws.times(above[depth - 1], depth, paths[node][-1])
            above[depth:] = [np.where(left >= depth, weight, 0.0)]
            shares[node] = above[depth].sum() / visits.sum()
        return shares


def of_trace(trace: Trace, rule: RankRule, question: TreeOptions) -> TreeAnswer:
    """A tree for the texts of a trace under the real dependence of their ranks, beside simpler ones (S4, §7)."""
    trace.require_scores("a draft tree")
    rule.require(trace.columns)
    law = searched_laws(rule, trace.columns, question.nodes)
    first = rule.rank_law(AtDepth(trace.columns, 1), law.shape[-1]).mean(axis=0)
    deepest = within(trace.columns, question.max_depth or question.nodes)
    # Recursive rejection judges its candidates in order, whatever is asked for.
    consecutive = rule.consecutive or question.consecutive
    texts = _Texts(law, trace.lengths, question.nodes, question.max_depth, consecutive)
    prompts = Prompts(trace.texts)
    with working("searching trees"):
        searched = texts.search(law, trace.lengths)
        tree = searched.tree
        iid = optimal_tree(first, question.nodes, deepest, consecutive=consecutive)
        chain = Chain(min(question.nodes, deepest)).tree()
        calls = {
            "held_out": texts.held_out_calls(prompts.folds(PARTS)),
            "same_texts": texts.calls(tree),
            "iid_optimal": texts.calls(iid),
            "chain": texts.calls(chain),
        }
    most = (1.0, question.nodes + 1.0)
    found = {name: ratio(prompts.sum(trace.lengths), prompts.sum(of), limits=most) for name, of in calls.items()}
    best = found.pop("held_out")
    others = {"greedy": Interval.estimate(len(trace) / searched.greedy_calls), **found}
    return TreeAnswer(
        source="trace",
        tree=tree,
        weights=texts.weights(tree),
        tokens_per_call=best,
        channel=Limits().of(rule, tree, MeanLaws(trace)).iid_channel,
        others=others,
        facts={"rule": rule.name, "texts": len(trace.texts), "positions": len(trace)},
        notes=_notes(trace, rule, prompts.count, chain, question),
    )


def _notes(trace: Trace, rule: RankRule, prompts: int, chain: Tree, question: TreeOptions) -> list[str]:
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
    if chain.nodes < question.nodes:
        notes.append(f"The chain has {chain.nodes} nodes, as deep as --max-depth and the trace allow.")
    return [*notes, *given(trace.provenance), *few_prompts(prompts)]
