"""V3: greedy multi-path block verification (thomas2026) of several i.i.d. paths, and what is false about it."""

from __future__ import annotations

from proofs_check.agreement.path_agreement import accepted, all_calls, lossless, of_pairs, of_tables, turned
from proofs_check.agreement.path_cases import CHAINS, PathTwin, with_edges
from proofs_check.algorithms.rivals import by_clipped_ratio, first_of_equals, greedy_block, largest
from proofs_check.library.strategies import plain_pairs
from proofs_check.prelude import *
from proofs_check.theorems.block.rivals import GREEDY, LARGEST_PATH, path_law, within_several
from proofs_check.twins.list_transport import optimum

OVER = "over random models of any order without stationarity, zeros included, and edges"
DRAWN_AS_DRAFTED = {name: PathTwin(twin.algorithm, CHAINS["block"].survival) for name, twin in GREEDY.items()}

NO_TIES = Assumption(
    "no two tokens have one ratio p/q", lambda p, q: len({a / b for a, b in zip(p, q, strict=True) if b}) == len(q)
)

models = with_edges(
    "Edges; texts of 2 or 3 tokens out of 2, of 2 out of 3, one and two drafts.",
    ((2, 3, 1), (2, 3, 2), (3, 2, 1), (3, 2, 2)),
    2,
)


