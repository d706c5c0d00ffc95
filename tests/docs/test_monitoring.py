"""docs/monitoring: rules, alerts and dashboard, in a Prometheus that scrapes a server and a watch of it."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spectheory.engines import of_engines
from spectheory.reports.watching import BY_POSITION, GAUGES
from spectheory.trace.counters import Counters
from tests.replay import Replay, served

FOLDER = Path(__file__).parents[2] / "docs" / "monitoring"
EXPRESSIONS = [
    (panel["title"], target["expr"])
    for panel in json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))["panels"]
    for target in panel["targets"]
]
needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="needs Prometheus: apt-get install prometheus",
)


def test_names_are_those_of_engines_and_of_the_watch() -> None:
    """Every counter in the rules is read by the importers, every gauge is exported, every rule used is recorded."""
    rules = (FOLDER / "rules.yml").read_text(encoding="utf-8")
    used = {name for _, expr in EXPRESSIONS for name in re.findall(r"(?:speculation:|spectheory_)[a-z_0-9:]+", expr)}
    used |= set(re.findall(r"spectheory_[a-z_]+", rules))
    recorded = set(re.findall(r"record: (\S+)", rules))
    assert used <= recorded | {f"spectheory_{name}" for name, *_ in (*GAUGES, *BY_POSITION)}
    known = [each for kinds in of_engines("logs", "METRICS") for each in kinds]
    totals = {name for each in known for name in (*each.totals.values(), each.position) if name}
    counted = set(re.findall(r"[a-z_]+_total", rules))
    assert counted - totals == {"num_requests_total"}  # which SGLang's accepted drafts are derived with
    assert set(re.findall(r"\b(vllm|llamacpp|lmdeploy|sglang)\b(?=[|):])", rules)) <= {
        each.prefix.rstrip(":") for each in known
    }


@needs_prometheus
@pytest.mark.evidence
def test_the_rules_give_what_counters_say() -> None:
    for command in (("check", "rules", "rules.yml"), ("test", "rules", "rules_test.yml")):
        subprocess.run(["promtool", *command], cwd=FOLDER, check=True)


@needs_prometheus
@pytest.mark.evidence
def test_a_real_prometheus(tmp_path: Path) -> None:
    """A server, a watch and Prometheus: every panel has data, numbers are those counted, and a fall fires the alert."""
    expect = tmp_path / "expected.json"
    Counters(calls=10**8, survival=(0.8, 0.6, 0.4), k=3).write(expect)
    replay = Replay(calls=2000)
    with served(replay) as url, watched(url, expect) as watch, prometheus(tmp_path, url, watch) as query:
        tokens = eventually(lambda: query("speculation:tokens_per_call"), lambda rows: bool(rows))
        assert abs(float(tokens[0]["value"][1]) - 2.8) < 0.05  # 20,000 calls a second have a deviation of 0.01
        shares = query("speculation:survival")
        assert [each["metric"]["position"] for each in shares] == ["0", "1", "2"]
        for each, share in zip(shares, replay.survival, strict=True):
            assert abs(float(each["value"][1]) - share) < 0.05
        for title, expr in EXPRESSIONS:
            assert eventually(lambda expr=expr: query(expr), bool), (title, expr)
        eventually(lambda: query("spectheory_learning_scrapes == 0"), bool)
        assert query('ALERTS{alertname="AcceptanceFell"}') == []
        replay.falls_at = replay.scrapes
        fired = eventually(lambda: query('ALERTS{alertname="AcceptanceFell", alertstate="firing"}'), bool)
        assert fired[0]["metric"]["severity"] == "warning"


def eventually(ask: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    """What is answered once it is enough, within a minute."""
    for _ in range(300):
        if enough(answer := ask()):
            return answer
        time.sleep(0.2)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(*command: object) -> Iterator[None]:
    run = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        run.terminate()
        try:
            run.wait(timeout=20)
        except subprocess.TimeoutExpired:
            run.kill()


@contextmanager
def watched(url: str, expect: Path) -> Iterator[str]:
    """The address of a watch's page."""
    port = free_port()
    options = ("--expect", expect, "--interval", "0.1", "--c", "0.1", "--listen", port)
    with running(sys.executable, "-m", "spectheory", "watch", url, *options):
        yield f"127.0.0.1:{port}"


@contextmanager
def prometheus(folder: Path, url: str, watch: str) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """What answers an expression, in a Prometheus that scrapes both every second."""
    port = free_port()
    targets = [
        {"job_name": name, "static_configs": [{"targets": [address]}]}
        for name, address in (("server", url.removeprefix("http://")), ("watch", watch))
    ]
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": every, "rule_files": [str(FOLDER / "rules.yml")], "scrape_configs": targets}
    (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML

    def query(expr: str) -> list[dict[str, Any]]:
        asked = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expr})}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            answer = json.loads(opener.open(asked, timeout=10).read())
        except ConnectionError:
            return []  # it has not started yet
        except OSError as error:
            if isinstance(error, urllib.error.URLError) and isinstance(error.reason, ConnectionError):
                return []
            raise
        return sorted(answer["data"]["result"], key=lambda each: each["metric"].get("position", ""))

    places = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    with running("prometheus", *places, f"--web.listen-address=127.0.0.1:{port}"):
        yield query
