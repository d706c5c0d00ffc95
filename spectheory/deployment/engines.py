"""Ready-to-paste settings of serving engines, each under the verification rule that the engine really uses."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spectheory.checks import choice, instance, several
from spectheory.cost.head_config import NATIVE
from spectheory.deployment.candidates import (
    COMMON,
    DO_NOT,
    DRAFT_MODEL,
    Candidate,
    Draft,
    all_drafts,
    all_stops,
)
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, StoppingRule
from spectheory.drafting.tree import at_least_one
from spectheory.engines import of_engines
from spectheory.errors import SettingError, argument
from spectheory.ngrams import NgramDraft
from spectheory.prediction import Plan, Prediction
from spectheory.prediction.ngrams import ngram_rules
from spectheory.prediction.plan_answer import measured_nodes
from spectheory.prediction.prediction import planned
from spectheory.prediction.shape_calls import by_parallel_head
from spectheory.trace import SOURCES, Trace
from spectheory.trace.record import a_trace
from spectheory.verification import (
    PATH_RULES,
    ArgmaxDraft,
    BlockVerification,
    GreedyMatch,
    LookupMatch,
    LossyRule,
    TokenVerification,
)
from spectheory.verification.by_start import within
from spectheory.verification.lookup import LOOKUP_NGRAM


@dataclass(frozen=True)
class Fact:
    """What a setting does, in a sentence, and the evidence: a run with the built-in pair, source or documentation."""

    setting: str
    does: str
    evidence: str

    @property
    def clause(self) -> str:
        """The sentence as a clause, for the end of another sentence."""
        return self.does[0].lower() + self.does[1:]

    @property
    def as_rule(self) -> str:
        """The sentence as a verification rule."""
        return f"Rule: {self.clause}"


@dataclass(frozen=True)
class ServingEngine:
    """A serving engine, what its settings do in `version`, and the functions that make them.

    `takes_min_p`: whether min-p applies where drafts are verified; if not, there are no settings for a trace with
    min-p. `methods`: kinds of drafts that it has settings for, each with the engine's name for it. `stops`: kinds of
    stopping rules that it has. `makers` make settings with a draft, and with what is copied. `lossy`: rules that change
    the text by name, each with the option to paste, in which the rule's numbers are filled in.
    """

    name: str
    version: str
    facts: tuple[Fact, ...]
    takes_min_p: bool = False
    methods: tuple[tuple[str, str], ...] = ((DRAFT_MODEL, ""),)
    stops: tuple[str, ...] = ()
    makers: tuple[Callable[[Ask], EngineSettings | None], ...] = ()
    lossy: tuple[tuple[str, str], ...] = ()

    def method(self, kind: str) -> str | None:
        """What the engine calls drafts of a kind; None if it has no settings for them."""
        return dict(self.methods).get(kind)


def facts_table(engines: Iterable[ServingEngine]) -> str:
    """The facts of some engines as a Markdown table.

    Examples
    --------
    >>> print(facts_table([ServingEngine("toy", "1.0", (Fact("--k N", "Drafts N tokens.", "run"),))]))
    | engine | setting | what it does | seen |
    |---|---|---|---|
    | toy 1.0 | `--k N` | Drafts N tokens. | run |
    """
    rows = ["| engine | setting | what it does | seen |", "|---|---|---|---|"]
    for engine in engines:
        for number, fact in enumerate(engine.facts):
            name = "" if number else f"{engine.name} {engine.version}"
            rows.append(f"| {name} | `{fact.setting}` | {fact.does} | {fact.evidence} |")
    return "\n".join(rows)


_UNKNOWN = "/path/to"
"""Placeholder of a path that a trace does not record."""


@dataclass(frozen=True)
class ModelSource:
    """A model as it was loaded: `name` in the trace, folder or hub id, commit of a hub model, dtype of the weights."""

    name: str
    source: str
    revision: str | None = None
    dtype: str | None = None

    @classmethod
    def of(cls, draft: Draft, role: str) -> ModelSource:
        """The ``target`` or the ``draft`` of a pair. Older traces record only a hub id or a folder's name."""
        name = str(draft.fact(role, "name") or role)
        revision, dtype = draft.fact(role, "revision"), draft.fact(role, "dtype")
        on_hub = "/" in name or revision is not None
        source = draft.fact(SOURCES, role) or (name if on_hub else f"{_UNKNOWN}/{name}")
        return cls(name, str(source), revision, dtype)

    @property
    def known(self) -> bool:
        """Whether the trace says where it was loaded from."""
        return not self.source.startswith(f"{_UNKNOWN}/")


