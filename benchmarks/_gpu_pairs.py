"""How much `on_gpu.py` runs, and what a large pair with random weights takes: times do not depend on the weights."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig

from spectheory.cost import ACCELERATORS, ModelShape, Roofline
from spectheory.cost.table import ROUNDS
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Shape
from spectheory.measure import MeasureSettings, Model, ModelPair, measure_latency, teacher_forced
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.forward import paired_logits
from spectheory.measure.heads.load import HEADS
from spectheory.measure.job import Encoded, texts_of
from spectheory.measure.latency import seconds_of
from spectheory.measure.machine import wait_for
from spectheory.measure.rounds import Budget
from spectheory.prompts import Prompt


@dataclass(frozen=True)
class Sizes:
    """Numbers of a run; `target` and `draft` are sizes of the large pair, by the names of transformers' LlamaConfig."""

    prompts: int
    tokens: int
    """Of the texts that are compared with each other."""
    validated: int
    length: int
    temperatures: tuple[float, ...]
    """Prompts of the validation, tokens of the texts after them, temperatures."""
    target: dict[str, Any]
    draft: dict[str, Any]
    contexts: tuple[int, ...] = (128, 2048)
    widths: tuple[int, ...] = (1, 2, 4, 5, 8, 16, 32, 64)
    """Tokens in the caches, and tokens of a pass."""
    rounds: int = 2
    warm_up: int = 3
    """Rounds of measured passes."""
    budgets: tuple[float, ...] = (5.0, 20.0, 60.0)
    """Seconds for latencies and loop."""
    decoded: int = 32
    """Tokens of a text that the large pair samples and reads."""
    positions: int = 256
    """Positions of random logits whose columns are computed."""
    characters: int = 400
    shapes: tuple[Shape, ...] = (Chain(1), Chain(3), KAry((2, 2, 1)))
    """Of the validation's prompts, and its shapes."""


def llama(layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int, **more: Any) -> dict[str, Any]:
    """Sizes of a Llama by transformers' names."""
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": hidden // heads,
        "max_position_embeddings": 4096,
        "vocab_size": 128256,
        **more,
    }


TARGET_8B = llama(32, 4096, 14336, 32, 8)
DRAFT_HALF_B = llama(24, 1024, 4096, 16, 8, tie_word_embeddings=True)
QUICK = Sizes(
    prompts=4, tokens=48, validated=4, length=32, temperatures=(0.0, 0.7, 1.0), target=TARGET_8B, draft=DRAFT_HALF_B
)
FULL = replace(QUICK, prompts=12, tokens=128, validated=16, length=96, rounds=5, decoded=96)
TINY = Sizes(
    prompts=2,
    tokens=4,
    validated=2,
    characters=30,
    length=4,
    temperatures=(1.0,),
    shapes=(Chain(2), KAry((2, 1))),
    target=llama(2, 32, 64, 2, 2, vocab_size=64),
    draft=llama(1, 16, 32, 2, 1, vocab_size=64),
    contexts=(16, 40),
    widths=(1, 4),
    rounds=1,
    warm_up=1,
    budgets=(0.1,),
    decoded=6,
    positions=4,
)
SIZES = {"tiny": TINY, "quick": QUICK, "full": FULL}


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
    answer: dict[str, Any] = {
        "parameters": {one.name: int(one.network.num_parameters()) for one in (pair.target, pair.draft)},
        "data_sheet": data_sheet(device) or "unknown",
        "contexts": {},
    }
    for context in sizes.contexts:
        table = measure_latency(pair, context=context, tokens=sizes.widths, rounds=sizes.rounds, warm_up=sizes.warm_up)
        limit = roofline(device, dtype, sizes, context)
        answer["contexts"][context] = {
            who: {m: row(entry.as_dict(), limit and getattr(limit, f"{who}_pass")(m).best) for m, entry in of.items()}
            for who, of in (("target", table.target), ("draft", table.draft))
        }
    return answer


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
    target, draft = (ModelShape.from_config(LlamaConfig(**one).to_dict()) for one in (sizes.target, sizes.draft))
    return Roofline(target, draft, ACCELERATORS[sheet], context)


