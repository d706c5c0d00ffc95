"""Every rule with a path form, in fractions: its whole call as an algorithm, beside the survival that §7 states.

The algorithms are those of :mod:`proofs_check.algorithms`; the survivals are built from closed forms, with no
algorithm run. Models are tables of a pmf after every prefix: nothing is stationary.
"""

from __future__ import annotations

from proofs_check.algorithms import enumeration, tree_enumeration
from proofs_check.algorithms.drafts import marginals, parallel
from proofs_check.algorithms.rank_laws import recursive_rejection, top_k
from proofs_check.algorithms.tree_enumeration import Joint, Report, Tree, drawn_tree, tree_walk
from proofs_check.prelude import *
from proofs_check.twins import path_theorem, race_ranks
from proofs_check.twins.path_theorem import PositionLaw, Survival, product_survival
from proofs_check.twins.tree_theorem import RankLaw, conditional, rank_laws, rejection_given, tree_survival

SurvivalOf = Callable[[Model, Model, Prefix], Survival]
"""Target, draft and text to the survival of a call's accepted drafts."""


def chain(k: int) -> Tree:
    """The tree of one chain of k drafts."""
    return frozenset((1,) * i for i in range(1, k + 1))


def constant(pmf: Pmf) -> Model:
    """The model with one pmf at every position."""
    return lambda _: pmf


def greedy(model: Model) -> Model:
    """The model that always says its first choice, lowest index first."""

    def certain(prefix: Prefix) -> Pmf:
        pmf = model(prefix)
        return tuple(Fraction(int(x == pmf.index(max(pmf)))) for x in range(len(pmf)))

    return certain


# Rules with ranks


def poisson_given(p: Pmf, q: Pmf, token: int, candidates: int) -> list[Fraction]:
    """R1: given the output, the rank is geometric with success 1/(1+g), g = sum_y (q_y p_x/q_x - p_y)+."""
    hit = path_theorem.race_acceptance(p, q, token)
    return [hit * (1 - hit) ** (rank - 1) for rank in range(1, candidates + 1)]


def race_given(p: Pmf, q: Pmf, token: int, candidates: int) -> list[Fraction]:
    """R2: the law of the rank among distinct tokens; none has a rank above the number of tokens."""
    law = race_ranks.rank_given(p, q, token)
    return [law[rank] if rank < len(law) else Fraction(0) for rank in range(candidates)]


def place_given(p: Pmf, q: Pmf, token: int, candidates: int) -> list[Fraction]:
    """R7: the rank is the token's place in the draft's order."""
    place = sum((-q[y], y) < (-q[token], token) for y in range(len(q)))
    return [Fraction(int(rank == place)) for rank in range(candidates)]


@dataclass(frozen=True)
class RankTwin:
    """A rule with ranks: its call by any tree and the node it ends at, and the law of the rank given the output."""

    call: Callable[[Tree, Report], Rule]
    given: RankLaw


def _walk(joint: Joint) -> Callable[[Tree, Report], Rule]:
    return lambda tree, report: tree_walk(joint, tree, report)


RANKED: dict[str, RankTwin] = {
    "race": RankTwin(_walk(tree_enumeration.race_list), race_given),
    "poisson": RankTwin(_walk(tree_enumeration.poisson_list), poisson_given),
    "recursive": RankTwin(drawn_tree, rejection_given),
    "recursive-distinct": RankTwin(
        partial(drawn_tree, replacement=False), conditional(partial(recursive_rejection, replacement=False))
    ),
    "topk": RankTwin(_walk(top_k), place_given),
}
"""Rules that take any tree, by the library's names. Recursive rejection draws all candidates of a tree beforehand."""

TREES: tuple[Tree, ...] = (
    frozenset({(1,), (2,)}),
    frozenset({(1,), (2,), (1, 1), (1, 2)}),
    frozenset({(1,), (1, 1), (2,), (2, 1)}),
    frozenset({(2,), (2, 1), (2, 2)}),
)
"""Batches, uneven and even trees, and one that leaves a rank out."""


def survival_by_tree(given: RankLaw, tree: Tree) -> SurvivalOf:
    """The survival of a tree: the sum over its nodes of each depth."""
    most = max(rank for node in tree for rank in node)
    return lambda target, draft, text: tree_survival(rank_laws(given, target, draft, text, most), tree)


# Chains


@dataclass(frozen=True)
class PathTwin:
    """A rule for a chain of drafts: its call, the survival stated for it, and whether the target decodes greedily."""

    algorithm: Rule
    survival: SurvivalOf
    greedy: bool = False

    def target(self, model: Model) -> Model:
        """The model whose text the rule outputs."""
        return greedy(model) if self.greedy else model


def by_position(accept: PositionLaw) -> SurvivalOf:
    """The survival of a rule that decides each position by itself."""
    return partial(product_survival, accept)


