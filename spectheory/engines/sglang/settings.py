"""Settings of SGLang with a draft model or a head: trees or chains of first choices, or sampled chains of a head."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spectheory.deployment.candidates import DRAFT_MODEL
from spectheory.deployment.engines import ARGMAX, TOKEN, Ask, EngineSettings, Fact, ServingEngine, command
from spectheory.deployment.ranking import fastest_tree
from spectheory.drafting import Grown, Shape, Tree
from spectheory.drafting.shapes import grown_passes
from spectheory.errors import SettingError
from spectheory.ngrams.sglang import SglangFrequentNgram
from spectheory.prediction import Prediction, predict
from spectheory.prediction.shape_calls import grown_rules, measured_shape
from spectheory.verification import TopKMatch

_CHECKED = "source of 0.5.23; not run"
FIRST_CHOICES = Fact(
    "--speculative-algorithm STANDALONE",
    "The draft's first choices are accepted with the target's probability (topk; argmax in a chain) while both accept "
    "thresholds are 1, their default; lower ones change the output.",
    f"{_CHECKED}: `eagle_sample`; sgl-project/sglang#10308",
)
LOSSY = Fact(
    "--speculative-accept-threshold-single S, --speculative-accept-threshold-acc A",
    "Change the text below 1, their default. A first choice z is accepted with min(1, p(z)/A), and for certain where "
    "p(z) is at least S; else a token of p without z is drawn. `--rule thresholds:single=S,acc=A` predicts it for "
    "chains. At temperature 0 they change nothing.",
    "source: `TreeSpeculativeSamplingTargetOnly`; not run",
)
REFUSED = Fact(
    "--speculative-use-rejection-sampling, STANDALONE",
    "Sampled drafts are not available: speculative-use-rejection-sampling is refused for a draft model of its own "
    "(STANDALONE).",
    f"{_CHECKED}: `NotImplementedError`, only EAGLE, EAGLE3 and NEXTN take it",
)
MATCHED = Fact("temperature 0", "Drafts are accepted where they match the target's first choices.", _CHECKED)
GROWN = Fact(
    "--speculative-num-steps, --speculative-eagle-topk, --speculative-num-draft-tokens",
    "Each call grows a new tree by the draft's confidence. The prediction is exact for the size that a trace was "
    "measured with (--grow); else it is an estimate, for the best fixed tree of that size.",
    "documentation: num-draft-tokens counts the root, so it is nodes + 1; not run",
)
DTYPE = Fact("--dtype", "It is the type of both models: the draft is loaded in the target's.", _CHECKED)
MIN_P = Fact(
    "min_p",
    "Verification leaves min-p out: no settings for traces with it.",
    f"{_CHECKED}; sgl-project/sglang#10617, open",
)
HEADS = Fact(
    "--speculative-algorithm EAGLE3, NEXTN or DFLASH",
    "Heads by kind (NEXTN is MTP), with the path of the head, or of the target for the MTP modules in it. EAGLE3 and "
    "NEXTN draft first choices like STANDALONE, in chains or grown trees. There is none for P-EAGLE.",
    f"{_CHECKED}; P-EAGLE: sgl-project/sglang#23171, open",
)
SAMPLED = Fact(
    "--speculative-use-rejection-sampling, EAGLE3 or NEXTN",
    "Token verification of sampled drafts, of chains (eagle-topk 1); a head with a pruned vocabulary is refused.",
    f"{_CHECKED}: `_handle_eagle_family`, `eagle_worker_v2.py`; sgl-project/sglang#26312",
)
GREEDY = Fact(
    "temperature, on CPU, XPU and ROCm",
    "On CPU, XPU and ROCm drafts are verified as at temperature 0 whatever the request asks for, without a message; "
    "with rejection sampling, the default of NEXTN on ROCm, ROCm samples.",
    f"{_CHECKED}: `_verify_uses_greedy`, `_should_auto_enable_hip_rejection_sampling`",
)
BLOCK = Fact(
    "--speculative-use-block-verification",
    "Block verification of sampled drafts on CUDA and ROCm: of chains of EAGLE3 and NEXTN, and of DSPARK. It changes "
    "nothing for DFlash heads, which draft first choices. No settings here.",
    f"{_CHECKED}: `handle_speculative_decoding`, `dflash_worker_v2.py`",
)
DFLASH = Fact(
    "--speculative-algorithm DFLASH --speculative-num-draft-tokens",
    "A chain drafted in one pass; num-draft-tokens counts the root. It drafts first choices, accepted with the "
    "target's probability.",
    f"{_CHECKED}: `compute_dflash_sampling_correct_drafts_and_bonus`; sgl-project/sglang#23553",
)
DSPARK = Fact(
    "--speculative-algorithm DSPARK --speculative-dspark-block-size",
    "A DSpark head drafts a block of dspark-block-size tokens from left to right, first choices at temperature 0, else "
    "sampled ones, which token verification accepts. Its scheduler may verify fewer by their confidence and the load: "
    "not predicted here.",
    "source: `dspark_components/dspark_draft_sampler.py`; not run",
)
DOMINO = Fact(
    "--speculative-algorithm DFLASH, Domino",
    "A Domino head is a DFLASH one. It drafts first choices; above tensor-parallel 1 those among a pool of candidates, "
    "which is not predicted here.",
    "source: `domino_utils.py`; not run",
)
ADAPTIVE = Fact(
    "--speculative-adaptive",
    "Changes num-steps of EAGLE3 and NEXTN chains between calls by the accepted lengths of the calls before. "
    "`--stop best` predicts it for one request at a time.",
    f"{_CHECKED}: `adaptive_unsupported_reason`; sgl-project/sglang#21599, #23336",
)
NGRAM = Fact(
    "--speculative-algorithm NGRAM",
    "Drafts a tree from a trie of the last tokens of every call of the server, without a draft model. Of a prompt it "
    "knows the last max-trie-depth tokens alone. Every call verifies num-draft-tokens; a tree with fewer is filled "
    "with token 0.",
    "source of 0.5.23: `ngram_worker.py`, `trie.cpp`; its trie run by a test",
)
METHODS = (
    (DRAFT_MODEL, "STANDALONE"),
    ("eagle", "EAGLE"),
    ("eagle3", "EAGLE3"),
    ("mtp", "NEXTN"),
    ("dflash", "DFLASH"),
    ("dspark", "DSPARK"),
    ("domino", "DFLASH"),
)
"""The algorithm of each kind of draft."""
_VERIFYING = (FIRST_CHOICES, LOSSY, GREEDY, REFUSED, MATCHED, GROWN, ADAPTIVE)
_DRAFTING = (HEADS, SAMPLED, BLOCK, DFLASH, DSPARK, DOMINO, MIN_P, DTYPE, NGRAM)


@dataclass(frozen=True)
class _GrownTree(Shape):
    """A tree as SGLang grows it: every pass after the first is on the `top` best nodes. The `kept` nodes are verified.

    Examples
    --------
    >>> grown = _GrownTree(Tree.from_paths([(1,), (2,), (1, 1), (1, 2), (1, 3), (1, 1, 1)]))
    >>> grown.top, grown.passes, grown.kept.passes
    (3, (1, 3, 3), (1, 1, 1))
    """

    kept: Tree

    @property
    def top(self) -> int:
        """The eagle-topk that reaches every kept node."""
        return max(self.kept.max_rank, *self.kept.passes)

    @property
    def nodes(self) -> int:
        """Drafted tokens per call; the target processes one more."""
        return self.kept.nodes

    @property
    def depth(self) -> int:
        """Draft passes per call."""
        return self.kept.depth

    @property
    def passes(self) -> tuple[int, ...]:
        """One token first, then `top` in each pass."""
        return grown_passes(self.top, self.depth)

    @property
    def max_rank(self) -> int:
        """The largest rank at any node."""
        return self.kept.max_rank

    def tree(self) -> Tree:
        """The nodes that are verified."""
        return self.kept

    def __str__(self) -> str:
        """Short form for tables."""
        return f"tree of {self.nodes}, depth {self.depth}, top {self.top}"


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest of a tree and a chain of first choices, and for heads a sampled chain."""
    samples = ask.draft.kind == "dspark"
    rules = (TOKEN,) if samples else (TOKEN, ARGMAX) if ask.head and not ask.parallel else (ARGMAX,)
    known = [p for p in (ask.drafted(*rules), None if ask.parallel else _tree(ask)) if p is not None]
    algorithm = ENGINE.method(ask.draft.kind)
    if not known or algorithm is None:
        return None
    best = max(known, key=lambda p: p.gain)
    target, drafter = ask.target, ask.drafter
    of_target = {"revision": target.revision, "dtype": target.dtype}
    options: dict[str, Any] = {
        **{name: value for name, value in of_target.items() if value},
        "speculative-algorithm": algorithm,
        "speculative-draft-model-path": drafter.source,
        **({"speculative-draft-model-revision": drafter.revision} if drafter.revision else {}),
        **_size(ask, best.shape),
    }
    if best.rule.name == TOKEN and not (ask.greedy or samples):
        options["speculative-use-rejection-sampling"] = True
    return ask.settings(ENGINE, best, options, _served(ask, options), _remarks(ask, best))


