"""C2's table, intervals and file, and tables that are not to be trusted; C5's bad settings; B5 by C2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.library.strategies import theorem
from spectheory import Interval
from spectheory.cli.inputs import remark_slower
from spectheory.cost import FREE_DRAFTS, ConstantRatio, LatencyTable
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree
from spectheory.errors import SettingError, TraceError
from spectheory.intervals import Kind
from spectheory.limits import branching_speedup

ROUNDING = 1e-12
"""Horner's rule on at most a hundred terms."""

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


SHAPES: tuple[tuple[Shape, tuple[int, ...]], ...] = (
    (Chain(3), (1, 1, 1)),
    (Batch(5), (1,)),
    (KAry((2, 2)), (1, 2)),
    (KAry((1, 1, 3, 1)), (1, 1, 1, 3)),
    (Tree.from_paths([(1,), (2,), (1, 1), (2, 1), (2, 2), (2, 1, 1)]), (1, 2, 1)),
)
"""Shapes with the tokens of their draft passes, by hand."""


@pytest.mark.parametrize(("shape", "passes"), SHAPES, ids=lambda value: str(value))
def test_a_call_pays_every_draft_pass(shape: Shape, passes: tuple[int, ...]) -> None:
    """Affine times, so that the sums are simple: the target on nodes + 1 tokens, the draft on each pass."""
    table = LatencyTable(
        {m: spread(1.0 + 0.01 * m) for m in (1, 4, 16)}, {m: spread(0.1 + 0.02 * m) for m in (1, 2, 8)}, context=1
    )
    verify, drafting = 1.0 + 0.01 * (shape.nodes + 1), sum(0.1 + 0.02 * m for m in passes)
    assert table.call(shape).best == pytest.approx(verify + drafting, rel=ROUNDING)
    assert table.call(shape, 0.25).best == pytest.approx(verify + drafting + 0.25 * 0.02, rel=ROUNDING)
    assert ConstantRatio(0.3).call(shape).best == pytest.approx(1 + 0.3 * len(passes), rel=ROUNDING)
    if max(passes) > 1:
        assert abs(drafting - shape.depth * 0.12) > 0.01, "negative control: passes on one token each"


def test_a_wider_draft_pass_than_measured_is_refused(table: LatencyTable) -> None:
    """As in tables from before the draft was measured on more than two tokens; chains and batches go on."""
    assert table.call(Batch(16)).best == pytest.approx(2.6 + 0.1)
    with pytest.raises(SettingError, match=r"a draft pass is on 3 tokens: .* up to 2; use a narrower tree"):
        table.call(KAry((3, 1)))


def test_free_drafts(table: LatencyTable, tmp_path: Path) -> None:
    """No draft in a table, or no cost in C1; in a file too."""
    free = LatencyTable(table.target, {}, context=512)
    assert free.ratio == 0
    assert free.call(KAry((2, 2)), 1.0) == free.target_pass(7)
    free.write(tmp_path / "latency.json")
    assert LatencyTable.read(tmp_path / "latency.json") == free
    assert FREE_DRAFTS.speedup(Interval.exact(2.5), Chain(9)) == Interval.exact(2.5)


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


# The file


def test_a_table_survives_its_file(table: LatencyTable, tmp_path: Path) -> None:
    path = tmp_path / "new" / "latency.json"
    table.write(path)
    assert LatencyTable.read(path) == table
    assert json.loads(path.read_text())["unit"] == "seconds"
    assert [p.name for p in path.parent.iterdir()] == ["latency.json"], "no partial file is left"


def good_content() -> dict[str, Any]:
    interval = {"low": 1.0, "best": 1.0, "high": 1.0, "kind": "exact"}
    return {
        "schema": 2,
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
    "another schema": json.dumps(good_content() | {"schema": 4}).encode(),
    "no draft": json.dumps({k: v for k, v in good_content().items() if k != "draft"}).encode(),
    "a list for the target": json.dumps(good_content() | {"target": [1.0]}).encode(),
    "numbers for intervals": json.dumps(good_content() | {"target": {"1": 1.0}}).encode(),
    "words for counts": json.dumps(good_content() | {"target": {"one": {}}}).encode(),
    "disorder": json.dumps(
        good_content() | {"target": {"1": {"low": 2.0, "best": 1.0, "high": 3.0, "kind": "bound"}}}
    ).encode(),
    "an integer beyond floats": json.dumps(
        good_content() | {"target": {"1": {"low": 10**400, "best": 10**400, "high": 10**400, "kind": "exact"}}}
    ).encode(),
    "another unit": json.dumps(good_content() | {"unit": "ms"}).encode(),
    "too few entries": json.dumps(good_content() | {"target": {}}).encode(),
}


