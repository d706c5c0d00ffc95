"""Brief answers: a verdict in two lines, then tables of 80 columns, whatever is asked; each column has a meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectheory.cli import answer, console, main
from spectheory.intervals import Interval
from spectheory.reports import Report, engines_report, validation_report
from spectheory.reports.base import WIDTH, Brief, narrowed
from spectheory.reports.meanings import meaning, meanings
from spectheory.reports.table import Column, Drawing, Table, for_terminal
from spectheory.trace.counters import Counters
from tests.cli.plan_cases import CONFIG, latencies, measured
from tests.cli.test_stop import written
from tests.cli.theory_cases import full_trace
from tests.judging.toy_engines import ToyEngine, read, toy_pair
from tests.toy_server import affine, sweep

ROOT = Path(__file__).parents[2]
LONG = "a-draft-with-a-name-of-many-letters"
PMFS = ["--target-pmf", "0.5,0.3,0.2", "--draft-pmf", "0.2,0.3,0.5"]
EVERY = ["token", "block", "race", "poisson", "recursive", "recursive-distinct", "independent", "argmax", "topk"]
SHAPES = ["tree", "2x2x1", "batch", "chain"]
SIZES = ["--target-architecture", "SIZES", "--draft-architecture", "SIZES"]
REQUESTS = ["--prompt-tokens", "500", "--output-tokens", "100", "--tpot", "20", "--ttft", "200"]
QUESTIONS = {
    "predict": ["predict", "FULL", "--c", "0.1", "--k-max", "6"],
    "without costs": ["predict", "FULL", "--k-max", "40"],
    "several rules": ["predict", "FULL", "--c", "0.1", "--k-max", "4", *(f"--rule={rule}" for rule in EVERY)],
    "trees": ["predict", "FULL", "--c", "0.01", "--k-max", "4", *(f"--shape={shape}" for shape in SHAPES)],
    "bias": ["predict", "FULL", "--c", "0.1", "--k-max", "4", "--bias", "0.5"],
    "stopped": ["predict", "STOPPED", "--c", "0.1", "--k-max", "4", "--stop", "best", "--stop", "entropy>1"],
    "few prompts": ["predict", "FEW", "--latency", "LATENCY", "--k-max", "4"],
    "a rule of one's own": ["predict", "FULL", "--c", "0.1", "--k-max", "4", "--rule", "rule_of_many_letters:Verifies"],
    "where": ["predict", "FULL", "--c", "0.1", "--k-max", "4", "--where"],
    "counts": ["predict", "COUNTS", "--c", "0.1"],
    "plan": ["plan", "MEASURED", "--nodes-max", "4", "--k-max", "4"],
    "a losing plan": ["plan", "MEASURED", "--c", "2", "--nodes-max", "4", "--k-max", "4"],
    "plan of drafts": ["plan", "--trace", f"{LONG}=MEASURED", "--trace", f"b{LONG}=MEASURED", "--nodes-max", "4"],
    "plan of hardware": ["plan", "MEASURED", "--hardware", "H100-SXM", *SIZES, "--nodes-max", "1", "--k-max", "3"],
    "plan of counts": ["plan", "COUNTS", "--hardware", "H100-SXM", *SIZES[:2]],
    "plan of requests": ["plan", "MEASURED", "--hardware", "H100-SXM", *SIZES, "--nodes-max", "1", *REQUESTS],
    "plan of a server": ["plan", "--bench", "BENCH"],
    "plan of a server within a target": ["plan", "--bench", "BENCH", "--tpot", "20"],
    "budgets": ["plan", "FULL", "--steps", "STEPS", "--k-max", "7"],
    "budgets of a server": ["plan", "FULL", "--bench", "BENCH", "--budget", "--tpot", "15"],
    "rules": ["rules", *PMFS],
    "rules of a trace": ["rules", "FULL"],
    "bounds": ["bounds", "FULL", "--chains", "2", "--chains", "4"],
    "bounds of moments": ["bounds", "--mu", "2", "--mu2", "7"],
    "bounds of a pmf": ["bounds", "--target-pmf", "0.5,0.3,0.2"],
    "bounds of ranks": ["bounds", "--rank-pmf", "0.6,0.25,0.1"],
    "entropies": ["bounds", "--target-nats", "2", "--draft-nats", "2.3", "--vocabulary", "100"],
    "needs": ["bounds", "--need", "1.5", "--c", "0.1"],
    "judge": ["judge", "LOG", "JUDGED"],
    "judge of a wrong rule": ["judge", "LOG", "JUDGED", "--rule", "race"],
}
WHOLE = {"tree": ["tree", "FULL", "--nodes", "4"], "import": ["import", "COUNTS", "--out", "NEW"]}
"""Answers that are short as they are."""
OWN_RULE = """
from dataclasses import dataclass
from spectheory.verification import TokenVerification

