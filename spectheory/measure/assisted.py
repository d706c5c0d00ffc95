"""Calls of an independent decoder: transformers' assisted generation, counted, and compared with those predicted.

How transformers 5.x works, from its source:

- The number of drafts per call comes from the *draft's* generation settings; "constant" and a confidence threshold of 0
  keep it at k. Near the length limit, and after a draft that ends the text, fewer are drafted, which changes no call.
- A confidence threshold above 0 ends the drafting after a drafted token whose probability is below it (``token<``,
  §11). That probability is the softmax of the draft's *processed* scores: q, after temperature and filters. Greedy
  decoding has no processors, so there it is the softmax of the raw logits, here too.
- With scikit-learn installed the threshold moves between calls with what was accepted before; here it stays, unless
  `moving` is asked for.
- There is no separate pass for the prompt: the first target call carries prompt and drafts, so calls are C(0).
- Open settings are filled with defaults (such as top-k 50), and the draft applies temperature and filters twice: with
  the target's processors and with its own, so at temperature T it drafts at T^2. So both models get blank settings
  here, and processors that run once: the log-probabilities of `Sampling`, or transformers' own.
- A draft with another tokenizer drafts the common tokens (TLI) where it samples. Three repairs let it judge: its
  output matrix is not pruned, which would put pmfs under the wrong tokens; ends of text and padding are the draft's
  own ids, not the target's; and greedy drafts are common tokens too, not strings.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.candidate_generator import (
    AssistantToTargetTranslator,
    AssistantVocabTranslatorCache,
    AssistedCandidateGeneratorDifferentTokenizers,
    UniversalSpeculativeDecodingGenerator,
)

from spectheory.checks import whole
from spectheory.distributions import Sampling
from spectheory.drafting import StoppingRule
from spectheory.errors import SettingError, TextError
from spectheory.judging.comparison import CallLaw, Comparison, compare_calls
from spectheory.measure.assistants import _assisting, drafts_of_head
from spectheory.measure.columns.pmf import log_pmf
from spectheory.measure.common_tokens import CommonTokens
from spectheory.measure.forward import teacher_forced
from spectheory.measure.model_files import quiet
from spectheory.measure.pair import ModelPair
from spectheory.measure.tokens import check_window, encode_prompt
from spectheory.prediction.paths import calls_of_texts
from spectheory.prompts import Prompt
from spectheory.verification import TokenVerification

_WARM_UP = 8
"""Tokens of an unmeasured run before the timed ones."""
_LESS = 0.01
"""The share of accepted drafts that are not, for a slope."""
NO_HEADS = "transformers' assisted generation takes no head in this format"
"""Why a draft head is refused."""
_MOVES_THRESHOLD = "transformers.generation.candidate_generator.is_sklearn_available"
"""What transformers asks before it moves the confidence threshold between calls."""


@dataclass(frozen=True)
class Generated:
    """One text of transformers: ids ``[n]`` after the prompt, end of text included, target passes, seconds, drafts."""

    output_ids: Tensor
    calls: int
    seconds: float
    drafted: int


def count_assisted_calls(
    pair: ModelPair, prompts_ids: Sequence[Tensor], sampling: Sampling, *, k: int, tokens: int, seed: int
) -> list[Generated]:
    """Run transformers' assisted generation with exactly k drafts per call, one prompt ``[n]`` at a time; count target
    calls.

    Each prompt's seed is derived from `seed`; torch's global generator is restored.
    """
    _check_runs(pair, prompts_ids, [k], tokens)
    return [
        generate(pair, ids, sampling, k, tokens, s)
        for ids, s in zip(prompts_ids, _seeds_of(seed, k, prompts_ids), strict=True)
    ]


def generate_plain(
    pair: ModelPair, prompts_ids: Sequence[Tensor], sampling: Sampling, *, tokens: int, seed: int
) -> list[Generated]:
    """Run transformers' plain generation of the target, counted and timed as in :func:`count_assisted_calls`."""
    _check_runs(pair, prompts_ids, [], tokens)
    seeds = _seeds_of(seed, None, prompts_ids)
    return [generate(pair, ids, sampling, None, tokens, s) for ids, s in zip(prompts_ids, seeds, strict=True)]


