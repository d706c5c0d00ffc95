"""Real engines against expectation: prompts run with and without speculation, their output read back and judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spectheory.distributions import Sampling
from spectheory.errors import ModelError, SettingError
from spectheory.files import write_whole
from spectheory.judging.judgement import Judgement, judge
from spectheory.judging.output import OutputTest, output_tests
from spectheory.measure.engines.base import Drafts, Engine, Job, Models
from spectheory.measure.engines.running import run_job
from spectheory.measure.engines.server import ServerEngine
from spectheory.measure.hub import file_of
from spectheory.measure.judged import judged_trace
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.tokens import check_window, encode_prompt
from spectheory.prompts import Prompt
from spectheory.reports.base import plain
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog
from spectheory.verification import ArgmaxDraft, PathRule, TokenVerification

JUDGEMENT_FILE = "judgement.json"
RULES: Mapping[Drafts | None, tuple[PathRule, ...]] = {
    "sampled": (TokenVerification(),),
    "argmax": (ArgmaxDraft(),),
    None: (),
}
"""The rule that an engine should run, by how it drafts; without any, every rule is asked."""

OnStep = Callable[[str, int, int], None]
"""Told what runs, how many requests are finished, and of how many."""


@dataclass(frozen=True)
class EngineValidation:
    """What engines are asked: every temperature, without drafts and with each k, in each way to draft.

    `sampling` has the filters; `count` texts are drawn of a prompt above temperature 0.
    """

    temperatures: tuple[float, ...]
    ks: tuple[int, ...]
    tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    count: int = 1
    seed: int = 0
    chat_template: bool = False


def validate_engines(
    engines: Sequence[Engine],
    pair: ModelPair,
    prompts: Sequence[Prompt],
    asked: EngineValidation,
    out: Path,
    *,
    on_progress: OnStep | None = None,
) -> dict[str, Any]:
    """Run and judge every engine under every setting; the answer as data.

    `out` gets a folder per engine, in it one per setting with ``calls.jsonl`` and ``judgement.json``. A rerun runs
    nothing that is finished. Raises :class:`~spectheory.errors.EngineError` where an engine fails, and what
    :func:`~spectheory.measure.judged.judged_trace` and :func:`~spectheory.judging.judgement.judge` refuse.
    """
    versions = [engine.version() for engine in engines]  # one that is missing is named before any runs
    ids = {p.id: tuple(encode_prompt(pair.tokenizer, p, chat_template=asked.chat_template).tolist()) for p in prompts}
    for name, prompt in ids.items():
        check_window(name, len(prompt), asked.tokens, pair.window)
    found = []
    for engine, version in zip(engines, versions, strict=True):
        folder = out / engine.name
        models = Models(_folder(pair.target), _folder(pair.draft), folder / "models")
        runs = []
        for name, job in jobs(engine, ids, asked):
            told = _told(on_progress, f"{engine.name}, {name}")
            log = run_job(engine, job, models, folder / name, on_progress=told)
            runs.append(_judged(pair, log, name, job.drafts, folder / name))
        found.append({"engine": engine.name, "version": version, "runs": runs, **_machine(log)})
    return {"command": "validate", "models": pair.describe(), "prompts": len(prompts), "engines": found}


def jobs(engine: Engine, ids: Mapping[str, tuple[int, ...]], asked: EngineValidation) -> Iterator[tuple[str, Job]]:
    """Every setting by its name. A server that runs already drafts as it was started; it has no run without drafts."""
    served = isinstance(engine, ServerEngine)
    for temperature in asked.temperatures:
        count = asked.count if temperature else 1
        copies = [(f"{name} ({i + 1})" if i else name, prompt) for name, prompt in ids.items() for i in range(count)]
        sampling = replace(asked.sampling, temperature=temperature)
        plain_job = Job(tuple(copies), asked.tokens, None, sampling, asked.seed)
        if not served:
            yield f"T{temperature:g}-plain", plain_job
        for k in _chains(engine) if served else asked.ks:
            for drafts in engine.drafts if temperature else (None,):
                name = f"T{temperature:g}-k{k}" + (f"-{drafts}" if drafts else "")
                yield name, replace(plain_job, k=k, drafts=drafts)


def _chains(engine: Engine) -> tuple[int, ...]:
    chain = engine.chain() if isinstance(engine, ServerEngine) else None
    if chain is None:
        raise SettingError(
            "the server does not say how many tokens it drafts",
            limit="needs spec_decode counters by position in /metrics",
            remedy="start it with speculation and metrics",
        )
    return (chain,)


def _told(on_progress: OnStep | None, what: str) -> Callable[[int, int], None] | None:
    if on_progress is None:
        return None
    return lambda done, total: on_progress(what, done, total)


def _folder(model: Model) -> Path:
    """The folder of a model's files, in the hub's cache if it came from there."""
    file = file_of(model.source, "config.json", model.revision)
    if file is None:
        raise ModelError(f"{model.name!r} has no folder", limit="engines load files", remedy="save it to a folder")
    return file.parent


def _judged(pair: ModelPair, log: CallLog, name: str, drafts: Drafts | None, out: Path) -> dict[str, Any]:
    """What one run's counts and texts say."""
    trace = judged_trace(pair, log)
    tests = output_tests(trace)
    judgement = judge(log, trace, rules=RULES[drafts] if log.temperature else ()) if log.k else None
    record = {
        "setting": name,
        "temperature": log.temperature,
        "k": log.k,
        "drafts": drafts,
        "requests": len(log),
        "tokens": sum(len(request.output) for request in log.requests),
        "settings": log.provenance["settings"],
        **_counts(judgement),
        "output": _output(tests, trace),
    }
    full = {**record, "standings": [one.as_dict() for one in judgement.standings] if judgement else []}
    full["tests"] = [test.as_dict() for test in tests]
    text = json.dumps(plain(full), indent=1, allow_nan=False) + "\n"
    write_whole(out / JUDGEMENT_FILE, lambda partial: partial.write_text(text))
    return record


def _counts(judgement: Judgement | None) -> dict[str, Any]:
    """Counted and expected calls of the rule that runs, or of the least refuted one if none fits."""
    if judgement is None:
        return {}
    one = judgement.standings[0]
    return {
        "counts": {
            "rule": one.rule,
            "same": list(one.same),
            "fits": not one.refuted,
            "stated": list(judgement.stated),
            "as_stated": not judgement.refuted,
            "calls": one.calls.as_dict(),
            "refuted": {other.rule: other.calls.z for other in judgement.standings if other.refuted},
            "causes": [cause.sentence for cause in judgement.causes],
            "notes": list(judgement.notes),
        }
    }


def _output(tests: Sequence[OutputTest], trace: Trace) -> dict[str, Any] | None:
    """Whether sampled output is the target's; None at temperature 0."""
    if not tests:
        return None
    worst = min(tests, key=lambda test: (test.p, -abs(test.statistic)))
    return {"right": not any(test.refuted for test in tests), "worst": worst.as_dict(), "tests": len(tests)}


def _machine(log: CallLog) -> dict[str, Any]:
    return {name: log.provenance[name] for name in ("hardware", "versions", "date")}
