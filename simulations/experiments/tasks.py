"""What an experiment is: a registered simulator, its parameters, the root seed and how many trials a batch has.

A task is named by the hash of all that decides its numbers, so results find their task again, and only theirs. Large
arrays stand outside the JSON of its parameters. A simulator is a function of an importable module.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from spectheory.errors import SettingError
from spectheory.store import Row, payload_of

S = TypeVar("S", bound=Callable[..., Any])


class Simulator(NamedTuple):
    """``run(parameters, trials, state)`` returns a tally; numbers of different versions never mix."""

    run: Callable[..., Any]
    version: str

    @property
    def trial(self) -> str:
        """What a trial is: the first line of the function's docstring."""
        first = (self.run.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        return first[:1].lower() + first[1:]


_registered: dict[str, Simulator] = {}


def simulator(kind: str, *, version: str) -> Callable[[S], S]:
    """Register a simulator under a name; use it as a decorator of a function of an importable module.

    Raise the version whenever the same stream gives other numbers than before.

    Examples
    --------
    >>> @simulator("nothing at all", version="1")
    ... def nothing(parameters, trials, state): ...
    >>> registered("nothing at all").version
    '1'
    """

    def register(run: S) -> S:
        known = _registered.get(kind)
        if known is not None and _place(known.run) != _place(run):
            raise SettingError(
                f"the simulator {kind!r} is {_place(known.run)} already",
                limit="one function has one name",
                remedy="choose another name",
            )
        _registered[kind] = Simulator(run, version)
        return run

    return register


def kinds() -> list[str]:
    """All names, sorted."""
    return sorted(_registered)


def registered(kind: str) -> Simulator:
    """The simulator of a name."""
    if kind not in _registered:
        raise SettingError(
            f"no simulator is called {kind!r}",
            limit=f"known here are {', '.join(kinds()) or 'none'}",
            remedy="import the module that registers it",
        )
    return _registered[kind]


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


# Large arrays of a task's parameters: outside its JSON, in rows of the results file named by their hash
#
# Every list of at least :data:`LARGE` floats, or row of an array, is one. In JSON stands ``{"sha256": ...}`` in its
# place.


LARGE = 4096
"""Numbers from which an array is no longer written as JSON."""

_NAMED = "sha256"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arrays:
    """Large arrays by hash: `held` in memory, the others in `rows` of the results file at `path`."""

    held: Mapping[str, Floats] = field(default_factory=dict)
    path: Path = field(default_factory=Path)
    rows: dict[str, Row] = field(default_factory=dict)

    def of(self, name: str) -> Floats:
        """A copy of an array."""
        if name in self.held:
            return self.held[name].copy()
        if name not in self.rows:
            raise self._unreadable("its row is damaged")
        line, _, start, size = self.rows[name]
        try:
            return _read(name, self.path, line, start, size).copy()
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from error

    def only(self, names: Iterable[str]) -> Arrays:
        """Those of these names that the file has."""
        return Arrays(path=self.path, rows={name: self.rows[name] for name in names if name in self.rows})

    def _unreadable(self, why: str) -> SettingError:
        return SettingError(
            f"an array in {self.path} cannot be read ({why})",
            limit="a task's parameters hold it",
            remedy="describe the task anew, its results are found again",
        )


@lru_cache(maxsize=8)  # the next batch needs them again
def _read(name: str, path: Path, line: int, start: int, size: int) -> Floats:
    numbers = np.frombuffer(payload_of(path, Row(line, {}, start, size)))
    if digest(numbers) != name:
        raise OSError(errno.EIO, f"row {line} holds other numbers than its name says")
    return numbers


def digest(numbers: Floats) -> str:
    """SHA-256 of type, size and numbers."""
    return hashlib.sha256(f"{numbers.dtype.str}{numbers.size}:".encode() + numbers.tobytes()).hexdigest()


def folded(value: Any) -> tuple[Any, dict[str, Floats]]:
    """A value with hashes in the place of large arrays, and the arrays."""
    held: dict[str, Floats] = {}

    def name(numbers: Floats) -> dict[str, str]:
        held[digest(numbers)] = numbers
        return {_NAMED: digest(numbers)}

    return _folded(value, name), held


def _folded(value: Any, name: Callable[[Floats], Any]) -> Any:
    if isinstance(value, Mapping):
        if set(value) == {_NAMED}:
            raise SettingError(
                f"a parameter has the key {_NAMED!r} alone",
                limit="it stands for a large array",
                remedy="use another key",
            )
        return {key: _folded(value[key], name) for key in value}
    if isinstance(value, np.ndarray) and value.ndim > 1:
        return [_folded(row, name) for row in value]
    if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value
    if len(value) < LARGE:
        return [_folded(item, name) for item in value] if isinstance(value, list | tuple) else value
    floats = value.dtype.kind == "f" if isinstance(value, np.ndarray) else set(map(type, value)) == {float}
    numbers = np.array(value, dtype=np.float64) if floats else None
    # What is not finite is refused where JSON is written.
    return value if numbers is None or not np.isfinite(numbers).all() else name(numbers)


def unfolded(value: Any, arrays: Arrays) -> Any:
    """The value with its arrays."""
    if isinstance(value, dict):
        if set(value) == {_NAMED}:
            return arrays.of(value[_NAMED])
        return {key: unfolded(value[key], arrays) for key in value}
    return [unfolded(item, arrays) for item in value] if isinstance(value, list) else value


def named_in(value: Any) -> list[str]:
    """The hashes that stand in a folded value."""
    if isinstance(value, dict):
        return (
            [value[_NAMED]] if set(value) == {_NAMED} else [name for each in value.values() for name in named_in(each)]
        )
    return [name for each in value for name in named_in(each)] if isinstance(value, list) else []


# Tasks


ID_WORDS = 8
"""A task's id is 256 bits; as the key of its streams it is this many words of 32 bits."""


def canonical(value: Any) -> str:
    """The one JSON text of a value: keys sorted, no spaces, finite numbers; numpy scalars and arrays as lists.

    1 and 1.0 differ, as they may to a simulator.
    """
    try:
        return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise SettingError(
            f"parameters cannot be written as JSON ({error})",
            limit="must be finite numbers, texts, lists and mappings with texts as keys",
            remedy="convert them",
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        if wrong := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"the key {wrong[0]!r} is no text")
        return {key: _plain(value[key]) for key in value}
    if isinstance(value, list | tuple):
        if len(value) >= LARGE and set(map(type, value)) <= {float, int}:
            return value
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def cache_by_text(
    most: int | None = None, *, only: Collection[str] = (), but: Collection[str] = ()
) -> Callable[[S], S]:
    """Keep what a function makes of parameters, its last argument, by their JSON text; a decorator.

    It is given those named in `only`, if any are, and without those in `but`, which are nothing to it.
    """

    def decorate(function: S) -> S:
        @lru_cache(maxsize=most)
        def of_text(*before: Any, text: str) -> Any:
            return function(*before, json.loads(text))

        @wraps(function)
        def of_parameters(*given: Any) -> Any:
            read = {name: given[-1][name] for name in given[-1] if name not in but and (not only or name in only)}
            return of_text(*given[:-1], text=canonical(read))

        return cast(S, of_parameters)

    return decorate


@dataclass(frozen=True)
class Task:
    """One experiment; make it with :func:`task`.

    `text` is its parameters as JSON, with hashes of the large `arrays`; `trials` are those of one batch; `named` is its
    id where that is known.
    """

    kind: str
    text: str
    seed: int
    trials: int
    version: str
    arrays: Arrays = field(default_factory=Arrays, compare=False, repr=False)
    named: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, value, least in (("seed", self.seed, 0), ("trials of a batch", self.trials, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name} is {value!r}", limit=f"must be an integer >= {least}", remedy="change it")
        inline = json.loads(self.text)
        if not isinstance(inline, dict) or canonical(inline) != self.text:
            raise SettingError(
                f"parameters are {self.text[:40]!r}", limit="must be a canonical JSON object", remedy="use task(...)"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """A copy of the parameters; large arrays as arrays."""
        found: dict[str, Any] = unfolded(json.loads(self.text), self.arrays)
        return found

    @cached_property
    def id(self) -> str:
        """SHA-256 of all that decides the numbers, 64 hexadecimal digits; the same in every process, and however large
        arrays are kept.
        """
        return self.named or hashlib.sha256(canonical(self.as_dict()).encode()).hexdigest()

    @property
    def key(self) -> tuple[int, ...]:
        """The id as integers below 2^32: with a batch number, the child key of the batch's stream."""
        return tuple(int(self.id[8 * i : 8 * i + 8], 16) for i in range(ID_WORDS))

    def as_dict(self) -> dict[str, Any]:
        """The fields, JSON-ready; parameters in full."""
        return {**self.folded(), "parameters": _plain(self.parameters)}

    def folded(self) -> dict[str, Any]:
        """The fields, JSON-ready; hashes stand for large arrays."""
        return {
            "kind": self.kind,
            "parameters": json.loads(self.text),
            "seed": self.seed,
            "trials": self.trials,
            "version": self.version,
        }

    @property
    def arrays_named(self) -> list[str]:
        """The hashes of its large arrays."""
        return named_in(json.loads(self.text))

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Task:
        """The task of fields with parameters in full."""
        inline, held = folded(fields["parameters"])
        names = ("kind", "seed", "trials", "version")
        return cls(text=canonical(inline), arrays=Arrays(held), **{name: fields[name] for name in names})

    @classmethod
    def from_folded(cls, fields: Mapping[str, Any], arrays: Arrays, named: str) -> Task:
        """The task of such fields and id; its large arrays, if it has any, are among `arrays`."""
        names = ("kind", "seed", "trials", "version")
        text, rest = canonical(fields["parameters"]), {name: fields[name] for name in names}
        return cls(text=text, arrays=arrays.only(named_in(json.loads(text))), named=named, **rest)


def task(kind: str, parameters: Mapping[str, Any] | None = None, *, seed: int, trials: int) -> Task:
    """Describe an experiment with a simulator that is registered here, in its present version.

    - ``kind``: name of the simulator.
    - ``parameters``: what it is given: JSON values, numpy scalars or arrays.
    - ``seed``: root seed, at least 0.
    - ``trials``: trials of one batch: the unit that is stored, drawn by one stream and given to one worker. A batch
      should take a tenth of a second or more.

    Examples
    --------
    >>> from simulations.experiments.tasks import simulator
    >>> @simulator("a toy", version="1")
    ... def toy(parameters, trials, state): ...
    >>> one = task("a toy", {"p": 0.25, "k": 2}, seed=1, trials=1000)
    >>> one == task("a toy", {"k": 2, "p": 0.25}, seed=1, trials=1000), len(one.id)
    (True, 64)
    """
    inline, held = folded(parameters or {})
    return Task(kind, canonical(inline), seed, trials, registered(kind).version, Arrays(held))
