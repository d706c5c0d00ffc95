"""What ``spectheory bounds``, ``rules`` and ``tree`` write, and ``predict`` from an acceptance rate alone."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta

from spectheory.answers.base import Count, Maybe, Part, Paths, Positive, says
from spectheory.intervals import Interval


class BoundsJson(Part, kw_only=True):
    """`spectheory bounds --json`."""

    schema, has_headline = 1, True

    class Column(Part):
        """A value of the rows, and what it claims."""

        heading: str
        what: str
        claim: Annotated[str, says("what it claims", "scope.says")]

    source: Annotated[
        Literal["moments", "pmfs", "ranks", "trace", "target"], says("what the limits were computed from")
    ]
    mu: Maybe[Annotated[float, says("mean entropy, nats")]] = UNSET
    mu2: Maybe[Annotated[float, says("mean of sum p log^2 p, nats squared")]] = UNSET
    pmfs: Maybe[Annotated[Count, says("number of pmfs")]] = UNSET
    texts: Maybe[Annotated[Count, says("number of texts")]] = UNSET
    positions: Maybe[Annotated[Count, says("number of positions")]] = UNSET
    nats_per_token: Maybe[Annotated[float, says("mean surprisal of the text")]] = UNSET
    rank_entropy: Maybe[Annotated[float, says("H(R), nats")]] = UNSET
    letters: Maybe[Annotated[Count, says("ranks with a probability")]] = UNSET
    unit: Annotated[str, says("unit of the values")]
    rows: Annotated[
        list[Annotated[dict[str, float | Interval | None], Meta(extra_json_schema={"required": ["nodes"]})]],
        says("a value or null for each number of draft nodes, by the keys of `columns`"),
    ]
    columns: Annotated[dict[str, Column], says("what each value is, and what it claims")]


class NeedsJson(Part, kw_only=True):
    """`spectheory bounds --target-nats | --need … --json`."""

    schema, has_headline = 1, True

    class Reading(Part):
        """A number and its side."""

        value: float
        side: str

    class Needed(Part):
        """What a chain of k drafts needs to be so fast."""

        k: Count
        tokens_per_call: float
        acceptance: float
        divergence: float | None

    class Assured(Part):
        """Tokens per call that a chain of k drafts has at least, by token or block verification and by the race."""

        k: Count
        tokens_per_call: float
        race: float

    source: Annotated[Literal["entropies", "need"], says("what was given")]
    target_nats: Maybe[Annotated[float, says("mean entropy of the target")]] = UNSET
    draft_nats: Maybe[Annotated[float, says("mean cross-entropy of the draft")]] = UNSET
    vocabulary: Maybe[Annotated[Count, says("tokens")]] = UNSET
    need: Maybe[Annotated[float, says("speed-up that is wanted")]] = UNSET
    c: Maybe[Annotated[float, says("draft step over target step")]] = UNSET
    readings: Annotated[dict[str, Reading], says("what the entropies say, with its side")]
    needed: Annotated[list[Needed], says("what chains of k drafts need")]
    least: Annotated[Needed | None, says("the length that needs the least acceptance")]
    assured: Annotated[list[Assured], says("lower bounds from both entropies (A1, C6); empty without")]


class AcceptanceJson(Part, kw_only=True):
    """`spectheory predict --acceptance … --json`."""

    schema, has_headline = 1, True

    class Length(Part):
        """A chain of k drafts; ranges are of all texts, their `best` is the idealised value of i.i.d. acceptances."""

        k: Positive
        tokens_per_call: Interval
        speedups: Annotated[list[Interval], says("at each of `cs`; empty without --c")]

    source: Annotated[Literal["acceptance"], says("what was given")]
    acceptance: Annotated[float, says("the rate that was given")]
    counted_k: Annotated[Positive | None, says("drafts per call if the rate is accepted over drafted tokens")]
    cs: Annotated[list[float], says("half the c given, the c, and twice that; of free drafts 0 alone")]
    safest: Annotated[Positive, says("k with the largest speed-up that is sure", "safest.k")]
    likeliest: Annotated[Positive, says("k with the largest speed-up if acceptances are i.i.d.", "likeliest.k")]
    rows: Annotated[list[Length], says("a chain of each length")]


class RulesJson(Part, kw_only=True):
    """`spectheory rules --json`."""

    schema, has_headline = 1, True

    class Rule(Part):
        """A rule with k candidates; `reason` says why it has no number."""

        rule: str
        k: Count
        acceptance: Interval | None
        side: str | None
        optimum: float | None
        gap: float | None
        optimum_is_limit: bool | None
        rank_entropy: float | Interval | None
        reason: str | None

    source: Annotated[Literal["pmfs", "trace"], says("where the means are over")]
    k: Annotated[Count, says("candidates")]
    positions: Annotated[Count, says("pairs of pmfs, or positions")]
    optimum: Annotated[dict[str, float | None], says("alpha*_k by k; null where unknown")]
    total_variation: Annotated[Interval | None, says("mean")]
    kl: Annotated[Interval | None, says("mean, nats; null where infinite or unknown")]
    rules: Annotated[list[Rule], says("every rule, the largest acceptance first")]


class TreeJson(Part, kw_only=True):
    """`spectheory tree --json`."""

    schema, has_headline = 1, True

    source: Annotated[Literal["ranks", "trace"], says("what the tree was computed from")]
    rank_pmf: Maybe[Annotated[list[float], says("the law of the rank")]] = UNSET
    rank_entropy: Maybe[Annotated[float, says("H(R), nats")]] = UNSET
    rule: Maybe[Annotated[str, says("verification rule")]] = UNSET
    texts: Maybe[Annotated[Count, says("number of texts")]] = UNSET
    positions: Maybe[Annotated[Count, says("number of positions")]] = UNSET
    nodes: Annotated[Count, says("nodes of the tree")]
    depth: Annotated[Count, says("its depth")]
    draft_pass_tokens: Annotated[list[Count], says("tokens that each draft pass reads")]
    tokens_per_call: Annotated[Interval, says("tokens per target call")]
    iid_channel: Annotated[float | None, says("T1 for as many nodes", "channel")]
    survival: Annotated[list[float], says("P(accepted depth >= i)")]
    others: Annotated[dict[str, Interval], says("tokens per call of other trees of the size")]
    paths: Annotated[Paths, says("ranks from the root to each node")]
    weights: Annotated[list[float], says("probability that each node is accepted")]
