"""What ``spectheory judge``, ``compare``, ``gate`` and ``validate`` write."""

from typing import Annotated, Any, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, Positive, says
from spectheory.intervals import Interval


class CountedJson(Part, kw_only=True):
    """A count beside what is expected, in standard deviations."""

    class Expected(Part):
        """The range of what is expected."""

        low: float
        high: float

    what: str
    counted: float
    expected: Annotated[Expected, says("the range of what is expected", ".")]
    deviation: float | None
    z: float | None
    p: float


class JudgementJson(Part, kw_only=True):
    """`spectheory judge --json` and `judgement.json`."""

    schema, has_headline = 1, True

    class Rule(Part):
        """A rule held against the counts."""

        rule: str
        same: list[str]
        served: bool
        refuted: bool
        p: float
        calls: CountedJson
        positions: list[CountedJson]
        starts: list[CountedJson]
        likelihood: float | None
        rare: CountedJson | None
        texts: list[str]

    class Cause(Part):
        """A known fault that explains the counts."""

        cause: str
        sentence: str
        rule: str | None
        evidence: dict[str, Any]
        closeness: list[float | None] | None

    class Output(Part):
        """A test of the output."""

        name: str
        asks: Annotated[str, says("what is compared, in a few words")]
        statistic: float | None
        symbol: str
        p: float
        side: Annotated[Literal["exact", "guaranteed", "asymptotic", "estimate"], says("what p is")]
        approximation: Annotated[str, says("what keeps p from being exact; empty if nothing does")]
        smallest: Annotated[float | None, says("departure that would be shown with probability 0.9, in `unit`")]
        unit: str
        tokens: Count
        text: Annotated[str, says("the text it is about; empty: all")]
        false_alarm: float
        null: Annotated[str, says("the hypothesis that is tested")]
        refuted: bool

    engine: Annotated[str, says("as the log says")]
    version: Annotated[str, says("as the log says")]
    requests: Annotated[Count, says("number of requests")]
    tokens: Annotated[Count, says("output tokens")]
    k: Annotated[Count | None, says("the longest chain of a call")]
    temperature: Annotated[float | None, says("how tokens were drawn")]
    prefill_emits_token: Annotated[bool | None, says("whether the prompt's own pass emits the first token")]
    counts_past_end: Annotated[bool | None, says("whether counts hold accepted tokens past the end")]
    false_alarms: Annotated[float, says("p-value below which a rule is refuted")]
    stated: Annotated[list[str], says("rules that were named")]
    fitting: Annotated[list[str], says("rules that fit")]
    refuted: Annotated[bool, says("whether the counts refute every rule in question")]
    output_refuted: Annotated[bool, says("whether a test of the output refutes it")]
    rules: Annotated[list[Rule], says("every rule against the counts", "standings")]
    doubtful: Annotated[bool, says("whether the rule that fits is one that no engine is known to serve")]
    smallest: Annotated[
        float | None, says("share by which acceptance would have to be lower to be refuted with probability 0.9")
    ]
    causes: Annotated[list[Cause], says("what else explains the counts")]
    output: Annotated[list[Output], says("tests of the output")]
    provenance: Annotated[dict[str, Any], says("all else that the log says")]


class EnginesJson(Part, kw_only=True):
    """`spectheory validate --engine NAME --json` and `engines.json`."""

    schema, has_headline = 1, True

    class Engine(Part, forbid_unknown_fields=False):
        """An engine with its runs."""

        class Run(Part, forbid_unknown_fields=False):
            """A run of a setting, judged."""

            class Output(Part, forbid_unknown_fields=False):
                """Whether the output is right."""

                right: bool

            setting: str
            temperature: float
            k: Count
            requests: Count
            tokens: Count
            output: Output

        engine: str
        version: str
        runs: list[Run]

    command: Annotated[str, says("the command")]
    models: Annotated[dict[str, Any], says("target, draft and vocabulary")]
    prompts: Annotated[Count, says("number of prompts")]
    engines: Annotated[list[Engine], says("every engine with its runs, each judged")]
    agree: Annotated[bool, says("whether no stated rule and no output is refuted")]


