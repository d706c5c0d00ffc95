"""Programs of engines: where they are, and what they say."""

from __future__ import annotations

import shutil
import subprocess

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
            remedy=f"{remedy}; then --engine {engine}=PATH",
        )
    return found


def output_of(engine: str, command: list[str], remedy: str) -> str:
    """What a program prints, both streams; a ``SettingError`` if it fails."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingError(f"{command[0]} does not run ({error})", limit=f"must run {engine}", remedy=remedy) from error
    if ran.returncode:
        said = (ran.stderr.strip() or "it said nothing").splitlines()[-1][-200:]
        raise SettingError(f"{command[0]} has no {engine} ({said})", limit=f"must run {engine}", remedy=remedy)
    return ran.stdout + ran.stderr
