"""The page of open problems: its tables are computed again, and linear programmes are checked by other routes."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from proofs_check.agreement.path_agreement import mean_calls
from proofs_check.agreement.path_cases import CHAINS, TREES, constant
from proofs_check.algorithms.enumeration import Pmf, Prefix, Rule, block_verification, text_law
from proofs_check.algorithms.lossless_calls import most_agreement
from proofs_check.algorithms.rivals import greedy_block, traversal
from proofs_check.algorithms.tree_enumeration import drawn_tree
from proofs_check.library.cases import prefixes
from proofs_check.statement.claims import Case
from proofs_check.statement.fractions import total
from proofs_check.theorems.path.head_cases import by_start, from_start
from proofs_check.theorems.path.start_limits import accepted_beyond_mean, charged_limit, decoding
from proofs_check.twins.block_values import SOLVED, Problem, expected_calls, fewest_calls, texts
from proofs_check.twins.path_theorem import accepted_law
from tests.made_up import each
from tests.proofs_check.test_rivals import PAIRS, TWO_CHAINS, pmf

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "open_problems.md").read_text(encoding="utf-8")


def table(name: str) -> list[str]:
    return PAGE.split(f"<!-- {name} -->")[1].split("<!-- end -->")[0].strip().splitlines()[2:]


# Two i.i.d. chains over a whole decoding.


SIZES = ((1, 4), (2, 3), (2, 4))
"""Drafts of a chain, tokens of the text."""


def rules(k: int) -> dict[str, Rule]:
    tree = TREES[0] if k == 1 else TWO_CHAINS
    return {
        "one chain: block": block_verification,
        "recursive rejection": drawn_tree(tree),
        "traversal, unmerged": traversal(tree, replacement=True),
        "traversal, merged": traversal(tree, replacement=True, merged=True),
        "greedy multi-path block": greedy_block(2),
    }


@cache
def best_of_two(p: Pmf, q: Pmf, k: int, length: int) -> float:
    return fewest_calls(replace(texts(constant(p), constant(q), k, length), chains=2))


def chain_cells(name: str, pair: tuple[Pmf, Pmf]) -> list[str]:
    if name == "**best of all**":
        return [f"{best_of_two(*pair, k, length):.4f}" for k, length in SIZES]
    return [f"{float(mean_calls(rules(k)[name], *map(constant, pair), k, length)):.4f}" for k, length in SIZES]


NAMES = (*rules(2), "**best of all**")


@each("column", [0, 1])
def test_two_chains_on_two_tokens(column: int) -> None:
    for row, name in zip(table("two chains"), NAMES, strict=True):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert [cells[0], *cells[1 + 3 * column : 4 + 3 * column]] == [name, *chain_cells(name, PAIRS[column])]


@pytest.mark.evidence
def test_two_chains_on_three_tokens() -> None:
    for row, name in zip(table("two chains"), NAMES, strict=True):
        assert [cell.strip() for cell in row.strip("|").split("|")][7:] == chain_cells(name, PAIRS[2])


def test_the_programme_of_two_chains_by_other_routes() -> None:
    """One draft and two tokens of text: 2 less the most that a call accepts, in fractions; B11's example; one chain."""
    for p, q in PAIRS:
        given = texts(constant(p), constant(q), 1, 2)
        for chains in (1, 2):
            stated = 2 - most_agreement(constant(p), constant(q), 1, chains)
            assert abs(Fraction(fewest_calls(replace(given, chains=chains))) - stated) < SOLVED
    assert best_of_two(*PAIRS[0], 2, 3) < fewest_calls(texts(*map(constant, PAIRS[0]), 2, 3)) - 0.1


