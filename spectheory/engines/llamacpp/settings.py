"""Settings of llama.cpp's server with a draft model or a head, which drafts first choices."""

from __future__ import annotations

from typing import Any

from spectheory.deployment.candidates import DRAFT_MODEL
from spectheory.deployment.engines import ARGMAX, Ask, EngineSettings, Fact, ModelSource, ServingEngine, command
from spectheory.drafting import Chain
from spectheory.drafting.stopping import TopBelow
from spectheory.ngrams import NgramDraft
from spectheory.ngrams.llamacpp import NgramMod
from spectheory.prediction.ngrams import ngram_rules
from spectheory.prediction.prediction import planned
from spectheory.verification import ArgmaxDraft, CopiedFirst, GreedyMatch

FIRST_CHOICES = Fact(
    "--spec-type draft-simple",
    "The draft's first choices are drafted, and accepted where the target draws the same tokens (rule argmax; at "
    "temperature 0 greedy matching).",
    "run: calls counted as expected, k = 1, 3, 5, also at temperature 0",
)
LENGTH = Fact(
    "--spec-draft-n-max K --spec-draft-p-min 0", "Drafts K tokens in each call.", "documentation: 3 and 0 by default"
)
P_MIN = Fact(
    "--spec-draft-p-min",
    "Above 0 it stops before a token whose largest q is below it (top<). That q is over the draft's 10 most probable "
    "tokens, at temperature 1 whatever the target's: a little larger than the trace's, so it stops later and the "
    "prediction is an estimate.",
    "source of build 11434: `common_speculative_impl_draft_simple`; not run",
)
N_MIN = Fact(
    "--spec-draft-n-min",
    "A call that drafted fewer tokens drafts none: not predicted here.",
    "source of build 11434; not run",
)
SAMPLED = Fact(
    "--spec-draft-sampling probabilistic",
    "Token verification of sampled drafts, whose pmf is cut to the 10 most probable tokens: not predicted here.",
    "run: calls as expected of the cut pmf, 8 to 15 standard errors from those of the whole; in builds from 11368 "
    "(ggml-org/llama.cpp#27694)",
)
DEFAULTS = Fact(
    "--temp --top-k --top-p --min-p",
    "Left open, the server samples at temperature 0.8 with top-k 40, top-p 0.95 and min-p 0.05; requests may ask for "
    "others.",
    "documentation",
)
ORDER = Fact(
    "--samplers",
    "The server applies top-p and min-p before the temperature, the trace after it: the acceptance differs from the "
    "prediction.",
    "documentation: the default order of samplers; not run",
)
GGUF = Fact("-m, -md", "Reads GGUF files: convert both models first, in the type they were measured in.", "run")
HEADS = Fact(
    "--spec-type draft-eagle3, draft-mtp, draft-dflash or draft-dspark",
    "Heads by kind, as GGUF files that are converted with the target's folder; there is none for P-EAGLE and Domino. "
    "MTP modules of the target's checkpoint are in its own file. They are taken to draft first choices like a draft "
    "model; DFlash and DSpark draft as many slots as n-max needs.",
    "documentation, ggml-org/llama.cpp#18039, #22673, #22105, #25173, #25589; not run",
)
NGRAMS = Fact(
    "--spec-type ngram-simple, ngram-map-k, ngram-map-k4v, ngram-mod or ngram-cache",
    "Copies by token ids, without a draft model. A type takes its own lengths; --spec-draft-n-max does not limit it.",
    "source of build 11434: `common/speculative.cpp`, `ngram-map.cpp`, `ngram-mod.cpp`, `ngram-cache.cpp`; its "
    "functions run by a test",
)
NGRAM_KEYS = Fact(
    "--spec-type ngram-map-k",
    "A key drafts no more tokens than were accepted when it last drafted: after one refused draft it never drafts "
    "again in this request.",
    NGRAMS.evidence,
)
NGRAM_CHUNKS = Fact(
    "--spec-type ngram-cache",
    "Counts an n-gram and the token after it only where one call brought both, so it learns the prompt and little of "
    "the output; a slot that served a longer text before learns nothing of a shorter one. It drafts 8 tokens at most.",
    NGRAMS.evidence,
)
BOTH = Fact(
    "--spec-type ngram-simple,draft-simple",
    "N-gram drafts come first, and the draft model or head drafts where they find nothing. Exact for ngram-simple; the "
    "other types remember calls, which are then also the draft's: an estimate.",
    "source of build 11434: `common_speculative_init`, `common_speculative_draft`; not run",
)
METHODS = (
    (DRAFT_MODEL, "draft-simple"),
    ("eagle3", "draft-eagle3"),
    ("mtp", "draft-mtp"),
    ("dflash", "draft-dflash"),
    ("dspark", "draft-dspark"),
)
"""The type of each kind of draft."""
_FACTS = (
    FIRST_CHOICES,
    LENGTH,
    P_MIN,
    N_MIN,
    SAMPLED,
    HEADS,
    NGRAMS,
    NGRAM_KEYS,
    NGRAM_CHUNKS,
    BOTH,
    DEFAULTS,
    ORDER,
    GGUF,
)


