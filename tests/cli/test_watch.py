"""``spectheory watch``: lines, JSON lines, statuses, what is kept, and the page for Prometheus."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.cli.watch import _seconds
from spectheory.errors import SettingError
from spectheory.reports.base import WIDTH
from spectheory.trace.counters import Counters
from tests.replay import Replay, served

FAST = ("--interval", "0.001s", "--window", "10m")


@pytest.fixture
def expect(tmp_path: Path) -> str:
    path = tmp_path / "counters.json"
    Counters(calls=10**8, survival=(0.8, 0.6, 0.4), k=3).write(path)
    return str(path)


def test_an_alarm_ends_it(expect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1, a line that says when and what to do, and counters of the fall that `compare` reads."""
    out = tmp_path / "seen"
    with served(Replay(falls_at=40)) as url:
        status = main(["watch", url, "--expect", expect, *FAST, "--exit-on-alarm", "--out", str(out), "--c", "0.05"])
    shown = capsys.readouterr().out
    assert status == 1
    lines = shown.splitlines()
    assert lines[:2] == [f"{url}: vllm, k = 3", f"Expected 2.80 tokens per call, at least 2.80 ({expect})"]
    scrapes = [line for line in lines if re.match(r"\d\d:\d\d:\d\d ", line)]
    assert max(map(len, [lines[3], *scrapes])) <= WIDTH
    assert scrapes[-1].endswith("ALARM")
    assert scrapes[-1].split()[-2] == "3"  # the best k
    (alarm,) = (line for line in lines if line.startswith("ALARM"))
    folder = alarm.rpartition(" ")[2]
    assert f"Next: spectheory compare {expect} {folder}" in alarm
    assert f"in {len(scrapes)} scrapes of vllm" in shown
    assert main(["compare", expect, folder]) == 0
    assert "Tokens per call fell by" in capsys.readouterr().out


def test_json_lines_and_going_on(expect: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line; a second run goes on from what the first one kept, after a kill within a row too."""
    out = tmp_path / "seen"
    question = ["--expect", expect, *FAST, "--json", "--out", str(out)]
    with served(Replay()) as url:
        assert main(["watch", url, *question, "--for", "0.005"]) == 0
        first = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        with (out / "scrapes.jsonl").open("ab") as file:
            file.write(b'{"time":1')
        assert main(["watch", f"{url}/metrics", *question, "--once"]) == 0
        (last,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
        assert main(["watch", url, *question[2:], "--expect", "builtin:"]) == 2
        assert "holds scrapes of another server, model or expectation" in capsys.readouterr().err
    assert [each["scrapes"] for each in first] == [*range(1, len(first) + 1)]
    assert last["scrapes"] == len(first) + 1
    assert last["calls"] == first[-1]["calls"] + 1000
    assert last["state"] == "learning"


def test_once_counts_from_the_servers_start(expect: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(Replay(calls=5000)) as url:
        assert main(["watch", url, "--expect", expect, "--once"]) == 0
    shown = capsys.readouterr().out
    assert "5000 calls at k = 3" in shown
    assert "(at least 2.80): not tested yet" in shown
    assert "The test learns the noise from 31 more scrapes with calls; spectheory gate tests counts at once." in shown


def test_a_server_that_is_down_for_a_while(expect: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One remark, and it goes on; a restart in between is counted."""
    with served(Replay(down=(2, 3, 4), restarts_at=4)) as url:
        assert main(["watch", url, "--expect", expect, "--interval", "0.005", "--for", "0.5"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("tried again at each scrape") == 1
    assert "answers 500" in shown.err
    assert "restarted 1 times" in shown.out


def test_no_calls_yet(expect: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(Replay(calls=0)) as url:
        assert main(["watch", url, "--expect", expect, "--json", "--once"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["state"] == "waiting"
    assert "no calls were counted" in shown.err


@pytest.mark.parametrize(
    ("replay", "options", "said"),
    [
        (Replay(survival=(0.8, 0.6)), (), "calls draft 3 tokens in .* and 2 in the server"),
        (Replay(), ("--model", "other"), "counts no model 'other': it counts target; name one of them"),
    ],
)
def test_refusals(
    replay: Replay, options: tuple[str, ...], said: str, expect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(replay) as url:
        assert main(["watch", url, "--expect", expect, "--once", *options]) == 2
    assert re.fullmatch(f"spectheory: .*{said}.*\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("path", "said"), [("/nothing", "answers 404"), ("", "has no vllm:spec_decode_num_drafts_total")]
)
def test_what_to_switch_on(path: str, said: str, expect: str, capsys: pytest.CaptureFixture[str]) -> None:
    class Plain(Replay):
        def next(self) -> str:
            return "vllm:num_requests_running 1.0\n"

    with served(Plain()) as url:
        assert main(["watch", url + path, "--expect", expect]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "start vLLM with --speculative-config, SGLang with --enable-metrics, llama.cpp with --metrics" in error


def test_a_port_in_use(expect: str, capsys: pytest.CaptureFixture[str]) -> None:
    with served(Replay()) as url:
        assert main(["watch", url, "--expect", expect, "--once", "--listen", url.rpartition(":")[2]]) == 2
    assert "cannot be opened" in capsys.readouterr().err


def test_lengths_of_time() -> None:
    assert [_seconds("x", each) for each in ("90", "90s", "1.5m", "2H", "1d")] == [90, 90, 90, 7200, 86400]
    for wrong in ("0", "-1", "1e3", "nan", "1 week", ""):
        with pytest.raises(SettingError):
            _seconds("x", wrong)


def test_prometheus_reads_it_and_ctrl_c_ends_it(expect: str, tmp_path: Path) -> None:
    """A process of its own: its page has every share, and an interruption leaves a summary and what is kept."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "spectheory", "watch"]
    options = ["--expect", expect, "--interval", "0.02", "--listen", str(port), "--out", str(tmp_path / "seen")]
    with served(Replay(falls_at=35)) as url:
        run = subprocess.Popen(
            [*command, url, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        page = ""
        try:
            for _ in range(600):
                time.sleep(0.05)
                with_page = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                try:
                    page = with_page.open(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()
                except OSError:
                    continue
                if "spectheory_alarm 1.0" in page:
                    break
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == 130
    assert "spectheory_alarm 1.0\n" in page
    assert 'spectheory_expected_survival{position="2"} 0.4' in page
    assert re.search(r'^spectheory_survival\{position="2"\} 0\.\d+$', page, re.M)
    assert "spectheory_evidence_threshold 100.0" in page
    assert "spectheory_best_k" not in page  # no costs were given
    assert "1 alarm" in out
    assert err.endswith(f"interrupted; all scrapes are kept; the same command continues from {tmp_path / 'seen'}\n")
