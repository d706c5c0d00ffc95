"""A gate for engines: does a run accept as much as expected, at a stated false-alarm rate, and what would it miss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scipy.special import stdtrit

from spectheory.checks import real
from spectheory.errors import SettingError, TextError, argument
from spectheory.judging.compared import check_words
from spectheory.judging.difference import Difference, difference
from spectheory.judging.runs import Evidence, Stated, side_of, two_runs
from spectheory.trace import Trace

POWER = 0.9
"""Probability with which the smallest loss is caught."""
USUAL_ALARM = 0.001
"""False-alarm rate of a gate."""


@dataclass(frozen=True)
class Gate:
    """Counted tokens per call against expected ones.

    It fails where they are lower than expected beyond what chance makes of a run without fault with probability
    `alarm`. `smallest` is the loss, as a share of tokens per call, that fails with probability 0.9 (an estimate from
    the same noise).
    """

    difference: Difference
    alarm: float

    @property
    def limit(self) -> float:
        """The lowest tokens per call that pass."""
        tokens = self.difference.tokens
        return tokens.one - tokens.slack + float(stdtrit(tokens.freedom, self.alarm)) * tokens.deviation

    @property
    def independent(self) -> bool:
        """Whether calls of totals without prompts had to be taken as independent, as nothing says how prompts differ:
        `alarm` and `smallest` are lower bounds then.
        """
        return self.difference.totals and self.difference.clustering == 1

    @property
    def passed(self) -> bool:
        """Whether the counts are no lower."""
        return self.difference.tokens.other >= self.limit

    @property
    def smallest(self) -> float:
        """The smallest loss of tokens per call that is caught with probability 0.9, as a share."""
        tokens = self.difference.tokens
        reach = float(stdtrit(tokens.freedom, POWER) - stdtrit(tokens.freedom, self.alarm))
        return (reach * tokens.deviation + 2 * tokens.slack) / tokens.one


def gate(
    counts: Evidence | str | Path,
    expect: Evidence | str | Path,
    *,
    rule: str = "token",
    alarm: float = USUAL_ALARM,
    names: tuple[str, str] = ("expected", "counted"),
) -> Gate:
    """Hold a run's tokens per call against what is expected of it: a test for an engine's continuous integration.

    `expect` is a trace of like prompts under the engine's `rule`, an earlier run (log or counters), or a file with
    ``tokens_per_call`` and ``k``, as ``spectheory predict --json`` writes it: a number, or an interval of which a
    certain bound counts with its low end. Prompts that both share are compared one by one. The false-alarm rate `alarm`
    is one-sided, by Student's t over prompts; it holds as far as the noise is known
    (:func:`~spectheory.judging.difference.compare`).

    Examples
    --------
    >>> from spectheory.trace.counters import Counters
    >>> before, after = (Counters(calls=4000, survival=(share,)) for share in (0.8, 0.7))
    >>> answer = gate(after, before)
    >>> answer.passed, round(answer.smallest, 3)
    (False, 0.023)
    """
    real(argument("alarm"), alarm, lambda rate: 0 < rate < 0.5, limit="must be in (0, 0.5)", remedy="0.001 is usual")
    check_words(rule, names)
    side = side_of(counts)
    if isinstance(side, Trace | Stated):
        raise SettingError(
            f"{names[1]} is {'a trace' if isinstance(side, Trace) else 'an answer'}",
            limit="it has expected calls, and no counts",
            remedy="expect it instead",
        )
    answer = Gate(difference(*two_runs(names, (side_of(expect), side), rule=rule)), alarm)
    if answer.limit <= 1:
        raise TextError(
            f"{names[1]} has too few calls for a gate at a false-alarm rate of {alarm:g}",
            limit=f"it would pass {answer.limit:.2f} tokens per call, and no engine gives less than 1",
            remedy=f"serve more prompts, or raise {argument('alarm')}",
        )
    return answer