@pytest.mark.parametrize("case", [*sorted(BAD_FILES), "missing", "a folder"])
def test_bad_files_are_named_in_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    if case == "a folder":
        path.mkdir()
    elif case != "missing":
        path.write_bytes(BAD_FILES[case])
    with pytest.raises(TraceError, match="is not a latency table") as caught:
        LatencyTable.read(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert "needs JSON of schema 1 to 3 with times in seconds" in str(caught.value)


def test_the_good_file_is_good(tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    path.write_text(json.dumps(good_content()))
    assert LatencyTable.read(path).ratio == 1


# B5


@theorem
@given(st.floats(0, 20), st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 20))
def test_the_timing_bound_is_the_speedup_at_the_limit(
    accepted: float, plain: float, more: float, drafting: float, k: int
) -> None:
    """C2's speed-up with E[X] + 1 tokens per call and the same times; free drafts bound every draft."""
    table = LatencyTable(
        {1: Interval.exact(plain), k + 1: Interval.exact(plain + more)},
        {m: Interval.exact(drafting / k + 1e-3) for m in (1, 2)},
        context=1,
    )
    bound = branching_speedup(accepted, plain, plain + more, drafting + 1e-3 * k)
    assert table.speedup(Interval.exact(accepted + 1), Chain(k)).best == pytest.approx(bound, rel=ROUNDING)
    assert bound <= branching_speedup(accepted, plain, plain + more)


def seconds(low: float, high: float) -> Interval:
    return Interval(low, (low + high) / 2, high, "statistical")


def even_table(models: dict[str, Any] | None = None, **passes: dict[int, Interval]) -> LatencyTable:
    """A even_table whose passes all take a second but for those given."""
    target = {m: seconds(0.9, 1.1) for m in (1, 2, 4, 8)} | passes.get("target", {})
    draft = {m: seconds(0.09, 0.11) for m in (1, 2, 4)} | passes.get("draft", {})
    return LatencyTable(target, draft, 64, provenance=models or {})


def written(path: Path, schema: int, even_table: LatencyTable) -> Path:
    """The file of a even_table, as a version with that schema wrote it."""
    even_table.write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": schema}))
    return path


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("model", ["target", "draft"])
def test_16_bits_on_a_cpu_by_an_earlier_version(dtype: str, model: str, tmp_path: Path) -> None:
    half = even_table({model: {"dtype": dtype, "device": "cpu"}})
    with pytest.raises(TraceError) as caught:
        LatencyTable.read(written(tmp_path / "latency.json", 1, half))
    message = str(caught.value)
    assert "measured by an earlier version with 16-bit weights on a CPU" in message
    assert "copied the output matrix" in message
    assert "remove the file and run the command that made it again" in message
    half.write(tmp_path / "new.json")
    assert LatencyTable.read(tmp_path / "new.json") == half


@pytest.mark.parametrize(
    "models",
    [
        {},
        {"target": {"dtype": "float32", "device": "cpu"}, "draft": {"dtype": "float32", "device": "cpu"}},
        {"target": {"dtype": "bfloat16", "device": "cuda:0"}},
        {"target": "a name", "draft": None},
    ],
)
def test_other_tables_of_earlier_versions_are_read(models: dict[str, Any], tmp_path: Path) -> None:
    old = even_table(models)
    assert LatencyTable.read(written(tmp_path / "latency.json", 1, old)) == old


def test_a_pass_that_is_slower_on_fewer_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    assert even_table().slower_on_fewer == ()
    assert even_table(target={2: seconds(1.1, 1.3)}).slower_on_fewer == (), "intervals that touch say nothing"
    slow = even_table(target={4: seconds(2.0, 2.2)}, draft={2: seconds(1.8, 1.9)})
    assert slow.slower_on_fewer == (("target", 4), ("draft", 2))
    remark_slower(slow, "latency.json")
    target, draft = capsys.readouterr().err.splitlines()
    assert "the target's pass on 4 tokens takes 2.1 s, longer than on 8 (1 s)" in target
    assert "the draft's pass on 2 tokens takes 1.85 s, longer than on 4 (0.1 s)" in draft
    remark_slower(even_table(), "latency.json")
    assert capsys.readouterr().err == ""
