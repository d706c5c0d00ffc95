"""Logs of two models on the same texts, joined: the trace of their numbers, in every server's words; rounded lists."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spectheory import truncated
from spectheory.distributions import Sampling
from spectheory.drafting import Chain
from spectheory.errors import SpectheoryError, TextError
from spectheory.prediction import predict
from spectheory.trace import Trace, read_any
from spectheory.trace.reading import read_evidence
from spectheory.trace.scores import ScoredText, Scores
from spectheory.verification import PATH_RULES, RaceVerification
from tests.made_up import each, one_line
from tests.trace import server_logs as servers
from tests.trace.server_logs import Scored, Server, V, texts, write

PROMPT_SCORED = (servers.vllm, servers.sglang, servers.echoed)
OUTPUT_SCORED = (servers.generated, servers.chat, servers.llama, servers.llama_after)
LISTED = (servers.vllm, servers.sglang, servers.chat, servers.llama, servers.llama_after)
EXACT = 1e-12
"""Logarithms of doubles, written and read back; those of probabilities are taken again."""


def trace_of(folder: Path, server: Server, pair: tuple[list[Scored], list[Scored]], m: int = 2, **more: Any) -> Trace:
    read = [read_evidence(write(folder / str(i), server, model, m, **more)) for i, model in enumerate(pair)]
    return Scores.join([part for part in read if isinstance(part, Scores)])


def expected(pair: tuple[list[Scored], list[Scored]], start: int) -> Trace:
    return Trace.from_log_probabilities([(t.logs[start:], d.logs[start:]) for t, d in zip(*pair, strict=True)])


@each("server", [*PROMPT_SCORED, *OUTPUT_SCORED])
def test_the_trace_is_that_of_the_two_numbers(server: Server, tmp_path: Path) -> None:
    """Scored prompts count from the second token, or from where the log says; predictions follow."""
    pair = texts(1)
    starts = [({}, 1 if server in PROMPT_SCORED else 3)]
    starts += [({"prompt_tokens": 5}, 5)] if server in PROMPT_SCORED else []
    for more, start in starts:
        read_back, wanted = trace_of(tmp_path, server, pair, **more), expected(pair, start)
        for name in ("log_target", "log_draft"):
            np.testing.assert_allclose(read_back.columns[name], wanted.columns[name], rtol=EXACT)
        for rule in ("token", "block"):
            ours, theirs = (
                predict(trace, PATH_RULES[rule], Chain(3)).tokens_per_call.best for trace in (read_back, wanted)
            )
            assert ours == pytest.approx(theirs, rel=EXACT)
        if server is not servers.echoed:
            assert read_back.columns["token"].tolist() == [t for text in pair[0] for t in text.tokens[start:]]
        assert read_back.provenance["joined by"] == ("token strings" if server is servers.echoed else "token ids")
        said = "as the logs say" in read_back.provenance["text"]
        assert said == (bool(more) or server in OUTPUT_SCORED), read_back.provenance["text"]


def test_ranks_and_first_choices_follow_from_lists(tmp_path: Path) -> None:
    """Ranks of vLLM are those of the pmfs, so argmax drafts are predicted as well; agreement from the lists' tops."""
    pair = texts(2)
    trace = trace_of(tmp_path, servers.vllm, pair, m=1)
    for name, model in zip(("target_rank", "draft_rank"), pair, strict=True):
        assert trace.columns[name].tolist() == [text.rank(i) for text in model for i in range(1, len(text.tokens))]
    agree = [t.top(i, 1) == d.top(i, 1) for t, d in zip(*pair, strict=True) for i in range(1, len(t.tokens))]
    assert trace.columns["greedy_agreement"].tolist() == agree
    assert 0 < sum(agree) < len(agree)


