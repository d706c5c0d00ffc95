"""Where calls start and where they are lost (§13): against a walk over all runs of calls, and on known texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spectheory.drafting import Chain, KAry, Shape, read_stop
from spectheory.errors import SettingError, TraceError
from spectheory.pairs import resolve
from spectheory.plots.where import write_where
from spectheory.prediction import Plan, plan
from spectheory.prediction.at_starts import CallStarts, survival_at_starts
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.prediction.stopped import drafted_along
from spectheory.prediction.where import _classes_by_frequency, _token_class, settings_of, where
from spectheory.reports import Report, prediction_report
from spectheory.reports.where import where_report
from spectheory.trace import TextInfo, Trace
from spectheory.trace.strings import TokenStrings
from spectheory.verification import PATH_RULES, TokenVerification
from spectheory.verification.registry import path_rule
from tests.made_up import by_start, columns, each

CLOSE = 1e-9
LENGTHS = (9, 6, 1)


def made(*, heads: bool = False) -> Trace:
    """Three texts of two prompts, every kind of column; of a head, by start."""
    known = columns(sum(LENGTHS), seed=5)
    known |= {"lookup_match": np.array([0, 2, 1, 0] * 4), "lookup_drafted": np.array([2, 2, 2, 0] * 4)}
    known |= {"draft_top": np.linspace(0.2, 0.9, sum(LENGTHS)), "draft_entropy": np.linspace(3, 0, sum(LENGTHS))}
    if heads:
        known |= by_start(known, 4)
    names = ("1", "1", "2")
    texts = tuple(TextInfo(f"{i}", n, names[i], prompt_tokens=10 * i) for i, n in enumerate(LENGTHS))
    return Trace(known, texts)


def walked(survival: np.ndarray, first: int = 0) -> tuple[np.ndarray, Counter[tuple[int, int]]]:
    """Calls that start at each position of one text, and those that end at each after j accepted drafts."""
    length, depth = survival.shape
    visits, ends = np.zeros(length), Counter[tuple[int, int]]()

    def go(start: int, weight: float) -> None:
        if weight == 0 or start >= length:
            return
        visits[start] += weight
        law = -np.diff(survival[start], prepend=1.0, append=0.0)
        for j in range(depth + 1):
            if start + j < length - 1:
                ends[start + j, j] += weight * law[j]
            go(start + j + 1, weight * law[j])

    go(first, 1.0)
    return visits, ends


CASES: list[tuple[str, Shape]] = [
    ("token", Chain(3)),
    ("block", Chain(4)),
    ("race", Chain(1)),
    ("recursive", KAry((2, 2))),
    ("token", Chain(3, stop=read_stop("token<0.4"))),
    ("block", Chain(4, stop=read_stop("top<0.6"))),
    ("lookup", Chain(2)),
    ("lookup>token", Chain(3)),
]


@each("prefill", [False, True])
@each("heads", [False, True])
@each("name, shape", CASES)
def test_starts_and_ends_are_those_of_all_runs_of_calls(name: str, shape: Shape, heads: bool, prefill: bool) -> None:
    """Visits and ends of each text by a walk over every outcome; together they are the expected calls."""
    if heads and name in ("race", "lookup", "lookup>token"):
        return  # copied drafts depend on their start already; race_g by start is not needed twice
    trace = made(heads=heads)
    starts = CallStarts.of(trace, path_rule(name), shape, prefill_emits_token=prefill)
    rejected, full = starts.ends
    begin = 0
    for length in LENGTHS:
        rows = slice(begin, begin + length)
        visits, ends = walked(starts.survival[rows], int(prefill))
        assert starts.visits[rows] == pytest.approx(visits, abs=CLOSE)
        both = [sum(weight for (at, _), weight in ends.items() if at == m) for m in range(length)]
        assert (rejected + full)[rows] == pytest.approx(both, abs=CLOSE)
        begin += length
    (shape_calls,) = calls_by_shape(trace, path_rule(name), [shape], prefill_emits_token=prefill)
    texts = sum(length > prefill for length in LENGTHS)
    passes = len(LENGTHS) * prefill
    assert rejected.sum() + full.sum() + texts == pytest.approx(shape_calls.calls.expected.sum() - passes, abs=CLOSE)
    assert starts.visits @ starts.tokens == pytest.approx(sum(LENGTHS) - passes, abs=CLOSE)


@each("name, shape", CASES)
def test_a_call_that_drafted_no_more_is_not_lost(name: str, shape: Shape) -> None:
    """Rejections are told from calls that end because no more was drafted."""
    trace = made()
    starts = CallStarts.of(trace, path_rule(name), shape)
    rejected, full = starts.ends
    expected = np.zeros(len(trace))
    depth = shape.depth
    drafted = np.ones((len(trace), depth), bool)
    if shape.stop:
        drafted = drafted_along(trace.columns, shape.stop, shape.k)
    if "lookup" in name:
        copied = trace.columns["lookup_drafted"][:, None]
        drafted = (copied >= np.arange(1, depth + 1)) | ((copied == 0) & (name != "lookup"))
    begin = 0
    for length in LENGTHS:
        _, ends = walked(starts.survival[begin : begin + length])
        for m in range(length):
            for (at, j), weight in ends.items():
                if at == m and j < depth and drafted[begin + m - j, j]:
                    expected[begin + m] += weight
        begin += length
    if name != "recursive":  # a tree's leaves are at several depths
        assert rejected == pytest.approx(expected, abs=CLOSE)
    if shape.stop or "lookup" in name:
        assert full.sum() > 0.1, "the case has what it is about"
    assert np.all(rejected >= -CLOSE)


def test_the_mean_over_positions_is_another_number() -> None:
    """Negative control: starts weighted alike give other shares than counters do."""
    trace, k = made(), 3
    rule = TokenVerification()
    starts = CallStarts.of(trace, rule, Chain(k))
    counts, calls, begin, whole = np.zeros(k), 0.0, 0, []
    for length in LENGTHS:
        visits, _ = walked(starts.survival[begin : begin + length])
        for n in range(max(length - k + 1, 0)):
            counts, calls = counts + visits[n] * starts.survival[begin + n], calls + visits[n]
            whole.append(starts.survival[begin + n])
        begin += length
    assert survival_at_starts(trace, rule, k, prefill_emits_token=False) == pytest.approx(counts / calls, abs=CLOSE)
    (at,) = [at for at in where(trace, rule, Chain(k)).depths if at.shape == Chain(k)]
    assert [each.best for each in at.survival] == pytest.approx(counts / calls, abs=CLOSE)
    given_before = counts / np.array([calls, *counts[:-1]])
    assert [each.best for each in at.conditional] == pytest.approx(given_before, abs=CLOSE)
    assert at.everywhere == pytest.approx(np.mean(whole, axis=0), abs=CLOSE)
    assert np.abs(np.array(at.everywhere) - counts / calls).max() > 0.01


def test_the_first_draft_of_longer_chains_is_accepted_less_often_where_hard_tokens_come_together() -> None:
    target, draft = [-1.0] * 200, ([-1.0] * 10 + [-3.0] * 10) * 10
    trace = Trace.from_log_probabilities([(target, draft)] * 2)
    firsts = [at.survival[0].best for at in where(trace, TokenVerification(), Chain(8)).depths]
    means = [at.everywhere[0] for at in where(trace, TokenVerification(), Chain(8)).depths]
    assert len(firsts) == 4
    assert firsts[0] - firsts[-1] > 0.1
    assert max(means) - min(means) < 0.02, "the acceptance of positions is the same"


def test_groups_add_up() -> None:
    losses = where(made(), TokenVerification(), Chain(3))
    for groups in (losses.by_position, losses.by_context):
        assert sum(group.calls for group in groups) == pytest.approx(losses.calls)
        assert sum(group.tokens for group in groups) == sum(LENGTHS)
    assert sum(group.calls for group in losses.classes) == pytest.approx(losses.lost)
    assert sum(group.tokens for group in losses.classes) == sum(LENGTHS)
    assert losses.by_context[0].name.startswith("0")


def answer(trace: Trace) -> Report:
    """What ``predict`` shows of a trace without ``--where``."""
    return prediction_report(plan(trace, k_max=2))


def test_without_prompt_lengths_or_ids_there_is_less() -> None:
    trace = made()
    unknown = tuple(TextInfo(text.id, text.tokens, text.prompt) for text in trace.texts)
    columns = {name: values for name, values in trace.columns.items() if name != "token"}
    losses = where(Trace(columns, unknown), TokenVerification(), Chain(2))
    assert (losses.by_context, losses.classes, losses.ids) == ((), (), ())
    assert losses.text.tokens[0] == "#0"
    notes = " ".join(where_report([losses], answer(Trace(columns, unknown))).notes)
    assert "does not know the lengths of the prompts" in notes
    assert "no token ids" in notes


def test_classes_of_tokens() -> None:
    texts = {
        ("\n    ", ":"): "line break", ("   ", "x"): "space", (" 12", "="): "number", ("def", "\n"): "word start",
        (" def", "x"): "word start", ("ine", "def"): "word continuation", ("_x", "f("): "word start",
        ("().", "f"): "punctuation", ("\ufffd", ""): "part of a character", ("x1", "_"): "word continuation",
        ("x", "1"): "word start",
    }  # fmt: skip
    assert {pair: _token_class(*pair) for pair in texts} == texts
    which, names = _classes_by_frequency(np.array([7] * 30 + [*range(100, 120)]))
    assert names == ("the 10 most frequent ids", "ids of places 11 to 100")
    assert [int((which == i).sum()) for i in range(2)] == [30 + 9, 11]


def test_strings_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    """Every token of the built-in tokenizer, as the package tokenizers decodes it."""
    tokenizers = pytest.importorskip("tokenizers")
    file = Path(resolve("builtin:target")) / "tokenizer.json"
    strings, decoder = TokenStrings.read(file, ids=512), tokenizers.Tokenizer.from_file(str(file))
    assert all(decoder.decode([i], skip_special_tokens=False) == strings[i] for i in range(512))
    assert strings.special == {0}
    assert strings[600] == "<600>"
    with pytest.raises(TraceError, match="has 512 tokens: the trace's has 100"):
        TokenStrings.read(file, ids=100)
    (tmp_path / "tokenizer.json").write_text('{"model": {"vocab": [["<0x0A>", 0], ["\u2581the", -1], ["x", -2]]}}')
    assert [TokenStrings.read(tmp_path / "tokenizer.json")[i] for i in range(3)] == ["\n", " the", "x"]


@pytest.mark.parametrize(
    "content",
    [
        '{"model": 3}',
        "[1]",
        '{"model": {"vocab": ' + "[" * 100_000,
        '{"model": {"vocab": [[1, 0.0], [2, 0.0]]}}',
        '{"model": {"vocab": {"a": "b"}}}',
        '{"model": {"vocab": {"a": [1]}}}',
        '{"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1, "content": 5}]}',
        '{"model": {"vocab": {"a": 0}}, "added_tokens": [3]}',
    ],
)
def test_strings_of_a_strange_file(content: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(TraceError, match="cannot be read as a tokenizer"):
        TokenStrings.read(tmp_path / "tokenizer.json")


def test_figures_of_a_trace_without_strings(tmp_path: Path) -> None:
    losses = where(made(heads=True), TokenVerification(), Chain(3))
    files = write_where([losses], tmp_path)
    assert {file.name for file in files} == {"where.png", "where.svg"}
    assert all(file.stat().st_size > 5_000 for file in files)


def test_texts_without_room_for_a_call_have_less_to_show(tmp_path: Path) -> None:
    """Texts of one token, a tree that is two deep: no call with room for its drafts."""
    known = {"log_target": np.full(2, -0.5), "log_draft": np.full(2, -0.5), "rejection_rank": np.full((2, 4), 0.2)}
    trace = Trace(known, (TextInfo("a", 1), TextInfo("b", 1)))
    losses = where(trace, PATH_RULES["recursive"], KAry((2, 2)))
    assert (losses.calls, losses.lost, losses.depths) == (2.0, 0.0, ())
    report = where_report([losses], answer(trace))
    assert report.headline == "recursive verification, k-ary 2x2: 0 of 2 calls end with a rejection"
    assert len(write_where([losses], tmp_path)) == 2


def test_settings_are_those_of_the_plan() -> None:
    answer = plan(made(), rules=[PATH_RULES["token"], PATH_RULES["block"]], shapes=[Chain(1), Chain(3)])
    assert [rule.name for rule, _ in settings_of(answer)] == ["token", "block"]
    assert settings_of(answer)[-1][1] == answer.best.shape
    stop = read_stop("token<0.4")
    stopped = [Chain(k, stop=stop) for k in (1, 2)]
    answer += plan(made(), rules=[PATH_RULES["token"]], shapes=stopped)
    rule, shape = settings_of(answer)[-1]
    assert (rule.name, shape) == ("token", stopped[-1])
    with pytest.raises(SettingError, match="bounds the rules alone"):
        settings_of(plan_of_bounds())


def plan_of_bounds() -> Plan:
    """A plan whose settings are all ranges."""
    answer = plan(made(), rules=[TokenVerification()], shapes=[Chain(1)])
    bounded = replace(answer.best, certified=answer.best.tokens_per_call)
    return replace(answer, predictions=(bounded,), best=bounded)
