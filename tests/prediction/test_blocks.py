"""Large traces: predicted block by block, choices made on a sample of their texts, columns left in their file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spectheory import kernels
from spectheory.answers import plain
from spectheory.answers.prediction import SettingJson
from spectheory.cost import ConstantRatio
from spectheory.drafting import Chain, KAry, Shape, Tree, read_stop
from spectheory.errors import SettingError, SpectheoryError, TraceError, load_extra
from spectheory.prediction import Plan, plan
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.over_prompts import Prompts
from spectheory.prediction.paths import PathLaws, calls_of_chains, calls_of_laws, visits_of
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.prediction.text_limit import TextLimit
from spectheory.prediction.trace_limits import TraceLimits, _visits_of_calls
from spectheory.trace import COLUMNS, TextInfo, Trace, on_disk, parquet, record, sample
from spectheory.trace.on_disk import OnDisk
from spectheory.trace.sample import of_texts, spread
from spectheory.verification import PATH_RULES, LookupMatch, PathRule, RaceVerification, RecursiveRejection
from tests.commands import answer
from tests.commands import refused as refused_command
from tests.made_up import columns, each, head_columns, refused

SAME = 1e-12
"""Sums of one number in another order."""
LENGTHS = (1, 7, 30, 2, 30, 1, 12, 45, 8, 3, 29, 16)


def made_up(lengths: tuple[int, ...] = LENGTHS, seed: int = 1) -> Trace:
    """Two texts to a prompt, every third ended by itself, with prompt lookup's columns."""
    tokens, rng = sum(lengths), np.random.default_rng(seed)
    drafted = rng.integers(0, 6, tokens)
    texts = tuple(TextInfo(f"t{i}", n, prompt=f"p{i // 2}", ended=i % 3 == 0) for i, n in enumerate(lengths))
    moments = {"target_entropy": np.full(tokens, 1.5), "target_second_moment": np.full(tokens, 3.0)}
    copied = {"lookup_drafted": drafted, "lookup_match": rng.integers(0, drafted + 1)}
    return Trace({**columns(tokens, seed), **moments, **copied}, texts)


def of_head(seed: int = 1) -> Trace:
    """A draft head's trace to depth 4."""
    texts = made_up().texts
    return Trace(head_columns(sum(LENGTHS), 4, seed), texts)


def numbers(answer: Plan) -> list[float]:
    """Every number of an answer."""

    def inside(value: object) -> list[float]:
        if isinstance(value, dict):
            return [number for each in value.values() for number in inside(each)]
        return [float(value)] if isinstance(value, int | float) else []

    return [number for prediction in answer.predictions for number in inside(plain(SettingJson.view(prediction)))]


RANKED: tuple[ShapeRequest, ...] = (Chain(1), Chain(4), KAry((2, 2)), BestTree(5))
CHAINS: tuple[ShapeRequest, ...] = (Chain(1), Chain(4))
ASKED: list[tuple[str, tuple[ShapeRequest, ...]]] = [
    *((name, CHAINS) for name in ("token", "block", "lookup", "argmax")),
    *((name, RANKED) for name in ("race", "recursive", "topk")),
    ("token", (*CHAINS, Chain(4, stop=read_stop("token<0.3")))),
]


@pytest.mark.parametrize("prefill", [False, True])
def test_many_blocks_say_what_one_says(monkeypatch: pytest.MonkeyPatch, prefill: bool) -> None:
    """Every rule, drafts by position and by start, chains, trees, searched trees and drafts that decide."""
    checked = 0
    for trace in (made_up(), of_head()):
        for name, shapes in ASKED:
            rule = PATH_RULES[name]
            needed = [*rule.needs, *([rule.recorded_in] if shapes is RANKED else [])]  # type: ignore[attr-defined]
            if rule.missing_columns(trace.columns) or not {*needed} <= set(trace.columns):
                continue
            asked = {"rules": [rule], "shapes": shapes, "prefill_emits_token": prefill}
            monkeypatch.undo()
            whole = numbers(plan(trace, ConstantRatio(0.1), **asked))  # type: ignore[arg-type]
            monkeypatch.setattr(record, "BLOCK", 31)
            assert len(list(trace.blocks())) > 5
            np.testing.assert_allclose(numbers(plan(trace, ConstantRatio(0.1), **asked)), whole, rtol=SAME)  # type: ignore[arg-type]
            checked += 1
    assert checked >= 10


