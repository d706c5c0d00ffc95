"""What names an experiment: parameters in one spelling, a hash that stays, and streams that no two batches share."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from simulations.experiments.collect import batch_stream
from simulations.experiments.tasks import Task, canonical, simulator, task
from spectheory.errors import SettingError
from tests import sim_toys
from tests.sim_toys import COIN, coins


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


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {1, 2}, b"bytes", 1j, object()])
def test_parameters_without_json_are_refused(value: Any) -> None:
    with pytest.raises(SettingError, match="cannot be written as JSON"):
        task(COIN, {"p": value}, seed=1, trials=1)


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
