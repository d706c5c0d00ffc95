"""S4: the search for trees along a text, and the theorem of calls of trees."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from proofs_check.algorithms import tree_enumeration
from proofs_check.algorithms.enumeration import Decoding, Model, Pmf, Prefix, TextLaw, output_law, text_law
from proofs_check.algorithms.rank_laws import recursive_rejection, top_k
from proofs_check.algorithms.tree_enumeration import Joint, drawn_tree, given_text, node_number, tree_walk
from proofs_check.twins import path_theorem, tree_theorem
from proofs_check.twins.tree_theorem import RankLaws, depth
from spectheory import drafting
from spectheory.drafting import Chain
from spectheory.errors import PmfError, SettingError, ShapeError
from spectheory.prediction.best_tree import _worth, text_tree
from spectheory.prediction.paths import TextCalls, calls_and_visits, calls_of_texts, calls_of_tree, tree_survival
from tests.drafting.drafting_cases import rank_trees
from tests.made_up import Refusal, all_refused, each

Floats = NDArray[np.float64]

Path = tuple[int, ...]

Tree = frozenset[Path]

ROUNDING = 1e-12
"""The library against fractions: some twenty operations on numbers near one, each within 1e-16."""


# Models whose pmf at every prefix has its own small integer weights: nothing is stationary or Markov


def chain(seed: str, tokens: int, zeros: bool = False) -> Model:
    @cache
    def model(prefix: Prefix) -> Pmf:
        rng = random.Random(f"{seed} {prefix}")
        weights = [rng.randint(0 if zeros else 1, 5) for _ in range(tokens)]
        if sum(weights) == 0:
            weights[rng.randrange(tokens)] = 1
        return tuple(Fraction(weight, sum(weights)) for weight in weights)

    return model


TREES: dict[str, Tree] = {
    "batch 2": frozenset({(1,), (2,)}),
    "k-ary 2x1": frozenset({(1,), (2,), (1, 1), (2, 1)}),
    "uneven": frozenset({(1,), (2,), (1, 1), (1, 2)}),
    "chain": frozenset({(1,), (1, 1), (1, 1, 1)}),
    "leaves at all depths": frozenset({(1,), (2,), (1, 1), (1, 2), (1, 1, 1)}),
    "ranks left out": frozenset({(2,), (2, 1), (2, 1, 2), (2, 2)}),
}


def library_tree(tree: Tree) -> drafting.Tree:
    return drafting.Tree.from_paths(list(tree))


EQUAL = 1e-9
"""Calls of two trees that differ by less, relative, are a tie in exact arithmetic: rounding is far below."""

STEP = 1e-6
"""Share of a node that is added to see what it is worth."""

QUOTIENT = 1e-4
"""Difference quotients of sums below 25 calls: curvature of at most some 50 times the step, and rounding over it."""


# S4: the search


@cache
def library_trees(alphabet: int, nodes: int) -> list[drafting.Tree]:
    return [library_tree(tree) for tree in sorted(rank_trees(alphabet, nodes), key=sorted)]


def in_order(tree: drafting.Tree) -> bool:
    """Whether siblings have ranks 1..m."""
    return all(path[-1] == 1 or (*path[:-1], path[-1] - 1) in tree.paths for path in tree.paths)


def calls_of(law: Floats, lengths: NDArray[np.int64], tree: drafting.Tree) -> float:
    return float(calls_of_tree(*tree_survival(law, tree), lengths).expected.sum())


ALTERNATING = np.array([[0.0002, 0.9997], [0.955, 0.026]] * 20)


def test_found_calls_are_those_of_the_tree() -> None:
    """In fractions, from the recursion's twin, of a tree larger than the ledger's."""
    law = [[Fraction(float(share)) for share in row] for row in ALTERNATING]
    best = text_tree(ALTERNATING, np.array([40]), 5)
    survival = tree_theorem.tree_survival(law, frozenset(best.tree.paths))
    exact, _ = path_theorem.calls(survival, best.tree.depth, 40)
    assert best.calls == pytest.approx(float(exact), rel=ROUNDING)


@dataclass(frozen=True)
class Text:
    """Rank laws along texts."""

    law: Floats
    lengths: NDArray[np.int64]


def random_text(seed: int, alphabet: int) -> Text:
    """Independent positions, or positions that repeat with a period of 1 to 3; one text, or two, or tokens alone."""
    rng = np.random.default_rng(seed)
    length = int(rng.integers(4, 25))
    period = [length, int(rng.integers(1, 4)), length][seed % 3]
    law = rng.dirichlet(np.full(alphabet + 1, 2.0 if seed % 3 == 2 else 0.3), period)[:, :alphabet]
    law = np.tile(law, (length, 1))[:length]
    cut = int(rng.integers(1, length))
    lengths = [[length], [cut, length - cut], [1] * length][0 if seed % 2 else 1 + (seed % 10 == 0)]
    return Text(law, np.array(lengths))


def searched(seeds: range, consecutive: bool) -> tuple[int, int]:
    """Search against all trees of up to as many nodes: how often the found tree is the best, and the greedy one."""
    best, greedy_best = 0, 0
    for seed in seeds:
        alphabet = 2 + seed % 2
        budget = 1 + seed % (4 if alphabet == 2 else 3)
        text = random_text(seed, alphabet)
        search = text_tree(text.law, text.lengths, budget, consecutive=consecutive)
        trees = [t for k in range(1, budget + 1) for t in library_trees(alphabet, k) if not consecutive or in_order(t)]
        fewest = min(calls_of(text.law, text.lengths, tree) for tree in trees)
        assert search.tree.nodes <= budget
        assert in_order(search.tree) or not consecutive
        assert search.calls <= search.greedy_calls
        assert search.calls == pytest.approx(calls_of(text.law, text.lengths, search.tree), rel=ROUNDING)
        assert fewest <= search.calls * (1 + ROUNDING)
        best += search.calls <= fewest * (1 + EQUAL)
        greedy_best += search.greedy_calls <= fewest * (1 + EQUAL)
    return best, greedy_best


@pytest.mark.parametrize("consecutive", [False, True])
def test_search_against_all_trees(consecutive: bool) -> None:
    """Never worse than greedy, never better than the best of all trees; of 120 small cases at least 118 the best."""
    best, greedy_best = searched(range(120), consecutive)
    assert best >= 118
    assert greedy_best < best


def test_gains_are_derivatives_of_the_calls() -> None:
    """What the search calls the worth of a node is the fall of all calls when a share of it is added, as a quotient."""
    for seed in range(6):
        text = random_text(seed, 2)
        tree = library_tree(TREES["uneven"])
        alive = tree_survival(text.law, tree)[0]
        starts = np.cumsum(text.lengths) - text.lengths
        before = calls_and_visits(alive, text.lengths)[0][starts].sum()
        for path in ((2, 1), (2, 2)):
            more = text.law[:, 1] * np.append(text.law[1:, path[1] - 1], 0.0)
            gain = float(_worth(text.law, text.lengths, tree)(2) @ more)
            more_alive = alive + STEP * np.stack([np.zeros_like(more), more], axis=1)
            after = calls_and_visits(more_alive, text.lengths)[0][starts].sum()
            assert (before - after) / STEP == pytest.approx(gain, abs=QUOTIENT)


def test_the_search_does_not_look_across_texts() -> None:
    """Texts of two tokens: counted across their ends, 1-1 would weigh more than 2, and greedy take 1.1 calls a text."""
    law, lengths = np.tile([[0.9, 0.05], [0.4, 0.55]], (50, 1)), np.full(50, 2)
    assert text_tree(law, lengths, 2).greedy_calls == pytest.approx(1.05 * 50, rel=ROUNDING)
    chain_calls = calls_of(law, lengths, Chain(2).tree())
    assert chain_calls == pytest.approx(1.1 * 50, rel=ROUNDING)


def test_limits_on_the_tree() -> None:
    """Depth, and a budget beyond all nodes that fit into the text."""
    for most in (1, 2):
        best = text_tree(ALTERNATING, np.array([40]), 4, max_depth=most)
        trees = [tree for tree in library_trees(2, min(4, 2 * most)) if tree.depth <= most]
        assert best.tree.depth <= most
        assert best.calls == pytest.approx(min(calls_of(ALTERNATING, np.array([40]), t) for t in trees), rel=EQUAL)
    for length in (1, 2, 3):
        best = text_tree(np.full((length, 2), 0.5), np.array([length]), 50)
        assert best.tree.nodes == 2 ** (length + 1) - 2
        assert best.calls == pytest.approx(1.0)
    assert text_tree(np.full((3, 1), 0.5), np.array([3]), 50).tree == Chain(3).tree()
    assert text_tree(np.full((3, 1), 0.5), np.array([1, 1, 1]), 50).calls == pytest.approx(3.0)


def test_a_long_law_of_one_text_is_its_optimal_tree() -> None:
    """One law all along a long text: the tree of S2, whose calls no search betters by more than the text's two ends."""
    law = np.tile([0.55, 0.25, 0.1], (4000, 1))
    search = text_tree(law, np.array([4000]), 12)
    best = drafting.optimal_tree(law[0], 12)
    assert search.calls <= calls_of(law, np.array([4000]), best) * (1 + EQUAL)
    per_call = float(drafting.expected_tokens(best, law[0]))
    assert abs(4000 / per_call - search.calls) <= 1 + best.depth / per_call


