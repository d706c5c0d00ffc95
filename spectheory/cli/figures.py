"""``spectheory figures``: bounds against simulations, made or drawn again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from spectheory.checks import in_range, whole
from spectheory.cli.answer import print_json, ready_page
from spectheory.cli.console import answers, ready_folder, remark
from spectheory.cli.inputs import MOST_WORKERS
from spectheory.cli.options import FiguresOptions
from spectheory.cli.progress import progress
from spectheory.cli.statuses import Status
from spectheory.pages import write_page
from spectheory.pages.figures import figure_picture, figures_report
from spectheory.processes import prepare
from spectheory.reports import Column, Table
from spectheory.reports.table import for_terminal

if TYPE_CHECKING:
    from simulations.sweeps.base import Sweep
    from simulations.sweeps.making import Made

_COLUMNS = (
    *(Column(name, kind="words") for name in ("figure", "statements", "setting")),
    *(Column("compared"), Column("agree")),
)
MOST_SHOWN = 8
"""Disagreements that are named one by one."""


def run_figures(question: FiguresOptions) -> int:
    """Make or redraw the figures and show what came out."""
    from simulations.experiments import PRELOADED

    if not question.redraw:
        prepare(PRELOADED)
    from simulations.sweeps import sweeps
    from simulations.sweeps.making import redraw

    in_range("--workers", question.workers, MOST_WORKERS)
    whole("--seed", question.seed, least=0, remedy="0 is the default")
    ready_page(question.report)
    wanted = sweeps(question.names)
    if not question.redraw:
        ready_folder(question.out)
    began = time.perf_counter()
    made = [redraw(sweep, question.out) for sweep in wanted] if question.redraw else _made(wanted, question)
    _show(made, question, time.perf_counter() - began)
    if question.report:
        images = [next(file for file in one.files if file.suffix == ".svg") for one in made]
        contents = [one.content for one in made]
        pictures = list(map(figure_picture, contents, images))
        write_page(figures_report(contents), question.report, title="Figures", parts=pictures)
        remark(f"written: {question.report}")
    return Status.DISAGREEMENT if any(one.disagreements for one in made) else Status.DONE


def _made(wanted: list[Sweep], question: FiguresOptions) -> list[Made]:
    from simulations.sweeps import Scale
    from simulations.sweeps.making import Making

    with progress() as bar:
        task = bar.add_task("simulating", total=None)
        making = Making(
            wanted,
            Scale(question.full, question.seed),
            question.out,
            workers=question.workers,
            on_progress=lambda done, total, kind: bar.update(task, completed=done, total=total, description=kind),
            on_made=lambda made: bar.console.print(f"{made.sweep.name} is made", highlight=False),
        )
        made = making.make()
    for each in making.remarks:
        remark(each)
    return made


def _show(made: list[Made], question: FiguresOptions, seconds: float) -> None:
    if question.json:
        print_json({"figures": [_as_dict(one) for one in made]})
        return
    rows = []
    for one in made:
        content = one.content
        number = len(content["comparisons"])
        agree = f"{number - len(one.disagreements)}" if number else "-"
        rows.append([one.sweep.name, ", ".join(content["statements"]), content["setting"], f"{number}", agree])
    answers.print(for_terminal(Table("Theory against simulation", _COLUMNS, rows)), highlight=False)
    for one in made:
        for row in one.disagreements[:MOST_SHOWN]:
            observed = row["observed"]
            line = f"{one.sweep.name}: {row['label']}: {row['says']} ({row['statement']}) is {observed['best']:.6g}"
            answers.print(
                f"{line} [{observed['low']:.6g}, {observed['high']:.6g}], theory says {row['predicted']}",
                highlight=False,
                markup=False,
            )
    wrong = sum(len(one.disagreements) for one in made)
    alarm = max(one.content["alarm"] for one in made)
    verdict = f"theory and simulation {f'disagree in {wrong} comparisons' if wrong else 'agree everywhere'}"
    count = "1 figure" if len(made) == 1 else f"{len(made)} figures"
    answers.print(
        f"{count} in {seconds:.0f} s: {verdict} (false alarms: {alarm:.0e} a figure at most)",
        style="bold",
        highlight=False,
        markup=False,
    )


def _as_dict(made: Made) -> dict[str, Any]:
    content = made.content
    return {
        **{name: content[name] for name in ("figure", "title", "statements", "setting", "seed", "alarm")},
        "files": [str(path) for path in made.files],
        "comparisons": len(content["comparisons"]),
        "disagreements": made.disagreements,
    }
