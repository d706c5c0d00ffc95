"""Every answer and file of the commands fits its JSON Schema; another key, type or number does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from jsonschema import Draft202012Validator

from spectheory.answers.schema import json_schema, schema_names
from spectheory.cli import main
from spectheory.errors import SettingError
from spectheory.trace import METADATA_KEY
from tests.api.schema_cases import ASKED, FIGURES, Asked, prepare
from tests.api.schemas_page import MARK, PAGE, generated
from tests.commands import answer
from tests.engines.stub_server import Stub, running
from tests.replay import Replay, served

BY_FILES = {"trace", "latency", "counters", "calls", "request", "figure"}
BY_MODELS = {"validation", "engines", "bench"}
BY_SERVER = {"watch"}
"""What the tests below, and that of `bench`, hold against their schemas beside the commands of ASKED."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("schemas"))


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(name))


def faults(name: str, content: Any) -> list[str]:
    errors = validator(name).iter_errors(content)
    return [f"{name}: {'/'.join(map(str, fault.absolute_path))}: {fault.message[:200]}" for fault in errors]


DAMAGED = set[str]()
"""Schemas whose refusals have been tried: one answer does for each."""


def fits(name: str, content: dict[str, Any]) -> None:
    """The content fits, and damaged content does not."""
    assert faults(name, content) == []
    if name in DAMAGED:
        return
    DAMAGED.add(name)
    valid = validator(name).is_valid
    assert not valid(content | {"another": 1}), "a further key"
    for key in json_schema(name)["required"]:
        assert not valid(content | {key: object}), f"another type of {key}"
        assert not valid({other: content[other] for other in content if other != key}), f"without {key}"


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.schema}-{ASKED.index(asked)}")
def test_an_answer_fits_its_schema(asked: Asked, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fits(asked.schema, answer(capsys, *asked.arguments(folder), status=asked.status))


def test_every_schema_is_held_against_something() -> None:
    assert set(schema_names()) == {asked.schema for asked in ASKED} | BY_FILES | BY_MODELS | BY_SERVER


def test_a_watch_fits_its_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With an alarm, the best k, and before the first call."""
    options = ("--expect", str(folder / "expected.json"), "--json", "--interval", "0.001", "--exit-on-alarm")
    (folder / "expected.json").write_text('{"k": 3, "tokens_per_call": 2.8}')
    with served(Replay(falls_at=40)) as url:
        main(["watch", url, *options, "--c", "0.1"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for line in lines:
        assert faults("watch", line) == []
    assert lines[-1]["alarms"]
    fits("watch", lines[-1])
    with served(Replay(calls=0)) as url:
        main(["watch", url, *options, "--once"])
    assert faults("watch", json.loads(capsys.readouterr().out)) == []


def test_files_fit_their_schemas(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    fits("calls", lines[0])
    for line in lines[1:]:
        fits("request", line)
    fits("latency", json.loads((folder / "small" / "latency.json").read_text()))
    fits("trace", json.loads(pq.read_schema(folder / "small" / "trace.parquet").metadata[METADATA_KEY]))


def test_counters_fit_their_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (imported,) = (asked for asked in ASKED if "FOLDER/counted" in asked.command)
    answer(capsys, *imported.arguments(folder))
    fits("counters", json.loads((folder / "counted" / "counters.json").read_text()))


def test_the_data_of_every_figure_fit() -> None:
    """Damage is tried on the smallest: the schema is the same for all."""
    smallest, *others = sorted(FIGURES.glob("*.json"), key=lambda file: file.stat().st_size)
    assert len(others) > 10
    fits("figure", json.loads(smallest.read_text(encoding="utf-8")))
    assert [fault for file in others for fault in faults("figure", json.loads(file.read_text(encoding="utf-8")))] == []


def test_the_validations_of_the_docs_fit() -> None:
    files = sorted(FIGURES.glob("validation/*/validation.json"))
    assert len(files) == 3
    for file in files:
        assert faults("validation", json.loads(file.read_text(encoding="utf-8"))) == []


@pytest.mark.usefixtures("quick_latencies")
def test_a_validation_fits(tiny_folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"question_id": i, "category": "", "turns": [f"t{i + 3} t5"]} for i in range(2)]
    (tmp_path / "question.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pair = ("--target", tiny_folders[0], "--draft", tiny_folders[1], "--device", "cpu")
    how = ("--prompts", tmp_path / "question.jsonl", "--tokens", 8, "--k", 1, "--temperature", 1, "--rule", "token")
    fits("validation", answer(capsys, "validate", *pair, *how, "--out", tmp_path / "out"))


def test_a_judged_server_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(Stub()) as url:
        how = ("--first", 2, "--tokens", 12, "--continuations", 1, "--temperature", 1, "--out", tmp_path)
        fits("engines", answer(capsys, "validate", "--server", url, *how, status=1))


# The schemas themselves


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_one_closed_and_explained(name: str) -> None:
    schema = json_schema(name)
    Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["title"]
    assert schema["description"]
    unexplained = [key for key, entry in schema["properties"].items() if not entry.get("description")]
    assert unexplained == []
    refers = re.findall(r'"\$ref": "([^"]+)"', json.dumps(schema))
    assert {each.removeprefix("#/$defs/") for each in refers} <= set(schema["$defs"])


def test_an_unknown_schema_is_refused() -> None:
    with pytest.raises(SettingError, match="schema 'guess' is unknown: there are acceptance, "):
        json_schema("guess")


def test_the_page_is_that_of_the_schemas() -> None:
    assert PAGE.read_text(encoding="utf-8").partition(MARK)[2].strip() == generated().strip(), (
        "python -m tests.api.schemas_page writes it"
    )


def test_a_value_out_of_place_would_be_seen(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control, in the command itself: a key that no schema knows."""
    from spectheory.reports import base

    real: Callable[..., Any] = base.plain

    def changed(value: Any) -> Any:
        return {**real(value), "new": 1}

    monkeypatch.setattr(base, "plain", changed)
    (asked,) = (asked for asked in ASKED if "--rank-pmf" in asked.command and asked.schema == "tree")
    assert any("'new' was unexpected" in fault for fault in faults("tree", answer(capsys, *asked.arguments(folder))))
