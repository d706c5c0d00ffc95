"""``spectheory validate``: predict, decode, compare, and say where the difference comes from; or run real engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from spectheory.checks import in_range
from spectheory.cli.answer import ready_page, show
from spectheory.cli.console import ready_folder, remark
from spectheory.cli.inputs import remark_slower
from spectheory.cli.loading import earlier_threads, load_named, settings_of
from spectheory.cli.options import MOST_TEXTS, TEMPERATURES, PairOptions, ValidateOptions
from spectheory.cli.progress import progress
from spectheory.cli.statuses import Status
from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, Grown, Shape, read_stop
from spectheory.drafting.shapes import read_shape
from spectheory.errors import SettingError
from spectheory.measure import ModelPair, Progress
from spectheory.measure.engines import DTYPE, Engine, find_engine
from spectheory.measure.engines.server import ServerEngine
from spectheory.measure.engines.validation import EngineValidation, validate_engines
from spectheory.measure.validation import KS, TREE, Validation, validate
from spectheory.pages.validation import validation_charts
from spectheory.pairs import PROMPTS
from spectheory.plots.validation import write_figure
from spectheory.prompts import Prompt, read_prompts
from spectheory.reports import engines_report, validation_report
from spectheory.reports.validation import JUDGES
from spectheory.verification import GrownMatch, RankRule
from spectheory.verification.registry import find_rule

LONGEST_CHAIN = 1024
LONGEST_TEXT = 1 << 20


def run_validate(question: ValidateOptions, pair: PairOptions) -> int:
    """Validate and show the answer; the status says whether counted and expected calls agree."""
    in_range("--continuations", question.continuations, MOST_TEXTS)
    ready_page(question.report)
    if question.engine or question.server is not None:
        if question.stop:
            raise SettingError(
                "--stop is given with an engine", limit="stopping rules are decoded here", remedy="leave out one"
            )
        in_range("--tokens", question.tokens, LONGEST_TEXT)
        in_range("--k", question.k, LONGEST_CHAIN)
        return _run_engines(question, pair, _prompts(question), question.temperature or TEMPERATURES, question.k or KS)
    asked, prompts = _asked(question), _prompts(question)
    ready_folder(question.out)
    threads = earlier_threads(_tables(question.out).values()) if pair.threads is None else pair.threads
    loaded = load_named(replace(pair, threads=threads), question.depth)
    if not (question.k or question.shape):
        asked = _cut(asked, loaded)
    asked = asked.with_draft(loaded.draft)
    with progress() as bar:
        task = bar.add_task("")

        def show(what: str, state: Progress) -> None:
            bar.update(task, description=what, completed=state.done, total=state.total)
            if 0 < state.resumed == state.done:
                bar.console.print(f"{what}, resumed: {state.resumed} of {state.total} prompts were finished before")

        answer = validate(loaded, prompts, asked, question.out, on_progress=show)
    _answer(answer, question)
    return Status.DISAGREEMENT if answer["disagreements"] else Status.DONE


def _tables(folder: Path) -> dict[str, LatencyTable]:
    """The latency tables of a validation, by file."""
    return {path.name: LatencyTable.read(path) for path in sorted(folder.glob("latency-*.json"))}


def _asked(question: ValidateOptions) -> Validation:
    """What is asked for; shapes and rules that do not go together are refused here."""
    temperatures = tuple(question.temperature or TEMPERATURES)
    shapes = _shapes(question)
    size = next((shape.size for shape in shapes if isinstance(shape, Grown)), None)
    return Validation(tuple(question.rule or ()), tuple(shapes), temperatures, settings_of(question, grown=size))


def _cut(asked: Validation, pair: ModelPair) -> Validation:
    """The default shapes without those that are deeper than a head drafts."""
    deepest = None if pair.draft.head is None else pair.draft.head.deepest
    fitting = tuple(shape for shape in asked.shapes if deepest is None or shape.depth <= deepest)
    if fitting == asked.shapes:
        return asked
    remark(f"shapes deeper than {deepest} are left out: the head drafts no more in a call")
    return replace(asked, shapes=fitting or (Chain(deepest or 1),))


def _shapes(question: ValidateOptions) -> list[Shape]:
    ks = question.k or KS
    in_range("--k", ks, LONGEST_CHAIN)
    if question.stop:
        return _stopped(question, ks)
    decoded = [find_rule(rule) for rule in question.rule or () if rule not in JUDGES]
    trees = not question.rule or any(isinstance(rule, RankRule) for rule in decoded)
    grown = _grown(question)
    if not question.shape:
        usual = [*map(Chain, ks), *([TREE] if trees else [])]
        return [*([] if question.rule == [GrownMatch.name] else usual), *grown]
    return list(dict.fromkeys([*(shape for name in question.shape for shape in read_shape(name, ks)), *grown]))


def _stopped(question: ValidateOptions, ks: Sequence[int]) -> list[Shape]:
    """A chain of each k with each stopping rule."""
    other = next((name for name in question.shape or () if name != Chain.name), None)
    if other is not None or question.grow:
        raise SettingError(
            f"--stop is given with the shape {other or 'grown'}",
            limit="a stopping rule ends chains",
            remedy="leave out --shape or use --shape chain",
        )
    stops = [read_stop(text) for text in question.stop or ()]
    return [Chain(k, stop=stop) for k in dict.fromkeys(ks) for stop in dict.fromkeys(stops)]


def _grown(question: ValidateOptions) -> list[Shape]:
    """The grown tree that is asked for; its trace and its calls are of one size."""
    sizes = {name.partition(":")[2] for name in question.shape or () if isinstance(Grown.parsed(name), Grown)}
    sizes |= {question.grow} if question.grow else set()
    if len(sizes) > 1:
        raise SettingError(
            f"grown trees of {' and '.join(sorted(sizes))} are asked for",
            limit="a validation measures trees of one size",
            remedy="validate each by itself",
        )
    return [Grown.sized_as(size) for size in sizes]


def _prompts(question: ValidateOptions) -> tuple[Prompt, ...]:
    prompts = read_prompts(question.prompts or PROMPTS)
    in_range("--first", question.first, len(prompts))
    return prompts[: question.first]


def _answer(answer: dict[str, Any], question: ValidateOptions) -> None:
    """Write the answer and its figure, and show it."""
    show(
        validation_report(answer),
        question,
        "validation",
        figures=lambda out: write_figure([answer], out / "validation"),
        title="Validation",
        parts=partial(validation_charts, answer),
    )
    slower = {r for at in answer["temperatures"] for each in at["settings"] for r in each["speedup"].get("remarks", ())}
    for each in sorted(slower):
        remark(each)
    for name, table in _tables(question.out).items():
        remark_slower(table, name)


def _run_engines(
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
        answer = validate_engines(
            engines,
            loaded,
            prompts,
            asked,
            question.out,
            on_progress=lambda what, done, total: bar.update(task, description=what, completed=done, total=total),
        )
    report = engines_report(answer)
    show(report, question, "engines", title="Engines")
    return Status.DONE if report.as_dict()["agree"] else Status.DISAGREEMENT


def _read_alike(pair: PairOptions, started: bool) -> ModelPair:
    """The pair in the precision of engines that are started; a server's precision is its user's to know."""
    loaded = load_named(replace(pair, dtype=DTYPE) if started else pair)
    if not started:
        remark(
            f"The output is read in {loaded.target.dtype}. If the server computes in another type, name it with "
            "--dtype: otherwise near-ties look like faults."
        )
    return loaded
