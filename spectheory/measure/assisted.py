"""The outside judge: transformers' own assisted generation, its target calls counted and compared with §7.

What its source (5.x) does, and what follows here:

- The number of drafts per call comes from the *draft's* generation settings; "constant" and a confidence threshold of
  0 keep it at k. Near the length limit fewer are drafted, which changes no call.
- There is no separate pass for the prompt: the first target call carries prompt and drafts, so calls are C(0).
- A draft that is the end of the text stops the drafting: accepted, the text ends there; rejected, nothing after it
  would have counted.
- Settings left open are filled from the model's own file and then with defaults (top-k 50 among them), and the draft
  applies temperature, top-k and top-p twice: once as processors handed on by the target, once of its own. So both
  models get blank settings here, and one processor that makes logits the log-probabilities of `Sampling`; the target
  hands it on to the draft, where it runs once.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from spectheory.distributions import Sampling
from spectheory.errors import SettingError, TextError
from spectheory.measure.forward import teacher_forced
from spectheory.measure.pair import ModelPair, quiet
from spectheory.measure.tokens import check_window, encode_prompt
from spectheory.measure.truncation import log_pmf
from spectheory.paths import TextCalls, calls_of_texts
from spectheory.prompts import Prompt
from spectheory.verification import Rule, TokenVerification


@dataclass(frozen=True)
class Generated:
    """One text a third-party decoder made.

    Attributes
    ----------
    output_ids : tensor ``[n]``
        The text after the prompt, the end-of-text token included.
    calls : int
        Passes of the target.
    seconds : float
        Wall-clock time, prompt included.
    """

    output_ids: Tensor
    calls: int
    seconds: float


@dataclass(frozen=True)
class AssistedComparison:
    """Counted against predicted target calls at one number of drafts.

    Attributes
    ----------
    k : int
        Drafts per call.
    tokens : int
        Output tokens in all.
    counted : int
        Target calls the decoder made.
    predicted : float
        Expected calls given the very texts it produced (§7, exact).
    standard_error : float
        Standard deviation of counted - predicted (§7, exact).
    full_share : float
        Predicted share of calls that follow one in which every draft was accepted (§7, exact).
    assisted_seconds, plain_seconds : float
        Wall-clock time of assisted and of plain generation.
    plain_tokens : int
        Output tokens of plain generation, whose texts are others.
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

    @property
    def z(self) -> float:
        """Counted - predicted in standard deviations; standard normal in the limit if the theorem holds."""
        difference = self.counted - self.predicted
        if self.standard_error > 0:
            return difference / self.standard_error
        # Nothing is random (greedy decoding, or no draft ever in doubt).
        return 0.0 if abs(difference) < 0.5 else math.copysign(math.inf, difference)

    @property
    def tokens_per_call(self) -> float:
        """Counted tokens per call, recovered and bonus tokens included."""
        return self.tokens / self.counted

    @property
    def speedup(self) -> float:
        """Tokens per second of assisted over plain generation, as timed."""
        return (self.tokens / self.assisted_seconds) / (self.plain_tokens / self.plain_seconds)


def count_assisted_calls(
    pair: ModelPair, prompts_ids: Sequence[Tensor], sampling: Sampling, *, k: int, tokens: int, seed: int
) -> list[Generated]:
    """Run transformers' assisted generation with exactly k drafts a call; count target calls.

    Parameters
    ----------
    pair : ModelPair
        Target and draft.
    prompts_ids : sequence of tensor ``[n]``
        Prompts, run one at a time.
    sampling : Sampling
        Temperature, top-k and top-p of both models.
    k : int
        Drafts per call.
    tokens : int
        Most output tokens of a text.
    seed : int
        Each prompt's seed is derived from it; torch's global generator is left as it was.

    Returns
    -------
    list of Generated

    Raises
    ------
    SettingError
        If k or tokens is below 1.
    TextError
        If a prompt and its output do not fit the window.
    """
    if k < 1:
        raise SettingError(f"k is {k}", limit="must be >= 1", remedy="no draft means plain generation")
    return _generate(pair, prompts_ids, sampling, k, tokens, seed)


def generate_plain(
    pair: ModelPair, prompts_ids: Sequence[Tensor], sampling: Sampling, *, tokens: int, seed: int
) -> list[Generated]:
    """Run transformers' plain generation of the target, counted and timed like the assisted one.

    Parameters and errors are those of :func:`count_assisted_calls`.
    """
    return _generate(pair, prompts_ids, sampling, None, tokens, seed)


