"""``spectheory plan --bench`` and ``--export``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spectheory.cli import main
from spectheory.deployment.exports import EXPORTS
from spectheory.prediction.at_starts import survival_at_starts
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from spectheory.trace.samples import SAMPLES
from spectheory.verification import TokenVerification
from tests.cli.plan_cases import CONFIG, measured
from tests.commands import refused
from tests.made_up import each
from tests.toy_server import affine, sweep

LAW = affine(8e-3, 2e-4, 2e-7, 4e-4, 6e-4, 2.5e-4, 2e-8)

CAPTURED = Path(__file__).parents[2] / "benchmarks" / "results" / "bench_serve"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sweep(tmp_path_factory.mktemp("bench"), LAW, (0, 1, 3), survival=(0.8, 0.6, 0.4), output=33)


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: object) -> str:
        assert main(["plan", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    return run


def test_a_server_is_planned_from_its_runs_alone(bench: Path, tmp_path: Path, ask: Callable[..., str]) -> None:
    words = " ".join(ask("--bench", bench, "--all").split())
    assert "It pays at 6 of 6 settings (interval above 1).\n" in ask("--bench", bench)
    for piece in ("Speculate with k =", "Best k and its speed-up", "Time of a step", "k3_c16_in1000", "counted by the"):
        assert piece in words
    content = json.loads(ask("--bench", bench, "--json", "--out", tmp_path))
    assert {(c["batch"], c["context"]) for c in content["choices"]} == {
        (b, c) for b in (1, 4, 16) for c in (116.5, 1016.5)
    }
    assert content["choices"][0]["speedup"]["kind"] == "statistical"
    assert len(content["runs"]) == len(content["fit"]["left_out"]) == 18
    assert json.loads((tmp_path / "plan.json").read_text()) == content


def test_a_target_for_first_tokens_is_that_of_the_runs(ask: Callable[..., str]) -> None:
    quiet = CAPTURED.with_name("bench_serve_quiet")
    lines = ask("--bench", quiet, "--ttft", 300).splitlines()
    assert any("ms to the first" in line for line in lines[:4])
    assert all(point["ttft"] <= 300 for point in json.loads(ask("--bench", quiet, "--ttft", 300, "--json"))["targets"])


def test_a_target_out_of_reach_comes_first(bench: Path, ask: Callable[..., str]) -> None:
    said = ask("--bench", bench, "--tpot", 0.001)
    assert said.startswith("Out of reach: 0.001 ms per token")
    assert "Best k and its speed-up" in said, "in place of a table without rows"
    assert "largest concurrency" not in ask("--bench", bench, "--tpot", 0.001, "--all")


def test_a_trace_gives_the_tokens(bench: Path, tmp_path: Path, ask: Callable[..., str]) -> None:
    """Batches and contexts between the runs may be asked for; the rule is token verification unless named."""
    folder = measured(tmp_path / "small")
    asked = (folder, "--bench", bench, "--batch", 2, "--batch", 10, "--context", 500, "--json")
    content = json.loads(ask(*asked))
    assert [(c["batch"], c["context"]) for c in content["choices"]] == [(2, 500.0), (10, 500.0)]
    assert content["basis"].startswith("token verification on the trace")
    assert [(c["batch"], c["context"]) for c in content["lock_step"]] == [(2, 500.0), (10, 500.0)]
    assert all(1 < c["waiting"] < 2 for c in content["lock_step"])
    assert "in lock-step: best k" in ask(*asked[:-1], "--all")
    assert json.loads(ask(*asked, "--rule", "race"))["basis"].startswith("race")


LONG = affine(8e-3, 1e-4, 1e-8, 0.0, 1e-3, 1e-4, 2e-8)
"""A server on which drafts lose at long contexts with many sequences."""


@pytest.fixture(scope="module")
def sglang(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of bench_serving, exact."""
    path = tmp_path_factory.mktemp("sglang") / "serving.jsonl"
    server = {"speculative_algorithm": "EAGLE3", "speculative_eagle_topk": 1}
    path.write_text(
        "\n".join(
            json.dumps(
                {
                    **{"tag": f"c{b}_in{prompt}_k{k}", "max_concurrency": b, "duration": 60.0, "completed": 100},
                    **{"total_input_tokens": 100 * prompt, "total_output_tokens": 10100, "request_throughput": 1.0},
                    "mean_e2e_latency_ms": 1e5 * LONG(b, prompt + 50.5, k) / (length or 1) + 200,
                    **{"mean_ttft_ms": 200.0, "accept_length": length},
                    "server_info": server | {"speculative_num_steps": k} if k else {"speculative_algorithm": None},
                }
            )
            for b in (1, 4, 16)
            for prompt in (500, 8000, 32000)
            for k, length in ((0, None), (1, 1.7), (3, 2.5))
        )
    )
    return path


