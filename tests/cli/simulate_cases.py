"""What the tests of `simulate` and `figures` share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli import main

PAIR = ("--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5")

FEW = ("--trials", "4000", "--batch-size", "1000", "--workers", "1")


def ask(capsys: pytest.CaptureFixture[str], *arguments: object, status: int = 0) -> dict[str, Any]:
    assert main([*map(str, arguments), "--json"]) == status
    out, _ = capsys.readouterr()
    return dict(json.loads(out))


# figures


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A figure made by the command, with worker processes."""
    out = tmp_path_factory.mktemp("figures")
    ran = subprocess.run(
        [sys.executable, "-m", "spectheory", "figures", "race", "--out", str(out)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "theory and simulation agree everywhere" in ran.stdout
    return out
