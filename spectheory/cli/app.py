"""The commands; each hands over to a file of its own, loaded when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option, Typer

from spectheory.cli.options import PairOptions, PredictOptions, TextOptions, grouped

app = Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def _root() -> None:
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
