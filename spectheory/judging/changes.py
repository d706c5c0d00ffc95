"""Other ways in which a model's logits may have become pmfs, described by the settings applied one after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from spectheory.distributions import Sampling

Steps = tuple[Sampling, ...]
"""Settings that are applied one after another, each to the log-probabilities that the one before it leaves."""


@dataclass(frozen=True)
class LogitChange:
    """A departure from the stated sampling settings of one model.

    `name` is short, `says` what was done, as the end of a sentence about the draft or the target; `steps` gives what
    was applied in place of the stated settings.

    Examples
    --------
    >>> _cut_to(10).steps(Sampling(0.5))
    (Sampling(temperature=0.5, top_k=10, top_p=None, min_p=None),)
    >>> TEMPERATURE_TWICE.differs(Sampling(1.0)), TEMPERATURE_TWICE.differs(Sampling(0.5))
    (False, True)
    """

    name: str
    says: str
    steps: Callable[[Sampling], Steps]

    def differs(self, sampling: Sampling) -> bool:
        """Whether it can change the pmf under these settings; at temperature 0 none changes the first choice."""
        return sampling.temperature > 0 and self.steps(sampling) != (sampling,)


def _cut_to(most: int) -> LogitChange:
    """The pmf cut to its most probable tokens, as engines do that sample a draft with a filter of their own."""
    return LogitChange(
        f"top {most}",
        f"cut to its {most} most probable tokens",
        lambda stated: (replace(stated, top_k=min(most, stated.top_k or most)),),
    )


def _filters_first(stated: Sampling) -> Steps:
    """Top-k keeps the same tokens at any temperature; top-p and min-p do not."""
    if stated.temperature == 1 or not (_nucleus(stated) or stated.min_p):
        return (stated,)
    return replace(stated, temperature=1.0), Sampling(stated.temperature)


def _filters_twice(stated: Sampling) -> Steps:
    """Top-k and min-p keep what they left; top-p of what it left is smaller."""
    return (stated, replace(stated, temperature=1.0)) if _nucleus(stated) else (stated,)


def _nucleus(stated: Sampling) -> bool:
    return stated.top_p not in (None, 1)


NO_TEMPERATURE = LogitChange(
    "no temperature", "sampled without the temperature", lambda stated: (replace(stated, temperature=1.0),)
)
TEMPERATURE_TWICE = LogitChange(
    "temperature twice",
    "divided by the temperature twice",
    lambda stated: (replace(stated, temperature=stated.temperature**2),),
)
NO_FILTERS = LogitChange("no filters", "sampled without the filters", lambda stated: (Sampling(stated.temperature),))
NO_SETTINGS = LogitChange("no settings", "sampled without temperature and filters", lambda _: (Sampling(),))
FILTERS_FIRST = LogitChange("filters first", "filtered before the temperature was applied", _filters_first)
FILTERS_TWICE = LogitChange("filters twice", "filtered twice", _filters_twice)

SETTINGS_CHANGES = (NO_TEMPERATURE, TEMPERATURE_TWICE, NO_FILTERS, NO_SETTINGS, FILTERS_FIRST, FILTERS_TWICE)
"""Settings that are left out, applied in another order, or applied twice."""
DRAFT_CUTS = tuple(_cut_to(most) for most in (10, 20, 40, 50))
"""Cuts that engines apply by default: llama.cpp's draft 10, its sampler 40, generation settings of checkpoints 20 and
50."""
