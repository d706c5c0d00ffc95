"""Claims of a file on the command line: answers, statuses, and claims that break."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spectheory.cli import main
from tests.proofs_check.test_claims import TRIED

pytestmark = pytest.mark.usefixtures("brief")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Status, stdout and stderr of `spectheory verify`."""

    def call(*arguments: str) -> tuple[int, str, str]:
        status = main(["verify", *arguments])
        return (status, *capsys.readouterr())

    return call


CLAIM = """
from proofs_check import Claim, at_most, smaller
claim = Claim("{says}", lambda p, q: at_most(sum(a * b for a, b in zip(p, q)), {right}))
"""


def test_a_claim_of_ones_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "claim.py"
    path.write_text(CLAIM.format(says="p.q <= 1", right=1))
    status, out, _ = run("--claim", str(path))
    assert status == 0
    assert " ".join(out.split()).startswith(f"p.q <= 1: proved for V = 2, 3; not refuted at V = {TRIED} (")
    path.write_text(CLAIM.format(says="p.q <= 1/2", right="Claim and 1 - p[0]"))
    status, out, _ = run("--claim", str(path), "--json")
    assert status == 1
    (trial,) = json.loads(out)["claims"]
    assert trial["verdict"] == "refuted"


SMALL = """
from proofs_check import Claim, at_least, equal, larger
from functools import reduce
squares = Claim("sum p^2 >= 1/6", lambda p, q: at_least(6 * sum(a * a for a in p), 1))
largest = Claim("max p >= 1/7", lambda p, q: at_least(7 * reduce(larger, p), 1))
"""


def test_claims_that_hold_on_few_tokens_alone_are_refuted(run: Run, tmp_path: Path) -> None:
    """The first fails from V = 7 on, the second from V = 8 on, at the flat pmf."""
    path = tmp_path / "small.py"
    path.write_text(SMALL)
    status, out, err = run("--claim", str(path), "--json")
    assert (status, err) == (1, "")
    squares, largest = json.loads(out)["claims"]
    for trial, tokens in ((squares, 7), (largest, 8)):
        assert (trial["verdict"], trial["proved_for"], trial["largest"]) == ("refuted", [2, 3], tokens)
        assert trial["wide"]["at"].startswith(f"p = ({', '.join([f'1/{tokens}'] * tokens)})")


def test_what_a_claim_file_prints_is_no_part_of_the_answer(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "claims.py"
    text = CLAIM.format(says="p.q <= 1", right=1)
    path.write_text(f"print('hello')\n{text}")
    status, out, err = run("--claim", str(path), "--json")
    assert (status, err) == (0, "hello\n")
    assert [trial["verdict"] for trial in json.loads(out)["claims"]] == ["proved for some V"]


SEVERAL = """
from proofs_check import Assumption, Claim, at_most
one = Claim("one", lambda p, q: nothing)
two = Claim("two", lambda p, q: at_most(sum(p), 1), (Assumption("V >= 4", lambda p, q: len(p) >= 4),))
three = Claim("three", lambda p, q: at_most(p[9], 1))
four = Claim("four", lambda p, q: at_most(2, 1))
"""


def test_a_claim_that_breaks_stops_none_of_the_others(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "claims.py"
    path.write_text(SEVERAL)
    status, out, err = run("--claim", str(path), "--json")
    assert status == 2
    answer = json.loads(out)
    verdicts = [(trial["claim"], trial["verdict"]) for trial in answer["claims"]]
    assert verdicts == [("two", "not refuted"), ("four", "refuted")]
    first, second = err.splitlines()
    assert [each["claim"] for each in answer["refused"]] == ["one", "three"]
    assert all(each["why"] in line for each, line in zip(answer["refused"], (first, second), strict=True))
    assert ("NameError" in first, "IndexError" in second) == (True, True)


STATUSES = """
from proofs_check import POSITIVE, Assumption, Claim, at_most, equal, is_zero, log
no_solver = Claim("KL >= 0", lambda p, q: at_most(0, sum(a * log(a / b) for a, b in zip(p, q))), (POSITIVE,))
at_zeros = Claim("p0/p0 = 1", lambda p, q: equal(1 if is_zero(p[0]) else p[0] / p[0], 1))
"""


@pytest.mark.evidence
def test_a_claim_without_a_proof_and_one_left_undecided_have_status_zero(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "statuses.py"
    path.write_text(STATUSES)
    status, out, _ = run("--claim", str(path), "--json")
    assert status == 0
    no_solver, at_zeros = json.loads(out)["claims"]
    assert (no_solver["verdict"], no_solver["proved_for"], no_solver["largest"]) == ("not refuted", [], 64)
    assert (at_zeros["verdict"], at_zeros["proved_for"], at_zeros["largest"]) == ("undecided", [], 64)
    assert at_zeros["summary"].startswith(f"undecided; not refuted at V = {TRIED} (")
