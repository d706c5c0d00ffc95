"""`spectheory verify`: runs the ledger on any number of workers, survives kills, and says plainly what fails."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from proofs_check import Claim, at_most
from proofs_check.evidence.entries import Control, Entry, Evidence, exact, proof
from proofs_check.evidence.symbolic import same
from proofs_check.run import verify
from proofs_check.run.ledger import select
from proofs_check.run.record import CHECKS, finished, keep
from proofs_check.run.report import Report
from proofs_check.statement.findings import Effort, Finding
from spectheory.cli import console, main
from spectheory.errors import SettingError
from spectheory.store import Store

CASES: list[dict[str, Any]] = [{"x": Fraction(n, 7)} for n in range(8)]
TRUE = Claim("x <= 1", lambda x: at_most(x, 1))
FALSE = Claim("x <= 6/7", lambda x: at_most(7 * x, 6))


def entry(evidence: Evidence, *, refuted: bool = False) -> Entry:
    kind = "refuted" if refuted else "upper bound"
    return Entry("A1", "t", kind, "x <= 1", "x", (), (evidence,))  # type: ignore[arg-type]


def outcome(evidence: Evidence, monkeypatch: pytest.MonkeyPatch, *, refuted: bool = False) -> verify.Checked:
    monkeypatch.setattr(verify, "ledger", lambda: {"A1": entry(evidence, refuted=refuted)})
    return verify.check_one(("A1", 0), Effort())


def judged(claim: Claim, wrong: Claim) -> Evidence:
    return exact(claim, lambda effort: CASES, over="eight numbers", wrong=wrong)


def test_what_a_check_can_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert outcome(judged(TRUE, FALSE), monkeypatch).outcome == "holds"
    assert outcome(judged(FALSE, TRUE), monkeypatch, refuted=True).outcome == "refuted"
    step = same("square", lambda a: ((a + 1) ** 2, a * a + 2 * a + 1))
    assert outcome(proof("a step", [step]), monkeypatch).outcome == "proved"


def test_a_false_statement_and_a_blind_check_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = outcome(judged(FALSE, FALSE), monkeypatch)
    assert (checked.outcome, "x = 1" in checked.trouble) == ("failed", True)
    checked = outcome(judged(TRUE, TRUE), monkeypatch)
    assert (checked.outcome, checked.trouble.startswith("the negative control")) == ("failed", True)
    checked = outcome(judged(TRUE, FALSE), monkeypatch, refuted=True)
    assert (checked.outcome, checked.trouble.startswith("no counterexample")) == ("failed", True)


def test_undecided_is_neither_proved_nor_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    unsure = Evidence("symbolic", "s", lambda _: Finding("undecided", 1, note="not within 1 s"), Control("c", refuted))
    checked = outcome(unsure, monkeypatch)
    assert (checked.outcome, checked.trouble) == ("undecided", "not within 1 s")
    assert not Report([entry(unsure)], [("A1", 0)], [checked], Effort(), 0).as_expected


def refuted(_: Effort) -> Finding:
    return Finding("refuted", 1)


def test_a_check_that_breaks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Evidence("exact", "s", lambda _: 1 / 0, Control("c", refuted))  # type: ignore[arg-type,return-value]
    checked = outcome(broken, monkeypatch)
    assert (checked.outcome, checked.trouble) == ("failed", "ZeroDivisionError: division by zero")


@pytest.mark.evidence
def test_workers_change_nothing() -> None:
    keys = verify.keys_of(select(["A3"]))
    runs = [verify.verify(keys, Effort(), processes=processes) for processes in (1, 3)]
    alone, shared = ({(c.id, c.place): replace(c, seconds=0) for c in run} for run in runs)
    assert alone == shared


class Dying(Executor):
    """Workers that die with every check they are given."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is broken."""
        future: Future[Any] = Future()
        future.set_exception(BrokenProcessPool("a worker died"))
        return future


@pytest.mark.parametrize("deaths", [1, 2])
def test_checks_that_a_dying_worker_takes_with_it_are_run_again(deaths: int) -> None:
    """In a fresh pool, and after a second death each by itself."""
    pools = iter([Dying()] * deaths)

    def pool(count: int) -> Any:
        return next(pools, None) or verify.workers(count)

    (checked,) = verify.verify([("A3/look-alike", 0)], Effort(), processes=2, pools=pool)
    assert checked.outcome == "refuted"


# The record


