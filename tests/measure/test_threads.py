"""What a measurement shares with other work: torch's threads, and the folder that one run alone may write."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import spectheory.measure.machine as threads
from spectheory.cli import main
from spectheory.cli.loading import earlier_threads
from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import OutputError, SettingError
from spectheory.files import sole_writer, write_whole
from spectheory.intervals import Interval
from spectheory.measure import MeasureSettings, ModelPair, Progress, differences, measure, measure_latency
from spectheory.measure.machine import hardware, use_threads
from spectheory.measure.validation import Validation, validate
from spectheory.prompts import Prompt

Machine = Callable[..., None]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Return a function that makes this a machine of some cores, some busy, with a quota; torch takes all cores."""
    before = torch.get_num_threads()
    monkeypatch.setattr(threads, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(threads, "_QUOTAS", ((tmp_path / "cpu.max",), (tmp_path / "quota", tmp_path / "period")))

    def make(
        cores: int,
        *,
        busy: float = 0.0,
        quota: str = "max 100000",
        older: str = "",
        allowed: int | None = None,
        set_by_hand: int | None = None,
    ) -> None:
        mine = range(cores - (allowed or cores), cores)  # the last ones
        monkeypatch.setattr(threads, "allowed_cores", lambda: frozenset(mine))
        ticks = [0] * cores

        def rows() -> str:
            """Each look finds 100 ticks more of each core; the first cores that are allowed spent theirs."""
            lines = ["cpu  9 9 9 9 9 9 9 9 0 0"]
            for core in range(cores):
                share = min(max(busy - (core - mine[0]), 0.0), 1.0) if core in mine else 1.0
                spent = round(share * ticks[core])
                lines.append(f"cpu{core} {spent} 0 0 {ticks[core] - spent} 0 0 0 0 0 0")
                ticks[core] += 100
            return "\n".join([*lines, "intr 1 2 3"])

        def later(_: float) -> None:
            (tmp_path / "stat").write_text(rows())

        later(0)
        monkeypatch.setattr(threads.time, "sleep", later)
        if older:
            (tmp_path / "quota").write_text(f"{older}\n")
            (tmp_path / "period").write_text("100000\n")
        else:
            (tmp_path / "cpu.max").write_text(f"{quota}\n")
        torch.set_num_threads(set_by_hand or cores)

    yield make
    torch.set_num_threads(before)


BUSY = [(2, 0.0, 2), (2, 0.3, 2), (2, 1.0, 1), (2, 2.0, 1), (8, 2.6, 5), (8, 8.0, 1), (1, 0.0, 1), (1, 1.0, 1)]
MACHINES: list[tuple[dict[str, Any], int, str]] = [
    *(({"cores": n, "busy": b}, free, f"(of {n} cores, others use {b:.1f})" if n > 1 else "") for n, b, free in BUSY),
    ({"cores": 8, "allowed": 4, "busy": 1.0}, 3, "(of 4 cores, others use 1.0)"),  # the other four are all busy
    *(({"cores": 8, "quota": q}, n, "") for q, n in (("max 100000", 8), ("200000 100000", 2), ("150000 100000", 2))),
    *(({"cores": 8, "older": q}, n, "") for q, n in (("-1", 8), ("300000", 3))),  # control groups of version 1
    ({"cores": 8, "set_by_hand": 3}, 3, ""),  # as by OMP_NUM_THREADS
]


@pytest.mark.parametrize(("how", "expected", "words"), MACHINES, ids=str)
def test_as_many_as_cores_are_free(how: dict[str, Any], expected: int, words: str, machine: Machine) -> None:
    machine(**how)
    said = use_threads()
    assert torch.get_num_threads() == expected
    assert said.startswith(f"torch runs on {expected} thread")
    assert words in said


@pytest.mark.parametrize(("value", "words"), [("1", "OMP_NUM_THREADS is set"), (None, "torch's own choice")])
def test_who_chose_one_thread(value: str | None, words: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(4, set_by_hand=1)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if value:
        monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert use_threads() == f"torch runs on 1 thread ({words})"


def test_without_counts_of_ticks_the_load_is_taken(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(8)
    monkeypatch.setattr(threads.time, "sleep", lambda _: (tmp_path / "stat").write_text("cpu0 0 0 0 0 0 0 0 0"))
    (tmp_path / "stat").write_text("cpu0 0 0 0 0 0 0 0 0")
    monkeypatch.setattr(threads.os, "getloadavg", lambda: (3.1, 9.0, 9.0))
    use_threads()
    assert torch.get_num_threads() == 5
    (tmp_path / "stat").unlink()
    torch.set_num_threads(8)
    monkeypatch.setattr(threads.time, "sleep", lambda _: None)
    use_threads()
    assert torch.get_num_threads() == 5


def test_as_asked(machine: Machine) -> None:
    machine(8, busy=8.0)
    assert use_threads(6) == "torch runs on 6 threads (as asked)"
    assert torch.get_num_threads() == 6
    for wrong in (0, -1, 9):
        with pytest.raises(SettingError, match=rf"threads is {wrong}: this process may use 1\.\.8"):
            use_threads(wrong)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux counts ticks")
def test_a_busy_process_is_seen() -> None:
    """On the machine at hand: a process that never rests takes a share of a core."""
    burning = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE)
    try:
        assert burning.stdout
        burning.stdout.readline()
        assert threads._busy(threads.allowed_cores()) > 0.5
    finally:
        burning.kill()
        burning.communicate()


def test_a_run_goes_on_with_the_threads_it_began_with() -> None:
    assert earlier_threads([]) is None
    second = Interval.exact(1.0)
    for machine, expected in (({"system": "Plan9 mips"}, None), (hardware(), 5)):
        provenance = {"hardware": machine | {"threads": 5}}
        assert earlier_threads([LatencyTable({1: second}, {1: second, 2: second}, 8, provenance)]) == expected


def test_what_others_use_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four cores 2.5 were busy, and this process used 1.5 of them."""
    clock = {"perf_counter": 10.0, "process_time": 7.0}
    monkeypatch.setattr(threads, "_STAT", tmp_path / "stat")
    monkeypatch.setattr(threads, "allowed_cores", lambda: frozenset(range(4)))
    for name in clock:
        monkeypatch.setattr(threads.time, name, lambda name=name: clock[name])

    def ticks(spent: int, idle: int) -> None:
        rows = [f"cpu{core} {spent} 0 0 {idle} 0 0 0 0 0 0" for core in range(4)]
        (tmp_path / "stat").write_text("\n".join(rows))

    ticks(500, 20)
    watch = threads.Watch()
    assert watch.others is None, "no time has passed"
    clock.update(perf_counter=12.0, process_time=10.0)
    ticks(500 + 125, 20 + 75)
    assert watch.others == pytest.approx(1.0)
    assert watch.seconds == 2.0
    clock.update(process_time=20.0)
    assert watch.others == 0.0, "ticks are coarser than the process's own clock"
    (tmp_path / "stat").unlink()
    assert threads.Watch().others is None


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


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """Renaming would put a file in its place, as of /dev/null for a user who may do that."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(path.read_text)
        write_whole(path, lambda whole: whole.write_text("mine"))
        assert read.result(5.0) == "mine"
    assert path.is_fifo()


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
