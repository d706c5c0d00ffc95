"""What ``spectheory predict`` writes, with ``--what-if`` too."""

from typing import Annotated, Any, Literal

from msgspec import UNSET

from spectheory.answers.base import Count, Maybe, Part, Paths, Positive, says
from spectheory.intervals import Interval


class LimitsJson(Part, kw_only=True):
    """B7 by position and by start, B6, B2' and T1 for i.i.d. text; null where unknown."""

    decoding: Interval | None
    decoding_by_start: Interval | None
    text: Interval | None
    iid_branching: float | None
    iid_channel: float | None


class SettingJson(Part, kw_only=True):
    """What one rule and shape give."""

    rule: Annotated[str, says("verification rule", "rule.name")]
    shape: Annotated[str, says("draft shape, of the drafts that give the numbers")]
    wanted: Annotated[str, says("draft shape that was asked for")]
    paths: Annotated[Paths, says("ranks from the root to each node; null for a chain", "shape.listed")]
    k: Annotated[Count, says("draft nodes of a call", "shape.nodes")]
    depth: Annotated[Count, says("depth of the shape", "shape.depth")]
    tokens_per_call: Annotated[Interval, says("tokens per target call, recovered or bonus token counted")]
    accepted_length: Annotated[Interval, says("accepted drafts per call")]
    acceptance: Annotated[Interval, says("mean acceptance of the first draft over all positions")]
    iid_tokens_per_call: Annotated[float | None, says("C1: tokens per call if acceptances were i.i.d.")]
    speedup: Annotated[Interval | None, says("over plain decoding; null without costs")]
    limits: Annotated[LimitsJson, says("upper bounds on tokens per call and idealised values")]
    regret: Annotated[Interval | None, says("what is lost to the best rule of the same shape")]
    held_out: Annotated[bool, says("whether the shape was chosen on other prompts")]
    certified: Maybe[Annotated[Interval, says("range that the recorded lists of tokens allow")]] = UNSET
    drafted: Maybe[Annotated[Interval, says("drafted tokens per call, where the draft stops by itself")]] = UNSET
    disturbed: Maybe[
        Annotated[Interval, says("speed-ups by one group of rounds alone, where other processes disturbed the timing")]
    ] = UNSET


class AdaptiveJson(Part, kw_only=True):
    """The best fixed length, the best stopping rule, and the limits of all adaptive lengths."""

    draft: Maybe[str] = UNSET
    rule: Annotated[str, says("verification rule", "rule.name")]
    fixed: SettingJson
    stopped: SettingJson
    limit: Annotated[Interval, says("no adaptive length with this rule is faster")]
    any_rule: Annotated[Interval | None, says("no adaptive length with any lossless fresh rule on one chain is faster")]
    worth: float

    class History(Part):
        """A policy that decides the next length from earlier calls."""

        policy: Annotated[str, says("its name", "policy.name")]
        engine: Annotated[str, says("the engine that runs it", "policy.engine")]
        prediction: SettingJson
        error: Annotated[float, says("95% error of tokens per call by drawn acceptances; 0: exact given the texts")]

    histories: Annotated[list[History], says("lengths that earlier calls decide")]


class RecordedJson(Part, kw_only=True):
    """One draft of recorded lengths: exact by start, and idealised values."""

    class Largest(Part):
        """The longest 1% of the requests and their share of the tokens."""

        prompts: Positive
        of: Positive
        share: float

    draft: str
    k: Count
    by_start: Annotated[Interval, says("pooled over the calls of all requests")]
    over_requests: Annotated[Interval, says("mean of each request's own")]
    by_position: float
    iid: float
    recut: float | None
    most: Count
    largest: Annotated[Largest, says("the longest 1% of the requests and their share of the tokens")]


class AtRatioJson(Part, kw_only=True):
    """The fastest setting at another cost ratio than the one given."""

    c: float
    rule: Annotated[str, says("verification rule; empty of counts")]
    shape: str
    tokens_per_call: Interval
    speedup: Interval


class EngineJson(Part):
    """An engine with its best setting."""

    engine: str
    version: str
    draft: Annotated[str, says("name of the draft", "candidate.draft.name")]
    rule: Annotated[str, says("verification rule", "candidate.prediction.rule.name")]
    shape: Annotated[str, says("draft shape", "candidate.prediction.shape")]
    tokens_per_call: Annotated[Interval, says("tokens per target call", "candidate.prediction.tokens_per_call")]
    speedup: Annotated[Interval, says("over plain decoding", "candidate.speedup")]
    verdict: Annotated[str, says("whether it pays", "candidate.verdict")]
    options: dict[str, Any]
    paste: str
    remarks: list[str]


