"""The recipe of the built-in heads: ``python -m benchmarks.training.train_heads OUT`` makes `eagle3` and `dflash`.

Both learn from the same passes of the built-in target, over windows of the pair's training text and of text that the
target has sampled. Every draft of a call is trained, the later ones with less weight. Embeddings and output matrix
are the target's and stay as they are. The heads are saved as checkpoints of `speculators`.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.training.corpus import standard_library
from benchmarks.training.dense_heads import DenseDFlash, DenseEagle3, DenseHead, HeadShape
from benchmarks.training.train import VOCABULARY, WINDOW, Schedule, batches, distance, encode, optimise
from spectheory.measure.heads.base import HiddenStates
from spectheory.pairs import PROMPTS, resolve
from spectheory.prompts import read_prompts

Drafts = Iterator[tuple[Tensor, Tensor]]
EAGLE3 = HeadShape(drafts=5, layers=1, feed_forward=192, reads=(2, 6, 9))
DFLASH = HeadShape(drafts=5, layers=2, feed_forward=128, reads=(2, 6, 9))
SCHEDULE = Schedule(steps=3000, seed=4, muon=0.02, adamw=3e-3, flat=0.4)
BATCH = (6, 2)
"""Windows of text, and of text that the target has sampled."""
ANCHORS = 48
"""Blocks of DFlash in a window."""
DECAY = 0.8
"""Weight of a draft's loss, relative to the draft before it."""
SAMPLED = 512
"""Windows that the target samples."""
PROMPT = 32
"""Tokens of text before a sampled window."""
PROMPTS_AT_ONCE = 128
ARCHITECTURES = {"eagle3": "Eagle3DraftModel", "dflash": "DFlashDraftModel"}
WITH_MATRICES = ("eagle3",)
"""Checkpoints with copies of the target's two matrices: speculators 0.9 fills missing ones with random numbers."""


