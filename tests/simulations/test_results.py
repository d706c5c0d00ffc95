"""Tasks with their hashes, exact tallies, and the file that keeps them: whole rows stand and nothing else counts."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.counts import Moments, Tally
from simulations.experiments.collect import Stop, batch_stream, collect
from simulations.experiments.results import ResultsWriter, read_results
from simulations.experiments.tasks import Task, canonical, simulator, task
from spectheory.errors import OutputError, SettingError, ShapeError
from tests import sim_toys
from tests.sim_toys import BATCH, COIN, coins

FLOATS = st.floats(allow_nan=False, allow_infinity=False)

# Tallies


@given(st.lists(FLOATS, max_size=40))
def test_moments_are_exact(samples: list[float]) -> None:
    fractions = [Fraction(x) for x in samples]
    assert Moments.of(samples) == Moments(len(samples), sum(fractions, Fraction(0)), sum(x * x for x in fractions))


@given(st.lists(FLOATS, min_size=1, max_size=30), st.randoms(use_true_random=False), st.integers(1, 8))
def test_no_order_of_adding_matters(samples: list[float], random: np.random.Generator, parts: int) -> None:
    """Batches of any sizes, added in any order, are the moments of all."""
    batches = [Tally.of(1, samples={"x": samples[i::parts]}, counts={"c": [i]}).as_batch(i) for i in range(parts)]
    whole = sum(batches, Tally())
    random.shuffle(batches)  # type: ignore[arg-type]
    half = parts // 2
    assert sum(batches[:half], Tally()) + sum(batches[half:], Tally()) == whole
    assert whole.moments["x"] == Moments.of(samples)


def test_a_small_variance_beside_a_large_mean() -> None:
    samples = 1e8 + np.random.default_rng(1).standard_normal(1000)
    assert Moments.of(samples).variance == pytest.approx(np.var(samples - 1e8, ddof=1), rel=1e-12)
    squares = float(np.mean(samples**2) - np.mean(samples) ** 2)
    assert abs(squares - 1) > 0.5, "negative control: by floats it is lost"


def test_batches_count_once() -> None:
    runs = [Tally.of(1).as_batch(b) for b in (0, 1, 2, 5, 6, 9)]
    assert sum(runs[::-1], Tally()).batches == ((0, 3), (5, 7), (9, 10))
    assert sum(runs, Tally()).size == 6
    with pytest.raises(SettingError, match="batch 5 is in both"):
        sum(runs, Tally()) + sum(runs[3:4], Tally())


def test_what_does_not_add_up() -> None:
    with pytest.raises(ShapeError, match="same names and lengths"):
        Tally.of(1, counts={"a": [1]}) + Tally.of(1, counts={"a": [1, 2]})
    with pytest.raises(SettingError, match=r"pass 2\^63"):
        Tally.of(1, counts={"a": [2**62]}) + Tally.of(1, counts={"a": [2**62]})
    with pytest.raises(SettingError, match="integers"):
        Tally.of(1, counts={"a": [-1]})
    with pytest.raises(SettingError, match="integers"):
        Tally.of(1, counts={"a": [0.5]})
    with pytest.raises(ShapeError, match=r"must be \[n\]"):
        Tally.of(1, counts={"a": [[1]]})
    with pytest.raises(SettingError, match="not finite"):
        Tally.of(1, samples={"x": [np.nan]})
    with pytest.raises(SettingError, match="trials is 0"):
        Tally.of(0)


def test_a_tally_does_not_change() -> None:
    counts = np.array([1, 2])
    tally = Tally.of(3, counts={"a": counts})
    counts[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        tally.counts["a"][0] = 7
    assert tally == Tally.of(3, counts={"a": [1, 2]})
    assert tally != Tally.of(3, counts={"a": [1, 3]})


# The file


def made(batch: int) -> Tally:
    return Tally.of(BATCH, counts={"heads": [batch, 2**62]}, samples={"x": [0.1 * batch, 1e-300]})


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A file with the batches 0, 1, 2 of a task."""
    path = tmp_path / "results.jsonl"
    with ResultsWriter(path) as file:
        for batch in range(3):
            file.keep(coins(), batch, made(batch))
    return path


