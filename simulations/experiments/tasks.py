"""What an experiment is: a registered simulator, its parameters, the root seed and how many trials a batch has.

A task is named by the hash of all that decides its numbers, so results find their task again, and only theirs. A
simulator is a function of an importable module.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from spectheory.errors import SettingError

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
    """One experiment; make it with :func:`task`. `text` is its parameters as JSON; `trials` are those of one batch."""

    kind: str
    text: str
    seed: int
    trials: int
    version: str

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
        """A copy of the parameters."""
        return dict(json.loads(self.text))

    @cached_property
    def id(self) -> str:
        """SHA-256 of all that decides the numbers, 64 hexadecimal digits; the same in every process."""
        named = f'"kind":{json.dumps(self.kind)},"parameters":{self.text}'  # sorted, as in `canonical`
        whole = f'{{{named},"seed":{self.seed},"trials":{self.trials},"version":{json.dumps(self.version)}}}'
        return hashlib.sha256(whole.encode()).hexdigest()

    @property
    def key(self) -> tuple[int, ...]:
        """The id as integers below 2^32: with a batch number, the child key of the batch's stream."""
        return tuple(int(self.id[8 * i : 8 * i + 8], 16) for i in range(ID_WORDS))

    def as_dict(self) -> dict[str, Any]:
        """The fields, JSON-ready."""
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "seed": self.seed,
            "trials": self.trials,
            "version": self.version,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Task:
        """The task of such fields."""
        names = ("kind", "seed", "trials", "version")
        return cls(text=canonical(fields["parameters"]), **{name: fields[name] for name in names})


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
    return Task(kind, canonical(parameters or {}), seed, trials, registered(kind).version)