BAD: dict[str, Refusal] = {
    "budget": (lambda: text_tree(np.ones((2, 1)), np.array([2]), 0), SettingError, "budget is 0: must be >= 1"),
    "fraction": (lambda: text_tree(np.ones((2, 1)), np.array([2]), 1.5), SettingError, "budget is 1.5"),
    "depth": (lambda: text_tree(np.ones((2, 1)), np.array([2]), 1, max_depth=0), SettingError, "max depth is 0"),
    "lengths": (lambda: text_tree(np.ones((2, 1)), np.array([3]), 1), ShapeError, "the texts have 3 tokens"),
    "flat": (lambda: text_tree(np.ones(2), np.array([2]), 1), ShapeError, "the rank law is (2,)"),
    "no text": (lambda: text_tree(np.ones((0, 1)), np.array([0]), 1), ShapeError, "(0, 1)"),
    "empty text": (lambda: text_tree(np.ones((2, 1)), np.array([2, 0]), 1), ShapeError, "a text has 0 tokens"),
    "negative": (lambda: text_tree(np.array([[-0.5], [1.0]]), np.array([2]), 1), PmfError, "entry -0.5"),
    "sum": (lambda: text_tree(np.array([[0.5, 0.6]]), np.array([1]), 1), PmfError, "sums to 1.1"),
}

