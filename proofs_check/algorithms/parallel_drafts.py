"""Drafts of one pass (P-EAGLE, DFlash): each depth has a pmf of its own that no draft before it changes (§10)."""

from __future__ import annotations

from functools import partial

from proofs_check.algorithms.enumeration import CallLaw, Model, Pmf, Prefix, Rule, draft_paths
from proofs_check.statement.fractions import Fraction


def marginals(draft: Model, start: Prefix) -> Model:
    """The pmfs of a call that starts after `start`: at each depth the mixture of the draft's over all runs before."""

    def mixture(prefix: Prefix) -> Pmf:
        runs = [(weight, draft(start + path)) for path, weight in draft_paths(draft, start, len(prefix) - len(start))]
        return tuple(sum((weight * pmf[x] for weight, pmf in runs), Fraction(0)) for x in range(len(runs[0][1])))

    return mixture


def parallel(algorithm: Rule) -> Rule:
    """A whole call of a rule whose drafts are drawn from the marginals, independently of each other."""
    return partial(_call, algorithm)


def _call(algorithm: Rule, target: Model, draft: Model, prefix: Prefix, k: int) -> CallLaw:
    return algorithm(target, marginals(draft, prefix), prefix, k)