def _with_ngrams(ask: Ask) -> EngineSettings | None:
    """The fastest tree of n-grams that the trace has replayed."""
    best, draft, remark = ask.lookup(ENGINE.name)
    if best is None or draft is None:
        return None
    options = {
        "speculative-algorithm": "NGRAM",
        "speculative-num-draft-tokens": draft.settings["tokens"],
        "speculative-ngram-max-trie-depth": draft.settings["depth"],
        "speculative-ngram-min-bfs-breadth": draft.settings["min"],
        "speculative-ngram-max-bfs-breadth": draft.settings["max"],
        "speculative-ngram-match-type": "PROB" if isinstance(draft, SglangFrequentNgram) else "BFS",
    }
    return ask.settings(ENGINE, best, options, _served(ask, options), [remark, NGRAM.does, ask.requests])


def _served(ask: Ask, options: dict[str, Any]) -> str:
    """The server's command line."""
    return command(["python", "-m", "sglang.launch_server", "--model-path", ask.target.source], options)


def _size(ask: Ask, shape: Shape) -> dict[str, Any]:
    """Steps, top and tokens; a head that drafts in one pass has the last alone."""
    top = shape.top if isinstance(shape, _GrownTree | Grown) else 1
    if ask.draft.kind == "dspark":
        return {"speculative-dspark-block-size": shape.nodes}
    steps = {} if ask.parallel else {"speculative-num-steps": shape.depth, "speculative-eagle-topk": top}
    return {**steps, "speculative-num-draft-tokens": shape.nodes + 1}


