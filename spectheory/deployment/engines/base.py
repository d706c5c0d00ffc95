"""What an engine's settings are: how it verifies, what it drafts, what to paste."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spectheory.deployment.candidates import DO_NOT, Candidate, Draft
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.prediction import Plan, Prediction, plan
from spectheory.verification import PATH_RULES

TOKEN, BLOCK, ARGMAX, GREEDY, LOOKUP = "token", "block", "argmax", "greedy", "lookup"
"""The rules of chains that engines have."""


@dataclass(frozen=True)
class EngineSettings:
    """Settings of one engine for one draft, and what they give under the engine's own verification rule.

    Attributes
    ----------
    engine : str
        ``transformers``, ``vllm`` or ``sglang``.
    candidate : Candidate
        The draft and the prediction under the engine's rule with these settings.
    options : mapping
        JSON-ready settings.
    paste : str
        The same as a line to paste, or as code.
    remarks : tuple of str
        What the rule is, and what is not certain, one sentence each.
    """

    engine: str
    candidate: Candidate
    options: Mapping[str, Any]
    paste: str
    remarks: tuple[str, ...]

    @property
    def pays(self) -> bool:
        """Whether it is faster than plain decoding, by the best value."""
        return self.candidate.verdict != DO_NOT

    def as_dict(self) -> dict[str, Any]:
        """The settings as a JSON-ready dictionary."""
        prediction = self.candidate.prediction
        return {
            "engine": self.engine,
            "draft": self.candidate.draft.name,
            "rule": prediction.rule.name,
            "shape": str(prediction.shape),
            "tokens_per_call": prediction.tokens_per_call.as_dict(),
            "speedup": self.candidate.speedup.as_dict(),
            "verdict": self.candidate.verdict,
            "options": dict(self.options),
            "paste": self.paste,
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class Ask:
    """A draft whose settings are asked for, with what its chains give under the rules that engines have.

    Attributes
    ----------
    draft : Draft
        The draft.
    chains : Plan
        Predictions of the chains.
    nodes : int
        Most nodes of a draft tree.
    """

    draft: Draft
    chains: Plan
    nodes: int

    @classmethod
    def about(cls, draft: Draft, lengths: Sequence[int], nodes: int) -> Ask:
        """Predict the chains of the given lengths."""
        names = [GREEDY, TOKEN] if sampling_of(draft).temperature == 0 else [TOKEN, BLOCK, ARGMAX]
        asked = [PATH_RULES[name] for name in (*names, LOOKUP)]
        rules = [rule for rule in asked if set(rule.needs) <= set(draft.trace.columns)]
        shapes = [Chain(k) for k in lengths]
        chains = plan(draft.trace, draft.cost, rules=rules, shapes=shapes)
        return cls(draft, chains, nodes)

    def fastest(self, *rules: str) -> Prediction | None:
        """The fastest chain under one of the rules, the first of them where they tie; None if none is known."""
        known = [p for rule in rules for p in self.chains.of(rule)]
        return max(known, key=_gain) if known else None

    def matching(self) -> Prediction | None:
        """The fastest chain of greedy decoding; where agreement is not recorded, token verification is the same."""
        return self.fastest(GREEDY) or self.fastest(TOKEN)

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn."""
        return sampling_of(self.draft)

    @property
    def target_name(self) -> str:
        """The target as the trace names it."""
        return str(self.draft.fact("target", "name") or "TARGET")

    @property
    def draft_name(self) -> str:
        """The draft as the trace names it."""
        return str(self.draft.fact("draft", "name") or "DRAFT")


def sampling_of(draft: Draft) -> Sampling:
    """The sampling settings that the trace records; plain sampling where it records none."""
    found = draft.fact("settings", "sampling")
    known = {name: found.get(name) for name in ("top_k", "top_p")} if isinstance(found, dict) else {}
    temperature = found.get("temperature", 1.0) if isinstance(found, dict) else 1.0
    return Sampling(temperature=float(temperature), **known)


def command(words: Sequence[str], options: Mapping[str, Any]) -> str:
    """A command line of long options; a flag for True."""
    line = list(words)
    for name, value in options.items():
        line += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return shlex.join(line)


def _gain(prediction: Prediction) -> float:
    return prediction.speedup.best if prediction.speedup else 0.0
