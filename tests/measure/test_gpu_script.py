"""The benchmark for accelerators runs to its end where there is none, every part of it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

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


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_nothing_is_done(script: ModuleType, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A refusal if one is asked for; otherwise the other benchmarks go on."""
    out = ["--out", str(tmp_path / "found.json")]
    assert script.main(out) == 0
    assert script.main([*out, "--device", "cuda"]) == 2
    assert "no cuda device" in capsys.readouterr().out
    assert not (tmp_path / "found.json").exists()


def test_the_large_pair_and_its_roofline(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many weights as C3 counts, built where they belong in their precision; a pass reads them once."""
    part, sizes = script.PARTS["latencies"].__globals__, script.SIZES["quick"]
    monkeypatch.setitem(part, "data_sheet", lambda device: "H200")
    limit = part["roofline"]("cuda", "bfloat16", sizes, 128)
    for name, shape in (("target", limit.target), ("draft", limit.draft)):
        model = part["random_model"](name, getattr(sizes, name), "meta", "bfloat16")
        assert model.network.num_parameters() == shape.parameters
        assert {(one.device.type, one.dtype) for one in model.network.parameters()} == {("meta", torch.bfloat16)}
    assert limit.target.parameters == 8_030_261_248
    row = part["row"]({"best": 7e-3}, limit.target_pass(1).best)
    read = 2 * (8_030_261_248 - 128_256 * 4096) + 128 * limit.target.kv_bytes_per_token
    assert row["over_roofline"] == pytest.approx(7e-3 * 4.8e12 / read)
    assert part["row"]({"best": 7e-3}, None)["over_roofline"] is None
    assert part["roofline"]("cuda", "float32", sizes, 128) is None


def test_texts_that_part_are_reported(script: ModuleType) -> None:
    """Where, and by what margin: the last token is replaced by one that the model finds less probable."""
    part = script.PARTS["texts"].__globals__
    pair = part["builtin"]("cpu", "float32")
    prompts = part["prompts_of"](pair, 2)
    greedy = part["decode"](pair, prompts, part["Method"]("plain"), tokens=5, sampling=part["Sampling"](0))
    texts = [one.output_ids.tolist() for one in greedy]
    others = [texts[0], [*texts[1][:-1], (texts[1][-1] + 1) % pair.vocabulary]]
    (difference,) = part["parted"](pair, prompts, texts, others, False)
    assert (difference["text"], difference["at"]) == (1, len(texts[1]) - 1)
    assert difference["margin"] > 100 * difference["spacing"] > 0
    (shorter,) = part["parted"](pair, prompts, texts, [texts[0], texts[1][:2]], False)
    assert shorter == {"text": 1, "at": 2, "margin": None, "spacing": None}
