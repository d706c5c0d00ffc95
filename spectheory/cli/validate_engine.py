"""``spectheory validate --engine NAME | --server URL``: real engines run the prompts, and are judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spectheory.cli.answer import View, show
from spectheory.cli.console import ready_folder, remarks
from spectheory.cli.loading import load_named
from spectheory.cli.options import PairOptions, ValidateOptions
from spectheory.cli.page import Page
from spectheory.cli.progress import progress
from spectheory.cli.statuses import Status
from spectheory.distributions import Sampling
from spectheory.errors import SettingError
from spectheory.measure import ModelPair
from spectheory.measure.engines import DTYPE, Engine, find_engine
from spectheory.measure.engines.server import ServerEngine
from spectheory.measure.engines.validation import EngineValidation, validate_engines
from spectheory.prompts import Prompt
from spectheory.reports import engines_report

ANSWER = "engines.json"


def run_engines(
    question: ValidateOptions,
    pair: PairOptions,
    prompts: Sequence[Prompt],
    temperatures: Sequence[float],
    ks: Sequence[int],
) -> int:
    """Run the engines and show the answer; the status says whether counts and texts are as they should be."""
    for name, given in (("--rule", question.rule), ("--shape", question.shape)):
        if given:
            raise SettingError(
                f"{name} and an engine are given", limit="engines run their own rules", remedy=f"leave {name} out"
            )
    engines: list[Engine] = [find_engine(name) for name in question.engine or ()]
    if question.answer_seconds <= 0 or question.answer_megabytes <= 0:
        raise SettingError("an answer's limit is not above 0", limit="seconds and megabytes > 0", remedy="raise it")
    limits = question.answer_seconds, int(question.answer_megabytes * 2**20)
    engines += [ServerEngine(question.server, *limits)] if question.server is not None else []
    if question.engine and pair.dtype not in ("auto", DTYPE):
        raise SettingError(
            f"--dtype {pair.dtype} and an engine are given",
            limit=f"engines are started in {DTYPE}, and their output is read so",
            remedy="leave --dtype out",
        )
    for engine in engines:
        engine.version()
    asked = EngineValidation(
        tuple(dict.fromkeys(temperatures)),
        tuple(dict.fromkeys(ks)),
        question.tokens,
        Sampling(1.0, question.top_k, question.top_p, question.min_p),
        question.continuations,
        question.seed,
        question.chat_template,
    )
    ready_folder(question.out)
    loaded = _read_alike(pair, bool(question.engine))
    with progress() as bar:
        task = bar.add_task("")
        found = validate_engines(
            engines,
            loaded,
            prompts,
            asked,
            question.out,
            on_progress=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
        )
    report = engines_report(found)
    page = Page.asked(question.report, "Engines")
    show(report, as_json=question.json, file=question.out / ANSWER, page=page, view=View.of(question))
    return Status.DONE if report.as_dict()["agree"] else Status.DISAGREEMENT


def _read_alike(pair: PairOptions, started: bool) -> ModelPair:
    """The pair in the precision of engines that are started; a server's precision is its user's to know."""
    loaded = load_named(replace(pair, dtype=DTYPE) if started else pair)
    if not started:
        remarks.print(
            f"The output is read in {loaded.target.dtype}. If the server computes in another type, name it with "
            "--dtype: otherwise near-ties look like faults.",
            markup=False,
        )
    return loaded
