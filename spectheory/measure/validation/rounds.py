"""Decode every prompt with every setting, interleaved; finished rounds are kept, and a rerun resumes after them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from spectheory.errors import ModelError, TextError, TraceError
from spectheory.measure.job import fingerprint_of_run
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.run import Progress
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.runs import Round, Run, run_once, run_round
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.prompts import Prompt
from spectheory.reports.validation_terms import JUDGE
from spectheory.store import Contents, Store

WARM_UP = 8
"""Tokens of an unmeasured run of each setting before the timed runs."""
LEAST_PROMPTS = 2
"""Fewer prompts give no interval."""
ROUNDS = Contents(
    "rounds of a validation",
    3,
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
        rounds = {
            row.content["prompt"]: {name: Run.from_dict(run) for name, run in row.content["runs"].items()}
            for row in store.found
        }
        resumed = len(rounds)
        report(Progress(resumed, len(prompts), resumed))
        if resumed < len(prompts):
            short = dataclasses.replace(how, tokens=min(how.tokens, WARM_UP))
            for setting in every:
                run_once(pair, ids[0], 0, setting, short)
        for number, prompt in enumerate(prompts):
            if number not in rounds:
                rounds[number] = run_round(pair, ids[number], number, every, how, name=prompt.id)
                store.add({"prompt": number, "runs": {name: run.as_dict() for name, run in rounds[number].items()}})
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
