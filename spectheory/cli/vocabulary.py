"""Every option of the command line: its name, what it takes, its group and its meaning, the same in every command."""

from __future__ import annotations

from copy import copy

from typer import Argument, Option
from typer.models import OptionInfo

TRACE, PAIR, ENGINES, TEXT, SAMPLING = "Trace", "Pair", "Engines", "Text", "Sampling"
SHAPES, PMFS, STATEMENTS = "Rules and shapes", "Distributions", "Statements"
COST, ROOFLINE = "Cost", "Cost from a data sheet"
RUN, OUTPUT, HELP = "Run", "Output", "Help"
GROUPS = (TRACE, SHAPES, PMFS, COST, ROOFLINE, PAIR, ENGINES, TEXT, SAMPLING, STATEMENTS, RUN, OUTPUT, HELP)
"""Headings of ``--help``, in their order."""


def option(name: str, metavar: str, group: str, help: str) -> OptionInfo:
    """Declare an option; a flag has no metavar. ``{rules}`` and the like in its help are names of rules."""
    made: OptionInfo = Option(name, metavar=metavar or None, rich_help_panel=group, help=help)
    return made


def shown(made: OptionInfo, *defaults: object) -> OptionInfo:
    """The same option in a command that fills in `defaults` where it is left out."""
    made = copy(made)
    made.show_default = ", ".join(f"{each:g}" if isinstance(each, float) else str(each) for each in defaults)
    return made


THE_TRACE = Argument(metavar="TRACE", help="A trace: its folder, its file, or a log.", show_default=False)
LOGS = Argument(
    metavar="FILE",
    help="Logs of one engine. Of two scrapes of a server the difference is taken; scores of two models are joined to a "
    "trace.",
)
JUDGED = Argument(
    metavar="LOG",
    help="Log of calls with token ids, as `import` reads it. Further files: a trace of the same texts, which replaces "
    "running the pair, and the engine's totals over the requests.",
)
ONE_RUN = Argument(
    metavar="A",
    help="The first run: a trace, a log of calls, counters, or JSON of predict or plan; or a folder of one.",
)
OTHER_RUN = Argument(metavar="B", help="The second run; differences are B less A.")
OF_TEXTS = option(
    "--texts",
    "TRACE",
    TRACE,
    "Trace of the very texts of a log, first A's, then B's: separates harder texts from the draft and the engine; "
    "a third, of B's texts with A's draft, separates the draft.",
)
COUNTS = Argument(metavar="COUNTS", help="What the engine counted: a log of calls, counters, or the folder of one.")
EXPECT = option(
    "--expect",
    "FILE",
    TRACE,
    'What is expected: a trace of like prompts, an earlier run, or JSON with "k" and "tokens_per_call".',
)
URL = Argument(metavar="URL", help="The server, such as http://localhost:8000; with or without /metrics.")
COUNTED = Argument(
    metavar="COUNTS",
    help="What the engine counted: a log of calls, counters, or a trace read at --k; or the folder of one.",
    show_default=False,
)
SPEEDUP = option(
    "--speedup",
    "FACTOR",
    COST,
    "Speed with drafts over speed without, at the same load: of decoding, or of whole "
    "requests where their lengths are given.",
)
TOKENS_PER_CALL = option(
    "--tokens-per-call",
    "TOKENS",
    TRACE,
    "In place of counts: output tokens of a call, the recovered or bonus token too.",
)
PLAIN_TPOT = option(
    "--plain-tpot", "MS", COST, "Time per output token without drafts: shows a slow baseline, with --hardware."
)
SPREAD = Argument(metavar="RUN", help="A trace, a log of calls, or counters; or the folder of one.")
REQUESTS = option("--requests", "INT", TRACE, "Requests of a run.")
CALLS = option("--calls", "INT", TRACE, "Instead of requests: calls of a run, or between two lines of a server's log.")
FORMAT = option("--format", "NAME", TRACE, "Format of the log, as `spectheory samples` names them.")
TRACES = option("--trace", "NAME=FOLDER", TRACE, "Trace of a draft, with a name; drafts of one target are ranked.")
LOGPROBS = option("--logprobs", "FILE", TRACE, "The same as TRACE, for a log of log-probabilities.")
TARGET_LOGPROBS = option(
    "--target-logprobs",
    "FILE",
    TRACE,
    'JSON lines with "target": the target\'s log-probabilities of text that it sampled.',
)
DRAFT_LOG = option("--draft-log", "FILE", TRACE, "The draft's log, if TRACE is a log of the target alone.")