@dataclass(frozen=True)
class Verifies(TokenVerification):
    name = "rule_of_many_letters:Verifies"
"""
IDS = re.compile(r"\b(?:B6|B7|B2'|T1|C1|R4|L)(?!\w)|\bhazard|\brests on\b|\bcut\b", re.IGNORECASE)
"""What a default answer does not say."""
Shown = tuple[list[str], list[Table]]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files that questions name."""
    at = tmp_path_factory.mktemp("brief")
    (at / "bench").mkdir()
    full_trace(at / "full" / "trace.parquet", texts=20)
    written(at / "stopped" / "trace.parquet")
    full_trace(at / "few" / "trace.parquet", texts=3)
    latencies(at / "latency.json")
    measured(at / "measured")
    (at / "config.json").write_text(json.dumps(CONFIG))
    (at / "rule_of_many_letters.py").write_text(OWN_RULE)
    Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2).write(at / "counts.json")
    bench = sweep(at / "bench", affine(8e-3, 2e-4, 2e-7, 4e-4, 6e-4, 2.5e-4, 2e-8), (0, 1, 3), survival=(0.8, 0.6, 0.4))
    pair = toy_pair(3)
    log = ToyEngine(pair).log(40)
    log.write(at / "calls.jsonl")
    read(pair, log).write(at / "judged.parquet")
    names = {"FULL": "full", "STOPPED": "stopped", "FEW": "few", "MEASURED": "measured", "LATENCY": "latency.json"}
    names |= {"SIZES": "", "COUNTS": "counts.json", "LOG": "calls.jsonl", "JUDGED": "judged.parquet", "NEW": "new"}
    names["STEPS"] = "steps.csv"
    (at / "steps.csv").write_text("tokens,seconds\n1,0.013\n256,0.0408\n1792,0.1877\n2048,0.2955\n")
    return {"BENCH": str(bench), "OWN": str(at), **{word: str(at / name) for word, name in names.items()}}


@pytest.fixture
def shown(
    places: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Shown]:
    """The lines that a question prints on a terminal of 80 columns, and its tables."""

    def run(question: Sequence[str], *more: str) -> Shown:
        tables: list[Table] = []

        def keep(piece: Table | Drawing) -> object:
            tables.extend([piece] if isinstance(piece, Table) else [])
            return for_terminal(piece)

        monkeypatch.setattr(answer, "for_terminal", keep)
        monkeypatch.setattr(console.answers, "_width", WIDTH)
        monkeypatch.syspath_prepend(places["OWN"])
        words = [re.sub("|".join(places), lambda word: places[word[0]], each) for each in question]
        status = main([*words, *more])
        out, err = capsys.readouterr()
        assert status in (0, 1), err
        return out.splitlines(), tables

    return run


def agrees(lines: Sequence[str], tables: Sequence[Table]) -> None:
    """One to three lines, then a table; no line or table is too wide, and no column was left out for that."""
    pasted = [n + 1 for n, line in enumerate(lines) if line.startswith("To run it")]
    assert max(len(line) for n, line in enumerate(lines) if n not in pasted) <= WIDTH
    assert not [line for line in lines if line.startswith("Columns left out")]
    title = next(i for i, line in enumerate(lines) if line == tables[0].title)
    assert title in (1, 2, 3)
    assert all(lines[:title])
    assert max(table.width for table in tables) <= WIDTH


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_verdict_comes_first_and_80_columns_hold_it(name: str, shown: Callable[..., Shown]) -> None:
    lines, tables = shown(QUESTIONS[name])
    agrees(lines, tables)
    assert lines[-1] == answer.MORE
    assert IDS.findall(" ".join(lines)) == [], "words stand for theorems and for words of this house"
    whole, every = shown(QUESTIONS[name], "--all")
    assert len(whole) > len(lines)
    without = {column.heading for table in (*tables, *every) for column in table.columns if not meaning(column)}
    assert without == set()


