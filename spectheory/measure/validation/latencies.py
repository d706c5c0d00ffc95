"""The latency tables a validation predicts with: measured once, kept, and refused if they belong to another run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.errors import SettingError, TraceError
from spectheory.measure.latency import measure_latency
from spectheory.measure.loop_time import differences, with_loop
from spectheory.measure.pair import ModelPair
from spectheory.measure.run import Progress
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.tokens import encode_prompt
from spectheory.prompts import Prompt


def kept_latencies(
    pair: ModelPair,
    context: int,
    longest: int,
    path: Path,
    *,
    sampling: Sampling,
    on_progress: Callable[[Progress], None],
) -> LatencyTable:
    """The table at `path`, measured if there is none: passes up to `longest` tokens, the loop with this sampling."""
    if not path.exists():
        sizes = [2**i for i in range(longest.bit_length()) if 2**i < longest]
        table = measure_latency(
            pair,
            context=context,
            tokens=(*sizes, longest),
            on_progress=lambda done, total: on_progress(Progress(done, total, 0)),
        )
        table = with_loop(pair, table, sampling=sampling)
        table.write(path)
        return table
    table = LatencyTable.read(path)
    other = differences(table, pair, context=context, longest=longest, sampling=sampling)
    if other:
        raise TraceError(
            f"{path} is a latency table of another run ({', '.join(other)})",
            limit="models, machine, threads, context, sampling and shapes must be the same",
            remedy="choose another --out or remove the file",
        )
    return table


def context_of(pair: ModelPair, prompts: Sequence[Prompt], how: MeasureSettings, longest: int) -> int:
    """Tokens in the cache halfway through a text of the mean prompt, reduced so that a call fits the window."""
    lengths = [len(encode_prompt(pair.tokenizer, each, chat_template=how.chat_template)) for each in prompts]
    halfway = round(sum(lengths) / len(lengths)) + how.tokens // 2
    if pair.window is None:
        return halfway
    room = pair.window - longest
    if room < 1:
        raise SettingError(
            f"a call verifies {longest} tokens",
            limit=f"the models' window is {pair.window}, with at least one token before",
            remedy=f"use shapes of {pair.window - 2} nodes at most",
        )
    return min(halfway, room)
