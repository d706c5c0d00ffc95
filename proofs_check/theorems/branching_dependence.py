"""B2'/dependent: the i.i.d. reading of B2' is no bound on dependent text; B6 is."""

from __future__ import annotations

from proofs_check.forms.branching_forms import as_floats, best_t_form, lorden_form, sharp_form
from proofs_check.prelude import *
from proofs_check.twins.random_pmf_trees import best, best_of_one, mean_best, moments


def regimes(tokens: int, share: Fraction, capacity: int) -> Case:
    """One token for ever with chance `share`, else a fair die of that many tokens for ever: E[X], and that of B2'."""
    certain = (Fraction(1), *[Fraction(0)] * (tokens - 1))
    die = (Fraction(1, tokens),) * tokens
    easy, hard = share.numerator, share.denominator - share.numerator
    value = share * capacity + (1 - share) * best_of_one(die, capacity)
    return {
        "pmfs": (certain,) * easy + (die,) * hard,
        "capacity": Fraction(capacity),
        "value": value,
        "fresh": mean_best((certain,) * easy + (die,) * hard, capacity),
    }


def regime_cases(_: Effort) -> Iterator[Case]:
    """By the number of tokens, P, and the share's denominator."""
    for tokens in (2, 3):
        for capacity in range(1, 7):
            for share in (Fraction(1, 2), Fraction(1, 3), Fraction(2, 3)):
                yield regimes(tokens, share, capacity)


def read_iid(
    pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real, fresh: Real, drawn_anew: bool = False
) -> Compared:
    """E[X] against B2' with the moments of all contexts."""
    return at_most(fresh if drawn_anew else value, sharp_form(*moments(pmfs), capacity))


DEPENDENT = Claim("B2' with the moments of all contexts bounds E[X] on dependent text", read_iid)
FRESH = Claim("it does where every prefix draws its regime anew", lambda **case: read_iid(**case, drawn_anew=True))

LEAVE, DIE, NODES = Fraction(1, 1000), 50, 64
ROWS = tuple((first, *[(1 - first) / DIE] * DIE) for first in (1 - LEAVE, LEAVE))
"""What follows an easy token (the first one) and a hard one (any other)."""


def sticky_best(regime: int) -> Fraction:
    """E[X] of the best tree after a token of a regime."""
    return best(lambda prefix: ROWS[min(prefix[-1], 1) if prefix else regime], NODES)


def sticky_text(regime: int, c: Fraction) -> Fraction:
    """B6 after a token of a regime: the law of (regime, probability of the text so far), token by token."""
    law = {(regime, Fraction(1)): Fraction(1)}
    bound = NODES * c
    for _ in range(NODES):
        following: dict[tuple[int, Fraction], Fraction] = {}
        for (now, weight), chance in law.items():
            easy, hard = ROWS[now][:2]
            for after, share, token in ((0, easy, easy), (1, 1 - easy, hard)):
                if weight * token > c:
                    key = (after, weight * token)
                    following[key] = following.get(key, Fraction(0)) + chance * share
        law = following
        bound += sum(chance * (1 - c / weight) for (_, weight), chance in law.items())
    return bound


def sticky_cases(effort: Effort) -> Iterator[Case]:
    """Two regimes that show in the tokens and last 1,000 tokens each, P = 64: the best trees, and B6 at t = log P."""
    value = (sticky_best(0) + sticky_best(1)) / 2
    text = (sticky_text(0, Fraction(1, NODES)) + sticky_text(1, Fraction(1, NODES))) / 2
    yield {"pmfs": ROWS, "capacity": Fraction(NODES), "value": value, "text": text}


def sticky(pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real, text: Real, own: bool = False) -> Compared:
    """E[X] against the largest i.i.d. form times seven, or against B6."""
    if own:
        return at_most(value, text)
    mu, mu2 = moments(pmfs)
    forms = (lorden_form(mu, mu2, capacity), best_t_form(mu, mu2, capacity), sharp_form(mu, mu2, capacity))
    return at_most(value, 7 * max(forms, key=lambda form: as_floats(form)[0]))


ENTRIES = (
    Entry(
        id="B2'/dependent",
        title="B2' on dependent text",
        kind="refuted",
        plain="E[X] <= K + log(1 + mu (P - K))/mu with the moments of all contexts, on any text",
        latex=r"E[X] \le K + \frac{\log(1 + \mu(P - K))}{\mu} \text{ on dependent text}",
        assumptions=("the surprisals along the text are stationary, not independent",),
        evidence=(
            counterexample(
                DEPENDENT,
                regime_cases,
                over="first by tokens, P and the share of certain text",
                true=FRESH,
                kind="certified",
            ),
            counterexample(
                Claim("E[X] is at most seven times any i.i.d. form", sticky),
                sticky_cases,
                over="two regimes of 1,000 tokens that show in the tokens, P = 64",
                true=Claim("B6 bounds it", lambda **case: sticky(**case, own=True)),
                kind="certified",
            ),
        ),
        without={"exact": "moments are logarithms; E[X] is exact"},
    ),
)
