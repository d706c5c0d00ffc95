"""Makes samples/specdecode_bench.jsonl: what three drafts of the built-in target accept at every start of its text.

    python -m tests.trace.recorded_sample

The drafts are the built-in draft model, prompt lookup and suffix decoding, of at most 8 tokens, at temperature 0.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.measure.copied import lookup_columns
from spectheory.ngrams import Request, replay
from spectheory.ngrams.base import NOTHING
from spectheory.ngrams.suffix import Suffix
from spectheory.trace.samples import SAMPLES

SAMPLE = SAMPLES / "specdecode_bench.jsonl"
REQUESTS, TOKENS, DRAFTED = 6, 40, 8


def copied(prompts: list[Any], outputs: list[Any]) -> dict[str, list[list[int]]]:
    """``acc_len`` of both copied drafts for each request, from token ids alone."""
    texts = list(zip(prompts, outputs, strict=True))
    served = np.concatenate([[*output, NOTHING] for output in outputs])
    cuts = np.cumsum([len(output) for output in outputs])[:-1]
    begins = [0, *(cuts + np.arange(1, len(texts)))]
    requests = [
        (Request(np.array(prompt), served=served[:begin]), np.array(output))
        for (prompt, output), begin in zip(texts, begins, strict=True)
    ]
    by_suffix = replay(Suffix(max=64, depth=64), requests)[:, 0]
    lengths = {
        "acc_ngram": [lookup_columns(*text)["lookup_match"] for text in texts],
        "acc_suffix": np.split(by_suffix, cuts),
    }
    return {name: [(np.minimum(each, DRAFTED) + 1).tolist() for each in lists] for name, lists in lengths.items()}


def requests() -> Iterator[dict[str, Any]]:
    """The lines, measured on the built-in pair."""
    from spectheory.distributions import Sampling
    from spectheory.measure import MeasureSettings, load_pair, measure
    from spectheory.measure.tokens import encode_prompt
    from spectheory.pairs import PROMPTS, resolve
    from spectheory.prompts import read_prompts
    from spectheory.verification.copied import _run_of

    pair = load_pair(target=resolve("builtin:target"), draft=resolve("builtin:draft"))
    prompts = read_prompts(PROMPTS)[:REQUESTS]
    with tempfile.TemporaryDirectory() as folder:
        settings = MeasureSettings(Sampling(0.0), tokens=TOKENS)
        trace = measure(pair, prompts, settings, Path(folder) / "trace.parquet")
    ids = [encode_prompt(pair.tokenizer, prompt).tolist() for prompt in prompts]
    cuts = np.cumsum(trace.lengths)[:-1]
    outputs = [each.tolist() for each in np.split(trace.columns["token"], cuts)]
    argmax = [_run_of(each == 1) for each in np.split(trace.columns["draft_rank"], cuts)]
    lists = {"acc_draft": [(np.minimum(each, DRAFTED) + 1).tolist() for each in argmax], **copied(ids, outputs)}
    for number, prompt in enumerate(prompts):
        accepted = {name: {"acc_len": each[number]} for name, each in lists.items()}
        text = {"prompt_token_ids": ids[number], "generated_token_ids": outputs[number]}
        yield {"id": prompt.id, **text, **accepted}


if __name__ == "__main__":
    SAMPLE.write_text("".join(f"{json.dumps(each)}\n" for each in requests()), encoding="utf-8")
