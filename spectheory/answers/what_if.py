"""What ``spectheory predict --what-if`` writes."""

from typing import Annotated, Literal

from msgspec import UNSET

from spectheory.answers.base import Maybe, Part, Positive, says
from spectheory.answers.prediction import AtRatioJson, SettingJson
from spectheory.intervals import Interval


class WhatIfJson(Part, kw_only=True):
    """`spectheory predict --what-if … --json` and `what_if.json`."""

    schema, has_headline = 1, True

    class Changes(Part):
        """What is to be different; null where nothing was asked."""

        draft_kl: Annotated[float | None, says("share by which the mean KL of the draft falls")]
        c: Annotated[list[float] | None, says("ends of the range of cost ratios")]
        prompts: Annotated[float | None, says("relative half-width of the interval that is wanted")]

    class Costs(Part):
        """The fastest setting at each cost ratio."""

        rows: list[AtRatioJson]
        pays_below: Annotated[float | None, says("c up to which some setting pays; null where drafts need no pass")]

    class Prompts(Part):
        """Prompts that would give an interval of the half-width wanted."""

        rule: str
        shape: str
        tokens_per_call: Interval
        prompts: Annotated[Positive, says("those of the trace")]
        half_width: Annotated[float, says("what they give, relative")]
        wanted: float
        needed: Annotated[Interval, says("an estimate; the range is the 95% range of the spread over prompts")]

    class Draft(Part):
        """The best setting of a better draft on one path."""

        path: Literal["mixed", "geometric"]
        s: Annotated[float, says("share of the path from the draft to the target")]
        kl: Annotated[float, says("its mean KL(p || q_s), nats per token")]
        best: SettingJson

    changes: Annotated[Changes, says("what is to be different; null where nothing was asked")]
    now: Maybe[Annotated[SettingJson, says("the best setting of the trace as it is; absent from counts")]] = UNSET
    kl: Maybe[Annotated[float, says("mean KL(p || q) along the texts, nats per token")]] = UNSET
    costs: Maybe[Annotated[Costs, says("with c=LOW..HIGH")]] = UNSET
    prompts: Maybe[Annotated[Prompts, says("with prompts=SHARE%")]] = UNSET
    drafts: Maybe[Annotated[list[Draft], says("with draft-kl=-SHARE%")]] = UNSET
    remarks: Annotated[list[str], says("what the trace does not know, a sentence each")]
