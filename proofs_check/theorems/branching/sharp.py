"""B2': the sharpest closed form, by duality."""

from __future__ import annotations

from proofs_check.evidence.entries import Control
from proofs_check.evidence.judge import judge_all
from proofs_check.evidence.simulated import FOREST, TREES
from proofs_check.prelude import *
from proofs_check.statement import calculus
from proofs_check.statement.calculus import algebra
from proofs_check.theorems.branching import steps as lorden
from proofs_check.theorems.branching.branching_forms import *
from proofs_check.theorems.branching.random_pmf_trees import *
from proofs_check.theorems.branching.steps import DUALITY, MANY_TO_ONE, dual_at, growth, integrated
from simulations.models.families import CAPACITIES, FAMILIES, MIXED, population
from spectheory.limits import StepLaw, random_tree_value

# The branching bounds against best trees of random pmfs (:mod:`simulations.models.families`), simulated.


PMFS, TOKENS = 256, 32
"""Size of the populations of the ledger; those of the figure are larger."""


@cache
def _simulated(name: str, capacity: int, trees: int) -> Fraction:
    """The upper end of the 95% interval of E[X]."""
    pmfs = population(name, PMFS, TOKENS)
    return Fraction(
        random_tree_value(lambda rng, n: pmfs[rng.integers(len(pmfs), size=n)], capacity, trees, rng=capacity).high
    )


def family_cases(effort: Effort) -> Iterator[Case]:
    """Every family at every capacity: its moments, and the upper end of the 95% interval of E[X]."""
    for name in FAMILIES:
        law = StepLaw.from_pmfs(population(name, PMFS, TOKENS))
        for capacity in CAPACITIES:
            trees = effort.pick(24, 240) * (4 if name == MIXED else 1)
            yield {
                "family": name,
                "capacity": Fraction(capacity),
                "mu": Fraction(law.mean),
                "mu2": Fraction(law.second_moment),
                "high": _simulated(name, capacity, trees),
            }


def comparison(family: str, capacity: Fraction, mu: Fraction, mu2: Fraction, high: Fraction) -> Iterator[Compared]:
    """E[X] below B2', B2' below B2, and from P = 64 on B1's leading term more than twice B2'."""
    form = sharp_form(mu, mu2, capacity)
    yield at_most(high, form)
    yield at_most(form, lorden_form(mu, mu2, capacity))
    yield at_most(form, best_t_form(mu, mu2, capacity))
    if family and capacity >= 64:
        yield at_least(leading(mu, mu2, capacity), 2 * form)


def families_below() -> Evidence:
    """Simulated best trees of six families below B2', at every capacity."""
    claim = Claim(
        "the 95% interval of E[X] lies below B2', B2' below B2, and B1's leading term is more than twice B2' from P "
        "= 64",
        comparison,
    )
    wrong = Claim(
        "E[X] is at most half of B2'",
        lambda family, capacity, mu, mu2, high: at_most(high, sharp_form(mu, mu2, capacity) / 2),
    )
    over = f"six families of random pmfs, {PMFS} pmfs on {TOKENS} tokens each, P = 1 to 4096, fixed seeds"
    return Evidence(
        "simulation",
        f"{claim.says}, {over}",
        lambda effort: judge_all(claim, family_cases(effort)),
        Control(wrong.says, lambda effort: judge_all(wrong, family_cases(effort))),
    )


def slope_in_t(d: Any, mu: Any, K: Any) -> tuple[Any, Any]:
    """The derivative in t at P = K + d, and (1 - e^(t* - t))/mu with t* = log(1 + mu d)."""
    t = algebra().Symbol("t", real=True)
    best_t = algebra().log(1 + mu * d)
    return calculus.slope(dual_at(t, K + d, mu, K), t), (1 - algebra().exp(best_t - t)) / mu


def log_integral(x: Any) -> tuple[Any, Any]:
    """log(1 + x), and the integral of 1/(1 + u) over 0 < u < x."""
    u = algebra().Symbol("u", positive=True)
    return algebra().log(1 + x), integral(1 / (1 + u), u, 0, x)


LOGARITHM: tuple[Step, ...] = (
    same("log(1 + x) is the integral of 1/(1 + u) over 0 < u < x", log_integral),
    valid("1/(1 + u) <= 1, so log(1 + x) <= x", lambda u: at_most(1 / (1 + u), 1), lambda u: [u >= 0]),
)
"""log(1 + x) <= x."""

