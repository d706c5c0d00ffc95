"""``spectheory simulate``: one setting, counted and held against what theory says of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.checks import in_range, whole
from spectheory.cli import options as usual
from spectheory.cli.answer import print_json
from spectheory.cli.console import answers, ready_folder, remark
from spectheory.cli.inputs import MOST_WORKERS, _read_numbers
from spectheory.cli.interrupts import Interrupted, _interruptible
from spectheory.cli.options import RunOptions, SettingOptions
from spectheory.cli.progress import progress
from spectheory.cli.statuses import Status
from spectheory.distributions import pmf_rows, rank_law
from spectheory.drafting.shapes import Chain, read_shape, sized_shape
from spectheory.errors import SettingError, ShapeError
from spectheory.intervals import Interval
from spectheory.processes import prepare
from spectheory.reports import Column, Table
from spectheory.reports.table import for_terminal
from spectheory.verification import RULES

if TYPE_CHECKING:
    from simulations.verdicts.judging import Verdict
    from simulations.verdicts.predictions import Comparison


Parameters = dict[str, Any]
Reader = Callable[[SettingOptions], Parameters]

MOST = {"length": 10_000, "k": 1024, "drafts": 1024, "max_rank": 4096, "nodes": 100_000, "order": 32, "draft_order": 32}
"""The largest numbers that are taken: theory and tables grow with them."""
MOST_NODES = 256
"""Of a draft tree: every node is counted and compared."""


@dataclass(frozen=True)
class _Setting:
    """A kind of simulation: the options it takes, what makes the parameters of them, and the trials of a batch."""

    takes: tuple[str, ...]
    read: tuple[Reader, ...]
    batch: int

    @property
    def options(self) -> list[str]:
        """What it takes, as written on the command line."""
        return [f"--{name.replace('_', '-')}" for name in self.takes]

    def parameters(self, kind: str, question: SettingOptions) -> Parameters:
        """The task's parameters."""
        given = [name for name, value in vars(question).items() if name != "kind" and value not in (None, [])]
        for name in given:
            if name not in self.takes:
                raise SettingError(
                    f"--{name.replace('_', '-')} is given",
                    limit=f"{kind} takes {', '.join(self.options)}",
                    remedy="leave it out",
                )
        made: Parameters = {}
        for read in self.read:
            made |= read(question)
        return made


def _needed(question: SettingOptions, name: str) -> Any:
    value = getattr(question, name)
    if value is None:
        option = f"--{name.replace('_', '-')}"
        raise SettingError(f"{option} is missing", limit=f"{question.kind} needs it", remedy=f"add {option}")
    return value


def _pmfs(question: SettingOptions) -> dict[str, Any]:
    """The rows of both models."""
    return {name: _rows_of(_needed(question, f"{name}_pmf"), f"--{name}-pmf") for name in ("target", "draft")}


def _rows_of(source: str, name: str) -> Any:
    """The pmfs of an option, ``[n, V]``."""
    return pmf_rows(_read_numbers(source, name), name)[0]


def _pair(question: SettingOptions) -> Parameters:
    """One pmf of each model."""
    rows = _pmfs(question)
    for name, each in rows.items():
        if len(each) != 1:
            raise ShapeError(f"--{name}-pmf has {len(each)} rows", limit="one position", remedy="pass one pmf")
    _same_size(rows["target"].shape, rows["draft"].shape)
    return {name: each[0] for name, each in rows.items()}


def _chains(question: SettingOptions) -> Parameters:
    """Transition pmfs; without any, the chains of yin2024."""
    length = {"length": usual.LENGTH if question.length is None else question.length}
    _whole("length", length["length"])
    if question.target_pmf is None and question.draft_pmf is None and question.initial is None:
        return {"chains": "yin2024", **length}
    rows = _pmfs(question)
    states = len(rows["target"])
    _same_size(rows["target"].shape, rows["draft"].shape)
    if rows["target"].shape[1] != states:
        raise ShapeError(
            f"--target-pmf has {states} rows of {rows['target'].shape[1]}",
            limit="a chain has a row per token",
            remedy="row x is the pmf of the token after x",
        )
    uniform = np.full(states, 1 / states)
    first = uniform
    if question.initial is not None:
        (first, *others) = _rows_of(question.initial, "--initial")
        if others:
            raise ShapeError(f"--initial has {1 + len(others)} rows", limit="one pmf", remedy="pass the first token's")
    return {**{name: each.tolist() for name, each in rows.items()}, "initial": first.tolist(), **length}


