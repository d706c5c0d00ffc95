"""Worker processes: the trace of one process, whoever dies; who is refused; what is kept."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spectheory.errors import ModelError, OutputError, SettingError, TraceError, WorkerError
from spectheory.measure import ModelPair, Progress, measure, runners
from spectheory.measure.job import MeasureSettings, encode, measurement_of
from spectheory.measure.run import run_measurement
from spectheory.measure.runners import (
    Done,
    Due,
    Sample,
    Task,
    _attempt,
    _Failure,
    _identity,
    _Order,
    devices_for,
    here,
    local_workers,
)
from spectheory.trace import Trace
from spectheory.trace.parquet import parts_of
from tests.measure.runner_cases import MORTAL, PROMPTS, SETTINGS, Source, assert_equal_bytes, deaths


@pytest.fixture(scope="module")
def whole(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The trace of one process."""
    return measure(tiny_pair, PROMPTS, SETTINGS, tmp_path_factory.mktemp("whole") / "trace.parquet")


@pytest.fixture
def source(tiny_folders: tuple[Path, Path]) -> Source:
    return Source(*map(str, tiny_folders))


def test_two_workers_measure_what_one_process_does(
    tiny_pair: ModelPair, source: Source, whole: Trace, tmp_path: Path
) -> None:
    """Byte for byte; they are gone at the end, and so is all that was kept on the way."""
    seen: list[Progress] = []
    runner = local_workers(source.load, ["cpu", "cpu"], threads=1)
    out = tmp_path / "trace.parquet"
    assert_equal_bytes(measure(tiny_pair, PROMPTS, SETTINGS, out, runner=runner, on_progress=seen.append), whole)
    assert [state.done for state in seen] == list(range(7))
    assert not multiprocessing.active_children()
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


@pytest.mark.evidence
def test_the_prompt_of_a_worker_that_is_killed_is_read_again(
    tiny_pair: ModelPair, source: Source, whole: Trace, tmp_path: Path
) -> None:
    mortal = replace(source, deaths=deaths(tmp_path / "deaths", 2))
    runner = local_workers(mortal.load, ["cpu", "cpu"], threads=1)
    trace = measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "trace.parquet", batch=2, runner=runner)
    assert_equal_bytes(trace, whole)
    assert not list((tmp_path / "deaths").iterdir())


@pytest.mark.evidence
def test_a_prompt_that_kills_every_worker_is_named(
    tiny_pair: ModelPair, source: Source, whole: Trace, tmp_path: Path
) -> None:
    mortal = replace(source, deaths=deaths(tmp_path / "deaths", 9))
    out = tmp_path / "trace.parquet"
    with pytest.raises(WorkerError, match=rf"died 3 times with prompt '{MORTAL}' \(the last by SIGKILL\)") as caught:
        measure(tiny_pair, PROMPTS, SETTINGS, out, runner=local_workers(mortal.load, ["cpu"], threads=1))
    assert "\n" not in str(caught.value)
    assert len(list((tmp_path / "deaths").iterdir())) == 6
    seen: list[Progress] = []
    assert_equal_bytes(measure(tiny_pair, PROMPTS, SETTINGS, out, on_progress=seen.append), whole)
    assert seen[0].resumed == 2, "prompts are read in the order of the file"


@pytest.mark.evidence
def test_a_worker_with_other_weights_is_refused(tiny_pair: ModelPair, source: Source, tmp_path: Path) -> None:
    """The error of a process is the run's, in one line."""
    other = replace(source, draft=source.target)
    with pytest.raises(ModelError, match=r"worker 1 \(process \d+\) has a draft with fingerprint") as caught:
        measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "out", runner=local_workers(other.load, ["cpu"], threads=1))
    assert "\n" not in str(caught.value)


