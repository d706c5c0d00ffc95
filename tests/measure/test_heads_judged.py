"""Heads of every kind against the package speculators, in an interpreter of its own (`make evidence` makes it)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from spectheory.measure.heads.base import HiddenStates
from spectheory.measure.heads.load import HEADS, load_head
from spectheory.measure.pair import ModelPair
from tests.measure.heads_made import DRAFTED, V, config_of, made_head, save_head

ROOT = Path(__file__).parents[2]
JUDGE = Path(os.environ.get("HEADS_PYTHON", ROOT / ".venv-heads" / "bin" / "python"))
DRIVER = Path(__file__).parent / "drivers" / "speculators_judge.py"
TOKENS, DEPTH = 24, 4
CLOSE = 1e-5
"""Of the spread of the logits: float32 rounds each to 6e-8 of its size, and some hundred are summed."""
LLAMA: dict[str, Any] = {"model_type": "llama"}
GQA: dict[str, Any] = {"num_key_value_heads": 2}
TWO: dict[str, Any] = GQA | {"num_hidden_layers": 2}
PRUNED: dict[str, Any] = {"draft_vocab_size": DRAFTED}
SLIDING: dict[str, Any] = TWO | {
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 5,
    "use_sliding_window": True,
    "max_window_layers": 0,
}
MOE: dict[str, Any] = GQA | {
    "num_hidden_layers": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "partial_rotary_factor": 0.5,
}
CASES = {
    "eagle3": config_of("eagle3", norm_before_residual=True),
    "eagle3 llama pruned": config_of("eagle3", LLAMA | TWO, norm_before_fc=True, **PRUNED),
    "eagle3 normed": config_of("eagle3", GQA, fc_norm=True, norm_output=True),
    "peagle": config_of("peagle", LLAMA | TWO),
    "peagle pruned": config_of("peagle", GQA, norm_before_fc=True, **PRUNED),
    "dflash": config_of("dflash", TWO, block_size=DEPTH + 1),
    "dflash sliding": config_of("dflash", SLIDING, block_size=DEPTH + 2, **PRUNED),
    "dflash from anchor": config_of("dflash", GQA, block_size=DEPTH, sample_from_anchor=True),
    "dspark": config_of("dspark", TWO, block_size=DEPTH, markov_rank=8),
    "dspark gated": config_of("dspark", GQA, block_size=DEPTH, markov_rank=8, markov_head_type="gated", **PRUNED),
    "dspark rnn": config_of("dspark", GQA, block_size=DEPTH, markov_rank=8, markov_head_type="rnn"),
    "dspark after anchor": config_of("dspark", GQA, block_size=DEPTH + 1, markov_rank=8, sample_from_anchor=False),
    "mtp": config_of("mtp", GQA),
    "mtp next": config_of("mtp", MOE | {"model_type": "qwen3_next"}),
    "mtp 3.5": config_of("mtp", GQA | {"model_type": "qwen3_5_text", "num_hidden_layers": 4}),
    "mtp 3.5 experts": config_of("mtp", MOE | {"model_type": "qwen3_5_moe_text"}),
}


def folder_of(name: str, target: Path, root: Path) -> Path:
    """A checkpoint as the package saves it: MTP and block heads have no embeddings, and no output matrix of all ids."""
    raw = CASES[name] | {"architectures": ["Head"]}
    kind = raw["speculators_model_type"]
    raw["speculators_config"]["verifier"]["name_or_path"] = str(target)
    if kind == "mtp":
        raw["speculators_config"]["proposal_methods"][0]["speculative_tokens"] = 1
    shared = ("embed_tokens.weight", "lm_head.weight") if name in HEADS or kind == "mtp" else ()
    if kind in ("dflash", "dspark"):
        shared = ("embed_tokens.weight", *(("lm_head.weight",) if raw["draft_vocab_size"] == V else ()))
    return save_head(root / name.replace(" ", "-"), made_head(raw), raw, without=shared)


def depth_of(head: Any) -> int:
    """Depths that the package drafts as engines do: beyond the first, its MTP trainer attends to keys of that depth."""
    return 1 if head.kind == "mtp" else head.deepest or DEPTH


@pytest.mark.evidence
def test_the_package_gives_the_same_logits(
    tiny_pair: ModelPair, tiny_folders: tuple[Path, Path], tmp_path: Path
) -> None:
    assert JUDGE.is_file(), f"{JUDGE} is not there: run make evidence, or set HEADS_PYTHON"
    others = {"eagle", "domino"}  # which the package does not have
    assert {raw["speculators_model_type"] for raw in CASES.values()} == set(HEADS) - others
    text, target = torch.randint(0, V, (TOKENS,), generator=torch.Generator().manual_seed(5)), tiny_pair.target
    heads, jobs = {}, []
    for name in CASES:
        folder = folder_of(name, tiny_folders[0], tmp_path)
        head: Any = load_head(folder, target).network
        with HiddenStates(target.network, head.layers) as states, torch.no_grad():
            target.network(text[None])
            hidden = states.take()[0]
        heads[name] = head, hidden
        read = head.final_norm(hidden) if head.kind == "mtp" else hidden
        np.savez(folder / "input.npz", hidden=read.detach().numpy(), text=text.numpy())
        files = {part: str(folder / f"{part}.npz") for part in ("input", "output")}
        jobs.append({"folder": str(folder), "depth": depth_of(head), **files})
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [JUDGE, DRIVER, tmp_path / "jobs.json"], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    for (name, (head, hidden)), job in zip(heads.items(), jobs, strict=True):
        theirs = np.load(str(job["output"]))
        starts, judged = torch.from_numpy(theirs["starts"]), torch.from_numpy(theirs["logits"])
        depth = judged.shape[1]
        reading = head.reading()
        reading.read(hidden[:-1], text[1:])
        drafts = text[starts[:, None] + 2 + torch.arange(depth - 1)]
        ours = torch.stack(list(reading.depths(starts, drafts, depth)), dim=1)
        if head.t2d is not None:
            assert not ours[..., ~head.t2d].isfinite().any(), name
            ours = ours[..., head.t2d]
        assert len(starts) >= TOKENS - DEPTH - 4, name
        assert depth == depth_of(head), name
        assert float((ours - judged).abs().max()) < CLOSE * float(judged.std()), name
        assert float((ours[1:] - judged[:-1]).abs().max()) > 0.1, name  # control: the next start differs
