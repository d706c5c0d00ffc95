"""Settings for engines: each under its own rule, only what its version accepts and does, every fact written once."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from spectheory.answers import plain
from spectheory.answers.prediction import EngineJson
from spectheory.cost import ACCELERATORS, ConstantRatio, Roofline
from spectheory.deployment import Draft, EngineSettings, engine_settings, serving_engines, without_method, without_stop
from spectheory.deployment.engines import Fact
from spectheory.drafting import Chain, Tree, read_stop
from spectheory.engines import FOLDERS
from spectheory.engines.sglang.settings import _GrownTree
from spectheory.engines.transformers.settings import ENGINE as TRANSFORMERS
from spectheory.prediction import plan, predict
from spectheory.prediction.best_tree import BestTree
from spectheory.trace import Trace
from spectheory.verification import RULES
from tests.toy_drafts import LARGE, SMALL, table, text_trace

NAMES = ["transformers", "vllm", "sglang", "llama.cpp", "tensorrt-llm", "onnxruntime"]
GREEDY = [*NAMES[:-1], "openvino", "onnxruntime"]


def engines_of(draft: Draft, **settings: Any) -> dict[str, EngineSettings]:
    return {each.engine: each for each in engine_settings([draft], **settings)}


def test_engines_state_their_own_rules() -> None:
    trace, cost = text_trace(4, 0.7), table()
    engines = engines_of(Draft("small", trace, cost), k_max=8, nodes=16)
    assert list(engines) == NAMES
    token = plan(trace, cost, rules=[RULES["token"]], shapes=[Chain(k) for k in range(1, 9)]).best
    assert engines["transformers"].candidate.prediction.rule.name == "token"
    assert engines["transformers"].options["assistant"]["num_assistant_tokens"] == token.shape.nodes
    assert token.speedup is not None
    assert engines["transformers"].candidate.speedup.best == pytest.approx(token.speedup.best)
    block = plan(trace, cost, rules=["block"], shapes=[Chain(k) for k in range(1, 9)]).best
    assert block.speedup is not None
    assert engines["vllm"].candidate.prediction.rule.name == "block"
    assert engines["vllm"].candidate.speedup.best == pytest.approx(block.speedup.best)
    assert block.speedup.best > token.speedup.best
    argmax = plan(trace, cost, rules=[RULES["argmax"]], shapes=[Chain(k) for k in range(1, 9)]).best
    for name, length in (("llama.cpp", "spec-draft-n-max"), ("tensorrt-llm", "max_draft_len")):
        assert engines[name].candidate.prediction.rule.name == "argmax"
        assert engines[name].options[length] == argmax.shape.nodes
    for settings in engines.values():
        content = plain(EngineJson.view(settings))
        assert content["verdict"] in ("speculate", "speculating may not pay", "do not speculate")
        assert content["remarks"][0].startswith("Rule: ")


def test_vllm_json_is_the_one_pasted() -> None:
    settings = engines_of(Draft("small", text_trace(4, 0.7), table()), k_max=8)["vllm"]
    words = shlex.split(settings.paste)
    assert words[:3] == ["vllm", "serve", "org/large"]
    assert json.loads(words[words.index("--speculative-config") + 1]) == settings.options
    assert settings.options["model"] == "org/small-4"
    methods = (settings.options["draft_sample_method"], settings.options["rejection_sample_method"])
    assert methods == ("probabilistic", "block")
    assert any("Block verification needs model runner V2" in line for line in settings.remarks)
    assert any(line.startswith("Token verification") and "at best k = " in line for line in settings.remarks)
    assert any(line.startswith("By default") and "argmax" in line for line in settings.remarks)


def test_a_draft_with_another_tokenizer_is_for_engines_that_cut_it() -> None:
    def draft(temperature: float) -> Draft:
        trace = text_trace(4, 0.7, temperature=temperature)
        other = {**trace.provenance["draft"], "common": 60, "outside": "text"}
        return Draft("small", replace(trace, provenance={**trace.provenance, "draft": other}), table())

    engines = engines_of(draft(1.0), k_max=4)
    assert list(engines) == ["transformers", "vllm"]
    assert any("common-token drafts: sglang, llama.cpp" in line for line in without_method([draft(1.0)]))
    vllm, transformers = engines["vllm"], engines["transformers"]
    assert vllm.options["use_heterogeneous_vocab"] is True
    assert (vllm.options["draft_sample_method"], vllm.candidate.prediction.rule.name) == ("greedy", "argmax")
    assert "Measure with --outside unknown." in vllm.remarks[-1]
    assert "assistant_tokenizer=drafted" in transformers.paste
    assert transformers.paste.index("get_translator(tokenizer, drafted") < transformers.paste.index("target.generate(")
    compile(transformers.paste, "paste", "exec")
    assert not any("Measure with" in line for line in transformers.remarks)
    assert list(engines_of(draft(0.0), k_max=4)) == ["vllm"], "transformers matches strings there"


def test_vllm_lengths_by_batch() -> None:
    cost = Roofline(LARGE, SMALL, ACCELERATORS["H100-SXM"], context=0)
    settings = engines_of(Draft("small", text_trace(4, 0.7), cost), k_max=6)["vllm"]
    options = settings.options
    ranges = options["num_speculative_tokens_per_batch_size"]
    assert [first for first, _, _ in ranges] == [1, *(last + 1 for _, last, _ in ranges[:-1])]
    assert ranges[-1][1] == 256
    assert options["num_speculative_tokens"] == max(k for _, _, k in ranges)
    assert settings.needs.startswith(f"k by sequences together: {ranges[0][2]} for 1 to {ranges[0][1]}, ")


def test_vllm_takes_first_choices_where_they_are_faster() -> None:
    """A flat draft that ranks well: sampled drafts are hardly accepted, first choices are."""
    trace = text_trace(4, 0.7)
    columns = {**trace.columns, "log_draft": trace.columns["log_target"] - 3.0, "draft_rank": np.ones(len(trace), int)}
    settings = engines_of(Draft("small", Trace(columns, trace.texts, trace.provenance), table()), k_max=8)
    assert settings["vllm"].candidate.prediction.rule.name == "argmax"
    assert settings["vllm"].options["draft_sample_method"] == "greedy"


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.0}, {"temperature": 0.7, "top_k": 20, "top_p": 0.9}])
@pytest.mark.parametrize("off", [0.0, 3.0])
def test_settings_that_an_engine_refuses_or_ignores_are_never_pasted(sampling: dict[str, Any], off: float) -> None:
    """Whatever the sampling, and whether sampled drafts are of use or not."""
    trace = text_trace(4, 0.7, **sampling)
    columns = {**trace.columns, "log_draft": trace.columns["log_draft"] - off}
    engines = engines_of(Draft("small", replace(trace, columns=columns), table()), k_max=4, nodes=4)
    assert list(engines) == (GREEDY if sampling.get("temperature") == 0 else NAMES)
    for settings in engines.values():
        rule = settings.candidate.prediction.rule.name
        assert ("block" in settings.paste) == (rule == "block")
        assert rule != "block" or (settings.engine == "vllm" and any("V2" in line for line in settings.remarks))
        assert "rejection-sampling" not in settings.paste
    assert engines["sglang"].candidate.prediction.rule.name in ("greedy", "argmax", "topk")


def test_sglang_counts_the_root_and_pays_for_the_tree_it_grows() -> None:
    trace = text_trace(4, 0.7)
    columns = {**trace.columns, "log_draft": trace.columns["log_target"] - 3.0}  # sampled drafts are of no use
    settings = engines_of(Draft("small", Trace(columns, trace.texts, trace.provenance), table(draft=0.1)))["sglang"]
    shape = settings.candidate.prediction.shape
    assert isinstance(shape, _GrownTree)
    options = settings.options
    assert options["speculative-num-draft-tokens"] == shape.nodes + 1
    assert options["speculative-num-steps"] == shape.depth
    assert options["speculative-eagle-topk"] == shape.top >= shape.max_rank
    assert all(grown >= alone for grown, alone in zip(shape.passes, shape.kept.passes, strict=True))
    assert len(shape.passes) == shape.depth
    wanted = settings.candidate.prediction.wanted
    assert isinstance(wanted, BestTree)
    kept = replace(wanted, drafted_as=None)
    alone = predict(settings.candidate.draft.trace, RULES["topk"], kept, table(draft=0.1))
    assert alone.shape == shape.kept
    assert alone.speedup is not None
    assert settings.candidate.speedup.best <= alone.speedup.best
    assert alone.tokens_per_call.best == pytest.approx(settings.candidate.prediction.tokens_per_call.best)
    words = shlex.split(settings.paste)
    assert words[words.index("--speculative-num-draft-tokens") + 1] == str(shape.nodes + 1)


def test_a_grown_tree_is_at_least_its_kept_one() -> None:
    kept = Tree.from_paths([(1,), (2,), (3,), (1, 1), (2, 1)])
    assert _GrownTree(kept).passes == (1, 3)
    assert str(_GrownTree(kept)) == "tree of 5, depth 2, top 3"


def test_greedy_traces_plan_chains() -> None:
    trace = text_trace(4, 0.7, temperature=0.0)
    engines = engines_of(Draft("small", trace, table()), k_max=8)
    assert list(engines) == GREEDY
    assert {s.candidate.prediction.rule.name for s in engines.values()} == {"greedy"}
    assert engines["transformers"].options["generate"] == {"do_sample": False}
    assert "draft_sample_method" not in engines["vllm"].options
    assert engines["sglang"].options["speculative-eagle-topk"] == 1


def test_engines_of_log_probabilities_alone() -> None:
    trace = Trace.from_log_probabilities([([-1.0] * 40, [-1.2] * 40)] * 3)
    engines = engines_of(Draft("small", trace, ConstantRatio(0.1)), k_max=4)
    assert list(engines) == ["transformers", "vllm", "onnxruntime"], (
        "the others draft first choices, which the trace does not rank"
    )
    assert not any("By default" in line for line in engines["vllm"].remarks)


def test_cut_sampling_is_remarked() -> None:
    engines = engines_of(Draft("small", text_trace(4, 0.7, temperature=0.7, top_k=20, top_p=0.9), table()), k_max=4)
    assert "top_k=20" in engines["transformers"].paste
    assert "twice" in engines["transformers"].remarks[-1]
    assert any("are not cut by top-k" in line for line in engines["vllm"].remarks)
    assert any("On CPU, XPU and ROCm" in line for line in engines["sglang"].remarks)
    words = shlex.split(engines["llama.cpp"].paste)
    given = {name: float(words[words.index(name) + 1]) for name in ("--temp", "--top-k", "--top-p", "--min-p")}
    assert given == {"--temp": 0.7, "--top-k": 20, "--top-p": 0.9, "--min-p": 0}
    assert "before the temperature" in engines["llama.cpp"].remarks[-1]


def test_onnxruntime_takes_at_most_16_drafts() -> None:
    near = Draft("small", text_trace(4, 0.01), table(draft=0.01))
    engines = engines_of(near, k_max=24, nodes=4)
    assert engines["transformers"].candidate.prediction.shape.nodes > 16
    best = engines_of(near, k_max=16, nodes=4)["transformers"].candidate.prediction.shape.nodes
    assert engines["onnxruntime"].options["speculative"]["max_draft_tokens"] == best


def test_openvino_is_for_greedy_decoding_alone() -> None:
    """With a draft it does not sample the target's texts, so a sampled trace gets no settings."""
    assert "openvino" not in engines_of(Draft("small", text_trace(4, 0.7), table()), k_max=4)
    settings = engines_of(Draft("small", text_trace(4, 0.7, temperature=0.0), table()), k_max=4)["openvino"]
    assert settings.options["do_sample"] is False
    assert settings.options["num_assistant_tokens"] == settings.candidate.prediction.shape.nodes
    assert settings.candidate.prediction.rule.name == "greedy"


