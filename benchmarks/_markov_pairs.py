"""Made-up pairs of Markov chains: texts of the target with what a trace records, and calls decoded by simulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from simulations.kernels.stopped_decoding import stopped_calls, stops_of
from simulations.models.pairs import Chains
from spectheory.drafting import Chain
from spectheory.prediction.paths import calls_of_texts
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.prediction.stopped import DraftedLengths
from spectheory.trace import TextInfo, Trace
from spectheory.verification import BlockVerification, TokenVerification

Floats = NDArray[np.float64]
TOKENS = 12


@dataclass(frozen=True)
class MarkovPair:
    """Next-token pmfs ``[V, V]`` by the token before; the first token is uniform and not counted."""

    target: Floats
    draft: Floats

    @classmethod
    def made(cls, seed: int, off: float, tokens: int = TOKENS) -> MarkovPair:
        """A target, and a draft whose logits are off by so much."""
        rng = np.random.default_rng([21, seed])
        logits = rng.normal(0.0, 2.0, (tokens, tokens))
        return cls(_softmax(logits), _softmax(logits + rng.normal(0.0, off, logits.shape)))

    def __or__(self, other: MarkovPair) -> MarkovPair:
        """Prompts of either kind, half each: no token is in both."""
        pairs = ((self.target, other.target), (self.draft, other.draft))
        return MarkovPair(*(np.block([[a, 0 * a], [0 * b, b]]) for a, b in pairs))

    def trace(self, lengths: NDArray[np.int64], rng: np.random.Generator) -> Trace:
        """Texts of these lengths drawn from the target, each after a prompt of its own."""
        longest = int(lengths.max())
        text = np.empty((longest + 1, len(lengths)), np.int64)
        text[0] = rng.integers(len(self.target), size=len(lengths))
        steps = np.cumsum(self.target, axis=1)
        for before, after in pairwise(text):
            after[:] = (steps[before] <= rng.random(len(lengths))[:, None]).sum(axis=1)
        inside = np.arange(longest) < lengths[:, None]
        before, after = text[:-1].T[inside], text[1:].T[inside]
        plogp = np.log(self.draft, out=np.zeros_like(self.draft), where=self.draft > 0) * self.draft
        columns = {
            "log_target": np.log(self.target[before, after]),
            "log_draft": np.log(self.draft[before, after]),
            "draft_top": self.draft.max(axis=1)[before],
            "draft_entropy": -plogp.sum(axis=1)[before],
        }
        return Trace(columns, tuple(TextInfo(str(i), int(n)) for i, n in enumerate(lengths)))


@dataclass(frozen=True)
class StoppedFamily:
    """Chains that a rule stops, on texts of one length of a pair."""

    pair: MarkovPair
    length: int
    shape: Chain

    def lengths(self, texts: int, rng: np.random.Generator) -> DraftedLengths:
        """What a trace of so many texts says of their drafted tokens."""
        trace = self.pair.trace(np.full(texts, self.length), rng)
        (calls,) = calls_by_shape(trace, TokenVerification(), [self.shape])
        return calls.lengths[0][1]

    def decoded(self, texts: int, rng: np.random.Generator) -> float:
        """Drafted tokens per call, counted."""
        uniform = np.full(len(self.pair.target), 1 / len(self.pair.target))
        stops = stops_of(self.pair.draft, str(self.shape.stop))
        chains = Chains(self.pair.target[None], self.pair.draft[None], uniform)
        with np.errstate(divide="ignore", invalid="ignore"):  # chains of two kinds: tokens that neither outputs
            calls, drafted = stopped_calls(chains, stops, length=self.length, k=self.shape.k, texts=texts, rng=rng)
        return float(drafted.sum() / calls.sum())


def samples(lengths: DraftedLengths, prompts: int, most: int) -> Iterator[DraftedLengths]:
    """The texts in samples of so many prompts, without overlap."""
    for start in range(0, min(len(lengths.calls) // prompts, most) * prompts, prompts):
        chosen = slice(start, start + prompts)
        yield DraftedLengths(*(getattr(lengths, field.name)[chosen] for field in fields(lengths)))


def token_and_block(trace: Trace, k: int) -> tuple[Floats, Floats]:
    """Calls of each text by token and by block verification."""
    laws = (rule.path_survival(trace.columns, k) for rule in (TokenVerification(), BlockVerification()))
    token, block = (calls_of_texts(law, trace.lengths).expected for law in laws)
    return token, block


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
