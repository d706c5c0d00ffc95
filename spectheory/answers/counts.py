"""What is written of engines' logs: their readings, and the files of ``spectheory import``."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, field

from spectheory.answers.base import Count, Maybe, Part, Positive, says
from spectheory.answers.plan import BatchJson, LoadPointJson
from spectheory.answers.prediction import AtRatioJson
from spectheory.intervals import Interval


class LogJson(Part, kw_only=True):
    """What the counts of a log say."""

    class Best(Part):
        """The best k, and what it rests on."""

        k: Count
        by: Literal["speedup", "counted"]
        basis: str

    class Row(Part):
        """What a k gives, and what that rests on."""

        k: Count
        survival: Interval | None
        hazard: float | None
        tokens_per_call: Interval
        basis: Literal["counted", "drafted so far", "own starts", "constant hazard"]
        speedup: Interval | None
        first_choices: Interval | None
        renewal: Annotated[float | None, says("the reading by matches that renew")]
        summed: Annotated[float | None, says("the reading by the same shares summed")]

    source: Annotated[Literal["counts"], says("what is read")]
    engine: Annotated[str, says("as the log says")]
    version: Annotated[str, says("as the log says")]
    k: Annotated[Count | None, says("the longest chain of a call")]
    calls: Annotated[float | None, says("calls with drafts")]
    drafted: Annotated[float | None, says("drafted tokens")]
    accepted: Annotated[float | None, says("accepted drafts")]
    tokens: Annotated[float | None, says("output tokens")]
    mean_drafted: Annotated[float | None, says("drafted tokens per call")]
    counted_tokens_per_call: Annotated[float | None, says("1 + accepted / calls")]
    rule: Annotated[str | None, says("the rule that --rule names")]
    shape: Annotated[str, says("the chain that the numbers are of")]
    tokens_per_call: Annotated[Interval, says("tokens per target call")]
    accepted_length: Annotated[Interval, says("accepted drafts per call")]
    speedup: Annotated[Interval | None, says("over plain decoding; null without costs")]
    best: Annotated[Best, says("the best k, and what it rests on")]
    best_beyond: Annotated[Count | None, says("a better k beyond the engine's, if any")]
    noise: Annotated[str, says("what the intervals are over")]
    remarks: Annotated[list[str], says("what the source leaves open or biases")]
    provenance: Annotated[dict[str, Any], says("all else that is known")]
    rows: Annotated[list[Row], says("a row for each k")]
    guessed: Maybe[Annotated[list[AtRatioJson], says("the best k at half and at twice the c of --c")]] = UNSET
    batches: Maybe[Annotated[list[BatchJson], says("the best k by batch and context, with --hardware")]] = UNSET
    requests: Maybe[Annotated[list[LoadPointJson], says("the k of most tokens per second by batch")]] = UNSET
    targets: Maybe[
        Annotated[
            list[LoadPointJson], says("by k, the largest batch within --tpot and --ttft, which gives its goodput")
        ]
    ] = UNSET


class ComparisonJson(Part, kw_only=True):
    """Two logs compared at position 1."""

    logs: list[str]
    acceptance: list[float]
    z: float
    differ: bool


class ReadingsJson(LogJson, kw_only=True):
    """`spectheory predict LOG --json`, where the log holds counts and no texts."""

    schema, has_headline = 1, True

    comparisons: Annotated[list[ComparisonJson], says("logs compared at position 1: none of one log")]


class LogsJson(Part, kw_only=True):
    """`spectheory predict LOG LOG --json`, where several logs hold counts and no texts."""

    schema, has_headline = 1, True

    class Together(Part):
        """Counts of one engine at several k, read together."""

        class AtK(Part):
            """Chains of k drafts."""

            k: Positive
            tokens_per_call: Interval
            alone: Annotated[Interval, says("from the counts of the longest k alone")]
            counted: bool
            speedup: Interval | None

        ks: list[Positive]
        weight: Annotated[Interval, says("0 if matches renew at every miss, 1 if shares are summed")]
        misfit: Annotated[float, says("largest distance of a counted share from the reading, in standard deviations")]
        doubtful: Annotated[bool, says("whether the counts do not look like one setting")]
        rows: list[AtK]

    logs: Annotated[dict[str, LogJson], says("what each log says, by name")]
    comparisons: Annotated[list[ComparisonJson], says("logs compared at position 1")]
    together: Maybe[Annotated[Together, says("one reading of all, if they differ in k alone")]] = UNSET


class ImportJson(Part, kw_only=True):
    """`spectheory import --json`."""

    schema, has_headline = 1, True

    format: Annotated[str, says("formats of the files")]
    kind: Annotated[Literal["trace", "calllog", "counters"], says("what they hold")]
    texts: Maybe[Annotated[Count, says("texts of a trace")]] = UNSET
    requests_left_out: Maybe[Annotated[Positive, says("of the log, since they have no whole lists")]] = field(
        name="requests left out", default=UNSET
    )
    tokens: Annotated[Count | None, says("output tokens")]
    columns: Maybe[Annotated[list[str], says("columns of a trace")]] = UNSET
    engine: Maybe[Annotated[str, says("as the log says")]] = UNSET
    version: Maybe[Annotated[str, says("as the log says")]] = UNSET
    requests: Maybe[Annotated[Count, says("requests of a call log")]] = UNSET
    with_token_ids: Maybe[Annotated[Count, says("how many of them have their text")]] = field(
        name="with token ids", default=UNSET
    )
    temperature: Maybe[Annotated[float | None, says("how tokens were drawn")]] = UNSET
    k: Maybe[Annotated[Count | None, says("the longest chain of a call")]] = UNSET
    calls: Maybe[Annotated[float | None, says("calls with drafts")]] = UNSET
    drafted: Maybe[Annotated[float | None, says("drafted tokens")]] = UNSET
    accepted: Maybe[Annotated[float | None, says("accepted drafts")]] = UNSET
    tokens_per_call: Maybe[Annotated[float | None, says("recovered and bonus tokens counted")]] = field(
        name="tokens per call", default=UNSET
    )
    gives: Annotated[list[str], says("what follows")]
    lacks: Annotated[list[str], says("what does not follow")]
    remarks: Annotated[list[str], says("what the source leaves open or biases")]
    written: Annotated[str, says("the file")]
    next: Annotated[list[str], says("commands to run next")]


class CountersJson(Part, kw_only=True):
    """`counters.json` of `spectheory import`."""

    schema = 1

    spectheory: Annotated[Literal["spectheory counters"], says("what the file is")]
    calls: Maybe[Annotated[float, says("calls that verified drafts")]] = UNSET
    drafted: Maybe[Annotated[float, says("drafted tokens")]] = UNSET
    accepted: Maybe[Annotated[float, says("accepted drafts")]] = UNSET
    survival: Maybe[Annotated[list[float], says("share of calls that accepted at least i tokens")]] = UNSET
    k: Maybe[Annotated[Count, says("the longest chain")]] = UNSET
    tokens: Maybe[Annotated[float, says("output tokens")]] = UNSET
    seconds: Maybe[Annotated[float, says("time of all calls")]] = UNSET
    draft_seconds: Maybe[Annotated[float, says("time of their drafting")]] = UNSET
    mean_length: Maybe[Annotated[float, says("tokens per call as the source says it")]] = UNSET
    lengths: Maybe[
        Annotated[list[tuple[Positive, float]], says("k and tokens per call at it, where the source says several")]
    ] = UNSET
    rounding: Maybe[Annotated[float, says("by which each share is rounded at most")]] = UNSET
    hazards: Maybe[Annotated[list[float], says("share among the calls that drafted so far")]] = UNSET
    cumulative: Maybe[Annotated[bool, says("whether totals count from the start of a server")]] = UNSET
    engine: Maybe[Annotated[str, says("as the log says")]] = UNSET
    version: Maybe[Annotated[str, says("as the log says")]] = UNSET
    remarks: Maybe[Annotated[list[str], says("what the source leaves open or biases")]] = UNSET
    provenance: Maybe[Annotated[dict[str, Any], says("all else that is known")]] = UNSET


class CallsJson(Part, kw_only=True):
    """The settings in `calls.jsonl` of `spectheory import` and `validate --engine`, and in the files of `calls-T` of
    `validate`; requests follow, one a line.
    """

    schema = 1

    spectheory: Annotated[Literal["spectheory calls"], says("what the file is")]
    engine: Annotated[str, says("as the log says")]
    version: Annotated[str, says("as the log says")]
    k: Annotated[Count | None, says("the longest chain of a call")]
    temperature: Annotated[float | None, says("how tokens were drawn; null if unknown")]
    top_k: Annotated[Count | None, says("null where unknown or not used")]
    top_p: Annotated[float | None, says("null where unknown or not used")]
    min_p: Annotated[float | None, says("null where unknown or not used")]
    prefill_emits_token: Annotated[bool | None, says("whether the prompt's own pass emits the first token")]
    counts_past_end: Annotated[bool | None, says("whether counts hold accepted tokens past the end")]
    provenance: Annotated[dict[str, Any], says("all else")]


class RequestJson(Part, kw_only=True):
    """A request in `calls.jsonl`; what is unknown is left out."""

    id: Annotated[str, says("its name")]
    prompt: Maybe[Annotated[list[int], says("token ids")]] = UNSET
    output: Maybe[Annotated[list[int], says("token ids")]] = UNSET
    tokens: Maybe[Annotated[Count, says("output tokens")]] = UNSET
    ended: Maybe[Annotated[bool, says("whether the text ended by itself")]] = UNSET
    accepted: Maybe[Annotated[list[Count], says("of each call")]] = UNSET
    drafted: Maybe[Annotated[list[Count], says("of each call")]] = UNSET
    by_drafted: Maybe[Annotated[dict[str, list[Count]], says("by drafted tokens, the calls by accepted tokens")]] = (
        UNSET
    )
    calls: Maybe[Annotated[Count, says("target passes that verified drafts")]] = UNSET
    total_accepted: Maybe[Annotated[Count, says("accepted drafts")]] = UNSET
    total_drafted: Maybe[Annotated[Count, says("drafted tokens")]] = UNSET
    seconds: Maybe[Annotated[float, says("time of the request")]] = UNSET


class SamplesJson(Part, kw_only=True):
    """`spectheory samples --json`."""

    schema, has_headline = 1, True

    logs: Annotated[dict[str, str], says("format of each log, by its name")]
    written: Annotated[list[str], says("what was written; empty without --out")]