def _check_runs(pair: ModelPair, prompts_ids: Sequence[Tensor], ks: Sequence[int], tokens: int) -> None:
    """Check draft, settings and prompts before anything runs."""
    drafts = drafts_of_head(pair)
    for k in ks:
        if drafts not in (None, k):
            raise SettingError(
                f"calls of {k} drafts are asked for",
                limit=f"transformers drafts {drafts} with this head",
                remedy="ask for these",
            )
        whole("k", k, remedy="no draft means plain generation")
    whole("tokens", tokens, remedy="ask for at least one")
    if not prompts_ids:
        raise TextError("there is no prompt", limit="needs at least one", remedy="pass a prompt file")
    for i, ids in enumerate(prompts_ids):
        check_window(str(i + 1), len(ids), tokens, pair.window)


def _seeds_of(seed: int, k: int | None, prompts_ids: Sequence[Tensor]) -> list[np.random.SeedSequence]:
    """One seed per prompt, different for each k."""
    return np.random.SeedSequence(seed, spawn_key=(k or 0,)).spawn(len(prompts_ids))


def generate(
    pair: ModelPair,
    ids: Tensor,
    sampling: Sampling,
    k: int | None,
    tokens: int,
    seed: np.random.SeedSequence,
    *,
    own_filters: bool = False,
    strings: bool = False,
    stop: StoppingRule | None = None,
    moving: bool = False,
    **settings: Any,
) -> Generated:
    """One text, plain (k is None) or assisted, with our temperature and filters or with transformers' own.

    A draft with another tokenizer drafts the tokens in common or, at temperature 0, `strings` as transformers does.
    `stop` is a rule ``token<``, transformers' confidence threshold, `moving` by what was accepted as with scikit-learn
    installed; `settings` are others of its generation, such as ``num_assistant_tokens_schedule`` and
    ``assistant_ensemble_weight``.
    """
    device, plain = pair.target.device, own_filters or sampling.temperature == 0
    processors = _own_processors(sampling) if plain else LogitsProcessorList([_Settings(sampling)])
    prompt = ids[None].to(device)
    with contextlib.ExitStack() as stack:
        stack.enter_context(quiet())
        threshold = 0.0 if stop is None else stop.threshold
        stack.enter_context(_blank_settings(pair, sampling, k, threshold, settings, moving))
        read: list[int] = []  # tokens of each pass of the target
        drafting = {} if k is None else stack.enter_context(_assisting(pair))
        if drafting and (common := pair.draft.common):
            drafting |= {"tokenizer": common.target, "assistant_tokenizer": common.draft}
            if not strings:
                stack.enter_context(_common_tokens(pair, common, processors))
        hook = pair.target.network.register_forward_pre_hook(
            lambda module, inputs, named: read.append(named["input_ids"].shape[1]), with_kwargs=True
        )
        stack.callback(hook.remove)
        stack.enter_context(torch.random.fork_rng(devices=[device] if device.type == "cuda" else []))
        torch.manual_seed(int(seed.generate_state(1)[0]))
        started = time.perf_counter()
        output = pair.target.network.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=tokens,
            logits_processor=processors,
            **drafting,
        )
        text = output[0, len(ids) :].cpu()
        seconds = time.perf_counter() - started
    # The first pass reads the prompt and its drafts, every later one the last token and its drafts.
    return Generated(text, len(read), seconds, sum(read) - len(ids) - (len(read) - 1))


@contextlib.contextmanager
def _common_tokens(pair: ModelPair, common: CommonTokens, processors: LogitsProcessorList) -> Iterator[None]:
    """Let transformers draft common tokens, whole pmfs of them, at every temperature.

    The translator's processors take the place of those that the target's are.
    """
    translator = AssistantToTargetTranslator(common.target, common.draft, pair.vocabulary)
    translator.logits_processors = LogitsProcessorList([*(translator.logits_processors or ()), *processors])
    ends = [int(common.to_draft[end]) for end in sorted(pair.end_of_text)]
    nowhere = 1 + max(common.draft.get_vocab().values())  # None would be the target's id, and padding is not read

    def generator(**how: Any) -> Any:
        made = UniversalSpeculativeDecodingGenerator(**how | {"atm_translator": translator})
        made.generation_config.eos_token_id = [end for end in ends if end >= 0] or nowhere
        made.generation_config.pad_token_id = nowhere
        return made

    generators = (UniversalSpeculativeDecodingGenerator, AssistedCandidateGeneratorDifferentTokenizers)
    patches: Any = {each.__name__: generator for each in generators}
    with (
        patch.multiple("transformers.generation.utils", **patches),
        patch.object(AssistantVocabTranslatorCache, "get_translator", return_value=translator),
    ):
        yield