_LOSSY = "ensemble:W, thresholds:S,A, typical:E,D and relaxed:N,D change the text"
RULE = option(
    "--rule",
    "RULE",
    SHAPES,
    f"Verification rule: {{rules}}, or module:Class of your own; in predict, {_LOSSY}.",
)
RANKED_RULE = option("--rule", "RULE", SHAPES, "Verification rule with ranks: {ranked}, or module:Class of your own.")
DECODED_RULE = option(
    "--rule",
    "RULE",
    SHAPES,
    "Verification rule: {rules}; assisted (transformers' token verification), assisted-filters (also its sampling), "
    f"strings (its string matching); {_LOSSY}.",
)
COMPARED_RULE = option(
    "--rule", "RULE", SHAPES, f"Verification rule: {{every}}, or module:Class of your own; {_LOSSY}."
)
SHAPE = option(
    "--shape",
    "SHAPE",
    SHAPES,
    "Draft shape: chain, batch, a k-ary tree such as 2x2x1, a tree by its paths, such as 1,2,1-1, grown:16x4x5 as "
    "measured, module:Class, or, in predict, tree: the best one. All but chain need a rule with ranks.",
)
K = option("--k", "INT", SHAPES, "Drafted tokens per call, of a chain, batch or Gumbel list.")
STOP = option(
    "--stop",
    "STOP",
    SHAPES,
    "Where the draft stops: {stops}. predict and plan compare it with fixed lengths; with best, they sweep thresholds.",
)
K_MAX = option("--k-max", "INT", SHAPES, "Longest chain of drafts tried.")
CANDIDATES = option("--candidates", "INT", SHAPES, "Candidates at one position.")
NODES = option("--nodes", "INT", SHAPES, "Draft nodes per call.")
NODES_MAX = option("--nodes-max", "INT", SHAPES, "Nodes of the largest draft tree tried; 1 for no trees.")
MAX_DEPTH = option("--max-depth", "INT", SHAPES, "Largest depth of a node: draft passes per call.")
MAX_WIDTH = option("--max-width", "INT", SHAPES, "Most nodes of one depth; with --rank-pmf.")
MAX_RANK = option("--max-rank", "INT", SHAPES, "Largest rank with a count of its own; larger ones share one.")
CONSECUTIVE = option("--consecutive", "", SHAPES, "Siblings have ranks 1..m, as for recursive rejection.")
BIAS = option("--bias", "SHARE", SHAPES, "Share of over-acceptance in [0, 1]; 0 is lossless.")
CHAINS = option("--chains", "INT", SHAPES, "Also bound calls that draft this many i.i.d. chains; with a trace.")
RECOVERY = option("--recovery", "NAME", SHAPES, "Law of the token that replaces a rejected one: optimal or target.")
DRAFTS = option("--drafts", "INT", SHAPES, "M, the number of drafts in a batch of yin2024.")
PRINTED = option("--printed", "", SHAPES, "Run Algorithm 4 of yin2024 exactly as printed (Y3/printed).")
ACCEPTANCE = option(
    "--acceptance",
    "RATE",
    TRACE,
    "In place of a trace or counts: an acceptance rate alone, such as 80%. predict gives the range of all texts "
    "with that mean; why takes accepted over drafted tokens.",
)
COUNTED_K = option(
    "--counted-k",
    "INT",
    TRACE,
    "With --acceptance: the rate is accepted over drafted tokens, as engines print it, of calls with so many drafts.",
)
PREFILL_TOKEN = option("--prefill-token", "", SHAPES, "Count the prompt's own pass as a call that outputs one token.")
NEW_PROMPTS = option(
    "--new-prompts",
    "INT",
    OUTPUT,
    "Also give the 95% prediction interval of the mean over this many new prompts, for the best rule; 1 is a single "
    "prompt.",
)
WHAT_IF = option(
    "--what-if",
    "CHANGE",
    TRACE,
    "What would change: draft-kl=-10% (a better draft), c=0.05..0.4 (its cost), prompts=2% (prompts for an interval "
    "of ±2%). Gives these answers alone; counts and rates take c.",
)
DRAFTING = option(
    "--drafting",
    "WHERE",
    COST,
    "Where drafts are made: in-turn, remote, ahead:N (during verification, for the N likeliest outcomes), ahead:NxALL "
    "(N tokens after any number of accepted drafts), parallel:N (without a pause, for N targets). Gives these answers "
    "alone.",
)
REMOTE_LATENCY = option(
    "--remote-latency",
    "TIME",
    COST,
    "Time of a message between draft and target, one way: seconds, with --c target steps; with --drafting.",
)
WHERE = option(
    "--where",
    "",
    OUTPUT,
    "Show where calls start and where they are lost: by depth, position, context and token. --target may name the "
    "tokenizer of a recorded trace.",
)

