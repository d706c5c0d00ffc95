"""Real engines against expectation: prompts run with and without speculation, their output read back and judged."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from spectheory.answers import plain
from spectheory.answers.judged import JudgementJson
from spectheory.distributions import Sampling
from spectheory.errors import EngineError, ModelError, SettingError, TextError
from spectheory.files import write_whole
from spectheory.judging.divergence import against_plain, divergences, engine_dtype, in_words
from spectheory.judging.judgement import Judgement, judge
from spectheory.judging.output import output_tests
from spectheory.measure.engines import DTYPE, Drafts, Engine, Job, Models
from spectheory.measure.engines.server import ServerEngine
from spectheory.measure.judged import judged_trace
from spectheory.measure.machine import hardware, versions
from spectheory.measure.model_files import file_of, fingerprint_of
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.tokens import check_window, encode_prompt
from spectheory.prompts import Prompt
from spectheory.reports import judgement_report
from spectheory.reports.judgement import content, shown
from spectheory.store import Contents, Store
from spectheory.trace import IMPOSSIBLE, Trace
from spectheory.trace.calls import CALLS_FILE, MARK, SCHEMA, CallLog, Request, request_line
from spectheory.verification import ArgmaxDraft, PathRule, TokenVerification

OnRequest = Callable[[int, int], None]
"""Told how many requests are finished, and of how many."""
CALLS = Contents(
    MARK,
    SCHEMA,
    "calls of requests",
    TextError,
    "choose another --out, or delete the file",
    "another job (engine, version, models, prompts or settings differ)",
    "a rerun continues the same job",
    identity=lambda head: head["provenance"].get("job"),
    sealed=False,
)


def _run_job(engine: Engine, job: Job, models: Models, out: Path, *, on_progress: OnRequest | None = None) -> CallLog:
    """The calls of `engine` on the prompts of `job`, in their order; `out` gets ``calls.jsonl``.

    Each finished request is written and synced at once. A rerun of the same job asks for the missing ones alone;
    another job in the same folder is refused. If the engine fails, its error is raised and what is finished stays.
    """
    with Store(out / CALLS_FILE, CALLS, _header(engine, job, models).header()) as store:
        log = CallLog.read(store.path)
        done = {request.id: request for request in log.requests}
        missing = tuple(prompt for prompt in job.prompts if prompt[0] not in done)
        if on_progress:
            on_progress(len(done), len(job.prompts))
        for request in _answers(engine, replace(job, prompts=missing), models) if missing else ():
            store.add(request_line(request))
            done[request.id] = request
            if on_progress:
                on_progress(len(done), len(job.prompts))
    return replace(log, requests=tuple(done[name] for name, _ in job.prompts))


def _answers(engine: Engine, job: Job, models: Models) -> Iterator[Request]:
    """The engine's requests; one that is no prompt of the job, or without output, or missing, is refused."""
    asked = dict(job.prompts)
    with closing(iter(engine.requests(job, models))) as requests:  # type: ignore[type-var]
        for request in requests:
            if request.id not in asked or not request.output or request.prompt != asked[request.id]:
                raise EngineError(
                    f"{engine.name} answered request {request.id!r} without output or with another prompt",
                    limit="needs the ids of every prompt and its output",
                    remedy="see its log",
                )
            del asked[request.id]
            yield request
    if asked:
        raise EngineError(
            f"{engine.name} ended with {len(asked)} of {len(job.prompts)} requests unanswered",
            limit="needs an answer to each",
            remedy="run the same command again; finished requests are kept",
        )


def _header(engine: Engine, job: Job, models: Models) -> CallLog:
    """The log of a job before its first request."""
    settings, version = dict(engine.settings(job)), engine.version()
    described = {
        role: {"name": folder.name, "fingerprint": fingerprint_of(folder, None)}
        for role, folder in (("target", models.target), ("draft", models.draft))
    }
    parts = [engine.name, version, asdict(job), settings, *described.values()]  # all that decides the requests
    provenance = {
        "job": hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16],
        "models": described,
        "tokens": job.tokens,
        "seed": job.seed,
        "drafts": job.drafts,
        "settings": settings,
        "hardware": hardware(),
        "versions": versions(),
        "date": time.strftime("%Y-%m-%d"),
    }
    return CallLog(
        (),
        engine=engine.name,
        version=version,
        k=job.k,
        **asdict(job.sampling),
        prefill_emits_token=engine.prefill_emits_token,
        counts_past_end=engine.counts_past_end,
        provenance=provenance,
    )


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
    answers = []
    for engine, version in zip(engines, versions, strict=True):
        folder = out / engine.name
        models = Models(_folder(pair.target), _folder(pair.draft), folder / "models")
        runs: list[dict[str, Any]] = []
        plain: CallLog | None = None
        for name, job in _jobs(engine, ids, asked):
            show = partial(on_progress, f"{engine.name}, {name}") if on_progress else None
            log = _run_job(engine, job, models, folder / name, on_progress=show)
            plain = plain if job.k else log
            greedy = plain if job.k and not job.sampling.temperature else None
            runs.append(_judged(pair, log, name, job.drafts, folder / name, greedy))
        about = {each: log.provenance[each] for each in ("hardware", "versions", "date")}
        answers.append({"engine": engine.name, "version": version, "runs": runs, **about})
    return {"command": "validate", "models": pair.describe(), "prompts": len(prompts), "engines": answers}


