"""What speculative decoding can give a model pair: exact predictions, hard limits, and the evidence for both.

Every public function keeps this contract; a docstring states only what differs from it.

- Pmfs are arrays ``[..., V]`` of numpy or torch. `target` (p) and `draft` (q) share one vocabulary, leading dimensions
  broadcast, and the result ``[...]`` belongs to the same library. Nothing is renormalised.
- A token with p = q = 0 contributes nothing. Logarithms are natural: information is in nats. Times are in seconds.
- Inputs are checked once, where they come in. A :class:`~spectheory.errors.SpectheoryError` (a ``ValueError``) names
  the value, the limit and the remedy: ``PmfError`` for a row that is no pmf, ``ShapeError`` for shapes that do not fit,
  ``SettingError`` for a number out of its range, ``TextError`` for unusable texts, ``OutputError`` for a file that
  cannot be written.

Importing this package loads numpy alone; everything else is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spectheory.divergences import (
        chi_square,
        entropy,
        harmonic_mean_distance,
        harmonic_mean_similarity,
        hockey_stick,
        kl_divergence,
        renyi_divergence,
        second_log_moment,
        total_variation,
    )
    from spectheory.intervals import Interval
    from spectheory.judging import compare, gate, judge, noise
    from spectheory.logit_statistics import pair_statistics
    from spectheory.prediction import Prediction, bounds, plan, predict, rules, tree
    from spectheory.trace import Trace

_HOME = {
    "Interval": "intervals",
    "pair_statistics": "logit_statistics",
    "Prediction": "prediction",
    **dict.fromkeys(("bounds", "plan", "predict", "rules", "tree"), "prediction"),
    **dict.fromkeys(("compare", "gate", "judge", "noise"), "judging"),
    "Trace": "trace",
}

__all__ = [
    "Interval",
    "Prediction",
    "Trace",
    "bounds",
    "chi_square",
    "compare",
    "entropy",
    "gate",
    "harmonic_mean_distance",
    "harmonic_mean_similarity",
    "hockey_stick",
    "judge",
    "kl_divergence",
    "noise",
    "pair_statistics",
    "plan",
    "predict",
    "renyi_divergence",
    "rules",
    "second_log_moment",
    "total_variation",
    "tree",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'spectheory' has no attribute {name!r}")
    return getattr(importlib.import_module(f"spectheory.{_HOME.get(name, 'divergences')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
