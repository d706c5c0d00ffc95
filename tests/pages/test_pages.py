"""Pages as files: whole, escaped, without a network; the commands that write them."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectheory.answers import Part
from spectheory.cli import main
from spectheory.cost import ACCELERATORS, ConstantRatio, LatencyTable, Roofline
from spectheory.cost.table import LoopTime
from spectheory.deployment import BatchChoice, Draft, deployable
from spectheory.deployment import plan as deploy
from spectheory.drafting import Chain
from spectheory.intervals import Interval
from spectheory.judging import compare
from spectheory.judging.readings import readings
from spectheory.judging.several_k import together
from spectheory.pages import Coloured, Commands, VegaChart, write_page
from spectheory.pages import page as page_file
from spectheory.pages.deployment import deployment_parts
from spectheory.pages.judgement import difference_charts
from spectheory.pages.page import LETTERS
from spectheory.pages.prediction import LONGEST, RATIOS, _cost_chart, batch_chart, prediction_charts
from spectheory.pages.validation import validation_charts
from spectheory.pages.vega import MARKS, QUIET
from spectheory.plots import tokens_per_call
from spectheory.plots.prediction import tokens_chart
from spectheory.plots.readings import readings_charts
from spectheory.plots.style import GREY, MARKERS, PALETTE, looks_of
from spectheory.plots.validation import _draw
from spectheory.prediction import plan
from spectheory.prediction.where import where
from spectheory.reports import Report
from spectheory.trace.counters import Counters
from spectheory.verification import TokenVerification
from tests.commands import refused
from tests.cost.roofline_cases import LARGE
from tests.made_up import each
from tests.pages.page_cases import (
    HOSTILE,
    SHAPES,
    VALIDATION,
    made_up_trace,
    page_of,
    planned,
    written,
)

LARGEST = 6_000_000
"""Bytes of a page at most."""


def answer_in(page: str) -> object:
    """The numbers that a page holds as JSON."""
    match = re.search(r'<script type="application/json" id="answer">(.*?)</script>', page, re.S)
    assert match
    return json.loads(match[1])


def test_a_page_stands_alone(tmp_path: Path) -> None:
    """One file of a few megabytes: no address is loaded, and the answer stands in it as data."""
    report = written(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert len(page.encode()) < LARGEST
    assert not re.findall(r"<(?:script|link|iframe)[^>]+(?:src|href)=", page.replace(HOSTILE, ""))
    assert answer_in(page) == report.as_dict()
    assert report.headline in page
    assert "What the columns mean" in page
    assert "k: drafted tokens per call" in page


def test_what_is_not_ours_is_escaped(tmp_path: Path) -> None:
    written(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert HOSTILE not in page
    assert page.count("&lt;/script&gt;&lt;script&gt;") >= 8, "note, text, lines, caption, provenance"
    assert 'onerror="document' not in page
    assert "a.example" not in page


def test_a_token_may_be_half_a_letter_or_endless(tmp_path: Path) -> None:
    losses = where(made_up_trace(8), TokenVerification(), Chain(2))
    tokens = ["\ud83d", "x" * 1_000_000, *losses.text.tokens[2:]]
    text = Coloured.of(replace(losses, text=replace(losses.text, tokens=tokens)), 6)
    write_page(Report(Part(), [], "answer"), tmp_path / "page.html", title="Prediction", parts=[text])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert ">?</span>" in page
    assert f">{'x' * LETTERS}…</span>" in page


def test_the_slider_has_a_length_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = planned(made_up_trace(), 0.1)
    assert "are drawn" not in _cost_chart(answer, answer.chains).words
    monkeypatch.setattr("spectheory.pages.prediction.LONGEST", len(SHAPES) - 1)
    assert len(SHAPES) < LONGEST
    cut = _cost_chart(answer, answer.chains)
    assert "at most 11 tokens are drawn" in cut.words
    assert '"k": 12' not in json.dumps(cut.spec)


@each("window, longest", [(None, 131072), (8192, 8192), (300, 1024)])
def test_contexts_end_where_the_target_was_trained(window: int | None, longest: int) -> None:
    """1024 is what is asked for, and stays."""
    target, card = replace(LARGE, window=window), ACCELERATORS["H100-SXM"]
    answer = deploy([Draft("d", made_up_trace(), Roofline(target, None, card, 1024))], k_max=2, nodes=1)
    (chart,) = (chart for chart in deployment_parts(answer) if isinstance(chart, VegaChart) and chart.name == "batches")
    (offered,) = re.findall(r"(\[[^\]]*\])\[context\]", json.dumps(chart.spec))[-1:]
    assert max(json.loads(offered)) == longest
    words = "not known" if window is None else f"trained for {window} tokens"
    assert words in chart.assumes[-1]


@each("c", [0.0, 0.0303, 2.5])
def test_the_slider_begins_at_the_cost_that_is_given(c: float) -> None:
    """Also where drafts are free, as prompt lookup's, or cost more than a target step."""
    answer = planned(made_up_trace(), c)
    spec = _cost_chart(answer, answer.chains).spec
    (start,) = (each for each in spec["params"] if each["name"] == "cost")
    (offered,) = re.findall(r"(\[[^\]]*\])\[cost\]", json.dumps(spec["layer"][0]))
    assert json.loads(offered)[start["value"]] == c


