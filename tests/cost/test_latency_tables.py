"""Latency tables that are not to be trusted: of earlier versions in 16 bits on a CPU, or slower on fewer tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spectheory.cli.inputs import remark_slower
from spectheory.cost import LatencyTable
from spectheory.errors import TraceError
from spectheory.intervals import Interval


def seconds(low: float, high: float) -> Interval:
    return Interval(low, (low + high) / 2, high, "statistical")


def table(models: dict[str, Any] | None = None, **passes: dict[int, Interval]) -> LatencyTable:
    """A table whose passes all take a second but for those given."""
    target = {m: seconds(0.9, 1.1) for m in (1, 2, 4, 8)} | passes.get("target", {})
    draft = {m: seconds(0.09, 0.11) for m in (1, 2, 4)} | passes.get("draft", {})
    return LatencyTable(target, draft, 64, provenance=models or {})


def written(path: Path, schema: int, table: LatencyTable) -> Path:
    """The file of a table, as a version with that schema wrote it."""
    table.write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": schema}))
    return path


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("model", ["target", "draft"])
def test_16_bits_on_a_cpu_by_an_earlier_version(dtype: str, model: str, tmp_path: Path) -> None:
    half = table({model: {"dtype": dtype, "device": "cpu"}})
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
    old = table(models)
    assert LatencyTable.read(written(tmp_path / "latency.json", 1, old)) == old


def test_a_pass_that_is_slower_on_fewer_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    assert table().slower_on_fewer == ()
    assert table(target={2: seconds(1.1, 1.3)}).slower_on_fewer == (), "intervals that touch say nothing"
    slow = table(target={4: seconds(2.0, 2.2)}, draft={2: seconds(1.8, 1.9)})
    assert slow.slower_on_fewer == (("target", 4), ("draft", 2))
    remark_slower(slow, "latency.json")
    target, draft = capsys.readouterr().err.splitlines()
    assert "the target's pass on 4 tokens takes 2.1 s, longer than on 8 (1 s)" in target
    assert "the draft's pass on 2 tokens takes 1.85 s, longer than on 4 (0.1 s)" in draft
    remark_slower(table(), "latency.json")
    assert capsys.readouterr().err == ""