def test_the_context_where_speculation_stops_paying(sglang: Path, ask: Callable[..., str]) -> None:
    """K = 1 loses last: 1.7 (a + bB + cBL) is a plain step and a draft's (d + eB + fBL), at batch 16 near 19,800."""
    content = json.loads(ask("--bench", sglang, "--json"))
    (turn,) = content["crossovers"]
    cost, gain = 1e-3 + 16e-4, 0.7 * (8e-3 + 16e-4)
    assert turn["context"]["best"] == pytest.approx((gain - cost) / (16 * (2e-8 - 0.7e-8)), rel=1e-4)
    assert (turn["batch"], turn["k"], turn["beyond"], turn["context"]["kind"]) == (16, 1, False, "statistical")
    said = ask("--bench", sglang)
    assert f"It loses beyond context {turn['context']['best']:,.0f} (" in said
    assert "Step times are affine. Each run predicted from the others is off by (mean square): affine 0.0%" in said
    assert content["fit"]["law"] == "affine"
    assert content["fit"]["stairs"] == []


def test_k_by_batch_and_context_for_other_programs(sglang: Path, ask: Callable[..., str]) -> None:
    """JSON and CSV hold the choices of the plan; SGLang's file has k from each batch on, at the first context."""
    choices = json.loads(ask("--bench", sglang, "--json"))["choices"]
    table = json.loads(ask("--bench", sglang, "--export", "table"))
    assert table["schema"] == "spectheory-k/1"
    expected = [
        (each["batch"], round(each["context"]), each["k"], pytest.approx(each["speedup"]["best"], abs=1e-6))
        for each in choices
    ]
    assert [(row["batch"], row["context"], row["k"], row["speedup"]) for row in table["rows"]] == expected
    assert {row["k"] for row in table["rows"]} == {0, 1, 3}
    lines = ask("--bench", sglang, "--export", "table-csv").splitlines()
    assert lines[0] == "batch,context,k,speedup,low,high"
    assert [tuple(map(float, line.split(","))) for line in lines[1:]] == [tuple(row.values()) for row in table["rows"]]
    for context in (550.5, 32050.5):
        adaptive = json.loads(ask("--bench", sglang, "--context", int(context), "--export", "sglang-adaptive"))
        steps = {int(batch): entry["candidate_steps"] for batch, entry in adaptive.items()}
        for row in table["rows"]:
            if abs(row["context"] - context) < 2:
                assert steps[max(batch for batch in steps if batch <= row["batch"])] == [row["k"]]
    assert json.loads(ask("--bench", sglang, "--export", "table", "--json"))["options"] == table


