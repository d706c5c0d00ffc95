"""Plans with heads: kinds side by side, each engine's method for them, and drafts that cannot be compared."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spectheory.cli import main
from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft, EngineSettings, engine_settings, serving_engines, without_method
from spectheory.deployment.ranking import _speedup, rank_drafts
from spectheory.drafting import Grown
from spectheory.errors import SettingError
from spectheory.intervals import Interval
from spectheory.prediction import predict
from spectheory.prediction.best_tree import BestTree
from spectheory.trace import GIVEN_TEXT, SAMPLED_TEXT, Trace
from spectheory.verification import PATH_RULES, RecursiveRejection
from tests.made_up import each
from tests.toy_drafts import table, text_trace

GROWN = Grown(6, 2, 3)
METHODS = {
    "draft model": {"vllm": "draft_model", "sglang": "STANDALONE", "llama.cpp": "draft-simple"},
    "eagle": {"vllm": "eagle", "sglang": "EAGLE"},
    "eagle3": {"vllm": "eagle3", "sglang": "EAGLE3", "llama.cpp": "draft-eagle3"},
    "peagle": {"vllm": "eagle3"},
    "dflash": {"vllm": "dflash", "sglang": "DFLASH", "llama.cpp": "draft-dflash"},
    "mtp": {"vllm": "mtp", "sglang": "NEXTN", "llama.cpp": "draft-mtp"},
    "dspark": {"vllm": "dspark", "sglang": "DSPARK", "llama.cpp": "draft-dspark"},
    "domino": {"sglang": "DFLASH"},
}
BLOCKS = ("dflash", "dspark", "domino")
CLASSES = {
    "eagle3": "Eagle3DecodingConfig",
    "dflash": "DFlashDecodingConfig",
    "mtp": "MTPDecodingConfig",
    "dspark": "DSparkDecodingConfig",
}


def head(kind: str, seed: int = 4, *, grown: bool = False, **settings: Any) -> Trace:
    """A trace of a draft of this kind; text_trace is one by position, which a head of one draft is too."""
    trace = text_trace(seed, 0.7, **settings)
    provenance: dict[str, Any] = {**trace.provenance, "sources": {"target": "/large", "draft": "/head"}}
    provenance["draft"] = {**provenance["draft"], "parallel": kind in (*BLOCKS, "peagle")}
    if kind != "draft model":
        provenance["draft"]["kind"] = kind
    columns = dict(trace.columns)
    if grown:
        columns["grown_match"] = np.random.default_rng(seed).integers(0, 4, len(trace))
        provenance["settings"] = {**provenance["settings"], "grown": GROWN.size}
    return Trace(columns, trace.texts, provenance)


def of_engines(trace: Trace, k_max: int = 4) -> dict[str, EngineSettings]:
    every = engine_settings([Draft("x", trace, table(draft=0.1))], k_max=k_max, nodes=6)
    return {settings.engine: settings for settings in every if settings.candidate.prediction.rule.uses_draft}


def test_a_tree_of_a_head_costs_what_its_prediction_says() -> None:
    """Equal prompts, so that all parts have one tree: the size is chosen by the speed-up that is then predicted.
    Control: a draft model's first pass is on two tokens at most.
    """
    trace = text_trace(4, 0.7, texts=1)
    columns = {name: np.concatenate([values] * 8) for name, values in trace.columns.items()}
    texts = tuple(replace(trace.texts[0], id=str(i)) for i in range(8))
    timed = replace(table(), draft={m: Interval.exact(0.1 * m) for m in (1, 2, 65)})
    speedups = []
    for kind in ({"kind": "eagle3"}, {}):
        cost, wanted = replace(timed, provenance={"draft": kind}), BestTree(4, 3)
        rule = RecursiveRejection()
        searched = _speedup(Trace(columns, texts), rule, cost, wanted)
        predicted = predict(Trace(columns, texts), rule, wanted, cost).speedup
        assert predicted is not None
        assert searched == pytest.approx(predicted.best, rel=1e-9)
        speedups.append(searched)
    assert speedups[1] > 1.005 * speedups[0]


@each("kind", METHODS)
@each("temperature", [0.0, 1.0])
def test_each_engine_names_the_method(kind: str, temperature: float) -> None:
    engines = of_engines(head(kind, temperature=temperature))
    named = {
        "vllm": lambda options: options["method"],
        "sglang": lambda options: options["speculative-algorithm"],
        "llama.cpp": lambda options: options["spec-type"],
    }
    assert {name: named[name](engines[name].options) for name in named if name in engines} == METHODS[kind]
    if "vllm" not in METHODS[kind]:
        return
    words = shlex.split(engines["vllm"].paste)
    assert json.loads(words[-1]) == engines["vllm"].options
    assert engines["vllm"].options["model"] == "/head"
    assert engines["vllm"].options.get("parallel_drafting", False) == (kind == "peagle")
    missing = {engine.name for engine in serving_engines()} - {"openvino"} - set(engines)
    said = without_method([Draft("x", head(kind), ConstantRatio(0.1))])
    assert (said == []) == (kind == "draft model")
    assert all(f"for {kind} drafts" in said[0] and name in said[0] for name in missing if said)


def test_modules_of_the_targets_checkpoint_have_no_path_of_their_own() -> None:
    """SGLang takes the target's; another folder's modules are named as any head."""
    trace = head("mtp")
    own = replace(trace, provenance={**trace.provenance, "sources": {"target": "/large", "draft": "/large"}})
    paste = {name: settings.paste for name, settings in of_engines(own).items()}
    assert "model" not in of_engines(own)["vllm"].options
    assert "speculative_model" not in paste["tensorrt-llm"]
    assert "-md" not in shlex.split(paste["llama.cpp"])
    assert "--speculative-draft-model-path /large" in paste["sglang"]
    other = {name: settings.paste for name, settings in of_engines(trace).items()}
    assert all("/head" in other[name] for name in ("vllm", "sglang", "tensorrt-llm"))
    assert "-md" in shlex.split(other["llama.cpp"])


def test_a_parallel_head_has_no_steps_and_first_choices() -> None:
    """DFlash drafts a block; sampled marginals are not pasted, as no engine was seen to draft them."""
    engines = of_engines(head("dflash"))
    assert {settings.candidate.prediction.rule.name for settings in engines.values()} == {"argmax"}
    options, shape = engines["sglang"].options, engines["sglang"].candidate.prediction.shape
    assert options["speculative-num-draft-tokens"] == shape.nodes + 1
    assert not {"speculative-num-steps", "speculative-eagle-topk"} & set(options)
    assert engines["vllm"].options["draft_sample_method"] == "greedy"
    assert any("one pass" in line for line in engines["vllm"].remarks)


def test_a_dspark_head_is_sampled_and_its_block_is_the_drafts() -> None:
    """Its drafts depend on those before, so that engines sample them; SGLang has no tokens to count then."""
    engines = of_engines(head("dspark"))
    assert engines["vllm"].candidate.prediction.rule.name in ("token", "block")
    assert engines["sglang"].candidate.prediction.rule.name == "token"
    options, shape = engines["sglang"].options, engines["sglang"].candidate.prediction.shape
    assert options["speculative-dspark-block-size"] == shape.nodes
    assert not {"speculative-num-draft-tokens", "speculative-use-rejection-sampling"} & set(options)


@each("kind", BLOCKS)
def test_a_smaller_block_than_the_traces_is_an_estimate(kind: str) -> None:
    """It says how to measure the engine's; nothing is said where the drafts are those of the block."""
    trace = head(kind)
    for deepest in range(1, 5):
        draft = {**trace.provenance["draft"], "block": deepest + 1, "deepest": deepest}
        measured = replace(trace, provenance={**trace.provenance, "draft": draft})
        for name, settings in of_engines(measured).items():
            k = settings.candidate.prediction.shape.nodes
            said = [line for line in settings.remarks if "--block" in line]
            assert said == [] if k == deepest else f"blocks of {deepest + 1} slots" in said[0], name
            assert not said or said[0].endswith(f"Measure with --block {k + 1}.")


