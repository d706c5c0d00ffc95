"""Write a saved transformers model for onnxruntime-genai with its builder; a plain script for its interpreter.

Usage: ``python onnxruntime_model.py SAVED OUT``. Weights in float32. The builder takes every layer with as many outputs
as the vocabulary for the head: a feed-forward layer of that width gets zero columns, which change no logit.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

MORE = 32
"""Columns of zeros."""
WIDER = {"gate_proj": 0, "up_proj": 0, "down_proj": 1}
"""Matrices of a feed-forward layer, and the side that gets wider."""


def widened(model: Any) -> None:
    """Give the feed-forward layers zero columns."""
    model.config.intermediate_size += MORE
    for name, layer in model.named_modules():
        side = WIDER.get(name.rpartition(".")[2])
        if side is not None:
            shape = list(layer.weight.shape)
            shape[side] = MORE
            layer.weight = torch.nn.Parameter(torch.cat([layer.weight, torch.zeros(shape)], dim=side))
            layer.out_features, layer.in_features = layer.weight.shape


def write(saved: str, out: str) -> None:
    """Write the model of one folder into another."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        model = AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32)
        if getattr(model.config, "intermediate_size", None) == model.config.vocab_size:
            widened(model)
            model.save_pretrained(folder)
            AutoTokenizer.from_pretrained(saved).save_pretrained(folder)
            saved = folder
        builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-p", "fp32", "-e", "cpu"]
        subprocess.run([*builder, "-i", saved, "-o", out, "-c", str(Path(folder) / "cache")], check=True)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
