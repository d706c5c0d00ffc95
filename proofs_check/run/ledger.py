"""The ledger: every statement of the theory by its id, with the evidence that runs.

The entries stand in :mod:`proofs_check.theorems`, in a folder for each topic: every `Entry` of a file is one.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from functools import cache

from proofs_check import theorems
from proofs_check.evidence.entries import Entry
from spectheory.errors import SettingError

SECTIONS = "DARHSTBY§CV"
"""Statements are listed section by section; within one by number, refuted look-alikes after what they resemble."""


@cache
def ledger() -> dict[str, Entry]:
    """Every entry by its id, in the order of the theory."""
    entries: dict[str, Entry] = {}
    for module in sorted(info.name for info in pkgutil.walk_packages(theorems.__path__, "proofs_check.theorems.")):
        for entry in vars(importlib.import_module(module)).values():
            if isinstance(entry, Entry) and entry.id in entries:
                raise ValueError(f"two entries are named {entry.id}")
            if isinstance(entry, Entry):
                entries[entry.id] = entry
    return {name: entries[name] for name in sorted(entries, key=_place)}


def select(names: list[str], paper: str | None = None) -> list[Entry]:
    """The entries named, with the refuted look-alikes of each; all of them if none is named."""
    entries = list(ledger().values())
    if names:
        wanted = {_known(name) for name in names}
        entries = [entry for entry in entries if entry.id in wanted or entry.id.split("/")[0] in wanted]
    if paper is not None:
        papers = sorted({key for entry in ledger().values() for key in entry.source})
        if paper not in papers:
            raise _unknown("paper", paper, papers)
        entries = [entry for entry in entries if paper in entry.source]
        if not entries:
            raise SettingError(
                f"none of {', '.join(names)} is of {paper}", limit="needs one", remedy="name the id alone"
            )
    return entries


def _known(name: str) -> str:
    """The id as the ledger writes it: case and kind of prime do not matter, nor the section sign."""
    plain = {_plain(each): each for each in ledger()}
    if _plain(name) not in plain:
        raise _unknown("id", name, list(ledger()))
    return plain[_plain(name)]


def _plain(name: str) -> str:
    return name.strip().casefold().replace("′", "'").replace("’", "'").removeprefix("§")


def _unknown(what: str, name: str, names: list[str]) -> SettingError:
    plain = {_plain(each): each for each in names}
    near = [plain[each] for each in difflib.get_close_matches(_plain(name), plain, n=3, cutoff=0.3)]
    remedy = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return SettingError(f"{what} {name!r} is unknown", limit=f"needs one of {len(names)}", remedy=remedy)


def _place(name: str) -> tuple[int, int, str, str]:
    """Where an id stands."""
    base, _, rest = name.partition("/")
    number = re.search(r"\d+", base)
    return SECTIONS.find(base[0]), int(number.group()) if number else 0, base, rest
