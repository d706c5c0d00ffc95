"""Write the trace that ships with the package: that of docs/figures/pair without the columns of trees and races.

What better drafts need is added: the pair reads the trace's own texts again.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from spectheory.distributions import Sampling
from spectheory.measure.forward import teacher_forced
from spectheory.measure.tokens import encode_prompt
from spectheory.pairs import PROMPTS, PairSource
from spectheory.prompts import read_prompts
from spectheory.trace import Trace
from spectheory.trace.samples import PAIR

WHOLE = Path(__file__).parents[2] / "docs" / "figures" / "pair" / "distilled"
LEFT_OUT = ("race_rank", "rejection_rank", "distinct_rank", "uno_loss", "race_acceptance", "race_g")
"""Two thirds of the file, for rules that no serving engine runs."""


def renyi(trace: Trace) -> NDArray[np.float32]:
    """The divergences ``[N, orders]`` along the texts, in single precision."""
    pair, prompts = PairSource("builtin:target", "builtin:distilled").load(), read_prompts(PROMPTS)
    asked = {prompt.id: encode_prompt(pair.tokenizer, prompt, chat_template=False) for prompt in prompts}
    texts = np.split(trace.columns["token"], np.cumsum(trace.lengths)[:-1])
    read = [
        teacher_forced(pair, asked[info.prompt], torch.tensor(text), Sampling(), race=False, better_drafts=True)
        for info, text in zip(trace.texts, texts, strict=True)
    ]
    return np.concatenate([columns["renyi"] for columns in read]).astype(np.float32)


def main() -> None:
    """Write the trace, and its latencies beside it."""
    trace = Trace.read(WHOLE).in_memory()
    columns = {name: column for name, column in trace.columns.items() if name not in LEFT_OUT}
    settings = {**trace.provenance["settings"], "better_drafts": True}
    provenance = {**trace.provenance, "settings": settings}
    Trace({**columns, "renyi": renyi(trace)}, trace.texts, provenance).write(PAIR / "trace.parquet")
    shutil.copyfile(WHOLE / "latency.json", PAIR / "latency.json")


if __name__ == "__main__":
    main()