TOKEN, BLOCK, ARGMAX, GREEDY, LOOKUP = (
    rule.name for rule in (TokenVerification, BlockVerification, ArgmaxDraft, GreedyMatch, LookupMatch)
)
"""The rules of chains that engines have."""

LOOKUP_ESTIMATE = (
    "Rule: prompt lookup, which needs no draft model. An estimate: the prediction copies from the latest occurrence of "
    f"the last {LOOKUP_NGRAM} tokens or fewer, and only what it finds."
)


@dataclass(frozen=True)
class EngineSettings:
    """Settings of one engine for one draft, with the prediction under the engine's own verification rule.

    `version` is the engine's version that the settings are for; `paste` is a command line or code with the `options`;
    `remarks` state the rule and what is uncertain, one sentence each. `needs` is what the line rests on: k
    by the number of sequences, where it varies, and what the engine must run.
    """

    engine: str
    version: str
    candidate: Candidate
    options: Mapping[str, Any]
    paste: str
    remarks: tuple[str, ...]
    needs: str = ""

    @property
    def pays(self) -> bool:
        """Whether the best value of the speed-up is above that of plain decoding."""
        return self.candidate.verdict != DO_NOT


@dataclass(frozen=True)
class Ask:
    """A draft for which settings are requested, its chains under the rules that engines have, and the largest tree."""

    draft: Draft
    chains: Plan
    nodes: int
    prefill_emits_token: bool = False

    @classmethod
    def about(
        cls,
        draft: Draft,
        lengths: Sequence[int],
        nodes: int,
        stops: Sequence[StoppingRule] = (),
        *,
        prefill_emits_token: bool = False,
    ) -> Ask:
        """Predict the chains of the given lengths, and those that stopping rules end."""
        predicted = partial(planned, draft.trace, draft.cost, prefill_emits_token=prefill_emits_token)
        names = [GREEDY, TOKEN] if (draft.trace.sampling or Sampling()).temperature == 0 else [TOKEN, BLOCK, ARGMAX]
        asked = [PATH_RULES[name] for name in (*names, LOOKUP)]
        known = [rule for rule in asked if not rule.missing_columns(draft.trace.columns)]
        rules = [*known, *ngram_rules(draft.trace)]
        shapes = [Chain(k) for k in lengths]
        chains = predicted(rules, shapes)
        if stops:
            shapes = [Chain(k, stop=stop) for stop in stops for k in lengths]
            ended = [rule for rule in rules if rule.uses_draft and rule.name != BLOCK]
            chains += predicted(ended, shapes)
        return cls(draft, chains, nodes, prefill_emits_token)

    def fastest(
        self, *rules: str, most: int | None = None, stop: type[StoppingRule] | None = None
    ) -> Prediction | None:
        """The fastest chain of at most `most` drafts under one of the rules (the first in case of a tie); None if the
        trace predicts none. Of chains that the draft ends those whose stopping rule is a `stop` take part.
        """
        of_rules = [p for rule in rules for p in self.chains.predictions if p.rule.name == rule]
        known = [p for p in of_rules if most is None or p.shape.nodes <= most]
        known = [p for p in known if not p.shape.stop or (stop and isinstance(p.shape.stop, stop))]
        return max(known, key=lambda p: p.gain) if known else None

    def lookup(
        self, engine: str, kind: type[NgramDraft] = NgramDraft
    ) -> tuple[Prediction | None, NgramDraft | None, str]:
        """The fastest of the engine's n-gram drafts of a kind that the trace has replayed, or prompt lookup as an
        estimate of them; its settings, and a remark that says which.
        """
        known = {rule.name: rule.copies for rule in ngram_rules(self.draft.trace)}
        rules = [name for name, draft in known.items() if draft.engine == engine and isinstance(draft, kind)]
        best = self.fastest(*rules)
        if best is None:
            return self.fastest(LOOKUP), None, LOOKUP_ESTIMATE
        draft = known[best.rule.name]
        return best, draft, f"Rule: {draft}, which needs no draft model; replayed on the texts as in {draft.source}."

    def drafted(
        self, *rules: str, most: int | None = None, stop: type[StoppingRule] | None = None
    ) -> Prediction | None:
        """The fastest chain under one of the rules; at temperature 0 of greedy matching or, equal to it, token."""
        if self.greedy:
            return self.fastest(GREEDY, most=most, stop=stop) or self.fastest(TOKEN, most=most, stop=stop)
        return self.fastest(*rules, most=most, stop=stop)

    @property
    def longest(self) -> int:
        """Most drafts of the chains."""
        return max(self.lengths)

    @property
    def lengths(self) -> list[int]:
        """The lengths of the chains."""
        return sorted({prediction.shape.nodes for prediction in self.chains.predictions})

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn."""
        return self.draft.trace.sampling or Sampling()

    @property
    def min_p(self) -> bool:
        """Whether min-p may cut tokens."""
        return self.sampling.temperature > 0 and bool(self.sampling.min_p)

    @property
    def greedy(self) -> bool:
        """Whether the target decodes greedily."""
        return self.sampling.temperature == 0

    @property
    def requests(self) -> str:
        """A remark with the sampling settings of requests, for servers without them on the command line."""
        known = {"top_k": self.sampling.top_k, "top_p": self.sampling.top_p} if not self.greedy else {}
        asked = {"temperature": self.sampling.temperature, **{name: value for name, value in known.items() if value}}
        words = ", ".join(f"{name} {value:g}" for name, value in asked.items())
        return f"Send requests with {words}: the prediction is for these."

    @property
    def cut(self) -> bool:
        """Whether tokens are cut by top-k or top-p."""
        return bool(self.sampling.top_k or self.sampling.top_p)

    @property
    def target(self) -> ModelSource:
        """The target as it was loaded."""
        return ModelSource.of(self.draft, "target")

    @property
    def drafter(self) -> ModelSource:
        """The draft model as it was loaded."""
        return ModelSource.of(self.draft, "draft")

    @property
    def head(self) -> bool:
        """Whether the draft is a head that reads the target's hidden states."""
        return self.draft.kind not in (DRAFT_MODEL, COMMON)

    @property
    def common(self) -> bool:
        """Whether the draft has another tokenizer and drafts the tokens in common."""
        return self.draft.kind == COMMON

    def read_otherwise(self, outside: str) -> list[str]:
        """A remark where an engine's draft reads the tokens that it lacks in another way than the trace's."""
        if not self.common or self.draft.fact("draft", "outside") == outside:
            return []
        return [f"An estimate: the engine's draft reads what it lacks otherwise. Measure with --outside {outside}."]

    @property
    def native(self) -> bool:
        """Whether the draft is the MTP modules of the target's own checkpoint, which engines read with the target."""
        return self.draft.kind == NATIVE and self.drafter.source == self.target.source

    @property
    def parallel(self) -> bool:
        """Whether the draft makes all tokens of a call in one pass."""
        return by_parallel_head(self.draft.trace.provenance)

    @property
    def marginal(self) -> bool:
        """Whether all tokens of a call are drafted at once, none by those before it."""
        return self.parallel and self.draft.kind not in ("dspark", "domino")

    def smaller_block(self, best: Prediction) -> list[str]:
        """A remark where an engine drafts a block of fewer slots than the trace's, which has other logits."""
        block, deepest = (self.draft.fact("draft", name) for name in ("block", "deepest"))
        if not block or best.shape.nodes == deepest:
            return []
        slots = block - deepest + best.shape.nodes
        return [
            f"An estimate: the trace is of blocks of {block} slots, and the engine drafts {slots} for k = "
            f"{best.shape.nodes}. Measure with --block {slots}."
        ]

    @property
    def types_differ(self) -> bool:
        """Whether the models were measured in different types."""
        types = {self.target.dtype, self.drafter.dtype} - {None}
        return len(types) == 2

    def settings(
        self, engine: ServingEngine, best: Prediction, options: Mapping[str, Any], paste: str, remarks: Sequence[str]
    ) -> EngineSettings:
        """The settings of an engine; a remark names the paths to fill in."""
        read = [self.target, self.drafter] if best.rule.uses_draft else [self.target]
        unknown = [model.source for model in read if model.source in paste and not model.known]
        them = "it" if len(unknown) == 1 else "them"
        fill = [f"Replace {' and '.join(unknown)}: the trace does not record {them}."] if unknown else []
        draft = self.draft if best.rule.uses_draft else self.draft.unread
        return EngineSettings(engine.name, engine.version, Candidate(draft, best), options, paste, (*remarks, *fill))


