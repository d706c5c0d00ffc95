"""The commands: what each says and takes. A command calls ``run_NAME`` of its file, loaded when called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from functools import cache
from importlib import import_module
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

from typer import Exit, Option, Typer
from typer.main import get_command

import spectheory
from spectheory.cli import options as of
from spectheory.cli.grammar import WIDTH, Command
from spectheory.cli.progress import loading_torch
from spectheory.cli.statuses import MEANINGS

LOADS_TORCH = ("measure", "validate", "bench")
"""Commands that cannot begin without torch; others load it where they need it."""

FILES = {
    **dict.fromkeys(("bounds", "rules", "tree"), "theory"),
    **dict.fromkeys(("import", "samples"), "logs"),
    **dict.fromkeys(("gate", "noise"), "compare"),
}
"""Where ``run_NAME`` of a command is, if not in the file of its name."""

app = Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
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
    """Predict what speculative decoding gives a model pair, and the most that anyone could get."""


def _add(name: str, *kinds: type) -> None:
    """Add a command that fills in the dataclasses `kinds` from its options; the first one's docstring is its help."""

    def run(**values: Any) -> None:
        filled = [kind(**{f.name: values[f.name] for f in fields(kind)}) for kind in kinds]
        load = loading_torch if name in LOADS_TORCH else import_module
        raise Exit(getattr(load(f"spectheory.cli.{FILES.get(name, name)}"), f"run_{name}")(*filled) or 0)

    parameters = [each for kind in kinds for each in _parameters(kind)]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    app.command(name, cls=Command, help=kinds[0].__doc__)(run)


def _parameters(kind: type) -> Iterator[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for each in fields(kind):
        default = Parameter.empty if each.default is MISSING else each.default
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])


_add("measure", of.MeasureOptions, of.PairOptions, of.SweptText, of.MeasuringOptions)
_add("import", of.ImportOptions)
_add("predict", of.PredictOptions, of.PairOptions, of.TextOptions, of.MeasuringOptions)
_add("plan", of.PlanOptions)
_add("validate", of.ValidateOptions, of.PairOptions)
_add("bench", of.BenchOptions)
_add("judge", of.JudgeOptions, of.PairOptions)
_add("compare", of.CompareOptions)
_add("gate", of.GateOptions)
_add("noise", of.NoiseOptions)
_add("watch", of.WatchOptions)
_add("why", of.WhyOptions)
_add("validations", of.ValidationsOptions)
_add("rules", of.RulesOptions)
_add("bounds", of.BoundsOptions)
_add("tree", of.TreeOptions)
_add("verify", of.VerifyOptions)
_add("figures", of.FiguresOptions)
_add("simulate", of.SettingOptions, of.RunOptions)
_add("samples", of.SamplesOptions)
_add("doctor", of.DoctorOptions)


@cache
def parser() -> Any:
    """What parses a command line and runs it."""
    return get_command(app)