TARGET_PMF = option(
    "--target-pmf",
    "PMF",
    PMFS,
    "Pmf of the target: numbers such as 0.5,0.3,0.2, or a .npy, .json or text file. Several pmfs are rows; of a "
    "Markov chain, row x is the pmf after token x.",
)
DRAFT_PMF = option("--draft-pmf", "PMF", PMFS, "Pmf of the draft, in the same forms.")
INITIAL = option("--initial", "PMF", PMFS, "Markov chains: pmf of the token before the text.")
RANK_PMF = option("--rank-pmf", "PMF", PMFS, "P(R = 1), P(R = 2), ... of a position, in the forms of a pmf.")
MU = option("--mu", "NATS", PMFS, "Mean entropy of the target; with --mu2.")
MU2 = option("--mu2", "NATS2", PMFS, "Mean of sum p log^2 p, nats squared; with --mu.")
TARGET_NATS = option(
    "--target-nats", "NATS", PMFS, "Mean entropy of the target per token, the log of its perplexity on its own text."
)
DRAFT_NATS = option(
    "--draft-nats", "NATS", PMFS, "Mean cross-entropy of a draft per token, on text that the target sampled."
)
VOCABULARY = option("--vocabulary", "INT", PMFS, "Tokens of the vocabulary; with --target-nats.")
TREES = option(
    "--trees", "INT", PMFS, "Number of random trees grown from the rows of --target-pmf: the value at finite size."
)
FAMILY = option("--family", "NAME", PMFS, "Family of random pmfs, in place of --target-pmf.")
NGRAMS = option("--text", "FILE", PMFS, "n-grams of a text file, or of the source of a Python module such as argparse.")
ORDER = option("--order", "INT", PMFS, "n of the target's n-grams.")
DRAFT_ORDER = option("--draft-order", "INT", PMFS, "n of the draft's n-grams.")
LENGTH = option("--length", "INT", PMFS, "Tokens of a simulated text.")

