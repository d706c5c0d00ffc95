"""What a validation decodes as call logs, one a setting: ``spectheory judge`` reads them like those of any engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import transformers

import spectheory
from spectheory.drafting import Chain, Grown, Shape
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.runs import Round, Run
from spectheory.measure.validation.settings import Setting
from spectheory.prompts import Prompt
from spectheory.trace.calls import CallLog, Request

LONGEST_NAME = 100
"""Characters of a file's name; a longer one, as of a large tree, ends in its hash."""


def write_logs(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: Sequence[Setting],
    how: MeasureSettings,
    rounds: Sequence[Round],
    folder: Path,
) -> None:
    """One file for each setting in `folder`."""
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template).tolist() for prompt in prompts]
    for setting in settings:
        texts = zip(prompts, ids, rounds, strict=True)
        requests = [_request(pair, prompt.id, tuple(of), one[setting.name]) for prompt, of, one in texts]
        _log(pair, setting, how, tuple(requests)).write(folder / f"{file_name(setting)}.jsonl")


def file_name(setting: Setting) -> str:
    """A name without characters that a file system refuses.

    Examples
    --------
    >>> file_name(Setting("token", Chain(3)))
    'token-chain-k=3'
    """
    plain = re.sub(r"[^\w.=]+", "-", setting.name)
    return plain if len(plain) <= LONGEST_NAME else f"{plain[:LONGEST_NAME]}-{setting.key:x}"


def _request(pair: ModelPair, name: str, prompt: tuple[int, ...], run: Run) -> Request:
    """One text. What was drafted is left out: a rejected draft may have ended the drafting, so it is not given."""
    return Request(
        name,
        prompt,
        run.output,
        ended=run.output[-1] in pair.end_of_text,
        accepted=tuple(call.accepted for call in run.calls),
        calls=run.count,
        seconds=run.seconds,
    )


def _log(pair: ModelPair, setting: Setting, how: MeasureSettings, requests: tuple[Request, ...]) -> CallLog:
    sampling, shape = how.sampling, setting.shape
    assert shape is not None
    engine = ("transformers", transformers.__version__) if setting.judged else ("spectheory", spectheory.__version__)
    return CallLog(
        requests,
        *engine,
        k=shape.depth,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        prefill_emits_token=False,
        counts_past_end=False,
        provenance={
            **pair.describe(),
            "rule": setting.path_rule.name,
            **({} if isinstance(shape, Chain) else {"shape": _written(shape)}),
            **({"stop": str(setting.stop)} if setting.stop else {}),
            "dtype": pair.target.dtype,
            "tokens": how.tokens,
            "seed": how.seed,
            "hardware": hardware(),
            "versions": versions(),
        },
    )


def _written(shape: Shape) -> str:
    """A shape as ``--shape`` reads it: by its size where it grows, else by the paths to its nodes."""
    if isinstance(shape, Grown):
        return shape.written
    return ",".join("-".join(map(str, path)) for path in shape.tree().paths)
