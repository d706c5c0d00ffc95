"""C1 in closed form and against simulated sums; C2's measured table, its intervals and its file."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proofs_check.strategies import theorem
from spectheory import Interval
from spectheory.cost import (
    ConstantRatio,
    CostModel,
    LatencyTable,
    best_chain_length,
    iid_speedup,
    iid_tokens_per_call,
)
from spectheory.drafting import Chain
from spectheory.errors import OutputError, SettingError, TraceError
from spectheory.intervals import Kind
from spectheory.paths import calls_of_texts

ROUNDING = 1e-12
"""Horner's rule on at most a hundred terms."""

alphas, ratios, lengths = st.floats(0, 1), st.floats(0, 2), st.integers(1, 60)


# C1


@theorem
@given(alphas, st.integers(1, 30))
def test_tokens_per_call_are_the_geometric_sum(alpha: float, k: int) -> None:
    """sum_{i<=k} alpha^i, as fractions of the very float."""
    exact = sum(Fraction(alpha) ** i for i in range(k + 1))
    assert iid_tokens_per_call(alpha, k) == pytest.approx(float(exact), rel=ROUNDING)


def test_the_closed_form_and_its_limits() -> None:
    """(1 - alpha^(k+1))/(1 - alpha); alpha = 1 gives k + 1; alpha = 0 gives 1; c = 0 gives the tokens themselves."""
    assert iid_tokens_per_call(0.8, 4) == pytest.approx((1 - 0.8**5) / 0.2, rel=ROUNDING)
    assert iid_tokens_per_call(1.0, 7) == 8
    assert iid_tokens_per_call(0.0, 7) == 1
    assert iid_speedup(0.7, 5, 0.0) == iid_tokens_per_call(0.7, 5)
    assert iid_speedup(1.0, 4, 0.25) == 2.5
    assert iid_speedup(0.5, 1, 0.5) == 1.0


def test_one_call_with_iid_acceptances_gives_c1() -> None:
    """A long text whose every draft is accepted with probability alpha: N / C(0) tends to C1's tokens per call."""
    tokens, k, alpha = 4000, 4, 0.7
    survival = np.tile(alpha ** np.arange(1.0, k + 1), (tokens, 1))
    per_call = tokens / calls_of_texts(survival, np.array([tokens])).expected[0]
    assert per_call == pytest.approx(iid_tokens_per_call(alpha, k), rel=2 / tokens * k)


def test_mixed_acceptance_is_not_its_mean() -> None:
    """Half the calls at .5, half at .9, k = 4: 3.016 tokens, not the 2.773 of the mean alpha."""
    mixed = (iid_tokens_per_call(0.5, 4) + iid_tokens_per_call(0.9, 4)) / 2
    assert mixed == pytest.approx(3.016, abs=5e-4)
    assert iid_tokens_per_call(0.7, 4) == pytest.approx(2.773, abs=5e-4)


@theorem
@given(alphas, ratios)
def test_the_speedup_is_unimodal_in_k(alpha: float, c: float) -> None:
    """Once it falls it never rises again."""
    speedups = [1.0, *(iid_speedup(alpha, k, c) for k in range(1, 40))]
    falling = False
    for before, after in itertools.pairwise(speedups):
        falling = falling or after < before * (1 - ROUNDING)
        assert not (falling and after > before * (1 + ROUNDING))


@theorem
@given(alphas, ratios)
def test_some_k_helps_exactly_if_alpha_exceeds_c(alpha: float, c: float) -> None:
    """max_k speed-up > 1 iff alpha > c."""
    assume(abs(alpha - c) > 1e-6)
    helps = max(iid_speedup(alpha, k, c) for k in range(1, 40)) > 1 + ROUNDING
    assert helps == (alpha > c)


@theorem
@given(alphas, ratios, lengths)
def test_the_best_length_is_the_argmax(alpha: float, c: float, k_max: int) -> None:
    """No k in 1..k_max gives a larger speed-up."""
    best = best_chain_length(alpha, c, k_max)
    assert 1 <= best <= k_max
    assert all(iid_speedup(alpha, k, c) <= iid_speedup(alpha, best, c) for k in range(1, k_max + 1))


def test_the_best_length_where_there_is_no_finite_best() -> None:
    """Alpha = 1 or c = 0: k_max; alpha <= c: 1."""
    assert best_chain_length(1.0, 0.3, 50) == 50
    assert best_chain_length(0.5, 0.0, 400) == 400
    assert best_chain_length(0.2, 0.3, 50) == 1


