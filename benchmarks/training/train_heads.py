"""The recipe of the built-in heads: ``python -m benchmarks.training.train_heads OUT`` makes all of RUNS.

The heads of a run learn from the same passes of the built-in target, over windows of the pair's training text and of
text that the target has sampled. Every draft of a call is trained, the later ones with less weight. Embeddings and
output matrix are the target's and stay as they are. The heads are saved as checkpoints of `speculators`. A run whose
folders exist is skipped.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.training.corpus import standard_library
from benchmarks.training.dense_heads import NETWORKS, DenseDFlash, DenseDSpark, DenseHead, HeadShape
from benchmarks.training.train import VOCABULARY, WINDOW, Schedule, batches, distance, encode, optimise
from spectheory.measure.heads.base import HiddenStates
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import read_prompts

Seen = tuple[Tensor, Tensor, Tensor]
"""Windows, the target's hidden states after each token, and log p of the token after it."""
SHAPES = {
    "eagle3": HeadShape(drafts=5, layers=1, feed_forward=192, reads=(2, 6, 9)),
    "dflash": HeadShape(drafts=5, layers=2, feed_forward=128, reads=(2, 6, 9)),
    "mtp": HeadShape(drafts=5, layers=1, feed_forward=192, reads=(12,)),
    "dspark": HeadShape(drafts=5, layers=1, feed_forward=192, reads=(2, 6, 9), rank=64),
}
SEED = 4
"""Of the texts, and of every run."""


class Run(NamedTuple):
    """How heads are trained together: a step has windows of text, and of text that the target has sampled."""

    steps: int
    text: int
    sampled: int

    @property
    def windows(self) -> int:
        """Windows of a step."""
        return self.text + self.sampled

    @property
    def schedule(self) -> Schedule:
        """Rates of a run of so many steps."""
        return Schedule(steps=self.steps, seed=SEED, muon=0.02, adamw=3e-3, flat=0.4)


RUNS = {("eagle3", "dflash"): Run(3000, text=6, sampled=2), ("mtp", "dspark"): Run(1600, text=3, sampled=1)}
ANCHORS = 48
"""Blocks in a window."""
DECAY = 0.8
"""Weight of a draft's loss, relative to the draft before it."""
SAMPLED = 512
"""Windows that the target samples."""
PROMPT = 32
"""Tokens of text before a sampled window."""
PROMPTS_AT_ONCE = 128
READS = (2, 6, 9, 12)
"""Hidden states of the target that some head reads."""
ARCHITECTURES = {
    name: f"{kind}DraftModel" for name, kind in zip(SHAPES, ("Eagle3", "DFlash", "MTP", "DSpark"), strict=True)
}
WITH_MATRICES = ("eagle3",)
"""Checkpoints with copies of the target's two matrices: speculators 0.9 fills missing ones with random numbers."""


def read(target: LlamaForCausalLM, window: Tensor) -> Seen:
    """What heads learn from."""
    with torch.no_grad(), HiddenStates(target, READS) as states:
        log_target = target(input_ids=window, use_cache=False).logits.float().log_softmax(-1)
        return window, states.take(), log_target