def _same_size(target: tuple[int, ...], draft: tuple[int, ...]) -> None:
    if target != draft:
        raise ShapeError(
            f"--target-pmf has {target[-1]} tokens in {target[0]} rows, --draft-pmf {draft[-1]} in {draft[0]}",
            limit="one vocabulary",
            remedy="give both for the same tokens",
        )


def _number(name: str, default: int) -> Reader:
    def read(question: SettingOptions) -> Parameters:
        value = getattr(question, name)
        value = default if value is None else value
        _whole(name, value)
        return {name: value}

    return read


def _whole(name: str, value: int | list[int]) -> None:
    in_range(f"--{name.replace('_', '-')}", value, MOST[name])


def _ranks(question: SettingOptions) -> Parameters:
    """Both pmfs, and the ranks that are told apart; distinct candidates have no more than there are tokens."""
    pair = _pair(question)
    distinct = RULES[question.kind.removesuffix("-dense")].drafts == "distinct"
    most = len(pair["target"]) if distinct else usual.MAX_RANK
    return {**pair, **_number("max_rank", min(usual.MAX_RANK, most))(question)}


def _rank_law(question: SettingOptions) -> Parameters:
    source = _needed(question, "rank_pmf")
    return {"rank_pmf": rank_law(_read_numbers(source, "--rank-pmf"), "--rank-pmf").tolist()}


def _tree(question: SettingOptions) -> Parameters:
    """The paths of the draft tree; a chain of k without a shape."""
    name = question.shape or Chain.name
    if question.k is not None and not sized_shape(name):
        raise SettingError(f"--k is {question.k}", limit=f"the shape {name!r} has its size", remedy="leave --k out")
    size = usual.K if question.k is None else question.k
    _whole("k", size)
    (shape,) = read_shape(name, [size])
    if shape.nodes > MOST_NODES:
        raise SettingError(
            f"the shape has {shape.nodes} nodes", limit=f"at most {MOST_NODES} are told apart", remedy="draft fewer"
        )
    return {"paths": [list(path) for path in shape.tree().paths]}


def _rule(module: str, names: str) -> Reader:
    """A rule that a module of the simulations names; it is loaded when it is asked."""

    def read(question: SettingOptions) -> Parameters:
        rule, known = _needed(question, "rule"), tuple(getattr(import_module(f"simulations.{module}"), names))
        if rule not in known:
            raise SettingError(f"--rule is {rule!r}", limit=f"is one of {', '.join(known)}", remedy="name one")
        return {"rule": rule}

    return read


def _biased(question: SettingOptions) -> Parameters:
    """Over-acceptance b = (1 - share) min(1, p/q) + share, and what rejected tokens are recovered from."""
    share, recovery = _needed(question, "bias"), question.recovery or usual.RECOVERY
    if not 0 <= share <= 1:
        raise SettingError(f"--bias is {share}", limit="must lie in [0, 1]", remedy="0 is lossless, 1 takes all drafts")
    if recovery not in ("optimal", "target"):
        raise SettingError(f"--recovery is {recovery!r}", limit="is optimal or target", remedy="name one")
    pair = _pair(question)
    p, q = np.asarray(pair["target"]), np.asarray(pair["draft"])
    lossless = np.minimum(1.0, np.divide(p, q, out=np.ones_like(p), where=q > 0))
    return {**pair, "accept": ((1 - share) * lossless + share).tolist(), "recovery": recovery}


def _text(question: SettingOptions) -> Parameters:
    from simulations.models.ngram import PROMPTS_TEXT, file_parameters, text_parameters

    text = _needed(question, "text")
    if text == PROMPTS_TEXT or text.split(".")[0] in sys.stdlib_module_names:
        return text_parameters(text)
    if not Path(text).is_file():
        raise SettingError(
            f"--text is {text!r}",
            limit=f"must be a text file, a module of the standard library as argparse, or {PROMPTS_TEXT}",
            remedy="check the path",
        )
    return file_parameters(text)


def _random_pmfs(question: SettingOptions) -> Parameters:
    """A named family, or the rows of --target-pmf."""
    nodes = sorted(set(question.nodes or usual.NODES))
    _whole("nodes", nodes)
    if question.family is None:
        return {
            "pmfs_given": _rows_of(_needed(question, "target_pmf"), "--target-pmf").tolist(),
            "capacities": nodes,
        }
    if question.target_pmf is not None:
        raise SettingError("--target-pmf and --family are given", limit="one of them", remedy="leave one out")
    return {"family": _family(question.family), "pmfs": 2048, "tokens": 256, "capacities": nodes}


