"""N-gram drafts: equal to what engines' own code drafted, to definitions by hand, and to transformers' generator."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spectheory.cost import ConstantRatio
from spectheory.cost.model import FREE_DRAFTS
from spectheory.deployment import Draft, engine_settings
from spectheory.distributions import Floats, Sampling
from spectheory.drafting import Chain
from spectheory.errors import SettingError, TraceError
from spectheory.judging import noise
from spectheory.ngrams import NgramDraft, Request, read_ngrams, replay
from spectheory.ngrams.base import NOTHING, Ids, _followed, leading
from spectheory.ngrams.transformers import TransformersLookup
from spectheory.ngrams.vllm import VllmGpuNgram
from spectheory.prediction import plan, predict
from spectheory.prediction.at_starts import CallStarts
from spectheory.prediction.ngrams import ngram_rules, with_ngrams
from spectheory.reports import Table
from spectheory.reports.prediction import prediction_report
from spectheory.trace import TextInfo, Trace
from spectheory.verification import ArgmaxDraft, CopiedFirst, LookupMatch, TokenVerification
from spectheory.verification.registry import path_rule
from tests.made_up import each
from tests.ngrams.recorded_drafts import listed, recorded, texts

END = 0


def calls_of(draft: NgramDraft, prompt: int, text: Ids, most: int = 1024, state: Any = None) -> list[list[int]]:
    """Start and drafted tokens of every call after the prompt's pass; from the state of a request that has begun."""
    state, calls, at = state or draft.begin(Request(text[:prompt])), [], prompt + 1
    while at < len(text):
        tokens, above = draft.branches(text[:at], state)
        tokens, above = tokens[:most], above[:most]
        calls.append([at - prompt, *(listed(tokens, above) if draft.trees else tokens)])
        accepted = _followed(tokens, above, text[at:].tolist())
        if tokens:
            draft.accept(state, accepted)
        at += accepted + 1
    return calls


def test_drafts_are_those_of_the_engines_own_code() -> None:
    """Every call of the functions of llama.cpp, vLLM, Arctic Inference and SGLang; a wrong setting is noticed by each
    draft, and so are servers that begin anew.
    """
    noticed, forgotten = set(), set()
    state: Any = None
    served: list[int] = []
    for row in recorded():
        (draft,), text = read_ngrams([row.draft]), np.array(row.text)
        state, served = (state, served) if row.goes_on else (None, [])
        state = draft.begin(Request(text[: row.prompt], served=np.array(served, dtype=np.int64)), state)
        assert calls_of(draft, row.prompt, text, 8, state) == row.calls, row.draft
        served = [*served, *row.text[row.prompt :], NOTHING]
        if row.goes_on and calls_of(draft, row.prompt, text, 8) != row.calls:
            forgotten.add(draft.name)
        wrong = {name: {"m": 2, "max": 1, "min": 1}.get(name, value) for name, value in draft.settings.items()}
        if wrong and calls_of(type(draft)(**wrong), row.prompt, text, 8) != row.calls:
            noticed.add(draft.name)
    assert forgotten == {"ngram-mod", "suffix", "ngram-sglang", "ngram-sglang-prob"}
    assert noticed == {"ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-vllm", *forgotten}


def by_hand_gpu(text: list[int], least: int, most: int) -> list[int]:
    for n in range(min(most, len(text) - 1), least - 1, -1):
        for j in range(len(text) - n - 1, -1, -1):
            if text[j : j + n] == text[-n:]:
                return text[j + n :]
    return []


def test_vllms_lookup_on_gpus_takes_the_latest_and_fills_up() -> None:
    """Against a scan by definition."""
    rng = np.random.default_rng(4)
    for text in texts(rng):
        for at in range(2, len(text)):
            least, most = sorted(rng.integers(1, 5, 2).tolist())
            copied = by_hand_gpu(text[:at].tolist(), least, most)
            drafted = VllmGpuNgram(min=least, max=most).draft(text[:at], None)
            assert drafted[: len(copied) + 3].tolist() == copied + [text[at - 1]] * 3
            assert len(drafted) == 1024