def drafts_of(head: DenseHead, seen: Seen, anchors: Tensor | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Log p and logits ``[batch, starts, V]`` of drafts 1, 2, ...; of a block behind anchors, else at every start."""
    window, hidden, log_target = seen
    hidden = torch.cat([hidden.chunk(len(READS), -1)[READS.index(layer)] for layer in head.shape.reads], -1)
    starts = window.shape[1] - head.shape.drafts
    every = torch.arange(1, 1 + starts).expand(len(window), starts)
    if isinstance(head, DenseDFlash):
        every = every if anchors is None else anchors
        drafts = head(hidden, window, every)
    else:
        drafts = head(hidden[:, :starts], window[:, 1:])
    rows = torch.arange(len(window))[:, None]
    for i, logits in enumerate(drafts):
        yield log_target[rows, every + i], logits


def loss_of(head: DenseHead, seen: Seen, anchors: Tensor, progress: float) -> Tensor:
    """The mean of :func:`distance` over starts, drafts weighted by powers of DECAY.

    To DSpark's is added the cross entropy of its confidence with 1 - TV.
    """
    drafts = list(drafts_of(head, seen, anchors))
    losses = torch.stack([distance(*each, progress).mean() for each in drafts])
    if isinstance(head, DenseDSpark):
        accepted = 1 - torch.stack([distance(*each, progress=1.0) for each in drafts], dim=-1).detach()
        sure = binary_cross_entropy_with_logits(head.confidence.float(), accepted, reduction="none")
        losses = losses + sure.mean((0, 1))
    weights = DECAY ** torch.arange(len(losses))
    return (losses * weights).sum() / weights.sum()


def random_anchors(windows: int, generator: torch.Generator) -> Tensor:
    """Distinct tokens with a whole block after them, ``[windows, ANCHORS]``."""
    return 1 + torch.rand(windows, WINDOW - SHAPES["dflash"].drafts, generator=generator).argsort(dim=1)[:, :ANCHORS]


def sample_text(target: Any, stream: Tensor, file: Path) -> Tensor:
    """Windows ``[SAMPLED, WINDOW]`` that the target continues after PROMPT tokens of text, kept in `file`."""
    if not file.exists():
        torch.manual_seed(SEED)
        target.generation_config.eos_token_id = None  # another text follows, as in the stream
        plain = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=WINDOW - PROMPT, pad_token_id=0)
        draw, windows = batches(stream, SEED, (PROMPTS_AT_ONCE, PROMPT)), list[Tensor]()
        while len(windows) * PROMPTS_AT_ONCE < SAMPLED:
            prompts = draw()
            windows.append(target.generate(prompts, attention_mask=torch.ones_like(prompts), generation_config=plain))
            print(f"{len(windows) * PROMPTS_AT_ONCE} of {SAMPLED} windows sampled", flush=True)
        torch.save(torch.cat(windows).to(torch.int16), file)
    sampled: Tensor = torch.load(file)
    return sampled


def lessons(target: LlamaForCausalLM, stream: Tensor, sampled: Tensor, run: Run) -> Callable[[], Seen]:
    """A function that draws windows of both kinds and lets the target read them."""
    draw = batches(stream, SEED, (run.text, WINDOW))
    generator = torch.Generator().manual_seed(SEED)

    def draw_and_read() -> Seen:
        rows = torch.randint(len(sampled), (run.sampled,), generator=generator)
        with torch.autocast("cpu", torch.bfloat16):
            return read(target, torch.cat([draw(), sampled[rows].long()]))

    return draw_and_read


def train(heads: list[DenseHead], schedule: Schedule, lesson: Callable[[], Seen]) -> float:
    """Train heads in place on the same passes of the target; return the seconds it took."""
    generator = torch.Generator().manual_seed(SEED)

    def loss_at(progress: float) -> Tensor:
        seen = lesson()
        anchors = random_anchors(len(seen[0]), generator)
        with torch.autocast("cpu", torch.bfloat16):
            return torch.stack([loss_of(head, seen, anchors, progress) for head in heads]).sum()

    return optimise(nn.ModuleList(heads), schedule, loss_at)


@torch.inference_mode()
def held_out_acceptance(
    head: DenseHead, target: LlamaForCausalLM, texts: list[list[int]]
) -> tuple[list[float], list[float]]:
    """Mean of 1 - TV by depth over all starts of the texts, and its standard errors by text (estimates)."""
    sums, counts = list[list[float]](), list[int]()
    for text in texts:
        drafts = drafts_of(head, read(target, torch.tensor([text])))
        sums.append([float((1 - distance(*each, progress=1.0)).sum()) for each in drafts])
        counts.append(len(text) - head.shape.drafts)
    accepted, of = np.asarray(sums), np.asarray(counts)
    mean = accepted.sum(0) / of.sum()
    residual = accepted - mean * of[:, None]
    error = np.sqrt(len(of) / (len(of) - 1) * np.sum(residual**2, axis=0)) / of.sum()
    return [round(float(m), 4) for m in mean], [round(float(e), 4) for e in error]


def save(head: DenseHead, kind: str, target: LlamaForCausalLM, folder: Path, facts: dict[str, object]) -> None:
    """Write weights in half precision, the configuration and the facts of the training run."""
    partial = folder.with_name(folder.name + ".partial")
    partial.mkdir(parents=True)
    weights = {name: weight.half().contiguous() for name, weight in head.state_dict().items()}
    if kind in WITH_MATRICES:
        for name, matrix in (
            ("embed_tokens", target.get_input_embeddings()),
            ("lm_head", target.get_output_embeddings()),
        ):
            weights[f"{name}.weight"] = matrix.weight.half()
    save_file(weights, partial / "model.safetensors", metadata={"format": "pt"})
    for name, content in (("config", configuration(head.shape, kind)), ("training", facts)):
        (partial / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    partial.rename(folder)


def fields_of(shape: HeadShape, kind: str) -> dict[str, object]:
    """The fields of config.json that a kind has and others have not."""
    if kind == "mtp":
        return {"num_nextn_predict_layers": 1}
    if kind == "eagle3":
        return {"eagle_aux_hidden_state_layer_ids": list(shape.reads), "norm_before_residual": True}
    block = {"aux_hidden_state_layer_ids": list(shape.reads), "mask_token_id": shape.mask}
    if kind == "dflash":
        return {**block, "block_size": shape.drafts + 1}
    return {**block, "block_size": shape.drafts, "markov_rank": shape.rank}


def configuration(shape: HeadShape, kind: str) -> dict[str, object]:
    """The checkpoint's config.json."""
    return {
        "architectures": [ARCHITECTURES[kind]],
        **({} if kind == "mtp" else {"draft_vocab_size": VOCABULARY}),
        "dtype": "float16",
        **fields_of(shape, kind),
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": shape.drafts}],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "builtin:target"},
        },
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "tie_word_embeddings": False,
        "transformer_layer_config": {
            "attention_bias": False,
            "head_dim": shape.per_head,
            "hidden_act": "silu",
            "hidden_size": shape.width,
            "intermediate_size": shape.feed_forward,
            "max_position_embeddings": WINDOW,
            "model_type": "llama" if kind == "eagle3" else "qwen3",
            "num_attention_heads": shape.heads,
            "num_hidden_layers": shape.layers,
            "num_key_value_heads": 1,
            "rms_norm_eps": shape.eps,
            "rope_parameters": {"rope_theta": shape.theta, "rope_type": "default"},
            "tie_word_embeddings": False,
            "vocab_size": VOCABULARY,
        },
    }


