"""Settings of OpenVINO GenAI with a draft model: exact where it decodes greedily, not lossless where it samples."""

from __future__ import annotations

from typing import Any

from spectheory.deployment.engines import Ask, EngineSettings, Fact, ServingEngine, arguments

MATCHED = Fact(
    "do_sample=False, num_assistant_tokens=K",
    "K drafts are accepted where they match the target's first choices; the prompt's pass emits a token without them.",
    "run: calls and accepted tokens counted as expected, k = 1, 3, 5, on every text",
)
NOT_LOSSLESS = Fact(
    "do_sample=True, draft_model",
    "Sampling with a draft is not lossless: texts are not the target's, and calls are those of no rule. No settings "
    "for traces above temperature 0.",
    "run: `make evidence` refutes text and calls, k = 1, 3, 5, and passes sampling without a draft; the same fault: "
    "openvinotoolkit/openvino.genai#4190, open",
)
CONFIDENCE = Fact(
    "assistant_confidence_threshold",
    "In place of num_assistant_tokens: drafts as long as a candidate's probability is above it, with continuous "
    "batching alone. Elsewhere num_assistant_tokens is a first value that moves with what is accepted. Neither is "
    "predicted here.",
    "documentation, openvinotoolkit/openvino.genai#3931, #2544; not run",
)
PRECISION = Fact(
    'INFERENCE_PRECISION_HINT="f32", KV_CACHE_PRECISION="f32"',
    "Left open, a CPU that has bfloat16 computes in it, and the cache has 8 bits: logits change.",
    "run: logits up to 16 differ by 0.16 from float32 by default, by 0.06 with the cache left open, by 1e-5 with both",
)
FORM = Fact(
    "LLMPipeline(FOLDER, DEVICE)",
    "Reads OpenVINO folders: export both models first (`optimum-cli export openvino --model MODEL FOLDER`); GGUF files "
    "of float32 are refused.",
    "documentation; GGUF files: run",
)
COUNTS = Fact(
    "extended_perf_metrics",
    "Its counters are not those of the output: above temperature 0 m_batch_sizes has tokens that are not handed out; "
    "accepted and drafted tokens are up to K too few for each request. What a streamer is handed is exact.",
    "run",
)
HEADS = Fact(
    "draft_model",
    "EAGLE-3 heads have an export of their own, and trees that grow by confidence: no settings here.",
    "documentation, openvinotoolkit/openvino.genai#3931; not run",
)


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest chain of a greedy trace; none where tokens are sampled."""
    best = ask.drafted()
    if best is None or not ask.greedy:
        return None
    options: dict[str, Any] = {"do_sample": False, "num_assistant_tokens": best.shape.nodes}
    folders = [f"{model.name.rpartition('/')[2]}-openvino" for model in (ask.target, ask.drafter)]
    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
    device = exact if {ask.target.dtype, ask.drafter.dtype} == {"float32"} else {}
    paste = "\n".join(
        [
            "import openvino_genai",
            f"device = {device!r}",
            f"draft = openvino_genai.draft_model({folders[1]!r}, 'CPU', **device)",
            f"target = openvino_genai.LLMPipeline({folders[0]!r}, 'CPU', draft_model=draft, **device)",
            f"target.generate(prompt, {arguments(options)})",
        ]
    )
    types = [] if device else [PRECISION.does]
    return ask.settings(ENGINE, best, options, paste, [MATCHED.as_rule, FORM.does, *types])


ENGINE = ServingEngine(
    "openvino",
    "2026.4.1",
    (MATCHED, NOT_LOSSLESS, CONFIDENCE, PRECISION, FORM, COUNTS, HEADS),
    True,
    makers=(_with_draft,),
)
