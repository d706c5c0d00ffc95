"""Log-probabilities of two models given to predict and plan: as files, or as what import made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import answer, refused
from tests.made_up import trace
from tests.trace import server_logs as servers

ASKED = ("--c", "0.1", "--k-max", "3")


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """A target's log and its draft's."""
    target, draft = servers.texts(11)
    return (
        servers.write(tmp_path / "target", servers.sglang, target, 3),
        servers.write(tmp_path / "draft", servers.vllm, draft, 3),
    )


def test_files_and_their_import_have_one_answer(
    logs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the race's ranges, which rest on the lists of the imported file."""
    target, draft = logs
    content = answer(capsys, "import", target, draft, "--out", tmp_path / "out")
    assert (content["kind"], content["tokens"]) == ("trace", 4 * 13)
    for command in ("predict", "plan"):
        direct = answer(capsys, command, target, "--draft-log", draft, *ASKED)
        assert direct == answer(capsys, command, tmp_path / "out", *ASKED)
    race = [p for p in answer(capsys, "predict", tmp_path / "out", *ASKED)["predictions"] if p["rule"] == "race"]
    assert race
    assert all(p["certified"]["low"] < p["certified"]["high"] for p in race)


def test_logs_that_do_not_go_together_are_refused(
    logs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, draft = logs
    trace(5).write(tmp_path / "trace.parquet")
    other = servers.write(tmp_path / "other", servers.vllm, servers.texts(12)[1])
    cases = {
        "holds log-probabilities of one model": ["predict", target],
        "--draft-log is given alone": ["predict", "--draft-log", draft],
        "2 files hold a trace and log-probabilities of one model": [
            "predict",
            tmp_path / "trace.parquet",
            "--draft-log",
            draft,
        ],
        "has token": ["plan", target, "--draft-log", other],
        "3 logs of log-probabilities are given": ["import", target, draft, draft, "--out", tmp_path / "out"],
    }
    for fragment, command in cases.items():
        assert fragment in refused(command, capsys), fragment
