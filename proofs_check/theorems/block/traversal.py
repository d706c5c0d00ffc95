"""V4, V5: traversal verification of draft trees (weng2025), against block verification and recursive rejection."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import accepted, lossless, mean_calls, of_tables, turned
from proofs_check.agreement.path_cases import TREES, chain, with_edges
from proofs_check.algorithms.rivals import of_remaining, traversal
from proofs_check.algorithms.tree_enumeration import Tree, drawn_tree
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.theorems.block.rivals import LEAVES, within_several

OVER = "over random models of any order without stationarity, zeros included, and edges"
BATCH, FULL, CHAINS = TREES[:3]

Pair = tuple[Rule, Rule]

models = with_edges("Edges; texts of 3 tokens out of 2 and of 2 out of 3, two drafts.", ((2, 3, 2), (3, 2, 2)), 3)


def with_both(tree: Tree) -> tuple[Rule, Rule]:
    """Traversal by a tree whose siblings are drawn without and with replacement."""
    return traversal(tree), traversal(tree, replacement=True)


def same_calls(pairs: Mapping[int, Pair], target: Model, draft: Model, k: int, **_: int) -> Iterator[Compared]:
    """Two rules have one law of a call, by the number of drafts."""
    for depth, (ours, other) in pairs.items():
        yield equal(ours(target, draft, (), min(depth, k)), other(target, draft, (), min(depth, k)))


def no_fewer(pairs: tuple[Pair, ...], target: Model, draft: Model, k: int, length: int) -> Iterator[Compared]:
    """The first rule accepts no fewer drafts of a call and takes no more calls."""
    for ours, other in pairs:
        yield at_most(accepted(other, target, draft, k), accepted(ours, target, draft, k))
        yield at_most(mean_calls(ours, target, draft, k, length), mean_calls(other, target, draft, k, length))


def no_fewer_turned(pairs: tuple[Pair, ...], p: Pmf, q: Pmf) -> Iterator[Compared]:
    """The same for one call of two drafts of models that turn a pair of pmfs."""
    target, draft = turned(p, q)
    for ours, other in pairs:
        yield at_most(
            accepted(other, target.__getitem__, draft.__getitem__, 2),
            accepted(ours, target.__getitem__, draft.__getitem__, 2),
        )


def lossless_turned(rules: tuple[Rule, ...], p: Pmf, q: Pmf) -> Iterator[Compared]:
    """Texts of two tokens of models that turn a pair of pmfs."""
    target, draft = turned(p, q)
    return lossless(rules, target.__getitem__, draft.__getitem__, 2, 2)


ON_CHAIN: dict[int, Pair] = {k: (traversal(chain(k)), block_verification) for k in (1, 2)}
ON_BATCH: dict[int, Pair] = {1: (traversal(BATCH), drawn_tree(BATCH, replacement=False))}
AS_TREES: dict[int, Pair] = {2: (traversal(FULL), drawn_tree(FULL, replacement=False))}
LEVELWISE: tuple[Pair, ...] = tuple(
    (traversal(tree, replacement=r), drawn_tree(tree, replacement=r)) for tree in (FULL, CHAINS) for r in (True, False)
)
REVERSED: tuple[Pair, ...] = tuple((other, ours) for ours, other in LEVELWISE)

NO_FEWER = "traversal accepts no fewer drafts than recursive rejection by the same tree, and takes no more calls"

V4 = Entry(
    id="V4",
    title="Traversal verification of draft trees",
    kind="identity",
    plain="every node has a ratio, 1 at the root, min(1, r p/q) at a child; the first leaf is accepted with its "
    "ratio, else taken out, and its parent goes on with norm (r p - q)+, ratio S/(S + 1 - r), S = sum (r p - q)+, "
    "and the draft law without the rejected token (of i.i.d. siblings the same one). It is lossless, what follows "
    "a call is fresh; by a chain it is block verification, by siblings alone recursive rejection (R3)",
    latex=r"r_{child} = \min(1, r\,p/q),\qquad p \leftarrow \frac{(rp-q)_+}{S},\quad r \leftarrow \frac{S}{S+1-r}",
    assumptions=("siblings are drawn without replacement or i.i.d., and judged accordingly",),
    source=("weng2025", "sun2024block"),
    without={"certified": "no calculator of the library, and no logarithm"},
    evidence=(
        proof("the masses at a node", LEAVES),
        exact(
            Claim(
                "whole texts are the target's, several calls in a row (three trees, siblings i.i.d. and distinct)",
                of_tables(partial(lossless, [rule for tree in TREES[:3] for rule in with_both(tree)])),
            ),
            models,
            over=OVER,
            wrong=Claim(
                "the ratio left is S over the draft's remaining mass",
                of_tables(partial(lossless, [traversal(FULL, rest=of_remaining)])),
            ),
        ),
        exact(
            Claim("by a chain the law of a call is block verification's", of_tables(partial(same_calls, ON_CHAIN))),
            models,
            over=OVER,
            wrong=Claim("by a tree it is recursive rejection's", of_tables(partial(same_calls, AS_TREES))),
        ),
        exact(
            Claim("by two siblings it is recursive rejection's", of_tables(partial(same_calls, ON_BATCH))),
            models,
            over=OVER,
            wrong=Claim("by a tree it is, too", of_tables(partial(same_calls, AS_TREES))),
        ),
        exact(
            Claim(
                "by two i.i.d. chains it accepts at most the sum of R4 of the laws of i tokens",
                of_tables(partial(within_several, {2: traversal(CHAINS, replacement=True)})),
            ),
            models,
            over=OVER,
            wrong=Claim(
                "with one candidate", of_tables(partial(within_several, {1: traversal(CHAINS, replacement=True)}))
            ),
        ),
        searched(
            Claim("texts of two tokens by two chains", partial(lossless_turned, with_both(CHAINS)[:1])),
            plain_pairs,
            over="models that turn one pair of pmfs on 2 tokens, weights from 0 to 12",
            wrong=Claim(
                "the ratio left is S over the draft's remaining mass",
                partial(lossless_turned, (traversal(FULL, rest=of_remaining),)),
            ),
        ),
    ),
)

V5 = Entry(
    id="V5",
    title="Traversal accepts no fewer than recursive rejection: not refuted",
    kind="lower bound",
    plain=f"{NO_FEWER}: no counterexample was found, and no proof is known here",
    latex=r"E[\tau]_{traversal} \ge E[\tau]_{recursive},\qquad "
    r"E[\text{calls}]_{traversal} \le E[\text{calls}]_{recursive}",
    assumptions=("siblings drawn without replacement, or i.i.d., for both",),
    source=("weng2025",),
    without={"symbolic": "no proof is known here", "certified": "no calculator of the library, and no logarithm"},
    evidence=(
        exact(
            Claim(f"{NO_FEWER} (two trees)", of_tables(partial(no_fewer, LEVELWISE))),
            models,
            over=OVER,
            wrong=Claim("it is the other way round", of_tables(partial(no_fewer, REVERSED))),
        ),
        searched(
            Claim("no fewer drafts of a call", partial(no_fewer_turned, LEVELWISE[3:])),
            plain_pairs,
            over="models that turn one pair of pmfs on 2 tokens, weights from 0 to 12",
            wrong=Claim("it is the other way round", partial(no_fewer_turned, REVERSED[3:])),
        ),
    ),
)
