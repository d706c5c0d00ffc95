"""The figures and quoted answers of the built-in pair are those of the traces in docs/figures/pair."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import matplotlib
import pytest
from matplotlib.testing.compare import compare_images
from PIL import Image

from benchmarks.training.card import acceptance_by_prompt
from spectheory import Trace
from spectheory.cli import main
from spectheory.cost import LatencyTable
from spectheory.pairs import resolve
from spectheory.plots.measured import write_measured
from spectheory.plots.style import save_figure

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
DISTILLED, DRAFT = FIGURES / "pair" / "distilled", FIGURES / "pair" / "draft"
TOLERANCE = 1.0
"""As of the figures of the docs: root mean square over all pixels, of 255."""
PREDICT = ("predict", str(DISTILLED), "--k-max", "8")
COMMANDS = {
    PREDICT: ("tokens_per_call", "trees", "speedup"),
    ("plan", "--trace", f"distilled={DISTILLED}", "--trace", f"draft={DRAFT}"): ("plan",),
    (*PREDICT, "--where", "--rule", "token", "--c", "0.05"): ("where",),
}

pytestmark = pytest.mark.evidence


def differs(name: str, folder: Path) -> bool:
    """Whether the figure in the folder is another than the committed one."""
    with Image.open(FIGURES / f"{name}.png") as picture:
        if f"version{matplotlib.__version__}," not in picture.info["Software"]:
            pytest.skip(f"{name}.png was drawn by another matplotlib than {matplotlib.__version__}")
    return compare_images(str(FIGURES / f"{name}.png"), str(folder / f"{name}.png"), TOLERANCE) is not None


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: COMMANDS[command][0])
def test_a_command_draws_the_committed_pictures(command: tuple[str, ...], tmp_path: Path) -> None:
    assert main([*command, "--out", str(tmp_path)]) == 0
    assert [name for name in COMMANDS[command] if differs(name, tmp_path)] == []


def test_what_was_measured_is_the_committed_picture(tmp_path: Path) -> None:
    write_measured(Trace.read(DISTILLED), LatencyTable.read(DISTILLED / "latency.json"), tmp_path)
    assert not differs("measured", tmp_path)


def test_the_drafts_are_the_committed_picture(tmp_path: Path) -> None:
    """To renew it: `python benchmarks/_drafts_page.py`."""
    script = runpy.run_path(str(ROOT / "benchmarks" / "_drafts_page.py"))
    script["write_figure"](script["saved"](), tmp_path / "drafts")
    assert not differs("drafts", tmp_path)


def test_published_numbers_are_the_committed_picture(tmp_path: Path) -> None:
    """To renew it: `python benchmarks/published.py`."""
    script = runpy.run_path(str(ROOT / "benchmarks" / "published.py"))
    save_figure(lambda figure: script["draw"](figure, script["facts"]()), script["SIZE"], tmp_path / "published")
    assert not differs("published", tmp_path)


def test_another_pair_is_seen(tmp_path: Path) -> None:
    """Negative control: the other draft."""
    write_measured(Trace.read(DRAFT), LatencyTable.read(DRAFT / "latency.json"), tmp_path)
    assert differs("measured", tmp_path)


def test_the_quoted_verdict_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(list(PREDICT)) == 0
    verdict = "\n".join(capsys.readouterr().out.splitlines()[:2])
    assert f"```\n{verdict}\n```" in (ROOT / "docs" / "built_in_pair.md").read_text(encoding="utf-8")


def test_the_table_of_models_has_the_measurements() -> None:
    """Losses as the recipe recorded them; acceptance rates and c of the measurements that the page's commands read."""
    page = (ROOT / "docs" / "built_in_pair.md").read_text(encoding="utf-8")
    for name, folder in (("draft", DRAFT), ("distilled", DISTILLED)):
        facts = json.loads((Path(resolve(f"builtin:{name}")) / "training.json").read_text())
        rate, error = acceptance_by_prompt(Trace.read(folder))
        c = LatencyTable.read(folder / "latency.json").ratio
        values = f"| {facts['parameters']:,} | {facts['held_out_loss_nats_per_token']:.3f} | {rate:.3f} ± {error:.3f} "
        assert re.search(rf"^\| `{name}`[^|]*{re.escape(values)}\| {c:.3f} \|$", page, re.MULTILINE), name


def test_the_quoted_table_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PREDICT, "--all"]) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    table = lines[lines.index("Tokens per target call") :][:11]
    assert "\n".join(table) in (ROOT / "docs" / "built_in_pair.md").read_text(encoding="utf-8")