def test_the_best_draft_of_each_engine() -> None:
    far, near = text_trace(2, 2.0), text_trace(3, 0.2)
    far = replace(far, columns={**far.columns, "draft_rank": near.columns["draft_rank"] + 1})
    drafts = [Draft("far", far, table()), Draft("near", near, table())]
    assert {s.candidate.draft.name for s in engine_settings(drafts, k_max=4, nodes=4)} == {"near"}


# Facts


def known_facts() -> set[Fact]:
    """Every fact that the settings of an engine state."""
    places = [f"spectheory.engines.{folder}.settings" for folder in FOLDERS]
    modules = [import_module(place) for place in places if find_spec(place)]
    return {value for module in modules for value in vars(module).values() if isinstance(value, Fact)}


def test_every_fact_is_in_its_engines_list() -> None:
    listed = [fact for engine in serving_engines() for fact in engine.facts]
    assert set(listed) == known_facts()
    assert len(set(listed)) == len(listed)
    assert all(fact.does.endswith(".") and fact.evidence for fact in listed)


def test_every_kind_of_speculation_of_transformers_is_listed() -> None:
    """Every generation option that speculates, of the version that the table names."""
    transformers = pytest.importorskip("transformers")
    if not transformers.__version__.startswith(f"{TRANSFORMERS.version}."):
        pytest.skip("another version than the table's")
    begins = ("assistant", "num_assistant", "prompt_lookup", "target_lookbehind", "use_mtp", "speculat")
    options = {name for name in vars(transformers.GenerationConfig()) if name.startswith(begins)}
    assert len(options) > 8
    listed = " ".join(fact.setting for fact in TRANSFORMERS.facts)
    assert {name for name in options if name not in listed} == set()


