"""Totals: every format, under any names, rounded or in pieces; what contradicts itself; sums, differences, files."""

from __future__ import annotations

import json
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory.errors import SpectheoryError, TextError
from spectheory.trace import Trace, read_files
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.counters import COUNTERS_FILE, Counters, pooled
from spectheory.trace.importers import formats
from spectheory.trace.importers.rounded import calls_of, longest_of
from spectheory.trace.reading import format_of
from tests.made_up import all_refused, each, refused
from tests.trace.counter_cases import HELD, SAMPLES, counters_of, sample

FORMATS_PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
ONE = Counters(calls=100, drafted=200, accepted=90, survival=(0.6, 0.3), k=2, tokens=195, seconds=2.0, engine="e")


def scrape(calls: int, *by_position: int, started: float = 5.0) -> Counters:
    return Counters(
        calls=calls,
        drafted=2 * calls,
        accepted=sum(by_position),
        survival=tuple(count / calls for count in by_position),
        k=2,
        cumulative=True,
        provenance={"started": started},
    )


test_contradictions_are_refused = all_refused(
    {
        "negative": (lambda: Counters(calls=-1), TextError, "calls is -1"),
        "more accepted": (lambda: Counters(drafted=3, accepted=4), TextError, "accepted <= drafted"),
        "k": (lambda: Counters(calls=3, drafted=7, k=2), TextError, "at most k = 2 in a call"),
        "percentage": (lambda: Counters(survival=(61.5,)), TextError, "not percentages"),
        "negative share": (lambda: Counters(survival=(-0.1,)), TextError, "shares are in 0..1;"),
        "rising": (lambda: Counters(survival=(0.3, 0.4)), TextError, "falls with i"),
        "sum": (lambda: replace(ONE, accepted=91), TextError, "91 tokens accepted, by position 90"),
        "sum beyond rounding": (lambda: replace(ONE, accepted=93, rounding=0.01), TextError, "must agree within 2"),
        "another k": (lambda: Counters.join([ONE, replace(ONE, k=3)]), TextError, "differ in k: 2 and 3"),
        "another engine": (lambda: Counters.join([ONE, replace(ONE, engine="f")]), TextError, "differ in engine"),
        "means": (
            lambda: Counters.join([Counters(mean_length=2.0), Counters(mean_length=3.0)]),
            TextError,
            "means of different logs have no weights",
        ),
        "three scrapes": (lambda: Counters.join([scrape(9, 5, 2)] * 3), TextError, "before and after"),
        "went back": (
            lambda: Counters.join([scrape(20, 12, 6), scrape(10, 6, 3)]),
            TextError,
            "calls went from 20 to 10 between two scrapes",
        ),
        "a position went back": (
            lambda: Counters.join([scrape(20, 12, 6), scrape(30, 20, 5)]),
            TextError,
            "count of a position went back",
        ),
        "restarted, and passed": (
            lambda: Counters.join([scrape(10, 6, 3), scrape(20, 12, 6, started=8.0)]),
            TextError,
            "created at another time",
        ),
    }
)


def test_rounded_shares_may_differ_from_totals_by_their_rounding() -> None:
    assert replace(ONE, accepted=91, rounding=0.01).length == pytest.approx(1.91)


def test_logs_add_up() -> None:
    two = Counters.join([ONE, replace(ONE, calls=300, drafted=600, accepted=390, survival=(0.8, 0.5), tokens=None)])
    assert (two.calls, two.drafted, two.accepted, two.tokens, two.seconds) == (400, 800, 480, None, 4.0)
    assert two.survival == pytest.approx((0.75, 0.45))
    assert Counters.join([ONE]) is ONE


def test_of_two_scrapes_the_difference_is_taken() -> None:
    counters = Counters.join([scrape(20, 12, 6), scrape(50, 30, 12)])
    assert (counters.calls, counters.drafted, counters.accepted, counters.cumulative) == (30, 60, 24, False)
    assert counters.survival == pytest.approx((18 / 30, 6 / 30))
    refused(lambda: Counters.join([scrape(20, 12, 6)] * 2), TextError, "no calls were counted between the two")
    fresh = replace(scrape(20, 12, 6), calls=0, drafted=0, accepted=0, survival=(), k=None)
    counters = Counters.join([fresh, scrape(20, 12, 6)])
    assert (counters.calls, counters.k, counters.survival) == (20, 2, scrape(20, 12, 6).survival), (
        "a server without a call yet"
    )


