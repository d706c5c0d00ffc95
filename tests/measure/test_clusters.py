"""A Dask cluster reads the prompts: the trace of one process, whoever dies, and who is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import ModelError, WorkerError
from spectheory.measure import ModelPair, Progress, measure, runners
from spectheory.measure.runners import dask_workers
from spectheory.trace import Trace
from tests.commands import refused
from tests.measure.runner_cases import MORTAL, PROMPTS, SETTINGS, Source, assert_equal_bytes, deaths

distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")


@pytest.fixture(scope="module")
def whole(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """The trace of one process."""
    return measure(tiny_pair, PROMPTS, SETTINGS, tmp_path_factory.mktemp("whole") / "trace.parquet")


@pytest.fixture
def source(tiny_folders: tuple[Path, Path]) -> Source:
    return Source(*map(str, tiny_folders))


@contextmanager
def workers(folder: Path, *, processes: bool = False, count: int = 2) -> Iterator[Any]:
    """A cluster, of this process's threads or of processes."""
    with distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=processes,
        dashboard_address=":0",
        local_directory=str(folder / "dask"),
    ) as made:
        yield made


def test_a_cluster_measures_what_one_process_does(
    tiny_pair: ModelPair, source: Source, whole: Trace, tmp_path: Path
) -> None:
    """A pair that differs is refused, and the next measurement of the same cluster loads its own."""
    with workers(tmp_path) as made:
        address = made.scheduler_address
        other = dask_workers(replace(source, draft=source.target).load, address)
        with pytest.raises(ModelError, match=r"the Dask worker \S+ on \S+ has a draft with fingerprint") as caught:
            measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "other.parquet", runner=other)
        assert "\n" not in str(caught.value)
        runner = dask_workers(source.load, address)
        assert_equal_bytes(measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "out.parquet", runner=runner), whole)
        assert runners._loaded == {}, "workers give their memory back"


def test_a_scheduler_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scheduler that is there may take its time: on a busy machine its answer is late."""
    asked = ["measure", "--out", tmp_path, "--scheduler"]
    monkeypatch.setattr(runners, "CONNECT_SECONDS", 0.3)
    for address in ("tcp://127.0.0.1:9", "nonsense://"):
        assert f"no Dask scheduler answers at {address!r}" in refused([*asked, address], capsys)
    monkeypatch.setattr(runners, "CONNECT_SECONDS", 300.0)
    monkeypatch.setattr(runners, "WORKER_SECONDS", 0.3)
    with workers(tmp_path, count=0) as made:
        assert "has no worker: waited" in refused([*asked, made.scheduler_address], capsys)


@pytest.mark.evidence
def test_the_prompt_of_a_dask_worker_that_dies_goes_to_another(
    tiny_pair: ModelPair, source: Source, whole: Trace, tmp_path: Path
) -> None:
    mortal = replace(source, deaths=deaths(tmp_path / "deaths", 1))
    with workers(tmp_path, processes=True) as made:
        runner = dask_workers(mortal.load, made.scheduler_address)
        trace = measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "out.parquet", batch=2, runner=runner)
    assert_equal_bytes(trace, whole)
    assert not list((tmp_path / "deaths").iterdir())


@pytest.mark.evidence
def test_a_prompt_that_kills_every_dask_worker_is_named(tiny_pair: ModelPair, source: Source, tmp_path: Path) -> None:
    mortal = replace(source, deaths=deaths(tmp_path / "deaths", 9))
    with workers(tmp_path, processes=True, count=1) as made:
        runner = dask_workers(mortal.load, made.scheduler_address)
        with pytest.raises(WorkerError, match=f"died again and again with prompt '{MORTAL}'") as caught:
            measure(tiny_pair, PROMPTS, SETTINGS, tmp_path / "out.parquet", runner=runner)
    assert "\n" not in str(caught.value)


@pytest.mark.evidence
def test_a_scheduler_that_dies_costs_what_was_under_way(
    tiny_pair: ModelPair, source: Source, whole: Trace, tmp_path: Path
) -> None:
    out, seen = tmp_path / "out.parquet", list[Progress]()
    with daemon("dask", "scheduler", "--port", "0", "--no-dashboard", cwd=tmp_path) as scheduler:
        address = line_with("Scheduler at:", scheduler).split()[-1]
        arguments = ("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
        with daemon("dask", *arguments, cwd=tmp_path):

            def stop(state: Progress) -> None:
                if state.done == 2:
                    scheduler.kill()

            with pytest.raises(WorkerError, match=r"the connection to the Dask scheduler at .* is lost") as caught:
                measure(tiny_pair, PROMPTS, SETTINGS, out, runner=dask_workers(source.load, address), on_progress=stop)
    assert "\n" not in str(caught.value)
    assert_equal_bytes(measure(tiny_pair, PROMPTS, SETTINGS, out, on_progress=seen.append), whole)
    assert 2 <= seen[0].resumed < 6


@contextmanager
def daemon(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of the package `arguments[0]` that is killed at the end."""
    command = [sys.executable, "-m", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=cwd)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_with(words: str, process: subprocess.Popen[str]) -> str:
    """The first line with `words` on a process's stderr."""
    assert process.stderr is not None
    return next(line for line in process.stderr if words in line)