def compare_with_assisted(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    *,
    ks: Sequence[int],
    tokens: int,
    seed: int = 0,
    chat_template: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[AssistedComparison]:
    """Compare the calls transformers makes with those the path theorem predicts for the very same texts.

    Parameters
    ----------
    pair : ModelPair
        Target and draft.
    prompts : sequence of Prompt
        What is continued.
    sampling : Sampling
        Temperature, top-k and top-p of both models.
    ks : sequence of int
        Numbers of drafts per call, one comparison each.
    tokens : int
        Most output tokens of a text.
    seed : int
        Root of all randomness.
    chat_template : bool
        Whether prompts are put into the tokenizer's chat template.
    on_progress : callable, optional
        Called with (runs done, runs in all); plain generation is a run of its own.

    Returns
    -------
    list of AssistedComparison

    Raises
    ------
    SettingError, TextError, ModelError
        As :func:`count_assisted_calls`.
    """
    report = on_progress or (lambda done, total: None)
    prompts_ids = [encode_prompt(pair.tokenizer, prompt, chat_template=chat_template) for prompt in prompts]
    plain = generate_plain(pair, prompts_ids, sampling, tokens=tokens, seed=seed)
    report(1, 1 + len(ks))
    records = []
    for done, k in enumerate(ks, start=2):
        assisted = count_assisted_calls(pair, prompts_ids, sampling, k=k, tokens=tokens, seed=seed + k)
        calls = predict_calls(pair, prompts_ids, [text.output_ids for text in assisted], sampling, k)
        predicted = float(calls.expected.sum())
        records.append(
            AssistedComparison(
                k=k,
                tokens=sum(len(text.output_ids) for text in assisted),
                counted=sum(text.calls for text in assisted),
                predicted=predicted,
                standard_error=math.sqrt(calls.variance.sum()),
                full_share=float(calls.full.sum()) / predicted,
                assisted_seconds=sum(text.seconds for text in assisted),
                plain_seconds=sum(text.seconds for text in plain),
                plain_tokens=sum(len(text.output_ids) for text in plain),
            )
        )
        report(done, 1 + len(ks))
    return records


def predict_calls(
    pair: ModelPair,
    prompts_ids: Sequence[Tensor],
    texts: Sequence[Tensor],
    sampling: Sampling,
    k: int,
    rule: Rule | None = None,
) -> TextCalls:
    """Calls that the given sampled texts take with k drafts under `rule`, by default token verification (§7, exact)."""
    rule = rule or TokenVerification()
    columns = [
        teacher_forced(pair, prompt, text, sampling, race=False, sampled=True, name=str(i + 1))
        for i, (prompt, text) in enumerate(zip(prompts_ids, texts, strict=True))
    ]
    joined = {name: np.concatenate([c[name] for c in columns]) for name in rule.needs}
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    return calls_of_texts(rule.path_survival(joined, k), lengths)


def _generate(
    pair: ModelPair, prompts_ids: Sequence[Tensor], sampling: Sampling, k: int | None, tokens: int, seed: int
) -> list[Generated]:
    if tokens < 1:
        raise SettingError(f"tokens is {tokens}", limit="must be >= 1", remedy="ask for at least one")
    for i, ids in enumerate(prompts_ids):
        check_window(str(i + 1), len(ids), tokens, pair.window)
    if not prompts_ids:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt file")
    with quiet(), _blank_settings(pair, sampling, k), _counted(pair.target.network) as calls:
        seeds = np.random.SeedSequence(seed).spawn(len(prompts_ids))
        return [_one(pair, ids, sampling, k, tokens, s, calls) for ids, s in zip(prompts_ids, seeds, strict=True)]


def _one(
    pair: ModelPair,
    ids: Tensor,
    sampling: Sampling,
    k: int | None,
    tokens: int,
    seed: np.random.SeedSequence,
    calls: list[int],
) -> Generated:
    """One text; `calls` counts the passes of the target."""
    device = pair.target.device
    prompt = ids[None].to(device)
    before = calls[0]
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(seed.generate_state(1)[0]))
        started = time.perf_counter()
        output = pair.target.network.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=tokens,
            logits_processor=LogitsProcessorList([_Settings(sampling)]),
            **({} if k is None else {"assistant_model": pair.draft.network}),
        )
        text = output[0, len(ids) :].cpu()
        seconds = time.perf_counter() - started
    return Generated(text, calls[0] - before, seconds)


class _Settings(LogitsProcessor):
    """Temperature, top-k and top-p as everywhere in this package."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return log_pmf(scores, self.sampling)


@contextlib.contextmanager
def _counted(network: Any) -> Iterator[list[int]]:
    """Count the passes of a model while the block runs."""
    calls = [0]

    def count(*_: Any) -> None:
        calls[0] += 1

    hook = network.register_forward_pre_hook(count)
    try:
        yield calls
    finally:
        hook.remove()


@contextlib.contextmanager
def _blank_settings(pair: ModelPair, sampling: Sampling, k: int | None) -> Iterator[None]:
    """Give both models generation settings without hidden defaults, and logits cut to the common ids."""
    networks = (pair.target.network, pair.draft.network)
    kept = [(n.generation_config, n.config.get_text_config().vocab_size) for n in networks]
    settings = GenerationConfig(
        do_sample=sampling.temperature > 0,
        temperature=1.0,
        top_k=0,
        top_p=1.0,
        use_cache=True,
        eos_token_id=sorted(pair.end_of_text) or None,
        pad_token_id=min(pair.end_of_text, default=0),
        num_assistant_tokens=k or 1,
        num_assistant_tokens_schedule="constant",
        assistant_confidence_threshold=0.0,
    )
    hooks = [n.register_forward_hook(_cut(pair.vocabulary)) for n in networks]
    try:
        for network in networks:
            network.generation_config = settings
            network.config.get_text_config().vocab_size = pair.vocabulary
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for network, (generation_config, vocab_size) in zip(networks, kept, strict=True):
            network.generation_config = generation_config
            network.config.get_text_config().vocab_size = vocab_size


def _cut(vocabulary: int) -> Callable[[Any, Any, Any], Any]:
    def cut(module: Any, inputs: Any, output: Any) -> Any:
        output.logits = output.logits[..., :vocabulary]
        return output

    return cut
