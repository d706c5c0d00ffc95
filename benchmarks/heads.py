"""Measuring a draft head at every start and depth, against its first drafts alone and against one call at a time.

One thread, float32, a Llama of 4 layers with V = 32,000 and heads of one layer, all with random weights; seconds of CPU
time. *Ours* measures 48 starts to depth 5. The *limit* is 5 times a measurement of the first drafts alone, which is
what a measurement by position takes; the *peer* drafts from one start after the other, pairs read one by one. That both
give the same numbers is asserted first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from _gpu_pairs import MEASURED, Words, random_model, with_random_head
from _rows import Row, median_seconds, publish

from spectheory.distributions import Sampling
from spectheory.measure import ModelPair, position_statistics, teacher_forced
from spectheory.measure.heads.base import HiddenStates

SIZES = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 4}
SIZES |= {"num_key_value_heads": 2, "vocab_size": 32_000, "max_position_embeddings": 512, "tie_word_embeddings": True}
PROMPT, STARTS, DEPTH, CHUNK, REPEATS = 64, 48, 5, 24, 3
LARGE = 151_936
SAME = "log q of one call at a time to 2e-3"
CLOSE = 2e-3
"""Relative and absolute, of log-probabilities in float32: attention adds in other orders."""


def one_at_a_time(pair: ModelPair, prompt: torch.Tensor, output: torch.Tensor, *, race: bool) -> np.ndarray:
    """Log q ``[starts, depth]`` from one start after the other, with all columns of each call."""
    head, ids = pair.draft.network, torch.cat([prompt, output])
    with torch.inference_mode(), HiddenStates(pair.target.network, head.layers) as states:
        logits = pair.target.network(ids[None], use_cache=False).logits[0, len(prompt) - 1 : -1]
        hidden = states.take()[0]
    reading = head.reading()
    reading.read(hidden[: len(prompt) - 2], ids[1 : len(prompt) - 1])
    log_draft = np.full((len(output), DEPTH), -np.inf)
    for start in range(len(output)):
        last = len(prompt) + start - 2
        reading.read(hidden[last : last + 1], ids[last + 1 : last + 2])
        text = torch.nn.functional.pad(output[start : start + DEPTH - 1], (0, max(0, start + DEPTH - 1 - len(output))))
        drafts = torch.cat(list(reading.depths(torch.tensor([last]), text[None], DEPTH)))
        rows = slice(start, min(start + DEPTH, len(output)))
        d = rows.stop - start
        columns = position_statistics(logits[rows], drafts[:d], output[rows], Sampling(), race=race, by_start=True)
        log_draft[start, :d] = columns["log_draft"].numpy()
    return log_draft


def rows() -> list[Row]:
    """A row for each kind of head, without and with the columns of the race."""
    model = random_model("target", SIZES, "cpu", "float32")
    base = ModelPair(model, model, Words(model.outputs), model.outputs)
    torch.manual_seed(0)
    prompt, output = (torch.randint(model.outputs, (n,)) for n in (PROMPT, STARTS))
    table: list[Row] = []
    for kind in MEASURED:
        pair = with_random_head(base, kind, DEPTH)
        for race in (False, True):

            def ours(depth: int, pair: ModelPair = pair, race: bool = race) -> dict[str, np.ndarray]:
                return teacher_forced(pair, prompt, output, Sampling(), chunk=CHUNK, depth=depth, race=race)

            np.testing.assert_allclose(
                ours(DEPTH)["start_log_draft"], one_at_a_time(pair, prompt, output, race=race), rtol=CLOSE, atol=CLOSE
            )
            seconds, first = (median_seconds(lambda ours=ours, d=d: ours(d), REPEATS) for d in (DEPTH, 1))
            peer = median_seconds(lambda pair=pair, race=race: one_at_a_time(pair, prompt, output, race=race), REPEATS)
            name, passes = f"{kind}, race" if race else kind, f"{DEPTH} measurements of first drafts"
            table.append(Row(name, "s", seconds, SAME, peer, "one call at a time", DEPTH * first, passes))
    return table


def held(peak: str) -> float:
    """Megabytes of this process now (VmRSS), or at most (VmHWM)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith(peak))
    return int(line.split()[1]) / 1024


def at_a_real_vocabulary(kind: str) -> dict[str, float]:
    """CPU seconds of measuring 96 starts in bfloat16, and megabytes above both models."""
    model = random_model("target", SIZES | {"vocab_size": LARGE}, "cpu", "bfloat16")
    pair = with_random_head(ModelPair(model, model, Words(model.outputs), model.outputs), kind, DEPTH)
    ids = torch.randint(model.outputs, (PROMPT + 2 * STARTS,))
    prompt, output = ids[:PROMPT], ids[PROMPT:]
    teacher_forced(pair, prompt, output[:2], Sampling(), chunk=CHUNK, depth=DEPTH)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    models, began = held("VmRSS"), time.process_time()
    teacher_forced(pair, prompt, output, Sampling(), chunk=CHUNK, depth=DEPTH)
    return {"seconds": time.process_time() - began, "above": held("VmHWM") - models}


def large_rows() -> list[Row]:
    """A row for each kind of head, each of a process of its own."""
    table, part = [], CHUNK * LARGE * 4 * (1 + DEPTH) / 2**20
    for kind in MEASURED:
        done = subprocess.run([sys.executable, __file__, kind], check=True, capture_output=True, text=True)
        told = json.loads(done.stdout)
        limit = f"float32 logits of {CHUNK} starts, of the target and of {DEPTH} depths; {told['seconds']:.1f} s of CPU"
        name = f"{kind}, bfloat16, V = {LARGE:,}"
        table.append(Row(name, "MB above the models", told["above"], "columns as above", limit=part, limit_is=limit))
    return table


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:]:
        print(json.dumps(at_a_real_vocabulary(sys.argv[1])))
    else:
        title = f"A draft head measured at {STARTS} starts to depth {DEPTH}, V = {SIZES['vocab_size']:,}"
        publish(__file__, title, [*rows(), *large_rows()])
