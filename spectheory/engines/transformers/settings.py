"""Settings of transformers' assisted generation: token verification of sampled drafts, or matching greedy ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spectheory.deployment.candidates import COMMON, DRAFT_MODEL
from spectheory.deployment.engines import (
    TOKEN,
    Ask,
    EngineSettings,
    Fact,
    ModelSource,
    ServingEngine,
    arguments,
)
from spectheory.distributions import Sampling
from spectheory.drafting.stopping import TokenBelow
from spectheory.verification.lookup import LOOKUP_NGRAM

_SOURCE = "source of 5.23"
SAMPLED = Fact(
    "assistant_model",
    "Token verification of drafts sampled from the draft model; one sequence at a time.",
    "run by `spectheory validate`, against calls expected of the same texts",
)
MATCHED = Fact(
    "do_sample=False",
    "Drafts are accepted where they match the target's first choices.",
    "run by `spectheory validate`",
)
NUMBER = Fact(
    'num_assistant_tokens, num_assistant_tokens_schedule="constant", assistant_confidence_threshold=0',
    "Drafts exactly num_assistant_tokens; the default (20, stopped below confidence 0.4) varies by call.",
    f"{_SOURCE}: settings of the draft's own `generation_config`",
)
STOPS = Fact(
    "assistant_confidence_threshold",
    "Above 0 it ends the drafting of a call after a drafted token of smaller q, which is kept (token<). It reads q "
    "after temperature and filters; greedy decoding has none and compares the plain softmax, as the prediction does.",
    f"run by `spectheory validate --stop`; {_SOURCE}: `ConfidenceCriteria`",
)
MOVES = Fact(
    "assistant_confidence_threshold, with scikit-learn installed",
    "With scikit-learn installed the threshold moves between calls with what was accepted before. `--stop best` "
    "predicts it at temperature 0.",
    f"run by a test, scikit-learn's curve replaced; {_SOURCE}: `update_candidate_strategy`",
)
HEURISTIC = Fact(
    'num_assistant_tokens_schedule="heuristic"',
    "k grows by 2 after a call that accepted every draft, and falls by 1 after any other. `--stop best` predicts it.",
    f"{_SOURCE}: `update_candidate_strategy`",
)
OWN_LOOP = Fact(
    "generate",
    "Its loop takes time of its own, which the latencies of passes leave out: for small models a large share.",
    "timed by `spectheory validate`",
)
TWICE = Fact(
    "temperature, top_k, top_p, min_p",
    "The draft applies temperature and filters twice (temperature T as T^2): outputs stay right, fewer drafts are "
    "accepted than predicted.",
    f"run: drafts at T = 0.5 follow the draft's logits times 4; {_SOURCE}",
)
LOOKUP_LENGTH = Fact(
    "prompt_lookup_num_tokens, max_matching_ngram_size",
    "Prompt lookup: copies from the earliest occurrence of the last max_matching_ngram_size tokens (2 if it is left "
    "open) or fewer; never drafts an end of text.",
    f"{_SOURCE}: `PromptLookupCandidateGenerator`",
)
LOOKUP_TOP_P = Fact(
    "prompt_lookup_num_tokens, top_p",
    "It applies top-p to logits that are all equal and cuts each draft short at the first token this removes: outputs "
    "stay right, fewer drafts are accepted than predicted.",
    "run by a test",
)
HEADS = Fact(
    "assistant_model",
    "No head in the format of speculators can be loaded as an assistant (EAGLE-3, P-EAGLE, DFlash, MTP).",
    f"{_SOURCE}: assistants are models of its own classes",
)
MTP = Fact(
    "use_mtp=True",
    "Drafts with the MTP modules in the target's checkpoint (DeepSeek-V3, GLM-4.5 and others), one token per module "
    "whatever num_assistant_tokens is; token verification, of first choices with do_sample=False. States are fed back "
    "after the last norm, and the embedding at position 0 is read. No settings here.",
    f"run by a test; {_SOURCE}: `MTPCandidateGenerator`, `MtpModel`",
)
DFLASH = Fact(
    'speculation_type="dflash"',
    "Drafts block_size - 1 tokens in one pass of a DFlash model of its own classes; token verification of sampled "
    "drafts. No settings here.",
    f"run by `spectheory predict --check`; {_SOURCE}: `DFlashTokenCandidateGenerator`",
)
GEMMA = Fact(
    "assistant_model, of Gemma 4",
    "Drafts first choices and verifies them as if they were sampled: with do_sample=True the output is not the "
    "target's. No settings here.",
    f"{_SOURCE}: `SinglePositionMultiTokenCandidateGenerator`; not run",
)
VOCABULARIES = Fact(
    "tokenizer, assistant_tokenizer, assistant_lookbehind, target_lookbehind",
    "Takes a draft with another tokenizer. Sampled drafts are cut to the tokens in common (TLI), and tokens that the "
    "draft lacks are written and read again (--outside text); with do_sample=False drafts are written as text and read "
    "again (string matching), which is not predicted.",
    f"run by `spectheory predict --check`, repaired as below; {_SOURCE}: `UniversalSpeculativeDecodingGenerator`",
)
PRUNED = Fact(
    "assistant_tokenizer, do_sample=True",
    "As shipped it cuts the draft's output matrix in the order of get_vocab, which is not that of the ids: drafts are "
    "verified against pmfs of other tokens, and the output is not the target's. The lines "
    "that make the translator beforehand leave the matrix whole, but for padding. It also takes the target's ids of "
    "the end of text and of padding for the draft's.",
    f"the order run by a test; {_SOURCE}: `AssistantToTargetTranslator`",
)
ENSEMBLE = Fact(
    "assistant_ensemble_weight",
    "Changes the text. A weight w below 1 accepts against w p + (1 - w) q, and the bonus token is the target's. "
    "`--rule ensemble:w` predicts it where tokens are sampled. At temperature 0 the first choice of the mixture of "
    "both plain softmaxes is output: not predicted.",
    f"run by a test, calls against their law given the texts; {_SOURCE}: `_speculative_sampling`",
)
EARLY_EXIT = Fact(
    "assistant_early_exit",
    "Drafts with the first layers of the target: not measured here.",
    f"{_SOURCE}: `EarlyExitCandidateGenerator`; not run",
)
_LOOKUP = (LOOKUP_LENGTH, LOOKUP_TOP_P)
_OTHER_DRAFTS = (HEADS, MTP, DFLASH, GEMMA, VOCABULARIES, PRUNED, EARLY_EXIT)


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest chain under its rule, of a constant number of drafts or ended by the draft's own q."""
    best = ask.drafted(TOKEN, stop=TokenBelow)
    if best is None or (ask.common and ask.greedy):
        return None
    assistant: dict[str, Any] = {
        "num_assistant_tokens": best.shape.nodes,
        "num_assistant_tokens_schedule": "constant",
        "assistant_confidence_threshold": best.shape.stop.threshold if best.shape.stop else 0.0,
    }
    generate = _sampled(ask.sampling)
    named = ", tokenizer=tokenizer, assistant_tokenizer=drafted" if ask.common else ""
    paste = "\n".join(
        [
            *_loaded(target=ask.target, draft=ask.drafter),
            *(_TRANSLATED.format(ask.target.source, ask.drafter.source).splitlines() if ask.common else ()),
            f"draft.generation_config.update({arguments(assistant)})",
            f"target.generate(**inputs, assistant_model=draft{named}, {arguments(generate)})",
        ]
    )
    length = [STOPS, MOVES] if best.shape.stop else [NUMBER]
    length += [VOCABULARIES, PRUNED] if ask.common else []
    remarks = [*_remarks(ask, length), *ask.read_otherwise("text")]
    return ask.settings(ENGINE, best, {"assistant": assistant, "generate": generate}, paste, remarks)


