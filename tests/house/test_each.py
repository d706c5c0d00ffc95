"""One test over many cases fails where a case fails, and says which."""

from __future__ import annotations

import inspect

import pytest

from tests.made_up import each


def test_every_case_runs_and_those_that_fail_are_named() -> None:
    seen = []

    @each("b", [1, 2])
    @each("a, c", [(10, 0), (20, 1), (30, 2)])
    def check(a: int, b: int, c: int, fixture: str) -> None:
        seen.append((a, b, fixture))
        assert a != 20
        with pytest.raises(ZeroDivisionError):
            a / (30 - a)

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(BaseExceptionGroup) as caught:
        check(fixture="f")
    assert seen == [(a, b, "f") for b in (1, 2) for a in (10, 20, 30)]
    inner = caught.value.exceptions[1]
    assert isinstance(inner, BaseExceptionGroup)
    assert [type(each) for each in inner.exceptions] == [pytest.fail.Exception, AssertionError]
    assert inner.exceptions[1].__notes__ == ["case: {'a': 20, 'c': 1}"]
    assert inner.__notes__ == ["case: {'b': 2}"]


def test_no_cases_are_no_test() -> None:
    with pytest.raises(AssertionError, match="no cases"):
        each("a", [])
