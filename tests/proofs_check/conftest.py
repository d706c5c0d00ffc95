"""Fixtures of the ledger's tests."""

from __future__ import annotations

import pytest


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the draws and starts: how far the search sees is the matter of ``test_claims``."""
    monkeypatch.setattr("proofs_check.evidence.search.DRAWS", (50, 3000))
    monkeypatch.setattr("proofs_check.evidence.search.STARTS", (4, 200))