def read(target: LlamaForCausalLM, window: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The windows, the target's hidden states after each token, and log p of the token after it."""
    with torch.no_grad(), HiddenStates(target, EAGLE3.reads) as states:
        log_target = target(input_ids=window, use_cache=False).logits.float().log_softmax(-1)
        return window, states.take(), log_target


def eagle3_drafts(head: nn.Module, window: Tensor, hidden: Tensor, log_target: Tensor) -> Drafts:
    """Log p and logits ``[batch, starts, V]`` of drafts 1, 2, ... at every start of the windows."""
    pairs = window.shape[1] - EAGLE3.drafts
    for i, logits in enumerate(head(hidden[:, :pairs], window[:, 1:])):
        yield log_target[:, 1 + i : 1 + i + pairs], logits


def dflash_drafts(head: nn.Module, window: Tensor, hidden: Tensor, log_target: Tensor, anchors: Tensor) -> Drafts:
    """Log p and logits ``[batch, anchors, V]`` of drafts 1, 2, ... after the anchors."""
    rows = torch.arange(len(window))[:, None]
    for i, logits in enumerate(head(hidden, window, anchors).unbind(2)):
        yield log_target[rows, anchors + i], logits


def loss_of(drafts: Drafts, progress: float) -> Tensor:
    """The mean of :func:`distance` over starts, drafts weighted by powers of DECAY."""
    losses = torch.stack([distance(*each, progress).mean() for each in drafts])
    weights = DECAY ** torch.arange(len(losses))
    return (losses * weights).sum() / weights.sum()


def random_anchors(windows: int, generator: torch.Generator) -> Tensor:
    """Distinct tokens with a whole block after them, ``[windows, ANCHORS]``."""
    return 1 + torch.rand(windows, WINDOW - DFLASH.drafts, generator=generator).argsort(dim=1)[:, :ANCHORS]


def sample_text(target: Any, stream: Tensor, file: Path) -> Tensor:
    """Windows ``[SAMPLED, WINDOW]`` that the target continues after PROMPT tokens of text, kept in `file`."""
    if not file.exists():
        torch.manual_seed(SCHEDULE.seed)
        target.generation_config.eos_token_id = None  # another text follows, as in the stream
        plain = GenerationConfig(do_sample=True, top_k=0, max_new_tokens=WINDOW - PROMPT, pad_token_id=0)
        draw, windows = batches(stream, SCHEDULE.seed, (PROMPTS_AT_ONCE, PROMPT)), list[Tensor]()
        while len(windows) * PROMPTS_AT_ONCE < SAMPLED:
            prompts = draw()
            windows.append(target.generate(prompts, attention_mask=torch.ones_like(prompts), generation_config=plain))
            print(f"{len(windows) * PROMPTS_AT_ONCE} of {SAMPLED} windows sampled", flush=True)
        torch.save(torch.cat(windows).to(torch.int16), file)
    sampled: Tensor = torch.load(file)
    return sampled


def lessons(target: LlamaForCausalLM, stream: Tensor, sampled: Tensor) -> Callable[[], tuple[Tensor, Tensor, Tensor]]:
    """A function that draws windows of both kinds and lets the target read them."""
    draw = batches(stream, SCHEDULE.seed, (BATCH[0], WINDOW))
    generator = torch.Generator().manual_seed(SCHEDULE.seed)

    def draw_and_read() -> tuple[Tensor, Tensor, Tensor]:
        rows = torch.randint(len(sampled), (BATCH[1],), generator=generator)
        with torch.autocast("cpu", torch.bfloat16):
            return read(target, torch.cat([draw(), sampled[rows].long()]))

    return draw_and_read


def train(eagle3: DenseEagle3, dflash: DenseDFlash, lesson: Callable[[], tuple[Tensor, Tensor, Tensor]]) -> float:
    """Train both heads in place on the same passes of the target; return the seconds it took."""
    generator = torch.Generator().manual_seed(SCHEDULE.seed)

    def loss_at(progress: float) -> Tensor:
        seen = lesson()
        anchors = random_anchors(len(seen[0]), generator)
        with torch.autocast("cpu", torch.bfloat16):
            return loss_of(eagle3_drafts(eagle3, *seen), progress) + loss_of(
                dflash_drafts(dflash, *seen, anchors), progress
            )

    return optimise(nn.ModuleList([eagle3, dflash]), SCHEDULE, loss_at)


@torch.inference_mode()
def held_out_acceptance(
    head: DenseHead, target: LlamaForCausalLM, texts: list[list[int]]
) -> tuple[list[float], list[float]]:
    """Mean of 1 - TV by depth over all starts of the texts, and its standard errors by text (estimates)."""
    sums, counts = list[list[float]](), list[int]()
    for text in texts:
        seen = read(target, torch.tensor([text]))
        starts = len(text) - head.shape.drafts
        drafts = (
            dflash_drafts(head, *seen, torch.arange(1, starts + 1)[None])
            if isinstance(head, DenseDFlash)
            else eagle3_drafts(head, *seen)
        )
        sums.append([float((1 - distance(*each, progress=1.0)).sum()) for each in drafts])
        counts.append(starts)
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
    mask = head.mask if isinstance(head, DenseDFlash) else None
    for name, content in (("config", configuration(head.shape, kind, mask)), ("training", facts)):
        (partial / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")
    partial.rename(folder)


def configuration(shape: HeadShape, kind: str, mask: int | None) -> dict[str, object]:
    """The checkpoint's config.json."""
    of_kind: dict[str, object] = {
        "eagle_aux_hidden_state_layer_ids": list(shape.reads),
        "norm_before_residual": True,
    }
    if mask is not None:
        of_kind = {
            "aux_hidden_state_layer_ids": list(shape.reads),
            "block_size": shape.drafts + 1,
            "mask_token_id": mask,
        }
    return {
        "architectures": [ARCHITECTURES[kind]],
        "draft_vocab_size": VOCABULARY,
        "dtype": "float16",
        **of_kind,
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
            "model_type": "llama" if mask is None else "qwen3",
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
    """Train both heads and save them below `out`."""
    files = standard_library()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(resolve("builtin:target"))
    stream = encode(tokenizer, [f.text for f in files if not f.held_out])
    target = LlamaForCausalLM.from_pretrained(resolve("builtin:target"), dtype=torch.float32).eval()
    target.requires_grad_(False)
    sampled = sample_text(target, stream, out / "sampled.pt")
    torch.manual_seed(SCHEDULE.seed)
    unused = next(i for i in range(target.config.vocab_size) if not (stream == i).any())
    eagle3, dflash = DenseEagle3(EAGLE3, target), DenseDFlash(DFLASH, target, mask=unused)
    seconds = train(eagle3, dflash, lessons(target, stream, sampled))
    texts = [tokenizer.encode(prompt.text) for prompt in read_prompts(PROMPTS)]
    for name, head in (("eagle3", eagle3), ("dflash", dflash)):
        head.half().float()
        acceptance, error = held_out_acceptance(head, target, texts)
        facts: dict[str, object] = {
            "parameters": sum(p.numel() for p in head.parameters()),
            "schedule": asdict(SCHEDULE),
            "batch": [sum(BATCH), WINDOW],
            "training_seconds": round(seconds),
            "training_tokens": SCHEDULE.steps * sum(BATCH) * WINDOW,
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
    parser.add_argument("out", type=Path, help="folder for the sampled text and the two heads")
    make_heads(parser.parse_args().out)