BAD_C1: list[tuple[Callable[[], Any], str]] = [
    (lambda: iid_tokens_per_call(1.1, 4), "alpha is 1.1: must be in [0, 1]"),
    (lambda: iid_tokens_per_call(math.nan, 4), "alpha is nan"),
    (lambda: iid_tokens_per_call(0.5, 0), "k is 0"),
    (lambda: iid_speedup(0.5, 4, -0.1), "c is -0.1"),
    (lambda: iid_speedup(0.5, 4, math.inf), "c is inf"),
    (lambda: best_chain_length(0.5, 0.1, 0), "k is 0"),
    (lambda: ConstantRatio(-1.0), "c is -1"),
    (lambda: ConstantRatio(math.nan), "c is nan"),
    (lambda: Chain(0), "k is 0"),
]


@pytest.mark.parametrize(("call", "fragment"), BAD_C1, ids=[fragment for _, fragment in BAD_C1])
def test_bad_settings(call: Callable[[], Any], fragment: str) -> None:
    with pytest.raises(SettingError) as caught:
        call()
    assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_constant_ratio_is_c1() -> None:
    tokens = Interval(2.0, 2.5, 3.0, "statistical")
    for k, c in itertools.product((1, 4, 9), (0.0, 0.1, 1.0)):
        speedup = ConstantRatio(c).speedup(tokens, Chain(k))
        assert speedup.kind == "statistical"
        ends = (speedup.low, speedup.best, speedup.high)
        assert ends == pytest.approx([t / (k * c + 1) for t in (2.0, 2.5, 3.0)], rel=ROUNDING)


# C2


def spread(value: float, width: float = 0.1, kind: Kind = "statistical") -> Interval:
    return Interval(value * (1 - width), value, value * (1 + width), kind)


@pytest.fixture
def table() -> LatencyTable:
    return LatencyTable(
        target={1: spread(1.0), 2: spread(1.1), 6: spread(1.5), 17: spread(2.6)},
        draft={1: spread(0.1), 2: spread(0.14)},
        context=512,
        provenance={"machine": "made up", "repeats": 3},
    )


@pytest.mark.parametrize(("tokens", "seconds"), [(2, 1.1), (3, 1.2), (6, 1.5), (7, 1.6), (17, 2.6)])
def test_latencies_are_linear_between_measurements(table: LatencyTable, tokens: int, seconds: float) -> None:
    """Every end of the interval is interpolated."""
    call = table.call(Chain(tokens - 1))
    drafting = (tokens - 1) * 0.1
    assert call.best == pytest.approx(seconds + drafting, rel=ROUNDING)
    assert call.low == pytest.approx(0.9 * (seconds + drafting), rel=ROUNDING)
    assert call.high == pytest.approx(1.1 * (seconds + drafting), rel=ROUNDING)
    assert call.kind == "statistical"


def test_a_full_acceptance_makes_the_next_draft_pass_longer(table: LatencyTable) -> None:
    """The first draft pass is on two tokens in that share of the calls; a faster pass on two counts as no slower."""
    extra = table.call(Chain(2), full_share=0.5).best - table.call(Chain(2)).best
    assert extra == pytest.approx(0.5 * (0.14 - 0.1), rel=1e-9)
    noisy = LatencyTable(table.target, {1: spread(0.1), 2: spread(0.09)}, context=1)
    assert noisy.call(Chain(2), full_share=1.0) == noisy.call(Chain(2))


def test_the_ratio_is_the_measured_c(table: LatencyTable) -> None:
    assert table.ratio == pytest.approx(0.1)
    assert table.target_step() == spread(1.0)


@theorem
@given(
    st.lists(st.floats(0.1, 10), min_size=4, max_size=4),
    st.lists(st.floats(0, 0.5), min_size=4, max_size=4),
    st.integers(1, 3),
    st.floats(0, 1),
    st.lists(st.floats(-1, 1), min_size=5, max_size=5),
)
def test_the_speedup_is_never_too_narrow(
    seconds: list[float], widths: list[float], k: int, full: float, inside: list[float]
) -> None:
    """Any latencies and tokens per call inside their intervals give a speed-up inside its interval."""
    target_one, target_four, draft_one, draft_two = map(spread, seconds, widths)
    latencies = LatencyTable({1: target_one, 4: target_four}, {1: draft_one, 2: draft_two}, context=1)
    tokens = spread(2.0, 0.2)
    claimed = latencies.speedup(tokens, Chain(k), full)
    one, four, draft, two, output = (
        interval.best + place * (interval.high - interval.best)
        for interval, place in zip((target_one, target_four, draft_one, draft_two, tokens), inside, strict=True)
    )
    call = one + k / 3 * (four - one) + k * draft + full * max(two - draft, 0)
    assert claimed.low * (1 - 1e-9) <= output * one / call <= claimed.high * (1 + 1e-9)
    assert claimed.low <= claimed.best <= claimed.high


