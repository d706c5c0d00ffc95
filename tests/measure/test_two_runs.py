"""Two runs into one folder: the second is refused in a line; a run that died, or that ended, is in nobody's way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spectheory.cli import main
from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import OutputError
from spectheory.files import sole_writer, write_whole
from spectheory.measure import (
    MeasureSettings,
    ModelPair,
    Progress,
    differences,
    measure,
    measure_latency,
)
from spectheory.measure.validation import Validation, validate
from spectheory.prompts import Prompt

PROMPTS = tuple(Prompt(f"q{i}", "c", f"t{i} t7") for i in range(1, 4))
HOLD = """
import sys, time
from pathlib import Path
from spectheory.files import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def another_run(path: Path) -> Iterator[None]:
    """A process that holds a path until the block ends, when it is killed."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield
        finally:
            process.kill()


def test_a_path_is_held_by_one_run(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    for _ in range(2):  # it is free again afterwards, and nothing is left of the lock
        with (
            sole_writer(path),
            pytest.raises(OutputError, match=r"file is in use: one run at a time"),
            sole_writer(path),
        ):
            pass
        assert list(path.parent.iterdir()) == []
    with sole_writer(path), sole_writer(path.with_name("other")):
        pass


def test_a_run_that_died_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with another_run(path), pytest.raises(OutputError, match="is in use"), sole_writer(path):
        pass
    with sole_writer(path):
        write_whole(path, lambda partial: partial.write_text("mine"))
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_lock_removed_while_waiting_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking the file its holder may end and remove it: then it is made anew."""
    path, beside, opened = tmp_path / "file", tmp_path / ".file.lock", os.open
    removed = []

    def slow(file: Path, *how: int) -> int:
        descriptor = opened(file, *how)
        if not removed:
            removed.append(beside.unlink())
        return descriptor

    monkeypatch.setattr(os, "open", slow)
    with sole_writer(path):
        assert beside.exists()
        with pytest.raises(OutputError), sole_writer(path):
            pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"), sole_writer(tmp_path / "file" / "trace.parquet"):
        pass


def test_a_measurement_is_refused_while_another_is_at_work(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """At its start, in its middle and while it is written; the first run is not disturbed."""
    out, settings, refused = tmp_path / "trace.parquet", MeasureSettings(tokens=5), []

    def again(_: Progress) -> None:
        with pytest.raises(OutputError) as caught:
            measure(tiny_pair, PROMPTS, settings, out)
        refused.append(str(caught.value))

    trace = measure(tiny_pair, PROMPTS, settings, out, on_progress=again)
    assert len(refused) == 1 + len(PROMPTS)
    assert all(f"{out} is in use: one run at a time writes it" in line for line in refused)
    assert len(trace.texts) == len(PROMPTS)
    assert [each.name for each in tmp_path.iterdir()] == ["trace.parquet"]
    assert len(measure(tiny_pair, PROMPTS, settings, out)) == len(trace)


def test_a_validation_is_refused_while_another_is_at_work(tiny_pair: ModelPair, tmp_path: Path) -> None:
    question = Validation(("token",), (Chain(1),), (0.0,), MeasureSettings(tokens=4))
    with another_run(tmp_path / "validation.json"), pytest.raises(OutputError, match=r"validation.json is in use"):
        validate(tiny_pair, PROMPTS, question, tmp_path)
    assert not (tmp_path / "latency-0.json").exists()


# Latencies of a finished measurement


@pytest.mark.usefixtures("quick_latencies")
def test_latencies_are_measured_once(
    tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run keeps them and says so, with its threads; of another machine they are measured again, aloud too."""
    prompts = tmp_path / "question.jsonl"
    prompts.write_text('{"question_id": 1, "category": "c", "turns": ["t1 t2"]}\n')
    models = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    command = ["measure", "--prompts", str(prompts), "--out", str(tmp_path / "out"), "--tokens", "4", *models]
    path = tmp_path / "out" / "latency.json"
    monkeypatch.setattr("spectheory.cli.measure.write_measured", lambda *_: [])
    assert main(command) == 0
    assert "latencies were measured before" not in capsys.readouterr().err
    first = path.read_bytes()
    assert main(command) == 0
    assert f"remove {path} to measure them again" in capsys.readouterr().err.replace("\n", " ")
    assert path.read_bytes() == first
    table = LatencyTable.read(path)
    if len(os.sched_getaffinity(0)) > 1:  # threads are chosen anew, unless there is a table of others
        others = {**table.provenance["hardware"], "threads": 3 - torch.get_num_threads()}
        kept = replace(table, provenance={**table.provenance, "hardware": others})
        kept.write(path)
        assert main(command) == 0
        assert "so it did before" in capsys.readouterr().err
        assert LatencyTable.read(path) == kept
        torch.set_num_threads(table.provenance["hardware"]["threads"])
    elsewhere = {**table.provenance, "hardware": {"cpu": "another"}}
    replace(table, provenance=elsewhere).write(path)
    assert main(command) == 0
    assert "is of another run (hardware): measuring again" in capsys.readouterr().err.replace("\n", " ")
    assert LatencyTable.read(path).provenance["hardware"] == table.provenance["hardware"]
    with another_run(path):
        assert main(command) == 2
        assert f"{path} is in use" in capsys.readouterr().err


def test_what_another_run_is(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Each thing that decides a table is named."""
    table = measure_latency(tiny_pair, context=4, tokens=(1, 2), rounds=1, loop=Sampling())
    wanted = {"context": 4, "longest": 2, "sampling": Sampling()}
    assert differences(table, tiny_pair, **wanted) == ()
    assert differences(replace(table, loop=None), tiny_pair, **wanted) == ("loop",)
    assert differences(replace(table, groups=()), tiny_pair, **wanted) == ("groups of rounds",), "earlier versions'"
    for name, change in {
        "context": {"context": 5},
        "tokens of a pass": {"longest": 3},
        "sampling": {"sampling": Sampling(0.5)},
    }.items():
        assert differences(table, tiny_pair, **{**wanted, **change}) == (name,)
