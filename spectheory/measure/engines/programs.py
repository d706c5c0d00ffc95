"""Programs of engines: where they are, and what they say."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from spectheory.errors import SettingError

PATIENCE = 120.0
"""Seconds that a program may take to say its version."""


def find_program(engine: str, named: str | None, usual: str, remedy: str) -> str:
    """The whole path of a program named, or else of the usual one; a ``SettingError`` if it is not there."""
    found = shutil.which(named or usual)
    if found is None:
        raise SettingError(
            f"{engine} needs the program {named or usual!r}, which is not there",
            limit="must be on the PATH, or be named with its path",
            remedy=f"{remedy}, as --engine {engine}=PATH" if "--engine" not in remedy else remedy,
        )
    return found


def version_of(engine: str, command: list[str], remedy: str) -> str:
    """The version that a Python prints; what it warns of is left out."""
    said = _ran(engine, command, remedy).stdout.split("\n", 1)[0].strip()
    if not said:
        raise SettingError(f"{command[0]} says no version", limit=f"must be a Python with {engine}", remedy=remedy)
    return said


def output_of(engine: str, command: list[str], remedy: str) -> str:
    """What a program prints, both streams."""
    ran = _ran(engine, command, remedy)
    return ran.stdout + ran.stderr


def _ran(engine: str, command: list[str], remedy: str) -> subprocess.CompletedProcess[str]:
    """A program's end; a ``SettingError`` if it fails."""
    patient: dict[str, Any] = {"timeout": PATIENCE, "stdin": subprocess.DEVNULL, "errors": "replace"}
    try:
        ran = subprocess.run(command, capture_output=True, **patient)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingError(f"{command[0]} does not run ({error})", limit=f"must run {engine}", remedy=remedy) from error
    if ran.returncode:
        said = (ran.stderr.strip() or "it said nothing").splitlines()[-1][-200:]
        raise SettingError(f"{command[0]} has no {engine} ({said})", limit=f"must run {engine}", remedy=remedy)
    return ran
