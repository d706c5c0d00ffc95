"""Prompts decoded with every setting: what was counted, timed and expected of each text; finished rounds are kept.

A round is one prompt decoded with every setting, one after the other, so that a slow phase affects all equally.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
import transformers
from torch import Tensor

import spectheory
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape
from spectheory.errors import LogitsError, ModelError, TextError, TraceError
from spectheory.judging.comparison import READINGS, CallLaw, Comparison, compare_calls
from spectheory.measure.assisted import generate
from spectheory.measure.columns.noise import text_key
from spectheory.measure.copied import suffix_columns
from spectheory.measure.decoders import Call, decode
from spectheory.measure.forward import teacher_forced
from spectheory.measure.grown import grown_columns
from spectheory.measure.job import MeasureSettings, fingerprint_of_run
from spectheory.measure.machine import hardware, versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.run import Progress
from spectheory.measure.tokens import encode_prompt
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.prediction.shape_calls import survival_of
from spectheory.prediction.stopped import Drafted, lengths_of_calls
from spectheory.prompts import Prompt
from spectheory.reports.validation_terms import JUDGE
from spectheory.store import Contents, Store
from spectheory.trace import TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.verification import PathRule, RankRule, SuffixMatch
from spectheory.verification.by_start import by_position, deepest
from spectheory.verification.suffix import OWN_TEXT

CONTROLS = ("per_position", "fixed")
"""Wrong readings that the calls must refute."""
_EXPENSIVE = ("race_rank", "distinct_rank")
"""Columns that are computed only where they are needed."""


@dataclass(frozen=True)
class ExpectedCalls(CallLaw):
    """Calls of one text, given the text, with what wrong readings expect of it.

    `per_position` is the control of a draft head: what its first draft at each position would give if the pmfs did not
    depend on the start (§10). `fixed` is the control of a stopping rule: the chain that always drafts k (§11).
    `drafted` are the drafts of all calls of a stopped chain: certain lower bound, the two estimates of
    :mod:`~spectheory.prediction.drafted_lengths`, certain upper bound.
    """

    per_position: ExpectedCalls | None = None
    fixed: ExpectedCalls | None = None
    drafted: tuple[float, float, float, float] | None = None


def expected_calls(
    pair: ModelPair,
    prompt_ids: Tensor,
    text: Tensor,
    sampling: Sampling,
    rule: PathRule,
    shape: Shape,
    *,
    key: int = 0,
    chunk: int = 256,
    name: str = "",
    tokens: int | None = None,
) -> ExpectedCalls:
    """Expected calls of a text from the decoder under test; one teacher-forced pass, or several for estimated laws.

    A call drafts nothing at or past the last of `tokens` (those of the text), nor after the text's end.
    """
    expensive = isinstance(rule, RankRule) and not shape.is_chain and rule.recorded_in in _EXPENSIVE
    estimated = isinstance(rule, RankRule) and rule.estimated and shape.max_rank > 1
    deep = shape.depth if pair.draft.head is not None and rule.uses_draft else None

    def read(number: int) -> dict[str, Any]:
        return teacher_forced(
            pair,
            prompt_ids,
            text,
            sampling,
            chunk=chunk,
            race=expensive,
            sampled=True,
            key=text_key(key, number),
            name=name,
            depth=deep,
        )

    readings, controls, fixed = [], [], []
    for number in range(READINGS if estimated else 1):
        if isinstance(shape, Grown):
            columns = grown_columns(pair, prompt_ids, text, shape, chunk=chunk, name=name)
        else:
            columns = read(number)
        if isinstance(rule, SuffixMatch):
            columns |= suffix_columns([(prompt_ids.cpu(), text.cpu())], OWN_TEXT, pair.end_of_text)
        readings.append(survival_of(rule, shape, columns)[0])
        if rule.uses_draft and shape.depth > 1 and deepest(columns) is not None:
            controls.append(survival_of(rule, shape, by_position(columns))[0])
        if shape.stop:
            fixed.append(survival_of(rule, Chain(shape.depth), columns)[0])
    expected = replace(ExpectedCalls.of(readings), per_position=ExpectedCalls.of(controls) if controls else None)
    if not shape.stop:
        return expected
    tokens = tokens or len(text)
    info = TextInfo("", len(text), ended=len(text) < tokens)  # a text with fewer tokens ended by itself
    trace = Trace(dict(columns), (info,), {"settings": {"tokens": tokens}})
    _, drafts = lengths_of_calls(Drafted(trace, rule, shape.depth), shape.stop, columns)
    low, going, stopping, high = (float(x.sum()) for x in (drafts.low, drafts.going, drafts.stopping, drafts.high))
    return replace(expected, fixed=ExpectedCalls.of(fixed), drafted=(low, going, stopping, high))


@dataclass(frozen=True)
class Run:
    """One text: its tokens (end of text included), target calls and seconds.

    Seconds leave out reading the prompt, except for transformers, which records no calls either. `expected` is what the
    path theorem says of this text; `remarks` say what made decoding slower than necessary. `drafted` are the drafts of
    all calls.
    """

    output: tuple[int, ...]
    count: int
    seconds: float
    calls: tuple[Call, ...] = ()
    expected: ExpectedCalls | None = None
    remarks: tuple[str, ...] = ()
    drafted: int = 0


def compare_runs(runs: Sequence[Run], control: str = "") -> Comparison:
    """Counted calls of some runs against those expected; of the wrong reading `control` those that it expects."""
    known = [
        (run.count, getattr(run.expected, control) if control else run.expected)
        for run in runs
        if run.expected is not None
    ]
    laws = [(count, law) for count, law in known if law is not None]
    return compare_calls(sum(count for count, _ in laws), [law for _, law in laws])


_FINEST = 1 << 20
"""Temperatures that differ by less than its inverse get the same randomness, which is harmless."""
Round = dict[str, Run]
"""A prompt's runs by the name of the setting."""