class PredictionJson(SettingJson, kw_only=True):
    """`spectheory predict --json` and `prediction.json`."""

    schema, has_headline = 1, True

    class Best(Part):
        """The setting that the numbers above are of, and what it is best by."""

        rule: str
        shape: str
        by: Literal["speedup", "tokens_per_call"]

    class Bias(Part):
        """Tokens per call under one rule that changes the text, and what it costs per verified token."""

        rule: Annotated[str, says("what decides and from where", "name")]
        share: Annotated[float | None, says("share of over-acceptance; of other rules null")]
        k: Count
        tokens_per_call: Interval
        side: str
        upper_tokens_per_call: Interval | None
        bias: Annotated[Interval, says("total variation, the least share of tokens that changes")]
        nats: Annotated[Interval | None, says("KL(output || target); of relaxed log-probability given up")]
        uno_bias: Interval | None
        speedup: Interval | None

    class NewPrompts(Part):
        """Of one shape: the mean over prompts, and its range over so many new ones."""

        shape: Annotated[str, says("draft shape", "wanted")]
        mean: Interval
        new: Interval
        prompts: Positive

    class Over(Part):
        """Ratio of the speed-ups of two rules, or of their tokens per call, paired by prompt."""

        rule: str
        other: str
        ratio: Interval

    class Where(Part):
        """Where the calls of one setting start, and where they are lost."""

        class Depth(Part):
            """Acceptance by depth, of one shape."""

            shape: str
            survival: list[Interval]
            conditional: list[Interval]
            everywhere: list[float | None]

        class Group(Part):
            """Tokens of the texts, and the calls that start, or are lost, at them."""

            name: str
            tokens: Count
            calls: float
            share: Interval
            rate: Interval

        class Text(Part):
            """One text token by token, and where most of its calls are lost."""

            class Costly(Part):
                """A token at which calls are lost."""

                position: Count
                token: str
                before: str
                after: str
                lost: float

            id: str
            tokens: list[str]
            accepted: list[float]
            costliest: list[Costly]

        rule: Annotated[str, says("verification rule", "rule.name")]
        shape: str
        calls: float
        lost: float
        full: float
        depths: list[Depth]
        by_position: list[Group]
        by_context: list[Group]
        classes: list[Group]
        ids: list[Group]
        text: Text
        named: str | None

    best: Annotated[Best, says("the setting that the numbers above are of, and what it is best by")]
    predictions: Annotated[list[SettingJson], says("every rule and shape")]
    prompts: Annotated[Count, says("prompts that the intervals rest on")]
    chosen_on: Maybe[
        Annotated[Count, says("tokens that trees and thresholds were chosen on, where that is a sample")]
    ] = UNSET
    provisional: Maybe[Annotated[dict[str, Any], says("prompts that were measured so far, and of how many")]] = UNSET
    warnings: Maybe[Annotated[list[str], says("what makes the numbers doubtful")]] = UNSET
    provenance: Annotated[dict[str, Any], says("models, sampling, text, versions and machine")]
    in_loop: Annotated[bool, says("whether speed-ups count the decoding loop around the passes")]
    bias: Annotated[list[Bias], says("tokens per call against bias, with --bias and rules that change the text")]
    check: Maybe[
        Annotated[
            list[dict[str, Any]], says("calls of transformers' assisted generation beside the prediction, with --check")
        ]
    ] = UNSET
    check_of_all: Maybe[Annotated[dict[str, Any], says("the same over every k")]] = UNSET
    adaptive: Maybe[Annotated[list[AdaptiveJson], says("what lengths decided by the draft are worth, with --stop")]] = (
        UNSET
    )
    new_prompts: Maybe[
        Annotated[
            list[NewPrompts],
            says("the best rule's mean over prompts and its prediction interval for new ones, with --new-prompts"),
        ]
    ] = UNSET
    recorded: Maybe[Annotated[list[RecordedJson], says("readings of recorded lengths")]] = UNSET
    engines: Maybe[Annotated[list[EngineJson], says("the best setting of each engine, the fastest first")]] = UNSET
    over: Maybe[Annotated[Over, says("what one of two rules adds to the other")]] = UNSET
    guessed: Maybe[Annotated[list[AtRatioJson], says("the best at half and at twice the c of --c")]] = UNSET
    where: Maybe[Annotated[list[Where], says("where calls start and where they are lost, with --where")]] = UNSET


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


class ElsewhereJson(Part, kw_only=True):
    """`spectheory predict --drafting … --json` and `elsewhere.json`."""

    schema, has_headline = 1, True

    class Row(Part):
        """A placement at one k."""

        drafting: Annotated[str, says("where drafts are made", "where")]
        link: Annotated[float, says("time of a message, one way", "where.link")]
        k: Annotated[Positive, says("drafts of a call; of parallel drafting its lookahead")]
        speedup: Annotated[Interval, says("over plain decoding on the same target")]
        tokens_per_call: Annotated[Interval | None, says("null of parallel drafting, which waits for no call")]
        hits: Annotated[Interval | None, says("share of predicted outcomes; of parallel drafting of right drafts")]
        fan_out: Annotated[list[Count], says("predicted tokens after 0, 1, ..., k accepted drafts")]

    class ByLength(Part):
        """Calls by how they end."""

        accepted: Count
        share: Annotated[float, says("of calls, the last ones of texts excepted")]
        guesses: Annotated[Count, says("predicted tokens")]
        hits: Annotated[Interval, says("share of these calls that were predicted")]

    rule: Annotated[str, says("verification rule")]
    best: Annotated[list[Row], says("the fastest k of each placement")]
    rows: Annotated[list[Row], says("every placement and k")]
    outcomes: Annotated[list[ByLength], says("of the best that drafts ahead; empty without")]
    prompts: Annotated[Count, says("prompts that the intervals rest on")]
