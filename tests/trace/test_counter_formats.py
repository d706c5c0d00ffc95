"""Every format of totals from its capture or a sample of its documented form; bad input is one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from spectheory.errors import SpectheoryError
from spectheory.trace.importers import formats
from spectheory.trace.importers.rounded import calls_of, longest_of
from spectheory.trace.reading import format_of
from tests.made_up import each
from tests.trace.counter_cases import HELD, SAMPLES, counters_of, sample


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
    assert json.loads(TIMES)["draft_n"] == 604
