"""Settings of onnxruntime-genai with a draft model: token verification of sampled drafts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from spectheory.deployment.engines import TOKEN, Ask, EngineSettings, Fact, ServingEngine, arguments

SAMPLED = Fact(
    "do_sample=True, max_draft_tokens=K",
    "Token verification of K drafts sampled from the draft model, with the temperature, top-k and top-p of the target; "
    "the first call has the prompt and drafts.",
    "run: texts and calls as expected, k = 1, 3, 5 at temperature 1, k = 3 at 0.7 with top-k 20 and top-p 0.9",
)
MATCHED = Fact(
    "do_sample=False",
    "Drafts are accepted where they match the target's first choices.",
    "run: calls counted as expected, k = 1, 3, 5",
)
MOST = Fact("max_draft_tokens", "Takes 1 to 16 drafts.", "documentation")
ADAPTIVE = Fact(
    "min_adaptive_k",
    "Adapts the length of prompt lookup to what was accepted and to its throughput. There is no stopping rule of the "
    "draft.",
    "documentation, microsoft/onnxruntime-genai#2315, #2414; not run",
)
PAIR = Fact(
    "model.draft",
    "A folder with both models has the target's genai_config.json, with the draft's decoder as model.draft; file names "
    "that lead out of the folder are refused.",
    "run",
)
TOP_K = Fact("top_k", "Left open, top-k is 50; 0 keeps all tokens.", "run: the `genai_config.json` that is written")
BUILDER = Fact(
    "python -m onnxruntime_genai.models.builder",
    "Takes every layer with as many outputs as the vocabulary for the head: a feed-forward layer of that width is "
    "written wrong.",
    "run on the built-in target, whose feed-forward layers are 512 wide as its vocabulary",
)
COUNTS = Fact("get_speculative_stats", "Accepted tokens include those past the end of the text.", "run")
END = Fact("get_sequence", "Leaves out the token that ends the text; get_next_tokens has it.", "run")
MIN_P = Fact("min_p", "Has no min-p: no settings for traces with it.", "run: refused as unknown")
DRAFTS = 16
"""Most drafts of a call."""
PRECISIONS = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
"""The builder's names of types."""


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest chain under its rule, of as many drafts as it takes."""
    best = ask.drafted(TOKEN, most=DRAFTS)
    if best is None:
        return None
    sampling = ask.sampling
    search: dict[str, Any] = {"do_sample": not ask.greedy}
    if not ask.greedy:
        search |= {"temperature": sampling.temperature, "top_k": sampling.top_k or 0, "top_p": sampling.top_p or 1.0}
    drafted = {"max_draft_tokens": best.shape.nodes}
    paste = "\n".join(
        [
            "import json, pathlib, onnxruntime_genai",
            "target, draft = (json.loads(pathlib.Path(name, 'genai_config.json').read_text()) for name in "
            "('target', 'draft'))",
            "target['model']['decoder']['filename'] = 'target/model.onnx'",
            "target['model']['draft'] = draft['model']['decoder'] | {'filename': 'draft/model.onnx'}",
            "pathlib.Path('genai_config.json').write_text(json.dumps(target))",
            "params = onnxruntime_genai.GeneratorParams(onnxruntime_genai.Model('.'))",
            f"params.set_search_options({arguments(search)})",
            f"params.set_speculative_options({arguments(drafted)})",
        ]
    )
    options = {"search": search, "speculative": drafted}
    rule = (MATCHED if ask.greedy else SAMPLED).as_rule
    return ask.settings(ENGINE, best, options, paste, [rule, _build(ask), BUILDER.does])


def _build(ask: Ask) -> str:
    """How the folders of the pasted code are made."""
    lines = []
    for name, model in (("target", ask.target), ("draft", ask.drafter)):
        taken = {"-i" if Path(model.source).is_absolute() else "-m": model.source, "-o": name}
        options = {**taken, "-p": PRECISIONS.get(model.dtype or "", "fp32"), "-e": "cpu"}
        lines.append(shlex.join([*BUILDER.setting.split(), *(word for each in options.items() for word in each)]))
    return f"Write the folders first: {lines[0]}; {lines[1]}."


ENGINE = ServingEngine(
    "onnxruntime",
    "0.18.0",
    (SAMPLED, MATCHED, MOST, ADAPTIVE, PAIR, TOP_K, BUILDER, COUNTS, END, MIN_P),
    makers=(_with_draft,),
)