def drawn_at_first(chart: VegaChart) -> list[float]:
    """The speed-ups where the slider begins."""
    (start,) = (each["value"] for each in chart.spec["params"] if each["name"] == "cost")
    return [row["at"][start] for row in chart.spec["layer"][0]["data"]["values"]]


def test_at_the_measured_cost_the_slider_has_the_speed_ups_of_the_plan() -> None:
    """Passes that grow with k and a loop count; a constant c of the same ratio, the control, gives other numbers."""
    passes = {m: Interval.exact(1.0 + 0.1 * m) for m in (1, 4, 16)}
    loop = LoopTime(plain=0.1, call=0.2, draft_pass=0.05, node=0.01, tree=0.0)
    table = LatencyTable(passes, {m: Interval.exact(0.2) for m in (1, 2)}, 64, loop=loop)
    answer = plan(made_up_trace(), table, rules=["token", "block"], k_max=12, trees=False)
    expected = [p.speedup.best for label in answer.chains for p in answer.of(label) if p.speedup]
    assert len(expected) == 24
    assert drawn_at_first(_cost_chart(answer, answer.chains)) == pytest.approx(expected, rel=1e-5)
    constant = planned(made_up_trace(), table.ratio)
    assert drawn_at_first(_cost_chart(constant, constant.chains)) != pytest.approx(expected, rel=1e-2)


def test_the_chart_says_why_the_headline_differs() -> None:
    """Transformers runs no block verification. Where the headline is what is drawn, nothing is said."""
    trace = made_up_trace()
    answer = planned(trace, 0.1)
    words = {
        engine: _cost_chart(answer, answer.chains, deployable(answer, trace, [engine])).words
        for engine in ("transformers", "vllm")
    }
    assert "the headline names what an engine runs (transformers, token verification, k = " in words["transformers"]
    assert "headline" not in words["vllm"], "vLLM runs block verification"
    assert "headline" not in _cost_chart(answer, answer.chains).words


def test_a_chart_is_a_table_too() -> None:
    """Every dot with its interval, then the limits; every place of a slider."""
    answer = planned(made_up_trace(), 0.1)
    tokens, _, cost = prediction_charts(answer)
    rows = list(csv.DictReader(io.StringIO(tokens.csv)))
    best = next(p for p in answer.predictions if p is answer.best)
    (row,) = (r for r in rows if r["series"] == "block" and r["drafted tokens per call, k"] == str(best.shape.nodes))
    assert float(row["tokens per target call, high"]) == best.tokens_per_call.high
    assert {line.name for line in tokens_chart(answer, answer.labels).lines} <= {row["series"] for row in rows}
    assert len(list(csv.DictReader(io.StringIO(cost.csv)))) == len(answer.predictions) * len({*RATIOS, 0.1})