test_bad_input_is_named_in_one_line = all_refused(BAD)


@dataclass(frozen=True)
class Case:
    """A target, a draft, the length of the text."""

    target: Model
    draft: Model
    length: int

    def texts(self) -> dict[Prefix, Fraction]:
        """The target's law of the text."""
        return text_law(self.target, self.length)


CASES = {
    "two tokens": Case(chain("target", 2), chain("draft", 2), 4),
    "three tokens": Case(chain("target", 3), chain("draft", 3), 3),
    "zeros in both": Case(chain("t1", 3, True), chain("d1", 3, True), 3),
    "equal": Case(chain("target", 2, True), chain("target", 2, True), 4),
}

IN_ORDER = sorted(set(TREES) - {"ranks left out"})
"""Trees whose siblings have ranks 1..m, as recursive rejection tries them."""

JOINTS: dict[str, Joint] = {
    "rejection": partial(recursive_rejection, replacement=True),
    "rejection without replacement": partial(recursive_rejection, replacement=False),
    "top-k": top_k,
    "race list": tree_enumeration.race_list,
    "poisson list": tree_enumeration.poisson_list,
    "independent list": tree_enumeration.independent_list,
}

every_joint = each("joint", sorted(JOINTS))
every_case = each("case", sorted(CASES))
every_tree = each("tree", sorted(TREES))

DEEP = ("leaves at all depths", "ranks left out")

beyond_the_ledger = each(
    "joint, tree",
    [
        (joint, tree)
        for joint, tree in product(sorted(JOINTS), sorted(TREES))
        if joint == "independent list" or tree in DEEP
    ],
)
"""The ledger's rules with ranks are those of the library, its trees two levels deep."""


