"""What ``spectheory judge`` and ``validate`` write."""

from typing import Annotated, Any, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, says
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
