"""A gate for engines: does a run accept as much as expected, at a stated false-alarm rate, and what would it miss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from spectheory.checks import located, real
from spectheory.errors import FOREIGN, SettingError, SpectheoryError, TextError, argument, reason_of
from spectheory.files import loaded_json, read_text
from spectheory.intervals import Interval
from spectheory.judging.difference import Difference, check_words, difference, evidence_of
from spectheory.judging.runs import Evidence, Run, two_runs
from spectheory.prediction.over_prompts import reach
from spectheory.trace import Trace
from spectheory.trace.counters import Counters

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
    >>> found = gate(after, before)
    >>> found.passed, round(found.smallest, 3)
    (False, 0.023)
    """
    real(argument("alarm"), alarm, lambda rate: 0 < rate < 0.5, limit="must be in (0, 0.5)", remedy="0.001 is usual")
    check_words(rule, names)
    found = evidence_of(counts)
    if isinstance(found, Trace):
        raise SettingError(
            f"{names[1]} is a trace", limit="a trace has expected calls, and no counts", remedy="expect it instead"
        )
    if isinstance(expect, str | Path):
        run = Run.of(names[1], found, beside=Counters())  # a stated number is of all calls
        if stated := _stated(names[0], located(expect), run.k):
            return Gate(difference(stated, run), alarm)
    return Gate(difference(*two_runs(names, (evidence_of(expect), found), rule=rule)), alarm)


def _stated(name: str, path: Path, k: int) -> Run | None:
    """The tokens per call that a small JSON file states; None if it is none."""
    if path.suffix != ".json" or not path.is_file():
        return None
    try:
        content = loaded_json(read_text(path))
        if not (isinstance(content, dict) and "tokens_per_call" in content):
            return None
        tokens = content["tokens_per_call"]
        value = Interval(**tokens) if isinstance(tokens, dict) else Interval.exact(tokens)
        stated = content.get("k", k)
    except (*FOREIGN, SpectheoryError) as error:
        raise TextError(
            f"{path} states no tokens per call ({reason_of(error)})",
            limit='needs {"k": 3, "tokens_per_call": 2.4}, or the JSON of a prediction',
            remedy="correct the file",
        ) from error
    if stated != k or not 1 <= value.best <= k + 1:
        raise TextError(
            f"{path} expects {value.best:g} tokens per call at k = {stated}",
            limit=f"the run counted calls of {k} drafts, which have 1 to {k + 1}",
            remedy="expect the k that is served",
        )
    best = value.low if value.kind == "bound" else value.best
    deviation = (value.high - value.low) / (2 * reach(math.inf)) if value.kind == "statistical" else 0.0
    counts = np.array([[1.0, *np.full(k, (best - 1) / k)]])  # positions are not stated, and not tested
    return Run(name, counts, errors=np.array([deviation, *np.full(k, np.inf)]))