@pytest.mark.parametrize("name", WHOLE)
def test_columns_of_short_answers_have_meanings(name: str, shown: Callable[..., Shown]) -> None:
    lines, tables = shown(WHOLE[name])
    assert answer.MORE not in lines
    assert [column.heading for table in tables for column in table.columns if not meaning(column)] == []


def test_meanings_stand_below_the_table(shown: Callable[..., Shown]) -> None:
    """Headings that mean the same share a line."""
    lines, (table,) = shown(QUESTIONS["several rules"], "--explain")
    words = " ".join(" ".join(lines).split())
    assert all(" ".join(line.split()) in words for line in meanings(table))
    assert re.search("token.*: tokens per call under that rule: ", words)
    assert words.endswith(answer.MORE)


def of_engines() -> Report:
    calls = {"counted": 100, "expected": {"low": 99.0, "high": 99.0}, "z": 0.1}
    counts = {"rule": "recursive-distinct", "calls": calls, "fits": True}
    output = {"right": False, "worst": {"name": "first", "symbol": "G", "statistic": 50.0, "asks": "what"}}
    run = {"setting": "T1", "temperature": 1.0, "k": 3, "drafts": "sampled", "counts": counts, "output": output}
    engine = {"engine": "an engine of many letters", "version": "1.2.3", "runs": [run]}
    about = {"command": "validate", "models": {}, "prompts": 2}
    return engines_report({**about, "engines": [engine, engine, engine, engine]})


def of_validation(name: str) -> Report:
    return validation_report(json.loads((ROOT / "docs/figures/validation" / name / "validation.json").read_text()))


@pytest.mark.parametrize("made", [of_engines, *((lambda n=n: of_validation(n)) for n in ("small", "distilled"))])
def test_validations_are_brief(
    made: Callable[[], Report], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.answers, "_width", WIDTH)
    report = made()
    answer.show(report, SimpleNamespace(json=False, all=False, explain=False))
    assert report.brief
    agrees(capsys.readouterr().out.splitlines(), list(report.brief.pieces))
    tables = [piece for piece in (*report.pieces, *report.brief.pieces) if isinstance(piece, Table)]
    assert [column.heading for table in tables for column in table.columns if not meaning(column)] == []


@pytest.mark.parametrize(("width", "lines"), [(WIDTH, 2), (200, 1), (None, 1)])
def test_a_long_verdict_is_whole(
    width: int | None, lines: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrapped on a terminal, one line in a wider one and in a pipe, which has no width."""
    monkeypatch.setattr(console.answers, "_width", width)
    verdict = " ".join(["word"] * 25)
    report = Report(of_engines().content, [], "", brief=Brief.of([verdict], []))
    answer.show(report, SimpleNamespace(json=False, all=False, explain=False))
    *said, more = capsys.readouterr().out.splitlines()
    assert (len(said), " ".join(map(str.strip, said)), more) == (lines, verdict, answer.MORE)


def test_columns_that_are_too_wide_are_left_out() -> None:
    """Columns aside go first; a verdict stays whole."""
    wide = Interval(1.0, 2.0, 30.0, "statistical")
    columns = [Column("k"), Column("aside", aside=True), *(Column(f"rule {i}") for i in range(4))]
    table = Table("t", columns, [[1, wide, wide, wide, wide, wide]])
    narrow = narrowed(table)
    assert [column.heading for column in narrow.columns] == ["k", "rule 0", "rule 1", "rule 2"]
    assert narrow.width <= WIDTH < table.width
    assert Brief.of(["a" * 90, "", "b"], []).verdict == ["a" * 90, "b"]
