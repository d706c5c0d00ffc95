"""The model card of the built-in models, from recorded and measured values: ``python -m benchmarks.training.card``.

Recipe, losses and the heads' acceptance come from each ``training.json``; acceptance rates of the drafts and latencies
are measured now.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.training.corpus import HELD_OUT_ONE_IN
from benchmarks.training.train_heads import RUNS
from spectheory.measure import MeasureSettings, load_pair, measure, measure_latency
from spectheory.pairs import HEADS, MODELS, PREFIX, PROMPTS, resolve
from spectheory.prompts import read_prompts
from spectheory.trace import Trace

CARD = PROMPTS.parent / "MODEL_CARD.md"
CONTEXT = 128

TEMPLATE = """---
license: apache-2.0
library_name: transformers
---
# The built-in pair: a small target and two drafts over Python source

Three causal language models in the transformers Llama format with one byte-level BPE tokenizer of {vocabulary}
entries, so that everything here runs offline. They know nothing but Python source and are meant for measuring
speculative decoding, not for writing programs.

| model | what it is | parameters | held-out loss (nats/token) | acceptance 1 - TV | c | training |
|---|---|---|---|---|---|---|
{rows}

- **Text.** {files} source files of Python {python}'s standard library, {tokens:,} training tokens; one file in
  {one_in} is held out by the SHA-256 of its path ({held_out_tokens:,} tokens).
- **Recipe.** `python -m benchmarks.training.train OUT`: Muon on the matrices and AdamW on embeddings and norms, batches
  of {batch} x {window} tokens, warm-up, flat, linear decay; seeds {seeds}. The distilled draft starts from the text
  draft and learns from the final target on text, first KL(target || draft), then total variation.
- **Training time** is wall clock on two CPU cores that other work shared.
- **Acceptance**: mean of 1 - TV(target, draft) over target-sampled continuations of the {prompts} held-out prompts at
  temperature 1 ({positions:,} positions), +- one standard error by prompt.
- **c**: median draft step over median target step, {context} tokens in the cache, on {machine}.
- **Prompts**: `question.jsonl`, excerpts of the held-out files (Python Software Foundation licence), cut by
  `python -m benchmarks.training.questions`.
- Window {window} tokens; weights in half precision; torch {torch}.
"""
HEADS_TEMPLATE = """
# The built-in heads: drafts that read the target's hidden states

| head | what it is | parameters | weights on disk | held-out acceptance 1 - TV of drafts 1 to {drafts} | training |
|---|---|---|---|---|---|
{rows}

- **Format.** Checkpoints of `speculators`; the target named in them is the built-in one, to be replaced by its folder.
  Embeddings and output matrix are the target's. EAGLE-3's file has copies of both, because speculators 0.9 fills
  missing ones with random numbers.
- **Recipe.** `python -m benchmarks.training.train_heads OUT`: a run trains {runs}
  on the same passes of the target, over the pair's training text and {sampled} windows that the target sampled, each of
  {window} tokens;
  first KL(target || draft), then total variation, of all {drafts} drafts of a call; DSpark's confidence learns 1 - TV.
  Muon and AdamW, seed {seed}. Compare heads of one run: the later run saw fewer tokens.
- **Training time** is wall clock of the run, on two CPU cores that other work shared.
- **Acceptance** by start and depth: the mean over all starts of the held-out prompts, the drafts before being those of
  the text, +- one standard error by prompt of the last.
