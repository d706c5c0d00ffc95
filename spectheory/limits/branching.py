"""B1-B3', B5: limits of deterministic drafts (pankratov2026), conditional pmfs i.i.d. across prefixes.

X counts the correctly predicted tokens of a call, *without* the recovered or bonus token: tokens per call is X + 1. A
deterministic drafter verifies P prefixes per call, chosen without looking at the target's sampling. A drafter that
samples may exceed these limits (B4): with draft = target token verification accepts everything.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from spectheory.checks import BEYOND, amount, choice
from spectheory.errors import SettingError
from spectheory.limits.inputs import checked_capacity
from spectheory.limits.renewal import renewal_bound
from spectheory.limits.step_law import StepLaw, a_step_law

Form = Literal["published", "lorden", "best_t", "sharp", "numeric"]


def branching_bound(
    mu: float | None,
    mu2: float | None,
    capacity: float,
    form: Form = "sharp",
    *,
    step_law: StepLaw | None = None,
) -> float:
    r"""Upper bound on the correctly predicted tokens E[X] of a call, bonus token left out (B1, B2, B2', B3').

    `mu` = E[H(p)] in nats and `mu2` = E[M2(p)] in nats squared are the target's mean entropy and mean second
    log-moment; None for both takes them from the step law. `capacity` is P, the draft nodes per call, root excluded.
    With :math:`K = \mu_2/\mu^2 - 1`, and natural logarithms:

    - ``published`` (B1, ``pankratov2026``): :math:`(\mu+\mu_2)\log P/\mu^2`, the leading term alone: an upper bound for
      P >= 2; at P = 1 it is 0 and **not** a bound. The paper's additive constant is not known to us
      (:math:`\mu_2/\mu^2` is enough), nor is the base of its logarithms: with every quantity in base b the slope in log
      P is :math:`(1 + \mu_2/(\mu\ln b))/\mu`, moments in nats; here b = e. The slope of every other form is
      :math:`1/\mu` in every base;
    - ``lorden`` (B2): :math:`\log P/\mu + \mu_2/\mu^2`;
    - ``best_t`` (B2): :math:`(\log P + \log\mu + 1)/\mu + K` for :math:`P\mu \ge 1`, else P;
    - ``sharp`` (B2'): :math:`K + \log(1+\mu(P-K))/\mu` for :math:`P \ge K`, else P;
    - ``numeric`` (B3'): :func:`spectheory.limits.renewal_bound` of `step_law`, cut at ``sharp``. Only its grid can make
      it exceed ``sharp``, which is B3' with U replaced by Lorden's bound :math:`t/\mu + K`.

    Every form is at most P. Assumes conditional pmfs i.i.d. across prefixes; on real text it is the i.i.d. *reading*
    (:func:`~spectheory.limits.branching_bound_from_text` needs no such assumption). From an estimated law the value is
    an estimate; :func:`spectheory.limits.renewal_bound` gives its interval.

    Examples
    --------
    >>> round(branching_bound(1.0, 1.5, 64), 4)
    4.6667
    >>> branching_bound(0.0, 0.0, 64)
    64.0
    >>> fair = StepLaw.from_pmfs([0.5, 0.5])
    >>> [round(branching_bound(None, None, 62, form, step_law=fair), 3) for form in ("sharp", "numeric")]
    [5.459, 5.0]
    """
    choice("form", form, get_args(Form), remedy="sharp is the tightest closed form")
    if step_law is not None:
        a_step_law(step_law)
    capacity = checked_capacity(capacity)
    mu, mu2 = _moments(mu, mu2, step_law)
    if form != "numeric":
        return min(_closed_form(mu, mu2, capacity, form), float(capacity))
    if step_law is None:
        raise SettingError(
            "step_law is None",
            limit="numeric needs the law of a step",
            remedy="pass spectheory.limits.StepLaw.from_pmfs(pmfs)",
        )
    return min(renewal_bound(step_law, capacity).best, _closed_form(mu, mu2, capacity, "sharp"), float(capacity))


def _moments(mu: float | None, mu2: float | None, law: StepLaw | None) -> tuple[float, float]:
    """The two moments, as given or from the law."""
    if mu is None or mu2 is None:
        if law is None or mu is not mu2:
            raise SettingError(
                f"mu is {mu}, mu2 is {mu2}",
                limit="needs both, or neither and a step law",
                remedy="pass spectheory.limits.StepLaw.from_pmfs(pmfs)",
            )
        return law.mean, max(law.second_moment, law.mean**2)
    mu, mu2 = (
        amount(name, value, below=BEYOND, remedy="give it in nats") for name, value in (("mu", mu), ("mu2", mu2))
    )
    if not mu2 >= mu * mu * (1 - 1e-12):
        raise SettingError(
            f"mu is {mu:g}, mu2 is {mu2:g}",
            limit="needs mu >= 0 and mu2 >= mu^2",
            remedy="mu2 is the mean of sum p log^2 p, in nats squared",
        )
    if law and not (math.isclose(mu, law.mean, rel_tol=_SAME) and math.isclose(mu2, law.second_moment, rel_tol=_SAME)):
        raise SettingError(
            f"mu is {mu:g}, mu2 is {mu2:g}",
            limit=f"the step law has {law.mean:g} and {law.second_moment:g}",
            remedy="leave the moments out (None)",
        )
    return mu, mu2


_SAME = 1e-6
"""Relative difference allowed between given moments, from single-precision pmfs, and those of the law."""


def _closed_form(mu: float, mu2: float, capacity: float, form: Form) -> float:
    """One of the closed forms, before it is cut at P."""
    if mu == 0:
        return float(capacity)
    spread = mu2 / mu / mu - 1  # mu squared may underflow
    if form == "published":
        return (1 + mu2 / mu) * math.log(capacity) / mu
    if form == "lorden":
        return math.log(capacity) / mu + spread + 1
    if form == "best_t":
        return (math.log(capacity * mu) + 1) / mu + spread if capacity * mu >= 1 else capacity
    return spread + math.log1p(mu * (capacity - spread)) / mu if capacity >= spread else capacity


def branching_speedup(predicted: float, step: float, verification: float, draft: float = 0.0) -> float:
    r"""Upper bound on the speed-up of a deterministic drafter over plain decoding (B5, ``pankratov2026``).

    .. math:: \frac{(E[X]+1)\, t_\text{target}(1)}{t_\text{target}(P+1) + t_\text{draft}}

    `predicted` bounds E[X] (any form here, or B6). The times, in seconds, are `step` (a plain decoding step),
    `verification` (the target's pass on the P drafts and the token before them) and `draft` (drafting).

    Examples
    --------
    >>> branching_speedup(3.0, 0.02, 0.025, 0.015)
    2.0
    """
    remedy = "times are in seconds"
    predicted = amount("predicted", predicted, below=BEYOND, remedy=remedy)
    draft = amount("draft", draft, below=BEYOND, remedy=remedy)
    step = amount("step", step, positive=True, below=BEYOND, remedy=remedy)
    verification = amount("verification", verification, positive=True, below=BEYOND, remedy=remedy)
    return (predicted + 1) * step / (verification + draft)
