"""The law of one step of the surprisal walk: input of the numeric branching bound (B3, B3')."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import instance
from spectheory.distributions import Floats, as_integers, as_numpy, validate_pmf
from spectheory.errors import PmfError, SettingError, ShapeError, TextError
from spectheory.limits.inputs import checked_surprisals


@dataclass(frozen=True, eq=False)
class StepLaw:
    r"""Law of the surprisal :math:`-\log p_Y`, :math:`Y \sim p`, averaged over the contexts.

    `steps` ``[A]`` are surprisals in nats, finite and >= 0; `weights` ``[A]`` are their probabilities. If the law is an
    estimate, `draws` ``[A]`` numbers the independent draw (a context, a text) of each atom; without it the law is
    known.

    Examples
    --------
    >>> round(StepLaw.from_pmfs([[0.5, 0.5], [1.0, 0.0]]).mean, 6)
    0.346574
    """

    steps: Floats
    weights: Floats
    draws: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for name, error in (("steps", SettingError), ("weights", PmfError)):
            object.__setattr__(self, name, as_numpy(getattr(self, name), name, error))
        shapes = {np.shape(self.steps), np.shape(self.weights)}
        if self.draws is not None:
            object.__setattr__(self, "draws", as_integers(self.draws, "draws"))
            shapes.add(np.shape(self.draws))
        if len(shapes) > 1 or np.ndim(self.steps) != 1:
            raise ShapeError(
                f"steps, weights and draws have shapes {sorted(shapes)}",
                limit="one axis, the same for all",
                remedy="flatten them",
            )
        validate_pmf(self.weights, "weights")
        if not np.all((self.steps >= 0) & np.isfinite(self.steps)):
            worst = self.steps[~((self.steps >= 0) & np.isfinite(self.steps))][0]
            raise SettingError(
                f"a step is {worst:g}", limit="must be finite and >= 0", remedy="steps are -log p, in nats"
            )

    @property
    def estimated(self) -> bool:
        """Whether the law is estimated from a sample of contexts or tokens."""
        return self.draws is not None

    @property
    def mean(self) -> float:
        """Mean step mu = E[H(p)], nats."""
        return float(self.weights @ self.steps)

    @property
    def second_moment(self) -> float:
        """Second moment of the step, mu2 = E[M2(p)], nats squared."""
        return float(self.weights @ self.steps**2)

    @classmethod
    def from_pmfs(cls, pmfs: Any, shares: Any = None, *, sampled: bool = False) -> StepLaw:
        r"""Every atom :math:`-\log p_y` with weight :math:`p_y`, averaged over the contexts (exact).

        `pmfs` ``[..., V]`` are the target's, one per context; `shares` ``[...]`` are the contexts' probabilities (None:
        equal). `sampled` contexts are independent draws of a larger population: the law is then an estimate.

        Examples
        --------
        >>> law = StepLaw.from_pmfs([[0.5, 0.5], [0.25, 0.75]], [0.9, 0.1])
        >>> law.weights.round(3).tolist()
        [0.45, 0.45, 0.025, 0.075]
        """
        instance("sampled", sampled, bool, remedy="True where the contexts are a sample")
        p = as_numpy(validate_pmf(pmfs))
        p = p.reshape(-1, p.shape[-1])
        if not len(p):
            raise ShapeError("there is no pmf", limit="needs one context or more", remedy="pass an array [..., V]")
        known = np.full(len(p), 1 / len(p)) if shares is None else np.ravel(as_numpy(shares, "shares"))
        if len(known) != len(p):
            raise ShapeError(
                f"{len(known)} shares for {len(p)} pmfs", limit="needs one per pmf", remedy="leave them out"
            )
        context, token = np.nonzero(p)
        chances = p[context, token]
        # Rounding may put an entry above one, with a negative surprisal.
        return cls(np.maximum(-np.log(chances), 0.0), chances * known[context], context if sampled else None)

    @classmethod
    def from_surprisals(cls, texts: Sequence[Any]) -> StepLaw:
        r"""One sampled step per position of target-sampled texts: an *estimate* of the law (statistical).

        Each text is :math:`-\log p(x_n)` at each position, ``[tokens]``, nats. Only the log-probabilities of the text's
        own tokens are needed; :meth:`from_pmfs` has less noise where the full pmfs are known. Texts count as
        independent draws, the positions of one text do not.

        Examples
        --------
        >>> StepLaw.from_surprisals([[0.5, 1.5], [1.0]]).mean
        1.0
        """
        walks = checked_surprisals(texts)
        steps = np.concatenate([np.zeros(0), *walks])
        if not len(steps):
            raise TextError(f"there is no token in {len(walks)} texts", limit="needs one", remedy="pass longer texts")
        return cls(steps, np.full(len(steps), 1 / len(steps)), np.repeat(np.arange(len(walks)), [*map(len, walks)]))

    @classmethod
    def from_surprisal_histogram(cls, edges: Any, mass: Any) -> StepLaw:
        r"""The law known up to bins, each step taken at its bin's *lower* edge.

        `edges` ``[B + 1]`` increase from a value >= 0; the last may be infinite. `mass` ``[B]`` is the probability of a
        step in each bin (:math:`\sum p_y`, not a count of tokens). Steps rounded down raise U everywhere, so a bound
        for this law is a bound for the original one.

        Examples
        --------
        >>> StepLaw.from_surprisal_histogram([0.0, 1.0, float("inf")], [0.25, 0.75]).mean
        0.75
        """
        bounds, weights = as_numpy(edges, "edges", SettingError), as_numpy(mass, "mass")
        if bounds.ndim != 1 or weights.shape != (len(bounds) - 1,):
            raise ShapeError(
                f"edges have shape {bounds.shape}, mass {weights.shape}",
                limit="one more edge than bins",
                remedy="numpy.histogram returns both",
            )
        if not np.all(bounds[1:] > bounds[:-1]):
            raise SettingError("edges do not increase", limit="each must exceed the one before", remedy="sort them")
        return cls(bounds[:-1], weights)


def a_step_law(law: StepLaw) -> StepLaw:
    """Check that an argument is the law of a step."""
    return instance("the step law", law, StepLaw, remedy="spectheory.limits.StepLaw.from_pmfs makes one")