def test_the_record_is_read_back_by_the_same_code_and_effort(tmp_path: Path) -> None:
    """Of a torn row the beginning is cut off: the next one stands alone."""
    path, key = tmp_path / "deep" / "run.jsonl", ("A3/look-alike", 0)
    checked = verify.check_one(key, Effort())
    with Store(path, CHECKS, {}) as store:
        assert finished(store, Effort()) == ({}, "")
        keep(store, checked, Effort())
    with Store(path, CHECKS, {}) as store:
        assert finished(store, Effort()) == ({key: checked}, "")
        assert finished(store, Effort(seed=1)) == ({}, "1 lines of other code or effort are not used")
    path.write_text(path.read_text()[:-40])
    with Store(path, CHECKS, {}) as store:
        assert finished(store, Effort()) == ({}, "1 torn lines are dropped")
        keep(store, checked, Effort())
    with Store(path, CHECKS, {}) as store:
        assert finished(store, Effort()) == ({key: checked}, "")


def test_what_is_recorded_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = verify.check_one(("A3/look-alike", 0), Effort())
    monkeypatch.setattr(verify, "check_one", lambda *_: pytest.fail("run again"))
    assert list(verify.verify([("A3/look-alike", 0)], Effort(), known={("A3/look-alike", 0): checked})) == [checked]


# The command line


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Status, stdout and stderr of `spectheory verify`."""
    monkeypatch.setattr(console.answers, "_width", 100)

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["verify", *arguments])
        return (status, *capsys.readouterr())

    return call


Run = Callable[..., tuple[int, str, str]]


def test_one_id_shows_every_check(run: Run) -> None:
    status, out, err = run("a3/LOOK-alike", "--workers", "1")
    assert (status, err) == (0, "")
    assert "counterexample: p = (1/3, 2/3), q = (2/3, 1/3)" in out
    assert "1 statement: 1 refuted; 1 check in" in out
    assert "all as the ledger says" in out


def test_json_is_one_object(run: Run) -> None:
    status, out, _ = run("A3", "--evidence", "symbolic", "--json", "--workers", "1")
    answer = json.loads(out)
    assert (status, answer["as_expected"]) == (0, True)
    assert [entry["id"] for entry in answer["entries"]] == ["A3"]
    check = answer["entries"][0]["evidence"][0]
    assert (check["status"], check["control"]["status"]) == ("proved", "refuted")
    listed = [step["part"] for each in answer["entries"][0]["evidence"] for step in each["steps"]]
    assert answer["steps"] == {"argument": listed.count("argument"), "words": 0, "cited": 0}


def test_the_steps_of_proofs_are_counted_by_what_they_are(run: Run) -> None:
    """R6: five steps, one of them in words; A3: seven steps for any V, one proof for V = 2 alone."""
    status, out, _ = run("R6", "--evidence", "proof", "--workers", "1")
    assert status == 0
    assert out.splitlines()[-1] == "Steps of the proofs: 4 carry the argument, 1 in words, 0 cited"
    _, out, _ = run("A3", "--evidence", "proof", "--workers", "1")
    assert "proved, V = 2" in out
    _, out, _ = run("A3/look-alike", "--workers", "1")
    assert "Steps of the proofs" not in out


def test_a_paper_has_its_statements(run: Run) -> None:
    assert {entry.id for entry in select([], "daliri2025")} >= {"A3"}
    assert all("daliri2025" in entry.source for entry in select([], "daliri2025"))
    with pytest.raises(SettingError, match="did you mean daliri2025"):
        select([], "daliri")
    with pytest.raises(SettingError, match="none of A3"):
        select(["A3"], "yin2024")


def test_failures_have_status_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = replace(verify.check_one(("A3/look-alike", 0), Effort()), expected="held")
    monkeypatch.setattr(verify, "verify", lambda *_, **__: iter([checked]))
    status, out, _ = run("A3/look-alike")
    assert status == 1
    assert "failed: a counterexample was found" in " ".join(out.split())
    assert "NOT as the ledger says" in " ".join(out.split())


def test_an_interrupted_run_shows_what_is_finished(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = verify.check_one(("A3/look-alike", 0), Effort())

    def interrupted(*_: Any, **__: Any) -> Any:
        yield checked
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(verify, "verify", interrupted)
    status, out, err = run("A3", "--workers", "1")
    assert status == 130
    assert "1 not run; 1 check in" in " ".join(out.split())
    assert "checks did not run" in " ".join(out.split())
    assert "interrupted" in err
