"""Logits of heads by the package speculators itself, for interpreters that have it and nothing of this project.

``python speculators_judge.py JOBS`` reads a JSON list of jobs ``{"folder", "input", "output", "depth"}``. The input
(.npz) has ``hidden`` [n, layers * width], the hidden states after each token, and ``text`` [n], the ids. The output
(.npz) has ``starts`` [s], pairs, and ``logits`` [s, depth, drafted] in the head's own vocabulary after each: those that
the package's forward pass takes from its output matrix.
"""

import json
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from speculators import SpeculatorModel, SpeculatorModelConfig
from speculators.models.dspark import core as dspark_core
from speculators.models.peagle import core as peagle


class Enough(Exception):
    """The logits are there; the loss is not needed."""


def logits_of(model, passes, **arguments):
    """The outputs of the output matrix in the first passes of a forward call, ``[passes, rows, drafted]``."""
    taken = []

    def take(module, given, output):
        taken.append(output[0].detach())
        if len(taken) == passes:
            raise Enough

    hook = model.lm_head.register_forward_hook(take)
    try:
        model(
            **{name: value[None] for name, value in arguments.items() if isinstance(value, torch.Tensor)},
            **{name: value for name, value in arguments.items() if not isinstance(value, torch.Tensor)},
        )
    except Enough:
        pass
    finally:
        hook.remove()
    return torch.stack(taken)


def of_pairs(hidden, text):
    """What EAGLE's forward reads: pair t is the hidden state after token t, with token t + 1."""
    return {
        "hidden_states": hidden[:-1],
        "input_ids": text[1:],
        "document_ids": torch.zeros_like(text[1:]),
    }


def eagle3(model, hidden, text, depth):
    logits = logits_of(model, depth, **of_pairs(hidden, text), ttt_steps=depth)
    starts = torch.arange(len(text) - depth)
    return starts, logits[:, starts].transpose(0, 1)


def p_eagle(model, hidden, text, depth):
    """Every start at every depth, in place of the random sample that training takes."""
    starts = torch.arange(len(text) - depth)
    pairs = torch.arange(len(text) - 1)
    anchors = torch.cat([pairs, starts.repeat(depth - 1)])
    depths = torch.cat([torch.zeros_like(pairs), torch.arange(1, depth).repeat_interleave(len(starts))])
    peagle.generate_cod_sample_indices = lambda **_: (anchors, depths)
    last = torch.zeros(len(pairs), model.hidden_size)
    rows = logits_of(model, 1, **of_pairs(hidden, text), verifier_last_hidden_states=last)[0]
    deeper = rows[len(pairs) :].view(depth - 1, len(starts), -1)
    return starts, torch.cat([rows[starts][None], deeper]).transpose(0, 1)


def of_blocks(model, hidden, text):
    """What DFlash's forward reads: block a begins at token a and follows pair a - 1."""
    return {
        "hidden_states": hidden,
        "input_ids": text,
        "loss_mask": torch.ones(len(text)),
        "verifier_last_hidden_states": torch.zeros(len(text), model.hidden_size),
        "document_ids": torch.zeros_like(text),
        "max_anchors": len(text) - model.block_size,
    }


def dflash(model, hidden, text, depth):
    return by_start(model, logits_of(model, 1, **of_blocks(model, hidden, text))[0], depth)


def dspark(model, hidden, text, depth):
    """The logits that its loss is given: corrected by the text's own tokens."""
    taken = []

    def take(logits, *_, **__):
        taken.append(logits[0].detach())
        raise Enough

    dspark_core.compute_metrics = take
    given = of_blocks(model, hidden, text)
    with suppress(Enough):
        model(**{name: each[None] if isinstance(each, torch.Tensor) else each for name, each in given.items()})
    return by_start(model, taken[0], depth)


def by_start(model, rows, depth):
    """Rows of blocks; the first block has no pair."""
    first = 0 if model.config.sample_from_anchor else 1
    blocks = rows.view(-1, model.block_size, rows.shape[-1])[1:]
    return torch.arange(len(blocks)), blocks[:, first : first + depth]


def mtp(model, hidden, text, depth):
    logits = logits_of(model, 1, hidden_states=hidden, input_ids=text)[0]
    return torch.arange(len(logits)), logits[:, None]


FORWARD = {"eagle3": eagle3, "peagle": p_eagle, "dflash": dflash, "dspark": dspark, "mtp": mtp}


def take_of_target(model, names):
    """Load again what the checkpoint lacks: from_pretrained leaves such tensors uninitialised in memory."""
    if model.config.speculators_model_type in ("eagle3", "peagle"):
        model._load_verifier_weights(
            overwrite_embed_tokens="embed_tokens.weight" not in names, overwrite_lm_head="lm_head.weight" not in names
        )


@torch.no_grad()
def judge(job):
    config = SpeculatorModelConfig.from_pretrained(job["folder"])
    config.transformer_layer_config._attn_implementation = "eager"  # the default needs a compiler on a CPU
    model = SpeculatorModel.from_pretrained(job["folder"], config=config).eval()
    take_of_target(model, load_file(Path(job["folder"]) / "model.safetensors"))
    given = np.load(job["input"])
    hidden, text = torch.from_numpy(given["hidden"]), torch.from_numpy(given["text"])
    starts, logits = FORWARD[config.speculators_model_type](model, hidden, text, job["depth"])
    np.savez(job["output"], starts=starts.numpy(), logits=logits.numpy())


if __name__ == "__main__":
    for job in json.loads(Path(sys.argv[1]).read_text()):
        judge(job)