def test_a_free_token_may_cost_calls_of_two_chains() -> None:
    """Behind two agreed tokens the best policy is below the one that accepts both drafts of its first call."""
    quarter, half, sure = (Fraction(1, 4), Fraction(3, 4)), (Fraction(1, 2), Fraction(1, 2)), (Fraction(0), Fraction(1))

    def model(lead: int, after_one: Pmf) -> Callable[[tuple[int, ...]], Pmf]:
        def of(text: tuple[int, ...]) -> Pmf:
            here = text[lead:]
            if len(text) < lead or len(here) > 1:
                return sure
            return quarter if not here else (half if here[0] == 0 else after_one)

        return of

    def least(lead: int, before: tuple[int, ...] = ()) -> float:
        target, draft = model(lead, sure), model(lead, half)
        given = texts(lambda text: target(before + text), lambda text: draft(before + text), 2, lead + 3 - len(before))
        return fewest_calls(replace(given, chains=2))

    assert abs(least(0) - 73 / 64) < SOLVED
    assert abs(least(2) - 137 / 64) < SOLVED
    free = sum(float(share) * least(0, (token,)) for token, share in enumerate(quarter))
    assert abs(free - 76 / 64) < SOLVED
    assert least(0) < free, "a token given away costs calls"


# Drafts by start: how near the limits come to the optimum.


Charges = Callable[[Case, Prefix, int, int], dict[Any, float]]
"""By the name of its factor, what is paid along a text for not stopping a call from n before i drafts."""


def of_draft(charge: Callable[[float, float], float]) -> Charges:
    """A charge of draft i + 1 by its ratio rho and the mean of min(1, rho); one factor for each i."""

    def of(case: Case, text: Prefix, n: int, i: int) -> dict[Any, float]:
        if i == min(case["k"], len(text) - n):
            return {}
        p, q = case["target"][text[: n + i]], from_start(case["head"], text[:n])(text[: n + i])
        return {i: charge(float(q[text[n + i]] / p[text[n + i]]), float(sum(map(min, p, q))))}

    return of


def every_condition(case: Case, text: Prefix, n: int, i: int) -> dict[Any, float]:
    """Every function of the text whose mean is 0 given its first n + i tokens."""
    law = text_law(case["target"].__getitem__, len(text))
    alike = {other: share for other, share in law.items() if other[: n + i] == text[: n + i]}
    whole = total(alike.values())
    return {(n, i, other): float((other == text) - share / whole) for other, share in alike.items()}


CHARGES: dict[str, Charges] = {
    "ratio": of_draft(lambda rho, _: rho - 1),
    "accepted": of_draft(lambda rho, mean: min(1.0, rho) - mean),
}
TOYS = ((2, 4, 2), (2, 4, 3), (2, 5, 2), (3, 4, 2))
"""Tokens, length, drafts."""
HEADS = 6


def toy(rng: random.Random, tokens: int, length: int, k: int) -> Case:
    """A target and a head, weights 1 to 9 at random."""

    def drawn() -> Pmf:
        return pmf(*(rng.randint(1, 9) for _ in range(tokens)))

    target = {text: drawn() for text in prefixes(tokens, length + k)}
    starts = prefixes(tokens, length)
    head = {(start, run): drawn() for start in starts for run in prefixes(tokens, length - len(start) + k)}
    return {"target": target, "head": head, "k": k, "length": length}


def best_charged(of: Charges | None, case: Case) -> tuple[float, list[float]]:
    """The largest mean of the charged limit and its factors, a linear programme; the mean of L without charges."""
    target, head, k, length = (case[name] for name in ("target", "head", "k", "length"))
    gains, equal, most, factors = [], [], [], {}

    def unknown(gain: float = 0.0) -> int:
        gains.append(gain)
        return len(gains) - 1

    for text, share in text_law(target.__getitem__, length).items():
        survival = by_start(CHAINS["block"].survival, target.__getitem__, head, text)
        limits = [unknown(float(share) if n == 0 else 0.0) for n in range(length)]
        for n in range(length):
            row, paid, before = {limits[n]: 1.0}, defaultdict(float), None
            for i, chance in enumerate(accepted_law(survival, n, k, length)):
                for factor, charge in (of(case, text, n, i) if of else {}).items():
                    if factor not in factors:
                        factors[factor] = unknown()
                    paid[factors[factor]] -= charge
                low = unknown()
                row[low] = -float(chance)
                ahead = {limits[n + i + 1]: -1.0} if n + i + 1 < length else {}
                most.append({low: 1.0, **ahead, **paid})
                if before is not None:
                    most.append({low: 1.0, before: -1.0})
                before = low
            equal.append(row)

    def matrix(rows: Sequence[dict[int, float]]) -> sparse.csr_array:
        entries = [(i, n, value) for i, row in enumerate(rows) for n, value in row.items()]
        at, columns, values = (np.array(each) for each in zip(*entries, strict=True))
        return sparse.csr_array((values, (at, columns)), shape=(len(rows), len(gains)))

    solution = linprog(
        [-gain for gain in gains],
        A_eq=matrix(equal),
        b_eq=np.ones(len(equal)),
        A_ub=matrix(most),
        b_ub=np.zeros(len(most)),
        bounds=(None, None),
        method="highs",
    )
    assert solution.success, solution.message
    return -float(solution.fun), [float(solution.x[factors[name]]) for name in sorted(factors)]