@each("server", LISTED)
def test_ranges_from_lists_hold_the_truth(server: Server, tmp_path: Path) -> None:
    """The race of full pmfs lies in the range of two listed tokens, of any vocabulary; another pair's does not."""
    pair, other = texts(3), texts(4)
    start = 1 if server in PROMPT_SCORED else 3
    race = PATH_RULES["race"]
    full = [[row for text in model for row in text.pmfs[start:]] for model in pair]
    tokens = [t for text in pair[0] for t in text.tokens[start:]]
    a = [float(np.asarray(race.acceptance_given(p, q))[x]) for p, q, x in zip(*full, tokens, strict=True)]
    widths = []
    for m, more in ((2, {}), (2, {"vocabulary": V}), (V, {"vocabulary": V})):
        trace = trace_of(tmp_path, server, pair, m, **more)
        g = replace(trace, columns={**trace.columns, "race_g": 1 / np.array(a) - 1})
        truth = predict(g, race, Chain(2)).tokens_per_call.best
        ends = predict(trace, race, Chain(2)).certified
        low, high = (ends.low, ends.high) if ends else (truth, truth)
        assert low - 1e-5 <= truth <= high + 1e-5  # lists have an error of 1e-6 nats
        widths.append(high - low)
    assert widths[0] >= widths[1] > 0.01
    assert widths[2] < 1e-3
    wrong = predict(trace_of(tmp_path, server, other, V, vocabulary=V), race, Chain(2)).certified
    assert wrong
    assert not wrong.low <= truth <= wrong.high


def test_a_token_beyond_the_list_does_not_lower_its_cap(tmp_path: Path) -> None:
    """The text's own token is listed by vLLM beside the most probable: no other is bounded by it."""
    pair = texts(5)
    trace = trace_of(tmp_path, servers.vllm, pair, m=2)
    text = pair[0][0]
    beyond = [i for i in range(1, len(text.tokens)) if text.rank(i) > 3]
    assert beyond
    for i in beyond:
        target, _ = trace.lists[i - 1]
        assert target.cap == pytest.approx(text.pmfs[i, text.top(i, 2)[-1]])
        assert set(target.known) == {*text.top(i, 2), text.tokens[i]}


def test_models_of_different_servers_join_by_ids(tmp_path: Path) -> None:
    """A target that generated with ids, and a draft that scored prompt and output as one prompt."""
    target, draft = texts(6)
    first = read_evidence(write(tmp_path / "target", servers.generated, target))
    second = read_evidence(write(tmp_path / "draft", servers.vllm, draft))
    assert isinstance(first, Scores)
    assert isinstance(second, Scores)
    trace = Scores.join([first, second])
    np.testing.assert_allclose(trace.columns["log_draft"], expected((target, draft), 3).columns["log_draft"])
    assert trace.provenance["text"].startswith("the output")


@each(
    "settings, m, fine",
    [
        ({"temperature": 1.0}, 2, True),
        ({"temperature": 0.5}, 2, False),
        ({"top_p": 0.9}, 2, False),
        ({"temperature": 0.5}, V, True),
    ],
)
def test_raw_values_are_those_of_temperature_one(
    settings: dict[str, float], m: int, fine: bool, tmp_path: Path
) -> None:
    """Under other settings they are refused, unless the lists hold all tokens; processed ones are taken as they are."""
    pair = texts(7)
    more = {"sampling": settings, "vocabulary": V}
    assert len(trace_of(tmp_path, servers.vllm, pair, m, **more, processed=True))
    if not fine:
        with pytest.raises(SpectheoryError) as caught:
            trace_of(tmp_path, servers.vllm, pair, m, **more)
        assert "holds raw log-probabilities of a text drawn with" in one_line(caught)
        return
    trace = trace_of(tmp_path, servers.vllm, pair, m, **more)
    sharp = [text.pmfs[1:] ** (1 / settings["temperature"]) for text in pair[0]]
    logs = [np.log(p[range(len(p)), t.tokens[1:]] / p.sum(axis=1)) for p, t in zip(sharp, pair[0], strict=True)]
    np.testing.assert_allclose(trace.columns["log_target"], np.concatenate(logs), rtol=1e-9)
    assert trace.sampling is not None
    assert trace.sampling.temperature == settings["temperature"]