@pytest.mark.parametrize("made", [made_up, of_head])
def test_plans_that_share_limits_say_what_each_says(made: Callable[[], Trace]) -> None:
    """One after the other, with and without the prompt's token; the limits of another trace are refused."""
    trace = made()
    limits = TraceLimits(trace)
    for prefill in (False, True):
        for names, shapes in ((("token", "block"), CHAINS), (("race", "lookup"), (Chain(4), Chain(2)))):
            rules = [PATH_RULES[name] for name in names if not PATH_RULES[name].missing_columns(trace.columns)]
            alone, together = (
                plan(trace, rules=rules, shapes=shapes, prefill_emits_token=prefill, limits=given)
                for given in (None, limits)
            )
            np.testing.assert_allclose(numbers(together), numbers(alone), rtol=SAME)
    with pytest.raises(SettingError, match="another trace"):
        plan(made(), shapes=CHAINS, limits=limits)


def test_blocks_are_whole_texts_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = made_up()
    blocks = list(trace.blocks(["kl"], positions=31))
    assert [text for block in blocks for text in block.texts] == list(trace.texts)
    assert max(len(block) for block in blocks if len(block.texts) > 1) <= 31
    assert {name for block in blocks for name in block.columns} == {"kl", "log_target", "log_draft"}
    np.testing.assert_array_equal(np.concatenate([block.columns["kl"] for block in blocks]), trace.columns["kl"])
    assert list(trace.blocks(["kl"])) == [trace]


# Compiled loops and the arrays that they stand for


def arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "pays", lambda positions: False)


def test_compiled_loops_say_what_arrays_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains, trees by position and by start, and visits; texts of one token, and of more than a loop takes at once."""
    pytest.importorskip("numba")
    rng, lengths = np.random.default_rng(0), np.array([1, 2, 3, 5, 700, 1, 40, 6000])
    survival = np.sort(rng.random((int(lengths.sum()), 9)), axis=1)[:, ::-1]
    tree = Tree.from_paths([(1,), (2,), (1, 1), (1, 2), (1, 1, 1), (4,), (4, 3), (1, 1, 1, 2)])
    laws = [PathLaws(rng.dirichlet(np.ones(5), (len(survival), *deep))[..., :4]) for deep in ((), (4,))]
    assert kernels.pays(len(survival))
    for prefill in (False, True):
        at = {"prefill_emits_token": prefill}

        def results() -> list[np.ndarray]:
            chains = calls_of_chains(survival, lengths, [1, 4, 9], **at)  # noqa: B023
            trees = [calls_of_laws(law, tree, lengths, **at) for law in laws]  # noqa: B023
            of_chains = [part for k in (1, 4, 9) for part in (chains[k].expected, chains[k].full)]
            of_trees = [part for calls, first in trees for part in (calls.expected, calls.full, first)]
            return [*of_chains, *of_trees, visits_of(survival, lengths, **at)]  # noqa: B023

        ours = results()
        with monkeypatch.context() as patched:
            arrays_alone(patched)
            for one, other in zip(ours, results(), strict=True):
                np.testing.assert_allclose(one, other, rtol=SAME, atol=SAME)
    off = calls_of_chains(survival * (1 - 1e-6), lengths, [4])[4].expected
    assert np.abs(off / calls_of_chains(survival, lengths, [4])[4].expected - 1).max() > 1e3 * SAME


def test_compiled_limits_and_copies_say_what_arrays_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """B6 over all starts and over those of prompt lookup, and the calls by the tokens that they copy."""
    pytest.importorskip("numba")
    trace, rule, ks = made_up((900,) * 5 + (1, 2, 300)), LookupMatch(), [1, 3, 8]
    most = np.minimum(trace.most_tokens, trace.lengths + 3)

    def results() -> list[float]:
        limit = TextLimit(Prompts(trace.texts), trace, ks)
        of_calls = limit.means([(k, _visits_of_calls(rule, Chain(k), False)) for k in ks], rule.needs)
        every = [limit.at(k) for k in ks] + of_calls
        return [end for each in every if each for end in (each.low, each.best, each.high)]

    copies = rule.calls_by_drafted(trace.columns, trace.lengths, most, 4, first=1)
    assert kernels.pays(len(trace))
    assert len(results()) == 18
    ours = results()
    arrays_alone(monkeypatch)
    monkeypatch.setattr("spectheory.kernels.installed", lambda: False)
    np.testing.assert_allclose(ours, results(), rtol=SAME)
    np.testing.assert_array_equal(copies, rule.calls_by_drafted(trace.columns, trace.lengths, most, 4, first=1))


@pytest.mark.parametrize("least", [0.0, 640.0, 720.0])
def test_b6_of_improbable_tokens_is_finite(monkeypatch: pytest.MonkeyPatch, least: float) -> None:
    """Compiled or not, thresholds and walks whose exponentials are no floats give what arrays give."""
    pytest.importorskip("numba")
    surprisals = least + np.random.default_rng(3).exponential(size=(6, 800))
    trace = Trace.from_log_probabilities([(-row, -row) for row in surprisals])
    assert kernels.pays(len(trace))
    limit = TextLimit(Prompts(trace.texts), trace, [1, 4])
    ours = [limit.at(k) for k in (1, 4)]
    arrays_alone(monkeypatch)
    limit = TextLimit(Prompts(trace.texts), trace, [1, 4])
    for one, other in zip(ours, [limit.at(k) for k in (1, 4)], strict=True):
        assert one is not None
        assert other is not None
        np.testing.assert_allclose([one.low, one.best, one.high], [other.low, other.best, other.high], rtol=SAME)
        assert np.isfinite(one.high)


# Choices on a sample


def test_a_sample_has_texts_of_every_group() -> None:
    rng = np.random.default_rng(2)
    lengths, groups = rng.integers(1, 50, 400), rng.integers(0, 4, 400)
    chosen = spread(lengths, groups, 1000)
    shares = [int(lengths[chosen & (groups == group)].sum()) for group in range(4)]
    assert 0.6 * 250 < min(shares) <= max(shares) < 1.5 * 250
    assert spread(lengths, groups, int(lengths.sum())).all()
    assert spread(np.array([500, 500, 9]), np.array([0, 1, 0]), 10).tolist() == [True, True, False]


def test_the_texts_of_a_sample_keep_their_rows() -> None:
    trace = made_up()
    chosen = np.arange(len(LENGTHS)) % 3 == 1
    sample = of_texts(trace, chosen, ["kl"])
    rows = np.repeat(chosen, trace.lengths)
    np.testing.assert_array_equal(sample.columns["kl"], trace.columns["kl"][rows])
    assert [text.id for text in sample.texts] == [
        text.id for text, taken in zip(trace.texts, chosen, strict=True) if taken
    ]
    assert of_texts(trace, np.ones(len(LENGTHS), bool)) is trace


def test_trees_of_a_large_trace_are_found_on_the_sample_and_scored_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text is scored by the tree that the sampled texts of other prompts give."""
    monkeypatch.setattr(sample, "CHOSEN_ON", 80)
    trace, rule = made_up(), RecursiveRejection()
    (calls,) = calls_by_shape(trace, rule, [BestTree(3)])
    part = Prompts(trace.texts).folds(4)
    chosen = spread(trace.lengths, part)
    assert 4 <= chosen.sum() < len(chosen)
    assert calls.shape == searched(of_texts(trace, chosen), rule, 3)
    for number in range(4):
        tree = searched(of_texts(trace, chosen & (part != number)), rule, 3)
        (scored,) = calls_by_shape(trace, rule, [tree])
        inside = part == number
        np.testing.assert_allclose(calls.calls.expected[inside], scored.calls.expected[inside], rtol=SAME)


