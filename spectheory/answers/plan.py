"""What ``spectheory plan`` writes."""

from typing import Annotated, Any, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, Paths, says
from spectheory.answers.prediction import AdaptiveJson, EngineJson, LimitsJson, RecordedJson, SettingJson
from spectheory.intervals import Interval


class CandidateJson(Part, kw_only=True):
    """A draft with a rule and shape."""

    draft: Annotated[str, says("name of the draft", "draft.name")]
    draft_kind: Annotated[str, says("`draft model`, the kind of a head, or the rule by which drafts are copied")]
    rule: Annotated[str, says("verification rule", "prediction.rule.name")]
    shape: Annotated[str, says("draft shape", "prediction.shape")]
    kind: Annotated[Literal["chain", "tree"], says("kind of shape")]
    nodes: Annotated[Count, says("draft nodes of a call", "prediction.shape.nodes")]
    depth: Annotated[Count, says("depth of the shape", "prediction.shape.depth")]
    passes: Annotated[Count, says("draft passes of a call")]
    tokens_per_call: Annotated[Interval, says("tokens per target call", "prediction.tokens_per_call")]
    speedup: Annotated[Interval, says("over plain decoding")]
    disturbed: Maybe[
        Annotated[
            Interval,
            says(
                "speed-ups by one group of rounds alone, where other processes disturbed the timing",
                "prediction.disturbed",
            ),
        ]
    ] = UNSET
    verdict: Annotated[Literal["speculate", "speculating may not pay", "do not speculate"], says("whether it pays")]


class LockStepJson(Part, kw_only=True):
    """The best k of a batch that waits for its longest text."""

    batch: Count
    context: float
    k: Count
    rounds: float | None
    waiting: float | None
    speedup: float | None
    tokens_per_second: float | None


class BatchJson(Part):
    """The best k of a batch and context."""

    batch: Count
    context: float
    k: Count
    tokens_per_call: float | None
    speedup: float | None
    tokens_per_second: float | None
    fits: Annotated[bool, says("whether caches and weights fit into memory")]


class ReadingJson(Part):
    """What verifying the best setting reads of a target with experts."""

    tokens: Annotated[Count, says("verified of each sequence")]
    batch: Annotated[Count, says("sequences")]
    ratio: Annotated[Interval, says("weights read, over those of a plain step")]
    distinct: Annotated[Interval, says("experts of a layer that are touched")]
    experts: Annotated[Count, says("of a layer")]
    chosen: Annotated[Count, says("of a token in a layer")]
    layers: Annotated[Count, says("with experts")]
    logged: Annotated[bool, says("whether a routing log counted them")]


class LoadPointJson(Part):
    """A chain of k drafts, or plain decoding, with so many requests at a time."""

    batch: Annotated[Count, says("requests at a time")]
    k: Annotated[Count, says("drafts of a call; 0 is plain decoding")]
    tokens_per_call: float
    tpot: Annotated[float, says("milliseconds per output token of a request after its first")]
    ttft: Annotated[float | None, says("milliseconds to the first token; null where not known")]
    tokens_per_second: Annotated[float, says("output tokens of all requests")]
    requests_per_second: float | None
    prompt_share: Annotated[float | None, says("of the time, spent on passes over prompts")]
    speedup: Annotated[float, says("in tokens per second, over plain decoding of as many requests")]