def command(words: Sequence[str], options: Mapping[str, Any]) -> str:
    """A command line of long options; True makes a flag."""
    line = list(words)
    for name, value in options.items():
        line += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return shlex.join(line)


def arguments(options: Mapping[str, Any]) -> str:
    """Settings as keyword arguments."""
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def serving_engines() -> tuple[ServingEngine, ...]:
    """Every engine that settings are made for."""
    return tuple(of_engines("settings", "ENGINE"))


def lossy_settings(rules: Iterable[LossyRule]) -> list[str]:
    """What to paste for each rule that changes the text, a sentence that says so; no engine takes a weight of 0.

    Examples
    --------
    >>> from spectheory.verification import BiasedVerification
    >>> lossy_settings([BiasedVerification(0.25)])
    ['ensemble:0.75 changes the text. transformers: assistant_ensemble_weight=0.75']
    """
    lines = []
    for rule in dict.fromkeys(rules):
        written = {name: f"{value:g}" for name, value in rule.settings.items()}
        options = {engine.name: dict(engine.lossy).get(type(rule).name) for engine in serving_engines()}
        taken = all(rule.settings.values())
        pasted = [f"{name}: {option.format(**written)}" for name, option in options.items() if option and taken]
        lines.append(f"{rule.name} changes the text. {'; '.join(pasted) or 'No settings here for it.'}")
    return lines