def _family(part: str) -> str:
    """The family whose name has this part."""
    from simulations.models.families import FAMILIES

    names = [name for name in FAMILIES if part.lower() in name.lower()]
    if len(names) != 1 and part not in FAMILIES:
        raise SettingError(
            f"--family is {part!r}",
            limit=f"is a part of one of: {'; '.join(FAMILIES)}",
            remedy="name one, as zipf or 'sd 5'",
        )
    return part if part in FAMILIES else names[0]


_POSITION = ("target_pmf", "draft_pmf")
_CHAIN = (*_POSITION, "initial", "length")

_LIST = _Setting((*_POSITION, "max_rank"), (_ranks,), 50_000)
_GUMBEL = _Setting((*_POSITION, "k"), (_pair, _number("k", usual.K)), 50_000)
_TEXT = _Setting((*_CHAIN, "k"), (_chains, _number("k", usual.K)), 10_000)

SETTINGS: dict[str, _Setting] = {
    "race": _LIST,
    "race-dense": _LIST,
    "poisson": _LIST,
    "recursive": _LIST,
    "recursive-distinct": _LIST,
    "gumbel-list": _GUMBEL,
    "gumbel-list-dense": _GUMBEL,
    "single": _Setting((*_POSITION, "rule"), (_pair, _rule("kernels.candidates", "RULES")), 50_000),
    "biased": _Setting((*_POSITION, "bias", "recovery"), (_biased,), 50_000),
    "tree": _Setting(("rank_pmf", "shape", "k"), (_rank_law, _tree), 50_000),
    "raced-tree": _Setting((*_POSITION, "shape", "k"), (_pmfs, _tree), 20_000),
    "token": _TEXT,
    "block": _TEXT,
    "decode": _Setting(
        (*_CHAIN, "rule", "shape", "k"), (_chains, _rule("reference.decoding", "ALGORITHMS"), _tree), 500
    ),
    "ngram": _Setting(
        ("text", "order", "draft_order", "length", "k"),
        (
            _text,
            _number("order", usual.ORDER),
            _number("draft_order", usual.DRAFT_ORDER),
            _number("length", usual.LENGTH),
            _number("k", usual.K),
        ),
        10_000,
    ),
    "rejections": _Setting(_CHAIN, (_chains,), 10_000),
    "batch": _Setting(
        (*_CHAIN, "drafts", "printed"),
        (_chains, _number("drafts", usual.DRAFTS), lambda question: {"printed": True} if question.printed else {}),
        10_000,
    ),
    "random-trees": _Setting(("target_pmf", "family", "nodes"), (_random_pmfs,), 100),
}
"""By the names on the command line, which are those of the simulators."""


MOST_TRIALS = 10**12
LEAST_ALARM = 1e-100
MOST_ROWS = 8
"""Comparisons of one statement that are shown; the others in a line."""
_LISTED = ("kind", "a trial is", "batch", "options")
_COMPARED = (
    Column("", kind="names", at=lambda each: "ok" if each else "NO"),
    Column("what", kind="words", at="predicted.says"),
    Column("id", kind="names", at="predicted.statement"),
    Column("observed", at=lambda each: f"{each.observed.best:.4g}"),
    Column("95% interval", kind="names", at=lambda each: f"{each.observed.low:.4g} to {each.observed.high:.4g}"),
    Column("theory", at=lambda each: _theory(each.predicted.value)),
    Column("side", kind="words", at="predicted.side"),
    Column("z", at=lambda each: f"{each.agreement.z:.1f}"),
)


def run_simulate(question: SettingOptions, run: RunOptions) -> int:
    """Simulate and compare; the status says whether theory and simulation agree."""
    try:
        return _simulated(question, run)
    except KeyboardInterrupt:
        if run.results is None:
            raise Interrupted("nothing was kept (--out FOLDER keeps finished batches)") from None
        raise


def _simulated(question: SettingOptions, run: RunOptions) -> int:
    if question.kind == "list":
        _show_kinds(as_json=run.json)
        return Status.DONE
    if question.kind not in SETTINGS:
        raise SettingError(
            f"unknown simulation {question.kind!r}",
            limit=f"there are {', '.join(SETTINGS)}",
            remedy="spectheory simulate list says what they are",
        )
    setting = SETTINGS[question.kind]
    _check(run)
    from simulations.experiments import PRELOADED

    prepare(PRELOADED)  # beside the theory, which is worked out first
    if run.out is not None:
        ready_folder(run.out)
    verdict = _judged(question, setting, run)
    for each in verdict.remarks:
        remark(each)
    if run.json:
        print_json(verdict.as_dict())
    else:
        _show(verdict)
    return Status.DONE if verdict else Status.DISAGREEMENT


