"""Code of users: classes named on the command line as ``module:Class``, and what packages register as entry points."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from spectheory.errors import SettingError, page

T = TypeVar("T")


def is_address(name: str) -> bool:
    """Whether a name is written as ``module:Class``; the name of a class begins with no digit."""
    _, colon, after = name.partition(":")
    return bool(colon) and not after[:1].isdigit()


def load_class(address: str, kind: type[T]) -> type[T]:
    """The class at ``module:Class``; modules of the working folder are found too."""
    module, _, name = address.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        member = getattr(import_module(module), name)
    except Exception as error:  # code of a user may fail in any way
        raise _refused(address, f"{type(error).__name__}: {error}") from error
    if not (isinstance(member, type) and issubclass(member, kind)):
        raise _refused(address, f"it is not a {kind.__name__}")
    if not getattr(member, "name", ""):
        raise _refused(address, "it has no name")
    return member


def load(address: str, kind: type[T]) -> T:
    """An instance of the class at ``module:Class``, which is made without arguments."""
    try:
        return load_class(address, kind)()
    except TypeError as error:
        raise _refused(address, str(error)) from error


@cache
def installed(group: str, kind: type[T]) -> dict[str, T | SettingError]:
    """What installed packages register under a group of entry points, by name; an error for what cannot be loaded.

    An entry point names an instance of the kind, or a class that is made without arguments.
    """
    classes: dict[str, T | SettingError] = {}
    for entry in entry_points(group=group):
        owner = f"{entry.value} of {entry.dist.name if entry.dist else 'a package'}"
        try:
            loaded = entry.load()
            made = loaded() if isinstance(loaded, type) else loaded
            classes[entry.name] = made if isinstance(made, kind) else _refused(owner, f"it is not a {kind.__name__}")
        except Exception as error:  # code of a user may fail in any way
            classes[entry.name] = _refused(owner, f"{type(error).__name__}: {error}")
    return classes


def _refused(address: str, why: str) -> SettingError:
    return SettingError(
        f"{address!r} cannot be loaded: {' '.join(why.split())}",
        limit="needs module:Name",
        remedy=f"see {page('extending')}",
    )
