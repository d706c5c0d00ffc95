"""What speculative decoding gives on a trace: the prediction of one rule and shape, and the plan of many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spectheory.checks import instance
from spectheory.drafting import Shape
from spectheory.intervals import Interval
from spectheory.limits.claims import IID_FORMULA, LimitClaim
from spectheory.prediction.best_tree import ShapeRequest
from spectheory.prediction.trace_limits import Limits
from spectheory.verification import PathRule


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
class Plan:
    """Predictions for every rule and shape asked for, in that order, and the best of them.

    The best has the largest speed-up; without costs the most tokens per call, which more drafts never lower. `prompts`
    is the number of prompts that the intervals rest on. `chosen_on` is the number of tokens that trees and thresholds
    of B6 are chosen on, where that is a sample of the texts; None where it is all of them, or nothing is chosen.
    `left_out` says what the cost model does not reach, a sentence each.
    """

    predictions: tuple[Prediction, ...]
    best: Prediction
    prompts: int
    chosen_on: int | None = None
    left_out: tuple[str, ...] = ()

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
        return Plan(self.predictions + other.predictions, best, self.prompts, chosen_on, left_out)


def merit(prediction: Prediction) -> tuple[bool, float]:
    """What the best of a plan has most of: a choice by hindsight comes last."""
    return not prediction.rule.hindsight, prediction.gain


def _shortened(text: str) -> str:
    return text if len(text) <= _LETTERS_SHOWN else f"{text[: _LETTERS_SHOWN - 3]}..."


def a_prediction(prediction: Prediction) -> Prediction:
    """Check that an argument is a prediction."""
    return instance("prediction", prediction, Prediction, remedy="spectheory.predict makes one")
