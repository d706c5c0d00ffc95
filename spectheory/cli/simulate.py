"""``spectheory simulate``: one setting, counted and held against what theory says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.table import Table

from spectheory.cli.console import answers, remarks
from spectheory.cli.inputs import in_range
from spectheory.cli.interrupts import Interrupted, interruptible
from spectheory.cli.progress import progress
from spectheory.cli.settings import SETTINGS, Setting
from spectheory.cli.simulation_options import RunOptions, SettingOptions
from spectheory.cli.statuses import Status
from spectheory.errors import SettingError, load_extra
from spectheory.intervals import Interval

if TYPE_CHECKING:
    from simulations.counts.tally import Tally
    from simulations.experiments.stopping import Stop
    from simulations.experiments.tasks import Task
    from simulations.verdicts.predictions import Comparison, Predicted

MOST_TRIALS, MOST_WORKERS = 10**12, 1024
LEAST_ALARM = 1e-100
MOST_ROWS = 8
"""Comparisons of one statement that are shown; the others in a line."""


def run_simulate(question: SettingOptions, run: RunOptions) -> int:
    """Simulate and compare; the status says whether theory and simulation agree."""
    try:
        return _simulated(question, run)
    except KeyboardInterrupt:
        if run.results is None:
            raise Interrupted("nothing was kept (--results FILE keeps finished batches)") from None
        raise


def _simulated(question: SettingOptions, run: RunOptions) -> int:
    if question.kind == "list":
        _show_kinds(as_json=run.json)
        return Status.DONE
    setting = _setting(question.kind)
    load_extra("numba", extra="fast")
    _check(run)
    parameters = setting.parameters(question.kind, question)
    import simulations.simulators  # noqa: F401  registers all kinds
    from simulations.experiments.tasks import task

    predicted = interruptible(lambda: _predicted(question.kind, parameters, run))
    job = task(question.kind, parameters, seed=run.seed, trials=run.batch or min(setting.batch, run.trials))
    stop = _stop(run, predicted)
    tally = _collected(job, stop, run)
    compared = _compared(tally, predicted, run)
    if run.json:
        print(json.dumps(_as_dict(job, tally, compared, run), indent=2, allow_nan=False))
    else:
        _show(setting, tally, compared, run)
    return Status.DONE if all(compared) else Status.DISAGREEMENT


def _setting(kind: str) -> Setting:
    if kind not in SETTINGS:
        raise SettingError(
            f"unknown simulation {kind!r}",
            limit=f"there are {', '.join(SETTINGS)}",
            remedy="spectheory simulate list says what they are",
        )
    return SETTINGS[kind]


def _predicted(kind: str, parameters: dict[str, Any], run: RunOptions) -> tuple[Predicted, ...]:
    """What theory says, after a first trial: bad input is refused there, in a line."""
    from simulations.counts.quantities import Mean
    from simulations.draws.streams import words
    from simulations.experiments.registry import registered
    from simulations.verdicts.predictions import predictions

    registered(kind).run(parameters, 1, words(run.seed))
    found = predictions(kind, parameters)
    if run.trials < 2 and any(isinstance(each.quantity, Mean) for each in found):
        raise SettingError(
            f"--trials is {run.trials}", limit=f"{kind} has means, which need 2 for an interval", remedy="run more"
        )
    return found


def _check(run: RunOptions) -> None:
    in_range("--trials", run.trials, MOST_TRIALS)
    if run.batch is not None:
        in_range("--batch", run.batch, MOST_TRIALS)
    if run.workers is not None:
        in_range("--workers", run.workers, MOST_WORKERS)
    if run.seed < 0:
        raise SettingError(f"--seed is {run.seed}", limit="must be >= 0", remedy="0 is the default")
    if not LEAST_ALARM <= run.alarm < 1:
        raise SettingError(
            f"--alarm is {run.alarm}", limit=f"must lie in [{LEAST_ALARM:.0e}, 1)", remedy="1e-6 is the default"
        )
    if run.width is not None and not run.width > 0:
        raise SettingError(f"--width is {run.width}", limit="must be > 0", remedy="0.01 is 1% of the value")


def _stop(run: RunOptions, predicted: tuple[Predicted, ...]) -> Stop:
    from simulations.experiments.stopping import Stop

    if run.width is None:
        return Stop(trials=run.trials)
    return Stop(trials=run.trials, width=run.width, of=predicted[0].quantity)


def _collected(job: Task, stop: Stop, run: RunOptions) -> Tally:
    from simulations.experiments.collect import collect

    with progress() as bar:
        shown = bar.add_task(job.kind, total=stop.batches(job))
        found = collect(
            [job],
            stop=stop,
            results=run.results,
            workers=run.workers,
            progress=lambda _, tally: bar.update(shown, completed=tally.size),
        )
    for remark in found.remarks:
        remarks.print(remark, markup=False)
    return found[job]


def _compared(tally: Tally, predicted: tuple[Predicted, ...], run: RunOptions) -> tuple[Comparison, ...]:
    """The verdicts; one that was looked for batch after batch shares the alarm rate with the earlier looks."""
    from simulations.verdicts.predictions import compare

    looks = tally.size if run.width is not None else 0
    return compare(tally, predicted, run.alarm / (looks * (looks + 1)) if looks else run.alarm)


def _show_kinds(*, as_json: bool) -> None:
    if as_json:
        kinds = [
            {"kind": kind, "trial": setting.says, "batch": setting.batch, "options": setting.options}
            for kind, setting in SETTINGS.items()
        ]
        print(json.dumps({"kinds": kinds}, indent=2))
        return
    table = Table(title="What can be simulated", title_justify="left", box=None, pad_edge=False)
    for heading in ("kind", "a trial is", "batch", "options"):
        table.add_column(heading, justify="right" if heading == "batch" else "left")
    for kind, setting in SETTINGS.items():
        table.add_row(kind, setting.says, f"{setting.batch:,}", " ".join(setting.options))
    answers.print(table, highlight=False)


def _show(setting: Setting, tally: Tally, compared: tuple[Comparison, ...], run: RunOptions) -> None:
    table = Table(title=f"{tally.trials:,} trials: {setting.says}", title_justify="left", box=None, pad_edge=False)
    for heading in ("", "what", "id", "observed", "95% interval", "theory", "side", "z"):
        right = heading in ("observed", "theory", "z")
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading not in ("what", "side"))
    shown: dict[str, int] = {}
    rest: dict[str, list[Comparison]] = {}
    for each in compared:
        statement = each.predicted.statement
        shown[statement] = shown.get(statement, 0) + 1
        if shown[statement] > MOST_ROWS and each:
            rest.setdefault(statement, []).append(each)
        else:
            table.add_row(*_row(each))
    answers.print(table, highlight=False)
    for statement, others in rest.items():
        largest = max(abs(each.agreement.z) for each in others)
        answers.print(f"{len(others)} more of {statement}: all agree, largest |z| {largest:.1f}", highlight=False)
    wrong = sum(not each for each in compared)
    number = "1 comparison" if len(compared) == 1 else f"{len(compared)} comparisons"
    verdict = f"disagree in {wrong} of {number}" if wrong else f"agree in {number}"
    answers.print(
        f"Theory and simulation {verdict} (false alarms: {run.alarm:.0e} at most)",
        style="bold",
        highlight=False,
        markup=False,
    )


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


def _as_dict(job: Task, tally: Tally, compared: tuple[Comparison, ...], run: RunOptions) -> dict[str, Any]:
    return {
        "task": job.as_dict(),
        "id": job.id,
        "tally": tally.as_dict(),
        "alarm": run.alarm,
        "agree": all(compared),
        "comparisons": [each.as_dict() for each in compared],
    }