def test_a_plan_says_what_to_do_next() -> None:
    """The lines of the first screen, with their commands."""
    answer = deploy([Draft("d", made_up_trace(), ConstantRatio(0.1))], k_max=2, nodes=1)
    (steps,) = (part for part in deployment_parts(answer, "a/b") if isinstance(part, Commands) and part.name == "next")
    assert steps.commands[-1] == ("where calls are lost", "spectheory predict a/b --where")
    assert any("set --k-max 4" in words for words, _ in steps.commands)


def test_a_context_beyond_what_the_target_was_trained_for_is_marked() -> None:
    lengths = [[BatchChoice(1, context, k, 1.0, 1.0, 1.0) for k in range(4)] for context in (1024, 131072)]
    marked = json.dumps(batch_chart(lengths, "token", "draft", (1, 1024), window=8192).spec)
    assert "datum.L > 8192" in marked
    assert "8,192 tokens that the target was trained for" in marked
    unknown = batch_chart(lengths, "token", "draft", (1, 1024))
    assert "trained" not in json.dumps(unknown.spec)
    assert any("not known" in line for line in unknown.assumes)


def test_certain_ranges_are_compared_by_their_low_ends() -> None:
    """As plans compare them: the slider's best is the plan's; the words say what bands and lines are."""
    answer = planned(made_up_trace(), 0.1)
    ranges = replace(answer, predictions=tuple(replace(p, certified=p.tokens_per_call) for p in answer.predictions))
    tokens, _, cost = prediction_charts(ranges)
    assert "around certain ranges" in tokens.words
    assert "low ends are drawn" in cost.words
    at_first = drawn_at_first(cost)
    assert at_first == pytest.approx([p.gain for label in ranges.chains for p in ranges.of(label)], rel=1e-5)
    assert at_first != pytest.approx([p.gain for label in answer.chains for p in answer.of(label)], rel=1e-5)


def test_predict_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_trace().write(tmp_path / "trace.parquet")
    file = tmp_path / "new" / "page.html"
    asked = ["predict", str(tmp_path), "--c", "0.2", "--k-max", "4", "--report", str(file)]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert str(file) in said.err
    assert said.out.splitlines()[0][:40] in file.read_text()
    assert main([*asked, "--where"]) == 0
    assert "one loses as many calls" in file.read_text()


@pytest.mark.evidence
@each("name, parts", [("plan", ["run", "next", "candidates", "batches", "tokens", "speedup", "cost"]),
                      ("judge", ["causes", "calls", "positions"]), ("validate", ["calls", "tokens", "speedups"]),
                      ("figures", ["batch", "entropy"])])  # fmt: skip
