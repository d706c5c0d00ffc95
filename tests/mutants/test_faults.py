"""The list of faults fits the code: each text stands once in its file, and what is written instead still parses."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.made_up import each
from tests.mutants.plant import ROOT, Fault, faults


@each("fault", faults())
def test_a_fault_can_be_planted(fault: Fault) -> None:
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(fault.planted(source))) != ast.dump(ast.parse(source))


def test_every_room_of_numbers_has_faults() -> None:
    """Thirty in the rules at least, and as many in the rooms that compute with them."""
    rooms = Counter(fault.file.split("/")[1] for fault in faults())
    assert rooms["verification"] >= 30
    assert all(rooms[room] >= 10 for room in ("truncated", "limits", "cost", "trace", "prediction", "judging"))


@pytest.mark.parametrize("right", ["no such text", "def "])
def test_a_text_that_is_not_there_once_is_refused(right: str) -> None:
    file = "spectheory/verification/token.py"
    with pytest.raises(ValueError, match="a fault needs it once"):
        Fault(file, right, "").planted((ROOT / file).read_text(encoding="utf-8"))