def named_engines(names: Sequence[str] | None) -> tuple[ServingEngine, ...]:
    """The engines of some names; without names, every engine."""
    known = {engine.name: engine for engine in serving_engines()}
    asked = known if names is None else several(argument("engines", "--engine"), names, remedy="name engines in a list")
    for name in asked:
        choice(argument("engine"), name, known, remedy="settings are made for these")
    return tuple(known[name] for name in dict.fromkeys(asked))


def check_one_names_rules(rules: object, engines: Sequence[str] | None) -> None:
    """Refuse rules beside engines, which have their own."""
    if rules is not None and engines is not None:
        raise SettingError(
            f"{argument('rules', '--rule')} and {argument('engines', '--engine')} are both given",
            limit="an engine's settings are for the fastest rule that it runs",
            remedy="leave one out",
        )


def engine_settings(
    drafts: Sequence[Draft],
    *,
    k_max: int = 16,
    nodes: int = 32,
    stops: Sequence[StoppingRule] = (),
    engines: Sequence[str] | None = None,
    prefill_emits_token: bool = False,
) -> list[EngineSettings]:
    """The fastest settings of each engine over all drafts for one target, under the engine's own rule.

    `engines` are names, without which it is every engine. `k_max` limits chains and `nodes` trees; `stops` are tried by
    engines that have the stopping rule. An engine is left out if the trace does not predict its rule (recorded lengths
    are of no rule), or if it does not support the trace's filters.
    With a cost model that depends on the batch, vLLM's settings include the best length for every batch size. Prompt
    lookup and n-gram drafts come last where traces have them: they need no draft model and use the first such trace (as
    in :func:`~spectheory.deployment.plan`).

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 2)
    >>> [s.engine for s in engine_settings([Draft("small", trace, ConstantRatio(0.1))])]
    ['transformers', 'vllm', 'onnxruntime']
    """
    stops, asked = all_stops(stops), named_engines(engines)
    k_max, nodes = at_least_one("k_max", k_max), at_least_one("nodes", nodes)
    by_engine: dict[tuple[str, str], EngineSettings] = {}
    for draft in (each for each in all_drafts(drafts) if not each.trace.recorded):
        longest = within(draft.trace.columns, measured_nodes(draft.cost, k_max))
        largest = measured_nodes(draft.cost, nodes)
        ask = Ask.about(draft, range(1, longest + 1), largest, stops, prefill_emits_token=prefill_emits_token)
        for settings in _of_engines(ask, asked):
            rule = settings.candidate.prediction.rule
            copied = "" if rule.uses_draft else rule.name
            before = by_engine.setdefault((copied, settings.engine), settings)
            if not copied and settings.candidate.speedup.best > before.candidate.speedup.best:
                by_engine[copied, settings.engine] = settings
    return [settings for last in (False, True) for (copied, _), settings in by_engine.items() if bool(copied) is last]