def test_a_call_longer_than_measured_is_refused(table: LatencyTable) -> None:
    with pytest.raises(SettingError, match="a call verifies 18 tokens: latencies were measured up to 17"):
        table.call(Chain(17))


@pytest.mark.parametrize(("target", "draft"), [([2], [1, 2]), ([1], [1]), ([1], [2]), ([], [])])
def test_a_table_needs_its_three_entries(target: list[int], draft: list[int]) -> None:
    with pytest.raises(SettingError, match="needs the target on 1 token and the draft on 1 and 2"):
        LatencyTable({m: spread(1.0) for m in target}, {m: spread(1.0) for m in draft}, context=1)


@pytest.mark.parametrize("exact", ["target", "draft"])
def test_exact_and_measured_latencies_mix(exact: str) -> None:
    """A call is as certain as the least certain of its parts."""
    kinds = {"target": spread(1.0), "draft": spread(0.1)} | {exact: Interval.exact(0.5)}
    mixed = LatencyTable({1: kinds["target"], 8: kinds["target"]}, {1: kinds["draft"], 2: kinds["draft"]}, context=1)
    speedup = mixed.speedup(Interval.exact(2.0), Chain(3))
    assert speedup.kind == "statistical"
    assert speedup.low < speedup.best < speedup.high


def test_a_cost_model_is_abstract() -> None:
    with pytest.raises(TypeError):
        CostModel()  # type: ignore[abstract]


# The file


def test_a_table_survives_its_file(table: LatencyTable, tmp_path: Path) -> None:
    path = tmp_path / "new" / "latency.json"
    table.write(path)
    assert LatencyTable.read(path) == table
    assert json.loads(path.read_text())["unit"] == "seconds"
    assert [p.name for p in path.parent.iterdir()] == ["latency.json"], "no partial file is left"


def test_a_table_that_cannot_be_written(table: LatencyTable, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written") as caught:
        table.write(tmp_path / "file" / "latency.json")
    assert "\n" not in str(caught.value)


def good_content() -> dict[str, Any]:
    interval = {"low": 1.0, "best": 1.0, "high": 1.0, "kind": "exact"}
    return {
        "schema": 1,
        "context": 1,
        "target": {"1": interval},
        "draft": {"1": interval, "2": interval},
        "provenance": {},
    }


BAD_FILES: dict[str, bytes] = {
    "not JSON": b"{",
    "binary": b"\xff\xfe\x00",
    "empty": b"",
    "a list": b"[]",
    "a number": b"7",
    "no schema": b"{}",
    "another schema": json.dumps(good_content() | {"schema": 2}).encode(),
    "no draft": json.dumps({k: v for k, v in good_content().items() if k != "draft"}).encode(),
    "a list for the target": json.dumps(good_content() | {"target": [1.0]}).encode(),
    "numbers for intervals": json.dumps(good_content() | {"target": {"1": 1.0}}).encode(),
    "words for counts": json.dumps(good_content() | {"target": {"one": {}}}).encode(),
    "disorder": json.dumps(
        good_content() | {"target": {"1": {"low": 2.0, "best": 1.0, "high": 3.0, "kind": "bound"}}}
    ).encode(),
    "too few entries": json.dumps(good_content() | {"target": {}}).encode(),
}


@pytest.mark.parametrize("case", [*sorted(BAD_FILES), "missing", "a folder"])
def test_bad_files_are_named_in_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    if case == "a folder":
        path.mkdir()
    elif case != "missing":
        path.write_bytes(BAD_FILES[case])
    with pytest.raises(TraceError, match="is no latency table") as caught:
        LatencyTable.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_the_good_file_is_good(tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    path.write_text(json.dumps(good_content()))
    assert LatencyTable.read(path).ratio == 1