NEED = option("--need", "FACTOR", COST, "Wanted speed-up: the acceptance that a draft of cost --c needs.")
C = option("--c", "RATIO", COST, "Time of a draft step over that of a target step, in place of latencies.")
LATENCY = option("--latency", "FILE", COST, "Latency table of `spectheory measure`.")
PASSES_ALONE = option(
    "--passes-alone", "", COST, "Count the models' passes alone, without the time of our decoding loop."
)
BENCH = option(
    "--bench", "PATH", COST, "Timed runs of a server with and without speculation: files of its tools, or a folder."
)
STEPS = option(
    "--steps",
    "FILE",
    COST,
    "CSV of a server's step times, columns tokens,seconds (and drafting, of a draft pass by requests): plans which "
    "drafts of a batch to verify.",
)
BUDGET = option("--budget", "", COST, "Plan which drafts of a batch to verify, with the step times of --bench.")
GRAPH_SIZE = option("--graph-size", "TOKENS", COST, "Tokens of a CUDA graph that steps are padded to; with --bench.")
HARDWARE = option(
    "--hardware", "NAME", ROOFLINE, "Roofline of this accelerator, such as H100-SXM, in place of latencies."
)
TARGET_ARCHITECTURE = option("--target-architecture", "FILE", ROOFLINE, "config.json of the target, or its folder.")
DRAFT_ARCHITECTURE = option(
    "--draft-architecture",
    "[NAME=]FILE",
    ROOFLINE,
    "config.json of a draft, or its folder; with its name if there are several. By default that of the draft measured.",
)
WEIGHTS = option(
    "--weights", "TYPE", ROOFLINE, "Weights of the target as served: fp32, bf16, fp8, int8, int4, mxfp4 or nvfp4."
)
DRAFT_WEIGHTS = option("--draft-weights", "TYPE", ROOFLINE, "Weights of the draft as served.")
KV_CACHE = option("--kv-cache", "TYPE", ROOFLINE, "Keys and values as stored: bf16, fp8, int8 or int4.")
PEAK = option("--peak", "TYPE", ROOFLINE, "Type of both models' arithmetic: bf16 or fp8; else as each has its weights.")
ROUTING = option(
    "--routing", "FILE", ROOFLINE, "Routing log of a target with experts, which counts those that tokens share."
)
EXPERT_PARALLEL = option(
    "--expert-parallel", "", ROOFLINE, "Each of --devices holds whole experts, in place of a part of each."
)
DEVICES = option("--devices", "INT", ROOFLINE, "Accelerators that share both models: tensor parallelism.")
LINK_LATENCY = option("--link-latency", "SECONDS", ROOFLINE, "Fixed time of each all-reduce between devices.")
OVERHEAD = option("--overhead", "SECONDS", ROOFLINE, "Fixed time added to each pass.")
BATCH = option(
    "--batch",
    "INT",
    RUN,
    "Sequences decoded together: of prompts measured, of points timed, or of the plan, whose settings are for the "
    "first size.",
)
CONTEXT = option("--context", "TOKENS", ROOFLINE, "Cached tokens of a sequence; a plan's settings are for the first.")
PROMPT_TOKENS = option("--prompt-tokens", "TOKENS", ROOFLINE, "Tokens of a request's prompt; with --output-tokens.")
OUTPUT_TOKENS = option(
    "--output-tokens", "TOKENS", ROOFLINE, "Output tokens of a request; plan and why need --prompt-tokens too."
)
TPOT = option("--tpot", "MS", ROOFLINE, "Longest time per output token: shows which k meets it at which concurrency.")
TTFT = option("--ttft", "MS", ROOFLINE, "Longest time to the first token; with the lengths of requests, or --bench.")