_TRANSLATED = """\
from transformers import AutoTokenizer
from transformers.generation.candidate_generator import AssistantVocabTranslatorCache
tokenizer, drafted = AutoTokenizer.from_pretrained({!r}), AutoTokenizer.from_pretrained({!r})
draft.resize_token_embeddings(len(drafted))
AssistantVocabTranslatorCache.get_translator(tokenizer, drafted, target.config.get_text_config().vocab_size)"""
"""Code before a draft with another tokenizer."""


def _loaded(**models: ModelSource) -> list[str]:
    """Lines of code that load models into variables of the given names."""
    lines = ["from transformers import AutoModelForCausalLM"]
    for name, model in models.items():
        known = {"revision": model.revision, "dtype": model.dtype}
        options = arguments({option: value for option, value in known.items() if value})
        lines.append(
            f"{name} = AutoModelForCausalLM.from_pretrained({', '.join(filter(None, [repr(model.source), options]))})"
        )
    return lines


def _sampled(sampling: Sampling) -> dict[str, Any]:
    """The generation settings that define the sampling."""
    if sampling.temperature == 0:
        return {"do_sample": False}
    # Left open, top-k would be the library's default of 50.
    warpers = {"temperature": sampling.temperature, "top_k": sampling.top_k or 0, "top_p": sampling.top_p or 1.0}
    return {"do_sample": True, **warpers, **({"min_p": sampling.min_p} if sampling.min_p else {})}


def _remarks(ask: Ask, length: Sequence[Fact]) -> list[str]:
    lines = [(MATCHED if ask.greedy else SAMPLED).as_rule, *(fact.does for fact in length), OWN_LOOP.does]
    if not (ask.greedy or ask.common) and (ask.sampling.temperature != 1 or ask.sampling.truncates):
        lines.append(TWICE.does)
    return lines


def _with_lookup(ask: Ask) -> EngineSettings | None:
    """The fastest chain of copied tokens for transformers."""
    best, draft, remark = ask.lookup(ENGINE.name)
    if best is None:
        return None
    options: dict[str, Any] = {
        "prompt_lookup_num_tokens": best.shape.nodes,
        "max_matching_ngram_size": draft.settings["max"] if draft else LOOKUP_NGRAM,
        **_sampled(ask.sampling),
    }
    paste = "\n".join([*_loaded(target=ask.target), f"target.generate(**inputs, {arguments(options)})"])
    remarks = [remark, LOOKUP_LENGTH.does, OWN_LOOP.does]
    if options.get("top_p", 1.0) < 1 and draft is None:
        remarks.append(LOOKUP_TOP_P.does)
    return ask.settings(ENGINE, best, options, paste, remarks)


ENGINE = ServingEngine(
    "transformers",
    "5.23",
    (SAMPLED, MATCHED, NUMBER, STOPS, MOVES, HEURISTIC, TWICE, ENSEMBLE, *_OTHER_DRAFTS, OWN_LOOP, *_LOOKUP),
    True,
    methods=((DRAFT_MODEL, ""), (COMMON, "")),
    stops=(TokenBelow.name,),
    makers=(_with_draft, _with_lookup),
    lossy=(("ensemble", "assistant_ensemble_weight={weight}"),),
)
