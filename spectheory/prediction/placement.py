"""Where drafts are made: in turn with verification, far away, during verification, or on while targets verify."""

from __future__ import annotations

import re
from abc import ABC
from dataclasses import dataclass, replace
from typing import ClassVar

from spectheory.checks import BEYOND, amount, instance, whole
from spectheory.errors import SettingError, argument

MOST_GUESSES, MOST_TARGETS = 1024, 1024
_FORMS = "in-turn, remote, ahead:N, ahead:NxALL or parallel:N"


@dataclass(frozen=True)
class Placement(ABC):
    """Where drafts are made; `link` is the time of a message between draft and target, one way."""

    link: float = 0.0
    name: ClassVar[str]

    def __post_init__(self) -> None:
        name = argument("link", "--remote-latency")
        object.__setattr__(self, "link", amount(name, self.link, below=BEYOND, remedy="give the time of a message"))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class InTurn(Placement):
    """Draft, then verify, as most engines do."""

    name: ClassVar[str] = "in-turn"


@dataclass(frozen=True)
class Remote(Placement):
    """In turn, on another machine: each call waits for two messages."""

    name: ClassVar[str] = "remote"


@dataclass(frozen=True)
class Ahead(Placement):
    """During verification the draft, on a device of its own, drafts for predicted outcomes.

    An outcome is the number of accepted drafts and the recovered or bonus token. Predicted are `guesses` of them in
    all, the most frequent ones; or, with `each`, so many tokens for every number of accepted drafts. After a predicted
    outcome the next drafts are there; otherwise they are drafted then.

    Examples
    --------
    >>> [str(placement(words)) for words in ("ahead:8", "ahead:2xall")]
    ['ahead:8', 'ahead:2xall']
    """

    guesses: int = 1
    each: bool = False
    name: ClassVar[str] = "ahead"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(
            argument("guesses", "N of --drafting ahead:N"),
            self.guesses,
            most=MOST_GUESSES,
            remedy="count predicted outcomes",
        )

    def __str__(self) -> str:
        return f"{self.name}:{self.guesses}{'xall' if self.each else ''}"


@dataclass(frozen=True)
class Parallel(Placement):
    """The draft never waits: every few drafts one of so many `targets` begins to verify them (C5, ``timor2025``)."""

    targets: int = 1
    name: ClassVar[str] = "parallel"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(
            argument("targets", "N of --drafting parallel:N"),
            self.targets,
            most=MOST_TARGETS,
            remedy="count copies of the target",
        )

    def __str__(self) -> str:
        return f"{self.name}:{self.targets}"


def placement(words: str | Placement, link: float = 0.0) -> Placement:
    """The placement that words name, with a link.

    Examples
    --------
    >>> placement("remote", 0.5)
    Remote(link=0.5)
    """
    if isinstance(words, Placement):
        return words
    written = instance("drafting", words, str, remedy="remote is one").casefold()
    plain: dict[str, Placement] = {"in-turn": InTurn(), "remote": Remote(link)}
    if written in plain:
        return plain[written]
    match = re.fullmatch(r"(ahead|parallel):(\d{1,9})(xall)?", written)
    if match is None or (match[3] and match[1] == "parallel"):
        raise SettingError(
            f"{argument('drafting')} is {words!r}", limit=f"needs {_FORMS}", remedy="ahead:8 predicts eight outcomes"
        )
    made: Placement = Ahead(0.0, int(match[2]), bool(match[3])) if match[1] == "ahead" else Parallel(0.0, int(match[2]))
    return replace(made, link=link)