@each(
    "change",
    [
        {"survival": [10**400]},
        {"survival": ["a"]},
        {"rounding": 10**400},
        {"cumulative": None},
        {"engine": 1.0},
        {"provenance": "a"},
        {"remarks": [1]},
        {"calls": "3"},
        {"k": 0},
        {"mean_length": "2"},
    ],
)
def test_counters_of_other_types_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    content = {"spectheory": "spectheory counters", "schema": 1, **change}
    (tmp_path / COUNTERS_FILE).write_text(json.dumps(content))
    refused(lambda: Counters.read(tmp_path / COUNTERS_FILE), TextError, "holds no counters")


def test_several_files_are_of_one_kind(tmp_path: Path) -> None:
    log = SAMPLES / "vllm_specdecoding_log_line.txt"
    assert read_files([log, log]).calls == 2 * 188  # type: ignore[union-attr]
    request = Request("r", accepted=(2, 0), drafted=(2, 2))
    CallLog((request,), k=2).write(tmp_path / "calls.jsonl")
    pooled_log = read_files([tmp_path / "calls.jsonl", tmp_path / "calls.jsonl"])
    assert isinstance(pooled_log, CallLog)
    assert len(pooled_log) == 2
    Trace.from_log_probabilities([([-1.0], [-2.0])]).write(tmp_path / "trace.parquet")
    kinds: dict[str, Any] = {
        "2 files hold totals and calls": [log, tmp_path / "calls.jsonl"],
        "2 files hold a trace": [tmp_path / "trace.parquet"] * 2,
        "differ in cumulative": [log, SAMPLES / "vllm_metrics.txt"],
    }
    for message, paths in kinds.items():
        refused(lambda paths=paths: read_files(paths), SpectheoryError, message)


def test_calls_of_requests_are_pooled() -> None:
    log = CallLog(
        (
            Request("a", output=(1, 2, 3, 4), accepted=(2, 0), drafted=(2, 1)),
            Request("b", tokens=5, by_drafted={2: (1, 0, 1)}),
        ),
        engine="e",
        counts_past_end=True,
    )
    counters = pooled(log)
    assert (counters.calls, counters.drafted, counters.accepted, counters.k, counters.tokens) == (4, 7, 4, 2, 9)
    assert counters.survival == (0.5, 0.5)
    assert counters.hazards == (0.5, 1.0), "the call of one draft says nothing of the second"
    assert "past the end" in counters.remarks[0]
    totals = CallLog((Request("a", calls=3, total_accepted=2),), k=2)
    assert (pooled(totals).length, pooled(totals).survival) == (1 + 2 / 3, ())


def text(name: str) -> str:
    return (SAMPLES / name).read_text()


@each("name, counts", HELD.items())
def test_samples_hold_their_counts(name: str, counts: dict[str, Any]) -> None:
    counters = sample(name)
    shown = {field: getattr(counters, field) for field in counts if field not in ("format", "by_position")}
    assert shown == {field: counts[field] for field in shown}
    if "by_position" in counts:
        assert [share * counters.calls for share in counters.survival] == pytest.approx(counts["by_position"], abs=1e-9)
        assert counters.rounding == 0


def test_every_sample_is_recognised_by_its_content() -> None:
    """Responses of llama.cpp with their texts may be read as calls of requests too."""
    names = {
        name: counts["format"] for name, counts in HELD.items() if not name.endswith(("completions.json", "probs.json"))
    }
    assert {name: format_of(SAMPLES / name).name for name in names} == names
    assert {path.name for path in SAMPLES.iterdir()} >= set(HELD)


def test_a_log_and_a_scrape_of_one_run_agree() -> None:
    """The captures of vLLM's log and of its counters are of one run: rounded intervals give back the exact counts."""
    log, scrape = sample("vllm_specdecoding_log_line.txt"), sample("vllm_metrics.txt")
    assert (log.calls, log.drafted, log.accepted) == (scrape.calls, scrape.drafted, scrape.accepted)
    assert log.survival == pytest.approx(scrape.survival, abs=1e-12)


