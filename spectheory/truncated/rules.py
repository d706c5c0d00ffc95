"""What a verification rule accepts, and the law of its rank, from two truncated pmfs: by the table of rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from spectheory.checks import instance, whole
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated.completions import RuleBounds
from spectheory.truncated.matching import MATCHING
from spectheory.truncated.ranks import RANKED
from spectheory.truncated.top import TopLogProbs, a_top
from spectheory.verification.base import Rule, at_least_one

TABLE: dict[Rule, RuleBounds] = RANKED | MATCHING
"""What is known of each rule; a new rule's bounds are entered in one of the two and nowhere else."""


def acceptance(rule: Rule, target: TopLogProbs, draft: TopLogProbs, k: int = 1) -> Interval:
    """P(the output is among the k candidates of a rule) over all completions (§9; certified).

    Of :class:`BlockVerification` and of distinct candidates of :class:`RecursiveRejection` one candidate is known.

    Examples
    --------
    >>> from spectheory.verification import PoissonRace, RecursiveRejection, TokenVerification
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> for rule, k in ((TokenVerification(), 1), (PoissonRace(), 3), (RecursiveRejection(), 2)):
    ...     print(rule.name, acceptance(rule, p, q, k))
    token 0.625 [0.500, 0.750]
    poisson 0.800 [0.664, 0.936]
    recursive 0.726 [0.625, 0.827]
    """
    known, k = _known(rule, k, "acceptance", "most"), at_least_one("k", k)
    return known(a_top("target", target), a_top("draft", draft), k)


def acceptance_given(rule: Rule, target: TopLogProbs, draft: TopLogProbs, token: int, k: int = 1) -> Interval:
    """P(the output is among the k candidates | it is `token`) over all completions (§9; certified).

    These are the factors of the path theorem (§7). Ends are suprema over the completions in which the target can
    output the token; a token that it cannot output is refused.

    Examples
    --------
    >>> from spectheory.verification import RaceVerification, TokenVerification
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.25], 1), TopLogProbs.from_pmf([0.25, 0.5, 0.25], 2)
    >>> print(acceptance_given(RaceVerification(), p, q, 0), acceptance_given(TokenVerification(), p, q, 0))
    0.450 [0.400, 0.500] 0.500
    """
    known, k = _known(rule, k, "given", "most_given"), at_least_one("k", k)
    token = _checked_token(target, draft, token)
    return known(target, draft, token, k)


def rank_pmf(rule: Rule, target: TopLogProbs, draft: TopLogProbs, max_rank: int) -> tuple[Interval, ...]:
    """P(R = r), r = 1..max_rank, of a rule with i.i.d. candidates, an interval each (§9; certified).

    Examples
    --------
    >>> from spectheory.verification import PoissonRace
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.125, 0.125], 2), TopLogProbs.from_pmf([0.25, 0.5, 0.125, 0.125], 2)
    >>> print(*rank_pmf(PoissonRace(), p, q, 2), sep=" and ")
    0.572 [0.444, 0.700] and 0.168 [0.123, 0.212]
    """
    known, most = _known(rule, 1, "rank_pmf", "most"), at_least_one("max_rank", max_rank)
    return known(a_top("target", target), a_top("draft", draft), most)


def rank_pmf_given(
    rule: Rule, target: TopLogProbs, draft: TopLogProbs, token: int, max_rank: int
) -> tuple[Interval, ...]:
    """P(R = r | output `token`), r = 1..max_rank, an interval each (§9; certified).

    Examples
    --------
    >>> from spectheory.verification import RecursiveRejection
    >>> p, q = TopLogProbs.from_pmf([0.5, 0.25, 0.25], 1), TopLogProbs.from_pmf([0.25, 0.5, 0.25], 2)
    >>> print(*rank_pmf_given(RecursiveRejection(), p, q, 0, 2), sep=" and ")
    0.500 and 0.250 [0.125, 0.375]
    """
    known, most = _known(rule, 1, "rank_pmf_given", "most"), at_least_one("max_rank", max_rank)
    return known(target, draft, _checked_token(target, draft, token), most)


def bounds_given(rule: Rule) -> float:
    """Of how many candidates :func:`acceptance_given` is known: 0 for a rule without an entry.

    Examples
    --------
    >>> from spectheory.verification import LookupMatch, PoissonRace, RaceVerification
    >>> [bounds_given(rule) for rule in (LookupMatch(), RaceVerification(), PoissonRace())]
    [0, 1, inf]
    """
    instance("rule", rule, Rule, remedy="spectheory.verification.PoissonRace() is one")
    entry = TABLE.get(rule) if isinstance(rule, Hashable) else None
    return entry.most_given if entry and entry.given else 0


def _checked_token(target: TopLogProbs, draft: TopLogProbs, token: int) -> int:
    """The token as an int, of what two servers tell."""
    most = min(a_top("target", target).vocabulary, a_top("draft", draft).vocabulary) - 1
    return whole("token", token, least=0, most=most, remedy="check the tokenizer")


def _known(rule: Rule, k: int, what: str, most: str) -> Callable[..., Any]:
    """The function of the table, or the error that says what is not known of the rule."""
    k = at_least_one("k", k)
    instance("rule", rule, Rule, remedy="spectheory.verification.PoissonRace() is one")
    entry = TABLE.get(rule, RuleBounds()) if isinstance(rule, Hashable) else RuleBounds()
    bounds: Callable[..., Any] | None = getattr(entry, what)
    if bounds is None or k > getattr(entry, most):
        asked = {"acceptance": "acceptance", "given": "acceptance given the output"}.get(what, "law of the rank")
        of = f" of {k} candidates" if bounds else ""
        raise SettingError(
            f"the {asked}{of} of rule {rule.name!r} has no certified interval",
            limit="top-m log-probabilities do not bound it here",
            remedy="use full pmfs" + (", or one candidate" if bounds else ""),
        )
    return bounds
