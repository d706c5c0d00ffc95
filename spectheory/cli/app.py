"""The commands; each hands over to a file of its own, loaded when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Exit, Option, Typer

import spectheory
from spectheory.cli.options import PairOptions, PredictOptions, TextOptions, grouped
from spectheory.cli.plan_options import PlanOptions
from spectheory.cli.simulation_options import FiguresOptions, RunOptions, SettingOptions
from spectheory.cli.statuses import MEANINGS
from spectheory.cli.theory_options import (
    AnswerOptions,
    BoundsOptions,
    DrawOptions,
    RulesOptions,
    TreeOptions,
    VerifyOptions,
)
from spectheory.cli.validate_options import ValidateOptions

app = Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit statuses: " + "; ".join(f"{status:d} {meaning}" for status, meaning in MEANINGS.items()) + ".",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"spectheory {spectheory.__version__}")
        raise Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What speculative decoding can give a model pair, and the most anyone could get."""


@app.command()
@grouped
def measure(
    out: Annotated[Path, Option(help="Folder for trace.parquet and latency.json.")],
    pair: PairOptions,
    text: TextOptions,
) -> None:
    """Measure a pair: statistics along texts (trace.parquet) and latencies (latency.json).

    A kill loses no finished prompt: the same command goes on where it stopped.
    """
    from spectheory.cli.measure import run_measure

    run_measure(pair, text, out)


@app.command()
@grouped
def predict(question: PredictOptions, pair: PairOptions, text: TextOptions) -> None:
    """Predict tokens per call and speed-up from a trace; without one, measure the pair first."""
    from spectheory.cli.predict import run_predict

    run_predict(question, pair, text)


@app.command()
@grouped
def plan(question: PlanOptions) -> None:
    """Plan a deployment: the fastest draft, rule and shape, what it takes to pay, and settings for engines."""
    from spectheory.cli.plan import run_plan

    run_plan(question)


@app.command()
@grouped
def validate(question: ValidateOptions, pair: PairOptions) -> None:
    """Decode with a pair and hold calls and wall-clock against what was predicted, with an error budget.

    Finished prompts are kept; the same command goes on from them. Status 0 if counted and expected calls agree, 1 if
    not.
    """
    if question.of:
        from spectheory.cli.validate_joined import run_joined

        raise Exit(run_joined(question.of, question, pair))
    from spectheory.cli.validate import run_validate

    raise Exit(run_validate(question, pair))


@app.command()
@grouped
def rules(question: RulesOptions, draws: DrawOptions) -> None:
    """What every verification rule accepts with k candidates: of two pmfs, or on average along a trace."""
    from spectheory.cli.rules import run_rules

    run_rules(question, draws)


@app.command()
@grouped
def bounds(question: BoundsOptions, draws: DrawOptions) -> None:
    """Upper bounds on tokens per call, from moments, pmfs, rank probabilities or a trace."""
    from spectheory.cli.bounds import run_bounds

    run_bounds(question, draws)


@app.command()
@grouped
def tree(question: TreeOptions, answer: AnswerOptions) -> None:
    """The best draft tree of a size: for the texts of a trace, or for i.i.d. ranks."""
    from spectheory.cli.tree import run_tree

    run_tree(question, as_json=answer.json)


@app.command()
@grouped
def verify(question: VerifyOptions) -> None:
    """Check the theory: every statement with its evidence and its negative controls, or a claim of your own.

    Status 0 if everything came out as the ledger says, 1 if not.
    """
    from spectheory.cli.verify import run_verify

    raise Exit(run_verify(question))


@app.command()
@grouped
def figures(question: FiguresOptions) -> None:
    """Figures of bounds against simulations: pictures, data, and whether theory and simulation agree.

    Finished batches are kept; the same command goes on from them. Status 0 if all agree, 1 if not.
    """
    from spectheory.cli.figures import run_figures

    raise Exit(run_figures(question))


@app.command()
@grouped
def simulate(question: SettingOptions, run: RunOptions) -> None:
    """Simulate one setting and hold it against the theory; `spectheory simulate list` says what there is.

    Status 0 if both agree, 1 if not.
    """
    from spectheory.cli.simulate import run_simulate

    raise Exit(run_simulate(question, run))
