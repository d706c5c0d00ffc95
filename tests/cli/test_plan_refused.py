"""``spectheory plan``: bad input and defaults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from spectheory.cli import main
from spectheory.cli.measure import Costs
from spectheory.cli.options import MeasuringOptions, PairOptions, TextOptions
from spectheory.cost import ACCELERATORS, ConstantRatio
from spectheory.trace import Trace
from tests.cli.plan_cases import CONFIG, asked, latencies, measured
from tests.commands import refused
from tests.made_up import each

ON_H200 = ["TRACE", "--hardware", "H200", "--target-architecture", "CONFIG", "--draft-architecture", "CONFIG"]


class Measured:
    """A loaded pair whose measurement is there already."""

    job = SimpleNamespace(fingerprint="f")

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def load(cls, pair: PairOptions, text: TextOptions, how: MeasuringOptions) -> Measured:
        """Remember which draft."""
        return cls(pair.draft.rpartition(":")[2])

    def require_room(self, longest: int) -> None:
        """The longest call asked for."""
        assert longest == 9

    def trace(self, path: Path, *, on_idle: Callable[[float], None]) -> Trace:
        """Leave the whole folder."""
        on_idle(1.0)
        return Trace.read(measured(path.parent) / path.name)

    @contextmanager
    def timing(self, path: Path, *, longest: int) -> Iterator[Costs]:
        """The draft is cheaper than the distilled one."""
        assert longest == 9
        yield Costs.known(ConstantRatio(0.1))
        latencies(path, {"draft": 0.05, "distilled": 0.2}[self.name])


def test_without_a_trace_the_built_in_drafts_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectheory.cli.measure.Session", Measured)
    content = asked(["--k-max", "8", "--nodes-max", "4", "--out", str(tmp_path)], capsys)
    assert [d["draft"] for d in content["drafts"]] == ["draft", "distilled"]  # type: ignore[attr-defined]
    assert (tmp_path / "distilled" / "trace.parquet").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert asked(["--k-max", "8", "--nodes-max", "4"], capsys)["draft"] == "draft"
    assert (tmp_path / "cache" / "spectheory" / "f" / "trace.parquet").exists()


@each(
    "arguments, words",
    [
        (["TRACE", "--k-max", "0"], "--k-max is 0"),
        (["TRACE", "--nodes-max", "0"], "--nodes-max is 0"),
        (
            ["TRACE", "--rule", "typical"],
            "the rule is written typical: it has the settings epsilon, delta; write typical:",
        ),
        (["TRACE", "--c", "-1"], "c is -1"),
        (["TRACE", "--c", "0.1", "--latency", "TRACE/latency.json"], "one source of costs"),
        (["TRACE", "--batch", "8"], "--batch given without --hardware"),
        (["TRACE", "--hardware", "Z80"], "accelerator 'z80' is unknown"),
        (["TRACE", "--hardware", "L4"], "--target-architecture"),
        (["TRACE", "--hardware", "L4", "--target-architecture", "no", "--draft-architecture", "no"], "cannot be read"),
        (["TRACE", "--latency", "no.json"], "not a latency table"),
        (["no-such-folder"], "is missing"),
        (["--trace", "TRACE"], "needs NAME=FOLDER"),
        (["--trace", "a\nb=TRACE"], "--trace is named 'a\\nb'"),
        (["--trace", "\x1b[2J=TRACE"], "--trace is named '\\x1b[2J'"),
        (["TRACE", "--hardware", ""], "accelerator '' is unknown"),
        (["--trace", "a=TRACE", "--trace", "a=TRACE"], "names must differ"),
        (["--trace", "a=TRACE", "--trace", "b=OTHER"], "differ in sampling"),
        (["--trace", "a=TRACE", "--trace", "b=TRACE", "--c", "0.1"], "costs of its own"),
        (["TRACE", "--logprobs", "texts.jsonl"], "one source"),
        (["BARE"], "the costs of bare are unknown"),
        (["TRACE", "--c", "1e300"], "--c is 1e+300: at most 1000"),
        ([*ON_H200, "--batch", "0"], "--batch is 0: must be in 1..1000000"),
        ([*ON_H200, "--context", "9" * 400], "must be in 0..1000000000"),
        (
            [*ON_H200, "--weights", "int3"],
            "weights is 'int3': must be one of fp32, bf16, fp8, int8, int4, mxfp4, nvfp4",
        ),
        ([*ON_H200, "--draft-weights", "int3"], "weights is 'int3'"),
        ([*ON_H200, "--kv-cache", "fp6"], "kv_cache is 'fp6'"),
        ([*ON_H200, "--expert-parallel"], "--expert-parallel is given without --devices"),
        ([*ON_H200, "--routing", "no.npz"], "no.npz is no routing log"),
        (["TRACE", "--routing", "no.npz"], "--routing given without --hardware"),
        ([*ON_H200, "--devices", "3"], "must divide the attention heads of each model, 32 of one; use 1"),
        ([*ON_H200, "--devices", "0"], "devices is 0"),
        ([*ON_H200, "--link-latency", "1e-6"], "--link-latency is given without --devices"),
        ([*ON_H200, "--devices", "2", "--link-latency", "-1"], "the link_latency of NVIDIA H200 SXM is -1"),
        ([*ON_H200, "--devices", "2", "--link-latency", "10"], "below 1; 0 if unknown, else seconds: 1e-5 is ten"),
        ([*ON_H200, "--peak", "fp4"], "the type on NVIDIA H200 SXM is 'fp4'"),
        ([*ON_H200, "--tpot", "0"], "--tpot is 0"),
        ([*ON_H200, "--tpot", "nan"], "--tpot is nan"),
        ([*ON_H200, "--ttft", "9"], "--ttft is given alone: times of requests need both lengths"),
        ([*ON_H200, "--prompt-tokens", "9"], "--prompt-tokens is given alone"),
        ([*ON_H200, "--prompt-tokens", "9", "--output-tokens", "1"], "--output-tokens is 1: must be >= 2"),
        ([*ON_H200, "--prompt-tokens", "9", "--output-tokens", "9", "--context", "9"], "with lengths of requests"),
        ([*ON_H200[:-2]], "the sizes of draft small are unknown"),
        (["TRACE", "--c", "0.1", "--batch", "8"], "c is of one batch, where verification costs one step"),
        (["TRACE", "--tpot", "8"], "measured latencies are of one machine"),
        ([*ON_H200, "--overhead", "1e308"], "must be >= 0 and below 1; 0 if unknown, else seconds"),
        ([*ON_H200, "--target-architecture", "TRACE/latency.json"], "the config has no num_hidden_layers"),
        ([*ON_H200, "--target-architecture", "LIST"], "cannot be read (no JSON object)"),
        (["TRACE", "--c", "80x"], "--c is 80x: needs a number such as 0.8; write digits, or percent, as 80%"),
        (["TRACE", "--context", "4M"], "--context is 4M: needs a whole number such as 1000; write digits, or k, as 4k"),
        (["TRACE", "--c=fast"], "--c is fast: needs a number such as 0.8"),
        (["TRACE", "--k-max", "1e3"], "--k-max is 1e3: needs a whole number such as 1000"),
        (["TRACE", "--acceptance", "0.8"], "plan has no --acceptance: it is an option of predict"),
        (
            ["TRACE", "--k", "5"],
            "plan has no --k: it is an option of validate, bench, judge, compare, noise, watch, why, bounds, simulate; "
            "write --k",
        ),
        (["TRACE", "--zzz"], "plan has no --zzz: see spectheory plan -h; leave it out"),
        (["TRACE", "second.txt"], "plan is given second.txt too: that is more than it takes"),
        (["HOLLOW"], "holds no trace.parquet, calls.jsonl or counters.json: needs a file, or a folder"),
        (
            ["TRACE/latency.json"],
            "latency.json is a latency table: it has times of passes, and no text; name a trace, and this as --latency",
        ),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = {"TRACE": measured(tmp_path / "small"), "OTHER": measured(tmp_path / "other", temperature=0.5)}
    folders["BARE"] = measured(tmp_path / "bare")
    (folders["BARE"] / "latency.json").unlink()
    folders |= {"CONFIG": tmp_path / "config.json", "LIST": tmp_path / "list.json"}
    folders["CONFIG"].write_text(json.dumps(CONFIG))
    folders["LIST"].write_text("[1]")
    folders["HOLLOW"] = tmp_path / "hollow"
    folders["HOLLOW"].mkdir(exist_ok=True)
    for name, folder in folders.items():
        arguments = [argument.replace(name, str(folder)) for argument in arguments]
    assert words in refused(["plan", *arguments], capsys)


def test_accelerators_are_named_in_the_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(["plan", str(measured(tmp_path / "small")), "--hardware", "none"], capsys)
    assert all(name in line for name in ACCELERATORS)


@pytest.mark.parametrize("command", ["predict", "plan"])
def test_default_rules_are_those_that_the_trace_has(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = measured(tmp_path / "measured")
    trace = Trace.read(folder)
    columns = {name: column for name, column in trace.columns.items() if name != "race_g"}
    columns["race_rank"] = columns["rejection_rank"]
    Trace(columns, trace.texts, trace.provenance).write(folder / "trace.parquet")
    assert main([command, str(folder), "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"recursive"' in shown
    assert '"race"' not in shown
