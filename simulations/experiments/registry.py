"""The simulators that tasks name: a function of an importable module, and the version of its numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

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