def test_sampled_drafts_of_sglang_are_for_heads_that_read_their_drafts() -> None:
    """Rejection sampling is refused for a draft model, and pasted for EAGLE-3 where it is faster."""
    columns = {**head("eagle3").columns, "draft_rank": np.full(240, 5000)}  # first choices are never right
    for kind, sampled in (("eagle3", True), ("mtp", True), ("draft model", False)):
        options = of_engines(replace(head(kind), columns=columns))["sglang"].options
        assert options.get("speculative-use-rejection-sampling", False) is sampled
        assert options["speculative-eagle-topk"] == 1


@each("kind", ["draft model", "eagle3"])
@each("temperature", [0.0, 1.0])
def test_sglang_has_the_exact_number_of_the_tree_that_was_measured(kind: str, temperature: float) -> None:
    trace = head(kind, grown=True, temperature=temperature)
    columns = {**trace.columns, "draft_rank": np.full(240, 5000), "log_draft": trace.columns["log_target"] - 9}
    trace = replace(trace, columns={**columns, "greedy_agreement": np.zeros(240, dtype=bool)})
    settings = of_engines(trace)["sglang"]
    exact = predict(trace, PATH_RULES["grown"], GROWN, table(draft=0.1))
    assert settings.candidate.prediction.tokens_per_call == exact.tokens_per_call
    assert settings.candidate.prediction.shape == GROWN
    options = settings.options
    assert options["speculative-num-steps"] == GROWN.depth
    assert options["speculative-eagle-topk"] == GROWN.top
    assert options["speculative-num-draft-tokens"] == GROWN.nodes + 1
    assert any("exact for the size" in line for line in settings.remarks)