@each(
    "name, words",
    [
        ("vllm_metrics.txt", "4 more than the 335 output tokens: at least so many lie past the end"),
        ("vllm_offline.txt", "34 more than the 16990 output tokens"),
        ("llama_server_metrics.txt", "Calls drafted 2.97 tokens on average, 3 at most"),
        ("llama_server_metrics.txt", "122 of 8895 output tokens came from no call counted here"),
        ("llama_server_metrics.txt", "does not count calls without drafts"),
        ("llama_timings.json", "calls without drafts are among them"),
        ("llama_older.txt", "no number of calls"),
        ("sglang_sweep.jsonl", "means over batch sizes 1, 8, which differ by up to 0.012 at one k. 2 runs of trees"),
        ("ollama_log.txt", "rounds that drafted nothing count as calls"),
        ("lmdeploy_log.txt", "past the end of a text"),
        ("sglang_metrics.txt", "Gauges of the last interval: no counts, no survival"),
        ("sglang_log.txt", "They count the prompt's token"),
        ("trtllm_iterations.jsonl", "unless rejection sampling is switched on"),
    ],
)
def test_what_is_biased_is_said(name: str, words: str) -> None:
    counters = sample(name)
    assert words in " ".join([*counters.remarks, *counters.biases])


def test_several_engines_of_a_server_are_summed(tmp_path: Path) -> None:
    lines = [line for line in text("vllm_metrics.txt").splitlines() if line.startswith("vllm:spec_decode")]
    both = [*lines, *(line.replace('engine="0"', 'engine="1"') for line in lines)]
    (tmp_path / "two").write_text("\n".join(both) + "\n")
    counters, one = counters_of(tmp_path / "two"), sample("vllm_metrics.txt")
    assert (counters.calls, counters.accepted) == (2 * 188, 2 * 151)
    assert counters.survival == one.survival