def test_every_command_has_its_page(
    name: str, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It holds the answer that the command prints; of figures what is compared and drawn."""
    page = page_of(name, tmp_path).read_text()
    assert re.findall(r'<section id="([a-z]+)">', page)[: len(parts)] == parts
    assert len(page.encode()) < LARGEST
    numbers = answer_in(page)
    if name == "figures":
        assert isinstance(numbers, dict)
        assert [each["figure"] for each in numbers["figures"]] == parts
        assert "theory and simulation agree in all" in page
        assert page.count('src="data:image/svg+xml;base64,') == 2
    elif name != "validate":
        assert numbers == json.loads(capsys.readouterr().out)


def test_counts_have_a_page(tmp_path: Path) -> None:
    log = tmp_path / "counts.json"
    Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2).write(log)
    assert main(["predict", str(log), "--report", str(tmp_path / "predict.html")]) == 0
    assert "<table>" in (tmp_path / "predict.html").read_text()
    assert main(["predict", str(log), "--c", "0.1", "--k-max", "4", "--out", str(tmp_path / "out")]) == 0
    assert {each.name for each in (tmp_path / "out").glob("*.png")} == {"tokens.png", "speedup.png"}


def test_charts_of_counts_have_the_readings() -> None:
    """A line for every k, and the counted k as marks of their own; speed-ups only with costs."""
    one, other = Counters(calls=900, survival=(0.6,), k=1), Counters(calls=900, survival=(0.6, 0.4, 0.2), k=3)
    (chart,) = readings_charts({"other": readings(other, k_max=5)})
    assert [(dot.x.best, dot.y) for dot in chart.of("other")] == [
        (row.k, row.tokens_per_call) for row in readings(other, k_max=5).rows
    ]
    assert [dot.x.best for dot in chart.of("other: counted")] == [3]
    joint = together([one, other], ConstantRatio(0.1), k_max=5)
    both = readings_charts({"one": readings(one), "other": readings(other)}, joint)
    assert [each.name for each in both] == ["tokens", "speedup"]
    assert [dot.x.best for dot in both[0].of("all counts together: counted")] == [1, 3]


def test_two_runs_have_a_page(tmp_path: Path) -> None:
    """Acceptance of both, and each difference with its interval."""
    for name, share in (("before", 0.7), ("after", 0.6)):
        Counters(calls=900, survival=(share, 0.3), k=2).write(tmp_path / f"{name}.json")
    one, other, file = (tmp_path / name for name in ("before.json", "after.json", "page.html"))
    assert main(["compare", str(one), str(other), "--report", str(file)]) == 0
    page = file.read_text()
    assert re.findall(r'<section id="([a-z]+)">', page)[:2] == ["positions", "differences"]
    difference = compare(one, other, names=("before.json", "after.json"))
    positions, differences = (list(csv.DictReader(io.StringIO(each.csv))) for each in difference_charts(difference))
    shares = [float(row["share of calls that accept at least i drafts"]) for row in positions]
    assert shares == pytest.approx([0.7, 0.3, 0.6, 0.3])
    assert [row["series"] for row in differences] == ["within noise", "beyond noise", "within noise"]
    assert float(differences[1]["after.json less before.json, high"]) == difference.changes[1].difference.high


def test_a_rule_has_one_colour_on_page_and_figure() -> None:
    """Also one that the project does not know, one whose colour another has, and transformers' generation."""
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure

    content = json.loads(json.dumps(VALIDATION))
    first, *others = content["temperatures"][0]["settings"]
    rules = ["kseq", "lookup", "assisted", "toy", "toy2"]
    content["temperatures"][0]["settings"] = [
        first,
        *(record | {"rule": r} for r, record in zip(rules, others, strict=False)),
    ]
    figure = Figure()
    _draw(figure, [content])
    (key,) = figure.legends
    in_figure = {t.get_text(): to_hex(h.get_color()) for t, h in zip(key.texts, key.legend_handles, strict=True)}
    assert len({in_figure[rule] for rule in rules}) == len(rules)
    names = {f"var(--{name})": colour.lower() for name, colour in PALETTE.items()} | {QUIET: GREY}
    scales = [scale for chart in validation_charts(content) for scale in scales_of(chart.spec, "color")]
    assert set(rules) <= {rule for scale in scales for rule in scale["domain"]}
    for scale in scales:
        shown = {rule: names[colour] for rule, colour in zip(scale["domain"], scale["range"], strict=True)}
        assert shown.items() <= in_figure.items()


def test_a_rule_has_one_marker_on_page_and_figure() -> None:
    """Every marker of a figure has an outline of its own on a page, and a rule has the outline of its marker."""
    assert set(MARKS) == set(MARKERS)
    assert len(set(MARKS.values())) == len(MARKERS)
    plan = planned(made_up_trace(), 0.1)
    looks = looks_of(p.rule for p in plan.predictions)
    for chart in prediction_charts(plan):
        (scale,) = {json.dumps(scale): scale for scale in scales_of(chart.spec, "shape")}.values()
        assert scale["range"] == [MARKS[looks[rule].marker] for rule in scale["domain"]]


def test_page_and_figure_draw_the_same_numbers() -> None:
    """Each chain's k and tokens per call, and the limits of the picture among those of the page."""
    from matplotlib.figure import Figure

    plan = planned(made_up_trace(), 0.1)
    ax = Figure().subplots()
    tokens_per_call(ax, plan)
    chart = json.dumps(prediction_charts(plan)[0].spec)
    rows = [json.loads(row) for row in re.findall(r'\{"rule"[^{}]*\}|\{"limit"[^{}]*"k"[^{}]*\}', chart)]
    for label in plan.chains:
        marker = looks_of(p.rule for p in plan.predictions)[label.rule].marker
        (line,) = (each for each in ax.lines if each.get_marker() == marker)
        known = [(row["k"], row["best"]) for row in rows if row.get("rule") == str(label)]
        np.testing.assert_allclose(list(zip(*line.get_data(), strict=True)), known, rtol=1e-5)
    curves = [line.get_ydata() for line in ax.lines if line.get_marker() == "None"]
    limits = {line.name for line in tokens_chart(plan, plan.chains).lines if line.in_pictures}
    for name in limits:
        values = list({row["k"]: row["value"] for row in rows if row.get("limit") == name}.values())
        assert any(len(line) == len(values) and np.allclose(line, values, rtol=1e-5) for line in curves), name
    assert limits


def scales_of(spec: object, channel: str) -> Iterator[dict[str, list[str]]]:
    """The scales by which a chart tells rules apart."""
    if isinstance(spec, dict):
        known = spec.get(channel)
        if isinstance(known, dict) and known.get("field") == "rule":
            yield known["scale"]
    for part in spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ():
        yield from scales_of(part, channel)


def test_a_page_is_written_though_the_reader_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def left(*_: object, **__: object) -> None:
        raise BrokenPipeError

    made_up_trace().write(tmp_path / "trace.parquet")
    monkeypatch.setattr("spectheory.cli.answer.answers.print", left)
    main(["predict", str(tmp_path), "--c", "0.2", "--k-max", "2", "--report", str(tmp_path / "page.html")])
    assert (tmp_path / "page.html").exists()


def test_a_page_that_cannot_be_made_is_refused_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up_trace().write(tmp_path / "trace.parquet")
    (tmp_path / "file").write_text("")
    asked = ["predict", tmp_path, "--c", "0.2", "--k-max", "2", "--report"]
    for place in (tmp_path / "file" / "page.html", tmp_path):
        assert re.search(" cannot be written .*choose another --report", refused([*asked, place], capsys))
    measured = (tmp_path / "trace.parquet").read_bytes()
    assert "needs one that ends in .html" in refused([*asked, tmp_path / "trace.parquet"], capsys)
    assert (tmp_path / "trace.parquet").read_bytes() == measured
    page = tmp_path / "page.html"
    export = ["plan", tmp_path, "--c", "0.2", "--export", "vllm", "--report", page]
    assert "--report is given with --export" in refused(export, capsys)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert re.search("jinja2 is not installed.*'report'", refused([*asked, page], capsys))
    assert not page.exists()


def test_an_answer_too_large_for_a_page_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up_trace().write(tmp_path / "trace.parquet")
    monkeypatch.setattr(page_file, "LARGEST", 1_000)
    asked = ["predict", str(tmp_path), "--c", "0.2", "--k-max", "2", "--report", str(tmp_path / "page.html")]
    assert main(asked) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert re.match("spectheory: the report takes .* MB.*use --json", said)
    assert not (tmp_path / "page.html").exists()