def test_passes_alone_and_a_trace(tmp_path: Path, ask: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """llama-bench at one sequence: drafts are free, tokens are the trace's. Without a trace there are none."""
    row = {"model_filename": "m", "n_prompt": 0, "n_gen": 0, "n_depth": 0}
    plain = [row | {"n_gen": 32, "n_depth": d, "avg_ns": int(32e6 * (10 + d / 1000))} for d in (0, 1000, 4000)]
    passes = [
        row | {"n_prompt": m, "n_depth": d, "avg_ns": int(1e6 * (10 + 0.5 * m + d / 1000))}
        for m in (2, 3, 5)
        for d in (0, 1000, 4000)
    ]
    (tmp_path / "bench.jsonl").write_text("\n".join(map(json.dumps, plain + passes)))
    folder = measured(tmp_path / "small")
    said = ask(folder, "--bench", tmp_path / "bench.jsonl")
    assert "Speculate with k = " in said
    assert "drafts are free in these times" in " ".join(said.split())
    assert "has no tokens per call: times alone give no speed-up; name a trace" in refused(
        ["plan", "--bench", tmp_path / "bench.jsonl"], capsys
    )


def test_graphs_may_be_stated(bench: Path, ask: Callable[..., str]) -> None:
    usual, stated = (
        json.loads(ask("--bench", bench, *sizes, "--json"))["fit"]["tried"]
        for sizes in ((), ("--graph-size", 16, "--graph-size", 64))
    )
    assert set(usual) == {"affine", "stairs"}, "every step of these runs fills a graph of vLLM"
    assert set(stated) == {*usual, "stairs at graph sizes"}


def test_tokens_per_call_of_unknown_noise(ask: Callable[..., str]) -> None:
    """A sweep that gives means alone: no setting is said to be sure."""
    said = ask("--bench", SAMPLES / "sglang_sweep.jsonl")
    assert "How sure this is, is not known: the runs say no number of calls" in said
    assert "?: noise is not known)" in said
    assert "settings (interval above 1)" not in said


def test_exports_of_a_trace(tmp_path: Path, ask: Callable[..., str]) -> None:
    """Printed alone, and the same in JSON; acceptance is at the starts of the chain that is planned."""
    folder = measured(tmp_path / "small")
    trace = Trace.read(folder)
    for name in EXPORTS:
        if not EXPORTS[name].by_batch:
            text = ask(folder, "--k-max", 5, "--export", name).removesuffix("\n")
            content = json.loads(ask(folder, "--k-max", 5, "--export", name, "--json"))
            assert content["text"] == text
            assert content["survival"] == survival_at_starts(trace, TokenVerification(), content["k"]).tolist()


def test_exports_of_a_server(bench: Path, ask: Callable[..., str]) -> None:
    table = json.loads(ask("--bench", bench, "--export", "vllm-schedule"))["num_speculative_tokens_per_batch_size"]
    assert [row[0] for row in table] == [1, *(row[1] + 1 for row in table[:-1])]
    assert table[-1][1] == 16
    rates = json.loads(ask("--bench", bench, "--export", "vllm-rates"))["synthetic_acceptance_rates"]
    assert rates == pytest.approx([0.8, 0.6, 0.4][: len(rates)], abs=0.03)


def test_exports_of_counts(tmp_path: Path, ask: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """Survival as an engine counted it, at its own k; a run without speculation counted none."""
    captured = CAPTURED / "k3_c8_in128.json"
    rates = json.loads(ask(captured, "--export", "vllm-rates"))["synthetic_acceptance_rates"]
    stated = json.loads(captured.read_text())["spec_decode_per_position_acceptance_rates"]
    assert rates == pytest.approx(stated, abs=1e-6)
    calls = CallLog((Request("a", by_drafted={2: (1, 1, 2)}), Request("b", accepted=(2, 0), drafted=(2, 2))), k=2)
    calls.write(tmp_path / "calls.jsonl")
    rates = json.loads(ask(tmp_path, "--export", "vllm-rates"))["synthetic_acceptance_rates"]
    for idle in (("--k-max", 1), ("--engine", "vllm")):
        said = refused(["plan", tmp_path, "--export", "vllm-rates", *idle], capsys)
        assert f"{idle[0]} given with an export of counts: it holds acceptance as it was counted" in said
    assert rates == pytest.approx([4 / 6, 3 / 6], abs=1e-6), "of single calls too"
    plain = CAPTURED / "k0_c8_in128.json"
    assert "says no acceptance by position" in refused(["plan", plain, "--export", "vllm-rates"], capsys)


def test_a_real_server_on_a_quiet_machine(ask: Callable[..., str]) -> None:
    """18 runs of vLLM: speculation pays alone, and less with more sequences."""
    content = json.loads(ask("--bench", CAPTURED.with_name("bench_serve_quiet"), "--json"))
    best = max(content["choices"], key=lambda choice: choice["speedup"]["best"])
    assert best["k"] == 3
    assert best["speedup"]["low"] > 1


def test_the_schedule_of_a_roofline(tmp_path: Path, ask: Callable[..., str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    sizes = ["--target-architecture", tmp_path, "--draft-architecture", tmp_path]
    folder = measured(tmp_path / "small")
    table = json.loads(ask(folder, "--hardware", "H100-SXM", *sizes, "--k-max", 3, "--export", "vllm-schedule"))
    assert table["num_speculative_tokens_per_batch_size"][-1][1] == 256


@each(
    "arguments, words",
    [
        (["--bench", "EMPTY"], "holds no results"),
        (["--bench", "CAPTURED"], "the runs scatter by 53% about the fit: at most 25%; time a quiet server"),
        (["--bench", "no-such-file"], "cannot be read (No such file"),
        (
            ["--bench", "BENCH/k0_c1_in100.json"],
            "runs with speculation are missing (there are none): each kind is needed; add runs with speculation",
        ),
        (["--bench", "BENCH", "--c", "0.1"], "--c and --bench are given: one source of costs"),
        (["--bench", "BENCH", "--trace", "a=TRACE"], "--bench is given with --trace"),
        (["--bench", "BENCH", "--batch", "64"], "batch is 64: runs cover 1 to 16"),
        (["--bench", "BENCH", "--context", "9999"], "context is 9999: runs cover"),
        (["--bench", "BENCH", "--overhead", "1"], "--overhead given without --hardware"),
        (["--bench", "BENCH", "--ttft", "9", "--context", "500"], "no run has context 500"),
        (["--bench", "BENCH", "--ttft", "0"], "--ttft is 0"),
        (["--bench", "BENCH", "--graph-size", "0"], "--graph-size is 0"),
        (["TRACE", "--graph-size", "8"], "--graph-size is given without --bench: it is about timed runs"),
        (["--bench", "BENCH", "--prompt-tokens", "9"], "runs are of one server, and of requests of their own lengths"),
        (["TRACE", "--bench", "BENCH", "--rule", "token", "--rule", "block"], "2 rules are given: a server has one"),
        (["--bench", "SGLANG", "--export", "vllm-rates"], "vllm-rates needs acceptance by position"),
        (["--bench", "TRACE/latency.json"], "is no file of timed runs: needs a known format"),
        (["TRACE", "--export", "triton"], "export 'triton' is unknown: there are vllm-rates"),
        (["TRACE", "--export", "atom", "--out", "EMPTY"], "--out is given with --export: an export is one line"),
        (["TRACE", "--export", "vllm-schedule"], "needs k by batch size"),
        (["TRACE", "--export", "dynamo", "--c", "0.0001", "--k-max", "16"], "it takes 1..5; lower --k-max, or"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, bench: Path, sglang: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir(exist_ok=True)
    places = {"BENCH": bench, "TRACE": measured(tmp_path / "small"), "EMPTY": tmp_path / "empty"}
    places |= {"CAPTURED": CAPTURED, "SGLANG": sglang}
    for name, path in places.items():
        arguments = [argument.replace(name, str(path)) for argument in arguments]
    assert words in refused(["plan", *arguments], capsys)