LINE = text("vllm_log_line.txt")
SCRAPE = text("vllm_metrics.txt")
TIMES = text("llama_timings.json")
ITERATION = text("trtllm_iterations.jsonl")
CSV = text("speculators.csv")
LENGTHS, SWEEP = text("acceptance_lengths.yaml"), text("sglang_sweep.jsonl")
TABLE, BENCH = text("llama_spec_bench.md"), text("llama_spec_bench.jsonl")
LMDEPLOY, OLLAMA = text("lmdeploy_log.txt"), text("ollama_log.txt")
BAD = {
    "cut vLLM line": ("vllm-log", LINE[:180] + "\n", "line 1 has no accepted: needs a whole line"),
    "no vLLM line": ("vllm-log", "INFO started\n", "has no 'SpecDecoding metrics:'"),
    "percentages in vLLM's line": ("vllm-log", LINE.replace("0.906, 0.497, 0.203", "90.6, 49.7, 20.3"), "not percent"),
    "other counts in vLLM's line": (
        "vllm-log",
        LINE.replace("length: 2.61", "length: 1.02"),
        "fits no number of calls",
    ),
    "another k in one log": ("vllm-log", LINE + text("vllm_specdecoding_log_line.txt"), "differ in k: 3 and 7"),
    "rising shares": ("vllm-log", LINE.replace("0.497", "0.950"), "rise with the position"),
    "shares of other counts": ("vllm-log", LINE.replace("0.203", "0.103"), "accepted, by position"),
    "a scrape without speculation": ("prometheus", "vllm:generation_tokens_total 3\n", "has no vllm:spec_decode_num"),
    "a scrape that was cut": (
        "prometheus",
        SCRAPE[: SCRAPE.index('engine="0",model_name="target",position="4"')],
        "is no whole scrape",
    ),
    "positions missing": (
        "prometheus",
        re.sub(r'.*per_pos_total.*position="0".*\n', "", SCRAPE),
        "counts at positions 1, 2, 3, 4, 5, 6: needs all from 0 on",
    ),
    "the last position missing": (
        "prometheus",
        re.sub(r'.*per_pos_total.*position="6".*\n', "", SCRAPE),
        "1316 tokens drafted in 188 calls: at most k = 6",
    ),
    "two models": (
        "prometheus",
        SCRAPE + 'vllm:spec_decode_num_drafts_total{engine="0",model_name="other"} 3\n',
        "counts other, target: one model",
    ),
    "gauges of two ranks": (
        "prometheus",
        text("sglang_metrics.txt") + text("sglang_metrics.txt").replace("1.55", "1.60").replace('"0"', '"1"'),
        "has 2 values of spec_accept_length",
    ),
    "no number": ("prometheus", SCRAPE.replace(" 188.0", " NaN"), "is nan: must be finite"),
    "no number in a table": ("speculators", CSV.replace("2.2,", "Infinity,"), "is no whole row"),
    "two points": ("sglang-log", text("sglang_log.txt").replace("0.30", "0..3"), "has no rate"),
    "two points in vLLM's line": ("vllm-log", LINE.replace("0.497", "0..4"), "has no shares"),
    "two runs printed": ("vllm-offline", text("vllm_offline.txt") * 2, "has num_drafts 2 times"),
    "a record cut": ("tensorrt-llm-stats", ITERATION + ITERATION[:70], "line 2 is not JSON"),
    "a record without counts": ("tensorrt-llm-stats", '{"specDecodingStats": {}}', "no whole specDecodingStats"),
    "an iteration twice": ("tensorrt-llm-stats", ITERATION * 2, "iteration 12 twice"),
    "another length": ("tensorrt-llm-stats", ITERATION.replace("2.5,", "1.5,"), "says acceptanceLength 1.5"),
    "no drafts": ("tensorrt-llm-stats", '{"iter": 1}', "no iteration with drafts"),
    "timings as a list of numbers": ("llama.cpp-timings", "[1, 2]", "is no object"),
    "timings in text": ("llama.cpp-timings", TIMES.replace("604", '"604"'), "needs whole numbers"),
    "more accepted than drafted": ("llama.cpp-timings", TIMES.replace("604", "504"), "accepted <= drafted"),
    "a plain response": ("llama.cpp-timings", '{"predicted_n": 3}', "has no draft_n"),
    "a cut llama line": ("llama.cpp-log", "draft acceptance = 0.66237 (  257 acc", "line 1 is cut"),
    "a percentage": ("llama.cpp-log", "draft acceptance = 57.576 ( 171 accepted / 297 generated)", "a fraction"),
    "two drafters": (
        "llama.cpp-log",
        text("llama_statistics.txt") + text("llama_statistics.txt").replace("draft-mtp", "ngram"),
        "statistics of draft-mtp, ngram",
    ),
    "SGLang in percent": ("sglang-log", text("sglang_log.txt").replace("0.30", "30.0"), "no percentage"),
    "a cut SGLang line": ("sglang-log", text("sglang_log.txt")[:80], "has no rate"),
    "a table without a column": ("speculators", CSV.replace("num_drafts", "drafts"), "is no whole row"),
    "a table cut": ("speculators", CSV[:-8], "rise with|by position|no whole row"),
    "a share that is no number": ("speculators", CSV.replace("0.7,", "nan,"), "is no whole row"),
    "a position in other digits": (
        "prometheus",
        SCRAPE.replace('position="6"', 'position="\u00b2"'),
        "counts at position",
    ),
    "a huge number of drafts": (
        "tensorrt-llm-stats",
        ITERATION.replace('"numDraftTokens": 12', f'"numDraftTokens": {10**400}'),
        "no whole specDecodingStats",
    ),
    "a huge time": ("tensorrt-llm-stats", ITERATION.replace("9.1", "1" + "0" * 400), "no whole specDecodingStats"),
    "more drafts than a call has": (
        "vllm-offline",
        "num_drafts: 3\nnum_draft_tokens: 33712\nnum_accepted_tokens: 9\n",
        "33712 tokens drafted in 3 calls",
    ),
    "a table in percent": ("speculators", CSV.replace("0.7,0.35,0.15", "70,35,15"), "not percentages"),
    "another length in a table": ("speculators", CSV.replace(",2.80", ",3.80"), "length of 3.80333, its counts 2.8"),
    "bytes": ("vllm-log", "\ud800", "not UTF-8"),
    "another sum, stated": (
        "acceptance",
        text("acceptance.json").replace("3.2", "3.3"),
        "3.303524 tokens per call",
    ),
    "another k, stated": (
        "acceptance",
        text("acceptance.json").replace("4,", "5,", 1),
        "a share for each",
    ),
    "stated acceptance in percent": ("acceptance", text("acceptance.json").replace("0.75", "75."), "not percentages"),
    "stated acceptance without a kind": ("acceptance", '{"k": 1, "survival": [0.5]}', "not of the format acceptance"),
    "two curves": (
        "lengths-by-k",
        LENGTHS + "  thinking_on:\n    1: 1.5\n",
        "2 curves .*built-in/temperature_1.0, built-in/thinking_on.: one is read",
    ),
    "no curve of a mode": ("lengths-by-k-off", LENGTHS, "has 0 curves of tokens per call by k .none."),
    "a length twice": ("lengths-by-k", LENGTHS + "    8: 3.9\n", "has k = 8 twice"),
    "a length above k + 1": ("lengths-by-k", LENGTHS.replace("1.77", "2.77"), "2.77 tokens per call with k = 1: 1 to"),
    "a line of a megabyte": ("lengths-by-k", LENGTHS + " x" + 10**6 * " ", "line 14 is 'x'"),
    "a length that is no number": ("lengths-by-k", LENGTHS.replace("2.35", "nan"), "line 7 is '2: nan'"),
    "no YAML of names": ("lengths-by-k", LENGTHS + "- 3\n", "line 14 is '- 3'"),
    "a sweep of trees": ("sglang-sweep", SWEEP.replace('"topk": 1', '"topk": 2'), "has no run of a chain"),
    "a sweep without topk": ("sglang-sweep", SWEEP.replace("topk", "top"), "not of the format sglang-sweep"),
    "a sweep of texts": ("sglang-sweep", SWEEP.replace('"steps": 3', '"steps": "3"'), "needs whole numbers batch_size"),
    "a length below 1": ("sglang-sweep", SWEEP.replace("2.79,", "0.79,"), "acc_length 0.79"),
    "a sweep above its chain": ("sglang-sweep", SWEEP.replace("1.75,", "2.75,"), "tokens per call with k = 1: 1 to k"),
    "a table without drafts": ("llama-spec-bench", TABLE[: TABLE.index("| code")], "has no run with drafts"),
    "two stages": ("llama-spec-bench", TABLE.replace("mtp", "ngram", 1), "has drafts of mtp, ngram"),
    "a row of other counts": ("llama-spec-bench", TABLE.replace("282/390", "182/390"), "a.len 3.17, its counts 2.4"),
    "a row cut": ("llama-spec-bench", TABLE.replace("282/390", "282"), "line 4 has no whole rounds, accepted"),
    "positions of other counts": ("llama-spec-bench", BENCH.replace("[117,", "[107,"), "accepted, by position"),
    "a count that is a text": ("llama-spec-bench", BENCH.replace('"drafts":130', '"drafts":"1"'), "no whole drafts"),
    "a line of JSON cut": ("llama-spec-bench", BENCH[:-30], "line 4 is not JSON"),
    "LMDeploy's line cut": ("vllm-log", LMDEPLOY[: LMDEPLOY.index("Per-pos")], "line 1 has no shares"),
    "LMDeploy's line cut in its shares": ("vllm-log", LMDEPLOY[: LMDEPLOY.index(", 0.386")], "at most k = 2 in a call"),
    "Ollama's line cut": ("ollama-log", OLLAMA[: OLLAMA.index("max_draft")], "line 1 has no max_draft"),
    "no drafts in Ollama": ("ollama-log", OLLAMA.replace("drafted=310", "drafted=0").partition("\n")[0], "no request"),
    "more accepted in Ollama": ("ollama-log", OLLAMA.replace("accepted=221", "accepted=921"), "accepted <= drafted"),
}


