"""What a worker does: load the pair, make sure that it is the client's, do tasks."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch

from spectheory.errors import ModelError
from spectheory.measure.machine import versions
from spectheory.measure.pair import ModelPair
from spectheory.measure.settings import MeasureSettings

T = TypeVar("T")
Load = Callable[[str | None], ModelPair]
"""Loads the pair on a device, None: the one that it chooses. It is sent to workers, so it must be picklable."""


@dataclass(frozen=True)
class Order:
    """What a worker is told once; `expected` is what :func:`identity` says of the client's pair."""

    load: Load
    expected: Mapping[str, str]
    settings: MeasureSettings

    def pair(self, where: str, *, device: str | None = None, threads: int | None = None) -> ModelPair:
        """The pair, loaded by the worker at `where`; a ``ModelError`` names what differs from the client's."""
        if threads is not None:
            torch.set_num_threads(threads)
        _compare(_versions(), self.expected, where)
        pair = self.load(device)
        _compare(identity(pair), self.expected, where)
        return pair


@dataclass(frozen=True)
class Failure:
    """Why a worker has no result."""

    error: Exception


def identity(pair: ModelPair) -> dict[str, str]:
    """Everything that client and workers must have in common for their numbers to belong to one trace."""
    facts = _versions()
    for role, model in (("target", pair.target), ("draft", pair.draft)):
        facts |= {f"a {role} with fingerprint": model.fingerprint, f"a {role} in": model.dtype}
    return facts | {"token ids:": str(pair.vocabulary), "ends of text:": " ".join(map(str, sorted(pair.end_of_text)))}


def _versions() -> dict[str, str]:
    """Versions without the part after the plus sign, which names the build for a kind of device."""
    return {name: version.partition("+")[0] for name, version in versions().items() if name != "python"}


def _compare(found: Mapping[str, str], expected: Mapping[str, str], where: str) -> None:
    for name, value in found.items():
        if value != expected[name]:
            raise ModelError(
                f"{where} has {name} {value}",
                limit=f"the measurement has {expected[name]}",
                remedy="install the same versions and models there; copied files keep their times (cp -p, rsync -t)",
            )


def attempt(work: Callable[[], T]) -> T | Failure:
    """What `work` returns, or why it failed, in a form that can be sent."""
    try:
        return work()
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return Failure(RuntimeError(f"{type(error).__name__}: {error}"))
        return Failure(error)