@cache
def enumerated(joint: str, case: str, tree: str, prefill: bool = False, spare: int | None = None) -> TextLaw:
    """The law of text and nodes at which the calls end, over the whole decoding."""
    nodes = TREES[tree]
    call = tree_walk(JOINTS[joint], nodes, node_number(nodes))
    decoding = Decoding(call, depth(nodes), CASES[case].length, spare=spare, prefill=prefill)
    return decoding.law(CASES[case].target, CASES[case].draft)


def laws_along(joint: str, case: str, text: Prefix, tree: Tree) -> RankLaws:
    most = max(rank for node in tree for rank in node)
    law = tree_theorem.conditional(JOINTS[joint])
    return tree_theorem.rank_laws(law, CASES[case].target, CASES[case].draft, text, most)


def as_array(laws: RankLaws) -> Floats:
    return np.array([[float(share) for share in row] for row in laws])


def library_calls(laws: list[RankLaws], tree: Tree, prefill: bool = False) -> TextCalls:
    """The library's calls of several texts, concatenated."""
    survival, leaves = tree_survival(np.concatenate([as_array(law) for law in laws]), library_tree(tree))
    lengths = np.array([len(law) for law in laws])
    return calls_of_tree(survival, leaves, lengths, prefill_emits_token=prefill, variance=True)


def moments(ends: dict[tuple[Path, ...], Fraction]) -> tuple[Fraction, Fraction]:
    """Mean and variance of the number of calls."""
    mean = sum((len(calls) * share for calls, share in ends.items()), Fraction(0))
    return mean, sum((len(calls) ** 2 * share for calls, share in ends.items()), Fraction(0)) - mean**2


# The algorithm as written against the walk by a rank law


@each("tree", IN_ORDER)
@each("replacement", [True, False])
@every_case
def test_rejection_with_drawn_candidates_is_the_walk(case: str, replacement: bool, tree: str) -> None:
    """SpecInfer's call, all candidates of the tree drawn and tried one by one, equals the walk by R3's joint law."""
    nodes = TREES[tree]
    joint = partial(recursive_rejection, replacement=replacement)
    law_of = drawn_tree(nodes, node_number(nodes), replacement=replacement)
    walk = tree_walk(joint, nodes, node_number(nodes))
    problem = CASES[case]
    for prefix in ((), (0,), (1,)):
        law = law_of(problem.target, problem.draft, prefix, depth(nodes))
        assert sum(law.values()) == 1
        assert law == walk(problem.target, problem.draft, prefix, depth(nodes))


def test_several_calls_with_drawn_candidates() -> None:
    """The same for a whole decoding: text, and the node at which each call ends."""
    nodes, problem = TREES["k-ary 2x1"], CASES["two tokens"]
    law = Decoding(drawn_tree(nodes, node_number(nodes)), 2, problem.length).law(problem.target, problem.draft)
    assert law == enumerated("rejection", "two tokens", "k-ary 2x1")


def test_a_drawn_tree_takes_the_vocabulary_at_most() -> None:
    """Two tokens have no third distinct candidate."""
    wide = frozenset({(1,), (2,), (3,)})
    problem = CASES["two tokens"]
    with pytest.raises(ValueError, match="more siblings than tokens"):
        drawn_tree(wide, replacement=False)(problem.target, problem.draft, (), 1)
    assert sum(drawn_tree(wide)(problem.target, problem.draft, (), 1).values()) == 1


def test_the_race_list_agrees_with_the_race() -> None:
    """Its first rank is the enumerated race's diagonal; all ranks make up the target."""
    from proofs_check.algorithms.enumeration import race_coupling

    weights = [w for w in product(range(4), repeat=3) if sum(w) == 3]
    for p, q in product([tuple(Fraction(w, 3) for w in row) for row in weights], repeat=2):
        law = tree_enumeration.race_list(p, q, 3)
        race = race_coupling(p, q)
        for x in range(3):
            assert law.get((1, x), 0) == race.get((x, x), 0)
            assert sum(share for (_, token), share in law.items() if token == x) == p[x]
            assert law.get((0, x), 0) == (p[x] if q[x] == 0 else 0)


# The theorem is exact: fractions against fractions


@beyond_the_ledger
@every_case
def test_the_output_is_a_sample_of_the_target(joint: str, case: str, tree: str) -> None:
    assert output_law(enumerated(joint, case, tree)) == CASES[case].texts()