def _run_round(
    pair: ModelPair, prompt_ids: Tensor, number: int, settings: list[Setting], how: MeasureSettings, *, name: str
) -> Round:
    """Decode one prompt with every setting, then read the texts with both models."""
    runs = {setting: _run_once(pair, prompt_ids, number, setting, how) for setting in settings}
    for setting, run in runs.items():
        if setting.shape is not None:
            expected = expected_calls(
                pair,
                prompt_ids,
                torch.tensor(run.output),
                how.sampling,
                setting.path_rule,
                setting.shape,
                key=text_key(how.seed, number),
                chunk=how.chunk,
                name=f"{name} by {setting.name}",
                tokens=how.tokens,
            )
            runs[setting] = replace(run, expected=expected)
    return {setting.name: run for setting, run in runs.items()}


def _run_once(pair: ModelPair, prompt_ids: Tensor, number: int, setting: Setting, how: MeasureSettings) -> Run:
    """Decode one prompt; its randomness depends only on seed, setting, temperature and the prompt's number."""
    place = setting.key >> 32, setting.key & 0xFFFFFFFF, int(how.sampling.temperature * _FINEST)
    seed = text_key(how.seed, number, *place)
    try:
        if setting.judged:
            k, random = setting.shape.depth if setting.shape else None, np.random.SeedSequence(seed)
            made = generate(
                *(pair, prompt_ids, how.sampling, k, how.tokens, random),
                own_filters=setting.own_filters,
                stop=setting.stop,
            )
            return Run(tuple(made.output_ids.tolist()), made.calls, made.seconds, drafted=made.drafted)
        (text,) = decode(
            pair, [prompt_ids], setting.method, tokens=how.tokens, sampling=how.sampling, seed=seed, chunk=how.chunk
        )
    except LogitsError as error:
        what = f"prompt {number + 1} by {setting.name}: {error.what}"
        raise TextError(what, limit=error.limit, remedy=error.remedy) from error
    seconds = sum(call.seconds for call in text.calls)
    drafted = sum(call.drafted for call in text.calls)
    return Run(tuple(text.output_ids.tolist()), len(text.calls), seconds, text.calls, None, text.remarks, drafted)


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
        rounds = {row.content["prompt"]: msgspec.convert(row.content["runs"], dict[str, Run]) for row in store.earlier}
        resumed = len(rounds)
        report(Progress(resumed, len(prompts), resumed))
        if resumed < len(prompts):
            short = replace(how, tokens=min(how.tokens, WARM_UP))
            for setting in every:
                _run_once(pair, ids[0], 0, setting, short)
        for number, prompt in enumerate(prompts):
            if number not in rounds:
                rounds[number] = _run_round(pair, ids[number], number, every, how, name=prompt.id)
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


def _file_name(setting: Setting) -> str:
    """A name without characters that a file system refuses.

    Examples
    --------
    >>> _file_name(Setting("token", Chain(3)))
    'token-chain-k=3'
    """
    plain = re.sub(r"[^\w.=]+", "-", setting.name)
    return plain if len(plain) <= LONGEST_NAME else f"{plain[:LONGEST_NAME]}-{setting.key:x}"


def write_logs(
    pair: ModelPair,
    prompts: Sequence[Prompt],
    settings: Sequence[Setting],
    how: MeasureSettings,
    rounds: Sequence[Round],
    folder: Path,
) -> None:
    """A call log for each setting in `folder`."""
    ids = [encode_prompt(pair.tokenizer, prompt, chat_template=how.chat_template).tolist() for prompt in prompts]
    ours = "spectheory", spectheory.__version__
    for setting in settings:
        # What was drafted is left out: a rejected draft may have ended the drafting, so it is not given.
        requests = tuple(
            Request(
                prompt.id,
                tuple(of),
                run.output,
                ended=run.output[-1] in pair.end_of_text,
                accepted=tuple(call.accepted for call in run.calls),
                calls=run.count,
                seconds=run.seconds,
            )
            for prompt, of, run in zip(prompts, ids, (one[setting.name] for one in rounds), strict=True)
        )
        shape = setting.shape
        assert shape is not None
        # As --shape reads it: by its size where it grows, else by the paths to its nodes.
        paths = () if isinstance(shape, Grown) else shape.tree().paths
        written = shape.written if isinstance(shape, Grown) else ",".join("-".join(map(str, path)) for path in paths)
        CallLog(
            requests,
            *(("transformers", transformers.__version__) if setting.judged else ours),
            k=shape.depth,
            **asdict(how.sampling),
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
        ).write(folder / f"{_file_name(setting)}.jsonl")