SMALL = {
    "predict": ["--c", "0.1", "--k-max", "2", "--rule", "recursive"],
    "plan": ["--c", "0.1", "--k-max", "2", "--nodes-max", "1"],
    "bounds": [],
}


@pytest.mark.parametrize("command", SMALL)
def test_an_answer_says_that_its_choices_are_made_on_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """How many tokens the sample has; of a trace no larger than that nothing is said."""
    made_up().write(tmp_path / "trace.parquet")
    asked = [command, tmp_path, *SMALL[command]]
    whole = answer(capsys, *asked)
    assert not any("sample of whole texts" in note for note in whole["notes"])
    assert "chosen_on" not in whole
    monkeypatch.setattr(sample, "CHOSEN_ON", 80)
    content = answer(capsys, *asked)
    groups = [Prompts(made_up().texts).folds(most) for most in (2, 4)]
    lengths = made_up().lengths
    fewest = min(int(lengths[spread(lengths, group)].sum()) for group in groups)
    assert fewest < lengths.sum()
    (note,) = (note for note in content["notes"] if "sample of whole texts" in note)
    assert f"{fewest:,} tokens or more" in note
    assert content.get("chosen_on") == (fewest if command == "predict" else None)


def searched(trace: Trace, rule: RecursiveRejection, nodes: int) -> Shape:
    (calls,) = calls_by_shape(trace, rule, [BestTree(nodes)])
    return calls.shape


# Columns that stay in their file


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a trace that counts as large, read in many blocks and batches."""
    monkeypatch.setattr(on_disk, "HELD", 50)
    monkeypatch.setattr(record, "BLOCK", 31)
    monkeypatch.setattr(parquet, "_BATCH", 20)
    monkeypatch.setattr(parquet, "_GROUP", 64)
    made_up().write(tmp_path / "trace.parquet")
    return tmp_path


def read_by(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of columns that are read from now on."""
    seen: set[str] = set()
    stream = parquet.stream

    def spied(path: Path, names: list[str], sizes: object) -> object:
        seen.update(names)
        return stream(path, names, sizes)  # type: ignore[arg-type]

    monkeypatch.setattr(parquet, "stream", spied)
    return seen


