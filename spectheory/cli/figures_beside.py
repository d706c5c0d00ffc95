"""Figures beside the numbers that a command writes: left out, aloud, where matplotlib is not installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spectheory.cli.console import remarks
from spectheory.errors import MissingExtraError, load_extra


def figures_beside(write: Callable[[], list[Path]]) -> list[Path]:
    """Write figures and return their files; without matplotlib there are none, and a remark says what is missing."""
    try:
        load_extra("matplotlib", extra="plots")
    except MissingExtraError as error:
        remarks.print(f"figures are left out: {error}", markup=False)
        return []
    return write()
