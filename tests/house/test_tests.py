"""The tests' own house: files of what a reader looks up together."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
MOST_LINES = 550


def test_no_file_of_tests_is_long() -> None:
    lengths = {str(path.relative_to(TESTS)): len(path.read_bytes().splitlines()) for path in TESTS.rglob("*.py")}
    assert len(lengths) > 100
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}
