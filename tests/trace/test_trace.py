"""The record of a pair: what it refuses, what survives the disk, what a killed run leaves behind."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.deployment import Draft
from spectheory.deployment.mismatch import mismatches
from spectheory.errors import OutputError, SpectheoryError, TextError, TraceError
from spectheory.intervals import Interval
from spectheory.prediction import plan
from spectheory.prediction.remarks import doubts
from spectheory.reports import prediction_report
from spectheory.trace import COLUMNS, METADATA_KEY, RECORDED_RANKS, TextInfo, Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import Counters
from tests.made_up import columns, one_line, same, trace

NAN = math.nan


# The disk


def test_a_trace_survives_the_disk(tmp_path: Path) -> None:
    """Values, texts and provenance come back; single precision comes back widened, exactly."""
    path = tmp_path / "new" / "folder" / "pair.parquet"
    written = trace(3, 1, 4, target="a/b", nested={"seed": 7, "list": [1, 2]})
    written.write(path)
    read = Trace.read(path)
    assert same(read, written)
    assert read.columns["kl"].dtype == np.float64
    assert read.columns["rejection_rank"].dtype == np.float64
    assert read.columns["rejection_rank"].shape == (8, RECORDED_RANKS)
    assert read.columns["greedy_agreement"].dtype == np.bool_
    assert read.columns["token"].dtype == np.int32
    assert [p.name for p in path.parent.iterdir()] == ["pair.parquet"], "no partial file is left"


def test_a_trace_of_many_row_groups_is_one(tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    written = trace(40)
    written.write(path)
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=7)
    assert same(Trace.read(path), written)


def test_rewriting_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    trace(9).write(path)
    shorter = trace(2, seed=5)
    shorter.write(path)
    assert same(Trace.read(path), shorter)


def test_unknown_columns_are_left_alone(tmp_path: Path) -> None:
    """A newer writer may add columns; they are not read, and nothing else changes."""
    path = tmp_path / "pair.parquet"
    trace(4).write(path)
    table = pq.read_table(path)
    pq.write_table(table.append_column("from_the_future", pa.array([1, 2, 3, 4])), path)
    assert set(Trace.read(path).columns) == set(columns(4))
    assert set(columns(4)) <= set(COLUMNS)


def damage(path: Path, case: str) -> None:
    """Turn a good trace file into a bad one."""
    whole = path.read_bytes()
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[METADATA_KEY])

    def with_header(content: Any) -> None:
        pq.write_table(table.replace_schema_metadata({METADATA_KEY: json.dumps(content).encode()}), path)

    match case:
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        case "without its last byte":
            path.write_bytes(whole[:-1])
        case "empty":
            path.write_bytes(b"")
        case "text":
            path.write_text("log_target,log_draft\n-1,-1\n")
        case "missing":
            path.unlink()
        case "no header":
            pq.write_table(table.replace_schema_metadata({}), path)
        case "header no JSON":
            pq.write_table(table.replace_schema_metadata({METADATA_KEY: b"{"}), path)
        case "header a list":
            with_header([1])
        case "other schema":
            with_header(header | {"schema": 99})
        case "no texts":
            with_header({k: v for k, v in header.items() if k != "texts"})
        case "no log_draft":
            pq.write_table(table.drop_columns(["log_draft"]), path)
        case "texts of other lengths":
            header["texts"][0]["tokens"] += 1
            with_header(header)
        case "no rows":
            pq.write_table(table.slice(0, 0), path)


DAMAGE = {
    "truncated": "is truncated or no Parquet file",
    "without its last byte": "is truncated or no Parquet file",
    "empty": "is truncated or no Parquet file",
    "text": "is truncated or no Parquet file",
    "missing": "is missing",
    "no header": "is a Parquet file but no trace",
    "header no JSON": "is a Parquet file but no trace",
    "header a list": "is a Parquet file but no trace",
    "other schema": "has trace schema 99: this version reads schema 3",
    "no texts": "is a Parquet file but no trace",
    "no log_draft": "lacks log_draft",
    "texts of other lengths": "one row per token",
    "no rows": "one row per token",
}


@pytest.mark.parametrize("case", sorted(DAMAGE))
def test_damaged_files_are_named_in_one_line(case: str, tmp_path: Path) -> None:
    path = tmp_path / "pair.parquet"
    trace(3, 2).write(path)
    damage(path, case)
    with pytest.raises(TraceError) as caught:
        Trace.read(path)
    assert DAMAGE[case] in one_line(caught)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A file stands where the folder should be: an error in one line, and the file is untouched."""
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError) as caught:
        trace(2).write(tmp_path / "file" / "pair.parquet")
    assert "cannot be written" in one_line(caught)
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_path_that_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pair.parquet").mkdir()
    with pytest.raises(OutputError, match="cannot be written"):
        trace(2).write(tmp_path / "pair.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["pair.parquet"], "the partial file is gone"


# What a trace refuses


BAD_VALUES = [
    ("log_target", -math.inf, "is -inf"),
    ("log_target", 0.25, "is 0.25"),
    ("log_target", NAN, "is nan"),
    ("log_target", math.inf, "is inf"),
    ("log_draft", 1e-9, "is 1e-09"),
    ("log_draft", NAN, "is nan"),
]


@pytest.mark.parametrize(("name", "value", "fragment"), BAD_VALUES)
def test_impossible_log_probabilities_are_located(name: str, value: float, fragment: str) -> None:
    """The message names the text and the token, counted from one; log q = -inf alone is allowed."""
    bad = columns(9)
    bad[name] = bad[name].copy()
    bad[name][6] = value
    with pytest.raises(TextError) as caught:
        Trace(bad, (TextInfo("first", 4), TextInfo("second", 5)))
    assert f"{name} of text 'second', token 3 {fragment}" in one_line(caught)


def test_the_first_and_last_token_of_a_text_are_located() -> None:
    record = trace(4, 1, 3)
    assert [record.locate(row)[1] for row in range(8)] == [0, 1, 2, 3, 0, 0, 1, 2]
    assert [record.locate(row)[0].id for row in (0, 3, 4, 5, 7)] == ["text 0", "text 0", "text 1", "text 2", "text 2"]
    assert len(record) == 8
    assert record.lengths.tolist() == [4, 1, 3]


STRUCTURE: dict[str, tuple[Callable[[], Any], str]] = {
    "no column": (lambda: Trace({}, (TextInfo("a", 1),)), "lacks log_target, log_draft"),
    "one column": (lambda: Trace({"log_target": np.zeros(1)}, (TextInfo("a", 1),)), "lacks log_draft"),
    "length": (lambda: Trace(columns(3), (TextInfo("a", 4),)), "1 texts of 4 tokens in all"),
    "no text": (lambda: Trace(columns(0), ()), "needs at least one text"),
    "empty text": (lambda: Trace(columns(3), (TextInfo("a", 3), TextInfo("b", 0))), "no empty text"),
    "one short column": (
        lambda: Trace(columns(3) | {"kl": np.zeros(2)}, (TextInfo("a", 3),)),
        "columns of other lengths: {'kl': 2}",
    ),
}


@pytest.mark.parametrize("case", sorted(STRUCTURE))
def test_columns_and_texts_must_fit(case: str) -> None:
    make, fragment = STRUCTURE[case]
    with pytest.raises(TraceError) as caught:
        make()
    assert fragment in one_line(caught)


def test_paths_may_be_strings(tmp_path: Path) -> None:
    """Data of the library is written and read under a name as under a path."""
    one = {1: Interval.exact(1.0)}
    kept = (trace(3), Counters(calls=3, survival=(0.5,), k=1), CallLog((Request("a", accepted=(1,)),), k=1))
    for number, each in enumerate((*kept, LatencyTable(one, one | {2: Interval.exact(1.0)}, 10, {}))):
        file = str(tmp_path / str(number))
        each.write(file)
        assert isinstance(type(each).read(file), type(each))


# Two numbers per token


def test_a_trace_from_two_lists() -> None:
    record = Trace.from_log_probabilities([([-1, -2.0], [-0.5, -math.inf]), ((-3.0,), np.array([-0.0]))])
    assert [text.id for text in record.texts] == ["1", "2"]
    assert record.columns["log_target"].tolist() == [-1, -2, -3]
    assert record.columns["log_draft"].tolist() == [-0.5, -math.inf, 0]
    assert record.provenance["source"] == "log-probabilities"
    named = Trace.from_log_probabilities([([-1.0], [-1.0])], ids=["mine"], provenance={"from": "a server"})
    assert named.texts == (TextInfo("mine", 1),)
    assert named.provenance == {"from": "a server"}


FINE = [-1.0, -0.5]
BAD_LISTS: dict[str, tuple[Any, str]] = {
    "words": ([(["a"], ["b"])], "log p of text '1' holds <U1"),
    "numbers as words": ([(FINE, FINE), (FINE, ["-1.0", "-0.5"])], "log q of text '2' holds <U4"),
    "one word": ([("-1.0", FINE)], "log p of text '1' holds <U4"),
    "a table": ([[[-1.0]] * 3], "text '1' has 3 parts"),
    "one number": ([-1.0], "text '1' is -1.0: needs a list"),
    "no list": (-1.0, "texts is -1.0: needs a list"),
    "a text": ("nonsense", "texts is 'nonsense': needs a list"),
    "a mapping": ({"a": FINE}, "needs a list"),
    "ragged": ([([[-1.0], FINE], FINE)], "log p of text '1' does not become an array"),
    "far": ([(FINE, [-1e308, -0.5])], "text '1' has a log-probability -1e+308: must be in -1e+300..0"),
    "far target": ([([-1e308, -0.5], FINE)], "text '1' has a log-probability -1e+308"),
    "masked": ([(np.ma.masked_array(FINE, mask=[0, 1]), FINE)], "log p of text '1' is a masked array"),
    "meta": ([(torch.empty(2, device="meta"), FINE)], "log p of text '1' is a meta tensor"),
    "lengths": ([([-1.0], [-1.0]), ([-1.0, -2.0], [-1.0])], "text '2' has 2 target and 1 draft"),
    "empty": ([([], [])], "text '1' has 0 target and 0 draft"),
    "nested": ([([[-1.0]], [[-1.0]])], "two flat lists"),
    "no text": ([], "there is no text"),
    "impossible": ([([-1.0], [-1.0]), ([-1.0, -math.inf], [-1.0, -1.0])], "log_target of text '2', token 2 is -inf"),
    "probabilities": ([([0.5], [0.5])], "log_target of text '1', token 1 is 0.5"),
    "nan": ([([-1.0], [NAN])], "log_draft of text '1', token 1 is nan"),
}


@pytest.mark.parametrize("case", sorted(BAD_LISTS))
def test_bad_lists_are_named_in_one_line(case: str) -> None:
    texts, fragment = BAD_LISTS[case]
    with pytest.raises(TextError) as caught:
        Trace.from_log_probabilities(texts)
    assert fragment in one_line(caught)


@pytest.mark.parametrize(
    "named", [{"ids": ["a", "b"]}, {"ids": "a"}, {"ids": [1]}, {"ended": [1]}, {"ended": []}, {"provenance": "x"}]
)
def test_bad_names_of_texts(named: dict[str, Any]) -> None:
    with pytest.raises(SpectheoryError):
        Trace.from_log_probabilities([(FINE, FINE)], **named)


def test_log_probabilities_of_every_array() -> None:
    """Half precision is taken as it is; a draft that cannot draw a token has -inf."""
    half = torch.tensor(FINE, dtype=torch.bfloat16, requires_grad=True)
    record = Trace.from_log_probabilities([(half, [-math.inf, -0.5])])
    assert record.columns["log_target"].tolist() == FINE
    assert record.columns["log_draft"].tolist() == [-math.inf, -0.5]


def test_exchanged_models_are_seen_and_right_texts_are_not() -> None:
    """Texts of 1 and of 400 tokens, 200 of each, drawn from p: log q/p says nothing of one (rate 1e-6 each, 4e-4 in
    all), and of each long one exchanged. Texts drawn at temperature 0, with log-probabilities of 0, are no doubt.
    """
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet([0.5] * 8, size=(2, 400))
    for tokens in (1, 400):
        for _ in range(200):
            at = np.arange(tokens), [rng.choice(8, p=row) for row in p[:tokens]]
            text = np.log(p[at]), np.log(q[at])
            assert "draft_ahead" not in Trace.from_log_probabilities([text]).provenance
            exchanged = Trace.from_log_probabilities([text[::-1]])
            assert ("draft_ahead" in exchanged.provenance) == (tokens > 1)
    assert exchanged.provenance["draft_ahead"] == pytest.approx(float((text[0] - text[1]).mean()))
    answer, (said,) = plan(exchanged, k_max=2), doubts(exchanged.provenance)
    assert prediction_report(answer).brief.verdict[0] == said
    assert (
        prediction_report(answer).as_dict()["warnings"] == mismatches(Draft("a", exchanged, ConstantRatio(0))) == [said]
    )
    first = Trace.from_log_probabilities([([0.0] * 400, [-1.0] * 400)])
    assert first.provenance == {"source": "log-probabilities"}


def test_equal_texts_are_of_one_prompt() -> None:
    """Copies of a text narrow no interval; a text of certain tokens may be that of another prompt."""
    one, other = ([-1.0, -0.5], [-1.2, -0.7]), ([-1.0, -0.5], [-1.2, -0.8])
    trace = Trace.from_log_probabilities([one, other, one, one], ids=["a", "b", "c", "d"])
    assert [text.prompt for text in trace.texts] == ["", "", "a", "a"]
    assert trace.provenance["repeated_texts"] == 2
    alone, copied = (plan(Trace.from_log_probabilities([one] * n), k_max=2) for n in (1, 9))
    assert alone.best.tokens_per_call == copied.best.tokens_per_call
    assert "Texts that equal an earlier one: 8" in " ".join(prediction_report(copied).brief.notes)
    certain = Trace.from_log_probabilities([([0.0], [0.0])] * 2)
    assert [text.prompt for text in certain.texts] == ["", ""]