def test_rows_come_back(three: Path) -> None:
    results = read_results(three)
    assert results.of(coins()) == {batch: made(batch).as_batch(batch) for batch in range(3)}
    assert results.remarks == []
    assert results.tasks == {coins().id: coins()}
    row = json.loads(three.read_text().splitlines()[-1])
    assert (row["id"], row["batch"], row["version"]) == (coins().id, 2, "1")


def test_damage_within_is_seen(three: Path) -> None:
    """A changed digit, a lost half row: that row alone is ignored, with a remark."""
    rows = three.read_text().splitlines(keepends=True)
    for damaged in (
        rows[3].replace('"batch":1', '"batch":7'),
        rows[3][:50] + "\n",
        "\n",
        "[]\n",
        "null\n",
        '{"row":1}\n',
    ):
        three.write_text("".join([*rows[:3], damaged, *rows[4:]]))
        results = read_results(three)
        assert sorted(results.of(coins())) == [0, 2]
        assert results.remarks == [f"row 4 of {three} is damaged: ignored"]


def test_repeated_batches_count_once(three: Path) -> None:
    rows = three.read_text().splitlines(keepends=True)
    three.write_text("".join([*rows, *rows[2:]]))
    assert read_results(three).of(coins()) == {batch: made(batch).as_batch(batch) for batch in range(3)}
    assert read_results(three).remarks == []
    with ResultsWriter(three) as file:
        file.keep(coins(), 1, made(8))
    results = read_results(three)
    assert results.of(coins())[1] == made(1).as_batch(1)
    assert "repeats batch 1 with other numbers" in results.remarks[0]


def test_rows_that_do_not_fit_their_task(three: Path) -> None:
    with ResultsWriter(three) as file:
        row = {"row": "batch", "id": coins().id, "batch": 5, "version": "2", "tally": made(5).as_dict()}
        file.add(row)
        file.add({**row, "version": "1", "id": coins(9).id})
        file.add({**row, "version": "1", "tally": Tally.of(1).as_dict()})
        file.add({**row, "version": "1", "tally": Tally.of(1).as_dict()})
    results = read_results(three)
    assert sorted(results.of(coins())) == [0, 1, 2]
    assert [remark.removeprefix(f"row {n} of {three} ") for n, remark in enumerate(results.remarks, start=6)] == [
        "is of version 2, its task of 1: ignored",
        "is of a task that the file does not describe: ignored",
        "has 1 trials, its task 200: ignored",
        "1 more rows: has 1 trials, its task 200",
    ]


def test_rows_do_not_go_where_output_goes(tmp_path: Path) -> None:
    """Answers would be mixed with results."""
    path = tmp_path / "answers"
    code = "from simulations.experiments.results import *; ResultsWriter(Path({!r})).__enter__()"
    for name in ("/dev/stdout", str(path)):
        with path.open("w") as stdout:
            run = subprocess.run(
                [sys.executable, "-c", code.format(name)], stdout=stdout, stderr=subprocess.PIPE, text=True
            )
        assert f"{name} is where output goes" in run.stderr
        assert path.read_text() == ""


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process may grow beyond a size: the system writes what fits and then refuses."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_named_and_costs_no_finished_row(tmp_path: Path) -> None:
    """A row of which a part fits: it goes, the rows before it stay, and a run with room ends as if nothing was."""
    path, stop = tmp_path / "results.jsonl", Stop(trials=5 * BATCH)
    undisturbed = collect([coins()], stop=stop, results=path, executor=lambda: ThreadPoolExecutor(1), in_flight=1)
    content = path.read_bytes()
    path.unlink()
    with room_for(len(content) - 40), pytest.raises(OutputError, match="cannot be written") as caught:
        collect([coins()], stop=stop, results=path, executor=lambda: ThreadPoolExecutor(1), in_flight=1)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == b"".join(content.splitlines(keepends=True)[:-1])
    again = collect([coins()], stop=stop, results=path, executor=lambda: ThreadPoolExecutor(1))
    assert again == undisturbed
    assert path.read_bytes() == content


