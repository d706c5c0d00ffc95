"""The page of rival rules (V1, V2, V3, V4, V5, V6, V7): its numbers are those of the algorithms run in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np

from proofs_check.agreement.path_agreement import accepted, mean_calls
from proofs_check.agreement.path_cases import TREES, constant
from proofs_check.algorithms.enumeration import (
    Decoding,
    Pmf,
    Prefix,
    Rule,
    block_verification,
    output_law,
    text_law,
    token_verification,
)
from proofs_check.algorithms.rivals import (
    by_clipped_ratio,
    first_of_equals,
    greedy_block,
    hierarchical,
    hierarchical_naive,
    hierarchical_published,
    passes,
    traversal,
)
from proofs_check.algorithms.tree_enumeration import drawn_tree
from proofs_check.theorems.block.coupled_calls import coupled_calls
from proofs_check.theorems.block.hierarchical import mean_passes
from tests.made_up import each

PAGE = (Path(__file__).parents[2] / "docs" / "rivals.md").read_text(encoding="utf-8")
TWO_CHAINS = TREES[2]


def pmf(*weights: int) -> Pmf:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


PAIRS = ((pmf(1, 2), pmf(2, 1)), (pmf(4, 5), pmf(5, 4)), (pmf(3, 2, 1), pmf(1, 2, 3)))
"""Far, near, three."""

RULES: dict[str, Rule] = {
    "token": token_verification,
    "block": block_verification,
    "hierarchical": hierarchical,
    "hierarchical, public code (biased)": hierarchical_published,
    "hierarchical, naive (passes)": hierarchical_naive,
    "greedy block": hierarchical_naive,
    "greedy multi-path block, 2 paths": greedy_block(2),
    "two i.i.d. chains: recursive rejection": drawn_tree(TWO_CHAINS),
    "two i.i.d. chains: traversal, unmerged": traversal(TWO_CHAINS, replacement=True),
    "two i.i.d. chains: traversal, merged": traversal(TWO_CHAINS, replacement=True, merged=True),
    "two distinct chains: recursive rejection": drawn_tree(TWO_CHAINS, replacement=False),
    "two distinct chains: traversal": traversal(TWO_CHAINS),
}

CALLS = {"hierarchical, naive (passes)": mean_passes, "greedy block": coupled_calls}
"""Rules whose passes or calls are counted otherwise; the first call of both is the same."""


def row(name: str, rule: Rule) -> str:
    cells = [name]
    for p, q in PAIRS:
        target, draft = constant(p), constant(q)
        calls = CALLS.get(name, partial(mean_calls, rule))(target, draft, 2, 4)
        cells += [f"{float(accepted(rule, target, draft, 2)):.4f}", f"{float(calls):.4f}"]
    return f"| {' | '.join(cells)} |"


def test_the_table_of_the_page() -> None:
    table = PAGE.split("<!-- numbers -->")[1].split("<!-- end -->")[0].strip().splitlines()
    assert table[2:] == [row(name, rule) for name, rule in RULES.items()]


def text_share(rule: Rule, pair: tuple[Pmf, Pmf], k: int, text: Prefix) -> Fraction:
    law = output_law(Decoding(rule, k, len(text)).law(*map(constant, pair)))
    return law.get(text, Fraction(0))


UNIFORM = (pmf(1, 1), pmf(1, 1))
CLOSE = (pmf(1, 2), pmf(4, 5))
THREE = (pmf(1, 1, 2), pmf(1, 2, 1))
PUBLISHED = greedy_block(2, by_clipped_ratio, first_of_equals)


@each(
    "value, said",
    [
        (accepted(hierarchical, *map(constant, PAIRS[0]), 2), Fraction(11, 9)),
        (text_share(hierarchical_published, PAIRS[0], 2, (1, 0)), Fraction(1, 3)),
        (text_share(hierarchical, PAIRS[0], 2, (1, 0)), Fraction(2, 9)),
        (accepted(greedy_block(2), *map(constant, UNIFORM), 1), Fraction(3, 4)),
        (accepted(block_verification, *map(constant, UNIFORM), 1), Fraction(1)),
        (round(float(accepted(greedy_block(3), *map(constant, PAIRS[1]), 2)), 4), 1.4072),
        (text_share(PUBLISHED, UNIFORM, 1, (0,)), Fraction(2, 3)),
        (coupled_calls(*map(constant, PAIRS[0]), 2, 3), Fraction(14, 9)),
        (mean_calls(block_verification, *map(constant, PAIRS[0]), 2, 3), Fraction(14, 9)),
    ],
)
def test_numbers_named_in_the_text(value: Fraction, said: Fraction) -> None:
    assert value == said


def test_the_merged_tree_is_lossless() -> None:
    for pair in PAIRS:
        law = Decoding(RULES["two i.i.d. chains: traversal, merged"], 2, 3).law(*map(constant, pair))
        assert output_law(law) == text_law(constant(pair[0]), 3)


def test_the_pairs_named_in_the_text() -> None:
    two, one = (accepted(rule, *map(constant, CLOSE), 1) for rule in (greedy_block(2), block_verification))
    assert two < one
    assert text_share(PUBLISHED, THREE, 1, (0,)) != THREE[0][0]


def test_passes_of_the_naive_algorithm() -> None:
    """Four drafts: none accepted, the first resampled token is free and three cost a pass; all accepted, one pass."""
    assert [passes(tau, 4) for tau in range(5)] == [4, 3, 2, 1, 1]


def test_products_of_uniforms_are_biased() -> None:
    """The first of two drafts at *far*, run 400,000 times; a right number fails with probability 1e-9 (6.1 errors)."""
    rng, runs = np.random.default_rng(5), 400_000
    drafts = rng.choice(2, size=(runs, 2), p=[2 / 3, 1 / 3])
    legal = np.cumprod(np.array([0.5, 1.0])[drafts], axis=1) >= np.cumprod(rng.random((runs, 2)), axis=1)
    first = np.where(legal.any(axis=1), drafts[:, 0], 1)  # norm (p - q)+ is the token 1
    said, seen = 1 / 3 + 2 / 9 * math.log(2), float((first == 0).mean())
    error = math.sqrt(said * (1 - said) / runs)
    assert abs(seen - said) < 6.1 * error
    assert abs(seen - 1 / 3) > 100 * error, "negative control: the target's"