RULES: dict[PathRule, set[str]] = {
    PATH_RULES["token"]: set(),
    RaceVerification(): {"race_g"},
    LookupMatch(): {"lookup_match", "lookup_drafted"},
}


@each("rule, needs", RULES.items())
def test_a_file_says_what_memory_says_and_only_the_needed_columns_are_read(
    large: Path, monkeypatch: pytest.MonkeyPatch, rule: PathRule, needs: set[str]
) -> None:
    trace, opened = Trace.read(large), Trace.open(large)
    assert isinstance(opened.columns, OnDisk)
    assert set(opened.columns) == set(trace.columns)
    with monkeypatch.context() as patched:
        seen = read_by(patched)
        from_file = numbers(plan(opened, rules=[rule], shapes=[Chain(2), Chain(3)]))
    shared = {"log_target", "log_draft", "target_entropy", "target_second_moment", "rejection_rank"}
    assert needs <= seen <= needs | shared
    np.testing.assert_allclose(from_file, numbers(plan(trace, rules=[rule], shapes=[Chain(2), Chain(3)])), rtol=SAME)


def test_a_column_on_disk_is_read_where_it_is_asked_for(large: Path) -> None:
    trace, opened = Trace.read(large), Trace.open(large)
    for name, values in trace.columns.items():
        np.testing.assert_array_equal(opened.columns[name], values)
    assert "race_g" in opened.columns
    assert "race_rank" not in opened.columns
    assert len(opened) == len(trace)
    with pytest.raises(KeyError):
        opened.columns["race_rank"]
    whole = opened.in_memory()
    assert whole.in_memory() is whole
    assert not isinstance(whole.columns, OnDisk)
    assert repr(opened) == repr(trace)


def test_what_is_wrong_in_a_large_file_is_named_when_it_is_read(large: Path) -> None:
    """A value out of range in a block by file, text and token; what is not read is not seen."""
    trace = Trace.read(large)
    bad = trace.columns["race_g"].copy()
    bad[100] = -3.0
    wrong = {**trace.columns, "race_g": bad}
    header = {"provenance": {}, "texts": [vars(text) for text in trace.texts]}
    parquet.write(large / "trace.parquet", wrong, header)
    opened = Trace.open(large)
    text, position = trace.locate(100)
    where = f"race_g of text '{text.id}', token {position + 1} is -3"
    plan(opened, rules=[PATH_RULES["token"]], shapes=[Chain(1)])
    for call in (lambda: plan(opened, rules=[RaceVerification()], shapes=[Chain(1)]), opened.in_memory):
        refused(call, TraceError, f"{large / 'trace.parquet'}: {where}")
    refused(lambda: opened.columns["race_g"], TraceError, "race_g of row 101 is -3")


def test_a_torn_large_file_is_refused(large: Path) -> None:
    file = large / "trace.parquet"
    opened, content = Trace.open(large), file.read_bytes()
    for torn in (content[: len(content) // 2], content[:20]):
        file.write_bytes(torn)
        refused(lambda: Trace.open(large), SpectheoryError, "is truncated or no Parquet file")
        refused(lambda: plan(opened, rules=[RaceVerification()], shapes=[Chain(1)]), SpectheoryError, "is truncated")
    nulls = load_extra("pyarrow.parquet", extra=None)
    file.write_bytes(content)
    table = nulls.read_table(file)
    at = table.column_names.index("race_g")
    values = table.column(at).to_pylist()
    values[100] = None
    nulls.write_table(table.set_column(at, "race_g", [values]), file)
    refused(lambda: plan(Trace.open(large), rules=[RaceVerification()]), TraceError, "race_g of row 101 is null")


def test_a_large_file_that_is_written_over_while_it_is_read_is_refused(large: Path) -> None:
    """With fewer rows than it had when it was opened."""
    opened = Trace.open(large)
    made_up(LENGTHS[:-2]).write(large / "trace.parquet")
    rows = sum(LENGTHS[:-2])
    refused(lambda: plan(opened, rules=[RaceVerification()], shapes=[Chain(1)]), TraceError, f"has {rows} rows, fewer")


@pytest.mark.parametrize("name", [name for name, rule in PATH_RULES.items() if {*rule.needs} - {*made_up().columns}])
def test_a_rule_without_its_columns_is_refused_in_one_line(
    large: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """From memory and from disk: the line names the column and what to do."""
    rule = PATH_RULES[name]
    for file in (large, large.parent / "small"):
        if file != large:
            file.mkdir(exist_ok=True)
            Trace({n: made_up().columns[n] for n in ("log_target", "log_draft")}, made_up().texts).write(
                file / "trace.parquet"
            )
        line = refused_command(["predict", file, "--rule", name], capsys)
        missing = [column for column in rule.needs if column not in made_up().columns]
        assert all(column in line for column in missing)
        assert "measure" in line
    assert set(rule.needs) <= set(COLUMNS)
