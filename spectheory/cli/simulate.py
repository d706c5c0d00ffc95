"""``spectheory simulate``: one setting, counted and held against what theory says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spectheory.checks import in_range, whole
from spectheory.cli.answer import print_json
from spectheory.cli.console import answers, ready_folder, remarks
from spectheory.cli.inputs import MOST_WORKERS
from spectheory.cli.interrupts import Interrupted, interruptible
from spectheory.cli.progress import progress
from spectheory.cli.settings import SETTINGS, Setting
from spectheory.cli.simulation_options import RunOptions, SettingOptions
from spectheory.cli.statuses import Status
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.processes import prepare
from spectheory.reports import Column, Table
from spectheory.reports.render import for_terminal

if TYPE_CHECKING:
    from simulations.verdicts.judging import Verdict
    from simulations.verdicts.predictions import Comparison

MOST_TRIALS = 10**12
LEAST_ALARM = 1e-100
MOST_ROWS = 8
"""Comparisons of one statement that are shown; the others in a line."""
_LISTED = ("kind", "a trial is", "batch", "options")
_COMPARED = [
    *(Column("", kind="names"), Column("what", kind="words"), Column("id", kind="names"), Column("observed")),
    *(Column("95% interval", kind="names"), Column("theory"), Column("side", kind="words"), Column("z")),
]


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
    setting = _setting(question.kind)
    _check(run)
    from simulations.experiments import PRELOADED

    prepare(PRELOADED)  # beside the theory, which is worked out first
    if run.out is not None:
        ready_folder(run.out)
    verdict = _judged(question, setting, run)
    for remark in verdict.remarks:
        remarks.print(remark, markup=False)
    if run.json:
        print_json(verdict.as_dict())
    else:
        _show(verdict)
    return Status.DONE if verdict else Status.DISAGREEMENT


def _setting(kind: str) -> Setting:
    if kind not in SETTINGS:
        raise SettingError(
            f"unknown simulation {kind!r}",
            limit=f"there are {', '.join(SETTINGS)}",
            remedy="spectheory simulate list says what they are",
        )
    return SETTINGS[kind]


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


def _judged(question: SettingOptions, setting: Setting, run: RunOptions) -> Verdict:
    kind, parameters = question.kind, setting.parameters(question.kind, question)
    import simulations.simulators  # noqa: F401  registers all kinds
    from simulations.experiments.tasks import task
    from simulations.verdicts.judging import foreseen, judge

    predicted = interruptible(lambda: foreseen(kind, parameters, trials=run.trials, seed=run.seed))
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
    from simulations.experiments.registry import kinds, registered

    names = [*SETTINGS, *(kind for kind in kinds() if kind not in SETTINGS)]
    listed = [(kind, registered(kind).trial, SETTINGS.get(kind)) for kind in names]
    if as_json:
        told = [
            {"kind": kind, "trial": trial, "batch": found and found.batch, "options": found and found.options}
            for kind, trial, found in listed
        ]
        print_json({"kinds": told})
        return
    rows = [
        [kind, trial, *((f"{found.batch:,}", " ".join(found.options)) if found else ("", "from Python only"))]
        for kind, trial, found in listed
    ]
    columns = [Column(name, kind="numbers" if name == "batch" else "words") for name in _LISTED]
    answers.print(for_terminal(Table("What can be simulated", columns, rows)), highlight=False)


def _show(verdict: Verdict) -> None:
    from simulations.experiments.registry import registered

    title = f"{verdict.tally.trials:,} trials: {registered(verdict.task.kind).trial}"
    rows: list[list[str]] = []
    shown: dict[str, int] = {}
    rest: dict[str, list[Comparison]] = {}
    for each in verdict.comparisons:
        statement = each.predicted.statement
        shown[statement] = shown.get(statement, 0) + 1
        if shown[statement] > MOST_ROWS and each:
            rest.setdefault(statement, []).append(each)
        else:
            rows.append(_row(each))
    answers.print(for_terminal(Table(title, _COMPARED, rows)), highlight=False)
    for statement, others in rest.items():
        largest = max(abs(each.agreement.z) for each in others)
        answers.print(f"{len(others)} more of {statement}: all agree, largest |z| {largest:.1f}", highlight=False)
    answers.print(_summary(verdict), style="bold", highlight=False, markup=False)


def _summary(verdict: Verdict) -> str:
    made = len(verdict.comparisons)
    wrong = sum(not each for each in verdict.comparisons)
    number = "1 comparison" if made == 1 else f"{made} comparisons"
    found = f"disagree in {wrong} of {number}" if wrong else f"agree in {number}"
    return f"Theory and simulation {found} (false alarms: {verdict.alarm:.0e} at most)"


def _row(each: Comparison) -> list[str]:
    value, observed = each.predicted.value, each.observed
    theory = f"[{value.low:.4g}, {value.high:.4g}]" if isinstance(value, Interval) else f"{value:.4g}"
    return [
        "ok" if each else "NO",
        each.predicted.says,
        each.predicted.statement,
        f"{observed.best:.4g}",
        f"{observed.low:.4g} to {observed.high:.4g}",
        theory,
        each.predicted.side,
        f"{each.agreement.z:.1f}",
    ]