CHAINS: dict[str, PathTwin] = {
    "token": PathTwin(enumeration.token_verification, by_position(path_theorem.token_acceptance)),
    "block": PathTwin(enumeration.block_verification, path_theorem.block_survival),
    "race": PathTwin(enumeration.race_verification, by_position(path_theorem.race_acceptance)),
    "independent": PathTwin(enumeration.independent_match, by_position(path_theorem.independent_acceptance)),
    "argmax": PathTwin(enumeration.argmax_draft, by_position(path_theorem.argmax_acceptance)),
    "greedy": PathTwin(
        enumeration.argmax_draft,
        by_position(lambda p, q, _: Fraction(int(p.index(max(p)) == q.index(max(q))))),
        greedy=True,
    ),
    **{
        name: PathTwin(twin.call(chain(4), len), by_position(lambda p, q, x, of=twin.given: of(p, q, x, 1)[0]))  # type: ignore[misc]
        for name, twin in RANKED.items()
        if name != "race"
    },
}
"""Every rule with a path form by the library's name, for chains of at most 4 drafts."""


# Cases


SPREADS = (8, 3)
"""Powers of two that weights span: some tokens of probability 0, and about half of them."""


def random_chains(effort: Effort, sizes: tuple[tuple[int, int, int], ...], rounds: int = 1) -> Iterator[Case]:
    """Random pairs of models {target, draft, k, length}, for each (tokens, length, k), as far as a call may reach."""
    rng = random.Random(f"paths {effort.seed}")
    for number in range(effort.pick(rounds, 8 * rounds)):
        for tokens, length, k in sizes:
            spread = SPREADS[number % len(SPREADS)]
            target, draft = (random_model(rng, tokens, length + k, spread) for _ in range(2))
            yield {"target": target, "draft": draft, "k": k, "length": length}


def edge_chains() -> Iterator[Case]:
    """Equal models, disjoint ones, and a draft that lacks a token or has one too many; texts of 3 tokens, 2 drafts."""
    half, third, none, one = Fraction(1, 2), Fraction(1, 3), Fraction(0), Fraction(1)
    for p, q in (
        ((half, half), (half, half)),
        ((one, none), (none, one)),
        ((third, 2 * third), (one, none)),
        ((one, none), (third, 2 * third)),
        ((third, 2 * third), (2 * third, third)),
    ):
        target, draft = (dict.fromkeys(prefixes(2, 5), pmf) for pmf in (p, q))
        yield {"target": target, "draft": draft, "k": 2, "length": 3}


def with_edges(
    says: str, sizes: tuple[tuple[int, int, int], ...], rounds: int = 1
) -> Callable[[Effort], Iterator[Case]]:
    """Cases as `says`: edges, then random pairs of models of these sizes."""

    def draw(effort: Effort) -> Iterator[Case]:
        yield from edge_chains()
        yield from random_chains(effort, sizes, rounds)

    draw.__doc__ = says
    return draw


# Variants


def marginal(twin: RankTwin) -> RankTwin:
    """The rule said to have its mean rank law whatever the text: what T1 works with."""

    def mean(p: Pmf, q: Pmf, _: int, candidates: int) -> list[Fraction]:
        laws = [(share, twin.given(p, q, x, candidates)) for x, share in enumerate(p) if share]
        return [total(share * law[r] for share, law in laws) for r in range(candidates)]

    return replace(twin, given=mean)


def mirrored(draft: Model) -> Model:
    """Another draft: the same shares on the tokens in reverse."""
    return lambda prefix: draft(prefix)[::-1]


def by_start(rule: Rule) -> Rule:
    """Calls that start at odd positions draft one token, and from another draft."""

    def call(target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
        return rule(target, mirrored(draft), prefix, 1) if len(prefix) % 2 else rule(target, draft, prefix, k)

    return call


def survival_by_start(twin: PathTwin, target: Model, draft: Model, text: Prefix) -> Survival:
    """The survival that belongs to where the call starts, 0 beyond its drafts."""
    even, odd = twin.survival(target, draft, text), twin.survival(target, mirrored(draft), text)
    return lambda n, i: (odd(n, i) if i <= 1 else Fraction(0)) if n % 2 else even(n, i)


def started(twin: PathTwin) -> PathTwin:
    """A rule whose drafts depend on where the call starts."""
    return PathTwin(by_start(twin.algorithm), partial(survival_by_start, twin), twin.greedy)


def in_one_pass(twin: PathTwin) -> PathTwin:
    """A rule whose drafts are drawn in one pass, each from its marginal."""

    def survival(target: Model, draft: Model, text: Prefix) -> Survival:
        return lambda n, i: twin.survival(target, marginals(draft, text[:n]), text)(n, i)

    return PathTwin(parallel(twin.algorithm), survival, twin.greedy)


# Chains that the draft ends (§11)

STOPPABLE = {
    "token": token_verification,
    "block": block_verification,
    "race": enumeration.race_verification,
    "independent": enumeration.independent_match,
    "argmax": enumeration.argmax_draft,
    "greedy": enumeration.argmax_draft,
}
"""Rules that judge a chain, by the library's names."""


def drafts_of(twin: PathTwin, name: str, draft: Model) -> Model:
    """What a rule's drafts are drawn from: the first choice of rules that draft it."""
    return greedy(draft) if name in ("argmax", "greedy") else draft


def room(k: int, length: int, n: int) -> int:
    """The most drafts of a call from n on."""
    return min(k, length - n - 1)