class _Settings(LogitsProcessor):
    """Temperature, top-k, top-p and min-p as in the rest of this package."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return log_pmf(scores, self.sampling)


def _own_processors(sampling: Sampling) -> LogitsProcessorList:
    """The processors that transformers makes of these settings, in its order; none for greedy decoding."""
    made = LogitsProcessorList()
    if sampling.temperature == 0:
        return made
    if sampling.temperature != 1:
        made.append(TemperatureLogitsWarper(float(sampling.temperature)))
    if sampling.top_k is not None:
        made.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p is not None and sampling.top_p < 1:
        made.append(TopPLogitsWarper(sampling.top_p))
    if sampling.min_p is not None:
        made.append(MinPLogitsWarper(sampling.min_p))
    return made


@contextlib.contextmanager
def _blank_settings(
    pair: ModelPair, sampling: Sampling, k: int | None, threshold: float, others: dict[str, Any], moving: bool
) -> Iterator[None]:
    """Give both models generation settings without hidden defaults, and cut their logits to their tokenizer's ids."""
    networks, common = [pair.target.network, *([] if pair.draft.head else [pair.draft.network])], pair.draft.common
    sizes = [pair.vocabulary, 1 + max(common.draft.get_vocab().values()) if common else pair.vocabulary]
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
        assistant_confidence_threshold=threshold,
        **{"num_assistant_tokens_schedule": "constant", **others},
    )

    def cut(size: int, module: Any, inputs: Any, output: Any) -> Any:
        output.logits = output.logits[..., :size]
        return output

    hooks = [network.register_forward_hook(partial(cut, size)) for network, size in zip(networks, sizes, strict=False)]
    try:
        for network, size in zip(networks, sizes, strict=False):
            network.generation_config = settings
            network.config.get_text_config().vocab_size = size
        with patch(_MOVES_THRESHOLD, return_value=moving):
            yield
    finally:
        for hook in hooks:
            hook.remove()
        for network, (generation_config, vocab_size) in zip(networks, kept, strict=True):
            network.generation_config = generation_config
            network.config.get_text_config().vocab_size = vocab_size


@dataclass(frozen=True, kw_only=True)
class AssistedComparison(Comparison):
    """Counted target calls at k drafts per call against those expected of the texts (§7, exact); sums over all texts.

    `full_share` is the expected share of calls that follow a call with every draft accepted. `variance_slope` is the
    variance that a further call adds if drafts are accepted less often. Seconds are wall-clock times; the texts of
    plain generation are different ones.
    """

    k: int
    tokens: int
    full_share: float
    assisted_seconds: float
    plain_seconds: float
    plain_tokens: int
    variance_slope: float = 0.0

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

    With a draft head the only k is :func:`~spectheory.measure.assistants.drafts_of_head`.

    Each prompt runs with every k before the next one, and every `plain_every`-th of them plainly too, so that a slow
    phase of the machine affects all alike. Plain runs are for the measured speed-up alone: no number of calls needs
    them. `on_progress` gets (runs done, all runs).
    """
    report = on_progress or (lambda done, total: None)
    prompts_ids = [encode_prompt(pair.tokenizer, prompt, chat_template=chat_template) for prompt in prompts]
    _check_runs(pair, prompts_ids, ks, tokens)
    modes: list[int | None] = [None, *ks]
    seeds = {k: _seeds_of(seed, k, prompts_ids) for k in modes}
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
    """The calls of all texts at one k, read by both models."""
    head, rows = pair.draft.head, []
    how: dict[str, Any] = {"race": False, "sampled": True, "depth": k if head else None}
    for number, (ids, text) in enumerate(zip(prompts_ids, assisted, strict=True), start=1):
        columns = teacher_forced(pair, ids, text.output_ids, sampling, name=str(number), **how)
        rows.append(TokenVerification().path_survival(columns, k))
        if head:  # the prompt's own pass emits the first token, and drafts nothing
            rows[-1][0] = 0.0
    survival, lengths = np.concatenate(rows), np.array([len(each) for each in rows])
    comparison = compare_calls(sum(text.calls for text in assisted), [CallLaw.of([each]) for each in rows])
    return AssistedComparison(
        **vars(comparison),
        k=k,
        tokens=int(lengths.sum()),
        full_share=float(calls_of_texts(survival, lengths).full.sum()) / comparison.low,
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