def _check(run: RunOptions) -> None:
    in_range("--trials", run.trials, MOST_TRIALS)
    in_range("--batch-size", run.batch, MOST_TRIALS)
    in_range("--workers", run.workers, MOST_WORKERS)
    whole("--seed", run.seed, least=0, remedy="0 is the default")
    if not LEAST_ALARM <= run.alarm < 1:
        raise SettingError(
            f"--alarm is {run.alarm}", limit=f"must lie in [{LEAST_ALARM:.0e}, 1)", remedy="1e-6 is the default"
        )
    if run.width is not None and not run.width > 0:
        raise SettingError(f"--width is {run.width}", limit="must be > 0", remedy="0.01 is 1% of the value")


def _judged(question: SettingOptions, setting: _Setting, run: RunOptions) -> Verdict:
    kind, parameters = question.kind, setting.parameters(question.kind, question)
    import simulations.simulators  # noqa: F401  registers all kinds
    from simulations.experiments.tasks import task
    from simulations.verdicts.judging import foreseen, judge

    predicted = _interruptible(lambda: foreseen(kind, parameters, trials=run.trials, seed=run.seed))
    job = task(kind, parameters, seed=run.seed, trials=run.batch or min(setting.batch, run.trials))
    with progress() as bar:
        shown = bar.add_task(kind, total=-(-run.trials // job.trials))
        return judge(
            job,
            predicted,
            trials=run.trials,
            width=run.width,
            alarm=run.alarm,
            results=run.results,
            workers=run.workers,
            progress=lambda _, tally: bar.update(shown, completed=tally.size),
        )


def _show_kinds(*, as_json: bool) -> None:
    """All registered kinds: first those that the command runs, then those of figures and the ledger."""
    import simulations.simulators  # noqa: F401  registers all kinds
    from simulations.experiments.tasks import kinds, registered

    names = [*SETTINGS, *(kind for kind in kinds() if kind not in SETTINGS)]
    listed = [(kind, registered(kind).trial, SETTINGS.get(kind)) for kind in names]
    if as_json:
        entries = [
            {"kind": kind, "trial": trial, "batch": setting and setting.batch, "options": setting and setting.options}
            for kind, trial, setting in listed
        ]
        print_json({"kinds": entries})
        return
    rows = [
        [kind, trial, *((f"{setting.batch:,}", " ".join(setting.options)) if setting else ("", "from Python only"))]
        for kind, trial, setting in listed
    ]
    columns = [Column(name, kind="numbers" if name == "batch" else "words") for name in _LISTED]
    answers.print(for_terminal(Table("What can be simulated", columns, rows)), highlight=False)


def _show(verdict: Verdict) -> None:
    from simulations.experiments.tasks import registered

    title = f"{verdict.tally.trials:,} trials: {registered(verdict.task.kind).trial}"
    rows: list[Comparison] = []
    shown: dict[str, int] = {}
    rest: dict[str, list[Comparison]] = {}
    for each in verdict.comparisons:
        statement = each.predicted.statement
        shown[statement] = shown.get(statement, 0) + 1
        if shown[statement] > MOST_ROWS and each:
            rest.setdefault(statement, []).append(each)
        else:
            rows.append(each)
    answers.print(for_terminal(Table.of(title, _COMPARED, rows)), highlight=False)
    for statement, others in rest.items():
        largest = max(abs(each.agreement.z) for each in others)
        answers.print(f"{len(others)} more of {statement}: all agree, largest |z| {largest:.1f}", highlight=False)
    made = len(verdict.comparisons)
    wrong = sum(not each for each in verdict.comparisons)
    number = "1 comparison" if made == 1 else f"{made} comparisons"
    outcome = f"disagree in {wrong} of {number}" if wrong else f"agree in {number}"
    summary = f"Theory and simulation {outcome} (false alarms: {verdict.alarm:.0e} at most)"
    answers.print(summary, style="bold", highlight=False, markup=False)


def _theory(value: Interval | float) -> str:
    return f"[{value.low:.4g}, {value.high:.4g}]" if isinstance(value, Interval) else f"{value:.4g}"