def _with_draft(ask: Ask) -> EngineSettings | None:
    """The fastest chain of the draft's first choices."""
    sampling = ask.sampling
    plain = ask.greedy or (sampling.temperature == 1 and not sampling.truncates)
    best = ask.drafted(ARGMAX, stop=TopBelow if plain else None)
    if best is None:
        return None
    options: dict[str, Any] = {
        "spec-type": ENGINE.method(ask.draft.kind),
        "spec-draft-n-max": best.shape.nodes,
        "spec-draft-p-min": best.shape.stop.threshold if best.shape.stop else 0,
        **_sampled(ask),
    }
    paste = command(_both(ask), options)
    remarks = [FIRST_CHOICES.as_rule, *([HEADS.does] if ask.head else []), *ask.smaller_block(best), GGUF.does]
    remarks += [P_MIN.does] if best.shape.stop else []
    if not ask.greedy:
        remarks += [f"With spec-draft-sampling probabilistic: {SAMPLED.clause}", DEFAULTS.does]
    if (sampling.top_p or sampling.min_p) and sampling.temperature not in (0, 1):
        remarks.append(ORDER.does)
    return ask.settings(ENGINE, best, options, paste, remarks)


def _sampled(ask: Ask) -> dict[str, Any]:
    """How the target draws."""
    sampling = ask.sampling
    cuts = {"top-k": sampling.top_k or 0, "top-p": sampling.top_p or 1.0, "min-p": sampling.min_p or 0}
    return {"temp": sampling.temperature, **({} if ask.greedy else cuts)}


def _with_ngrams(ask: Ask) -> EngineSettings | None:
    """The fastest n-gram draft that the trace has replayed."""
    best, draft, remark = ask.lookup(ENGINE.name)
    if best is None or draft is None:
        return None
    options = {"spec-type": draft.name, **_sizes(draft), **_sampled(ask)}
    paste = command(["llama-server", "-m", _file(ask.target)], options)
    facts = [NGRAMS, *(each for each in (NGRAM_KEYS, NGRAM_CHUNKS) if each.setting.endswith(draft.name)), GGUF]
    return ask.settings(ENGINE, best, options, paste, [remark, *(each.does for each in facts)])


def _with_both(ask: Ask) -> EngineSettings | None:
    """The fastest n-gram draft before the draft model or head, both of one length."""
    trace, judge = ask.draft.trace, GreedyMatch() if ask.greedy else ArgmaxDraft()
    lookups = [each for each in ngram_rules(trace) if each.copies.engine == ENGINE.name and each.length in ask.lengths]
    if not lookups or judge.missing_columns(trace.columns):
        return None
    shapes = [Chain(k) for k in ask.lengths]
    plan = planned(
        trace,
        ask.draft.cost,
        [CopiedFirst(lookup, judge) for lookup in lookups],
        shapes,
        prefill_emits_token=ask.prefill_emits_token,
    )
    best = plan.best
    assert isinstance(best.rule, CopiedFirst)
    draft = best.rule.copied.copies
    assert draft is not None
    options = {
        "spec-type": f"{draft.name},{ENGINE.method(ask.draft.kind)}",
        **_sizes(draft),
        "spec-draft-n-max": best.shape.nodes,
        "spec-draft-p-min": 0,
        **_sampled(ask),
    }
    paste = command(_both(ask), options)
    return ask.settings(ENGINE, best, options, paste, [BOTH.as_rule, FIRST_CHOICES.does, NGRAMS.does, GGUF.does])


def _sizes(draft: NgramDraft) -> dict[str, int | float]:
    """The settings of an n-gram draft."""
    words = {"n": "size-n", "m": "size-m", "hits": "min-hits", "min": "n-min", "max": "n-max"}
    if draft.name == NgramMod.name:
        words["n"] = "n-match"
    return {f"spec-{draft.name}-{words[name]}": number for name, number in draft.settings.items()}


def _both(ask: Ask) -> list[str]:
    """The server with both models; MTP modules of the target's checkpoint are in its own file."""
    return ["llama-server", "-m", _file(ask.target), *([] if ask.native else ["-md", _file(ask.drafter)])]


def _file(model: ModelSource) -> str:
    """A model's GGUF file."""
    return f"{model.name.rpartition('/')[2]}.gguf"


ENGINE = ServingEngine(
    "llama.cpp",
    "build 11434",
    _FACTS,
    takes_min_p=True,
    methods=METHODS,
    stops=(TopBelow.name,),
    makers=(_with_draft, _with_ngrams, _with_both),
)
