"""What speculative decoding gives on a trace: the prediction of one rule and shape, and the plan of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectheory.cost import CostModel
from spectheory.drafting import Shape
from spectheory.drafting.history import LengthPolicy
from spectheory.intervals import Interval
from spectheory.limits.claims import IID_FORMULA, LimitClaim
from spectheory.prediction.best_tree import ShapeRequest
from spectheory.prediction.bias_tradeoff import BiasPoint
from spectheory.prediction.per_prompt import Largest, PerPrompt
from spectheory.prediction.remarks import doubts
from spectheory.prediction.trace_limits import Limits
from spectheory.verification import PathRule

_ASKED = ("adaptive", "bias", "new_prompts", "recorded", "cost")
"""What plans of one trace share."""


@dataclass(frozen=True)
class Label:
    """The name of a rule and the kind of shape; None for chains. `stop` is the stopping rule of chains that have one.

    Examples
    --------
    >>> str(Label("token")), str(Label("race", "tree"))
    ('token', 'race tree')
    >>> str(Label("token", stop="top<0.6"))
    'token, top<0.6'
    """

    rule: str
    kind: str | None = None
    stop: str | None = None

    @property
    def chain(self) -> bool:
        """Whether the shapes are chains."""
        return self.kind is None

    def __str__(self) -> str:
        """The words of a heading."""
        name = self.rule if self.kind is None else f"{self.rule} {self.kind}"
        return f"{name}, {self.stop}" if self.stop else name

    @classmethod
    def of(cls, rule: PathRule, wanted: ShapeRequest) -> Label:
        """The label of a shape that was asked for; one that is written by hand stands for itself."""
        if wanted.is_chain:
            return cls(rule.name, stop=str(wanted.stop) if wanted.stop else None)
        return cls(rule.name, wanted.family)


_LETTERS_SHOWN = 40
"""Letters of a shape that a repr writes out."""


@dataclass(frozen=True)
class Prediction:
    """What one rule and shape give on a trace.

    - `wanted` is what was asked for: the shape itself, or the search that found it.
    - `tokens_per_call` counts the recovered or bonus token. It is exact for the texts of the trace by the path theorem
      (§7); the range is over prompts. `accepted_length` is one less.
    - `acceptance` is the acceptance rate of a call's first draft, averaged over positions.
    - `iid_tokens_per_call` is the i.i.d. formula: C1 (``leviathan2023``) with that rate for a chain, S1 with the mean
      rank law for another shape; of drafts by start with the law of a call's first draft (§10).
    - `speedup` is tokens per second over those of plain decoding, if a cost model was given (C2).
    - `limits` are those of whole decodings and of one call, and idealised values, at as many draft nodes.
    - `regret` of a chain is the share of calls beyond those of its limit, B7 or L (§12, exact for the texts; the range
      is over prompts, paired); none for a rule that the limit does not bind.
    - `held_out`: every text was scored with a shape that was not chosen on it (not so for a tree searched on one
      prompt).
    - `certified` is the certain range of `tokens_per_call` for the trace's texts, where the trace does not settle it:
      the rule needs full pmfs, and the trace has lists of the most probable tokens (§9). The other intervals are then
      the ranges over both ends, and ``best`` is the middle.
    - `disturbed` is the lowest and highest speed-up by the times of one group of rounds alone, where other processes
      disturbed the timing (:attr:`spectheory.cost.LatencyTable.disturbed`).
    - `drafted` are the drafted tokens per call, where the draft decides its length (§11): an estimate by likelihood
      ratios with its range over prompts, inside certain bounds.
    """

    rule: PathRule
    shape: Shape
    wanted: ShapeRequest
    tokens_per_call: Interval
    accepted_length: Interval
    acceptance: Interval
    iid_tokens_per_call: float
    speedup: Interval | None
    limits: Limits
    held_out: bool
    provenance: Mapping[str, Any]
    certified: Interval | None = None
    drafted: Interval | None = None
    regret: Interval | None = None
    disturbed: Interval | None = None

    @property
    def label(self) -> Label:
        """Rule and kind of shape."""
        return Label.of(self.rule, self.wanted)

    @property
    def gain(self) -> float:
        """What plans maximise: the speed-up, or without costs the tokens per call; the low end of a range of bounds."""
        gain = self.speedup or self.tokens_per_call
        return gain.low if self.certified or gain.kind == "bound" else gain.best

    def compared(self, claim: LimitClaim) -> float | None:
        """The best value of a limit, or of the i.i.d. formula, for this rule and shape."""
        value = self.iid_tokens_per_call if claim is IID_FORMULA else getattr(self.limits, claim.key)
        return value.best if isinstance(value, Interval) else value

    def __repr__(self) -> str:
        """Rule, shape and the two numbers asked for, in short."""
        gain = f", speed-up {self.speedup}" if self.speedup else ""
        return (
            f"<Prediction: {self.rule.name}, {_shortened(str(self.shape))}: {self.tokens_per_call} tokens a call{gain}>"
        )


@dataclass(frozen=True)
class ByHistory:
    """What a policy gives: `prediction`, and `error` of its tokens per call by drawn acceptances (95%; 0: exact)."""

    policy: LengthPolicy
    prediction: Prediction
    error: float


@dataclass(frozen=True)
class AdaptiveWorth:
    """The best fixed length, the best stopping rule and the limit of all adaptive lengths, for one verification rule.

    `stopped` has the stopping rule that is best on all prompts; each prompt is scored with the rule that is best on
    others. `limit` bounds the speed-up of every adaptive length of at most k drafts with this rule, `any_rule` that of
    every lossless fresh rule on one chain too; None for given text and drafts that do not sample (95% over prompts).
    `histories` are lengths that earlier calls decide. `draft` names the draft where several are compared.
    """

    rule: PathRule
    fixed: Prediction
    stopped: Prediction
    limit: Interval
    any_rule: Interval | None = None
    draft: str = ""
    histories: tuple[ByHistory, ...] = ()

    @property
    def worth(self) -> float:
        """The most that adapting adds to the best fixed length, or to plain decoding if it is faster, as a share."""
        assert self.fixed.speedup is not None
        return max(self.limit.best / max(self.fixed.speedup.best, 1.0) - 1, 0.0)


@dataclass(frozen=True)
class RecordedReading:
    """Tokens per call of one draft of a log and one k: exact, and as other readings of the log have it.

    `by_start` is exact for the log's texts (§10), with its 95% interval over requests; it pools their calls, while
    `over_requests` is the mean over requests of each one's own. `largest` are the longest requests. `by_position` takes
    each position's first draft alone, as if it did not depend on where the call starts; `iid` is C1 with the share of
    starts whose first draft is accepted. Both are idealised values. `recut` is the share of starts with 0 < a < most
    whose next start accepts a - 1: where it is below 1, a log of one k cannot be re-cut into another k. `most` is the
    longest recorded length.
    """

    draft: str
    k: int
    by_start: Interval
    over_requests: Interval
    by_position: float
    iid: float
    recut: float | None
    most: int
    largest: Largest


@dataclass(frozen=True)
class RuleGain:
    """What the better of two rules adds to the `other`, each with its best chain.

    `ratio` is that of their speed-ups, or without costs of tokens per call, with its 95% interval over the same prompts
    (paired, so narrower than both intervals suggest). The error of latencies is not in it.
    """

    rule: str
    other: str
    ratio: Interval


@dataclass(frozen=True)
class Plan:
    """Predictions for every rule and shape asked for, in that order, and the best of them.

    The best has the largest speed-up; without costs the most tokens per call, which more drafts never lower. `prompts`
    is the number of prompts that the intervals rest on. `chosen_on` is the number of tokens that trees and thresholds
    of B6 are chosen on, where that is a sample of the texts; None where it is all of them, or nothing is chosen.
    `left_out` says what the costs or the trace do not reach, a sentence each.

    Where they are asked for, `adaptive` says what adaptive lengths are worth (§11), `bias` what over-acceptance gives
    and costs (Y5, Y6), `new_prompts` what the best rule gives on prompts to come, and of two rules `over` what one adds
    to the other. `recorded` are the readings of
    recorded lengths. `cost` is what speed-ups were computed with. With `prefill_emits_token` the prompt's pass emits
    the first token.
    """

    predictions: tuple[Prediction, ...]
    best: Prediction
    prompts: int
    chosen_on: int | None = None
    left_out: tuple[str, ...] = ()
    adaptive: tuple[AdaptiveWorth, ...] = ()
    bias: tuple[BiasPoint, ...] = ()
    new_prompts: tuple[PerPrompt, ...] = ()
    recorded: tuple[RecordedReading, ...] = ()
    cost: CostModel | None = None
    prefill_emits_token: bool = False
    over: RuleGain | None = None

    def __repr__(self) -> str:
        """How many there are, and the best."""
        return f"<Plan: {len(self.predictions)} predictions, best {self.best!r}>"

    def of(self, label: Label | str) -> list[Prediction]:
        """The predictions with one label, or with its words, by the number of nodes."""
        return sorted((p for p in self.predictions if str(p.label) == str(label)), key=lambda p: p.shape.nodes)

    @property
    def timed(self) -> bool:
        """Whether costs were given, so that there are speed-ups."""
        return self.best.speedup is not None

    @property
    def warnings(self) -> list[str]:
        """What makes the numbers doubtful, a sentence each."""
        return doubts(self.best.provenance)

    @property
    def labels(self) -> list[Label]:
        """Rules and kinds of shape in the order asked for."""
        return list(dict.fromkeys(p.label for p in self.predictions))

    @property
    def chains(self) -> list[Label]:
        """The labels of chains."""
        return [label for label in self.labels if label.chain]

    @property
    def trees(self) -> list[Label]:
        """The labels of other shapes."""
        return [label for label in self.labels if not label.chain]

    def __add__(self, other: Plan) -> Plan:
        """The predictions of two plans for one trace, and the better of their best."""
        best = max(self.best, other.best, key=merit)
        chosen_on, left_out = self.chosen_on or other.chosen_on, self.left_out + other.left_out
        predictions = self.predictions + other.predictions
        either = {name: getattr(self, name) or getattr(other, name) for name in _ASKED}
        return Plan(predictions, best, self.prompts, chosen_on, left_out, **either)


def merit(prediction: Prediction) -> tuple[bool, float]:
    """What the best of a plan has most of: a choice by hindsight comes last."""
    return not prediction.rule.hindsight, prediction.gain


def _shortened(text: str) -> str:
    return text if len(text) <= _LETTERS_SHOWN else f"{text[: _LETTERS_SHOWN - 3]}..."
