"""What an experiment is: a registered simulator, its parameters, the root seed and how many trials a batch has.

A task is named by the hash of all that decides its numbers, so results find their task again, and only theirs. Large
arrays stand outside the JSON of its parameters.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from simulations.experiments.arrays import LARGE, Arrays, folded, named_in, unfolded
from simulations.experiments.registry import registered
from spectheory.errors import SettingError

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
    >>> from simulations.experiments.registry import simulator
    >>> @simulator("a toy", version="1")
    ... def toy(parameters, trials, state): ...
    >>> one = task("a toy", {"p": 0.25, "k": 2}, seed=1, trials=1000)
    >>> one == task("a toy", {"k": 2, "p": 0.25}, seed=1, trials=1000), len(one.id)
    (True, 64)
    """
    inline, held = folded(parameters or {})
    return Task(kind, canonical(inline), seed, trials, registered(kind).version, Arrays(held))
