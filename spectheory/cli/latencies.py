"""Latency tables as the commands read them: where one was measured otherwise than its trace, a remark says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spectheory.cli.console import remarks
from spectheory.cost import LatencyTable
from spectheory.deployment import other_machine


def read_latencies(file: Path, measured: Mapping[str, Any]) -> LatencyTable:
    """The table in a file; of another machine or of other models than were measured it is used all the same."""
    table = LatencyTable.read(file)
    machine = other_machine(table.provenance.get("hardware"))
    if machine:
        remarks.print(f"{file} is of another machine: {machine}; speed-ups are for that one", markup=False)
    others = [who for who in ("target", "draft") if _differ(table.provenance.get(who), measured.get(who))]
    if others:
        named = " and ".join(f"{who} {table.provenance[who].get('name')}" for who in others)
        remarks.print(f"{file} is of other models than the trace: {named}; speed-ups are for those", markup=False)
    remark_slower(table, str(file))
    return table


def remark_slower(table: LatencyTable, name: str) -> None:
    """Say which passes took longer than one on twice the tokens: something other than their work decided the time."""
    for model, m in table.slower_on_fewer:
        few, many = (getattr(table, model)[tokens].best for tokens in (m, 2 * m))
        remarks.print(
            f"{name}: the {model}'s pass on {m} tokens takes {few:.3g} s, longer than on {2 * m} ({many:.3g} s); "
            "speed-ups that need it are those of this slow pass",
            markup=False,
        )


def _differ(one: Any, other: Any) -> bool:
    """Whether two descriptions are of different weights, as far as they say."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return False
    here, there = one.get("fingerprint"), other.get("fingerprint")
    return here is not None and there is not None and here != there