def test_the_id_is_pinned() -> None:
    """The same for ever: otherwise no old file would be found again."""
    fields = {"kind": "coin", "parameters": {"p": 0.25, "k": [1, 2]}, "seed": 7, "trials": 100, "version": "1"}
    assert Task.from_dict(fields).id == "4971cdbc68cdaed40b0e5e4fc17498cbea7ee4b03a568a814e98b78bb2885ee4"


def test_the_id_is_the_hash_of_all_fields() -> None:
    one = Task.from_dict({"kind": 'a "toy"', "parameters": {"p": [0.1] * 9000}, "seed": 7, "trials": 1, "version": "2"})
    assert one.id == hashlib.sha256(canonical(one.as_dict()).encode()).hexdigest()
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_id_is_the_same_in_every_process_and_order() -> None:
    script = (
        "from simulations.experiments.tasks import Task\n"
        "print(Task.from_dict({'parameters': dict([('b', {'y': 1, 'x': 2}), ('a', 1.5)]), 'kind': 'c', 'seed': 3,"
        " 'trials': 4, 'version': '5'}).id)"
    )
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=env)
        assert ran.stdout.strip() == Task("c", '{"a":1.5,"b":{"x":2,"y":1}}', 3, 4, "5").id


def test_everything_that_matters_is_in_the_id() -> None:
    base = {"kind": COIN, "parameters": {"p": 0.25}, "seed": 1, "trials": 100, "version": "1"}
    others = [{"kind": "another"}, {"parameters": {"p": 0.26}}, {"seed": 2}, {"trials": 101}, {"version": "2"}]
    ids = {Task.from_dict({**base, **other}).id for other in [{}, *others, {"parameters": {"q": 0.25}}]}
    assert len(ids) == 7


def test_numpy_parameters_are_those_they_show() -> None:
    chain = np.array([[0.25, 0.75], [0.5, 0.5]])
    assert canonical({"chain": chain, "k": np.int64(3)}) == canonical({"k": 3, "chain": chain.tolist()})
    one = coins(chain=chain)
    one.parameters["p"] = 1.0
    chain[0, 0] = 9.0
    assert one == coins(chain=[[0.25, 0.75], [0.5, 0.5]]), "a task does not change"


@pytest.mark.parametrize(
    "change", [{"seed": -1}, {"seed": 1.5}, {"seed": True}, {"trials": 0}, {"trials": -3}, {"kind": "unknown"}]
)
def test_settings_of_a_task(change: dict[str, Any]) -> None:
    kind = change.pop("kind", COIN)
    with pytest.raises(SettingError):
        task(kind, {}, **{"seed": 1, "trials": 1, **change})


def test_a_task_is_canonical() -> None:
    with pytest.raises(SettingError, match="use task"):
        Task(COIN, '{"p": 0.5}', 1, 1, "1")
    with pytest.raises(SettingError, match="use task"):
        Task(COIN, "[1]", 1, 1, "1")


def test_a_name_has_one_simulator() -> None:
    with pytest.raises(SettingError, match="already"):
        simulator(COIN, version="1")(sim_toys.sloppy)
    assert simulator(COIN, version="1")(sim_toys.coin) is sim_toys.coin, "the same function may come again"


def test_streams_of_batches_differ() -> None:
    """By task, seed and batch; two tasks of one seed share no stream."""
    streams = {tuple(batch_stream(t, b)) for t in (coins(1), coins(2), coins(1, more=1)) for b in range(3)}
    assert len(streams) == 9