@beyond_the_ledger
@every_case
def test_where_the_calls_end_given_the_text(joint: str, case: str, tree: str) -> None:
    """The joint law of the end nodes of all calls, given the whole text, is the product of the positions' rank laws."""
    for text in CASES[case].texts():
        laws = laws_along(joint, case, text, TREES[tree])
        exact = given_text(enumerated(joint, case, tree), text, TREES[tree])
        assert tree_theorem.all_ends_law(laws, TREES[tree], len(text)) == exact


@beyond_the_ledger
@every_case
def test_survival_calls_and_leaves(joint: str, case: str, tree: str) -> None:
    """P(tau >= i), mean and variance of the calls, calls that end at a leaf: fractions equal, the library to 1e-12."""
    nodes, length = TREES[tree], CASES[case].length
    for text in CASES[case].texts():
        ends = given_text(enumerated(joint, case, tree), text, nodes)
        laws = laws_along(joint, case, text, nodes)
        survival = tree_theorem.tree_survival(laws, nodes)
        of_floats, _ = tree_survival(as_array(laws), library_tree(nodes))
        for i in range(1, min(depth(nodes), length) + 1):
            alive = sum((share for calls, share in ends.items() if len(calls[0]) >= i), Fraction(0))
            assert survival(0, i) == alive
            for n in range(length - i + 1):
                assert of_floats[n, i - 1] == pytest.approx(float(survival(n, i)), abs=ROUNDING)
        exact = moments(ends)
        assert path_theorem.calls(survival, depth(nodes), length) == exact
        leaves = {node for node in nodes if not tree_enumeration.children(nodes, node)}
        full = sum((share * sum(node in leaves for node in calls[:-1]) for calls, share in ends.items()), Fraction(0))
        assert tree_theorem.leaf_calls(laws, nodes, length) == full
        calls = library_calls([laws], nodes)
        assert calls.expected[0] == pytest.approx(float(exact[0]), abs=ROUNDING)
        assert calls.variance[0] == pytest.approx(float(exact[1]), abs=ROUNDING)
        assert calls.full[0] == pytest.approx(float(full), abs=ROUNDING)


@every_tree
@every_joint
def test_a_prefill_that_emits_a_token(joint: str, tree: str) -> None:
    """The prompt's own pass as a call without drafts: 1 + C(1), with the same variance."""
    nodes, case = TREES[tree], "two tokens"
    length = CASES[case].length
    for text in CASES[case].texts():
        ends = given_text(enumerated(joint, case, tree, prefill=True), text, nodes)
        laws = laws_along(joint, case, text, nodes)
        assert tree_theorem.all_ends_law(laws, nodes, length, prefill=True) == ends
        exact = moments(ends)
        survival = tree_theorem.tree_survival(laws, nodes)
        assert path_theorem.calls(survival, depth(nodes), length, prefill=True) == exact
        calls = library_calls([laws], nodes, prefill=True)
        assert calls.expected[0] == pytest.approx(float(exact[0]), abs=ROUNDING)
        assert calls.variance[0] == pytest.approx(float(exact[1]), abs=ROUNDING)
        full = tree_theorem.leaf_calls(laws, nodes, length, start=1)
        assert calls.full[0] == pytest.approx(float(full), abs=ROUNDING)


@each("spare", [0, 1])
@every_joint
def test_cutting_the_tree_at_the_end_changes_no_call(joint: str, spare: int) -> None:
    """An engine that drafts only as deep as fits (or one less, for the last token) takes as many calls."""
    nodes, case = TREES["leaves at all depths"], "two tokens"
    for text in CASES[case].texts():
        laws = [
            given_text(enumerated(joint, case, "leaves at all depths", spare=s), text, nodes) for s in (None, spare)
        ]
        numbers = [{n: sum(v for k, v in law.items() if len(k) == n) for n in range(1, 5)} for law in laws]
        assert numbers[0] == numbers[1]


