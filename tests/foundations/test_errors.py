"""Errors: one line that says what was wrong, the limit and the remedy, in this process and from another."""

from __future__ import annotations

import pickle

import pytest

from spectheory.errors import LogitsError, MissingExtraError, SettingError, SpectheoryError

ERRORS = [
    SettingError("k is 0", limit="must be >= 1", remedy="use 1"),
    LogitsError("row 3 is NaN", limit="needs numbers", remedy="look at the model", row=3),
    MissingExtraError("z3 is not installed", limit="needs the extra 'proofs'", remedy="install it"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_travels_whole(error: SpectheoryError) -> None:
    """Workers hand their errors to the parent."""
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert str(error).count("\n") == 0