def test_lists_are_written_and_read_back_equal(tmp_path: Path) -> None:
    """Every list, with tokens beside it; a list that no pmf has is named by its row."""
    trace = trace_of(tmp_path, servers.vllm, texts(8))
    trace.write(tmp_path / "trace.parquet")
    again = Trace.read(tmp_path / "trace.parquet")
    assert len(again.lists) == len(trace.lists) == len(trace)
    for ours, theirs in zip(trace.lists, again.lists, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            for name in ("known", "probabilities", "tokens", "log_probs", "extra_tokens"):
                assert np.array_equal(getattr(a, name), getattr(b, name)), name
            assert (a.cap, a.unseen, a.slack, a.vocabulary, a.error) == (
                b.cap,
                b.unseen,
                b.slack,
                b.vocabulary,
                b.error,
            )
    race = [predict(each, PATH_RULES["race"], Chain(2)).tokens_per_call for each in (trace, again)]
    assert race[0] == race[1]


def change(path: Path, old: str, new: str) -> Path:
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))
    return path


def test_bad_logs_are_refused_in_one_line(tmp_path: Path) -> None:
    target, draft = texts(9)
    good = write(tmp_path / "target", servers.sglang, target)

    def other(name: str, **more: Any) -> Path:
        return write(tmp_path / name, servers.sglang, draft, **more)

    log = draft[0].logs[3]
    lost = {"first lines": other("cut"), "half a line": other("torn")}
    lost["first lines"].write_text("".join(lost["first lines"].read_text().splitlines(keepends=True)[:2]))
    lost["half a line"].write_text(lost["half a line"].read_text()[:-200])
    shorter = [replace(text, tokens=text.tokens[:-1], pmfs=text.pmfs[:-1]) for text in draft]
    cases = {
        "the target's log has 4 texts, the draft's 2": lost["first lines"],
        "line 4 is not JSON": lost["half a line"],
        "has token": change(other("ids"), f"[{log}, {draft[0].tokens[3]},", f"[{log}, {(draft[0].tokens[3] + 1) % V},"),
        "has 14 tokens in the target's log, 13": write(tmp_path / "short", servers.sglang, shorter),
        "the vocabulary has 5 tokens": other("small", vocabulary=5),
        "stands for a missing value": change(other("missing"), str(log), "-9999.0"),
        "has no log-probability of token 4": change(other("null"), str(log), "null"),
        "pass natural logs": change(other("percent"), str(log), "97.5"),
        "has ids in one log and strings in the other": write(tmp_path / "strings", servers.echoed, draft),
        "is not of the format sglang-logprobs": change(
            other("mixed"), '"input_token_logprobs"', '"output_token_logprobs"'
        ),
    }
    for fragment, path in cases.items():
        with pytest.raises(SpectheoryError) as caught:
            Scores.join([part for file in (good, path) if isinstance(part := read_evidence(file), Scores)])
        assert fragment in one_line(caught), fragment
    with pytest.raises(SpectheoryError, match="1 logs of log-probabilities"):
        Scores.join([part for part in [read_evidence(good)] if isinstance(part, Scores)])


def test_a_position_without_tokens_is_refused_for_vllm(tmp_path: Path) -> None:
    (text, *_), _ = texts(10)
    response = servers.vllm(text, 2)
    response["choices"][0]["prompt_logprobs"][2] = {}
    (tmp_path / "log").write_text(json.dumps(response))
    with pytest.raises(SpectheoryError, match="a position has no token"):
        read_evidence(tmp_path / "log")