@each("kind", CLASSES)
def test_tensorrt_code_runs(kind: str) -> None:
    """On stand-ins that keep what they are called with."""
    arguments: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "tensorrt_llm", SimpleNamespace(LLM=lambda **options: arguments.update(options)))
        config = SimpleNamespace(**{CLASSES[kind]: lambda **options: options})
        patch.setitem(sys.modules, "tensorrt_llm.llmapi", config)
        settings = of_engines(head(kind))["tensorrt-llm"]
        exec(settings.paste, {})
    assert arguments["speculative_config"] == settings.options
    assert settings.options["speculative_model"] == "/head"


def test_a_parallel_head_grows_its_tree_in_one_pass() -> None:
    ranking = rank_drafts([Draft("x", head("dflash", grown=True), table(draft=0.1))], k_max=3, nodes=1)
    (tree,) = (c for c in ranking.candidates if c.prediction.rule.name == "grown")
    assert tree.prediction.shape.passes == (GROWN.depth,)
    assert {len(c.prediction.shape.passes) for c in ranking.candidates} == {1}


def test_kinds_are_ranked_side_by_side() -> None:
    drafts = [
        Draft("small", head("draft model", grown=True), table(draft=0.1)),
        Draft("eagle", head("eagle3", 5), table(draft=0.05)),
    ]
    ranking = rank_drafts(drafts, k_max=4, nodes=4)
    kinds = {(c.draft.name, c.draft_kind, c.kind) for c in ranking.candidates}
    assert {("small", "draft model", "chain"), ("eagle", "eagle3", "chain"), ("small", "draft model", "tree")} <= kinds
    (tree,) = (c for c in ranking.candidates if c.prediction.rule.name == "grown")
    assert (tree.shape, tree.passes, tree.prediction.shape.nodes) == ("grown 6x2x3", 3, 6)
    cheap = replace(table(draft=0.1), target={m: table().target[m] for m in (1, 2)})
    left = rank_drafts([replace(drafts[0], cost=cheap)], k_max=1, nodes=1).left_out
    assert any("grown trees" in line for line in left)


def with_provenance(trace: Trace, **facts: Any) -> Trace:
    return replace(trace, provenance={**trace.provenance, **facts})


RECORDED = Trace({"recorded_match": np.zeros((240, 1), dtype=int)}, text_trace(5, 0.7).texts, {"recorded": ["eagle"]})


@each(
    "one, two, said",
    [
        (head("eagle3"), with_provenance(head("dflash"), target={"name": "org/large", "fingerprint": "g"}), "target"),
        (head("eagle3"), head("dflash", temperature=0.7), "sampling"),
        (
            with_provenance(head("eagle3"), origin=SAMPLED_TEXT),
            with_provenance(head("dflash"), origin=GIVEN_TEXT),
            "origin of the texts",
        ),
        (head("eagle3"), RECORDED, "b accepted lengths of a log"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(one: Trace, two: Trace, said: str) -> None:
    with pytest.raises(SettingError, match=said) as refused:
        rank_drafts([Draft("a", one, table()), Draft("b", two, table())])
    assert "\n" not in str(refused.value)


def test_the_plan_shows_kinds_and_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, trace in (("small", head("draft model", grown=True)), ("head", head("eagle3", 5))):
        trace.write(tmp_path / name / "trace.parquet")
    asked = [f"{name}={tmp_path / name}" for name in ("small", "head")]
    for folder in ("small", "head"):
        table(draft=0.1).write(tmp_path / folder / "latency.json")
    command = ["plan", "--trace", asked[0], "--trace", asked[1], "--k-max", "3", "--nodes-max", "1"]
    assert main([*command, "--all"]) == 0
    shown = capsys.readouterr().out
    assert "eagle3" in shown
    assert "grown 6x2x3" in shown
    assert "No settings here for eagle3 drafts: transformers, openvino, onnxruntime." in shown
    assert main([*command, "--rule", "grown"]) == 2
    assert "add a rule, as argmax" in capsys.readouterr().err


def test_suffix_decoding_is_searched_as_it_was_measured() -> None:
    trace = head("eagle3")
    copied = np.random.default_rng(1).integers(0, 5, len(trace))
    columns = {**trace.columns, "ngram_match": copied[:, None], "ngram_drafted": copied[:, None] + 1}
    how = "suffix:max=4,factor=2,probability=0.2,requests=0"
    trace = replace(with_provenance(trace, ngrams=[how]), columns=columns)
    every = engine_settings([Draft("x", trace, table(draft=0.1))], k_max=4)
    (settings,) = (each for each in every if each.candidate.prediction.rule.name == how)
    assert (settings.engine, settings.candidate.draft_kind, settings.candidate.draft.name) == ("vllm", how, "none")
    assert settings.options == {
        "method": "suffix",
        "num_speculative_tokens": 4,
        "suffix_decoding_max_tree_depth": 24,
        "suffix_decoding_max_spec_factor": 2.0,
        "suffix_decoding_min_token_prob": 0.2,
        "suffix_decoding_max_cached_requests": 0,
    }
    assert any("served before" in line for line in settings.remarks)
