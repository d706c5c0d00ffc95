"""B3: the branching bound from the renewal function."""

from __future__ import annotations

from proofs_check.forms.branching_forms import (
    ASSUMPTIONS,
    WALKED,
    arrays,
    drawn_moderate,
    ensemble_cases,
    ensemble_space,
    plain_bound,
)
from proofs_check.prelude import *
from proofs_check.proofs.branching import MANY_TO_ONE, TWO_THRESHOLDS
from proofs_check.twins.random_pmf_trees import Ensemble, heaviest
from spectheory.limits import StepLaw, renewal_bound

LEFT_LIMITS: tuple[Step, ...] = (
    TWO_THRESHOLDS[0],
    valid(
        "the same with w > c for the heavy ones: i w <= [w > c] w + c i, so U may be taken just below t: "
        "E[X] <= U(t-) + P e^-t; where U is flat P e^-t falls, so the least is at a jump",
        lambda w, c, i, heavy: at_most(i * w, heavy * w + c * i),
        lambda w, c, i, heavy: [w >= 0, i * (1 - i) == 0, heavy * (1 - heavy) == 0, (1 - heavy) * (w - c) <= 0, c >= 0],
    ),
    same(
        "the visits m_j of a lattice walk to j: the last step is a rest (f_0) or came from below, m_j = b + f_0 m_j "
        "with b what arrives from below; solved with d = f_1 + f_2 + ... = 1 - f_0: m_j = b/d",
        lambda b, f, g: (b / (f + g), b + (1 - f - g) * b / (f + g)),
    ),
)
"""From many-to-one to B3 and the recursion for U."""

BELOW_B3 = Claim("E[X] <= B3", lambda pmfs, capacity, value: at_most(value, plain_bound(pmfs, capacity, value)), WALKED)
BELOW_B3_WRONG = Claim(
    "E[X] <= B3 with P - 1",
    lambda pmfs, capacity, value: at_most(value, plain_bound(pmfs, capacity - 1, value)),
    WALKED,
)


def dyadic_cases(effort: Effort) -> Iterator[Case]:
    """Ensembles of pmfs in powers of one half, whose steps lie on a lattice of span log 2."""
    half, quarter, eighth = Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)
    rows = [
        (half, half, 0 * half, 0 * half),
        (half, quarter, eighth, eighth),
        (quarter,) * 4,
        (2 * half, *[0 * half] * 3),
    ]
    ensembles = [[row] for row in rows[:3]] + [[rows[0], rows[3]], [rows[1], rows[2]], rows, [rows[2], *rows[3:] * 3]]
    for pmfs in ensembles:
        for capacity in (1, 2, 7, 40, effort.pick(300, 3000)):
            yield {"pmfs": tuple(pmfs), "capacity": Fraction(capacity)}


def on_lattice(pmfs: Ensemble, capacity: Fraction, more: int = 0) -> Iterator[Compared]:
    """The library's B3' and B3 where the grid holds every step; `more` prefixes are the control's."""
    law = StepLaw.from_pmfs(arrays(pmfs))
    dual, plain = (renewal_bound(law, float(capacity), form=f, grid=math.log(2)) for f in ("dual", "plain"))
    for end in (dual.low, dual.high):
        yield computed(end, heaviest(pmfs, capacity + more))
    yield computed(plain.high, plain_bound(pmfs, capacity + more))


ENTRIES = (
    Entry(
        id="B3",
        title="Branching bound from the renewal function",
        kind="upper bound",
        plain="E[X] <= min over t of U(t-) + P e^-t; on a grid min over j of U(jh) + P e^-(j+1)h",
        latex=r"E[X] \le \min_t U(t^-) + P e^{-t}",
        assumptions=ASSUMPTIONS,
        calculators=("spectheory.limits.renewal_bound",),
        evidence=(
            proof("many-to-one, and the prefixes above and below a threshold", (*MANY_TO_ONE, *LEFT_LIMITS)),
            exact(
                BELOW_B3, ensemble_cases, over="E[X] and U in fractions, 1 to 3 pmfs, P up to 6", wrong=BELOW_B3_WRONG
            ),
            agreement(
                Claim("the library's B3 and B3' on the lattice", on_lattice),
                dyadic_cases,
                over="pmfs in powers of 1/2, P up to 300",
                wrong=Claim("the library's bounds, one prefix more", lambda **case: on_lattice(**case, more=1)),
            ),
            searched(
                BELOW_B3,
                drawn_moderate,
                over="1 to 3 pmfs, P up to 4",
                spaces=(ensemble_space(2, 2, 2),),
                wrong=BELOW_B3_WRONG,
            ),
        ),
    ),
)
