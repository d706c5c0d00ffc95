"""Rules as they are written on the command line."""

from __future__ import annotations

from collections.abc import Sequence

from spectheory.cli.console import remarks
from spectheory.prediction.whole import named_rules
from spectheory.verification import PathRule
from spectheory.verification.registry import left_out


def read_rules(names: Sequence[str] | None) -> list[PathRule] | None:
    """The rules that the names stand for; None where none is named."""
    remark_left_out()
    return named_rules(names or None)


def remark_left_out() -> None:
    """Say which rules of installed packages cannot be used."""
    for reason in left_out():
        remarks.print(reason, markup=False)
