"""Which options each command takes; the docstring of a command's own dataclass is its help."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from typer import Argument

from spectheory.cli import vocabulary as the
from spectheory.cli.roofline_options import OF_ROOFLINES as OF_ROOFLINES
from spectheory.cli.roofline_options import RooflineOptions as RooflineOptions
from spectheory.cli.vocabulary import shown
from spectheory.errors import SettingError
from spectheory.pairs import PREFIX

LATENCY_FILE = "latency.json"
"""Name of the latency table in the folder of a measurement, beside its trace."""
MOST_TEXTS = 1024
"""Continuations of one prompt, which are sampled together."""
TEMPERATURES = (0.0, 0.7, 1.0)
"""Of a validation."""


@dataclass(frozen=True)
class PairOptions:
    """Which models, and how they are loaded."""

    target: Annotated[str, the.TARGET] = f"{PREFIX}target"
    draft: Annotated[str, the.DRAFT] = f"{PREFIX}distilled"
    dtype: Annotated[str, the.DTYPE] = "auto"
    device: Annotated[str | None, shown(the.DEVICE, "the fastest there is")] = None
    device_map: Annotated[str | None, the.DEVICE_MAP] = None
    threads: Annotated[int | None, shown(the.THREADS, "as many as cores are free")] = None
    target_revision: Annotated[str | None, the.TARGET_REVISION] = None
    draft_revision: Annotated[str | None, the.DRAFT_REVISION] = None
    block: Annotated[int | None, shown(the.BLOCK, "as many as the head was trained with")] = None
    outside: Annotated[str | None, shown(the.OUTSIDE, "text")] = None


@dataclass(frozen=True, kw_only=True)
class SampledText:
    """Which text is sampled, and how."""

    prompts: Annotated[Path | None, shown(the.PROMPTS, "built-in")] = None
    tokens: Annotated[int, the.TOKENS] = 128
    continuations: Annotated[int, the.CONTINUATIONS] = 2
    top_k: Annotated[int | None, the.TOP_K] = None
    top_p: Annotated[float | None, the.TOP_P] = None
    min_p: Annotated[float | None, the.MIN_P] = None
    seed: Annotated[int, the.SEED] = 0
    chat_template: Annotated[bool, the.CHAT_TEMPLATE] = False
    grow: Annotated[str | None, the.GROW] = None
    chunk: Annotated[int, the.CHUNK] = 256
    depth: Annotated[int | None, shown(the.DEPTH, "as many as the head was trained for")] = None


@dataclass(frozen=True, kw_only=True)
class TextOptions(SampledText):
    """Which text the pair is measured on."""

    temperature: Annotated[float, the.TEMPERATURE] = 1.0
    given_text: Annotated[bool, the.GIVEN_TEXT] = False
    ngram: Annotated[list[str] | None, the.NGRAM] = None
    better_drafts: Annotated[bool, the.BETTER_DRAFTS] = False


@dataclass(frozen=True, kw_only=True)
class SweptText(TextOptions):
    """The same with several settings of sampling, which are measured one after the other."""

    temperature: Annotated[list[float] | None, shown(the.TEMPERATURE, 1.0)] = None  # type: ignore[assignment]
    top_p: Annotated[list[float] | None, the.TOP_P] = None  # type: ignore[assignment]

    @property
    def each(self) -> dict[str, TextOptions]:
        """Every temperature with every top-p, by a name for its folder."""
        same = {each.name: getattr(self, each.name) for each in fields(TextOptions)}
        shares: list[float | None] = [*self.top_p] if self.top_p else [None]
        return {
            f"temperature-{heat:g}{f'-top-p-{kept:g}' if kept is not None else ''}": TextOptions(
                **{**same, "temperature": heat, "top_p": kept}
            )
            for heat in self.temperature or [1.0]
            for kept in shares
        }


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions:
    """How the measuring is done: no number depends on it but by rounding."""

    batch: Annotated[int | None, shown(the.BATCH, "as memory allows")] = None
    workers: Annotated[int | None, shown(the.WORKERS, "none but this process")] = None
    scheduler: Annotated[str | None, the.SCHEDULER] = None
    latency_width: Annotated[float, the.LATENCY_WIDTH] = 0.1
    latency_seconds: Annotated[float, the.LATENCY_SECONDS] = 60.0


@dataclass(frozen=True)
class MeasureOptions:
    """Measure a pair: a trace of texts, and latencies.

    Writes trace.parquet and latency.json. Finished prompts are kept: after an interruption the same command continues.
    Of several temperatures or top-p each setting has a folder of its own in --out, and a table compares them.
    """

    out: Annotated[Path, the.OUT]
    experts: Annotated[bool, the.EXPERTS] = False


@dataclass(frozen=True)
class ImportOptions:
    """Read an engine's log: a trace, calls of requests, or counters.

    The format is recognised by content. Prints what can be computed from the log, and what cannot.
    """

    files: Annotated[list[Path], the.LOGS]
    out: Annotated[Path, the.OUT]
    format: Annotated[str | None, shown(the.FORMAT, "recognised by content")] = None
    json: Annotated[bool, the.JSON] = False


@dataclass(frozen=True)
class Question:
    """What is asked of a trace with which costs, and where the answer goes."""

    trace: Annotated[Path | None, the.THE_TRACE] = None
    logprobs: Annotated[Path | None, the.LOGPROBS] = None
    draft_log: Annotated[Path | None, the.DRAFT_LOG] = None
    rule: Annotated[list[str] | None, shown(the.RULE, "{usual}")] = None
    k_max: Annotated[int, the.K_MAX] = 16
    stop: Annotated[list[str] | None, the.STOP] = None
    c: Annotated[float | None, the.C] = None
    latency: Annotated[Path | None, shown(the.LATENCY, f"{LATENCY_FILE} beside the trace")] = None
    passes_alone: Annotated[bool, the.PASSES_ALONE] = False
    json: Annotated[bool, the.JSON] = False
    out: Annotated[Path | None, the.OUT] = None
    report: Annotated[Path | None, the.REPORT] = None
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


def _recorded_at(question: Question) -> Path | None:
    """The recorded trace that is named, by either of its spellings."""
    if question.trace and question.logprobs:
        raise SettingError("a trace and --logprobs are both given", limit="one source", remedy="leave one out")
    return question.trace or question.logprobs


def recorded_files(question: Question) -> list[Path]:
    """The files of the recorded trace: one, or the logs of a target and of its draft."""
    path = _recorded_at(question)
    if question.draft_log and not path:
        raise SettingError(
            "--draft-log is given alone", limit="it goes with the target's log", remedy="name the target's log as TRACE"
        )
    return [each for each in (path, question.draft_log) if each]


@dataclass(frozen=True)
class PredictOptions(Question):
    """Predict tokens per call and speed-up from a trace.

    Without a trace, the pair is measured first, with the options under Pair, Text, Sampling and Run.
    """

    acceptance: Annotated[float | None, the.ACCEPTANCE] = None
    counted_k: Annotated[int | None, the.COUNTED_K] = None
    what_if: Annotated[list[str] | None, the.WHAT_IF] = None
    drafting: Annotated[list[str] | None, the.DRAFTING] = None
    remote_latency: Annotated[float, the.REMOTE_LATENCY] = 0.0
    shape: Annotated[list[str] | None, shown(the.SHAPE, "chain and tree")] = None
    engine: Annotated[list[str] | None, the.ENGINE] = None
    bias: Annotated[list[float] | None, the.BIAS] = None
    prefill_token: Annotated[bool, the.PREFILL_TOKEN] = False
    new_prompts: Annotated[int | None, the.NEW_PROMPTS] = None
    where: Annotated[bool, the.WHERE] = False
    check: Annotated[bool, the.CHECK] = False
    quick: Annotated[bool, the.QUICK] = False


@dataclass(frozen=True)
class PlanOptions(RooflineOptions, Question):
    """Plan a deployment: the fastest draft, rule and shape.

    Also prints break-even values and settings to paste into engines. Without a trace, the built-in drafts are measured.
    """

    traces: Annotated[list[str] | None, the.TRACES] = None
    nodes: Annotated[int, the.NODES_MAX] = 32
    engine: Annotated[list[str] | None, the.ENGINE] = None
    tpot: Annotated[float | None, the.TPOT] = None
    ttft: Annotated[float | None, the.TTFT] = None
    bench: Annotated[list[Path] | None, the.BENCH] = None
    steps: Annotated[Path | None, the.STEPS] = None
    budget: Annotated[bool, the.BUDGET] = False
    graph_size: Annotated[list[int] | None, shown(the.GRAPH_SIZE, "those of vLLM: 1, 2, 4, 8, 16, 24, ...")] = None
    export: Annotated[str | None, the.EXPORT] = None


@dataclass(frozen=True, kw_only=True)
class ValidateOptions(SampledText):
    """Decode with a pair and compare calls and times with the predictions.

    An error budget shows where wall-clock and prediction differ. With --engine or --server, real engines run the
    prompts, and their calls and texts are judged. Status 0 if counted and expected calls agree, 1 if not.
    """

    out: Annotated[Path, the.OUT]
    engine: Annotated[list[str] | None, the.ENGINE] = None
    server: Annotated[str | None, the.SERVER] = None
    answer_seconds: Annotated[float, the.ANSWER_SECONDS] = 300.0
    answer_megabytes: Annotated[float, the.ANSWER_MEGABYTES] = 256.0
    rule: Annotated[list[str] | None, shown(the.DECODED_RULE, "{decoded}")] = None
    shape: Annotated[list[str] | None, shown(the.SHAPE, "chain, and 2x2x1 where a rule takes it")] = None
    k: Annotated[list[int] | None, shown(the.K, 1, 3, 5)] = None
    stop: Annotated[list[str] | None, the.STOP] = None
    temperature: Annotated[list[float] | None, shown(the.TEMPERATURE, *TEMPERATURES)] = None
    first: Annotated[int | None, shown(the.FIRST, "all")] = None
    json: Annotated[bool, the.JSON] = False
    report: Annotated[Path | None, the.REPORT] = None
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """Time a server at the few points that a plan needs: corners and the middle of batch and context, at each k.

    With --engine, a server is started for each k; with --server, a running one is timed at its own k. Writes
    bench.jsonl, a line for each finished point; the same command continues. Other requests on the server distort times.
    """

    out: Annotated[Path, the.OUT]
    engine: Annotated[str | None, the.ENGINE] = None
    arguments: Annotated[str, the.ARGUMENTS] = ""
    server: Annotated[str | None, the.SERVER] = None
    target: Annotated[str, the.TARGET] = f"{PREFIX}target"
    draft: Annotated[str, the.DRAFT] = f"{PREFIX}distilled"
    k: Annotated[list[int] | None, shown(the.K, "1, 4; those of a running server")] = None
    batch: Annotated[list[int] | None, shown(the.BATCH, 1, 8)] = None
    context: Annotated[list[int] | None, shown(the.CONTEXT, "512, 2048; 96, 192 of built-in models")] = None
    output_tokens: Annotated[int, the.OUTPUT_TOKENS] = 64
    repeats: Annotated[int, the.REPEATS] = 5
    prompts: Annotated[Path | None, shown(the.PROMPTS, "built-in")] = None
    temperature: Annotated[float, the.TEMPERATURE] = 0.0
    seed: Annotated[int, the.SEED] = 0
    answer_seconds: Annotated[float, the.ANSWER_SECONDS] = 300.0
    json: Annotated[bool, the.JSON] = False


@dataclass(frozen=True)
class JudgeOptions:
    """Compare an engine's counts with those expected under each rule, on its own output.

    Names the rule that the engine runs and those that are refuted, tests its output, and looks for the causes of
    unexpected counts. Status 0 if counts and output agree, 1 if not.
    """

    files: Annotated[list[Path], the.JUDGED]
    rule: Annotated[list[str] | None, shown(the.RULE, "every one")] = None
    k: Annotated[int | None, shown(the.K, "as the log says")] = None
    stop: Annotated[str | None, the.STOP] = None
    temperature: Annotated[float | None, shown(the.TEMPERATURE, "as the log says")] = None
    top_k: Annotated[int | None, the.TOP_K] = None
    top_p: Annotated[float | None, the.TOP_P] = None
    min_p: Annotated[float | None, the.MIN_P] = None
    engine_dtype: Annotated[str | None, shown(the.ENGINE_DTYPE, "as the log says, else bfloat16")] = None
    json: Annotated[bool, the.JSON] = False
    out: Annotated[Path | None, the.OUT] = None
    report: Annotated[Path | None, the.REPORT] = None
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class CompareOptions:
    """Compare two runs: tokens per call, acceptance by position and speed-up, with the error of each difference.

    Two drafts, two settings, an engine before and after an upgrade, or a trace against what a server counted. Prompts
    that both share are compared one by one. Speed-ups need a latency.json beside both runs, or two answers.
    """

    one: Annotated[Path, the.ONE_RUN]
    other: Annotated[Path, the.OTHER_RUN]
    k: Annotated[int | None, shown(the.K, "as the logs say")] = None
    rule: Annotated[str, the.RULE] = "token"
    texts: Annotated[list[Path] | None, the.OF_TEXTS] = None
    json: Annotated[bool, the.JSON] = False
    out: Annotated[Path | None, the.OUT] = None
    report: Annotated[Path | None, the.REPORT] = None
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class GateOptions:
    """Test whether an engine accepts less than expected, for continuous integration.

    Passes or fails at a stated false-alarm rate, and says the smallest loss that it would catch. Status 0 if it passes,
    1 if not.
    """

    counts: Annotated[Path, the.COUNTS]
    expect: Annotated[Path, the.EXPECT]
    rule: Annotated[str, the.RULE] = "token"
    alarm: Annotated[float, the.ALARM] = 1e-3
    json: Annotated[bool, the.JSON] = False
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class WhyOptions(RooflineOptions):
    """Say why speculation is no faster: what a call costs in plain steps, what explains it, and the causes.

    From an engine's counts and its speed-up, from two numbers, or from timed runs with and without speculation.
    """

    counts: Annotated[Path | None, the.COUNTED] = None
    speedup: Annotated[float | None, the.SPEEDUP] = None
    tokens_per_call: Annotated[float | None, the.TOKENS_PER_CALL] = None
    acceptance: Annotated[float | None, the.ACCEPTANCE] = None
    k: Annotated[int | None, shown(the.K, "as counted")] = None
    bench: Annotated[list[Path] | None, the.BENCH] = None
    expect: Annotated[Path | None, the.EXPECT] = None
    rule: Annotated[str, the.RULE] = "token"
    c: Annotated[float | None, the.C] = None
    latency: Annotated[Path | None, the.LATENCY] = None
    plain_tpot: Annotated[float | None, the.PLAIN_TPOT] = None
    batch: Annotated[list[int] | None, shown(the.BATCH, 1)] = None
    json: Annotated[bool, the.JSON] = False
    out: Annotated[Path | None, the.OUT] = None
    report: Annotated[Path | None, the.REPORT] = None
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class NoiseOptions:
    """Say how much tokens per call and acceptance vary between runs by chance alone.

    Between runs of other requests, and of the same requests served again: at temperature 0 not at all. A speed-up at
    the same step times varies by the same share as tokens per call.
    """

    counted: Annotated[Path, the.SPREAD]
    requests: Annotated[int | None, shown(the.REQUESTS, "20")] = None
    calls: Annotated[int | None, the.CALLS] = None
    k: Annotated[int | None, shown(the.K, "5 for a trace")] = None
    rule: Annotated[str, the.RULE] = "token"
    json: Annotated[bool, the.JSON] = False
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class WatchOptions:
    """Watch a running server: acceptance by position, tokens per call, and an alarm when acceptance falls.

    Scrapes its /metrics (vLLM, SGLang, llama.cpp) and compares what it counts with what is expected, by a test with a
    stated rate of false alarms. Runs until Ctrl-C, --for or --once. Status 1 after an alarm with --exit-on-alarm.
    """

    url: Annotated[str, the.URL]
    expect: Annotated[Path, the.EXPECT]
    model: Annotated[str | None, shown(the.MODEL, "the only one")] = None
    k: Annotated[int | None, shown(the.K, "as the server says")] = None
    rule: Annotated[str, the.RULE] = "token"
    interval: Annotated[str, the.INTERVAL] = "60s"
    window: Annotated[str, the.WINDOW] = "1h"
    false_alarms_per_day: Annotated[float, the.FALSE_ALARMS] = 0.01
    duration: Annotated[str | None, shown(the.FOR, "until Ctrl-C")] = None
    once: Annotated[bool, the.ONCE] = False
    exit_on_alarm: Annotated[bool, the.EXIT_ON_ALARM] = False
    c: Annotated[float | None, the.C] = None
    latency: Annotated[Path | None, the.LATENCY] = None
    listen: Annotated[str | None, the.LISTEN] = None
    json: Annotated[bool, the.JSON] = False
    out: Annotated[Path | None, the.OUT] = None


@dataclass(frozen=True)
class ValidationsOptions:
    """Show finished validations as one page with figures.

    Nothing is decoded. Status 0 if counted and expected calls agree in all of them, 1 if not.
    """

    folders: Annotated[list[Path], Argument(metavar="FOLDER", help="Folders of finished validations.")]
    out: Annotated[Path, the.OUT]


@dataclass(frozen=True)
class SamplesOptions:
    """List logs of engines to try import, predict and judge on; with --out, write them to a folder.

    A recorded trace of the built-in pair has the name `builtin:` in every command that takes a trace.
    """

    out: Annotated[Path | None, the.OUT] = None
    json: Annotated[bool, the.JSON] = False


@dataclass(frozen=True)
class DoctorOptions:
    """Show what is installed, what is missing, and whether a pair's tokenizers agree.

    Downloads only the tokenizers of the models named.
    """

    target: Annotated[str | None, shown(the.TARGET, "none")] = None
    draft: Annotated[str | None, shown(the.DRAFT, "none")] = None
    json: Annotated[bool, the.JSON] = False


@dataclass(frozen=True)
class RulesOptions:
    """Acceptance of every verification rule with k candidates.

    For two pmfs, or averaged along a trace.
    """

    trace: Annotated[Path | None, the.THE_TRACE] = None
    target_pmf: Annotated[str | None, the.TARGET_PMF] = None
    draft_pmf: Annotated[str | None, the.DRAFT_PMF] = None
    candidates: Annotated[int, the.CANDIDATES] = 4
    rule: Annotated[list[str] | None, shown(the.COMPARED_RULE, "all")] = None
    seed: Annotated[int, the.SEED] = 0
    json: Annotated[bool, the.JSON] = False
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class BoundsOptions:
    """Upper bounds on tokens per call.

    From moments, pmfs, rank probabilities or a trace. Also, before a draft exists, bounds on acceptance from entropies,
    and the acceptance that a speed-up needs.
    """

    trace: Annotated[Path | None, the.THE_TRACE] = None
    mu: Annotated[float | None, the.MU] = None
    mu2: Annotated[float | None, the.MU2] = None
    target_pmf: Annotated[str | None, the.TARGET_PMF] = None
    rank_pmf: Annotated[str | None, the.RANK_PMF] = None
    target_logprobs: Annotated[Path | None, the.TARGET_LOGPROBS] = None
    target_nats: Annotated[float | None, the.TARGET_NATS] = None
    draft_nats: Annotated[float | None, the.DRAFT_NATS] = None
    vocabulary: Annotated[int | None, the.VOCABULARY] = None
    need: Annotated[float | None, the.NEED] = None
    c: Annotated[float | None, the.C] = None
    k: Annotated[list[int] | None, shown(the.K, "all up to 64")] = None
    nodes: Annotated[list[int] | None, shown(the.NODES, 1, 8, 64)] = None
    chains: Annotated[list[int] | None, the.CHAINS] = None
    trees: Annotated[int | None, the.TREES] = None
    seed: Annotated[int, the.SEED] = 0
    json: Annotated[bool, the.JSON] = False
    all: Annotated[bool, the.ALL] = False
    explain: Annotated[bool, the.EXPLAIN] = False


@dataclass(frozen=True)
class TreeOptions:
    """Find the best draft tree of a size.

    The tree is best for the texts of a trace, or for i.i.d. ranks.
    """

    trace: Annotated[Path | None, the.THE_TRACE] = None
    rule: Annotated[str | None, shown(the.RANKED_RULE, "{first}")] = None
    rank_pmf: Annotated[str | None, the.RANK_PMF] = None
    nodes: Annotated[int, the.NODES] = 8
    max_depth: Annotated[int | None, the.MAX_DEPTH] = None
    max_width: Annotated[int | None, the.MAX_WIDTH] = None
    consecutive: Annotated[bool, the.CONSECUTIVE] = False
    json: Annotated[bool, the.JSON] = False


@dataclass(frozen=True)
class VerifyOptions:
    """Check the theory: every statement with its evidence.

    Or try a claim of your own. Status 0 if everything came out as the ledger says, 1 if not.
    """

    ids: Annotated[list[str] | None, Argument(metavar="ID", help="Statements, as A3 or B2'.", show_default="all")] = (
        None
    )
    paper: Annotated[str | None, the.PAPER] = None
    evidence: Annotated[str | None, shown(the.EVIDENCE, "all")] = None
    claim: Annotated[Path | None, the.CLAIM] = None
    full: Annotated[bool, the.FULL] = False
    seed: Annotated[int, the.SEED] = 0
    workers: Annotated[int | None, shown(the.WORKERS, the.ALL_PROCESSORS)] = None
    out: Annotated[Path | None, the.OUT] = None
    json: Annotated[bool, the.JSON] = False


MAX_RANK, DRAFTS, LENGTH, K, ORDER, DRAFT_ORDER = 8, 4, 50, 4, 3, 2
NODES = (1, 4, 16, 64)
RECOVERY = "optimal"


@dataclass(frozen=True)
class FiguresOptions:
    """Draw bounds against simulations.

    Status 0 if theory and simulations agree, 1 if not.
    """

    names: Annotated[list[str] | None, Argument(metavar="NAME", help="Figures to draw.", show_default="all")] = None
    out: Annotated[Path, the.OUT] = Path("figures")
    full: Annotated[bool, the.FULL] = False
    seed: Annotated[int, the.SEED] = 0
    workers: Annotated[int | None, shown(the.WORKERS, the.ALL_PROCESSORS)] = None
    redraw: Annotated[bool, the.REDRAW] = False
    json: Annotated[bool, the.JSON] = False
    report: Annotated[Path | None, the.REPORT] = None


@dataclass(frozen=True)
class SettingOptions:
    """Simulate one setting and compare it with the theory.

    `spectheory simulate list` shows the kinds and their options. Status 0 if both agree, 1 if not.
    """

    kind: Annotated[str, Argument(metavar="KIND", help="What is simulated; `list` shows every kind with its options.")]
    target_pmf: Annotated[str | None, the.TARGET_PMF] = None
    draft_pmf: Annotated[str | None, the.DRAFT_PMF] = None
    initial: Annotated[str | None, shown(the.INITIAL, "uniform")] = None
    length: Annotated[int | None, shown(the.LENGTH, LENGTH)] = None
    k: Annotated[int | None, shown(the.K, K)] = None
    max_rank: Annotated[int | None, shown(the.MAX_RANK, MAX_RANK)] = None
    drafts: Annotated[int | None, shown(the.DRAFTS, DRAFTS)] = None
    printed: Annotated[bool | None, the.PRINTED] = None
    rank_pmf: Annotated[str | None, the.RANK_PMF] = None
    shape: Annotated[str | None, shown(the.SHAPE, "chain")] = None
    rule: Annotated[str | None, the.RULE] = None
    bias: Annotated[float | None, the.BIAS] = None
    recovery: Annotated[str | None, shown(the.RECOVERY, RECOVERY)] = None
    text: Annotated[str | None, the.NGRAMS] = None
    order: Annotated[int | None, shown(the.ORDER, ORDER)] = None
    draft_order: Annotated[int | None, shown(the.DRAFT_ORDER, DRAFT_ORDER)] = None
    family: Annotated[str | None, the.FAMILY] = None
    nodes: Annotated[list[int] | None, shown(the.NODES, *NODES)] = None


@dataclass(frozen=True)
class RunOptions:
    """How much is simulated, by whom, and what is kept."""

    trials: Annotated[int, the.TRIALS] = 100_000
    batch: Annotated[int | None, shown(the.BATCH_SIZE, "that of the kind")] = None
    width: Annotated[float | None, the.WIDTH] = None
    alarm: Annotated[float, the.ALARM] = 1e-6
    seed: Annotated[int, the.SEED] = 0
    workers: Annotated[int | None, shown(the.WORKERS, the.ALL_PROCESSORS)] = None
    out: Annotated[Path | None, the.OUT] = None
    json: Annotated[bool, the.JSON] = False

    @property
    def results(self) -> Path | None:
        """The file of finished batches."""
        return self.out / "results.jsonl" if self.out else None