class ValidationJson(Part, kw_only=True):
    """`spectheory validate --json` and `validation.json`."""

    schema, has_headline = 1, True

    class Temperature(Part):
        """What was decoded at one temperature."""

        class Setting(Part, forbid_unknown_fields=False):
            """A rule and shape: counted, expected and timed."""

            name: str
            rule: str
            shape: str
            nodes: Count
            judged: bool
            tokens: Count
            calls: Count
            tokens_per_call: Interval
            expected: dict[str, Any]
            trace: dict[str, Any]
            speedup: dict[str, Any]
            lossless: Maybe[Annotated[bool, says("false where the rule changes the text")]] = UNSET

        temperature: float
        settings: list[Setting]

    comparisons: Annotated[Count, says("how many comparisons decide")]
    false_alarms: Annotated[float, says("probability that a right prediction is refuted in any of them")]
    disagreements: Annotated[Count, says("comparisons in which counted and expected calls differ")]
    beyond_3: Annotated[Count, says("comparisons beyond 3 standard deviations")]
    control: Maybe[Annotated[dict[str, Any], says("the verdict on a wrong reading, which must be refuted")]] = UNSET
    control_of_stopping: Maybe[
        Annotated[dict[str, Any], says("the verdict on a wrong reading, which must be refuted")]
    ] = UNSET
    left_out: Maybe[Annotated[list[str], says("settings that the models do not take")]] = UNSET
    median_miss: Annotated[float | None, says("median miss of the predicted speed-up, per cent")]
    median_miss_of_passes: Annotated[float | None, says("the same of the time of passes alone")]
    temperatures: Annotated[list[Temperature], says("a record for each setting")]
    provenance: Annotated[dict[str, Any], says("models, sampling, text, versions and machine")]


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


class NoiseJson(Part, kw_only=True):
    """`spectheory noise --json`."""

    schema, has_headline = 1, True

    class Chance(Part):
        """A number of a run and what chance makes of it."""

        what: str
        value: float
        others: Annotated[float, says("standard deviation between runs of other requests of the same kind")]
        again: Annotated[float | None, says("that of the same requests served again; null if nothing says")]

    k: Annotated[Positive, says("drafts of a call")]
    rule: Annotated[str | None, says("the rule of a trace")]
    requests: Annotated[float | None, says("requests of a run; null of counts that know of none")]
    calls: Annotated[float, says("calls of a run, in the mean")]
    prompts: Annotated[Count, says("prompts that the spread is from; 0: calls taken as independent, a lower bound")]
    freedom: Annotated[float | None, says("degrees of freedom of the spread; null: unlimited")]
    again: Annotated[
        Literal["exact", "lower bound", "estimate", "unknown"], says("what the deviation of the same requests is")
    ]
    rows: Annotated[list[Chance], says("tokens per call, then acceptance by position")]


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
    independent: Annotated[bool, says("calls of totals count as independent: alarm and smallest are lower bounds")]
    paired: Annotated[Count, says("prompts that both have", "difference.paired")]
    clustering: Annotated[float, says("factor by which the variance of totals was raised", "difference.clustering")]