def _jobs(engine: Engine, ids: Mapping[str, tuple[int, ...]], asked: EngineValidation) -> Iterator[tuple[str, Job]]:
    """Every setting by its name. A server that runs already drafts as it was started; it has no run without drafts."""
    served = isinstance(engine, ServerEngine)
    for temperature in asked.temperatures:
        count = asked.count if temperature else 1
        copies = [(f"{name} ({i + 1})" if i else name, prompt) for name, prompt in ids.items() for i in range(count)]
        sampling = replace(asked.sampling, temperature=temperature)
        plain_job = Job(tuple(copies), asked.tokens, None, sampling, asked.seed)
        if not served:
            yield f"T{temperature:g}-plain", plain_job
        for k in _chains(engine, asked.ks) if served else asked.ks:
            for drafts in engine.drafts if temperature else (None,):
                name = f"T{temperature:g}-k{k}" + (f"-{drafts}" if drafts else "")
                yield name, replace(plain_job, k=k, drafts=drafts)


def _chains(engine: Engine, ks: tuple[int, ...]) -> tuple[int, ...]:
    """The chain that a server drafts, by its counters; where they do not say, the one k that is asked for."""
    chain = engine.chain() if isinstance(engine, ServerEngine) else None
    if chain is None and len(ks) > 1:
        raise SettingError(
            "the server does not say how many tokens it drafts",
            limit="needs spec_decode counters by position in /metrics, or one k",
            remedy="give its --k",
        )
    return ks if chain is None else (chain,)


def _folder(model: Model) -> Path:
    """The folder of a model's files, in the hub's cache if it came from there."""
    file = file_of(model.source, "config.json", model.revision)
    if file is None:
        raise ModelError(f"{model.name!r} has no folder", limit="engines load files", remedy="save it to a folder")
    return file.parent


def _judged(
    pair: ModelPair, log: CallLog, name: str, drafts: Drafts | None, out: Path, plain: CallLog | None
) -> dict[str, Any]:
    """What one run's counts and texts say; at temperature 0 also where they leave those of the `plain` run."""
    record = {
        "setting": name,
        "temperature": log.temperature,
        "k": log.k,
        "drafts": drafts,
        "requests": len(log),
        "tokens": sum(len(request.output) for request in log.requests),
        "settings": log.provenance["settings"],
    }
    trace = judged_trace(pair, log)
    record["output"] = _output(log, trace)
    if "impossible" in record["output"]:
        return record
    if plain is not None and (left := against_plain(log, plain, trace, dtype=DTYPE)):
        record["output"]["against_plain"] = in_words(left, len(log), what="those of plain decoding")
    if not log.k:
        return record
    rules = RULES[drafts] if log.temperature else ()
    stated = log if engine_dtype(log) else replace(log, provenance={**log.provenance, "dtype": DTYPE})
    judgement = judge(stated, trace, rules=rules, reread=partial(judged_trace, pair, log))
    text = json.dumps(judgement_report(judgement).as_dict(), indent=1, allow_nan=False) + "\n"
    write_whole(out / JUDGEMENT_FILE, lambda partial: partial.write_text(text))
    return {**record, **_counts(judgement)}


def _counts(judgement: Judgement) -> dict[str, Any]:
    """What the counts say: `counts` of the stated rule, or without one of the rule that fits best, and every rule."""
    whole = plain(content(judgement))
    rules = {each["rule"]: each for each in whole["rules"]}
    one = rules[shown(judgement).rule]
    return {
        "counts": {
            **{name: one[name] for name in ("rule", "same")},
            "fits": not one["refuted"],
            "calls": one["calls"],
            "notes": list(judgement.notes),
        },
        **{name: whole[name] for name in ("prefill_emits_token", "stated", "fitting", "refuted", "causes")},
        "rules": [{name: each[name] for name in ("rule", "refuted", "calls")} for each in whole["rules"]],
    }


def _output(log: CallLog, trace: Trace) -> dict[str, Any]:
    """Whether the texts are the target's: at temperature 0 its first choices up to ties, else samples of it."""
    if not log.temperature:
        kinds = Counter(one.kind for one in divergences(trace, dtype=DTYPE))
        return {"right": not kinds.keys() - {"tie"}, "ties": kinds["tie"], "faults": kinds.total() - kinds["tie"]}
    if IMPOSSIBLE in trace.provenance:
        return {"right": False, "impossible": trace.provenance[IMPOSSIBLE][0]}
    tests = output_tests(trace)
    worst = min(tests, key=lambda test: (test.p, -abs(test.statistic)))
    return {
        "right": not any(test.refuted for test in tests),
        "tests": len(tests),
        "worst": plain(JudgementJson.Output.view(worst)),
    }