class PlanJson(CandidateJson, kw_only=True):
    """`spectheory plan --json` and `plan.json`."""

    schema, has_headline = 1, True

    class Limits(LimitsJson, kw_only=True):
        """Upper bounds for the best setting and how far it is from them."""

        class Distance(Part):
            """A limit or idealised value, and the share of it that is reached."""

            name: Annotated[str, says("name of the limit", "limit.name")]
            side: Annotated[str, says("upper bound, or idealised", "limit.scope.side")]
            claim: Annotated[str, says("what the limit says", "limit.what")]
            tokens_per_call: float | None
            reached: float | None
            binds: bool
            speedup: float | None

        distances: list[Distance]

    class Batches(Part):
        """The best k by batch and context, where costs know them."""

        draft: str
        rule: str
        choices: list[BatchJson]
        lock_step: list[LockStepJson]

    paths: Annotated[Paths, says("ranks from the root to each node; null for a chain", "prediction.shape.listed")]
    runner_up: Annotated[CandidateJson | None, says("the second best")]
    told_apart: Annotated[bool, says("whether the intervals of the two do not overlap")]
    drafts: Annotated[list[CandidateJson], says("the best setting of each draft", "by_draft")]
    candidates: Annotated[list[CandidateJson], says("every draft, rule and kind of shape, the fastest first")]
    break_even: Annotated[dict[str, float | None], says("what it takes to be as fast as plain decoding")]
    limits: Annotated[Limits, says("upper bounds for the best setting and how far it is from them")]
    batches: Annotated[Batches | None, says("the best k by batch and context, where costs know them")]
    requests: Maybe[Annotated[list[LoadPointJson], says("the k of most tokens per second by batch")]] = UNSET
    targets: Maybe[
        Annotated[
            list[LoadPointJson], says("by k, the largest batch within --tpot and --ttft, which gives its goodput")
        ]
    ] = UNSET
    warnings: Maybe[Annotated[list[str], says("where costs and traces contradict each other")]] = UNSET
    reading: Maybe[Annotated[ReadingJson | None, says("what verifying reads of a target with experts")]] = UNSET
    engines: Annotated[list[EngineJson], says("settings of engines, and what to paste")]
    adaptive: Maybe[Annotated[list[AdaptiveJson], says("what lengths decided by the draft are worth, with --stop")]] = (
        UNSET
    )
    recorded: Maybe[Annotated[list[RecordedJson], says("readings of recorded lengths")]] = UNSET
    provenance: Annotated[dict[str, Any], says("of the trace of each draft")]


class ServedJson(Part, kw_only=True):
    """`spectheory plan --bench RUNS --json`."""

    schema, has_headline = 1, True

    class Choice(Part):
        """The best k of a concurrency and context."""

        batch: float
        context: float
        k: Count
        tokens_per_call: float
        speedup: Interval
        per_second: float
        reading: bool
        certain: bool
        ran: Annotated[Interval | None, says("speed-up of runs at this very setting, if there are any")]
        agrees: Annotated[bool, says("whether they are as near to the fit as the wider interval reaches")]

    class Fit(Part):
        """Seconds of a step by term, and the fit's errors."""

        law: Annotated[str, says("affine, or a staircase of the tokens that a step verifies")]
        tried: Annotated[dict[str, float], says("by law, root mean square error of runs left out, relative")]
        stairs: Annotated[list[tuple[float, float]], says("tokens and seconds at each rise; empty if affine")]
        terms: dict[str, float]
        error: float
        freedom: Count
        left_out: list[float | None]

    class Run(Part):
        """A run of the benchmark."""

        name: str
        batch: float
        context: float
        k: Count
        seconds: float
        accepted: Annotated[float, says("accepted tokens of a call")]
        in_flight: float | None

    class Crossover(Part):
        """Where the best speed-up passes 1 at a concurrency."""

        batch: float
        k: Count
        context: Interval
        beyond: Annotated[bool, says("whether speculation pays beyond this context, not below it")]

    choices: Annotated[list[Choice], says("the best k by concurrency and context; 0 is plain decoding")]
    lock_step: Maybe[Annotated[list[LockStepJson], says("the same for batches that wait for their longest text")]] = (
        UNSET
    )
    targets: Maybe[
        Annotated[
            list[LoadPointJson], says("by k, the largest concurrency within --tpot and --ttft, which gives its goodput")
        ]
    ] = UNSET
    crossovers: Annotated[list[Crossover], says("contexts at which the best speed-up passes 1, by concurrency")]
    tokens_per_call: Annotated[dict[str, Interval], says("by k")]
    basis: Annotated[str, says("where tokens per call come from")]
    fit: Annotated[Fit, says("seconds of a step by term, and the fit's errors")]
    runs: Annotated[list[Run], says("the runs, with the seconds of a step")]