SHARP: tuple[Step, ...] = (
    same("with U(s) <= s/mu + K inside: E[X] <= t/mu + K - 1/mu + (P - K + 1/mu) e^-t", integrated),
    same(
        "its slope in t is (1 - e^(t*-t))/mu, t* = log(1 + mu (P - K)), which is >= 0 if P >= K; if not, X <= P",
        slope_in_t,
    ),
    same(
        "the value at t* is K + log(1 + mu (P - K))/mu, written with d = P - K",
        lambda d, mu, K: (dual_at(algebra().log(1 + mu * d), K + d, mu, K), K + algebra().log(1 + mu * d) / mu),
    ),
    *LOGARITHM,
    valid(
        "y = log(1 + mu (P - K)) <= mu (P - K): the form is at most P",
        lambda y, mu, K, P: at_most(K + y / mu, P),
        lambda y, mu, K, P: [mu > 0, y <= mu * (P - K)],
    ),
    valid(
        "1 + mu (P - K) <= P (1 + mu), so y <= log P + log(1 + mu) <= log P + mu: at most log P/mu + mu2/mu^2",
        lambda mu, K, P: at_most(1 + mu * (P - K), P * (1 + mu)),
        lambda mu, K, P: [mu > 0, K >= 0, P >= 1],
    ),
    valid(
        "1 + mu (P - K) <= P mu (1 + 1/(P mu)) and 1/(P mu) <= 1, so y <= log(P mu) + 1: at most (log(P mu) + 1)/mu "
        "+ K",
        lambda mu, K, P: [at_most(1 + mu * (P - K), P * mu * (1 + 1 / (P * mu))), at_most(1 / (P * mu), 1)],
        lambda mu, K, P: [mu > 0, K >= 0, P * mu >= 1],
    ),
    same("as P grows the form is log P/mu to first order", growth),
)
"""From Lorden's inequality to the form, and its place below both forms of B2."""


def dual(pmfs: Ensemble, capacity: Fraction, value: Fraction, c: Fraction) -> Compared:
    """A value against sum_n E(1 - c/W_n)+ + P c."""
    inside = sum(number * (1 - c / weight) for weight, number in visits(pmfs, c).items())
    return at_most(value, inside + capacity * c)


EVERY_T = Claim("E[X] <= sum_n E(1 - e^-(t-S_n))+ + P e^-t", dual, (UNCERTAIN, MODERATE))
EVERY_T_WRONG = Claim(
    "E[X] <= sum_n E(1 - e^-(t-S_n))+ + (P-1) e^-t",
    lambda capacity, **v: dual(capacity=capacity - 1, **v),
    (UNCERTAIN, MODERATE),
)

BY_DEPTH = Claim(
    "the same where all prefixes of one length share their pmf, drawn anew for each length",
    lambda pmfs, capacity, c: dual(pmfs, capacity, mean_best_by_depth(pmfs, capacity), c),
)
ONE_FOR_ALL = Claim(
    "the same where all prefixes share one pmf, drawn once",
    lambda pmfs, capacity, c: dual(pmfs, capacity, total(best_of_one(pmf, capacity) for pmf in pmfs) / len(pmfs), c),
)


def form_holds(pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real, kept: int = 1) -> Compared:
    """E[X] against the form; with `kept` 0 without K."""
    mu, mu2 = moments(pmfs)
    return at_most(value, sharp_form(mu, mu2 if kept else mu * mu, capacity))


FORM = Claim("E[X] <= K + log(1 + mu (P - K))/mu if P >= K, else P", form_holds, (UNCERTAIN,))
FORM_WRONG = Claim("E[X] <= log(1 + mu P)/mu, without K", lambda **case: form_holds(**case, kept=0), (UNCERTAIN,))


ORDER = Claim(
    "B2' is at most either form of B2, and P",
    lambda mu, mu2, capacity: [
        at_most(sharp_form(mu, mu2, capacity), other)
        for other in (lorden_form(mu, mu2, capacity), best_t_form(mu, mu2, capacity), capacity)
    ],
)
ORDER_WRONG = Claim(
    "B2' is at most log P/mu + mu2/(2 mu^2)",
    lambda mu, mu2, capacity: at_most(sharp_form(mu, mu2, capacity), lorden_form(mu, mu2 / 2, capacity)),
)


def sharp_library(mu: Real, mu2: Real, capacity: Real, shift: int = 0) -> Compared:
    """The library's form; `shift` is the control's."""
    return computed(library_form(mu, mu2, capacity, "sharp"), sharp_form(mu, mu2, capacity + shift))


# B2'/dependent: the i.i.d. reading of B2' is no bound on dependent text; B6 is.


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
    """First by tokens, P and the share of certain text."""
    for tokens in (2, 3):
        for capacity in range(1, 7):
            for share in (Fraction(1, 2), Fraction(1, 3), Fraction(2, 3)):
                yield regimes(tokens, share, capacity)


def read_iid(
    pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real, fresh: Real, drawn_anew: bool = False
) -> Compared:
    """E[X] against B2' with the moments of all contexts."""
    return at_most(fresh if drawn_anew else value, sharp_form(*moments(pmfs), capacity))


FRESH = Claim("it does where every prefix draws its regime anew", lambda **case: read_iid(**case, drawn_anew=True))

LEAVE, DIE, NODES = Fraction(1, 1000), 50, 64
ROWS = tuple((first, *[(1 - first) / DIE] * DIE) for first in (1 - LEAVE, LEAVE))
"""What follows an easy token (the first one) and a hard one (any other)."""


def sticky_best(regime: int) -> Fraction:
    """E[X] of the best tree after a token of a regime."""
    return best(lambda prefix: ROWS[min(prefix[-1], 1) if prefix else regime], NODES)


