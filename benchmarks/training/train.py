"""The recipe of the built-in pair: ``python -m benchmarks.training.train OUT`` makes tokenizer, target and drafts.

Stages: the byte-level BPE tokenizer, the target on text, the draft on text, and the distilled draft (it starts from the
text draft and learns from the *final* target). A stage whose folder exists is skipped.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import ByteLevelBPETokenizer
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.training.corpus import standard_library

VOCABULARY = 512
WINDOW = 256
BATCH = 16
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class Shape:
    """Sizes of one Llama model."""

    width: int
    layers: int
    heads: int
    feed_forward: int

    def build(self) -> LlamaForCausalLM:
        """A freshly initialised model of this shape, embeddings tied."""
        config = LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.heads,
            intermediate_size=self.feed_forward,
            max_position_embeddings=WINDOW,
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
        )
        return LlamaForCausalLM(config)


@dataclass(frozen=True)
class Schedule:
    """Optimisation: Muon on the matrices, AdamW on embeddings and norms; warm-up, flat, linear decay to zero."""

    steps: int
    seed: int
    muon: float = 0.02
    adamw: float = 3e-3
    warm_up: int = 30
    flat: float = 0.4

    def factor(self, step: int) -> float:
        """Learning rate at `step` as a fraction of its peak."""
        if step < self.warm_up:
            return (step + 1) / self.warm_up
        decay_from = self.flat * self.steps
        return min(1.0, (self.steps - step) / (self.steps - decay_from))


TARGET = Shape(width=192, layers=12, heads=3, feed_forward=512)
DRAFT = Shape(width=128, layers=2, heads=2, feed_forward=608)
SCHEDULES = {
    "target": Schedule(steps=2000, seed=1),
    "draft": Schedule(steps=5000, seed=2),
    "distilled": Schedule(steps=2400, seed=3, muon=0.01, adamw=1.5e-3, flat=0.3),
}
BY_ADAMW = ("embed", "markov_", "confidence_")
"""Parts of the names of matrices that are embeddings, or of low rank."""
KL_SHARE = 0.3
"""The first part of distillation minimises KL(target || draft), the rest total variation."""


def train_tokenizer(texts: list[str], folder: Path) -> PreTrainedTokenizerFast:
    """Train the byte-level BPE tokenizer and save it; id 0 is the end of text."""
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(texts, vocab_size=VOCABULARY, min_frequency=2, special_tokens=[END_OF_TEXT])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer,
        bos_token=END_OF_TEXT,
        eos_token=END_OF_TEXT,
        model_max_length=WINDOW,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


def encode(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    """All texts as one stream of token ids, each text after an end-of-text token."""
    pieces = [np.asarray([0, *e.ids], dtype=np.int16) for e in tokenizer.backend_tokenizer.encode_batch(texts)]
    return torch.from_numpy(np.concatenate(pieces))


def batches(
    stream: torch.Tensor, seed: int, shape: tuple[int, int] = (BATCH, WINDOW + 1)
) -> Callable[[], torch.Tensor]:
    """A function that draws random windows of `stream`, of the shape ``[batch, tokens]``."""
    generator = torch.Generator().manual_seed(seed)
    batch, tokens = shape
    offsets = torch.arange(tokens)

    def draw() -> torch.Tensor:
        starts = torch.randint(len(stream) - tokens, (batch, 1), generator=generator)
        return stream[starts + offsets].long()

    return draw


def text_loss(logits: torch.Tensor, window: torch.Tensor, progress: float) -> torch.Tensor:
    """Cross-entropy of the next token, nats per token."""
    return functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())


def distance(target: torch.Tensor, logits: torch.Tensor, progress: float) -> torch.Tensor:
    """First KL(target || draft), then total variation = 1 - acceptance rate, ``[...]``; `target` as log p."""
    draft = logits.float().log_softmax(-1)
    if progress < KL_SHARE:
        return functional.kl_div(draft, target, log_target=True, reduction="none").sum(-1)
    return 0.5 * (target.exp() - draft.exp()).abs().sum(-1)


def distillation_loss(teacher: LlamaForCausalLM) -> Callable[..., torch.Tensor]:
    """A loss against `teacher`, the mean of :func:`distance`."""

    def loss(logits: torch.Tensor, window: torch.Tensor, progress: float) -> torch.Tensor:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            target = teacher(input_ids=window[:, :-1]).logits.float().log_softmax(-1)
        return distance(target, logits, progress).mean()

    return loss


def loss_of_windows(
    model: LlamaForCausalLM, draw: Callable[[], torch.Tensor], loss_of: Callable[..., torch.Tensor]
) -> Callable[[float], torch.Tensor]:
    """The loss of a language model on the next windows, given the share of the steps that is done."""
    compiled = torch.compile(model)

    def loss(progress: float) -> torch.Tensor:
        window = draw()
        with torch.autocast("cpu", torch.bfloat16):
            logits = compiled(input_ids=window[:, :-1], use_cache=False).logits
        return loss_of(logits.float(), window, progress)

    return loss


def optimise(model: nn.Module, schedule: Schedule, loss_at: Callable[[float], torch.Tensor]) -> float:
    """Train `model` in place; return the seconds it took."""
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and not any(e in name for e in BY_ADAMW)]
    kept = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in kept]
    optimisers = [
        torch.optim.Muon(matrices, lr=schedule.muon),
        torch.optim.AdamW(others, lr=schedule.adamw, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    schedulers = [torch.optim.lr_scheduler.LambdaLR(o, schedule.factor) for o in optimisers]
    started, running = time.perf_counter(), math.nan
    for step in range(schedule.steps):
        loss = loss_at(step / schedule.steps)
        loss.backward()
        for optimiser, scheduler in zip(optimisers, schedulers, strict=True):
            optimiser.step()
            scheduler.step()
            optimiser.zero_grad(set_to_none=True)
        running = loss.item() if math.isnan(running) else 0.98 * running + 0.02 * loss.item()
        if step % 100 == 99:
            print(f"step {step + 1:5d}  loss {running:.4f}  {time.perf_counter() - started:6.0f} s", flush=True)
    return time.perf_counter() - started


@torch.inference_mode()
def held_out_loss(model: LlamaForCausalLM, stream: torch.Tensor, windows: int = 512) -> float:
    """Mean held-out cross-entropy, nats per token, on `windows` windows spread evenly over the stream."""
    starts = torch.linspace(0, len(stream) - WINDOW - 1, windows).long()
    losses = []
    for chunk in starts.split(BATCH):
        window = stream[chunk[:, None] + torch.arange(WINDOW + 1)].long()
        losses.append(text_loss(model(input_ids=window[:, :-1]).logits.float(), window, 1.0).item() * len(chunk))
    return sum(losses) / windows


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path, facts: dict[str, object]) -> None:
    """Write weights in half precision, tokenizer and the facts of the training run; the folder appears when whole."""
    partial = folder.with_name(folder.name + ".partial")
    model.half().save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    (partial / "training.json").write_text(json.dumps(facts, indent=2) + "\n")
    partial.rename(folder)


def make_pair(out: Path) -> None:
    """Run every stage whose folder does not exist yet."""
    files = standard_library()
    training = [f.text for f in files if not f.held_out]
    held_out = [f.text for f in files if f.held_out]
    if not (out / "tokenizer").exists():
        train_tokenizer(training, out / "tokenizer")
    tokenizer = PreTrainedTokenizerFast.from_pretrained(out / "tokenizer")
    stream, unseen = encode(tokenizer, training), encode(tokenizer, held_out)
    print(f"{len(training)} files, {len(stream)} tokens to train on; {len(held_out)} files, {len(unseen)} held out")
    for name, schedule in SCHEDULES.items():
        if (out / name).exists():
            continue
        torch.manual_seed(schedule.seed)
        model = (TARGET if name == "target" else DRAFT).build()
        loss_of: Callable[..., torch.Tensor] = text_loss
        if name == "distilled":
            model.load_state_dict(LlamaForCausalLM.from_pretrained(out / "draft", dtype=torch.float32).state_dict())
            teacher = LlamaForCausalLM.from_pretrained(out / "target", dtype=torch.float32).eval()
            loss_of = distillation_loss(teacher)
        seconds = optimise(model, schedule, loss_of_windows(model, batches(stream, schedule.seed), loss_of))
        facts: dict[str, object] = {
            "parameters": model.num_parameters(),
            "schedule": asdict(schedule),
            "batch": [BATCH, WINDOW],
            "training_seconds": round(seconds),
            "training_tokens": schedule.steps * BATCH * WINDOW,
            "held_out_loss_nats_per_token": round(held_out_loss(model.eval(), unseen), 4),
            "corpus": {"files": len(files), "tokens": len(stream), "held_out_tokens": len(unseen)},
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
        }
        print(name, json.dumps(facts), flush=True)
        save(model, tokenizer, out / name, facts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder for the tokenizer and the three models")
    make_pair(parser.parse_args().out)