TARGET = option("--target", "MODEL", PAIR, "Target model: local folder, hub id, or builtin:target.")
DRAFT = option(
    "--draft",
    "MODEL",
    PAIR,
    "Draft model or head: local folder, hub id, or builtin:NAME with draft, distilled, eagle3, dflash, mtp or dspark; "
    "mtp is the target's own MTP modules, mtp:FOLDER those of another checkpoint.",
)
DTYPE = option("--dtype", "TYPE", PAIR, "Type of the weights: auto, float32, bfloat16 or float16.")
DEVICE = option("--device", "NAME", PAIR, "Device: cpu, cuda, cuda:1 or mps.")
DEVICE_MAP = option("--device-map", "MAP", PAIR, "Device map of transformers, such as auto.")
THREADS = option("--threads", "INT", PAIR, "Number of threads of torch.")
TARGET_REVISION = option("--target-revision", "REVISION", PAIR, "Hub revision of the target.")
DRAFT_REVISION = option("--draft-revision", "REVISION", PAIR, "Hub revision of the draft.")
BLOCK = option(
    "--block",
    "INT",
    PAIR,
    "Slots that a DFlash, DSpark or Domino head drafts at once; engines use as many as k needs.",
)

OUTSIDE = option(
    "--outside",
    "HOW",
    PAIR,
    "How a draft with another tokenizer reads the target's text: written and read again (text, as transformers), or "
    "each token that it lacks as unknown (unknown, as vLLM).",
)

PROMPTS = option("--prompts", "FILE", TEXT, "JSON lines of prompts, like Spec-Bench's question.jsonl.")
FIRST = option("--first", "INT", TEXT, "Decode only this many prompts, from the first on.")
TOKENS = option("--tokens", "TOKENS", TEXT, "Most output tokens of a text.")
CONTINUATIONS = option("--continuations", "INT", TEXT, "Texts sampled per prompt.")
GIVEN_TEXT = option("--given-text", "", TEXT, "The text is each prompt's `output`; none is sampled.")
NGRAM = option(
    "--ngram",
    "NAME:SETTINGS",
    TEXT,
    "Also replay an n-gram draft of an engine: ngram-vllm:min=1,max=3; several values make a grid, max=2|3.",
)
EXPERTS = option(
    "--experts", "", TEXT, "Also write routing.npz: the experts of the target that each token is routed to."
)
BETTER_DRAFTS = option(
    "--better-drafts", "", TEXT, "Also record what `predict --what-if draft-kl=-10%` needs for its geometric path."
)
CHAT_TEMPLATE = option("--chat-template", "", TEXT, "Wrap prompts in the chat template.")
DEPTH = option("--depth", "INT", TEXT, "Drafts per call that are measured of a draft head.")
GROW = option(
    "--grow",
    "NODESxTOPxDEPTH",
    TEXT,
    "Also grow a tree from the draft's confidences at every token. 16x4x5: the 16 most confident nodes of 5 passes, "
    "with 4 tokens below each node that is read.",
)
SCHEDULER = option("--scheduler", "ADDRESS", RUN, "A Dask scheduler whose workers read the prompts.")
LATENCY_WIDTH = option(
    "--latency-width",
    "SHARE",
    RUN,
    "Measure rounds until their own noise leaves 95% intervals this narrow, relative to the value.",
)
LATENCY_SECONDS = option("--latency-seconds", "SECONDS", RUN, "Longest time for measuring passes and loop.")
QUICK = option("--quick", "", RUN, "Stop at the provisional answer, after the first prompts.")
CHUNK = option("--chunk", "INT", TEXT, "Positions whose logits are in memory at a time.")

ENGINE = option(
    "--engine",
    "NAME",
    ENGINES,
    "Engine: predict and plan answer for it (by default for every one); validate and bench run it, as NAME or "
    "NAME=PROGRAM: vllm, openvino, onnxruntime (PROGRAM is a Python that has it) or llama.cpp (PROGRAM is "
    "llama-server).",
)
SERVER = option("--server", "URL", ENGINES, "Running OpenAI-compatible server of the pair, which takes token ids.")
MODEL = option("--model", "NAME", ENGINES, "The model_name that is watched, where the server counts several.")
ARGUMENTS = option(
    "--arguments", "TEXT", ENGINES, "Further arguments of the server that is started, as --arguments='--threads 1'."
)
ANSWER_SECONDS = option("--answer-seconds", "REAL", ENGINES, "Seconds that a server may take for one whole answer.")
ANSWER_MEGABYTES = option(
    "--answer-megabytes", "REAL", ENGINES, "Megabytes that one answer of a server may have, unpacked."
)