@each("draft_n, after", [(5, False), (5, True)])
def test_values_beside_drafts_are_refused_for_llama(draft_n: int, after: bool, tmp_path: Path) -> None:
    """llama.cpp writes 0.0 for all tokens of calls with drafts."""
    (text, *_), _ = texts(10)
    response = (servers.llama_after if after else servers.llama)(text, 2) | {"timings": {"draft_n": draft_n}}
    (tmp_path / "log").write_text(json.dumps(response))
    with pytest.raises(SpectheoryError, match="5 drafts leave tokens without log-probabilities"):
        read_evidence(tmp_path / "log", "llama.cpp-logprobs")


def test_of_tied_tokens_the_lowest_id_is_the_first_choice() -> None:
    tied, lower, higher = {3: -0.7, 1: -0.7}, {1: -0.1, 3: -3.0}, {3: -0.1, 1: -3.0}
    parts = [
        Scores((ScoredText("a", (-0.7, -0.7), (1, 1), tops=(tied, tied), vocabulary=5),)),
        Scores((ScoredText("a", (-0.1, -3.0), (1, 1), tops=(lower, higher), vocabulary=5),)),
    ]
    assert Scores.join(parts).columns["greedy_agreement"].tolist() == [True, False]


def test_lists_are_as_wrong_as_the_worse_log() -> None:
    """Of two logs with different rounding, the joined lists have the larger."""
    list_of = {1: -0.1, 2: -3.0}
    for errors in ((1e-6, 1e-2), (1e-2, 1e-6)):
        target, draft = (
            ScoredText("a", (-0.1, -0.1), (1, 1), tops=(list_of, list_of), vocabulary=5, error=error)
            for error in errors
        )
        made = Scores.join([Scores((target,)), Scores((draft,))])
        assert {side.error for pair in made.lists for side in pair} == {1e-2}


def test_rounded_raw_lists_keep_their_truth_under_a_temperature(tmp_path: Path) -> None:
    """Logs rounded to three digits, then divided by T = 1/4: the race's range still holds the exact acceptance."""
    p, q, settings = np.array([0.52, 0.31, 0.17]), np.array([0.37, 0.41, 0.22]), {"temperature": 0.25}
    logs = {"target": np.log(p).round(3), "draft": np.log(q).round(3)}
    log = tmp_path / "log"
    for token in range(3):
        line: dict[str, Any] = {"token": [token], "vocabulary": 3, "error": 0.0005, "sampling": settings}
        for model, values in logs.items():
            line |= {model: [values[token]], f"{model}_top": [list(enumerate(values))]}
        log.write_text(json.dumps(line))
        (text,) = [read_any(log)]
        sharp_p, sharp_q = (np.exp(Sampling(0.25).log_pmf(np.log(pmf))) for pmf in (p, q))
        exact = RaceVerification().acceptance_given(sharp_p, sharp_q)[token]
        ((target, draft),) = text.lists
        assert target.error == draft.error == pytest.approx(0.004)
        ends = truncated.acceptance_given(RaceVerification(), target, draft, token)
        assert ends.low <= exact <= ends.high
        assert ends.low < ends.high


@pytest.mark.parametrize("sampling", [{"top_k": 1}, {"top_p": 0.6}, {"min_p": 0.99}, {"temperature": 0}])
def test_a_cut_that_rounding_leaves_open_is_refused(sampling: dict[str, float], tmp_path: Path) -> None:
    """The two largest probabilities differ by less than the error; with a small error they are told apart."""
    values = np.log([0.301, 0.299, 0.4]) if "top_p" in sampling else np.log([0.402, 0.4, 0.198])
    log = tmp_path / "log"
    for error, fine in ((0.01, False), (1e-9, True)):
        line = {"token": [0], "vocabulary": 3, "error": error, "sampling": sampling}
        for model in ("target", "draft"):
            line |= {model: [values[0]], f"{model}_top": [list(enumerate(values))]}
        log.write_text(json.dumps(line))
        if fine:
            assert read_any(log).lists
        else:
            with pytest.raises(TextError, match="leaves open which tokens the filters keep"):
                read_any(log)
