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
        (["--bench", "BENCH", "--prompt-tokens", "9"], "runs are of one server, and of requests of their own lengths"),
        (["TRACE", "--bench", "BENCH", "--rule", "token", "--rule", "block"], "2 rules are given: a server has one"),
        (["TRACE", "--export", "triton"], "export 'triton' is unknown: there are vllm-rates"),
        (["TRACE", "--export", "atom", "--out", "EMPTY"], "--out is given with --export: an export is one line"),
        (["TRACE", "--export", "vllm-schedule"], "needs k by batch size"),
        (["TRACE", "--export", "dynamo", "--c", "0.0001", "--k-max", "16"], "it takes 1..5; lower --k-max, or"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, bench: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir(exist_ok=True)
    places = {"BENCH": bench, "TRACE": measured(tmp_path / "small"), "EMPTY": tmp_path / "empty"}
    places["CAPTURED"] = CAPTURED
    for name, path in places.items():
        arguments = [argument.replace(name, str(path)) for argument in arguments]
    assert words in refused(["plan", *arguments], capsys)