def test_what_differs_is_named(tiny_pair: ModelPair, source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    order = _Order(source.load, _identity(tiny_pair), SETTINGS, "worker 2")
    assert order.pair().vocabulary == tiny_pair.vocabulary
    with pytest.raises(ModelError, match=r"worker 2 \(process \d+\) has a draft with .* the measurement has"):
        replace(order, load=replace(source, draft=source.target).load).pair()
    versions = runners.versions()
    monkeypatch.setattr(runners, "versions", lambda: {**versions, "torch": f"{versions['torch']}+other"})
    order.pair()  # the build for another device is the same version
    monkeypatch.setattr(runners, "versions", lambda: {**versions, "spectheory": "0.0.1"})
    with pytest.raises(ModelError, match=r"worker 2 .* has spectheory 0\.0\.1: the measurement has"):
        replace(order, load=None).pair()  # type: ignore[arg-type]  # nothing is loaded


def test_errors_travel() -> None:
    """As they are, or those that cannot be sent as a line; with the traceback of the worker."""

    class Local(Exception):
        pass

    def fail(error: Exception) -> Callable[[], None]:
        def work() -> None:
            raise error

        return work

    known = SettingError("k is 0", limit="must be >= 1", remedy="use 1")
    for error, message in ((known, str(known)), (Local("gone"), "Local: gone")):
        failure = _attempt(fail(error))
        assert isinstance(failure, _Failure)
        assert str(failure.error) == message
    assert "in work" in known.__notes__[0]


# What is kept


def stopped_after(
    steps: int,
) -> Callable[[ModelPair, MeasureSettings, Due], Generator[tuple[Task, Done], None, None]]:
    """A runner that is interrupted when so many tasks are done."""

    def run(pair: ModelPair, settings: MeasureSettings, due: Due) -> Generator[tuple[Task, Done], None, None]:
        with closing(here(pair, settings, due)) as results:
            for _ in range(steps):
                yield next(results)
        raise KeyboardInterrupt

    return run


def test_texts_are_kept_as_soon_as_they_are_sampled(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """A rerun samples no batch again that was sampled, and whole batches of the size that the first run had."""
    out, whole = tmp_path / "trace.parquet", tmp_path / "whole.parquet"
    with pytest.raises(KeyboardInterrupt):
        measure(tiny_pair, PROMPTS, SETTINGS, out, batch=4, runner=stopped_after(2))
    done: list[list[str]] = []

    def noted(pair: ModelPair, settings: MeasureSettings, due: Due) -> Generator[tuple[Task, Done], None, None]:
        for task, result in here(pair, settings, due):
            done.append([type(task).__name__, *(each.prompt.id for each in task.prompts)])
            yield task, result

    resumed = measure(tiny_pair, PROMPTS, SETTINGS, out, batch=1, runner=noted)
    reads = [["Read", f"q{i}"] for i in range(2, 7)]
    assert done == [*reads[:2], ["Sample", "q4", "q5", "q6"], *reads[2:]]
    assert_equal_bytes(resumed, measure(tiny_pair, PROMPTS, SETTINGS, whole, batch=4))
    assert not out.with_name("trace.parquet.parts").exists()


def test_a_quick_answer_closes_the_runner(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Before it is returned, and with work left to do."""
    closed: list[int] = []

    def noted(pair: ModelPair, settings: MeasureSettings, due: Due) -> Generator[tuple[Task, Done], None, None]:
        try:
            yield from here(pair, settings, due)
        finally:
            closed.append(len(due))

    prompts = [replace(prompt, id=f"{prompt.id}-{i}") for i in range(3) for prompt in PROMPTS]
    job = measurement_of(tiny_pair, prompts, SETTINGS)
    trace = run_measurement(job, tmp_path / "trace.parquet", batch=4, runner=noted, quick=True)
    assert trace.provenance["provisional"] == {"prompts": 12, "of": 18}
    assert closed == [2], "two batches are left"


def test_damaged_rows_are_measured_again(tiny_pair: ModelPair, tmp_path: Path) -> None:
    """Texts and parts; those of another measurement, and a folder as parts once were, are refused."""
    out = tmp_path / "trace.parquet"
    with pytest.raises(KeyboardInterrupt):
        measure(tiny_pair, PROMPTS, SETTINGS, out, batch=1, runner=stopped_after(3))
    parts = parts_of(out)
    head, began, *rows = parts.read_bytes().splitlines(keepends=True)
    assert [next(iter(json.loads(row.partition(b"\t")[0]))) for row in rows] == ["sampled", "part", "sampled"]
    parts.write_bytes(head.replace(b'"fingerprint":"', b'"fingerprint":"other') + began)
    with pytest.raises(TraceError, match="unfinished measurement with other settings"):
        measure(tiny_pair, PROMPTS, SETTINGS, out)
    parts.write_bytes(head + began + b"".join(row.replace(b"1", b"2") for row in rows))
    whole = measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "whole.parquet", batch=1)
    assert_equal_bytes(measure(tiny_pair, PROMPTS, SETTINGS, out), whole)
    other = tmp_path / "other.parquet"
    parts_of(other).mkdir()
    with pytest.raises(OutputError, match=r"cannot be written .*y\).*; delete it or choose another --out") as caught:
        measure(tiny_pair, PROMPTS, SETTINGS, other)
    assert "\n" not in str(caught.value)


def test_the_device_of_each_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "find_device", lambda name: torch.device(name or "cuda"))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices_for(3, None) == ["cuda:0", "cuda:1", "cuda:0"]
    assert devices_for(2, "cuda") == ["cuda:0", "cuda:1"]
    assert devices_for(2, "cuda:1") == ["cuda:1", "cuda:1"]
    assert devices_for(2, "cpu") == ["cpu", "cpu"]


def test_weights_are_off_the_gpu_while_workers_use_it(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    class Network:
        def __init__(self) -> None:
            self.at = [torch.device("cuda:1")]

        def get_input_embeddings(self) -> Any:
            return SimpleNamespace(weight=SimpleNamespace(device=self.at[-1]))

        def to(self, device: str | torch.device) -> None:
            self.at.append(torch.device(device))

    emptied: list[None] = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(None))
    network = Network()
    pair = replace(tiny_pair, target=replace(tiny_pair.target, network=network))
    with runners._aside(pair):
        assert (network.at[-1], len(emptied)) == (torch.device("cpu"), 1)
    assert network.at[-1] == torch.device("cuda:1")


def test_names_of_tasks(tiny_pair: ModelPair) -> None:
    encoded = tuple(encode(tiny_pair, PROMPTS, SETTINGS))
    assert str(Sample(encoded)) == "the batch of prompts 'q1' to 'q6'"
    assert str(Sample(encoded[:1])) == "prompt 'q1'"
