"""Settings of an engine: how it verifies, what it drafts, what to paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.deployment.candidates import DO_NOT, DRAFT_MODEL, Candidate, Draft
from spectheory.deployment.engines.facts import Engine
from spectheory.deployment.engines.models import Located
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Stopped, StoppingRule
from spectheory.prediction import Plan, Prediction, plan
from spectheory.prediction.shape_calls import by_parallel_head
from spectheory.verification import PATH_RULES, ArgmaxDraft, GreedyMatch, LookupMatch, SuffixMatch, TokenVerification

TOKEN, ARGMAX, GREEDY, LOOKUP, SUFFIX = (
    rule.name for rule in (TokenVerification, ArgmaxDraft, GreedyMatch, LookupMatch, SuffixMatch)
)
"""The rules of chains that engines have."""


@dataclass(frozen=True)
class EngineSettings:
    """Settings of one engine for one draft, with the prediction under the engine's own verification rule.

    `version` is the engine's version that the settings are for; `paste` is a command line or code with the `options`;
    `remarks` state the rule and what is uncertain, one sentence each.
    """

    engine: str
    version: str
    candidate: Candidate
    options: Mapping[str, Any]
    paste: str
    remarks: tuple[str, ...]

    @property
    def pays(self) -> bool:
        """Whether the best value of the speed-up is above that of plain decoding."""
        return self.candidate.verdict != DO_NOT


@dataclass(frozen=True)
class Ask:
    """A draft for which settings are requested, its chains under the rules that engines have, and the largest tree."""

    draft: Draft
    chains: Plan
    nodes: int

    @classmethod
    def about(cls, draft: Draft, lengths: Sequence[int], nodes: int, stops: Sequence[StoppingRule] = ()) -> Ask:
        """Predict the chains of the given lengths, and those that stopping rules end."""
        names = [GREEDY, TOKEN] if (draft.trace.sampling or Sampling()).temperature == 0 else [TOKEN, ARGMAX]
        asked = [PATH_RULES[name] for name in (*names, LOOKUP, SUFFIX)]
        rules = [rule for rule in asked if not rule.lacks(draft.trace.columns)]
        shapes = [Chain(k) for k in lengths]
        chains = plan(draft.trace, draft.cost, rules=rules, shapes=shapes)
        if stops:
            shapes = [Stopped(k, stop) for stop in stops for k in lengths]
            chains += plan(draft.trace, draft.cost, rules=[rule for rule in rules if rule.uses_draft], shapes=shapes)
        return cls(draft, chains, nodes)

    def fastest(
        self, *rules: str, most: int | None = None, stop: type[StoppingRule] | None = None
    ) -> Prediction | None:
        """The fastest chain of at most `most` drafts under one of the rules (the first in case of a tie); None if the
        trace predicts none. Of chains that the draft ends those whose stopping rule is a `stop` take part.
        """
        of_rules = [p for rule in rules for p in self.chains.predictions if p.rule.name == rule]
        known = [p for p in of_rules if most is None or p.shape.nodes <= most]
        known = [p for p in known if not isinstance(p.shape, Stopped) or (stop and isinstance(p.shape.stop, stop))]
        return max(known, key=lambda p: p.gain) if known else None

    def drafted(
        self, *rules: str, most: int | None = None, stop: type[StoppingRule] | None = None
    ) -> Prediction | None:
        """The fastest chain under one of the rules; at temperature 0 of greedy matching or, equal to it, token."""
        if self.greedy:
            return self.fastest(GREEDY, most=most, stop=stop) or self.fastest(TOKEN, most=most, stop=stop)
        return self.fastest(*rules, most=most, stop=stop)

    @property
    def longest(self) -> int:
        """Most drafts of the chains."""
        return max(prediction.shape.nodes for prediction in self.chains.predictions)

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn."""
        return self.draft.trace.sampling or Sampling()

    @property
    def min_p(self) -> bool:
        """Whether min-p may cut tokens."""
        return self.sampling.temperature > 0 and bool(self.sampling.min_p)

    @property
    def greedy(self) -> bool:
        """Whether the target decodes greedily."""
        return self.sampling.temperature == 0

    @property
    def requests(self) -> str:
        """A remark with the sampling settings of requests, for servers without them on the command line."""
        known = {"top_k": self.sampling.top_k, "top_p": self.sampling.top_p} if not self.greedy else {}
        asked = {"temperature": self.sampling.temperature, **{name: value for name, value in known.items() if value}}
        words = ", ".join(f"{name} {value:g}" for name, value in asked.items())
        return f"Send requests with {words}: the prediction is for these."

    @property
    def cut(self) -> bool:
        """Whether tokens are cut by top-k or top-p."""
        return bool(self.sampling.top_k or self.sampling.top_p)

    @property
    def target(self) -> Located:
        """The target as it was loaded."""
        return Located.of(self.draft, "target")

    @property
    def drafter(self) -> Located:
        """The draft model as it was loaded."""
        return Located.of(self.draft, "draft")

    @property
    def head(self) -> bool:
        """Whether the draft is a head that reads the target's hidden states."""
        return self.draft.kind != DRAFT_MODEL

    @property
    def parallel(self) -> bool:
        """Whether the draft makes all tokens of a call in one pass."""
        return by_parallel_head(self.draft.trace.provenance)

    @property
    def types_differ(self) -> bool:
        """Whether the models were measured in different types."""
        types = {self.target.dtype, self.drafter.dtype} - {None}
        return len(types) == 2

    def settings(
        self, engine: Engine, best: Prediction, options: Mapping[str, Any], paste: str, remarks: Sequence[str]
    ) -> EngineSettings:
        """The settings of an engine; a remark names the paths to fill in."""
        read = [self.target, self.drafter] if best.rule.uses_draft else [self.target]
        unknown = [model.source for model in read if model.source in paste and not model.known]
        them = "it" if len(unknown) == 1 else "them"
        fill = [f"Replace {' and '.join(unknown)}: the trace does not record {them}."] if unknown else []
        draft = self.draft if best.rule.uses_draft else self.draft.unread
        return EngineSettings(engine.name, engine.version, Candidate(draft, best), options, paste, (*remarks, *fill))


def command(words: Sequence[str], options: Mapping[str, Any]) -> str:
    """A command line of long options; True makes a flag."""
    line = list(words)
    for name, value in options.items():
        line += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return shlex.join(line)
