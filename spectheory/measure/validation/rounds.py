"""Every prompt decoded with every setting, interleaved; finished rounds are kept, and written as call logs."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import transformers

import spectheory
from spectheory.drafting import Chain, Grown
from spectheory.errors import ModelError, TextError, TraceError
from spectheory.measure.job import MeasureSettings, fingerprint_of_run
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.run import Progress
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.runs import Round, Run, run_once, run_round
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.prompts import Prompt
from spectheory.reports.validation_terms import JUDGE
from spectheory.store import Contents, Store
from spectheory.trace.calls import CallLog, Request

WARM_UP = 8
"""Tokens of an unmeasured run of each setting before the timed runs."""
LEAST_PROMPTS = 2
"""Fewer prompts give no interval."""
ROUNDS = Contents(
    "rounds of a validation",
    4,
    "rounds of a validation",
    TraceError,
    "choose another --out or remove the file",
    "the rounds of another validation",
    "models, prompts, settings and machine must be the same",
)


def decoded_rounds(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: Sequence[Setting],
    how: MeasureSettings,
    path: Path,
    *,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[Round]:
    """One round per prompt, kept at `path`: plain decoding and every setting, so that a slow phase affects all equally.

    The tokens depend only on seed, setting and prompt, so a resumed run has the texts and counts of an uninterrupted
    one.
    """
    report = on_progress or (lambda _: None)
    every = with_plain(settings)
    fingerprint = checked_fingerprint(pair, prompts, every, how)
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template) for prompt in prompts]
    with Store(path, ROUNDS, {"fingerprint": fingerprint}) as store:
        rounds = {row.content["prompt"]: msgspec.convert(row.content["runs"], dict[str, Run]) for row in store.found}
        resumed = len(rounds)
        report(Progress(resumed, len(prompts), resumed))
        if resumed < len(prompts):
            short = dataclasses.replace(how, tokens=min(how.tokens, WARM_UP))
            for setting in every:
                run_once(pair, ids[0], 0, setting, short)
        for number, prompt in enumerate(prompts):
            if number not in rounds:
                rounds[number] = run_round(pair, ids[number], number, every, how, name=prompt.id)
                store.add({"prompt": number, "runs": msgspec.to_builtins(rounds[number])})
                report(Progress(len(rounds), len(prompts), resumed))
    return [rounds[number] for number in range(len(prompts))]


def with_plain(settings: Sequence[Setting]) -> list[Setting]:
    """The plain decoders that the settings are compared with, then the settings."""
    return [*dict.fromkeys([PLAINLY, *(setting.baseline for setting in settings)]), *settings]


def checked_fingerprint(
    pair: ModelPair, prompts: Sequence[Prompt], settings: Sequence[Setting], how: MeasureSettings
) -> str:
    """Hash of everything that decides rounds and their times; what cannot run is refused."""
    if len(prompts) < LEAST_PROMPTS:
        raise TextError(
            f"there is {len(prompts)} prompt", limit="intervals over prompts need two at least", remedy="add prompts"
        )
    names = [prompt.id for prompt in prompts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TextError(f"two prompts are named {twice!r}", limit="ids must differ", remedy="rename one of them")
    devices = pair.target.device, pair.draft.device
    if devices[0] != devices[1] and any(setting.judged for setting in settings):
        raise ModelError(
            f"the target is on {devices[0]} and the draft on {devices[1]}",
            limit=f"{JUDGE} generation needs both on one device",
            remedy="use --device, or name the rules without it",
        )
    content = [
        fingerprint_of_run(pair, prompts, how),
        [setting.name for setting in settings],
        [str(device) for device in devices],
        hardware(),
        versions(),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
        # What was drafted is left out: a rejected draft may have ended the drafting, so it is not given.
        requests = [
            Request(
                prompt.id,
                tuple(of),
                run.output,
                ended=run.output[-1] in pair.end_of_text,
                accepted=tuple(call.accepted for call in run.calls),
                calls=run.count,
                seconds=run.seconds,
            )
            for prompt, of, run in ((prompt, of, one[setting.name]) for prompt, of, one in texts)
        ]
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


def _log(pair: ModelPair, setting: Setting, how: MeasureSettings, requests: tuple[Request, ...]) -> CallLog:
    sampling, shape = how.sampling, setting.shape
    assert shape is not None
    # As --shape reads it: by its size where it grows, else by the paths to its nodes.
    paths = () if isinstance(shape, Grown) else shape.tree().paths
    written = shape.written if isinstance(shape, Grown) else ",".join("-".join(map(str, path)) for path in paths)
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
            **({} if isinstance(shape, Chain) else {"shape": written}),
            **({"stop": str(setting.stop)} if setting.stop else {}),
            "dtype": pair.target.dtype,
            "tokens": how.tokens,
            "seed": how.seed,
            "hardware": hardware(),
            "versions": versions(),
        },
    )
