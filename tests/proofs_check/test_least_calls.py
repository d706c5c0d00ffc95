"""The limit L of drafts by start against linear programmes over all policies (§12), on heads small enough for them."""

from __future__ import annotations

import pytest

from proofs_check.statement.findings import Effort
from proofs_check.theorems.path.start_survival import by_start, certain_head, from_start, heads, least_of_text, policies
from proofs_check.twins.block_values import Problem, fewest_calls
from proofs_check.twins.path_theorem import block_survival, calls


def test_the_counterexample_of_heads() -> None:
    """From 0 drafts right, wrong; from 1 right, right; from 2 and 3 wrong: block 3 calls, L and the best policy 2."""
    case = certain_head((1, 2, 0, 0), 2)
    target, head = case["target"], case["head"]
    text = (0, 0, 0, 0)
    given = Problem(target.__getitem__, lambda start: from_start(head, start), lambda _: 2, lambda t: len(t) >= 4, 2)
    assert calls(by_start(block_survival, target.__getitem__, head, text), 2, 4)[0] == 3
    assert least_of_text("block", target, head, 2, text) == 2
    assert fewest_calls(given) == pytest.approx(2)


def test_no_policy_needs_fewer() -> None:
    """L is below the optimum and near it; the same recursion on token verification's survival is not below."""
    slack, wrong = [], 0
    for case in heads(Effort()):
        (compared,) = policies("block", **case)
        slack.append(float(compared.right - compared.left))
        (other,) = policies("token", **case)
        wrong += other.left > other.right
    assert 0 <= min(slack) <= max(slack) < 0.02, "calls, of at most 4"
    assert wrong > 3
