"""The benchmark for accelerators runs to its end where there is none, every part of it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from spectheory.reports import PARTS as BUDGET

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    """The script, loaded by its path beside the modules it imports."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        spec = importlib.util.spec_from_file_location("on_gpu", FOLDER / "on_gpu.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
        for name in {name for name in set(sys.modules) - before if name.startswith("_gpu")}:
            del sys.modules[name]


@pytest.mark.evidence
def test_every_part_runs_without_a_gpu(script: ModuleType, tmp_path: Path) -> None:
    """In float32 on a CPU no text parts from another, and counted calls are those expected."""
    out = tmp_path / "found.json"
    options = ["--device", "cpu", "--sizes", "tiny", "--dtype", "float32", "--threads", "1", "--out", str(out)]
    assert script.main(options) == 0
    results = json.loads(out.read_text())
    assert set(results["parts"]) == set(script.PARTS)
    assert all("error" not in result for part in results["parts"].values() for result in part.values())
    texts, calls, mixed = (results["parts"][name]["float32"] for name in ("texts", "calls", "mixed"))
    columns, sampling, budget = (
        results["parts"][name]["float32"] for name in ("columns", "sampling", "latency_budget")
    )
    assert texts["texts"] == 2
    assert texts["races_parted"] == texts["greedy_parted"] == 0
    assert calls["disagreements"] == 0
    assert calls["comparisons"] > 7
    assert all(row["measured"] > 0 for row in calls["settings"])
    assert set(calls["median_budget"]) == set(BUDGET)
    assert not any(one["differ"] for one in columns["settings"].values())
    assert all(one["ms_per_position"] > 0 for one in columns["settings"].values())
    assert sum(
        columns["shares"]["of_all"][name] for name in ("sampling", "reading", "columns with the race")
    ) == pytest.approx(1, rel=1e-12)
    assert (sampling["texts"], sampling["differ"]) == (4, 0)
    assert all(one["rounds"] >= one["groups"] >= 4 and one["loop"]["plain"] > 0 for one in budget["budgets"].values())
    assert mixed["draft on cpu"]["tree"] == mixed["target on cpu"]["chain"] == []


def test_a_part_that_fails_leaves_its_error(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The parts after it are run; a second run that is out of time leaves them out."""

    def fails(*_: object) -> dict[str, object]:
        raise RuntimeError("CUDA error: something")

    monkeypatch.setitem(script.PARTS, "texts", fails)
    out = tmp_path / "found.json"
    options = ["--device", "cpu", "--sizes", "tiny", "--parts", "texts", "memory", "--out", str(out), "--threads", "1"]
    assert script.main([*options, "--dtype", "float32"]) == 1
    parts = json.loads(out.read_text())["parts"]
    assert parts["texts"]["float32"]["error"] == "RuntimeError: CUDA error: something"
    assert parts["memory"]["float32"]["provoked"] is False
    assert "CUDA error" in capsys.readouterr().err
    assert script.main([*options, "--limit", "-1"]) == 0
    parts = json.loads(out.read_text())["parts"]
    assert "left_out" in parts["memory"]["bfloat16"]
