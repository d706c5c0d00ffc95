"""An engine is one folder and its line: that of docs/extending.md is read, planned and run; every folder has both."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spectheory import engines
from spectheory.cli import main
from spectheory.deployment import serving_engines
from spectheory.deployment.engines import facts_table
from spectheory.errors import SettingError
from spectheory.measure.engines import Job, Models, find_engine
from spectheory.trace import SAMPLED_TEXT, read_files
from spectheory.trace.counters import Counters
from spectheory.trace.importers import formats
from spectheory.trace.importers.prometheus import SPECULATION
from spectheory.trace.reading import format_of
from tests.house.test_house import PARTS, ROOT, tree
from tests.made_up import trace as made_up

PAGE = ROOT / "docs" / "extending.md"


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's engine, whose folder is among those of the package, its line, and the page's format beside it."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)[-4:]
    (tmp_path / "toy").mkdir()
    for name, block in zip(("tally", "toy/logs", "toy/settings", "toy/running"), blocks, strict=True):
        (tmp_path / f"{name}.py").write_text(block, encoding="utf-8")
    (tmp_path / "toy" / "__init__.py").touch()
    logs = tmp_path / "toy" / "logs.py"
    logs.write_text(f"{logs.read_text()}\nfrom tally import TALLY\nREQUESTS = (TALLY,)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tally", raising=False)
    monkeypatch.setattr(engines, "__path__", [*engines.__path__, str(tmp_path)])
    monkeypatch.setattr(engines, "FOLDERS", (*engines.FOLDERS, "toy"))
    formats.cache_clear()
    yield tmp_path
    formats.cache_clear()
    for name in [name for name in sys.modules if name.startswith("spectheory.engines.toy")]:
        del sys.modules[name]


def test_its_logs_and_counters_are_read(toys: Path) -> None:
    names = {name.removesuffix("_total"): (4, 12, 6)[i] for i, name in enumerate(SPECULATION.values())}
    (toys / "metrics").write_text("".join(f"# TYPE toy:{n} counter\ntoy:{n}_total {v}\n" for n, v in names.items()))
    totals = read_files([toys / "metrics"])
    assert isinstance(totals, Counters)
    assert (totals.engine, totals.calls, totals.drafted, totals.accepted) == ("toy", 4, 12, 6)
    (toys / "run.log").write_text("# tally\na 2 3\n")
    assert format_of(toys / "run.log").name == "tally"


def test_its_settings_are_planned(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up(40, 30, 25, 35, origin=SAMPLED_TEXT).write(toys / "trace.parquet")
    assert main(f"plan {toys / 'trace.parquet'} --c 0.1 --k-max 2 --nodes-max 1 --json".split()) == 0
    of = {each["engine"]: each for each in json.loads(capsys.readouterr().out)["engines"]}
    assert (of["toy"]["rule"], of["toy"]["paste"]) == ("token", f"toy --k {of['toy']['options']['k']}")
    assert of["toy"]["remarks"][0] == "Rule: token verification of K sampled drafts."
    row = "| toy 1.0 | `--k K` | Token verification of K sampled drafts. | run |"
    assert facts_table(serving_engines()).endswith(row)


def test_it_is_run(toys: Path) -> None:
    toy, models = find_engine("toy"), Models(*(toys / each for each in ("target", "draft", "work")))
    for k in (None, 3):
        (request,) = toy.requests(Job((("a", (7,)),), 9, k), models)
        assert (toy.version(), request.output, request.total_accepted) == ("1.0", (7,) * 9, k and 2 * k)
    with pytest.raises(SettingError, match=r"there are vllm, llama\.cpp, openvino, onnxruntime, toy"):
        find_engine("nobody")


def test_without_its_line_an_engine_is_unknown() -> None:
    with pytest.raises(SettingError, match=r"'toy' is unknown: there are vllm, llama\.cpp, openvino, onnxruntime;"):
        find_engine("toy")
    assert "tally" not in formats()


def test_every_engine_is_in_the_list() -> None:
    """Its files are found by their names, and what they say by the names in them: none is misspelt."""
    folders = [folder for folder in (ROOT / "spectheory/engines").iterdir() if (folder / "__init__.py").is_file()]
    assert {folder.name for folder in folders} == set(engines.FOLDERS)
    uses = {
        "logs": {"REQUESTS", "SCORES", "TOTALS", "METRICS"},
        "settings": {"ENGINE"},
        "running": {"RUNS", "DIALECT"},
    }
    for path in (file.relative_to(ROOT) for folder in folders for file in folder.glob("*.py")):
        assert path.stem in {*PARTS, "__init__"}, path
        targets = [node.targets[0] for node in tree(path).body if isinstance(node, ast.Assign)]
        assert path.stem not in uses or {ast.unparse(each) for each in targets} & uses[path.stem], path


def test_reading_logs_loads_nothing_heavy() -> None:
    """Neither the settings of an engine nor how it is run; negative control: settings load what they are made of."""
    line = "import sys; {}; print(*(name for name in sys.modules if name == 'torch' or name.endswith('vllm.settings')))"
    for work, loads in (
        ("from spectheory.trace.importers import formats; assert len(formats()) > 30", False),
        ("from spectheory.deployment import serving_engines; assert serving_engines()", True),
    ):
        ran = subprocess.run([sys.executable, "-c", line.format(work)], capture_output=True, text=True, check=True)
        assert bool(ran.stdout.strip()) is loads