def sticky_text(regime: int, c: Fraction) -> Fraction:
    """B6 after a token of a regime: the law of (regime, probability of the text so far), token by token."""
    texts, bound = {(regime, Fraction(1)): Fraction(1)}, NODES * c
    for _ in range(NODES):
        texts = law(
            ((after, weight * ROWS[now][after]), chance * share)
            for (now, weight), chance in texts.items()
            for after, share in ((0, ROWS[now][0]), (1, 1 - ROWS[now][0]))
            if weight * ROWS[now][after] > c
        )
        bound += sum(chance * (1 - c / weight) for (_, weight), chance in texts.items())
    return bound


def sticky_cases(effort: Effort) -> Iterator[Case]:
    """Two regimes of 1,000 tokens that show in the tokens, P = 64."""
    value = (sticky_best(0) + sticky_best(1)) / 2
    text = (sticky_text(0, Fraction(1, NODES)) + sticky_text(1, Fraction(1, NODES))) / 2
    yield {"pmfs": ROWS, "capacity": Fraction(NODES), "value": value, "text": text}


def sticky(pmfs: Sequence[Sequence[Real]], capacity: Real, value: Real, text: Real, beyond: bool = False) -> Compared:
    """E[X] against the largest i.i.d. form times seven, or against B6."""
    if beyond:
        return at_most(value, text)
    mu, mu2 = moments(pmfs)
    forms = (lorden_form(mu, mu2, capacity), best_t_form(mu, mu2, capacity), sharp_form(mu, mu2, capacity))
    return at_most(value, 7 * max(forms, key=lambda form: as_floats(form)[0]))


B2_PRIME = Entry(
    id="B2'",
    title="Branching bound by duality: the sharpest closed form",
    kind="upper bound",
    plain="E[X] <= K + log(1 + mu (P - K))/mu if P >= K, else P: at most either form of B2, "
    "and log P/mu to first order",
    latex=r"E[X] \le K + \frac{\log(1 + \mu (P - K))}{\mu} \text{ if } P \ge K,\quad K = \frac{\mu_2}{\mu^2} - 1",
    assumptions=(
        "the surprisals along a text sampled from the target are i.i.d. with moments mu > 0 and mu2; prefixes off "
        "that text may depend on it and on each other",
        "the P prefixes are chosen without the target's sampling (B4)",
    ),
    calculators=("spectheory.limits.branching_bound",),
    evidence=(
        proof(
            "many-to-one, duality, Lorden's inequality, the best t, and log(1 + x) <= x",
            (*MANY_TO_ONE, *DUALITY, *lorden.PROOF, *SHARP),
        ),
        exact(
            EVERY_T, threshold_cases, over="E[X] and the walk in fractions, 1 to 3 pmfs, P up to 6", wrong=EVERY_T_WRONG
        ),
        exact(BY_DEPTH, shared_cases, wrong=ONE_FOR_ALL),
        certified(FORM, ensemble_cases, over="E[X] in fractions, 1 to 3 pmfs, P up to 6", wrong=FORM_WRONG),
        certified(ORDER, setting_cases, over="mu from 0.001 to 20, mu2/mu^2 up to 90, P up to 10^4", wrong=ORDER_WRONG),
        agreement(
            Claim("the library's form", sharp_library),
            setting_cases,
            over="mu from 0.001 to 20, mu2/mu^2 up to 90, P up to 10^4",
            wrong=Claim("the library's form, P one too large", lambda **case: sharp_library(**case, shift=1)),
        ),
        searched(
            FORM,
            drawn_ensembles,
            over="1 to 3 pmfs, P up to 5",
            spaces=(ensemble_space(1, 3, 2), ensemble_space(2, 2, 3)),
            wrong=FORM_WRONG,
        ),
        searched(ORDER, drawn_settings, over="moments and P", spaces=(setting_space(),), wrong=ORDER_WRONG),
        families_below(),
        simulated(
            "best trees of six families of random pmfs, P = 1, 8, 64",
            FOREST,
            stated("B2'"),
            wrong=("half of it", instead(stated("B2'"), lambda _, bound: bound / 2)),
            trials=TREES,
        ),
    ),
)

B2_PRIME_DEPENDENT = Entry(
    id="B2'/dependent",
    title="B2' on dependent text",
    kind="refuted",
    plain="E[X] <= K + log(1 + mu (P - K))/mu with the moments of all contexts, on any text",
    latex=r"E[X] \le K + \frac{\log(1 + \mu(P - K))}{\mu} \text{ on dependent text}",
    assumptions=("the surprisals along the text are stationary, not independent",),
    evidence=(
        counterexample(
            Claim("B2' with the moments of all contexts bounds E[X] on dependent text", read_iid),
            regime_cases,
            true=FRESH,
            kind="certified",
        ),
        counterexample(
            Claim("E[X] is at most seven times any i.i.d. form", sticky),
            sticky_cases,
            true=Claim("B6 bounds it", lambda **case: sticky(**case, beyond=True)),
            kind="certified",
        ),
    ),
    without={"exact": "moments are logarithms; E[X] is exact"},
)
