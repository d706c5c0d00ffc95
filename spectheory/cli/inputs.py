"""What the theory commands read: pmfs as files or plain numbers, laws of a rank, traces."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spectheory.distributions import sum_tolerance
from spectheory.errors import NOT_NUMBERS, PmfError, SettingError
from spectheory.files import read_text

Floats = NDArray[np.float64]

MOST_WORKERS = 1024
"""Processes that a command starts."""
KINDS = "a .npy, .json or text file of numbers, or plain numbers as 0.5,0.3,0.2"
"""What a pmf may be given as."""


@dataclass(frozen=True)
class Pmfs:
    """Pmfs of one option, `rows` ``[n, V]`` in double precision, and what was done to them, one sentence each."""

    rows: Floats
    notes: tuple[str, ...] = ()


def read_pmfs(source: str, name: str) -> Pmfs:
    """One pmf or a table of them; single-precision rows are scaled to sum to one, and a note says so."""
    values = _read(source, name)
    rows = np.atleast_2d(values).astype(np.float64)
    _check_entries(rows, name)
    totals = rows.sum(axis=1)
    tolerance = sum_tolerance(values.dtype, np)
    off = np.abs(totals - 1)
    if off.max() > tolerance:
        raise _off(totals, int(off.argmax()), name, f"must sum to 1 within {tolerance:.1e}")
    if tolerance == sum_tolerance(rows.dtype, np):
        return Pmfs(rows)
    note = f"{name} is in {values.dtype.name}: rows were scaled to sum to one, by {off.max():.1e} at most."
    return Pmfs(rows / totals[:, None], (note,))


def read_rank_law(source: str, name: str) -> Floats:
    """P(R = 1), P(R = 2), ..., ``[A]``; the rest is P(R > A). A sum that rounding put above one is cut."""
    values = _read(source, name)
    if values.ndim != 1:
        raise PmfError(
            f"{name} holds {len(values)} rows", limit="one law of a rank", remedy="average them, or name one"
        )
    law = values.astype(np.float64)
    _check_entries(law[None], name)
    total = float(law.sum())
    if total > 1 + sum_tolerance(values.dtype, np):
        raise _off(np.array([total]), 0, name, "must sum to at most 1")
    if total == 0:
        raise PmfError(f"{name} is zero everywhere", limit="needs a positive entry", remedy="give P(R = 1), P(R = 2)")
    return law / max(total, 1.0)


def letters(law: Floats) -> int:
    """Size of the rank alphabet: a mass that is missing to one by more than rounding is one letter more."""
    return len(law) + int(1 - math.fsum(law) > len(law) * np.finfo(law.dtype).eps)


def one_source(given: dict[str, bool]) -> str:
    """The one source of numbers that was given."""
    chosen = [name for name, here in given.items() if here]
    if len(chosen) != 1:
        raise SettingError(
            f"{' and '.join(chosen)} are given" if chosen else "no input is given",
            limit=f"needs one of {', '.join(given)}",
            remedy="leave the others out" if chosen else "name one",
        )
    return chosen[0]


def check_seed(value: int) -> None:
    """Refuse a negative seed."""
    if value < 0:
        raise SettingError(f"--seed is {value}", limit="must be >= 0", remedy="0 is the default")


def in_range(name: str, given: int | Iterable[int] | None, most: int) -> None:
    """Check counts given on the command line; nothing given is fine."""
    for value in [given] if isinstance(given, int) else given or ():
        if not 1 <= value <= most:
            limit = f"must be in 1..{most}"
            raise SettingError(f"{name} is {value}", limit=limit, remedy="choose a number in that range")


def _off(totals: Floats, row: int, name: str, limit: str) -> PmfError:
    """The error of a row that does not sum to what it should."""
    where = f"{name} row {row}" if len(totals) > 1 else name
    excess = float(totals[row]) - 1
    side = "too much" if excess > 0 else "too little"
    return PmfError(
        f"{where} sums to {totals[row]:.10g}, {abs(excess):.3g} {side}", limit=limit, remedy="normalise it first"
    )


def _check_entries(rows: Floats, name: str) -> None:
    bad = ~((rows >= 0) & (rows < math.inf))
    if bad.any():
        row, entry = (int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
        where = f"{name}[{row}, {entry}]" if len(rows) > 1 else f"{name}[{entry}]"
        raise PmfError(
            f"{where} is {rows[row, entry]:g}",
            limit="probabilities are finite and >= 0",
            remedy="pass probabilities, not logits",
        )


def _read(source: str, name: str) -> NDArray[Any]:
    """Numbers ``[V]`` or ``[n, V]`` in the precision they came in."""
    if not source.strip():
        raise PmfError(f"{name} is empty", limit=f"needs {KINDS}", remedy="give numbers or a file")
    plain = _numbers(source.strip("[] "))
    values = np.asarray(plain, dtype=np.float64) if plain else _from_file(Path(source), name)
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2) or not values.size:
        raise PmfError(
            f"{name} is an array {values.shape} of {values.dtype.name}",
            limit="needs real numbers [V] or [n, V]",
            remedy="store probabilities, a row per pmf",
        )
    return values if values.dtype.kind == "f" else values.astype(np.float64)


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


def _table(values: Any) -> Floats:
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


def cache_folder() -> Path:
    """Where measurements of unnamed folders are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spectheory"
