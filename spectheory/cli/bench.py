"""``spectheory bench``: time a server at the few points that a plan needs."""

from __future__ import annotations

import shlex
from pathlib import Path

from spectheory.cli.answer import show
from spectheory.cli.console import ready_folder
from spectheory.cli.options import BenchOptions
from spectheory.cli.progress import progress
from spectheory.errors import ModelError, SettingError
from spectheory.measure.engines import Engine, Models, find_engine
from spectheory.measure.engines.bench import DEFAULT_KS, Bench, bench
from spectheory.measure.engines.server import ServerEngine
from spectheory.measure.model_files import check_folder, file_of
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prompts import read_prompts
from spectheory.reports.bench import bench_report

BUILT_IN, USUAL = (96, 192), (512, 2048)
"""Contexts by default: of the built-in models, whose longest text has 256 tokens, and of others."""


def run_bench(question: BenchOptions) -> None:
    """Time the points and show them; the last line is the plan to ask for next."""
    if (question.engine is None) == (question.server is None):
        raise SettingError(
            "--engine and --server are both given" if question.engine else "no server is named",
            limit="needs one of --engine NAME and --server URL",
            remedy="leave one out" if question.engine else "give one of them",
        )
    started = question.engine is not None
    if question.server is not None:
        _refuse_idle(question)
    text = "\n\n".join(prompt.text for prompt in read_prompts(question.prompts or PROMPTS))
    usual = BUILT_IN if started and question.target.startswith(PREFIX) else USUAL
    asked = Bench(
        tuple(question.batch or (1, 8)),
        tuple(question.context or usual),
        text,
        tuple(question.k or (DEFAULT_KS if started else ())),
        question.output_tokens,
        question.repeats,
        question.temperature,
        question.seed,
        _words(question.arguments),
    )
    engine: Engine
    if question.server is not None:
        engine, models = ServerEngine(question.server, question.answer_seconds), None
    else:
        engine = find_engine(question.engine or "")
        models = Models(_files(question.target), _files(question.draft), question.out / "models")
    engine.version()  # one that is missing is named before anything is written
    ready_folder(question.out)
    with progress() as bar:
        task = bar.add_task("starting", total=None)

        def on_progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        answer = bench(engine, asked, question.out, models, on_progress=on_progress)
    show(bench_report(answer.runs, answer.file, answer.lacking, answer.seconds), question)


def _refuse_idle(question: BenchOptions) -> None:
    """Refuse what only a server that is started here takes."""
    for name in ("target", "draft", "arguments"):
        if getattr(question, name) != getattr(BenchOptions, name):
            raise SettingError(
                f"--{name} is given with --server",
                limit="a running server has its own models and settings",
                remedy="leave it out",
            )


def _words(arguments: str) -> tuple[str, ...]:
    """Arguments as a shell would read them."""
    try:
        return tuple(shlex.split(arguments))
    except ValueError as error:
        raise SettingError(
            f"--arguments is {arguments} ({error})", limit="needs closed quotes", remedy="close them"
        ) from error


def _files(model: str) -> Path:
    """A model's folder, in the hub's cache if it came from there, or its file."""
    path = Path(resolve(model))
    if path.suffix == ".gguf" and path.is_file():
        return path
    check_folder(resolve(model))
    file = file_of(resolve(model), "config.json", None)
    if file is None:
        raise ModelError(
            f"{model!r} is not on this machine", limit="engines load files", remedy="download it, or name its folder"
        )
    return file.parent
