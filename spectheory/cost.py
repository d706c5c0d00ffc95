"""Seconds: what a call costs, as a constant ratio (C1) or from measured latencies (C2)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.files import write_whole
from spectheory.intervals import Interval, weakest

LATENCY_SCHEMA = 1


def iid_tokens_per_call(alpha: float, k: int) -> float:
    r"""Expected tokens per call of a chain when every draft is accepted independently, :math:`\sum_{i=0}^k\alpha^i`.

    C1 (``leviathan2023``), exact under its assumption of i.i.d. acceptances. The recovered or bonus token counts.
    On real text acceptances are mixed and dependent, and this formula errs in either direction.

    Parameters
    ----------
    alpha : float
        Acceptance rate, in [0, 1].
    k : int
        Drafted tokens per call, at least 1.

    Raises
    ------
    SettingError
        If an argument is out of range.

    Examples
    --------
    >>> iid_tokens_per_call(0.5, 2)
    1.75
    """
    _check_c1(alpha, k, 0.0)
    tokens = 1.0
    for _ in range(k):
        tokens = tokens * alpha + 1
    return tokens


def iid_speedup(alpha: float, k: int, c: float) -> float:
    r"""Speed-up of a chain under i.i.d. acceptances, :math:`\sum_{i=0}^k\alpha^i/(kc+1)` (C1, ``leviathan2023``).

    Exact if acceptances are i.i.d., a draft step costs c target steps, and the target checks k + 1 tokens in the
    time of one.

    Parameters
    ----------
    alpha : float
        Acceptance rate, in [0, 1].
    k : int
        Drafted tokens per call, at least 1.
    c : float
        Draft step over target step, >= 0.

    Raises
    ------
    SettingError
        If an argument is out of range.

    Examples
    --------
    >>> round(iid_speedup(0.8, 4, 0.1), 6)
    2.401143
    """
    _check_c1(alpha, k, c)
    return iid_tokens_per_call(alpha, k) / (k * c + 1)


def best_chain_length(alpha: float, c: float, k_max: int) -> int:
    """The k in 1..k_max with the largest :func:`iid_speedup` (C1); the speed-up is unimodal in k.

    With alpha = 1 > c or c = 0 < alpha more is always better, so the answer is `k_max`; with 0 < alpha <= c no k
    beats plain decoding and the answer is 1.

    Raises
    ------
    SettingError
        If an argument is out of range.

    Examples
    --------
    >>> best_chain_length(0.8, 0.1, 64)
    6
    """
    _check_c1(alpha, k_max, c)
    if c == 0 < alpha:
        return k_max  # the speed-up grows on where floats no longer show it
    return max(range(1, k_max + 1), key=lambda k: iid_speedup(alpha, k, c))


def _check_c1(alpha: float, k: int, c: float) -> None:
    if not 0 <= alpha <= 1:
        raise SettingError(f"alpha is {alpha:g}", limit="must be in [0, 1]", remedy="pass an acceptance rate")
    if k < 1:
        raise SettingError(f"k is {k}", limit="must be >= 1", remedy="no draft means plain decoding")
    if not 0 <= c < np.inf:
        raise SettingError(f"c is {c:g}", limit="must be >= 0", remedy="pass draft step time over target step time")


class CostModel(ABC):
    """What a target step and a call take, in one unit of time."""

    @abstractmethod
    def target_step(self) -> Interval:
        """Time of one plain decoding step."""

    @abstractmethod
    def call(self, shape: Chain, full_share: float = 0.0) -> Interval:
        """Time of one call: drafting and verifying.

        Parameters
        ----------
        shape : Chain
            What is drafted.
        full_share : float
            Share of calls that follow a full acceptance: the draft's first pass then is on two tokens.
        """

    def speedup(self, tokens_per_call: Interval, shape: Chain, full_share: float = 0.0) -> Interval:
        """Tokens per second against plain decoding, decoding alone (the prompt's own pass is left out on both sides).

        tokens per call · target step / call time (C2). The range multiplies the ranges of its factors, so it is
        never too narrow.
        """
        step, call = self.target_step(), self.call(shape, full_share)
        per_call = Interval(
            step.low / call.high, step.best / call.best, step.high / call.low, weakest(step.kind, call.kind)
        )
        return tokens_per_call * per_call


@dataclass(frozen=True)
class ConstantRatio(CostModel):
    """C1: a draft step costs c target steps, and verifying costs one whatever its length.

    Parameters
    ----------
    c : float
        Draft step over target step, >= 0.

    Raises
    ------
    SettingError
        If c is negative or not finite.

    Examples
    --------
    >>> ConstantRatio(0.1).speedup(Interval.exact(2.8), Chain(4))
    Interval(low=2.0, best=2.0, high=2.0, kind='exact')
    """

    c: float

    def __post_init__(self) -> None:
        _check_c1(0.0, 1, self.c)

    def target_step(self) -> Interval:
        """One, the unit."""
        return Interval.exact(1.0)

    def call(self, shape: Chain, full_share: float = 0.0) -> Interval:
        """1 + depth · c."""
        return Interval.exact(1 + shape.depth * self.c)


@dataclass(frozen=True)
class LatencyTable(CostModel):
    """C2: measured seconds of one pass on m tokens with a filled cache; linear between measured m.

    Parameters
    ----------
    target, draft : mapping of int to Interval
        Seconds of a pass on m tokens, the median with its 95% interval. Both need m = 1, the draft m = 2.
    context : int
        Tokens in the cache while measured.
    provenance : mapping
        Machine, versions, repeats.

    Raises
    ------
    SettingError
        If an entry is missing, or a call needs more tokens than were measured.

    Examples
    --------
    >>> second = Interval.exact
    >>> table = LatencyTable({1: second(1.0), 4: second(1.3)}, {1: second(0.1), 2: second(0.2)}, context=64)
    >>> round(table.call(Chain(2)).best, 6)
    1.4
    >>> round(table.ratio, 6)
    0.1
    """

    target: Mapping[int, Interval]
    draft: Mapping[int, Interval]
    context: int
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if 1 not in self.target or not {1, 2} <= set(self.draft):
            raise SettingError(
                f"latencies cover target {sorted(self.target)} and draft {sorted(self.draft)} tokens",
                limit="needs the target on 1 token and the draft on 1 and 2",
                remedy="measure again",
            )

        for tokens, entry in [*self.target.items(), *self.draft.items()]:
            if tokens < 1 or not 0 < entry.low <= entry.high < np.inf:
                raise SettingError(
                    f"the latency on {tokens} tokens is {entry}", limit="needs seconds > 0", remedy="measure again"
                )

    @property
    def ratio(self) -> float:
        """Measured c: draft step over target step."""
        return self.draft[1].best / self.target[1].best

    def target_step(self) -> Interval:
        """Seconds of the target on one token."""
        return self.target[1]

    def call(self, shape: Chain, full_share: float = 0.0) -> Interval:
        """Seconds of a call: `depth` draft passes and the target on nodes + 1 tokens."""
        verify = self._target_on(shape.nodes + 1)
        ends = []
        for end in ("low", "best", "high"):
            one, two = getattr(self.draft[1], end), getattr(self.draft[2], end)
            ends.append(getattr(verify, end) + shape.depth * one + full_share * max(two - one, 0.0))
        low, best, high = sorted(ends)
        return Interval(low, best, high, weakest(verify.kind, self.draft[1].kind, self.draft[2].kind))

    def _target_on(self, tokens: int) -> Interval:
        measured = sorted(self.target)
        if tokens > measured[-1]:
            raise SettingError(
                f"a call verifies {tokens} tokens",
                limit=f"latencies were measured up to {measured[-1]}",
                remedy="lower k or measure longer calls",
            )
        low, best, high = (
            float(np.interp(tokens, measured, [getattr(self.target[m], end) for m in measured]))
            for end in ("low", "best", "high")
        )
        return Interval(low, best, high, weakest(*(self.target[m].kind for m in measured)))

    def write(self, path: Path) -> None:
        """Write as JSON; the file appears when whole.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        content = {
            "schema": LATENCY_SCHEMA,
            "unit": "seconds",
            "context": self.context,
            "target": {str(m): interval.as_dict() for m, interval in self.target.items()},
            "draft": {str(m): interval.as_dict() for m, interval in self.draft.items()},
            "provenance": dict(self.provenance),
        }
        write_whole(path, lambda partial: partial.write_text(json.dumps(content, indent=2) + "\n"))

    @classmethod
    def read(cls, path: Path) -> LatencyTable:
        """Read a latency table.

        Raises
        ------
        TraceError
            If the file is missing or no latency table.
        """
        try:
            content = json.loads(path.read_text())
            if content["schema"] != LATENCY_SCHEMA:
                raise ValueError(f"schema {content['schema']}")
            target = {int(m): Interval(**v) for m, v in content["target"].items()}
            draft = {int(m): Interval(**v) for m, v in content["draft"].items()}
            return cls(target, draft, content["context"], content["provenance"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TraceError(
                f"{path} is no latency table ({error})",
                limit=f"needs JSON of schema {LATENCY_SCHEMA}",
                remedy="run spectheory measure",
            ) from error
