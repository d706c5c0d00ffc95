"""What a verification rule accepts, and the law of its rank, from two truncated pmfs: one table, an entry per rule."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from spectheory.checks import instance, whole
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.truncated import candidates, matching, ranks
from spectheory.truncated.ranks import distinct_race_acceptance
from spectheory.truncated.top import TopLogProbs, a_top
from spectheory.verification.base import Rule, at_least_one
from spectheory.verification.block import BlockVerification
from spectheory.verification.gumbel_list import GumbelList
from spectheory.verification.kseq import KSeq
from spectheory.verification.matching import ArgmaxDraft, GreedyMatch, IndependentMatch, TopKMatch
from spectheory.verification.poisson import PoissonRace
from spectheory.verification.race import RaceVerification
from spectheory.verification.recursive import RecursiveRejection
from spectheory.verification.token import TokenVerification

Law = tuple[Interval, ...]
Top = TopLogProbs


class _Known(NamedTuple):
    """What is known of a rule: acceptance, alone and given the token, and rank laws; up to `most` candidates each."""

    acceptance: Callable[[Top, Top, int], Interval] | None = None
    given: Callable[[Top, Top, int, int], Interval] | None = None
    rank_pmf: Callable[[Top, Top, int], Law] | None = None
    rank_pmf_given: Callable[[Top, Top, int, int], Law] | None = None
    most: float = 1
    most_given: float = 1


_MANY = float("inf")
_TOKEN = _Known(
    lambda p, q, k: candidates.token_acceptance(p, q), lambda p, q, x, k: ranks.token_acceptance_given(p, q, x)
)
_RECURSIVE = _Known(
    candidates.recursive_acceptance,
    ranks.recursive_acceptance_given,
    ranks.recursive_rank_pmf,
    ranks.recursive_rank_pmf_given,
    most=_MANY,
    most_given=_MANY,
)

TABLE: dict[Rule, _Known] = {
    TokenVerification(): _TOKEN,
    BlockVerification(): _TOKEN,
    RaceVerification(): _Known(
        distinct_race_acceptance, lambda p, q, x, k: ranks.race_acceptance_given(p, q, x), most=_MANY
    ),
    PoissonRace(): _Known(
        candidates.poisson_race_acceptance,
        ranks.poisson_race_acceptance_given,
        ranks.poisson_rank_pmf,
        ranks.poisson_rank_pmf_given,
        most=_MANY,
        most_given=_MANY,
    ),
    RecursiveRejection(): _RECURSIVE,
    RecursiveRejection(replacement=False): _TOKEN,
    KSeq(): _Known(candidates.kseq_acceptance, most=_MANY),
    GumbelList(): _Known(candidates.gumbel_list_acceptance, most=_MANY),
    IndependentMatch(): _Known(
        lambda p, q, k: matching.independent_acceptance(p, q),
        lambda p, q, x, k: ranks.independent_acceptance_given(q, x),
    ),
    ArgmaxDraft(): _Known(matching.top_k_acceptance, lambda p, q, x, k: matching.top_k_acceptance_given(q, x, k)),
    TopKMatch(): _Known(
        matching.top_k_acceptance,
        lambda p, q, x, k: matching.top_k_acceptance_given(q, x, k),
        most=_MANY,
        most_given=_MANY,
    ),
    GreedyMatch(): _Known(
        lambda p, q, k: matching.greedy_acceptance(p, q), lambda p, q, x, k: matching.greedy_acceptance(p, q)
    ),
}
"""What is known of each rule; a new rule's bounds are entered here and nowhere else."""


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
    entry = TABLE.get(rule, _Known()) if isinstance(rule, Hashable) else _Known()
    found: Callable[..., Any] | None = getattr(entry, what)
    if found is None or k > getattr(entry, most):
        asked = {"acceptance": "acceptance", "given": "acceptance given the output"}.get(what, "law of the rank")
        of = f" of {k} candidates" if found else ""
        raise SettingError(
            f"the {asked}{of} of rule {rule.name!r} has no certified interval",
            limit="top-m log-probabilities do not bound it here",
            remedy="use full pmfs" + (", or one candidate" if found else ""),
        )
    return found