@every_joint
def test_visits(joint: str) -> None:
    """Calls that start at each position: enumeration, twin and library agree; they sum to the expected calls."""
    nodes, case = TREES["uneven"], "three tokens"
    length = CASES[case].length
    for text in CASES[case].texts():
        ends = given_text(enumerated(joint, case, "uneven"), text, nodes)
        exact = [Fraction(0)] * length
        for calls, share in ends.items():
            for before in range(len(calls)):
                exact[sum(len(node) + 1 for node in calls[:before])] += share
        laws = laws_along(joint, case, text, nodes)
        survival = tree_theorem.tree_survival(laws, nodes)
        assert tree_theorem.visits(survival, depth(nodes), length) == exact
        assert sum(exact) == path_theorem.calls(survival, depth(nodes), length)[0]
        left, visits = calls_and_visits(tree_survival(as_array(laws), library_tree(nodes))[0], np.array([length]))
        assert visits == pytest.approx([float(share) for share in exact], abs=ROUNDING)
        assert visits.sum() == pytest.approx(left[0], abs=ROUNDING)


def test_texts_do_not_touch() -> None:
    """Several texts concatenated give what each gives alone, a text of one token included."""
    nodes = TREES["leaves at all depths"]
    laws = [laws_along("rejection", "two tokens", text, nodes) for text in list(CASES["two tokens"].texts())[:5]]
    laws.insert(2, laws[0][:1])
    for prefill in (False, True):
        together = library_calls(laws, nodes, prefill)
        for i, law in enumerate(laws):
            alone = library_calls([law], nodes, prefill)
            for name in ("expected", "variance", "full"):
                assert getattr(together, name)[i] == pytest.approx(getattr(alone, name)[0], abs=ROUNDING)
    array, lengths = np.concatenate([as_array(law) for law in laws]), np.array([len(law) for law in laws])
    calls, visits = calls_and_visits(tree_survival(array, library_tree(nodes))[0], lengths)
    starts = np.cumsum(lengths) - lengths
    assert calls[starts] == pytest.approx(library_calls(laws, nodes).expected, abs=ROUNDING)
    assert np.add.reduceat(visits, starts) == pytest.approx(calls[starts], abs=ROUNDING)


@each("k", [1, 2, 3, 5, 9])
def test_a_chain_is_a_tree(k: int) -> None:
    """Survival, calls and full acceptances are those of the chain's own recursion, also beyond the text's end."""
    law = np.random.default_rng(1).dirichlet(np.ones(3), 6)
    lengths = np.array([4, 2])
    survival, leaves = tree_survival(law, Chain(k).tree())
    padded = np.concatenate([law[:, 0], np.zeros(k)])
    products = np.array([[math.prod(padded[n : n + i]) for i in range(1, k + 1)] for n in range(6)])
    assert survival == pytest.approx(products, abs=ROUNDING)
    assert leaves[:, -1] == pytest.approx(survival[:, -1])
    assert not leaves[:, :-1].any()
    chain_calls, tree_calls = calls_of_texts(survival, lengths), calls_of_tree(survival, leaves, lengths, variance=True)
    for name in ("expected", "variance", "full"):
        assert getattr(tree_calls, name) == pytest.approx(getattr(chain_calls, name), abs=ROUNDING)
    assert np.isnan(calls_of_tree(survival, leaves, lengths).variance).all()


def test_wrong_theorems_are_caught() -> None:
    """Negative control: rank laws one position late, not given the text, or with the siblings' ranks swapped."""
    case, nodes = "three tokens", TREES["uneven"]
    problem, right, wrong = CASES[case], 0, [0, 0, 0]
    marginal = [
        [sum((s for (r, _), s in JOINTS["rejection"](p, q, 2).items() if r == rank), Fraction(0)) for rank in (1, 2)]
        for p, q in [(problem.target(()), problem.draft(()))]
    ]
    for text in problem.texts():
        exact = moments(given_text(enumerated("rejection", case, "uneven"), text, nodes))[0]
        laws = laws_along("rejection", case, text, nodes)
        right += abs(library_calls([laws], nodes).expected[0] - float(exact)) <= ROUNDING
        others = [[laws[-1], *laws[:-1]], marginal * len(laws), [row[::-1] for row in laws]]
        for i, other in enumerate(others):
            wrong[i] += abs(library_calls([other], nodes).expected[0] - float(exact)) > 1e-3
    assert right == len(problem.texts())
    assert min(wrong) > right // 2