@each("top_p", [None, 0.9, 0.55, 0.5, 1 / 3])
@each("vocabulary", [9, 100, 1000])
def test_transformers_drafts_the_same(top_p: float | None, vocabulary: int) -> None:
    """Its own candidate generator, with its own top-p on logits that are all equal."""
    torch = pytest.importorskip("torch")
    generation = pytest.importorskip("transformers.generation")
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    from spectheory.measure.copied import removed_from_equal

    warpers = generation.LogitsProcessorList([generation.TopPLogitsWarper(top_p)] if top_p else [])
    network = SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: SimpleNamespace(vocab_size=vocabulary)))
    removed = removed_from_equal(network, Sampling(top_p=top_p))
    rng, cut = np.random.default_rng(vocabulary), 0
    for text in texts(rng):
        text = text * (vocabulary // 9)
        for n in (1, 3):
            lookup = PromptLookupCandidateGenerator(torch.tensor([END]), 6, n, 10**6, warpers, vocabulary)
            request = Request(text[:5], {END}, removed)
            for at in range(2, len(text), 11):
                ids, _ = lookup.get_candidates(torch.from_numpy(text[None, :at].copy()))
                drafted = TransformersLookup(max=n).draft(text[:at], request)
                assert ids[0, at:].tolist() == drafted[:6].tolist()
                uncut = TransformersLookup(max=n).draft(text[:at], Request(text, {END}))
                cut += drafted[:6].tolist() != uncut[:6].tolist()
    assert (cut > 0) == bool(set(removed) & set(range(0, vocabulary, vocabulary // 9)))


def made_up(seed: int = 3) -> tuple[Trace, list[list[int]]]:
    """Two prompts with two texts each."""
    rng = np.random.default_rng(seed)
    whole = [*texts(rng)][:2] + [*texts(rng)][:2]
    outputs = [text[20:] for text in whole]
    infos = tuple(TextInfo(str(place), len(output)) for place, output in enumerate(outputs))
    scores = {name: np.full(sum(map(len, outputs)), -1.0) for name in ("log_target", "log_draft")}
    return Trace({"token": np.concatenate(outputs), **scores}, infos), [whole[0][:20].tolist(), whole[2][:20].tolist()]


def test_a_plan_counts_the_calls_that_the_engine_makes() -> None:
    """Calls along the texts, each draft at its own length, exactly; a wrong prompt changes them."""
    trace, prompts = made_up()
    asked = ["ngram-vllm:min=1,max=2", "ngram-simple:n=2,m=4", "ngram-map-k:n=1,m=3", "ngram-mod:n=2,min=1,max=5"]
    replayed = with_ngrams(trace, asked, prompts=prompts)
    answer = plan(replayed, rules=None, k_max=6, trees=False, prefill_emits_token=True)
    outputs = np.split(trace.columns["token"], np.cumsum(trace.lengths)[:-1])
    for draft in read_ngrams(asked):
        shapes = {prediction.shape.nodes: prediction for prediction in answer.of(str(draft))}
        assert set(shapes) == ({draft.k} if draft.k else set(range(1, 7)))
        k, state, calls = draft.k or 4, None, 0
        for number, output in enumerate(outputs):
            prompt = np.array(prompts[number // 2])
            text, at = np.concatenate([prompt, output]), 1
            state = draft.begin(Request(prompt), state)
            calls += 1
            while at < len(output):
                copied = np.asarray(draft.draft(text[: len(prompt) + at], state), dtype=np.int64)[:k]
                accepted = leading(copied, output[at:])
                if len(copied):
                    draft.accept(state, accepted)
                at, calls = at + accepted + 1, calls + 1
        assert shapes[k].tokens_per_call.best == pytest.approx(len(trace) / calls, rel=1e-12)
    other = with_ngrams(trace, asked, prompts=[prompts[1], prompts[0]])
    assert not np.array_equal(other.columns["ngram_match"], replayed.columns["ngram_match"])
    assert [rule.length for rule in ngram_rules(replayed)] == [None, 4, 3, 5]
    hidden = plan(replayed, k_max=4, trees=False).left_out
    assert any("ngram-mod:n=2,min=1,max=5 drafts up to 5 tokens" in line for line in hidden)


def test_a_draft_of_one_length_has_its_row() -> None:
    """In the brief table too, where rows are those around the best k of all drafts."""
    trace, prompts = made_up()
    replayed = with_ngrams(trace, ["ngram-vllm:min=1,max=2", "ngram-simple:n=2,m=16"], prompts=prompts)
    answer = plan(replayed, ConstantRatio(0.1), rules=list(ngram_rules(replayed)), k_max=16, trees=False)
    assert answer.best.shape.nodes < 14
    table = next(piece for piece in prediction_report(answer).brief.pieces if isinstance(piece, Table))
    assert [row[0] for row in table.rows if row[2] is not None] == [16]


@each(
    "written",
    ["ngram", "ngram-mod:n", "ngram-mod:size=3", "ngram-vllm:min=3,max=2", "ngram-cache:n=1", "ngram-mod:n=0"],
)
def test_what_cannot_be_asked_for_is_refused(written: str) -> None:
    """In one line, with what there is."""
    with pytest.raises(SettingError, match="; "):
        read_ngrams([written])


def test_limits_are_said() -> None:
    """Too many drafts, another number of prompts, and another length than the replay's."""
    with pytest.raises(SettingError, match="a trace records 16"):
        read_ngrams([f"ngram-vllm:min=1,max={'|'.join(map(str, range(1, 18)))}"])
    trace, prompts = made_up()
    with pytest.raises(TraceError, match="with 3 prompts, and the trace has 4 texts"):
        with_ngrams(trace, ["ngram-cache"], prompts=[*prompts, [1]])
    (rule,) = ngram_rules(with_ngrams(trace, ["ngram-cache"], prompts=prompts))
    with pytest.raises(SettingError, match="replayed with 8"):
        plan(with_ngrams(trace, ["ngram-cache"], prompts=prompts), rules=[rule], shapes=[Chain(3)])


@each("written", ["ngram-map-k:n=1,m=3", "ngram-map-k4v:n=1,m=2", "ngram-mod:n=2,min=1,max=4", "ngram-cache"])
def test_starts_that_no_call_visits_change_nothing(written: str) -> None:
    """Rows of calls are those of the calls alone, of a draft that remembers."""
    (draft,) = read_ngrams([written])
    assert draft.remembers
    for text in texts(np.random.default_rng(2)):
        rows = replay(draft, [(Request(text[:20]), text[20:])])
        for start, *copied in calls_of(draft, 20, text):
            assert rows[start].tolist() == [leading(np.array(copied), text[20 + start :]), len(copied)]


def test_plan_names_the_engine_and_the_line_to_paste() -> None:
    """Each engine's fastest replayed draft with its settings; without a replay prompt lookup stays an estimate."""
    trace, prompts = made_up()
    asked = ["ngram-vllm:min=1,max=2|3", "ngram-mod:n=2,min=1,max=5", "ngram-map-k:n=1,m=3", "ngram-transformers:max=3"]
    asked.append("ngram-sglang-prob:tokens=5,depth=4")
    trace = with_ngrams(trace, asked, prompts=prompts)
    settings = {one.engine: one for one in engine_settings([Draft("pair", trace, FREE_DRAFTS)], k_max=6)[-4:]}
    mod = settings["llama.cpp"]
    assert mod.candidate.prediction.rule.name in ("ngram-mod:n=2,min=1,max=5", "ngram-map-k:n=1,m=3")
    assert f"--spec-type {mod.options['spec-type']}" in mod.paste
    assert "size-n 1" in mod.paste or "n-match 2" in mod.paste
    best = max((one for one in plan(trace, k_max=6).predictions if "vllm" in one.rule.name), key=lambda one: one.gain)
    served = settings["vllm"]
    assert served.candidate.prediction.rule == best.rule
    assert served.options["prompt_lookup_max"] == int(best.rule.name[-1])
    assert "ngram_proposer.py" in served.remarks[0]
    assert settings["transformers"].options["max_matching_ngram_size"] == 3
    assert "num-draft-tokens 5 --speculative-ngram-max-trie-depth 4" in settings["sglang"].paste
    assert settings["sglang"].options["speculative-ngram-match-type"] == "PROB"


def test_every_answer_reads_the_columns_of_the_draft_that_is_named() -> None:
    """Of two drafts in one trace, where calls start as in the trace with this one alone; another is refused."""
    trace, prompts = made_up()
    both = with_ngrams(trace, ["ngram-vllm:min=1,max=2", "ngram-mod:n=2,min=1,max=5"], prompts=prompts)
    alone = with_ngrams(trace, ["ngram-mod:n=2,min=1,max=5"], prompts=prompts)
    for name in ("ngram-mod:n=2,min=1,max=5", "ngram-mod:n=2,min=1,max=5>token"):
        rows = [noise(each, rule=name, k=5).rows for each in (both, alone)]
        assert rows[0] == rows[1]
        one, other = (CallStarts.of(each, path_rule(name), Chain(5)).ends for each in (both, alone))
        assert np.array_equal(one, other)
    first = noise(both, rule="ngram-vllm:min=1,max=2", k=5)
    assert first.rows != rows[1], "negative control"
    with pytest.raises(TraceError, match="the trace has no ngram-cache"):
        noise(both, rule="ngram-cache", k=5)


def hybrid_calls(survival: Floats, lengths: list[int]) -> list[float]:
    """Expected calls of each text, from its end: a call, and what is left after what it accepts."""
    calls, end = [], 0
    for length in lengths:
        left = [0.0] * (length + survival.shape[1] + 2)
        for n in range(length - 1, -1, -1):
            at = [1.0, *survival[end + n], 0.0]
            left[n] = 1 + sum((at[i] - at[i + 1]) * left[n + i + 1] for i in range(len(at) - 1))
        calls.append(left[0])
        end += length
    return calls


def test_a_hybrid_copies_first() -> None:
    """Calls by their recursion and time by kinds of calls; one that never copies is the other draft alone."""
    trace, prompts = made_up()
    rng = np.random.default_rng(8)
    scores = {"log_target": -rng.exponential(1.0, len(trace)), "log_draft": -rng.exponential(1.5, len(trace))}
    trace = with_ngrams(
        replace(trace, columns={**trace.columns, **scores}), ["ngram-vllm:min=4,max=5"], prompts=prompts
    )
    (lookup,), token, k, cost = ngram_rules(trace), TokenVerification(), 3, ConstantRatio(0.25)
    hybrid = CopiedFirst(lookup, token)
    answer = predict(trace, hybrid, Chain(k), cost)
    drafted = trace.columns["ngram_drafted"][:, 0]
    survival = np.where(
        drafted[:, None] > 0, lookup.path_survival(trace.columns, k), token.path_survival(trace.columns, k)
    )
    lengths = [text.tokens for text in trace.texts]
    calls = sum(hybrid_calls(survival, lengths))
    assert answer.tokens_per_call.best == pytest.approx(len(trace) / calls, rel=1e-9)
    counts = hybrid.calls_by_drafted(trace.columns, trace.lengths, trace.lengths, k)
    assert counts.sum() == pytest.approx(calls, rel=1e-9)
    assert 0.1 < counts[:, 0].sum() / calls < 0.9
    assert answer.speedup is not None
    assert answer.speedup.best == pytest.approx(len(trace) / (calls + 0.25 * k * counts[:, 0].sum()), rel=1e-9)
    columns = {**trace.columns, "ngram_match": 0 * trace.columns["ngram_match"]}
    never = replace(trace, columns={**columns, "ngram_drafted": columns["ngram_match"]})
    alone = predict(never, token, Chain(k), cost)
    same = predict(never, hybrid, Chain(k), cost)
    assert same.tokens_per_call.best == pytest.approx(alone.tokens_per_call.best, rel=1e-9)
    assert same.speedup.best == pytest.approx(alone.speedup.best, rel=1e-9)
    assert path_rule("lookup>token") == CopiedFirst(LookupMatch(), token)
    with pytest.raises(SettingError, match="a stopping rule reads"):
        plan(trace, rules=[hybrid], stops=["token<0.4"])
    with pytest.raises(SettingError, match="then a lossless rule with a draft of a model"):
        CopiedFirst(lookup, lookup)


def test_llamacpp_is_given_both_where_both_are_faster() -> None:
    """A draft model whose first choice is right half of the time, and a lookup that finds what returns."""
    trace, prompts = made_up()
    trace = with_ngrams(trace, ["ngram-simple:n=3,m=4"], prompts=prompts)
    ranks = np.random.default_rng(1).integers(1, 3, len(trace))
    trace = replace(trace, columns={**trace.columns, "draft_rank": ranks})
    draft = Draft("pair", trace, ConstantRatio(0.3))
    every = engine_settings([draft], k_max=4, engines=["llama.cpp"])
    both = next(one for one in every if one.options["spec-type"] == "ngram-simple,draft-simple")
    assert "-md" in both.paste
    assert "--spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 4 --spec-draft-n-max 4" in both.paste
    hybrid = CopiedFirst(ngram_rules(trace)[0], ArgmaxDraft())
    assert both.candidate.prediction.speedup == predict(trace, hybrid, Chain(4), draft.cost).speedup
    alone = predict(trace, ArgmaxDraft(), Chain(4), draft.cost).speedup
    assert alone is not None
    assert both.candidate.speedup.best > alone.best