def toy_row(tokens: int, length: int, k: int) -> str:
    rng = random.Random(f"toys {tokens} {length} {k}")
    sums = np.zeros(5)
    for _ in range(HEADS):
        case = toy(rng, tokens, length, k)
        given: Problem = decoding(**case)
        limits = [best_charged(of, case)[0] for of in (None, *CHARGES.values())]
        sums += [float(expected_calls(given)(())), fewest_calls(given), *limits]
    block, best, plain, *charged = sums / HEADS
    shares = [f"{(each - plain) / (best - plain):.0%}" for each in charged]
    numbers = [f"{each:.4f}" for each in (block, best, plain, *charged)]
    return f"| {tokens}, {length}, {k} | {' | '.join([*numbers, *shares])} |"


def test_a_charge_for_every_condition_makes_the_limit_exact() -> None:
    """And L is below the optimum there, by more than the programmes' rounding."""
    rng, distances = random.Random(1), []
    for _ in range(6):
        case = toy(rng, 2, 4, 3)
        best = fewest_calls(decoding(**case))
        assert abs(best_charged(every_condition, case)[0] - best) < SOLVED
        distances.append(best - best_charged(None, case)[0])
    assert max(distances) > 1e-3


def test_charged_limits_of_toys_one_row() -> None:
    assert table("toys")[0] == toy_row(*TOYS[0])


@pytest.mark.evidence
def test_charged_limits_of_toys() -> None:
    assert table("toys") == [toy_row(*size) for size in TOYS]


def test_the_best_charges_by_another_route() -> None:
    """The recursion in fractions has the programme's value at its factors, less near them; L without charges."""
    case = toy(random.Random(3), 2, 4, 3)
    target, head, k = case["target"], case["head"], case["k"]

    def mean(factors: Sequence[float]) -> float:
        law = text_law(target.__getitem__, case["length"])
        of = [Fraction(each) for each in factors]
        limit = {text: charged_limit(accepted_beyond_mean, of, target.__getitem__, head, k, text) for text in law}
        return float(total(share * limit[text] for text, share in law.items()))

    best, factors = best_charged(CHARGES["accepted"], case)
    assert abs(mean(factors) - best) < SOLVED
    assert abs(mean([0.0] * k) - best_charged(None, case)[0]) < SOLVED
    assert best > mean([0.0] * k) + 1e-6
    assert mean([factors[0] + 1, *factors[1:]]) < best


def head_row(row: dict[str, Any]) -> str:
    adds = " | ".join(f"{row[kind]['calls']:+.0f} ± {row[kind]['half_width']:.0f}" for kind in ("ratio", "accepted"))
    return f"| {row['head']} | {row['k']} | {row['block']:.0f} | {row['L']:.0f} | {adds} |"


def test_the_table_of_heads_is_the_one_saved() -> None:
    """Written by ``python benchmarks/start_limits.py``."""
    saved = ROOT / "benchmarks" / "results" / "limits" / "start_limits.json"
    assert table("heads") == [head_row(row) for row in json.loads(saved.read_text(encoding="utf-8"))["rows"]]