def latency_budget(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """What budgets of seconds give: rounds, why they ended, the widest interval, and the loop outside the passes."""
    pair, budgets = random_pair(device, dtype, sizes), {}
    for seconds in sizes.budgets:
        budget = Budget(seconds=seconds)
        table = measure_latency(pair, context=sizes.contexts[0], tokens=sizes.widths, budget=budget, loop=Sampling())
        ended = table.provenance[ROUNDS]
        assert table.loop is not None
        budgets[f"{seconds:g}"] = {
            "widest": max(ended["widths"].values()),
            "draft_step": table.ratio,
            **ended,
            "loop": asdict(table.loop),
        }
    return {"budgets": budgets}


DRAFTS = 4
"""Drafts per call."""
MASKED = {"mask_token_id": 1}
OWN: dict[str, dict[str, Any]] = {
    "eagle3": {},
    "peagle": MASKED,
    "mtp": {"num_nextn_predict_layers": 1},
    "dflash": MASKED,
    "dspark": MASKED | {"markov_rank": 64},
    "domino": MASKED | {"gru_hidden_dim": 64, "emb_dim": 64},
}
"""Fields that only one kind has; a block of DFlash and Domino is one longer than its drafts."""
MEASURED = ("eagle3", "mtp", "dflash", "dspark")
"""Kinds of heads that are timed."""


def configuration(kind: str, target: Any, drafts: int) -> dict[str, Any]:
    """The config.json of a head of one layer as wide as the target's, which drafts all of the target's tokens."""
    block = {**target.config.to_dict(), "num_hidden_layers": 1, "model_type": "llama" if kind == "eagle3" else "qwen3"}
    block["layer_types"] = None
    layers, read = target.config.num_hidden_layers, HEADS[kind].layer_field
    blocks = {
        "dflash": {"block_size": drafts + 1},
        "domino": {"block_size": drafts + 1},
        "dspark": {"block_size": drafts},
    }
    return {
        "speculators_model_type": kind,
        "speculators_version": "0.9.0",
        "speculators_config": {"proposal_methods": [{"speculative_tokens": drafts}]},
        "transformer_layer_config": block,
        **({read: [1, layers // 2, layers - 1]} if read else {}),
        **OWN[kind],
        **blocks.get(kind, {}),
    }


def with_random_head(pair: ModelPair, kind: str, drafts: int) -> ModelPair:
    """The pair with a random head of that kind in place of its draft, in the target's precision and on its device."""
    target, made = pair.target.network, HEADS[kind]
    config = made.configured(configuration(kind, target, drafts), kind)
    torch.manual_seed(1)
    with torch.device(pair.target.device):
        head = made(
            config,
            config.layers or (target.config.num_hidden_layers,),
            embeddings=target.get_input_embeddings().weight,
            outputs=target.get_output_embeddings().weight,
            final_norm=target.get_decoder().norm,
        )
    for parameter in head.parameters():
        parameter.data = parameter.data.to(target.dtype)
    draft: Model = replace(pair.target, name=kind, network=head.eval().requires_grad_(False), fingerprint=kind)
    return replace(pair, draft=draft)


def heads(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of a head's passes and of measuring it by start, beside those of the target and of its hidden states."""
    base, times = random_pair(device, dtype, sizes), {}
    for kind in MEASURED:
        pair = with_random_head(base, kind, DRAFTS)
        table = measure_latency(
            pair, context=sizes.contexts[0], tokens=sizes.widths, rounds=sizes.rounds, warm_up=sizes.warm_up
        )
        times[kind] = {
            "parameters": int(pair.draft.network.num_parameters()),
            **{who: {m: one.as_dict() for m, one in getattr(table, who).items()} for who in ("target", "draft")},
            "hidden_states": table.provenance["hidden_states"],
            "measuring": {depth: _measuring(pair, depth, sizes.decoded) for depth in (1, DRAFTS)},
        }
    return {"heads": times}


def _measuring(pair: ModelPair, depth: int, tokens: int) -> float:
    """Seconds of measuring a text of so many tokens to a depth, the second time."""
    ids = torch.randint(pair.vocabulary, (PROMPT + tokens,), generator=torch.Generator().manual_seed(0))
    for _ in range(2):
        wait_for(pair.target.device)
        began = time.perf_counter()
        teacher_forced(pair, ids[:PROMPT], ids[PROMPT:], Sampling(), depth=depth, race=False)
        wait_for(pair.target.device)
    return time.perf_counter() - began


SETTINGS = {
    "full vocabulary": Sampling(),
    "T 0.7, top-k 50, top-p 0.9": Sampling(0.7, top_k=50, top_p=0.9),
    "T 0.6, top-p 0.95": Sampling(0.6, top_p=0.95),
    "T 0": Sampling(0.0),
}
COMPARED, COPIED, REPEATS = 8, 1 << 28, 5
"""Positions whose columns are held against the CPU's; bytes of a copy; times that each work is timed."""
ESTIMATED = "distinct_rank"
"""A column that is an estimate: rounding changes it by more than rounding."""


def columns(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Milliseconds per position of every setting, its bandwidth, and the shares of a measurement."""
    where = torch.device(device)
    bandwidth = copy_bandwidth(where, COPIED if where.type != "cpu" else COPIED >> 5)
    rows = random_rows(sizes, dtype)
    settings = {
        f"{name}, {'with' if race else 'without'} the race": of_setting(rows, where, sampling, race, bandwidth)
        for name, sampling in SETTINGS.items()
        for race in (False, True)
    }
    return {
        "vocabulary": sizes.target["vocab_size"],
        "copied_per_second": bandwidth,
        "settings": settings,
        "shares": shares(device, dtype, sizes),
    }


def random_rows(sizes: Sizes, dtype: str) -> tuple[Tensor, Tensor, Tensor]:
    """Both models' logits, as spread as a language model's, and the target's most probable tokens, on the CPU."""
    made = torch.Generator().manual_seed(0)
    target, noise = torch.randn(2, sizes.positions, sizes.target["vocab_size"], generator=made)
    target, draft = ((3 * target + more).to(getattr(torch, dtype)) for more in (0.0, noise))
    return target, draft, target.argmax(dim=1)


def of_setting(
    rows: tuple[Tensor, Tensor, Tensor], where: torch.device, sampling: Sampling, race: bool, bandwidth: float
) -> dict[str, Any]:
    """What columns cost in one setting, in time and against a copy, and where they differ from the CPU's."""
    target, draft, tokens = (one.to(where) for one in rows)
    seconds = median_of(lambda: position_statistics(target, draft, tokens, sampling, race=race), where) / len(tokens)
    read = 2 * target.shape[1] * target.element_size() / seconds
    return {
        "differ": differences(rows, where, sampling, race),
        "ms_per_position": 1e3 * seconds,
        "read_per_second": read,
        "of_copy_bandwidth": read / bandwidth,
    }


def differences(
    rows: tuple[Tensor, Tensor, Tensor], where: torch.device, sampling: Sampling, race: bool
) -> dict[str, float]:
    """Columns that differ from the CPU's by 1e-5 or more, relative to the value or to 1: the largest difference."""
    here, there = (
        position_statistics(*(one[:COMPARED].to(place) for one in rows), sampling, race=race)
        for place in (torch.device("cpu"), where)
    )
    largest_of = {}
    for name in here.keys() - {ESTIMATED}:
        ours, theirs = (each[name].cpu().double() for each in (there, here))
        off = (ours - theirs).abs() / theirs.abs().clamp(min=1.0)
        largest = float(off.masked_fill(ours == theirs, 0.0).max())  # infinities are equal or not
        if not largest < 1e-5:
            largest_of[name] = largest
    return largest_of


def copy_bandwidth(where: torch.device, size: int) -> float:
    """Bytes read and written in a second by a copy on the device."""
    source = torch.zeros(size, dtype=torch.uint8, device=where)
    target = torch.empty_like(source)
    return 2 * size / median_of(lambda: target.copy_(source), where)


def median_of(work: Callable[[], object], where: torch.device) -> float:
    """Median seconds, after one run that warms up."""
    work()
    return statistics.median(seconds_of(work, where) for _ in range(REPEATS))


def shares(device: str, dtype: str, sizes: Sizes) -> dict[str, Any]:
    """Seconds of each stage of measuring one text of the large pair: sampling, reading it, its columns."""
    pair, where = random_pair(device, dtype, sizes), torch.device(device)
    ids = torch.randint(pair.vocabulary, (PROMPT,), generator=torch.Generator().manual_seed(0))
    settings = MeasureSettings(tokens=sizes.decoded, stop_at_end=False)
    batch = [Encoded(0, Prompt("0", "", ""), ids, None)]
    ((text,),) = texts_of(pair, batch, settings)
    sampling = seconds_of(lambda: texts_of(pair, batch, settings), where)
    read = median_of(lambda: list(_read(pair, ids, text)), where)
    rows = list(_read(pair, ids, text))
    cheap, dear = (
        median_of(lambda race=race: [position_statistics(*one[:3], Sampling(), race=race) for one in rows], where)
        for race in (False, True)
    )
    whole = sampling + read + dear
    stages = {"sampling": sampling, "reading": read, "cheap columns": cheap, "columns with the race": dear}
    return {"tokens": len(text), "seconds": stages, "of_all": {name: one / whole for name, one in stages.items()}}


def _read(pair: ModelPair, ids: Tensor, text: Tensor) -> Any:
    return paired_logits(pair, ids, text, chunk=256, name="")