def _tree(ask: Ask) -> Prediction | None:
    """The grown tree that was measured, else the fastest tree of first choices, with the passes that growing takes."""
    trace, cost, rule = ask.draft.trace, ask.draft.cost, TopKMatch()
    for grown in grown_rules(trace):
        with suppress(SettingError):  # latencies of other passes
            return predict(trace, grown, measured_shape(trace), cost, prefill_emits_token=ask.prefill_emits_token)
    if ask.greedy or rule.missing_columns(trace.columns):
        return None
    wanted = fastest_tree(trace, rule, cost, ask.nodes, drafted_as=_GrownTree)
    return predict(trace, rule, wanted, cost, prefill_emits_token=ask.prefill_emits_token) if wanted else None


def _remarks(ask: Ask, best: Prediction) -> list[str]:
    of_kind = {"dflash": [DFLASH], "dspark": [DSPARK], "domino": [DFLASH, DOMINO]}.get(ask.draft.kind, [HEADS])
    heads = [fact.does for fact in of_kind] if ask.head else []
    types = [*heads, *ask.smaller_block(best), *([DTYPE.does] if ask.types_differ else [])]
    grown = [GROWN.does] if isinstance(best.shape, _GrownTree | Grown) else []
    if ask.greedy:
        alone = "A greedy trace ranks no second choices: a tree is predicted where it was measured with --grow."
        return [MATCHED.as_rule, *(grown or [alone]), ask.requests, *types]
    if best.rule.name == TOKEN:
        return [*([] if DSPARK in of_kind else [SAMPLED.as_rule]), ask.requests, *types]
    return [FIRST_CHOICES.as_rule, GREEDY.does, *([] if ask.head else [REFUSED.does]), *grown, ask.requests, *types]


ENGINE = ServingEngine(
    "sglang",
    "0.5.23",
    (*_VERIFYING, *_DRAFTING),
    methods=METHODS,
    makers=(_with_draft, _with_ngrams),
    lossy=(("thresholds", "--speculative-accept-threshold-single {single} --speculative-accept-threshold-acc {acc}"),),
)
