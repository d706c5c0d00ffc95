"""What ``spectheory measure`` writes."""

from typing import Annotated, Any, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, Positive, says
from spectheory.intervals import Interval


class TraceJson(Part, kw_only=True):
    """The key `spectheory` in the metadata of a trace's Parquet file."""

    schema = 3

    class Text(Part):
        """A text of the trace."""

        id: str
        tokens: Positive
        prompt: str
        category: str
        ended: bool
        prompt_tokens: Maybe[Count | None] = UNSET

    provenance: Annotated[dict[str, Any], says("models, sampling, text, versions and machine")]
    texts: Annotated[list[Text], says("the texts, in the order of the rows")]


class LatencyJson(Part, kw_only=True):
    """`latency.json` of `spectheory measure`."""

    schema = 3

    class Loop(Part):
        """Seconds of the decoding loop outside the passes."""

        plain: float
        call: float
        draft_pass: float
        node: float
        tree: float

    class Group(Part):
        """Seconds from one group of rounds that follow each other."""

        target: dict[str, float]
        draft: dict[str, float]
        loop: "LatencyJson.Loop | None"
        rounds: Positive
        seconds: float
        others: float | None
        stopped: Literal["width", "budget", "rounds"]
        with_hidden_states: float | None
        first: Maybe[dict[str, float]] = UNSET

    unit: Annotated[Literal["seconds"], says("unit of times")]
    context: Annotated[Count, says("tokens in the cache")]
    target: Annotated[dict[str, Interval], says("seconds of a pass by its tokens")]
    draft: Annotated[dict[str, Interval], says("the same of the draft; empty where drafts are free")]
    loop: Annotated[Loop | None, says("seconds of the decoding loop outside the passes")]
    groups: Annotated[
        list[Group], says("the groups of rounds that the times are means of; none in a table made by hand")
    ]
    first: Maybe[Annotated[dict[str, Interval], says("seconds of a head's first pass, by the pairs it reads")]] = UNSET
    provenance: Annotated[dict[str, Any], says("machine, versions and rounds")]


class BenchJson(Part, kw_only=True):
    """`spectheory bench --json`."""

    schema, has_headline = 1, True

    class Run(Part):
        """A point: its mean step, or call where k > 0."""

        engine: str
        batch: Positive
        context: float
        k: Count
        step_seconds: float
        tokens_per_call: float | None
        token_seconds: float
        ttft: float | None
        requests: Count
        seconds: float
        started: str

    file: Annotated[str, says("the points, a line of JSON each")]
    seconds: Annotated[float, says("seconds of this run")]
    runs: Annotated[list[Run], says("the points by k, batch and context")]
    lacking: Annotated[list[Count], says("k that are not timed yet: start the server with them")]
    plan: Annotated[str | None, says("the command that plans with them; null without plain decoding or without calls")]
