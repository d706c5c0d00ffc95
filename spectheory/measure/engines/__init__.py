"""Real engines, run on the prompts of a pair: what every engine is asked and can do.

Each is run by ``running.py`` of its folder.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from spectheory.distributions import Sampling
from spectheory.engines import of_engines
from spectheory.errors import SettingError
from spectheory.trace.calls import Request

if TYPE_CHECKING:
    from spectheory.measure.engines.processes import Http

__all__ = ["Engine", "Job", "Models", "Seats", "find_engine"]

Drafts = Literal["sampled", "argmax"]
DTYPE = "float32"
"""Precision that engines compute in, so that they and our own reading round alike."""


@dataclass(frozen=True)
class Job:
    """Prompts as token ids under one setting.

    `prompts` are names with ids; `tokens` the most of an output; without `k` there is no speculation; `drafts` are
    sampled from the draft model or its first choices, None is what the engine does by default.
    """

    prompts: tuple[tuple[str, tuple[int, ...]], ...]
    tokens: int
    k: int | None = None
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    drafts: Drafts | None = None

    def seed_of(self, name: str) -> int:
        """The seed of one prompt, in 0..2^31 - 1: it depends on the job's seed and the prompt's name alone."""
        digest = hashlib.sha256(f"{self.seed} {name}".encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


@dataclass(frozen=True)
class Models:
    """Folders of a target and a draft as transformers saves them, and one where an engine may keep its own form."""

    target: Path
    draft: Path
    work: Path


@dataclass(frozen=True)
class Seats:
    """What a server has room for: `requests` at a time of `tokens` each, in `dtype`; 0 tokens: the engine's usual.

    `arguments` are further ones of its command line.
    """

    requests: int = 1
    tokens: int = 0
    dtype: str = DTYPE
    arguments: tuple[str, ...] = ()


class Engine(ABC):
    """An engine that runs on this machine.

    - `name`: as ``--engine`` takes it.
    - `prefill_emits_token`, `counts_past_end`: how its counts are meant (:class:`~spectheory.trace.calls.CallLog`).
    - `drafts`: the ways to draft above temperature 0 that it can be told; ``None`` is its own default.
    - `program`: the program that runs it, or the Python it is installed for; None is looked for.
    """

    name: ClassVar[str]
    prefill_emits_token: ClassVar[bool] = True
    counts_past_end: ClassVar[bool] = False
    drafts: ClassVar[tuple[Drafts | None, ...]] = ("sampled",)

    def __init__(self, program: str | None = None) -> None:
        self.program = program

    @abstractmethod
    def version(self) -> str:
        """Its version; a ``SettingError`` that says how to get it if it is not there."""

    @abstractmethod
    def requests(self, job: Job, models: Models) -> Iterator[Request]:
        """Run the prompts; each request is yielded when it is finished."""

    def settings(self, job: Job) -> Mapping[str, Any]:
        """The engine's own settings for a job, by its names; they are recorded."""
        return {}

    def server(self, job: Job, models: Models, seats: Seats) -> AbstractContextManager[Http]:
        """Its server, started for a job without prompts; it runs until the block ends."""
        raise SettingError(
            f"{self.name} has no server that is started here",
            limit="requests that decode together need one",
            remedy="name vllm or llama.cpp, or a running server with --server",
        )


def find_engine(named: str) -> Engine:
    """The engine of ``NAME`` or ``NAME=PROGRAM``, the program or Python that runs it."""
    name, _, program = named.partition("=")
    engines: dict[str, type[Engine]] = {kind.name: kind for kind in of_engines("running", "RUNS")}
    if name not in engines:
        raise SettingError(
            f"engine {name!r} is unknown", limit=f"there are {', '.join(engines)}", remedy="name one of them"
        )
    return engines[name](program or None)
