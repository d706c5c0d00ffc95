"""`spectheory simulate`: every kind with its theory, wrong theories, files that go on, and runs that are cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from simulations.counts import Share, Tally
from simulations.experiments.results import read_results
from simulations.sweeps import making
from simulations.verdicts import predictions
from simulations.verdicts.predictions import Predicted
from spectheory.cli import console, main
from spectheory.cli.interrupts import PATIENCE
from spectheory.cli.simulate import SETTINGS
from tests.cli.simulate_cases import FEW, PAIR, ask
from tests.commands import refused


@pytest.fixture(autouse=True)
def _in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches run in a thread here, but for the tests that need processes."""
    from concurrent.futures import ThreadPoolExecutor

    from simulations.experiments import collect

    monkeypatch.setattr(collect, "process_pool", lambda workers=None: ThreadPoolExecutor(workers or 2))


# simulate

CHAIN = ("--target-pmf", "CHAIN", "--draft-pmf", "CHAIN2", "--length", "9")

QUESTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("race", "race-dense", "poisson", "recursive", "recursive-distinct"), (*PAIR, "--max-rank", "3")),
    **dict.fromkeys(("gumbel-list", "gumbel-list-dense"), (*PAIR, "--k", "2")),
    "single": (*PAIR, "--rule", "token"),
    "biased": (*PAIR, "--bias", "0.3", "--recovery", "target"),
    "tree": ("--rank-pmf", "0.6,0.2,0.1", "--shape", "1,2,1-1"),
    "raced-tree": (*PAIR, "--shape", "2x1"),
    "token": (*CHAIN, "--k", "3"),
    "block": (*CHAIN, "--k", "3"),
    "decode": (*CHAIN, "--rule", "recursive", "--shape", "batch", "--k", "2", "--trials", "300", "--batch-size", "100"),
    "ngram": ("--text", "this", "--length", "9"),
    "rejections": CHAIN,
    "batch": (*CHAIN, "--drafts", "3"),
    "random-trees": (
        "--target-pmf",
        "0.5,0.3,0.2",
        "--nodes",
        "4",
        "--nodes",
        "1",
        "--trials",
        "400",
        "--batch-size",
        "100",
    ),
}


@pytest.fixture
def chains(tmp_path: Path) -> dict[str, str]:
    """Files of two chains, by the words that stand for them."""
    rng = np.random.default_rng(5)
    files = {}
    for name in ("CHAIN", "CHAIN2"):
        np.save(tmp_path / f"{name}.npy", rng.dirichlet(np.ones(3), 3))
        files[name] = str(tmp_path / f"{name}.npy")
    return files


