"""Commands as tests give them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from spectheory.cli import main


def refused(arguments: Sequence[object], capsys: pytest.CaptureFixture[str]) -> str:
    """Run bad input; check status 2, one line on stderr, nothing on stdout; return the line."""
    status = main(list(map(str, arguments)))
    out, err = capsys.readouterr()
    assert (status, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert err.startswith("spectheory: ")
    return err


def answer(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> dict[str, Any]:
    """Run a command with --json; check its status; return the object."""
    assert main([*map(str, arguments), "--json"]) == status, capsys.readouterr().err
    return dict(json.loads(capsys.readouterr().out))