"""
HEAD_KINDS = {
    "eagle3": "EAGLE-3: one layer, one pass per draft",
    "dflash": "DFlash: two layers, one pass for all drafts",
    "mtp": "MTP: one module, applied again for each draft",
    "dspark": "DSpark: one layer, one pass for all drafts, corrected by the token before each",
}


def acceptance_by_prompt(trace: Trace) -> tuple[float, float]:
    """Mean of 1 - TV, and its standard error by prompt (estimates)."""
    prompts = np.repeat([text.prompt for text in trace.texts], trace.lengths)
    _, of = np.unique(prompts, return_inverse=True)
    accepted, counts = np.bincount(of, 1 - trace.columns["total_variation"]), np.bincount(of)
    mean = float(accepted.sum() / counts.sum())
    residual = accepted - mean * counts
    error = float(np.sqrt(len(counts) / (len(counts) - 1) * np.sum(residual**2)) / counts.sum())
    return mean, error


def heads_section() -> str:
    """The part on the heads, from what their training recorded."""
    facts = {name: _facts(name) for name in HEADS}
    one = facts[HEADS[0]]
    return HEADS_TEMPLATE.format(
        rows="\n".join(_head_row(name, each) for name, each in facts.items()),
        drafts=len(one["held_out_acceptance_by_depth"]),
        sampled=one["sampled_windows"],
        runs=" or ".join(" and ".join(f"`{kind}`" for kind in kinds) for kinds in RUNS),
        window=one["batch"][1],
        seed=one["schedule"]["seed"],
    )


def _facts(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((Path(resolve(PREFIX + name)) / "training.json").read_text())
    return content


def _head_row(name: str, facts: dict[str, Any]) -> str:
    kilobytes = (Path(resolve(PREFIX + name)) / "model.safetensors").stat().st_size / 1000
    shares = ", ".join(f"{share:.3f}" for share in facts["held_out_acceptance_by_depth"])
    return (
        f"| `{name}` | {HEAD_KINDS[name]} | {facts['parameters']:,} | {kilobytes:.0f} kB "
        f"| {shares} +- {facts['standard_error_by_prompt'][-1]:.3f} "
        f"| {facts['schedule']['steps']} steps of {facts['batch'][0]} windows, "
        f"{facts['training_seconds'] / 60:.0f} min |"
    )


def card() -> str:
    """The text of the card; measures both drafts (some minutes on two cores)."""
    facts = {name: _facts(name) for name in MODELS}
    prompts = read_prompts(PROMPTS)
    rows = [_row("target", "target, trained on text", facts["target"], "", "")]
    for name, what in (("draft", "draft, trained on text"), ("distilled", "draft, distilled from the target")):
        pair = load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + name))
        with tempfile.TemporaryDirectory() as folder:
            trace = measure(pair, prompts, MeasureSettings(count=2), Path(folder) / "trace.parquet")
        table = measure_latency(pair, context=CONTEXT)
        share = "{:.3f} +- {:.3f}".format(*acceptance_by_prompt(trace))
        rows.append(_row(name, what, facts[name], share, f"{table.ratio:.3f}"))
    target = facts["target"]
    return (
        TEMPLATE.format(
            rows="\n".join(rows),
            vocabulary=trace.provenance["tokenizer_size"],
            files=target["corpus"]["files"],
            tokens=target["corpus"]["tokens"],
            held_out_tokens=target["corpus"]["held_out_tokens"],
            one_in=HELD_OUT_ONE_IN,
            batch=target["batch"][0],
            window=target["batch"][1],
            python=target["versions"]["python"],
            torch=target["versions"]["torch"],
            seeds=", ".join(str(facts[name]["schedule"]["seed"]) for name in MODELS),
            prompts=len(prompts),
            positions=len(trace),
            context=CONTEXT,
            machine=table.provenance["hardware"]["cpu"],
        )
        + heads_section()
    )


def _row(name: str, what: str, facts: dict[str, Any], acceptance: str, c: str) -> str:
    loss, schedule = facts["held_out_loss_nats_per_token"], facts["schedule"]
    minutes = facts["training_seconds"] / 60
    return (
        f"| `{name}` | {what} | {facts['parameters']:,} | {loss:.3f} | {acceptance} | {c} "
        f"| {schedule['steps']} steps, {minutes:.0f} min |"
    )


if __name__ == "__main__":
    CARD.write_text(card())
