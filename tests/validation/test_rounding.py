"""What rounding must not decide, what an estimated law may decide, and loops timed as they sample."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from spectheory.cli import main
from spectheory.cli import measure as measuring
from spectheory.cost import LatencyTable
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry
from spectheory.errors import TextError, TraceError
from spectheory.measure import MeasureSettings, ModelPair, Timing, loop_time, measure_latency
from spectheory.measure.decoders import decode
from spectheory.measure.validation import Validation, validate
from spectheory.measure.validation.answer import Evidence, _answer_at, answer
from spectheory.measure.validation.run import _run_once, decoded_rounds, kept_latencies
from spectheory.measure.validation.settings import Setting
from spectheory.prompts import Prompt
from spectheory.reports import Table, headline, page, validation_report
from spectheory.trace import Trace

PROMPTS = tuple(Prompt(str(i), "", f"t{i % 60 + 1} t9") for i in range(1, 4))
QUESTION = Validation(
    ("token", "argmax", "lookup", "recursive-distinct"),
    (Chain(2), KAry((2, 1))),
    (0.0, 0.8),
    MeasureSettings(Sampling(top_k=20), tokens=10, seed=1, count=1),
)
TREE = "recursive-distinct, k-ary 2x1"
LOOKUP = "lookup, chain k=2"
TOKEN, ARGMAX = "token, chain k=2", "argmax, chain k=2"
RANDOM = (TOKEN, LOOKUP, "recursive-distinct, chain k=2", TREE)
"""What decides at a temperature whatever the precision."""
Off = dict[tuple[float, str], int]
"""Calls too many by temperature and setting."""


@pytest.fixture(scope="module")
def folder(tiny_pair: ModelPair, tmp_path_factory: pytest.TempPathFactory, quick_latencies: None) -> Path:
    """What a validation leaves behind."""
    folder = tmp_path_factory.mktemp("rounding")
    validate(tiny_pair, PROMPTS, QUESTION, folder)
    return folder


@pytest.fixture(scope="module")
def judged(tiny_pair: ModelPair, folder: Path) -> Callable[..., dict[str, Any]]:
    """The answer if the models were of some precision and the calls of some settings off, at both temperatures."""

    def of(off: Off, **dtypes: str) -> dict[str, Any]:
        by_temperature = {}
        for at in QUESTION.temperatures:
            settings, how = QUESTION.settings(at), QUESTION.at(at)
            rounds = decoded_rounds(tiny_pair, PROMPTS, settings, how, folder / f"rounds-{at:g}.jsonl")
            for setting in settings:
                run, more = rounds[0][setting.name], off.get((at, setting.name), 0)
                rounds[0][setting.name] = dataclasses.replace(run, count=run.count + more)
            trace = Trace.read(folder / f"trace-{at:g}.parquet")
            known = copy.deepcopy(dict(trace.provenance))
            for who, dtype in dtypes.items():
                known[who]["dtype"] = dtype
            by_temperature[at] = _answer_at(
                Evidence(
                    tuple(settings),
                    tuple(prompt.id for prompt in PROMPTS),
                    rounds,
                    dataclasses.replace(trace, provenance=known),
                    LatencyTable.read(folder / f"latency-{at:g}.json"),
                )
            )
        return answer(
            by_temperature, {**known, "settings": {"tokens": 10, "seed": 1}, "hardware": {}, "prompts": 3} | VERSIONS
        )

    return of


VERSIONS = {"versions": {"torch": "2", "transformers": "5"}}


def deciding(validation: dict[str, Any]) -> list[tuple[float, str]]:
    return [
        (each["temperature"], record["name"])
        for each in validation["temperatures"]
        for record in each["settings"]
        if record["expected"]["decides"]
    ]


# 16-bit models


@pytest.mark.parametrize("coarse", [{"target": "bfloat16"}, {"draft": "float16"}])
def test_rounding_does_not_decide(judged: Callable[..., dict[str, Any]], coarse: dict[str, str]) -> None:
    """Calls off by one to three where nothing is random: with 16 bits that is said, with 32 it is a disagreement."""
    off = {(0.0, ARGMAX): 1, (0.8, ARGMAX): 1, (0.0, TREE): 3}
    rounded, exact = judged(off, **coarse), judged(off)
    assert exact["disagreements"] >= 2
    assert exact["comparisons"] == len(deciding(exact)) == 10
    assert deciding(rounded) == [(0.0, LOOKUP), *((0.8, name) for name in RANDOM)]
    assert (rounded["comparisons"], rounded["disagreements"]) == (5, 0)
    assert exact["beyond_3"] > rounded["beyond_3"] == 0
    record = next(one for one in rounded["temperatures"][0]["settings"] if one["rule"] == "argmax")
    assert round(record["expected"]["off"]) == 1
    assert "agree in all 5 comparisons" in headline(rounded)
    said = [line for line in validation_report(rounded).notes if "that decide nothing" in line]
    assert len(said) == 1
    records = [record["expected"] for each in rounded["temperatures"] for record in each["settings"]]
    most = max(round(abs(one["off"])) for one in records if not one["decides"])
    assert most >= 2
    assert said[0].startswith(f"Comparisons that decide nothing: 5, of which off: 3 (by {most} calls at most). ")
    assert said[0] in page([rounded])
    assert not [line for line in validation_report(exact).notes if "that decide nothing" in line]
    table = validation_report(rounded).pieces[0]
    assert isinstance(table, Table)
    cells = [row[4] for row in table.texts]
    assert "(+1 calls)" in cells
    assert "(+1 calls)" in page([rounded])


def test_what_rounding_does_not_touch_decides(judged: Callable[..., dict[str, Any]]) -> None:
    """Negative control: with 16 bits too, copies are exact, and calls that are random and far off are refuted."""
    assert judged({}, target="bfloat16")["disagreements"] == 0
    assert judged({(0.0, LOOKUP): 1, (0.8, LOOKUP): -1}, target="bfloat16")["disagreements"] == 2
    assert judged({(0.8, TOKEN): 15}, target="bfloat16", draft="bfloat16")["disagreements"] == 1


def test_nothing_may_decide(judged: Callable[..., dict[str, Any]]) -> None:
    validation = judged({}, target="bfloat16")
    (cold, _) = validation["temperatures"]
    alone = {0.0: [record for record in cold["settings"] if record["rule"] == "argmax"]}
    none = answer(alone, validation["provenance"])
    assert (none["comparisons"], none["disagreements"], none["beyond_3"]) == (0, 0, 0)
    assert "no comparison that decides" in headline(none)
    assert page([none])


def _prompt_file(folder: Path) -> Path:
    file = folder / "question.jsonl"
    rows = [f'{{"question_id": "{p.id}", "category": "", "turns": ["{p.text}"]}}\n' for p in PROMPTS]
    file.write_text("".join(rows))
    return file


# Loops as they sample


def test_a_loop_is_timed_as_it_samples(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sampling] = []
    plain_decode = loop_time.decode

    def listened(*args: Any, sampling: Sampling, **options: Any) -> Any:
        asked.append(sampling)
        return plain_decode(*args, sampling=sampling, **options)

    monkeypatch.setattr(loop_time, "decode", listened)
    for sampling in (Sampling(0.0), Sampling(0.7, top_p=0.9)):
        asked.clear()
        table = measure_latency(tiny_pair, context=4, tokens=(1, 2), rounds=1, warm_up=0, loop=sampling)
        assert set(asked) == {sampling}
        assert table.provenance["loop_sampling"] == dataclasses.asdict(sampling)


def test_every_temperature_has_a_table_of_its_own(folder: Path) -> None:
    for at in QUESTION.temperatures:
        table = LatencyTable.read(folder / f"latency-{at:g}.json")
        assert table.loop is not None
        assert table.provenance["loop_sampling"] == dataclasses.asdict(Sampling(at, top_k=20))
    assert not (folder / "latency.json").exists()


def test_tables_of_another_sampling_are_refused(tiny_pair: ModelPair, folder: Path, tmp_path: Path) -> None:
    warm = LatencyTable.read(folder / "latency-0.8.json")

    def kept(sampling: Sampling, table: LatencyTable = warm) -> LatencyTable:
        table.write(tmp_path / "latency.json")
        path = tmp_path / "latency.json"
        return kept_latencies(tiny_pair, warm.context, 4, path, sampling=sampling, on_progress=lambda _: None)

    assert kept(Sampling(0.8, top_k=20)) == warm
    older = {name: value for name, value in warm.provenance.items() if name != "loop_sampling"}
    assert kept(Sampling(), dataclasses.replace(warm, provenance=older)), "older loops were timed as models sample"
    cases = [
        (Sampling(0.0, top_k=20), warm),
        (Sampling(0.8), warm),
        (Sampling(0.8, top_k=20), dataclasses.replace(warm, provenance=older)),
        (Sampling(0.8, top_k=20), dataclasses.replace(warm, loop=None)),
    ]
    for sampling, table in cases:
        with pytest.raises(TraceError, match="latency table of another run"):
            kept(sampling, table)


@pytest.mark.usefixtures("quick_latencies")
def test_measure_times_the_loop_as_it_samples(
    tiny_folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Sampling] = []

    def listened(*args: Any, loop: Sampling, **how: Any) -> Timing:
        asked.append(loop)
        return Timing(*args, loop=loop, rounds=1, warm_up=0, **how)

    monkeypatch.setattr(measuring, "Timing", listened)
    pair = ["--target", str(tiny_folders[0]), "--draft", str(tiny_folders[1]), "--device", "cpu"]
    text = ["--prompts", str(_prompt_file(tmp_path)), "--tokens", "6", "--temperature", "0.5", "--top-k", "9"]
    assert main(["measure", *pair, *text, "--out", str(tmp_path / "out")]) == 0
    assert asked == [Sampling(0.5, top_k=9)]


# Errors


def test_an_error_of_logits_names_prompt_and_model(tiny_pair: ModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of reading: with a cache and without."""
    reasons: list[str | None] = [None, "has no cache"]
    for reason in reasons:
        monkeypatch.setitem(decode.__globals__, "why_uncached", lambda _, reason=reason: reason)
        with without_numbers(tiny_pair), pytest.raises(TextError, match="contain nan") as caught:
            _run_once(tiny_pair, torch.tensor([3, 4, 5]), 1, Setting("plain"), QUESTION.at(0.8))
        assert str(caught.value).startswith(f"prompt 2 by plain: {tiny_pair.target.name}: logits of row 0")


@contextmanager
def without_numbers(pair: ModelPair) -> Iterator[None]:
    """The target has NaN for logits."""

    def fill(_module: Any, _inputs: Any, output: Any) -> None:
        output.logits.fill_(torch.nan)

    hook = pair.target.network.register_forward_hook(fill)
    try:
        yield
    finally:
        hook.remove()