def test_an_ensemble_weight_changes_the_output(tiny_pair: Any) -> None:
    """Near 0 even greedy decoding writes the draft's first choices; without it, the target's."""
    import torch

    from spectheory.measure.model_files import quiet

    target, draft = tiny_pair.target.network, tiny_pair.draft.network
    ids = torch.tensor([[1, 2, 3, 4]])

    def text(**options: Any) -> list[int]:
        output = target.generate(ids, do_sample=False, max_new_tokens=20, eos_token_id=None, **options)
        return list(output[0].tolist())

    with quiet():
        plain = text()
        assert text(assistant_model=draft) == plain
        assert text(assistant_model=draft, assistant_ensemble_weight=1e-6) != plain


def test_servers_say_what_requests_must_ask_for() -> None:
    """Where no command line sets the sampling, a remark does; transformers and llama.cpp set it themselves."""
    cut = engines_of(Draft("small", text_trace(4, 0.7, temperature=0.7, top_k=20, top_p=0.9), table()), k_max=4)
    greedy = engines_of(Draft("small", text_trace(4, 0.7, temperature=0.0), table()), k_max=4)
    for engines, words in ((cut, "temperature 0.7, top_k 20, top_p 0.9:"), (greedy, "temperature 0:")):
        for engine in ("vllm", "sglang", "tensorrt-llm"):
            assert any(f"Send requests with {words}" in line for line in engines[engine].remarks), engine
        for engine in ("transformers", "llama.cpp"):
            assert not any("Send requests" in line for line in engines[engine].remarks), engine


