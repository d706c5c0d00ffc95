"""Named errors: every message is one line with the value, the limit and the remedy."""

from __future__ import annotations

import csv
import importlib
from contextvars import ContextVar
from types import ModuleType
from typing import Any

__all__ = [
    "FOREIGN",
    "DeviceMemoryError",
    "EngineError",
    "ImpossibleTextError",
    "LogitsError",
    "MissingExtraError",
    "ModelError",
    "OutputError",
    "PmfError",
    "SettingError",
    "ShapeError",
    "SpectheoryError",
    "TextError",
    "TornTraceError",
    "TraceError",
    "WorkerError",
]

FOREIGN = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError, csv.Error)
"""What reading data that somebody else wrote may raise: numbers that are none or too large, fields of another kind,
nesting too deep. Every reader of such data catches these alone, and says in one line what is wrong."""


class SpectheoryError(ValueError):
    """Base of every error this package raises on purpose: what was given, what is accepted, and what to do.

    Examples
    --------
    >>> print(SettingError("temperature is -1", limit="must be >= 0", remedy="use 0 for greedy"))
    temperature is -1: must be >= 0; use 0 for greedy
    """

    def __init__(self, what: str, *, limit: str, remedy: str) -> None:
        self.what, self.limit, self.remedy = what, limit, remedy
        super().__init__(" ".join(f"{_readable(what)}: {limit}; {remedy}".split()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling, for workers: the constructor takes more than the message."""
        return _received, (type(self), self.args, dict(self.__dict__))


def _readable(what: str, most: int = 800) -> str:
    """Both ends of what is too long to read, such as a number of thousands of digits."""
    return what if len(what) <= most else f"{what[: most - 200]} [...] {what[-200:]}"


def _received(kind: type[SpectheoryError], args: tuple[Any, ...], state: dict[str, Any]) -> SpectheoryError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class PmfError(SpectheoryError):
    """An array is not a probability mass function (negative, NaN, does not sum to one)."""


class LogitsError(SpectheoryError):
    """A row of logits has no pmf (NaN, +inf, or -inf everywhere); ``row`` is its index."""

    def __init__(self, what: str, *, limit: str, remedy: str, row: int) -> None:
        super().__init__(what, limit=limit, remedy=remedy)
        self.row = row


class ShapeError(SpectheoryError):
    """Arrays whose shapes do not fit together."""


class SettingError(SpectheoryError):
    """A setting (k, temperature, capacity, ...) outside its range."""


class TextError(SpectheoryError):
    """A text, prompt file or log-probability list that cannot be used."""


class ImpossibleTextError(TextError):
    """A text that the target cannot output under the stated settings."""


class TraceError(SpectheoryError):
    """A file that is not a readable trace, or a trace without the columns a command needs."""


class TornTraceError(TraceError):
    """A trace file that is incomplete: cut off, damaged, or no Parquet file."""


class ModelError(SpectheoryError):
    """A model, tokenizer or pair that cannot be used."""


class DeviceMemoryError(ModelError):
    """A device that ran out of memory."""


class EngineError(SpectheoryError):
    """An engine or a server that fails, or answers with what cannot be used."""


class WorkerError(SpectheoryError):
    """Work that a worker failed at, workers that die again and again, or a scheduler that is lost."""


class OutputError(SpectheoryError):
    """An output file or folder that cannot be written."""


class MissingExtraError(SpectheoryError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


ON_COMMAND_LINE: ContextVar[bool] = ContextVar("ON_COMMAND_LINE", default=False)
"""Whether the command line asks, which knows arguments as options."""


SITE = "https://github.com/spectheory/spectheory/tree/main/docs"
"""Where the pages stand; a wheel has none."""


def page(name: str) -> str:
    """The address of a page of the documentation.

    Examples
    --------
    >>> page("formats").endswith("/docs/formats.md")
    True
    """
    return f"{SITE}/{name}.md"


def argument(name: str, option: str = "") -> str:
    """What a message calls an argument: its name, or its option where the command line asks.

    Examples
    --------
    >>> argument("target_pmf")
    'target_pmf'
    """
    return (option or f"--{name.replace('_', '-')}") if ON_COMMAND_LINE.get() else name


def reason_of(error: Exception) -> str:
    """Why something could not be read, in a few words."""
    if isinstance(error, SpectheoryError):
        return f"{error.what}, {error.limit}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"no {error}" if isinstance(error, KeyError) else str(error)


NOT_NUMBERS = "holds Python objects, not only numbers; it is never loaded"
"""Message for a pickle, which could run code; it replaces numpy's advice to load it anyway."""


def load_extra(module: str, *, extra: str | None) -> ModuleType:
    """Import an optional dependency; if it is missing, the error names its extra (None: a plain install).

    Examples
    --------
    >>> load_extra("math", extra="models").pi > 3
    True
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{error.name} is not installed",
            limit=f"this needs the extra {extra!r}" if extra else "every install of spectheory needs it",
            remedy=f"pip install 'spectheory[{extra}]'" if extra else "pip install spectheory",
        ) from error


def out_of_memory(error: Exception) -> bool:
    """Whether Python, or torch in one of its two ways, found no memory.

    Examples
    --------
    >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    (True, True)
    >>> out_of_memory(RuntimeError("shapes differ"))
    False
    """
    of_torch = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or of_torch