class BudgetPointJson(Part):
    """What a policy gives with so many requests at a time."""

    batch: Count
    policy: Annotated[str, says("`plain`, `fixed`, `confidence` or `acceptance`")]
    k: Annotated[Count, says("most drafts of a request")]
    threshold: Annotated[float | None, says("least survival that is verified; 0: all drafts; null without one")]
    drafts: Annotated[float, says("verified drafts of a request's call, mean")]
    tokens: Annotated[float, says("tokens of a request's call, mean")]
    per_second: Annotated[Interval, says("tokens of all requests; over prompts")]
    seconds: Annotated[float, says("of a step, mean")]
    step_mean: Annotated[float, says("tokens of a step")]
    step_deviation: Annotated[float, says("their standard deviation")]
    step_quantiles: Annotated[list[Count], says("5%, 50% and 95%")]
    tpot: Annotated[float, says("milliseconds per output token of a request")]


class BudgetsJson(Part, kw_only=True):
    """`spectheory plan TRACE --steps FILE --json`, and with `--bench RUNS --budget`."""

    schema, has_headline = 1, True

    class Choice(Part):
        """The best setting of each policy at a concurrency."""

        batch: Count
        best: Annotated[str, says("the policy of most tokens per second that an engine can run")]
        plain: Annotated[BudgetPointJson, says("no drafts")]
        fixed: Annotated[BudgetPointJson, says("the best k of every call")]
        longest: Annotated[BudgetPointJson, says("k_max drafts of every call")]
        confident: Annotated[BudgetPointJson | None, says("null where the trace has no confidence")]
        informed: Annotated[BudgetPointJson, says("by the true probability of acceptance, which no engine knows")]
        limit: Annotated[float, says("tokens per second, upper bound for every lossless budget")]

    choices: Annotated[list[Choice], says("by concurrency")]
    goodput: Maybe[Annotated[BudgetPointJson, says("the most tokens per second within --tpot")]] = UNSET
    rule: Annotated[str, says("verification rule", "rule.name")]
    k_max: Annotated[Count, says("most drafts of a call")]
    column: Annotated[str | None, says("the column that decides")]
    texts: Annotated[Count, says("texts of the trace")]


class ExportJson(Part, kw_only=True):
    """`spectheory plan --export NAME --json`."""

    schema = 1

    export: Annotated[str, says("name of the export")]
    of: Annotated[str, says("what the numbers are of")]
    k: Annotated[Count, says("drafts of a call")]
    accepted: Annotated[float, says("accepted drafts per call")]
    length: Annotated[float, says("tokens per call")]
    survival: Annotated[list[float], says("P(accepted >= i), i = 1..k")]
    hazards: Annotated[list[float], says("survival over the one before")]
    schedule: Annotated[list[tuple[Count, Count, Count]], says("first batch, last batch, k")]
    options: Annotated[dict[str, Any], says("as the other tool names them")]
    text: Annotated[str, says("what to paste")]


class TrainingJson(Part, kw_only=True):
    """`spectheory plan --trace step0=… --trace step100=… --json`."""

    schema, has_headline = 1, True

    class Step(Part):
        """What a training step gives."""

        step: Count
        best: Annotated[SettingJson, says("the fastest chain")]
        unchanged: Annotated[SettingJson, says("the chain that is fastest at the first step")]

    rule: Annotated[str, says("verification rule", "rule.name")]
    steps: Annotated[list[Step], says("every training step, in their order")]
    slope: Annotated[Interval, says("time per token over plain decoding that a step adds; a straight line")]
    pays_until: Annotated[float | None, says("step at which the line reaches plain decoding")]
    periods: Annotated[
        list[tuple[float, float]],
        says(
            "cost of training the draft over plain decoding of a step's texts, and the best number of steps between; "
            "costs with which plain decoding takes less are left out"
        ),
    ]
