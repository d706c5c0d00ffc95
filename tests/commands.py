"""Commands as tests give them."""

from __future__ import annotations

from collections.abc import Sequence

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