@each("format, content, message", BAD.values())
def test_bad_input_is_one_line(format: str, content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(content, errors="surrogatepass")
    with pytest.raises(SpectheoryError, match=message) as caught:
        counters_of(tmp_path / "log", format)
    assert "\n" not in str(caught.value)


def test_a_scrape_cut_in_a_long_line_is_one_short_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(SCRAPE + "# TYPE x " + "y" * 3000)
    with pytest.raises(SpectheoryError, match="is no whole scrape") as caught:
        counters_of(tmp_path / "log", "prometheus")
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


def test_a_sweep_counts_a_subset_once(tmp_path: Path) -> None:
    """Speculators' table of a sweep repeats the counts of a subset in the row of every load."""
    (tmp_path / "sweep.csv").write_text(CSV + CSV.partition("\n")[2])
    assert counters_of(tmp_path / "sweep.csv") == sample("speculators.csv")


def test_times_that_are_none_are_left_out(tmp_path: Path) -> None:
    given = json.loads(TIMES)
    for value in (10**400, True, "1"):
        (tmp_path / "log").write_text(json.dumps({**given, "predicted_ms": value}))
        assert counters_of(tmp_path / "log").seconds is None


def test_calls_follow_from_rounded_means() -> None:
    """Every count whose rounded mean is printed is among those that the print allows."""
    for calls in (1, 7, 36, 172, 900):
        for accepted in {0, 1, calls // 2, calls, 3 * calls}:
            length = float(f"{1 + accepted / calls:.2f}")
            count, certain = calls_of(accepted, length, 2, 3 * calls, 3)
            assert (count, certain) == (calls, True), "drafted / k is preferred"
            count, certain = calls_of(accepted, length, 2, 3 * calls - 1, 3)
            assert count == calls or not certain
    assert calls_of(0, 1.0, 2, 10, 3) == (None, False)


@each(
    "length, rate, longest",
    [
        (1.9, 0.3, (3, False)),
        (2.5, 0.5, (None, False)),
        (2.4, 0.6, (3, True)),
        (1.0, 0.0, (None, False)),
        (3.0, 1.0, (2, False)),
        (1e22, 0.3, (None, False)),
    ],
)
def test_k_follows_from_length_and_rate(length: float, rate: float, longest: tuple[int | None, bool]) -> None:
    """(length - 1) / k, or length / (k + 1); where both or neither fit, k stays unknown."""
    assert longest_of(length, rate, 2) == longest


def test_formats_say_what_they_give_and_lack() -> None:
    for name, each_format in formats().items():
        assert re.fullmatch(r"[a-z0-9.]+(-[a-z0-9.]+)*", name), "as --format takes it"
        assert each_format.gives, name
        row = f"| `{name}` | {each_format.title} | {each_format.gives} | {each_format.lacks or '-'} |\n"
        assert row in FORMATS_PAGE.read_text(encoding="utf-8"), row
    assert json.loads(TIMES)["draft_n"] == 604


def vllm_line(accepted: list[int], drafted: list[int], k: int) -> str:
    """What vLLM logs of calls: means and shares rounded."""
    n, total = len(accepted), sum(accepted)
    shares = ", ".join(f"{sum(a > i for a in accepted) / n:.3f}" for i in range(k))
    return (
        f"INFO SpecDecoding metrics: Mean acceptance length: {1 + total / n:.2f}, Accepted throughput: 1.00 tokens/s, "
        f"Drafted throughput: 1.00 tokens/s, Accepted: {total} tokens, Drafted: {sum(drafted)} tokens, "
        f"Per-position acceptance rate: {shares}, Avg Draft acceptance rate: {100 * total / sum(drafted):.1f}%\n"
    )


def made_calls(kind: str, calls: int, k: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Accepted and drafted tokens of calls of a draft that always drafts k, or as many as it can."""
    full = np.full(calls, k)
    varied = {"fixed": full, "n-gram": rng.integers(1, k + 1, calls), "cut": np.minimum(k, rng.geometric(0.2, calls))}
    drafted = varied["n-gram"] if kind == "suffix" else varied[kind]
    accepted = np.minimum(drafted, rng.geometric(0.3 if kind == "suffix" else 0.5, calls) - 1)
    return accepted.tolist(), drafted.tolist()


@each("kind", ["fixed", "n-gram", "cut", "suffix"])
def test_a_line_of_any_draft_holds_its_number_of_calls(kind: str, tmp_path: Path) -> None:
    """300 lines of 5 to 2,000 calls: none is refused, and the interval of calls holds the true one.

    Control: a line whose mean length is off by a half is refused.
    """
    rng = np.random.default_rng(11)
    off = []
    for _ in range(75):
        calls, k = int(rng.integers(5, 2000)), int(rng.integers(2, 9))
        accepted, drafted = made_calls(kind, calls, k, rng)
        line = vllm_line(accepted, drafted, k)
        (tmp_path / "log").write_text(line)
        counters = counters_of(tmp_path / "log")
        said = next((each for each in counters.remarks if "between" in each), "")
        least, most = map(int, re.findall(r"\d+", said)) if said else (counters.calls, counters.calls)
        assert least is not None
        assert least <= calls <= most or (not said and sum(drafted) == k * (counters.calls or 0))
        off.append(abs((counters.calls or 0) / calls - 1))
    assert max(off) < 0.1
    assert np.mean(off) < 0.01
    mean = 1 + sum(accepted) / len(accepted)
    (tmp_path / "log").write_text(line.replace(f"length: {mean:.2f}", f"length: {mean + 0.5:.2f}"))
    with pytest.raises(TextError, match=r"fits? no number of calls|by position|at most k"):
        counters_of(tmp_path / "log")


def test_lines_without_accepted_tokens_are_joined_with_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    parts = [made_calls("n-gram", n, 4, rng) for n in (40, 700)] + [([0] * 9, [1, 2, 3, 4, 4, 3, 2, 1, 2])]
    (tmp_path / "log").write_text("".join(vllm_line(*part, 4) for part in parts))
    counters = counters_of(tmp_path / "log")
    assert counters.accepted == sum(sum(accepted) for accepted, _ in parts)
    assert counters.calls == pytest.approx(749, abs=3)


def written(tmp_path: Path, content: str) -> Any:
    (tmp_path / "log").write_text(content)
    return counters_of(tmp_path / "log")


def test_vllms_counters_under_other_names(tmp_path: Path) -> None:
    """LMDeploy has a prefix of its own, and Ray renames what it serves."""
    of_vllm, scrape = sample("vllm_metrics.txt"), text("vllm_metrics.txt")
    for engine, changed in (
        ("lmdeploy", scrape.replace("vllm:", "lmdeploy:")),
        ("vllm", scrape.replace("vllm:", "ray_vllm_")),
        ("vllm", scrape.replace("vllm:", "ray_vllm:")),
    ):
        counters = written(tmp_path, changed)
        assert (counters.engine, counters.calls, counters.accepted, counters.survival) == (
            engine,
            of_vllm.calls,
            of_vllm.accepted,
            of_vllm.survival,
        )


SGLANG = """# TYPE sglang:spec_verify_calls_total counter
sglang:spec_verify_calls_total{{model_name="m"}} {calls}
sglang:generation_tokens_total{{model_name="m"}} {tokens}
sglang:num_requests_total{{model_name="m"}} {requests}
sglang:spec_num_steps{{model_name="m"}} 3.0
sglang:spec_accept_length{{model_name="m"}} 9.99
"""


def test_two_scrapes_of_sglang_are_a_difference(tmp_path: Path) -> None:
    """Calls and output tokens are counters from 0.5.23 on; the gauge of the last interval is left alone."""
    for name, counts in {"before": (100, 320, 20), "after": (300, 920, 50)}.items():
        (tmp_path / name).write_text(SGLANG.format(**dict(zip(("calls", "tokens", "requests"), counts, strict=True))))
    counters = read_files([tmp_path / "before", tmp_path / "after"])
    assert isinstance(counters, Counters)
    assert (counters.calls, counters.tokens, counters.accepted, counters.k) == (200, 600, 600 - 200 - 30, 3)
    assert counters.length == pytest.approx(1 + 370 / 200)


def test_stats_of_lm_studio(tmp_path: Path) -> None:
    """Of its server and of its SDK; drafts that were not verified are not counted as drafted."""
    stats = {"total_draft_tokens_count": 40, "accepted_draft_tokens_count": 22, "ignored_draft_tokens_count": 4}
    server = {"stats": stats, "usage": {"completion_tokens": 50}}
    sdk = {"stats": {"predictedTokensCount": 30, "totalDraftTokensCount": 20, "acceptedDraftTokensCount": 10}}
    counters = written(tmp_path, f"{json.dumps(server)}\n{json.dumps(sdk)}\n")
    assert (counters.engine, counters.drafted, counters.accepted) == ("lm-studio", 56, 32)
    assert counters.calls == (50 - 22 - 1) + (30 - 10 - 1)


def test_results_of_sglangs_benchmark(tmp_path: Path) -> None:
    runs = [{"accept_length": length, "request_throughput": 1.0, "total_output_tokens": 900} for length in (2.5, 3.25)]
    counters = written(tmp_path, "".join(json.dumps(run) + "\n" for run in runs))
    assert (counters.engine, counters.mean_length, counters.tokens) == ("sglang", 3.25, 900)
    assert "1 earlier runs of the file are left out." in counters.remarks


def test_streamed_answers_are_put_together(tmp_path: Path) -> None:
    """VLLM's events of two requests: ids of all pieces, and the counts of the last one."""
    record = {"num_spec_steps": 2, "num_accepted_draft_tokens": 2, "num_draft_tokens": 6, "per_step_accepted": [2, 0]}
    lines = []
    for name in ("a", "b"):
        first = {"id": name, "choices": [{"token_ids": [5, 6], "prompt_token_ids": [1, 2], "finish_reason": None}]}
        last = {"id": name, "choices": [{"token_ids": [7, 8], "finish_reason": "stop"}]}
        lines += [first, {**last, "metrics": {"speculative_decoding": record}}]
    events = "".join(f"data: {json.dumps(each)}\n\n" for each in lines) + "data: [DONE]\n"
    for begins in ("", ": ping\n\n", "event: message\n", "id: 1\n"):
        (tmp_path / "log").write_text(begins + events)
        log = read_files([tmp_path / "log"])
        assert isinstance(log, CallLog)
        assert [(r.id, r.prompt, r.output, r.accepted, r.ended) for r in log.requests] == [
            (name, (1, 2), (5, 6, 7, 8), (2, 0), True) for name in ("a", "b")
        ]


def test_a_line_that_leaves_millions_of_calls_open_is_read_in_time(tmp_path: Path) -> None:
    """Nothing accepted of ten million drafts: one by one these were 14 GB. The most calls that fit are among those."""
    shares = ", ".join(["0.000"] * 60)
    line = text("vllm_log_line.txt").split("\n")[0].partition("SpecDecoding")[0] + (
        "SpecDecoding metrics: Mean acceptance length: 1.00, Accepted: 0 tokens, Drafted: 9999960 tokens, "
        f"Per-position acceptance rate: {shares}, Avg Draft acceptance rate: 0.0%\n"
    )
    tracemalloc.start()
    counters = written(tmp_path, line)
    assert tracemalloc.get_traced_memory()[1] < 5e8
    tracemalloc.stop()
    assert (counters.calls, counters.accepted, counters.length) == (166666, 0, 1.0)


def test_a_table_of_llama_spec_bench_holds_what_its_json_counts() -> None:
    """Shares of a table are of calls that drafted the position: off by its rounding and by the drafts that lack."""
    table, lines = sample("llama_spec_bench.md"), sample("llama_spec_bench.jsonl")
    off = np.abs(np.subtract(table.survival, lines.survival))
    assert 0 < off.max() <= table.rounding < 0.01
    assert lines.rounding == 0


def test_a_table_whose_positions_are_cut_has_totals_alone(tmp_path: Path) -> None:
    counters = written(tmp_path, TABLE.replace("90.0% 71.5% 55.4%", "90.0% 71.5% 55.4% 40.1% 2..."))
    assert (counters.calls, counters.accepted, counters.survival) == (515, 921, ())
    assert "JSON lines have all" in " ".join(counters.remarks)


def test_detailed_lines_of_llama_spec_bench(tmp_path: Path) -> None:
    stage = {"type": "mtp", "num_drafts": 4, "draft_tokens": 8, "accepted_tokens": 3, "accepted_by_position": [2, 1]}
    attempt = {"row_type": "attempt", "speculative": {"num_drafts": 4, "stages": [stage]}}
    counters = written(tmp_path, f"{json.dumps(attempt)}\n{json.dumps({**attempt, 'row_type': 'summary'})}\n")
    assert (counters.calls, counters.drafted, counters.accepted, counters.survival) == (4, 8, 3, (0.5, 0.25))


@each("mode, longest", [("on", (2, 2.25)), ("off", (3, 2.5))])
def test_curves_of_a_file_are_told_by_their_mode(mode: str, longest: tuple[int, float], tmp_path: Path) -> None:
    """As InferenceX publishes them; names and metadata beside the curves are left alone."""
    curves = "thinking_on: # k: length\n    1: 1.75\n    2: 2.25\n  thinking_off:\n    3: 2.50\n    1: 1.9\n"
    (tmp_path / "log").write_text(f"# run: 7\n_metadata:\n  draft-model: org/name\n'model-1.5':\n  {curves}")
    counters = counters_of(tmp_path / "log", f"lengths-by-k-{mode}")
    assert (counters.k, counters.mean_length) == counters.lengths[-1] == longest
    assert counters.provenance == {"curve": f"model-1.5/thinking_{mode}"}
    assert format_of(tmp_path / "log").name == "lengths-by-k"


def test_calls_of_mlx_lm_end_with_the_targets_tokens(tmp_path: Path) -> None:
    """A text may end with a token of the draft: that call has none of its own."""
    log = read_files([SAMPLES / "mlx_lm.jsonl"])
    assert isinstance(log, CallLog)
    assert [each.accepted for each in log.requests] == [(2, 0, 3, 1, 2), (1, 3, 3, 0)]
    assert [(len(each.output), each.ended) for each in log.requests] == [(12, False), (11, True)]
    assert not log.prefill_emits_token
    lines = text("mlx_lm.jsonl")
    for message, content in {
        "ends within a request (10 tokens": lines[: lines.rindex("{")] + "\n",
        "token 'a' and from_draft False": lines.replace('"token": 114', '"token": "a"'),
        "has no token of a draft": lines.replace("true", "false"),
    }.items():
        (tmp_path / "log").write_text(content)
        refused(lambda: read_files([tmp_path / "log"]), TextError, message)


def test_means_at_several_k_are_written_and_not_joined(tmp_path: Path) -> None:
    counters = sample("acceptance_lengths.yaml")
    counters.write(tmp_path / COUNTERS_FILE)
    assert Counters.read(tmp_path / COUNTERS_FILE) == counters
    other = replace(counters, lengths=counters.lengths[1:])
    refused(lambda: Counters.join([counters, other]), TextError, "means of different logs have no weights")
