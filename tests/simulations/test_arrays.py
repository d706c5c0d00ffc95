"""Large arrays of a task: rows of the results file, and nothing of its id, its streams and its results changes."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import simulations.simulators  # noqa: F401  registers the kinds
from simulations.counts import Tally
from simulations.experiments import tasks
from simulations.experiments.collect import Collected, Stop, collect, run_batch
from simulations.experiments.results import ResultsWriter, read_results
from simulations.experiments.tasks import LARGE, Arrays, Task, canonical, task
from spectheory.errors import SettingError

MODULE = "simulations.simulators.positions"
P, Q = np.random.default_rng(1).dirichlet(np.full(LARGE, 0.1), size=2)


def lists(target: Any = P, draft: Any = Q, **change: Any) -> Task:
    """Gumbel lists at a position of large pmfs."""
    return task("gumbel-list", {"target": target, "draft": draft, "k": 2, **change}, seed=3, trials=500)


def inline(monkeypatch: pytest.MonkeyPatch) -> Task:
    """The same task with its pmfs in its JSON."""
    with monkeypatch.context() as patch:
        patch.setattr(tasks, "LARGE", sys.maxsize)
        return lists(P.tolist(), Q.tolist())


def run(one: Task, batches: int, results: Path) -> Collected:
    stop = Stop(trials=batches * one.trials)
    return collect([one], stop=stop, results=results, executor=lambda: ThreadPoolExecutor(1))


def test_the_id_is_that_of_the_numbers_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Array, list or JSON: one id, that of the JSON in full, so one stream; other numbers have another."""
    plain, one = inline(monkeypatch), lists()
    assert len(one.text) < 300 < len(plain.text)
    fields = {"kind": one.kind, "seed": 3, "trials": 500, "version": one.version}
    in_full = canonical({**fields, "parameters": {"target": P.tolist(), "draft": Q.tolist(), "k": 2}})
    assert one.id == plain.id == hashlib.sha256(in_full.encode()).hexdigest()
    assert one == lists(P.tolist(), tuple(Q.tolist())) == Task.from_dict(one.as_dict())
    assert lists(Q, P).id != one.id != lists(P.astype(np.float32).astype(np.float64)).id
    rows = task("single", {"target": np.stack([P, Q])}, seed=1, trials=1)
    assert rows == task("single", {"target": [P.tolist(), Q.tolist()]}, seed=1, trials=1)


def test_the_numbers_are_as_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A batch of the task in memory, in a file and in JSON; what a worker is sent of a file is small."""
    plain, one = inline(monkeypatch), lists()
    with ResultsWriter(tmp_path / "results.jsonl") as file:
        kept = file.describe(one)
    sent = pickle.dumps(kept)
    assert len(sent) < 2000 < len(pickle.dumps(plain))
    assert kept == one
    tallies = [run_batch(each, 4, MODULE) for each in (plain, one, kept, pickle.loads(sent))]
    assert isinstance(tallies[0], Tally)
    assert all(tally == tallies[0] for tally in tallies)
    assert run_batch(lists(Q, P), 4, MODULE) != tallies[0]


def test_results_are_continued(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    first = run(lists(), 2, path)[lists()]
    rows = [json.loads(line.partition("\t")[0])["row"] for line in path.read_text().splitlines()[1:]]
    assert rows == ["array", "array", "task", "batch", "batch"]
    assert len(path.read_text().splitlines()[3]) < 1000
    before = path.read_bytes()
    assert run(lists(), 2, path)[lists()] == first
    assert path.read_bytes() == before, "nothing was run again"
    (described,) = read_results(path).tasks.values()
    assert described.id == lists().id
    np.testing.assert_array_equal(described.parameters["target"], P)


def test_results_of_tasks_in_full_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose tasks have their pmfs in JSON is read, and runs go on from it."""
    path, plain = tmp_path / "results.jsonl", inline(monkeypatch)
    two = run(plain, 2, path)[plain]
    assert len(path.read_text().splitlines()[1]) > 20 * LARGE
    three = run(lists(), 3, path)[lists()]
    assert path.read_text().count('"row":"batch"') == 3, "one batch more"
    assert three.batches == ((0, 3),)
    assert three == two + _batch(2)


def _batch(number: int) -> Tally:
    tally = run_batch(lists(), number, MODULE)
    assert isinstance(tally, Tally)
    return tally


def test_a_damaged_array_is_one_clear_line(tmp_path: Path) -> None:
    """Results are found again all the same by whoever has the arrays, which are kept anew."""
    path = tmp_path / "results.jsonl"
    tally = run(lists(), 1, path)[lists()]
    (described,) = read_results(path).tasks.values()
    whole = path.read_bytes()
    of_p, of_q = whole.splitlines(keepends=True)[1:3]
    assert len(of_p) == len(of_q)
    swapped = whole.replace(of_p, of_q)
    for content, why in ((swapped, "holds other numbers than its name says"), (b"torn", r"row \d is damaged")):
        path.write_bytes(content)
        with pytest.raises(SettingError, match=why):
            _ = described.parameters
    path.unlink()
    with pytest.raises(SettingError, match="cannot be read"):
        _ = described.parameters
    path.write_bytes(whole.replace(of_p, of_p.replace(b"A", b"B")))
    found = read_results(path)
    assert found.remarks == [f"row 2 of {path} is damaged: ignored"]
    with pytest.raises(SettingError, match="its row is damaged"):
        _ = found.tasks[lists().id].parameters
    assert run(lists(), 1, path)[lists()] == tally
    with ResultsWriter(path) as file:
        np.testing.assert_array_equal(file.describe(lists()).parameters["target"], P)


def test_what_stays_in_the_json() -> None:
    """Short lists, integers, and numbers that JSON refuses."""
    assert lists(P[:-1], Q[:-1]).arrays == Arrays()
    assert task("ngram", {"text": list(range(2 * LARGE))}, seed=1, trials=1).arrays == Arrays()
    with pytest.raises(SettingError, match="cannot be written as JSON"):
        lists(np.where(P.max() == P, np.nan, P))
    with pytest.raises(SettingError, match="stands for a large array"):
        task("single", {"target": {"sha256": "0"}}, seed=1, trials=1)


def test_a_task_does_not_change() -> None:
    target = P.copy()
    one = lists(target)
    target[:] = 0
    one.parameters["target"][:] = 0
    np.testing.assert_array_equal(one.parameters["target"], P)


def test_lists_of_floats_are_written_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortcut past the entries of long lists gives the same text."""
    value = {"p": P.tolist(), "k": [1, 2.0] * LARGE}
    found = canonical(value)
    monkeypatch.setattr(tasks, "LARGE", sys.maxsize)
    assert canonical(value) == found