TEMPERATURE = option("--temperature", "REAL", SAMPLING, "Sampling temperature of both models; 0 is greedy.")
TOP_K = option("--top-k", "INT", SAMPLING, "Keep the k most probable tokens, with ties.")
TOP_P = option("--top-p", "SHARE", SAMPLING, "Keep the smallest set of this probability.")
MIN_P = option("--min-p", "SHARE", SAMPLING, "Keep tokens of at least this times the largest probability.")
ENGINE_DTYPE = option(
    "--engine-dtype", "TYPE", SAMPLING, "Number type in which the engine ran, by which near-ties are undecided."
)

PAPER = option("--paper", "KEY", STATEMENTS, "Statements of one paper, such as kobus2025.")
EVIDENCE = option(
    "--evidence", "KIND", STATEMENTS, "One kind of evidence: formal, symbolic, exact, certified, search or simulation."
)
CLAIM = option("--claim", "FILE", STATEMENTS, "Python file with claims of your own, tried instead of the ledger.")

TRIALS = option("--trials", "INT", RUN, "Trials: positions, calls, texts or trees; rounded up to whole batches.")
REPEATS = option("--repeats", "INT", RUN, "How often each point is timed; its median counts.")
BATCH_SIZE = option("--batch-size", "INT", RUN, "Trials of a batch; another size draws other numbers.")
WIDTH = option("--width", "SHARE", RUN, "End as soon as the first interval is this narrow, relative to its value.")
ALARM = option("--alarm", "PROBABILITY", RUN, "Largest probability that a correct theory is called wrong.")
INTERVAL = option("--interval", "TIME", RUN, "Time between two scrapes: 30s, 5m. Requests should end within it.")
WINDOW = option("--window", "TIME", RUN, "Length of the sliding window, and of the pause after an alarm: 30m, 1h.")
FALSE_ALARMS = option("--false-alarms-per-day", "RATE", RUN, "Most false alarms a day, in the mean.")
FOR = option("--for", "TIME", RUN, "End after so long: 10m, 8h.")
ONCE = option(
    "--once", "", RUN, "Scrape once and end: since the server's start, or with --out since the last scrape there."
)
EXIT_ON_ALARM = option("--exit-on-alarm", "", RUN, "End with status 1 at the first alarm.")
FULL = option("--full", "", RUN, "As much work as for the docs: about ten times the default.")
CHECK = option("--check", "", RUN, "Also count the calls of transformers' assisted generation.")
SEED = option("--seed", "INT", RUN, "Root seed: the same seed draws the same numbers.")
WORKERS = option("--workers", "INT", RUN, "Number of worker processes.")
ALL_PROCESSORS = "all processors"

OUT = option("--out", "FOLDER", OUTPUT, "Folder for all that is written; a stopped run continues from it.")
LISTEN = option(
    "--listen", "PORT", OUTPUT, "Serve the measured values to Prometheus, at PORT or HOST:PORT under /metrics."
)
REDRAW = option("--redraw", "", OUTPUT, "Draw again from the data in the folder; simulate nothing.")
EXPORT = option("--export", "NAME", OUTPUT, "Print only the settings of another tool, such as vllm-rates or dynamo.")
ALL = option("--all", "", OUTPUT, "Print every table and note.")
EXPLAIN = option("--explain", "", OUTPUT, "Print what each column means.")
REPORT = option(
    "--report", "FILE", OUTPUT, "Also write the answer as one page to open in a browser: charts, tables, assumptions."
)
JSON = option(
    "--json", "", OUTPUT, "Print only one JSON object; watch prints one for each scrape, on a line of its own."
)
