"""What ``spectheory compare`` and ``gate`` write."""

from typing import Annotated

from spectheory.answers.base import Count, Part, Positive, says
from spectheory.intervals import Interval


class DifferenceJson(Part, kw_only=True):
    """`spectheory compare --json`."""

    schema, has_headline = 1, True

    class Change(Part):
        """A number of both runs."""

        what: str
        one: float
        other: float
        difference: Annotated[Interval, says("the other less the first one, 95%")]
        z: Annotated[float | None, says("in standard deviations; null if nothing is random and yet they differ")]

    class Run(Part):
        """A run that is compared."""

        name: str
        k: Annotated[Positive, says("drafts of a call")]
        calls: Annotated[float | None, says("calls; expected ones of a trace; null of an answer")]
        prompts: Annotated[Count, says("prompts; 0 where totals alone are known")]
        rule: Annotated[str | None, says("the rule of a trace")]
        calls_fit: Annotated[
            bool | None, says("whether the calls of a log fit the rule; null without a trace of its texts")
        ]
        output_fits: Annotated[
            bool | None, says("whether its text is what the target outputs; null if it is not tested")
        ]

    class Speedups(Part):
        """Speed-ups over plain decoding of both runs."""

        one: Annotated[Interval, says("of the first run, 95%")]
        other: Annotated[Interval, says("of the second run, 95%")]
        ratio: Annotated[
            Interval | None, says("the other's over the first one's; null where they were timed differently")
        ]
        refused: Annotated[str, says("why there is no ratio; empty if there is one")]

    k: Annotated[Positive, says("drafts of a call of the first run; of both where positions are compared")]
    one: Annotated[Run, says("the first run")]
    other: Annotated[Run, says("the second run")]
    paired: Annotated[Count, says("prompts that both have, compared one by one")]
    clustering: Annotated[float, says("factor by which the variance of totals was raised; 1 if nothing says")]
    differs: Annotated[bool, says("whether any change is beyond noise")]
    changes: Annotated[list[Change], says("tokens per call, then acceptance by position")]
    texts: Annotated[
        list[Change],
        says("expected under the first and under the second texts, exactly; empty without their traces"),
    ]
    draft: Annotated[list[Change], says("what another draft makes of the second texts; empty without a third trace")]
    rest: Annotated[list[Change], says("what neither explains: the engine, or the draft where no trace is of it")]
    with_drafts: Annotated[bool, says("whether the traces of the texts are of different drafts")]
    speedups: Annotated[Speedups | None, says("null where a run has no costs")]


class GateJson(Part, kw_only=True):
    """`spectheory gate --json`."""

    schema, has_headline = 1, True

    passed: Annotated[bool, says("whether tokens per call are no lower than the limit")]
    k: Annotated[Positive, says("drafts of a call", "difference.k")]
    alarm: Annotated[float, says("false-alarm rate, one-sided")]
    expected: Annotated[float, says("tokens per call", "difference.tokens.one")]
    counted: Annotated[float, says("tokens per call", "difference.tokens.other")]
    limit: Annotated[float, says("lowest tokens per call that pass")]
    smallest: Annotated[float, says("smallest loss, as a share, that fails with probability 0.9")]
    paired: Annotated[Count, says("prompts that both have", "difference.paired")]
    clustering: Annotated[float, says("factor by which the variance of totals was raised", "difference.clustering")]