def _of_engines(ask: Ask, engines: Sequence[ServingEngine]) -> Iterator[EngineSettings]:
    """The settings of every engine that takes the sampling; with the draft where it has the draft's kind."""
    for engine in engines:
        if ask.min_p and not engine.takes_min_p:
            continue
        for settings in filter(None, (make(ask) for make in engine.makers)):
            if engine.method(ask.draft.kind) is not None or not settings.candidate.prediction.rule.uses_draft:
                yield settings


def without_method(drafts: Sequence[Draft]) -> list[str]:
    """Which engines have no settings for which kinds of drafts, a sentence for each kind.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.trace import Trace
    >>> trace = Trace.from_log_probabilities([([-1.0], [-1.0])], provenance={"draft": {"kind": "dflash"}})
    >>> print(without_method([Draft("head", trace, ConstantRatio(0.1))])[0])
    No settings here for dflash drafts: transformers, openvino, onnxruntime.
    """
    lines = []
    for kind in dict.fromkeys(draft.kind for draft in all_drafts(drafts)):
        if missing := [engine.name for engine in serving_engines() if engine.method(kind) is None]:
            lines.append(f"No settings here for {kind} drafts: {', '.join(missing)}.")
    return lines


def without_stop(stops: Sequence[StoppingRule]) -> list[str]:
    """Which engines lack which stopping rules, a sentence for each kind.

    Examples
    --------
    >>> from spectheory.drafting import read_stop
    >>> print(without_stop([read_stop("top<0.6")])[0])
    Only llama.cpp stops by top; settings of other engines have a fixed length.
    """
    lines = []
    for kind in dict.fromkeys(stop.name for stop in all_stops(stops)):
        having = " and ".join(engine.name for engine in serving_engines() if kind in engine.stops)
        who = (
            f"Only {having} stops by {kind}; settings of other"
            if having
            else f"No engine stops by {kind}: settings of all"
        )
        lines.append(f"{who} engines have a fixed length.")
    return lines


def deployable(plan: Plan, trace: Trace, engines: Sequence[str] | None = None) -> tuple[EngineSettings, ...]:
    """The fastest setting of each engine for the trace of a plan, with its costs: the fastest engine first.

    `engines` are names of :func:`~spectheory.deployment.serving_engines`; without, every one. Chains are as long as
    those of the plan, and end as its stopping rules say. Of equally fast engines those come first whose setting is one
    line to paste. Empty without costs, and where nothing says what engines would accept: recorded lengths, and lists of
    log-probabilities.

    Examples
    --------
    >>> from spectheory.cost import ConstantRatio
    >>> from spectheory.prediction import plan
    >>> trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40), ([-1.0] * 40, [-1.1] * 40)])
    >>> [each.engine for each in deployable(plan(trace, ConstantRatio(0.1)), trace, ["transformers", "vllm"])]
    ['vllm', 'transformers']
    """
    instance("plan", plan, Plan, remedy="spectheory.plan makes one")
    a_trace(trace)
    named_engines(engines)
    if not plan.timed or plan.cost is None or trace.recorded or plan.best.certified:
        return ()
    longest = max(prediction.shape.nodes for prediction in plan.predictions)
    draft = Draft("draft", trace, plan.cost)
    stops = list(dict.fromkeys(each.shape.stop for each in plan.predictions if each.shape.stop))
    settings = engine_settings(
        [draft],
        k_max=longest,
        nodes=longest,
        stops=stops,
        engines=engines,
        prefill_emits_token=plan.prefill_emits_token,
    )
    return fastest_of_each(settings)


def fastest_of_each(settings: Sequence[EngineSettings]) -> tuple[EngineSettings, ...]:
    """The fastest of each engine's settings, the fastest engine first; of equally fast ones those that are one line."""
    best: dict[str, EngineSettings] = {}
    for each in settings:
        known = best.get(each.engine)
        if known is None or each.candidate.speedup.best > known.candidate.speedup.best:
            best[each.engine] = each
    return tuple(sorted(best.values(), key=lambda each: (-each.candidate.speedup.best, "\n" in each.paste)))
