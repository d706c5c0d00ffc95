"""What commands read: pmfs as files or plain numbers, names of rules, latency tables."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from spectheory.cli.console import remark, remarks
from spectheory.cost import LatencyTable
from spectheory.deployment import EngineSettings, other_machine
from spectheory.errors import NOT_NUMBERS, PmfError, SettingError
from spectheory.files import read_text
from spectheory.prediction.plan_answer import named_rules
from spectheory.trace.samples import PAIR
from spectheory.verification.registry import left_out

MOST_WORKERS = 1024
"""Processes that a command starts."""
KINDS = "a .npy, .json or text file of numbers, or plain numbers as 0.5,0.3,0.2"
"""What a pmf may be given as."""


def asked(question: Any) -> dict[str, Any]:
    """What a theory command asks of the function that answers: its options, and the numbers of pmfs."""
    values = {name: value for name, value in vars(question).items() if name not in ("json", "all", "explain")}
    pmfs = [name for name, value in values.items() if name.endswith("_pmf") and value is not None]
    return values | {name: _read_numbers(values[name], f"--{name.replace('_', '-')}") for name in pmfs}


def refuse_idle(
    question: Any,
    taken: Collection[str],
    source: str,
    otherwise: str,
    limit: str = "these need a trace: statistics of texts",
) -> None:
    """Refuse options that an answer from such a source does not take."""
    hints = get_type_hints(type(question), include_extras=True)
    idle = [f.name for f in fields(question) if f.name not in taken and getattr(question, f.name) != f.default]
    if idle:
        named = ", ".join(hints[name].__metadata__[0].default for name in idle)  # how it is written
        raise SettingError(
            f"{named} given with {source}",
            limit=limit,
            remedy=f"leave it out, or {otherwise}",
        )


def remark_engines_left_out(asked: Sequence[str] | None, settings: Sequence[EngineSettings]) -> None:
    """Name the engines that were asked for and have no settings."""
    known = {each.engine for each in settings}
    for name in asked or ():
        if name not in known:
            remarks.print(f"no settings of {name}: it does not run this draft, these rules or this sampling")


def in_commands(*files: Path | None) -> str:
    """How a trace is written in the commands that an answer names; ``TRACE`` where none was given."""
    return shlex.join(str(each) for each in files if each) or "TRACE"


def _read_numbers(source: str, name: str) -> NDArray[Any]:
    """Numbers ``[V]`` or ``[n, V]`` in the precision they came in."""
    if not source.strip():
        raise PmfError(f"{name} is empty", limit=f"needs {KINDS}", remedy="give numbers or a file")
    plain = _numbers(source.strip("[] "))
    return np.asarray(plain, dtype=np.float64) if plain else _from_file(Path(source), name)


def _numbers(text: str) -> list[float]:
    """The numbers of a line, separated by commas or blanks; none if it holds anything else."""
    try:
        return [float(word) for part in text.strip(", ").split(",") for word in part.split() or [part]]
    except ValueError:
        return []


def _from_file(path: Path, name: str) -> NDArray[Any]:
    try:
        if path.suffix == ".npy" and not path.is_fifo():
            with path.open("rb") as file:
                return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        text = read_text(path, encoding="utf-8-sig")
        return _table(json.loads(text) if path.suffix == ".json" else _lines(text))
    except FileNotFoundError as error:
        what = f"{name} {str(path)!r} is neither numbers nor a file"
        raise PmfError(what, limit=f"needs {KINDS}", remedy="check the path") from error
    except Exception as error:  # numpy's reader raises nearly anything on a broken file
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        if "allow_pickle" in reason:  # numpy's advice is to load it all the same
            reason = NOT_NUMBERS
        raise PmfError(
            f"{name} {str(path)!r} cannot be read ({reason})", limit=f"needs {KINDS}", remedy="check the file"
        ) from error


def _lines(text: str) -> Any:
    """The rows of a text file; a column of single numbers is one pmf. Lines that begin with # are skipped."""
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            rows.append(_numbers(line))
            if not rows[-1]:
                raise ValueError(f"line {number} is not a row of numbers")
    if rows and all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    return rows[0] if len(rows) == 1 else rows


def _table(values: Any) -> NDArray[Any]:
    """A list of numbers, or of equally long lists of numbers."""
    if not isinstance(values, list) or not values:
        raise ValueError("it holds no list of numbers")
    rows = values if isinstance(values[0], list) else [values]
    lengths = {len(row) if isinstance(row, list) else -1 for row in rows}
    if len(lengths) > 1:
        raise ValueError("its rows differ in length")
    if not all(type(entry) in (int, float) for row in rows for entry in row):
        raise ValueError("an entry is no number")
    return np.asarray(values, dtype=np.float64)


def checked_rules(names: list[str] | None, *, lossy: bool = False) -> list[str] | None:
    """Names of rules that are known; None where none is named."""
    _remark_left_out()
    named_rules(names or None, lossy=lossy)
    return list(dict.fromkeys(names)) if names else None


def _remark_left_out() -> None:
    """Say which rules of installed packages cannot be used."""
    for reason in left_out():
        remark(reason)


def read_latencies(file: Path, measured: Mapping[str, Any]) -> LatencyTable:
    """The table in a file; of another machine or of other models than were measured it is used all the same."""
    table = LatencyTable.read(file)
    _remark_others(table, file, measured)
    return table


def _remark_others(table: LatencyTable, file: Path, measured: Mapping[str, Any]) -> None:
    """Say where a table is of another machine or of other models, and which of its passes are slow."""
    machine = other_machine(table.provenance.get("hardware"))
    if machine and file.parent != PAIR:  # it is known to be recorded
        remark(f"{file} is of another machine: {machine}; speed-ups are for that one")
    others = [who for who in ("target", "draft") if _differ(table.provenance.get(who), measured.get(who))]
    if others:
        named = " and ".join(f"{who} {table.provenance[who].get('name')}" for who in others)
        remark(f"{file} is of other models than the trace: {named}; speed-ups are for those")
    remark_slower(table, str(file))


def remark_slower(table: LatencyTable, name: str) -> None:
    """Say which passes took longer than one on twice the tokens: something other than their work decided the time."""
    for model, m in table.slower_on_fewer:
        few, many = (getattr(table, model)[tokens].best for tokens in (m, 2 * m))
        remark(
            f"{name}: the {model}'s pass on {m} tokens takes {few:.3g} s, longer than on {2 * m} ({many:.3g} s); "
            "speed-ups that need it are those of this slow pass"
        )


def _differ(one: Any, other: Any) -> bool:
    """Whether two descriptions are of different weights, as far as they say."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    here, there = one.get("fingerprint"), other.get("fingerprint")
    return here is not None and there is not None and here != there