def test_every_kind_has_its_question() -> None:
    assert set(QUESTIONS) == set(SETTINGS)


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_kind_agrees_with_its_theory(
    kind: str, chains: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [chains.get(each, each) for each in (*FEW, *QUESTIONS[kind])]
    content = ask(capsys, "simulate", kind, *given)
    assert content["task"]["kind"] == kind
    assert content["agree"] is True
    assert content["comparisons"], "a simulation without theory is no evidence"
    assert sum(row["alarm"] for row in content["comparisons"]) <= 1e-6 * (1 + 1e-9)
    assert content["tally"]["trials"] == (
        4000 if "--trials" not in QUESTIONS[kind] else int(given[given.index("--trials", 6) + 1])
    )


@pytest.mark.parametrize("kind", SETTINGS)
def test_what_a_kind_does_not_take_is_refused(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    odd = next(
        (name, value)
        for name, value in (("--rule", "token"), ("--drafts", "3"), ("--k", "2"))
        if name.strip("-") not in SETTINGS[kind].takes
    )
    assert f"{odd[0]} is given: {kind} takes --" in refused(["simulate", kind, *odd], capsys)


def test_a_wrong_theory_is_seen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: 1 - TV for the race's acceptance, 0.7 for 0.631."""
    wrong = Predicted("acceptance rate", "A1", Share("rank", 1), 0.7)
    monkeypatch.setitem(predictions._predictors, "race", lambda parameters: [wrong])
    content = ask(capsys, "simulate", "race", *PAIR, *FEW, status=1)
    assert content["agree"] is False
    assert main(["simulate", "race", *PAIR, *FEW]) == 1
    assert "disagree in 1 of 1 comparison" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("kind", ["race", "poisson", "recursive", "recursive-distinct", "gumbel-list"])
def test_a_large_vocabulary_is_a_matter_of_seconds(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The law of the rank as far as it is cheap; outputs are not told apart."""
    logits = np.random.default_rng(2).standard_normal((2, 6000))
    for name, row in zip(("target", "draft"), logits, strict=True):
        np.save(tmp_path / f"{name}.npy", np.exp(row) / np.exp(row).sum())
    pair = [f"--{name}-pmf={tmp_path / name}.npy" for name in ("target", "draft")]
    content = ask(capsys, "simulate", kind, *pair, "--trials", 500, "--batch-size", 500, "--workers", 1)
    assert content["agree"] is True
    assert "output" not in content["tally"]["counts"]
    said = [row["says"] for row in content["comparisons"]]
    ranks = {"race": 1, "recursive-distinct": 1, "gumbel-list": 0}.get(kind, 8)
    assert sum(each.startswith("P(R = ") for each in said) == ranks
    assert not any(each.startswith("P(output") for each in said)
    assert said[0] == {"race": "acceptance rate", "gumbel-list": "P(not in the list)"}.get(kind, "P(R = 1)")


def test_distinct_candidates_are_compared_as_far_as_they_are_enumerated(capsys: pytest.CaptureFixture[str]) -> None:
    """Ten tokens and the default of eight ranks: eight have ten million orders of rejection."""
    tenth = ",".join(["0.1"] * 10)
    content = ask(
        capsys, "simulate", "recursive-distinct", "--target-pmf", "0.55" + ",0.05" * 9, "--draft-pmf", tenth, *FEW
    )
    said = [row["says"] for row in content["comparisons"]]
    assert said == [*(f"P(R = {r})" for r in range(1, 8)), *(f"P(output = {x})" for x in range(10))]


def test_bounds_are_judged_on_their_side() -> None:
    half = Tally.of(10_000, counts={"hits": [5_000]})
    for value, side, holds in ((0.4, "lower bound", True), (0.6, "lower bound", False), (0.6, "upper bound", True)):
        (comparison,) = predictions.compare(half, [Predicted("P", "x", Share("hits"), value, side)])  # type: ignore[arg-type]
        assert bool(comparison) is holds
    (comparison,) = predictions.compare(half, [Predicted("P", "x", Share("hits"), 0.4, "upper bound")])
    assert not comparison


def test_the_table_says_what_was_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.answers, "_width", 80)
    assert main(["simulate", "race", *PAIR, *FEW]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "4,000 trials: a race over distinct tokens, target first (R2)" in out
    assert "agree in 7 comparisons" in out
    assert main(["simulate", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(kind in listed for kind in SETTINGS)


def test_the_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Every kind, in the order of the table, with its options."""
    from simulations.experiments.tasks import kinds as known
    from simulations.experiments.tasks import registered

    kinds = ask(capsys, "simulate", "list")["kinds"]
    assert [each["kind"] for each in kinds if each["options"] is not None] == list(SETTINGS)
    assert sorted(each["kind"] for each in kinds) == known()
    ours = [each for each in kinds if registered(each["kind"]).run.__module__.startswith("simulations.simulators")]
    assert {each["kind"] for each in ours} > {*SETTINGS, "k-seq"}
    assert all(each["trial"] for each in ours)
    assert all(set(each) == {"kind", "trial", "batch", "options"} for each in kinds)
    assert kinds[0]["options"] == ["--target-pmf", "--draft-pmf", "--max-rank"]


def test_a_run_goes_on_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = ask(capsys, "simulate", "race", *PAIR, *FEW, "--out", tmp_path)
    longer = ask(capsys, "simulate", "race", *PAIR, *FEW, "--trials", "8000", "--out", tmp_path)
    fresh = ask(capsys, "simulate", "race", *PAIR, *FEW, "--trials", "8000", "--workers", "2")
    assert longer["tally"] == fresh["tally"]
    assert short["id"] == longer["id"]
    (batches,) = read_results(tmp_path / "results.jsonl").batches.values()
    assert sorted(batches) == list(range(8))


def test_a_narrow_interval_ends_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict then shares its alarm rate with all looks."""
    content = ask(
        capsys,
        "simulate",
        "race",
        *PAIR,
        "--trials",
        10**9,
        "--batch-size",
        "1000",
        "--width",
        "0.05",
        "--workers",
        "1",
    )
    trials = content["tally"]["trials"]
    assert 1000 < trials < 10_000
    looks = trials // 1000
    assert content["comparisons"][0]["alarm"] == pytest.approx(1e-6 / (looks * (looks + 1)) / 7)


def test_results_of_another_version_are_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from simulations.experiments import tasks

    ask(capsys, "simulate", "race", *PAIR, *FEW, "--out", tmp_path)
    monkeypatch.setitem(tasks._registered, "race", tasks.registered("race")._replace(version="2"))
    assert main(["simulate", "race", *PAIR, *FEW, "--out", str(tmp_path)]) == 0
    assert "4 batches of race are of version 1, not 2: ignored" in capsys.readouterr().err


@pytest.mark.evidence
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_batches_and_leaves_no_process(sent: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    command = ["simulate", "race-dense", *PAIR, "--trials", "1000000000", "--batch-size", "20000"]
    command += ["--out", str(tmp_path)]
    run = begun("-m", "spectheory", *command)
    for _ in range(600):
        if path.exists() and path.stat().st_size > 3000:
            break
        time.sleep(0.1)
    run.send_signal(sent)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, ""), err
    assert "interrupted" in err
    results = read_results(path)
    assert results.remarks == []
    assert any(results.batches.values())


ENDLESS = ("race", *PAIR, "--trials", "10", "--batch-size", str(10**12), "--workers", "1")

SLOW_TRIAL = """
import sys
from simulations.experiments import tasks
from simulations import simulators
from spectheory.cli import main
race = tasks.registered("race")
endless = lambda parameters, trials, state: print("begun", file=sys.stderr) or race.run(parameters, 10**12, state)
tasks._registered["race"] = race._replace(run=endless)
sys.exit(main(sys.argv[1:]))
"""

GRACE_OF_AN_HOUR = """
import sys
from simulations.experiments import collect
from spectheory.cli import main
collect.GRACE = 3600
sys.exit(main(sys.argv[1:]))
"""


def begun(*command: str) -> subprocess.Popen[str]:
    """A process that takes interruptions, also where this one was started without."""
    return subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def computing(run: subprocess.Popen[str]) -> int:
    """A worker of the run, as soon as it has computed for a second: a process of the server that forks workers."""
    for _ in range(600):
        for server in children(run.pid):
            for worker in children(server):
                words = Path(f"/proc/{worker}/stat").read_text().rpartition(") ")[2].split()
                if int(words[11]) > os.sysconf("SC_CLK_TCK"):
                    return worker
        time.sleep(0.1)
    run.kill()
    raise AssertionError(f"no worker computes: {run.communicate()[1]}")


def children(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.evidence
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("sent", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_a_batch_that_does_not_end_is_cut_off(sent: tuple[signal.Signals, ...]) -> None:
    """After a grace; a second interruption that comes soon is the first. The worker is gone, and nothing was kept."""
    run = begun("-m", "spectheory", "simulate", *ENDLESS)
    worker = computing(run)
    for each in sent:
        run.send_signal(each)
        time.sleep(PATIENCE / 4)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert err.endswith("spectheory: interrupted; nothing was kept (--out FOLDER keeps finished batches)\n")
    assert not alive(worker)


@pytest.mark.evidence
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_later_interruption_ends_a_run_at_once() -> None:
    """However long the grace for a running batch is: here an hour."""
    run = begun("-c", GRACE_OF_AN_HOUR, "simulate", *ENDLESS)
    worker = computing(run)
    run.send_signal(signal.SIGINT)
    time.sleep(PATIENCE + 1)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert "spectheory: interrupted again; ended at once\n" in err
    assert not alive(worker)


@pytest.mark.evidence
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes as Linux shows them")
def test_a_kill_ends_a_worker_that_computes() -> None:
    run = begun("-m", "spectheory", "simulate", *ENDLESS)
    worker = computing(run)
    run.kill()
    run.communicate(timeout=60)  # the worker holds the other end
    assert not alive(worker)


@pytest.mark.evidence
def test_a_first_trial_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    """By either signal, one without a folder for results and one with it, side by side."""
    runs = {}
    for sent, results in ((signal.SIGINT, False), (signal.SIGTERM, True)):
        kept = ("--out", str(tmp_path / sent.name)) if results else ()
        runs[sent, results] = begun("-c", SLOW_TRIAL, "simulate", "race", *PAIR, *kept)
    for run in runs.values():
        assert run.stderr is not None
        assert run.stderr.readline() == "begun\n"
    time.sleep(1)
    for (sent, _), run in runs.items():
        run.send_signal(sent)
    for case, run in runs.items():
        out, err = run.communicate(timeout=60)
        assert (run.returncode, out) == (130, ""), case
        assert err == "spectheory: interrupted; " + (
            "if files were written, the same command goes on from them\n"
            if case[1]
            else "nothing was kept (--out FOLDER keeps finished batches)\n"
        ), case


def test_a_request_to_terminate_is_an_interruption_wherever_it_comes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While theory is computed, and while figures are drawn again."""
    before = signal.getsignal(signal.SIGTERM)

    def terminated(*_: object) -> list[Predicted]:
        os.kill(os.getpid(), signal.SIGTERM)
        return []

    monkeypatch.setitem(predictions._predictors, "race", terminated)
    assert main(["simulate", "race", *PAIR, *FEW]) == 130
    assert "nothing was kept" in capsys.readouterr().err
    monkeypatch.setattr(making, "redraw", terminated)
    assert main(["figures", "race", "--redraw", "--out", str(tmp_path)]) == 130
    assert "interrupted; if files were written" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before