def small_pairs(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 tokens."""
    return cases.all_pairs(2, effort.pick(4, 7))


def pairs_on_three(effort: Effort) -> Iterator[Case]:
    """Pairs on 2 and 3 tokens."""
    return cases.all_pairs(3, effort.pick(5, 6))


def turned_calls(twins: dict[str, PathTwin], p: Pmf, q: Pmf) -> Iterator[Compared]:
    """Whole texts of two tokens and their calls, one draft, for models that turn a pair of pmfs."""
    return all_calls(twins, *turned(p, q), k=1, length=2)


def no_fewer(rule: Rule, target: Model, draft: Model, k: int) -> Compared:
    """Accepted drafts of a call, no fewer than block verification's of one path."""
    return at_most(accepted(block_verification, target, draft, k), accepted(rule, target, draft, k))


def at_one_position(best: bool, p: Pmf, q: Pmf) -> Compared:
    """Acceptance of two paths of one draft against R4."""
    law = path_law(p, q, 2)
    ours = sum(min(a, b) for a, b in zip(p, law, strict=True))
    return equal(ours, optimum(p, q, 2)) if best else at_most(ours, optimum(p, q, 2))


PUBLISHED = greedy_block(2, by_clipped_ratio, first_of_equals)
CLIPPED = greedy_block(2, by_clipped_ratio, largest(by_clipped_ratio))

V3 = Entry(
    id="V3",
    title="Greedy multi-path block verification",
    kind="identity",
    plain="of K i.i.d. paths the largest is judged by block verification against its own law: with A the draft's "
    "mass of smaller runs and Q that of the run, the largest path begins with the run with D = (A+Q)^K - A^K. "
    "Whatever the orders of tokens are, it is lossless, what follows a call is fresh, and given the text it "
    "accepts i drafts or more with min(1, min_(j<=i) D_j/P_j), P_j the target's probability of the run",
    latex=r"P(\tau \ge i \mid x) = \min\Big(1, \min_{j \le i} \frac{(A_j+Q_j)^K - A_j^K}{P_j}\Big),\quad "
    r"A_j = A_{j-1} + Q_{j-1} \sum_{y \prec x_j} q_y",
    assumptions=(
        "no two drafted tokens are equal in their position's order: the judged path has the law of the largest",
    ),
    source=("thomas2026",),
    without={"certified": "no calculator of the library, and no logarithm"},
    evidence=(
        proof("the law of the largest path, and block verification of drafts of that law", LARGEST_PATH),
        exact(
            Claim(
                "all paths drawn, the largest judged: the text is the target's, and given it the calls are "
                "independent with that survival (two and three paths)",
                partial(all_calls, GREEDY),
            ),
            models,
            over=OVER,
            wrong=Claim("with the survival of block verification", partial(all_calls, DRAWN_AS_DRAFTED)),
        ),
        exact(
            Claim(
                "it accepts at most the sum of R4 of the laws of i tokens, with K candidates",
                of_tables(partial(within_several, {paths: greedy_block(paths) for paths in (2, 3)})),
            ),
            models,
            over=OVER,
            wrong=Claim(
                "with one candidate less",
                of_tables(partial(within_several, {paths - 1: greedy_block(paths) for paths in (2, 3)})),
            ),
        ),
        searched(
            Claim("whole texts and calls as above, one draft", partial(turned_calls, GREEDY)),
            plain_pairs,
            over="models that turn one pair of pmfs on 2 tokens, weights from 0 to 12",
            wrong=Claim("with the survival of block verification", partial(turned_calls, DRAWN_AS_DRAFTED)),
        ),
    ),
)

V3_FEWER = Entry(
    id="V3/fewer",
    title="Several paths never accept fewer drafts than one",
    kind="refuted",
    plain="greedy multi-path block verification accepts at least as many drafts as block verification of one path "
    "(the largest path is drawn from another law, which may be farther from the target: with p = q one path is "
    "always accepted, the largest of two is not)",
    latex=r"E[\tau]_{K\ \text{paths}} \ge E[\tau]_{block}",
    assumptions=(POSITIVE.says,),
    source=("thomas2026",),
    evidence=(
        counterexample(
            Claim("two paths of one draft", of_pairs(partial(no_fewer, greedy_block(2)), k=1), (POSITIVE,)),
            small_pairs,
            over="first among the pairs on 2 tokens by their denominator",
            true=Claim("one path is block verification", of_pairs(partial(no_fewer, greedy_block(1)), k=1)),
        ),
        counterexample(
            Claim(
                "nor where no ratios are equal", of_pairs(partial(no_fewer, greedy_block(2)), k=1), (POSITIVE, NO_TIES)
            ),
            lambda effort: cases.all_pairs(2, effort.pick(9, 12)),
            over="first among the pairs on 2 tokens without ties by their denominator",
            true=Claim("one path is block verification", of_pairs(partial(no_fewer, greedy_block(1)), k=1)),
        ),
    ),
)

V3_OPTIMAL = Entry(
    id="V3/optimal",
    title="At one position the greedy choice is optimal",
    kind="refuted",
    plain="with paths of one draft it reaches R4, the most that any rule accepts of K i.i.d. candidates",
    latex=r"\sum_x \min(p_x, D_x) = \alpha^*_K",
    assumptions=(POSITIVE.says,),
    evidence=(
        counterexample(
            Claim("two candidates", partial(at_one_position, True), (POSITIVE,)),
            pairs_on_three,
            over="first among the pairs on 2 and 3 tokens by their denominator",
            true=Claim("it accepts no more than R4", partial(at_one_position, False)),
        ),
    ),
)

V3_TIES = Entry(
    id="V3/ties",
    title="The first drafted path among equals may be judged",
    kind="refuted",
    plain="with the order of min(1, p/q), ties by token index in the law of the largest, the first drafted child "
    "among equal ones may be the one that is judged, as public code does (the judged path then has another law "
    "than the one it is judged against)",
    latex=r"x \preceq y \iff \min(1, p_x/q_x) \le \min(1, p_y/q_y)",
    assumptions=(),
    source=("thomas2026",),
    evidence=(
        counterexample(
            Claim("a text of one token is the target's", of_pairs(partial(lossless, (PUBLISHED,)), k=1, length=1)),
            small_pairs,
            over="first among the pairs on 2 tokens by their denominator, two paths of one draft",
            true=Claim(
                "it is where ties are broken in one way in both", of_pairs(partial(lossless, (CLIPPED,)), k=1, length=1)
            ),
        ),
        counterexample(
            Claim(
                "nor where no ratios p/q are equal",
                of_pairs(partial(lossless, (PUBLISHED,)), k=1, length=1),
                (POSITIVE, NO_TIES),
            ),
            pairs_on_three,
            over="first among such pairs on 2 and 3 tokens by their denominator: clipping makes ties",
            true=Claim(
                "it is where ties are broken in one way in both", of_pairs(partial(lossless, (CLIPPED,)), k=1, length=1)
            ),
        ),
    ),
)
