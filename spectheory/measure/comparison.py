"""The path theorem (§7) against transformers' assisted generation: calls counted and predicted, text for text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spectheory.distributions import Sampling
from spectheory.measure.assisted import Generated, check_runs, generate, seeds_of
from spectheory.measure.forward import teacher_forced
from spectheory.measure.pair import ModelPair
from spectheory.measure.tokens import encode_prompt
from spectheory.prediction.call_system import TextCalls
from spectheory.prediction.law import in_deviations
from spectheory.prediction.paths import calls_of_texts
from spectheory.prompts import Prompt
from spectheory.verification import PathRule, TokenVerification

_WARM_UP = 8
"""Tokens of an unmeasured run before the timed ones."""
_LESS = 0.01
"""The share of accepted drafts that are not, for a slope."""


@dataclass(frozen=True)
class AssistedComparison:
    """Counted against predicted target calls at k drafts per call; sums over all texts.

    `predicted` is the number of calls expected given these texts, `standard_error` the standard deviation of counted -
    predicted, `full_share` the expected share of calls that follow a call with every draft accepted (§7, exact).
    `variance_slope` is the variance that a further call adds if drafts are accepted less often. Seconds are wall-clock
    times; the texts of plain generation are different ones.
    """

    k: int
    tokens: int
    counted: int
    predicted: float
    standard_error: float
    full_share: float
    assisted_seconds: float
    plain_seconds: float
    plain_tokens: int
    variance_slope: float = 0.0

    @property
    def z(self) -> float:
        """Counted - predicted in standard deviations; asymptotically standard normal if the theorem holds."""
        return in_deviations(self.counted - self.predicted, self.standard_error)

    @property
    def tokens_per_call(self) -> float:
        """Counted tokens per call, recovered and bonus tokens included."""
        return self.tokens / self.counted

    @property
    def speedup(self) -> float:
        """Tokens per second of assisted over plain generation, as timed."""
        return (self.tokens / self.assisted_seconds) / (self.plain_tokens / self.plain_seconds)


def compare_with_assisted(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    *,
    ks: Sequence[int],
    tokens: int,
    seed: int = 0,
    chat_template: bool = False,
    plain_every: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[AssistedComparison]:
    """Compare transformers' calls with those the path theorem predicts for the same texts, at each k of `ks`.

    Each prompt runs with every k before the next one, and every `plain_every`-th of them plainly too, so that a slow
    phase of the machine affects all alike. Plain runs are for the measured speed-up alone: no number of calls needs
    them. `on_progress` gets (runs done, all runs).
    """
    report = on_progress or (lambda done, total: None)
    prompts_ids = [encode_prompt(pair.tokenizer, prompt, chat_template=chat_template) for prompt in prompts]
    check_runs(pair, prompts_ids, ks, tokens)
    modes: list[int | None] = [None, *ks]
    seeds = {k: seeds_of(seed, k, prompts_ids) for k in modes}
    texts: dict[int | None, list[Generated]] = {k: [] for k in modes}
    for k in modes:  # unmeasured: some libraries load at first use
        generate(pair, prompts_ids[0], sampling, k, min(tokens, _WARM_UP), seeds[k][0])
    runs = [(i, k) for i in range(len(prompts_ids)) for k in modes if k is not None or i % plain_every == 0]
    for done, (i, k) in enumerate(runs, start=1):
        texts[k].append(generate(pair, prompts_ids[i], sampling, k, tokens, seeds[k][i]))
        report(done, len(runs))
    return [_compare(pair, prompts_ids, sampling, k, texts[k], texts[None]) for k in ks]


def _compare(
    pair: ModelPair,
    prompts_ids: Sequence[Tensor],
    sampling: Sampling,
    k: int,
    assisted: Sequence[Generated],
    plain: Sequence[Generated],
) -> AssistedComparison:
    texts = [text.output_ids for text in assisted]
    survival, lengths = _survival(pair, prompts_ids, texts, sampling, k, TokenVerification())
    calls = calls_of_texts(survival, lengths)
    predicted = float(calls.expected.sum())
    return AssistedComparison(
        k=k,
        tokens=sum(len(text.output_ids) for text in assisted),
        counted=sum(text.calls for text in assisted),
        predicted=predicted,
        standard_error=math.sqrt(calls.variance.sum()),
        full_share=float(calls.full.sum()) / predicted,
        assisted_seconds=sum(text.seconds for text in assisted),
        plain_seconds=sum(text.seconds for text in plain),
        plain_tokens=sum(len(text.output_ids) for text in plain),
        variance_slope=variance_slope(survival, lengths),
    )


def variance_slope(survival: NDArray[np.float64], lengths: NDArray[np.int64]) -> float:
    """Variance of the calls of texts that a further call adds if every draft is accepted a little less often (§7)."""
    less = survival * (1 - _LESS) ** np.arange(1, survival.shape[1] + 1)
    now, then = (calls_of_texts(each, lengths) for each in (survival, less))
    more = float(then.expected.sum() - now.expected.sum())
    return float(then.variance.sum() - now.variance.sum()) / more if more > 0 else 0.0


def predict_calls(
    pair: ModelPair,
    prompts_ids: Sequence[Tensor],
    texts: Sequence[Tensor],
    sampling: Sampling,
    k: int,
    rule: PathRule | None = None,
) -> TextCalls:
    """Calls that given sampled texts take with k drafts under `rule`, by default token verification (§7, exact)."""
    return calls_of_texts(*_survival(pair, prompts_ids, texts, sampling, k, rule or TokenVerification()))


def _survival(
    pair: ModelPair, prompts_ids: Sequence[Tensor], texts: Sequence[Tensor], sampling: Sampling, k: int, rule: PathRule
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """P(tau >= i) of a call from each position of the texts, ``[N, k]``, and their lengths."""
    columns = [
        teacher_forced(pair, prompt, text, sampling, race=False, sampled=True, name=str(i + 1))
        for i, (prompt, text) in enumerate(zip(prompts_ids, texts, strict=True))
    ]
    joined = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
    return rule.path_survival(joined, k), np.array([len(text) for text in texts], dtype=np.int64)