def test_stopping_rules_go_to_the_engines_that_have_them() -> None:
    """Costly drafts: a rule that stops early is the fastest, and is pasted where the engine has it."""
    trace, cost = text_trace(4, 0.7), table()
    stops = [read_stop("token<0.9"), read_stop("top<0.9")]
    shown = replace(trace, columns={**trace.columns, "draft_top": np.maximum(np.exp(trace.columns["log_draft"]), 0.3)})
    fixed = engines_of(Draft("small", shown, cost), k_max=8)
    engines = engines_of(Draft("small", shown, cost), k_max=8, stops=stops)
    tried = plan(shown, cost, rules=[RULES["token"]], shapes=[Chain(k, stop=stops[0]) for k in range(1, 9)]).best
    best = max(tried.gain, fixed["transformers"].candidate.prediction.gain)
    assert engines["transformers"].candidate.prediction.gain == pytest.approx(best)
    for name in NAMES:
        if not engines[name].version or name not in ("transformers", "llama.cpp"):
            assert not engines[name].candidate.prediction.shape.stop
            assert engines[name].paste == fixed[name].paste
    (line,) = without_stop([stops[1]])
    assert line == "Only llama.cpp stops by top; settings of other engines have a fixed length."
    assert without_stop([read_stop("entropy>2")])[0].startswith("No engine stops by entropy")


def test_a_stopped_chain_is_pasted_with_its_threshold() -> None:
    """Where the draft's q says which drafts hold, a stop pays: transformers by the token's q, llama.cpp by the top."""
    rng = np.random.default_rng(3)
    sure, likely = rng.random(4000) < 0.7, rng.random(4000) < 0.9
    # Elsewhere p = (.45, .45, .05, .05) and q is the reverse.
    log_target = np.log(np.where(sure, 0.99, np.where(likely, 0.45, 0.05)))
    log_draft = np.log(np.where(sure, 0.99, np.where(likely, 0.05, 0.45)))
    columns = {
        "log_target": log_target,
        "log_draft": log_draft,
        "draft_top": np.where(sure, 0.99, 0.45),
        "draft_rank": np.where(sure | ~likely, 1, 3),
    }
    texts = Trace.from_log_probabilities([(log_target[:2000], log_draft[:2000])] * 2).texts
    provenance = {"settings": {"sampling": {"temperature": 1.0}}}
    draft = Draft("small", Trace(columns, texts, provenance), ConstantRatio(0.3))
    engines = engines_of(draft, k_max=8, stops=[read_stop("token<0.5"), read_stop("top<0.5")])
    assert engines["transformers"].options["assistant"]["assistant_confidence_threshold"] == 0.5
    assert any("ends the drafting" in remark for remark in engines["transformers"].remarks)
    assert engines["llama.cpp"].options["spec-draft-p-min"] == 0.5
    assert "--spec-draft-p-min 0.5" in engines["llama.cpp"].paste
    ones = {**columns, "log_target": np.zeros(4000), "log_draft": np.where(sure | ~likely, 0.0, -np.inf)}
    greedy = Draft("small", Trace(ones, texts, {"settings": {"sampling": {"temperature": 0.0}}}), ConstantRatio(0.3))
    engines = engines_of(greedy, k_max=8, stops=[read_stop("token<0.5"), read_stop("top<0.5")])
    assert engines["transformers"].options["assistant"]["assistant_confidence_threshold"] == 0.5
    assert engines["llama.cpp"].options["spec-draft-p-min"] == 0.5
    assert any("the prediction is an estimate" in remark for remark in engines["llama.cpp"].remarks)
    cold = replace(draft, trace=replace(draft.trace, provenance={"settings": {"sampling": {"temperature": 0.7}}}))
    assert engines_of(cold, k_max=8, stops=[read_stop("top<0.5")])["llama.cpp"].options["spec-draft-p-min"] == 0
