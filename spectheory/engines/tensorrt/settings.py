"""Settings of TensorRT-LLM with a draft model or a head, which drafts first choices."""

from __future__ import annotations

from typing import Any

from spectheory.deployment.candidates import DRAFT_MODEL
from spectheory.deployment.engines import ARGMAX, Ask, EngineSettings, Fact, ServingEngine, arguments

FIRST_CHOICES = Fact(
    "DraftTargetDecodingConfig(max_draft_len=K)",
    "The draft's K first choices are drafted, and accepted where the target draws the same tokens (rule argmax; at "
    "temperature 0 greedy matching).",
    "documentation (`use_rejection_sampling`), NVIDIA/TensorRT-LLM#15775; not run",
)
SAMPLED = Fact(
    "use_rejection_sampling=True",
    "Token verification of sampled drafts, a prototype that needs FlashInfer: not predicted here.",
    "documentation; not run",
)
DTYPE = Fact("LLM(dtype, revision)", "The type and the commit of the target.", "documentation; not run")
HEADS = Fact(
    "Eagle3DecodingConfig, MTPDecodingConfig, DFlashDecodingConfig, DSparkDecodingConfig",
    "Heads by kind; they draft first choices like a draft model, DFlash and DSpark in one pass. MTP modules of the "
    "target's checkpoint need no model. There is none for P-EAGLE and Domino.",
    "documentation of 1.3.0rc27 and its example, NVIDIA/TensorRT-LLM#15775; not run",
)
RELAXED = Fact(
    "MTPDecodingConfig(use_relaxed_acceptance_for_thinking=True, relaxed_topk=N, relaxed_delta=D)",
    "Changes the text while the model thinks. A first choice of the MTP modules is accepted where it is among the "
    "target's N most probable tokens and at most D below the largest probability, else the target's first choice is "
    "output. `--rule relaxed:top=N,delta=D` predicts it as if all were thinking; elsewhere it is greedy matching.",
    "source: `mtpRelaxedAcceptanceKernel`; not run",
)
LENGTHS = Fact(
    "draft_len_schedule, acceptance_rate_threshold",
    "Lengths by batch size; below a mean acceptance rate speculation is switched off for good. There is no stopping "
    "rule of the draft.",
    "documentation, NVIDIA/TensorRT-LLM#10860; not run",
)
METHODS = (
    (DRAFT_MODEL, "DraftTargetDecodingConfig"),
    ("eagle3", "Eagle3DecodingConfig"),
    ("mtp", "MTPDecodingConfig"),
    ("dflash", "DFlashDecodingConfig"),
    ("dspark", "DSparkDecodingConfig"),
)
"""The class of each kind of draft."""


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest chain of the draft's first choices."""
    best, config = ask.drafted(ARGMAX), ENGINE.method(ask.draft.kind)
    if best is None or config is None:
        return None
    options: dict[str, Any] = {"max_draft_len": best.shape.nodes}
    options |= {} if ask.native else {"speculative_model": ask.drafter.source}
    target = ask.target
    model = {"model": target.source, "revision": target.revision, "dtype": target.dtype}
    paste = "\n".join(
        [
            "from tensorrt_llm import LLM",
            f"from tensorrt_llm.llmapi import {config}",
            f"speculation = {config}({arguments(options)})",
            f"llm = LLM({arguments({name: value for name, value in model.items() if value})}, "
            "speculative_config=speculation)",
        ]
    )
    remarks = [FIRST_CHOICES.as_rule, *([HEADS.does] if ask.head else []), *ask.smaller_block(best)]
    if not ask.greedy:
        remarks.append(f"With use_rejection_sampling=True: {SAMPLED.clause}")
    return ask.settings(ENGINE, best, options, paste, [*remarks, ask.requests])


ENGINE = ServingEngine(
    "tensorrt-llm",
    "1.3.0rc29",
    (FIRST_CHOICES, SAMPLED, RELAXED, LENGTHS, HEADS, DTYPE),
    methods=METHODS,
    makers=(_with_draft,),
    lossy=(
        (
            "relaxed",
            "MTPDecodingConfig(use_relaxed_acceptance_for_thinking=True, relaxed_topk={top}, relaxed_delta={delta})",
        ),
    ),
)