def make_heads(out: Path) -> None:
    """Train the heads of every run and save them below `out`."""
    files = standard_library()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(resolve("builtin:target"))
    stream = encode(tokenizer, [f.text for f in files if not f.held_out])
    target = LlamaForCausalLM.from_pretrained(resolve("builtin:target"), dtype=torch.float32).eval()
    target.requires_grad_(False)
    sampled = sample_text(target, stream, out / "sampled.pt")
    unused = next(i for i in range(target.config.vocab_size) if not (stream == i).any())
    texts = [tokenizer.encode(prompt.text) for prompt in read_prompts(PROMPTS)]
    for kinds, run in RUNS.items():
        if all((out / kind).exists() for kind in kinds):
            continue
        torch.manual_seed(SEED)
        shapes = [SHAPES[kind]._replace(mask=unused) for kind in kinds]
        heads: list[DenseHead] = [NETWORKS[kind](shape, target) for kind, shape in zip(kinds, shapes, strict=True)]
        seconds = train(heads, run.schedule, lessons(target, stream, sampled, run))
        for name, head in zip(kinds, heads, strict=True):
            head.half().float()
            acceptance, error = held_out_acceptance(head, target, texts)
            facts: dict[str, object] = {
                "parameters": sum(p.numel() for p in head.parameters()),
                "schedule": asdict(run.schedule),
                "batch": [run.windows, WINDOW],
                "training_seconds": round(seconds),
                "training_tokens": run.steps * run.windows * WINDOW,
                "sampled_windows": SAMPLED,
                "held_out_acceptance_by_depth": acceptance,
                "standard_error_by_prompt": error,
                "corpus": {"files": len(files), "tokens": len(stream)},
                "versions": {"python": platform.python_version(), "torch": torch.__version__},
            }
            print(name, json.dumps(facts), flush=True)
            save(head, name, target, out / name, facts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for the sampled text and the heads")
    make_heads(parser.parse_args().out)
