"""Latencies and decoding loop of a large pair with random weights: times do not depend on what the weights are."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from _gpu_sizes import Sizes
from transformers import AutoModelForCausalLM, LlamaConfig

from spectheory.cost import ACCELERATORS, ModelShape, Roofline
from spectheory.cost.table import LOOP_ROUNDS, PASS_ROUNDS
from spectheory.measure import Model, ModelPair, measure_latency, with_loop
from spectheory.measure.budget import Budget

DATA_SHEETS = {
    "NVIDIA A100-SXM4-80GB": "A100-80GB-SXM",
    "NVIDIA H100 80GB HBM3": "H100-SXM",
    "NVIDIA H200": "H200",
    "NVIDIA L4": "L4",
    "NVIDIA GeForce RTX 4090": "RTX-4090",
}
"""Accelerators by the names that their driver gives them."""
PROMPT = 64


class Words:
    """In place of a tokenizer: as many words as the models have outputs, and no end of text."""

    eos_token_id = None

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


def random_pair(device: str, dtype: str, sizes: Sizes) -> ModelPair:
    """Both models, built on the device in their precision."""
    target, draft = (
        random_model(name, one, device, dtype) for name, one in (("target", sizes.target), ("draft", sizes.draft))
    )
    return ModelPair(target, draft, Words(target.outputs), target.outputs)


def random_model(name: str, sizes: dict[str, Any], device: str, dtype: str) -> Model:
    """A Llama with random weights, always the same ones."""
    config = LlamaConfig(**sizes, bos_token_id=None, eos_token_id=None)
    torch.manual_seed(0)
    with torch.device(device):
        network = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    network.eval()
    return Model(name, None, network, config.vocab_size, config.max_position_embeddings, "random")


def latencies(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of passes at each context, and against the roofline where the accelerator is known."""
    pair = random_pair(device, dtype, sizes)
    found: dict[str, Any] = {
        "parameters": {one.name: int(one.network.num_parameters()) for one in (pair.target, pair.draft)},
        "data_sheet": data_sheet(device) or "unknown",
        "contexts": {},
    }
    for context in sizes.contexts:
        table = measure_latency(
            pair, context=context, tokens=sizes.widths, repeats=sizes.repeats, warm_up=sizes.warm_up
        )
        limit = roofline(device, dtype, sizes, context)
        found["contexts"][context] = {
            who: {m: row(entry.as_dict(), limit and getattr(limit, f"{who}_pass")(m).best) for m, entry in of.items()}
            for who, of in (("target", table.target), ("draft", table.draft))
        }
    return found


def row(measured: dict[str, Any], limit: float | None) -> dict[str, Any]:
    """A measured pass against the roofline's."""
    return {"measured": measured, "roofline": limit, "over_roofline": limit and measured["best"] / limit}


def data_sheet(device: str) -> str | None:
    """The name under which the device's data sheet is known."""
    return DATA_SHEETS.get(torch.cuda.get_device_name()) if device == "cuda" else None


def roofline(device: str, dtype: str, sizes: Sizes, context: int) -> Roofline | None:
    """C3 for the pair, if there is a data sheet with a peak for the type."""
    sheet = data_sheet(device)
    if sheet is None or dtype != "bfloat16":
        return None
    target, draft = (
        ModelShape.from_config(LlamaConfig(**one).to_dict(), bytes_per_weight=2, bytes_per_kv=2)
        for one in (sizes.target, sizes.draft)
    )
    return Roofline(target, draft, ACCELERATORS[sheet], context)


def latency_budget(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """What budgets of seconds give: rounds, why they ended, the widest interval, and the loop outside the passes."""
    pair, found = random_pair(device, dtype, sizes), {}
    for seconds in sizes.budgets:
        budget = Budget(seconds=seconds)
        table = measure_latency(pair, context=sizes.contexts[0], tokens=sizes.widths, budget=budget)
        looped = with_loop(pair, table, budget=budget)
        passes = looped.provenance[PASS_ROUNDS]
        assert looped.loop is not None
        found[f"{seconds:g}"] = {
            "rounds": table.provenance["repeats"],
            "widest": max(passes["widths"].values()),
            "draft_step": table.ratio,
            "passes": passes,
            "loop": {**looped.provenance[LOOP_ROUNDS], **asdict(looped.loop)},
        }
    return {"budgets": found}
