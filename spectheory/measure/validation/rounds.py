"""Decode every prompt with every setting, interleaved; what is finished is kept, and a rerun goes on from there."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from spectheory.errors import ModelError, TextError
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.run import MeasureSettings, Progress, fingerprint_of_run
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.runs import Round, run_once, run_round
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.measure.validation.store import RoundStore
from spectheory.prompts import Prompt
from spectheory.reports.validation_terms import JUDGE

WARM_UP = 8
"""Tokens of an unmeasured run of each setting before the timed ones."""
LEAST_PROMPTS = 2
"""Fewer give no interval over prompts."""


def decoded_rounds(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: Sequence[Setting],
    how: MeasureSettings,
    path: Path,
    *,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[Round]:
    """One round per prompt: plain decoding and every setting, side by side; a round is the unit that is kept.

    A machine that slows down slows all settings of a round alike. Which tokens come out depends on the seed, setting
    and prompt alone, so that a run taken up again has the texts and counts of an unbroken one.

    Parameters
    ----------
    pair : ModelPair
        Target and draft.
    prompts : sequence of Prompt
        What is continued.
    settings : sequence of Setting
        What is validated; plain decoding is added.
    how : MeasureSettings
        Temperature and filters, tokens of a text, seed.
    path : Path
        Where finished rounds are kept.
    on_progress : callable, optional
        Called at the start and after each round.

    Raises
    ------
    TextError
        If there are fewer than two prompts, or one does not fit the window with its output.
    ModelError
        If the judge is asked for and the models are on different devices.
    TraceError, OutputError
        If the file is another run's, or cannot be written.
    """
    report = on_progress or (lambda _: None)
    every = with_plain(settings)
    store = RoundStore(path, checked_fingerprint(pair, prompts, every, how))
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template) for prompt in prompts]
    rounds = store.finished(len(prompts), [setting.name for setting in every])
    resumed = len(rounds)
    report(Progress(resumed, len(prompts), resumed))
    if resumed < len(prompts):
        short = dataclasses.replace(how, tokens=min(how.tokens, WARM_UP))
        for setting in every:
            run_once(pair, ids[0], 0, setting, short)
    for number, prompt in enumerate(prompts):
        if number not in rounds:
            rounds[number] = run_round(pair, ids[number], number, every, how, name=prompt.id)
            store.add(number, rounds[number])
            report(Progress(len(rounds), len(prompts), resumed))
    return [rounds[number] for number in range(len(prompts))]


def with_plain(settings: Sequence[Setting]) -> list[Setting]:
    """The settings, and before them the plain decoders that they are compared with."""
    return [*dict.fromkeys([PLAINLY, *(setting.baseline for setting in settings)]), *settings]


def checked_fingerprint(
    pair: ModelPair, prompts: Sequence[Prompt], settings: Sequence[Setting], how: MeasureSettings
) -> str:
    """Hash of all that decides rounds and their times; what cannot be run is refused."""
    if len(prompts) < LEAST_PROMPTS:
        raise TextError(
            f"there is {len(prompts)} prompt", limit="intervals are over prompts, two at least", remedy="add prompts"
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
