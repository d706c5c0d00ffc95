"""What tests share: one test over many cases, refusals in one line, and made-up columns and traces of a pair."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spectheory.trace import COLUMNS, RECORDED_RANKS, TextInfo, Trace
from spectheory.trace.columns import BY_START, START_RANKS
from spectheory.verification.by_start import PREFIX

Floats = NDArray[np.float64]


def race_g(rng: np.random.Generator, log_target: Any, log_draft: Any) -> Floats:
    """A possible g(c) of each token, c = p/q: anywhere from max(0, c - 1) to c; infinite where q = 0."""
    with np.errstate(over="ignore"):
        c = np.exp(np.asarray(log_target) - np.asarray(log_draft))
    least = np.maximum(c - 1, 0.0)
    return np.where(c == np.inf, np.inf, least + rng.random(c.shape) * np.minimum(c, 1.0))


def draft_beside(rng: np.random.Generator, log_target: Any, g: Any) -> Floats:
    """A possible log q of each token where the race has this g: c from g to g + 1, and q at most 1."""
    least = np.exp(np.asarray(log_target))  # q = 1
    c = np.maximum(g + rng.random(np.shape(g)), least)
    return np.asarray(np.minimum(log_target - np.log(c), 0.0))


def columns(tokens: int, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Every kind of column: double and single precision, integers, truth values, one of two dimensions."""
    rng = np.random.default_rng(seed)
    log_target = -rng.exponential(size=tokens)
    log_draft = np.where(rng.random(tokens) < 0.3, -np.inf, -rng.exponential(size=tokens))
    return {
        "token": rng.integers(0, 50_000, tokens).astype(np.int32),
        "log_target": log_target,
        "log_draft": log_draft,
        "kl": rng.random(tokens).astype(np.float32),
        "race_g": race_g(rng, log_target, log_draft),
        "draft_rank": rng.integers(1, 9, tokens),
        "greedy_agreement": rng.random(tokens) < 0.5,
        "rejection_rank": rng.dirichlet(np.ones(RECORDED_RANKS + 1), tokens)[:, 1:].astype(np.float32),
    }


def by_start(columns: Mapping[str, NDArray[Any]], depth: int) -> dict[str, NDArray[Any]]:
    """The columns of a draft that depends on its position alone, by start and depth; past the end the last row."""
    n = len(columns["log_target"])
    rows = np.minimum(np.add.outer(np.arange(n), np.arange(depth)), n - 1)
    made = {PREFIX + name: values[rows] for name, values in columns.items() if PREFIX + name in COLUMNS}
    return {name: values[..., :START_RANKS] if values.ndim == 3 else values for name, values in made.items()}


def head_columns(tokens: int, depth: int, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Every column by start of a made-up draft head, and the columns by position of its first drafts."""
    rng = np.random.default_rng(seed)
    log_target = -rng.exponential(size=tokens)
    ahead = log_target[np.minimum(np.add.outer(np.arange(tokens), np.arange(depth)), tokens - 1)]
    log_draft = np.minimum(0.0, ahead + rng.normal(-0.2, 0.7, ahead.shape))
    g = race_g(rng, ahead, log_draft)

    def law(first: Floats) -> Floats:
        others = rng.dirichlet(np.ones(START_RANKS), ahead.shape)[..., 1:]
        return np.concatenate([first[..., None], (1 - first)[..., None] * others], axis=-1)

    starts = {
        "start_log_draft": log_draft,
        "start_draft_entropy": rng.random(ahead.shape),
        "start_draft_top": np.maximum(np.exp(log_draft), rng.random(ahead.shape)),
        "start_confidence": rng.random(ahead.shape),
        "start_draft_rank": rng.geometric(0.5, ahead.shape),
        "start_greedy_agreement": rng.random(ahead.shape) < 0.6,
        "start_total_variation": rng.random(ahead.shape),
        "start_race_g": g,
        "start_rejection_rank": law(np.exp(np.minimum(0.0, log_draft - ahead))),
        "start_race_rank": law(1 / (1 + g)),
        "start_distinct_rank": law(np.exp(np.minimum(0.0, log_draft - ahead))),
    }
    assert set(starts) == set(BY_START)
    firsts = {name.removeprefix(PREFIX): values[:, 0] for name, values in starts.items() if name != "start_confidence"}
    return {"log_target": log_target, **firsts, **starts}


def trace(*lengths: int, seed: int = 1, **provenance: Any) -> Trace:
    texts = tuple(TextInfo(f"text {i}", n, prompt=f"p{i}", category="c", ended=i == 0) for i, n in enumerate(lengths))
    return Trace(columns(sum(lengths), seed), texts, provenance)


def same(a: Trace, b: Trace) -> bool:
    """Whether two traces hold the same numbers, texts and provenance."""
    return (
        a.texts == b.texts
        and dict(a.provenance) == dict(b.provenance)
        and set(a.columns) == set(b.columns)
        and all(np.array_equal(a.columns[name], b.columns[name]) for name in a.columns)
    )


def each(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Like ``pytest.mark.parametrize``, as one test: every case runs, and those that fail are named."""
    fields = [name.strip() for name in names.split(",")]
    listed = [dict(zip(fields, case if len(fields) > 1 else (case,), strict=True)) for case in cases]
    assert listed, "no cases"

    def over(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def one_test(**fixtures: Any) -> None:
            failures = []
            for case in listed:
                try:
                    test(**case, **fixtures)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as failure:
                    failure.add_note(f"case: {case}"[:300])
                    failures.append(failure)
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(listed)} cases fail", failures)

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in fields]
        one_test.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return one_test

    return over


Refusal = tuple[Callable[[], Any], type[Exception], str]


def refused(call: Callable[[], Any], error: type[Exception], fragment: str) -> None:
    """The call is refused with this error, in one line that holds the fragment."""
    with pytest.raises(error) as caught:
        call()
    assert fragment in one_line(caught)


def all_refused(cases: Mapping[str, Refusal]) -> Callable[..., None]:
    """A test that every bad input of a table is refused."""
    return each("call, error, fragment", cases.values())(refused)


def one_line(error: pytest.ExceptionInfo[Exception]) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message