class WatchJson(Part, kw_only=True):
    """`spectheory watch --json`: an object on one line for each scrape."""

    schema = 1

    class Share(Part):
        """Tokens per call, or the share of calls that accepted a position; null where nothing is known or counted."""

        what: str
        expected: float | None
        least: Annotated[float | None, says("lower end of what is expected (one-sided, 99%)")]
        since_start: Annotated[float | None, says("counted since the watch began")]
        window: Annotated[float | None, says("counted in the window")]

    class Alarm(Part):
        """When acceptance was found to have fallen, and what shows it most."""

        time: float
        what: str
        since: Annotated[float, says("when the fall began, at most one window ago (estimate)")]
        calls: Annotated[Count, says("since then")]
        counted: Annotated[float, says("since then")]
        expected: float
        least: float

    class Best(Part):
        """The fastest k, by the counts of the window."""

        k: Positive
        speedup: Interval | None

    time: Annotated[float, says("of the scrape, in seconds of the epoch")]
    state: Annotated[
        Literal["waiting", "learning", "watching", "alarm"],
        says("before the first call; learning the noise; testing; within a window of an alarm"),
    ]
    engine: Maybe[Annotated[str, says("that serves")]] = UNSET
    k: Maybe[Annotated[Positive, says("drafts of a call")]] = UNSET
    scrapes: Annotated[Count, says("since the watch began")]
    window: Maybe[Annotated[float, says("seconds of the window")]] = UNSET
    calls: Maybe[Annotated[Count, says("since the watch began")]] = UNSET
    window_calls: Maybe[Annotated[Count, says("in the window")]] = UNSET
    shares: Maybe[Annotated[list[Share], says("tokens per call, then positions where they are counted")]] = UNSET
    learning: Maybe[Annotated[Count, says("scrapes with calls until the test begins")]] = UNSET
    evidence: Maybe[Annotated[float, says("of a fall, in days; an alarm at the threshold")]] = UNSET
    threshold: Maybe[Annotated[float, says("days between two false alarms, at least and in the mean")]] = UNSET
    alarms: Maybe[Annotated[list[Alarm], says("all of them")]] = UNSET
    restarts: Maybe[Annotated[Count, says("how often the counters began again")]] = UNSET
    best: Annotated[Best | None, says("null without costs")] = None


class WhyJson(Part, kw_only=True):
    """`spectheory why --json`."""

    schema, has_headline = 1, True

    class Share(Part):
        """A part of a call."""

        name: str
        steps: Annotated[Interval, says("plain steps")]
        source: str

    class Cause(Part):
        """A cause that is there."""

        cause: str
        sentence: str
        steps: Annotated[Interval | None, says("plain steps of a call; null where it is no time of calls")]
        without: Annotated[Interval | None, says("the speed-up without it; null where numbers are not comparable")]

    class OfRate(Part):
        """What an acceptance rate may mean."""

        meaning: str
        tokens_per_call: Interval
        call: Annotated[Interval, says("plain steps of a call")]

    class Timed(Part):
        """Timed runs with and without drafts."""

        run: Annotated[str, says("the run with drafts", "drafted.name")]
        plain: Annotated[str, says("the plain run beside it", "plain.name")]
        k: Annotated[Positive, says("drafts of a call", "drafted.k")]
        concurrency: Annotated[int, says("requests at a time", "drafted.batch")]
        context: Annotated[float, says("mean cached tokens", "drafted.context")]
        tokens_per_call: Annotated[Interval, says("output tokens of a call", "tokens")]
        speedup: Annotated[Interval, says("of decoding")]
        call: Annotated[float, says("plain steps of a call", "ratio")]

    k: Annotated[Positive | None, says("drafts of a call as set", "case.k")]
    tokens_per_call: Annotated[Interval, says("tokens per call", "case.tokens")]
    speedup: Annotated[Interval, says("over plain decoding, of decoding alone", "case.speedup")]
    whole: Annotated[Interval | None, says("speed-up of whole requests, where it is another", "case.whole")]
    call: Annotated[Interval, says("time of a call in plain steps", "case.call")]
    as_expected: Annotated[bool | None, says("whether tokens per call are; null where nothing was expected")]
    expected: Annotated[float | None, says("tokens per call, with --expect")]
    shares: Annotated[list[Share], says("what a call's time is made of; the last one is what remains")]
    causes: Annotated[list[Cause], says("doubtful numbers first, then by how far each moves the speed-up")]
    rate_readings: Annotated[list[OfRate], says("what an acceptance rate may mean, where it stands alone")]
    pairs: Annotated[list[Timed], says("timed runs, the one that is explained first")]
