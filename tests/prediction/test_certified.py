"""Certified calls from lists: monotone in the ranks by enumeration, and around the values of full pmfs."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from spectheory.answers import plain
from spectheory.answers.prediction import SettingJson
from spectheory.cli import main
from spectheory.cost import ConstantRatio, LatencyTable
from spectheory.drafting import Batch, Chain, KAry, Shape, Tree, read_stop
from spectheory.errors import SettingError, TextError
from spectheory.intervals import Interval
from spectheory.prediction import Prediction, plan, predict
from spectheory.prediction.best_tree import BestTree
from spectheory.prediction.certified import _nested, ends_of
from spectheory.prediction.paths import calls_of_texts, calls_of_tree, tree_survival
from spectheory.prediction.stopped import drafted_along
from spectheory.trace import Trace, read_any
from spectheory.truncated import acceptance_given, bounds_given
from spectheory.verification import PATH_RULES, PathRule, RankRule

V, ROUNDING = 40, 1e-9
NESTED = (Chain(3), Batch(2), KAry((2, 1)), KAry((2, 2, 1)), Tree.from_paths([(1,), (2,), (1, 1), (2, 1)]))
NOT_NESTED = (KAry((1, 2)), Tree.from_paths([(2,)]), Tree.from_paths([(1,), (2,), (2, 1)]))


# Monotone


def calls(ranks: tuple[int, ...], paths: set[tuple[int, ...]]) -> int:
    """Calls of a text with these ranks: each takes the longest path of the tree, then one token more."""
    count = at = 0
    while at < len(ranks):
        depth = 0
        while at + depth < len(ranks) and ranks[at : at + depth + 1] in paths:
            depth += 1
        count, at = count + 1, at + depth + 1
    return count


def rises(shape: Shape, tokens: int = 5, most: int = 3) -> bool:
    """Whether one rank more, anywhere in any text, never saves a call."""
    paths = set(shape.tree().paths)
    counts = {ranks: calls(ranks, paths) for ranks in product(range(1, most + 1), repeat=tokens)}
    return all(
        counts[(*ranks[:i], ranks[i] + 1, *ranks[i + 1 :])] >= count
        for ranks, count in counts.items()
        for i in range(tokens)
        if ranks[i] < most
    )


@pytest.mark.parametrize("shape", NESTED, ids=str)
def test_calls_are_monotone_in_the_ranks(shape: Shape) -> None:
    assert _nested(shape)
    assert rises(shape)


@pytest.mark.parametrize("shape", NOT_NESTED, ids=str)
def test_other_trees_are_not(shape: Shape) -> None:
    """Each of them has a text in which a higher rank saves a call, so the condition refuses none of these in vain."""
    assert not _nested(shape)
    assert not rises(shape, tokens=6)


@pytest.mark.parametrize("shape", NESTED, ids=str)
def test_the_path_theorem_is_the_mean_over_the_ranks(shape: Shape) -> None:
    """One rank per position gives the calls of the recursion: the coupling of the proof."""
    rng = np.random.default_rng(1)
    tree, tokens = shape.tree(), 4
    law = rng.dirichlet(np.ones(3), size=tokens)
    draws = product(range(1, 4), repeat=tokens)
    mean = sum(np.prod([law[i, r - 1] for i, r in enumerate(ranks)]) * calls(ranks, set(tree.paths)) for ranks in draws)
    expected = calls_of_tree(*tree_survival(law, tree), np.array([tokens])).expected[0]
    assert expected == pytest.approx(mean, abs=1e-12)


# Around full pmfs


class Pair:
    """Texts drawn from random pmfs, and what a server that lists m tokens would log of them."""

    def __init__(self, seed: int, texts: int = 4, tokens: int = 12) -> None:
        rng = np.random.default_rng(seed)
        logits = 2 * rng.standard_normal((texts, tokens, V))
        self.p, self.q = (softmax(x, axis=-1) for x in (logits, logits + rng.standard_normal(logits.shape)))
        self.text = np.array([[rng.choice(V, p=p) for p in text] for text in self.p])

    def write(self, file: Path, m: int, **more: Any) -> Path:
        """The log of lists of m tokens."""
        file.write_text("".join(json.dumps({**self.line(i, m), **more}) + "\n" for i in range(len(self.text))))
        return file

    def line(self, i: int, m: int) -> dict[str, Any]:
        """One text of the log."""
        tops = {}
        for model, pmfs in (("target", self.p[i]), ("draft", self.q[i])):
            tops[f"{model}_top"] = [
                [[int(x), float(np.log(pmf[x]))] for x in np.argsort(-pmf, kind="stable")[:m]] for pmf in pmfs
            ]
            tops[model] = [float(np.log(pmf[x])) for pmf, x in zip(pmfs, self.text[i], strict=True)]
        return {"token": self.text[i].tolist(), "vocabulary": V, "error": 0, **tops}

    def tokens_per_call(self, rule: PathRule, shape: Shape) -> float:
        """From full pmfs, by the path theorem."""
        lengths = np.full(len(self.text), self.text.shape[1])
        triples = list(zip(self.p.reshape(-1, V), self.q.reshape(-1, V), self.text.reshape(-1), strict=True))
        if isinstance(shape, Chain):
            a = np.array([float(np.asarray(rule.acceptance_given(p, q))[x]) for p, q, x in triples])
            padded = np.concatenate([a, np.zeros(shape.k)])
            survival = np.stack([np.cumprod(padded[n : n + shape.k]) for n in range(len(a))])
            if shape.stop:
                log_draft = np.log([q[x] for _, q, x in triples])
                survival = survival * drafted_along({"log_draft": log_draft}, shape.stop, shape.k)
            return float(lengths.sum() / calls_of_texts(survival, lengths).expected.sum())
        assert isinstance(rule, RankRule)
        law = np.array([rule.rank_pmf_given(p, q, x, shape.max_rank) for p, q, x in triples])
        calls = calls_of_tree(*tree_survival(law, shape.tree()), lengths).expected
        return float(lengths.sum() / calls.sum())


RULES = [rule for rule in PATH_RULES.values() if bounds_given(rule)]
CHAINS = (Chain(3), Chain(3, stop=read_stop("token<0.1")))
CASES = [(rule, chain) for rule in RULES if rule.name != "block" for chain in CHAINS] + [
    (rule, shape)
    for rule in RULES
    for shape in (Batch(3), KAry((2, 1)))
    if isinstance(rule, RankRule) and bounds_given(rule) > 1
]


def certain(prediction: Prediction) -> Interval:
    return prediction.certified or Interval.exact(prediction.tokens_per_call.best)


@pytest.mark.parametrize(("rule", "shape"), CASES, ids=str)
def test_the_range_holds_the_value_of_full_pmfs(rule: PathRule, shape: Shape, tmp_path: Path) -> None:
    """And closes as the lists grow; the range of another pair's lists misses it (control)."""
    pair, other, widths = Pair(1), Pair(2), []
    value = pair.tokens_per_call(rule, shape)
    for m in (1, 5, 20, V):
        prediction = predict(read_any(pair.write(tmp_path / "log", m)), rule, shape, ConstantRatio(0.1))
        ends = certain(prediction)
        assert ends.low - ROUNDING <= value <= ends.high + ROUNDING
        assert prediction.tokens_per_call.low <= ends.low
        assert ends.high <= prediction.tokens_per_call.high
        widths.append(ends.high - ends.low)
    assert widths[-1] <= ROUNDING
    assert all(later <= earlier + ROUNDING for earlier, later in pairwise(widths))
    wrong = certain(predict(read_any(other.write(tmp_path / "log", V)), rule, shape))
    assert not wrong.low - ROUNDING <= value <= wrong.high + ROUNDING


def test_both_ends_are_laws_of_the_rank(tmp_path: Path) -> None:
    """Bounds of P(R <= r) give way by their rounding, more of it at later ranks: no probability is negative."""
    trace = read_any(Pair(1, texts=2).write(tmp_path / "log", 5))
    for end in ends_of(PATH_RULES["recursive"], trace, 5):
        assert end.law.min() >= 0
        assert end.law.sum(axis=1).max() <= 1


def test_the_interval_over_prompts_and_what_is_said(tmp_path: Path) -> None:
    pair = Pair(3)
    prediction = predict(read_any(pair.write(tmp_path / "log", 3)), PATH_RULES["race"], Chain(2))
    assert prediction.certified is not None
    assert (prediction.certified.kind, prediction.tokens_per_call.kind) == ("bound", "statistical")
    assert plain(SettingJson.view(prediction))["certified"]["kind"] == "bound"
    one = Pair(3, texts=1)
    alone = predict(read_any(one.write(tmp_path / "log", 3)), PATH_RULES["race"], Chain(2))
    assert alone.tokens_per_call == alone.certified


def test_the_speed_up_holds_for_calls_of_either_length(tmp_path: Path) -> None:
    """The share of calls after a full acceptance is not known: both are joined."""
    pair, rule = Pair(4), PATH_RULES["race"]
    one, two = Interval.exact(1.0), Interval.exact(1.2)
    times = LatencyTable({1: one, 2: one, 3: one}, {1: Interval.exact(0.1), 2: two}, context=1)
    ends, exact = (predict(read_any(pair.write(tmp_path / "log", m)), rule, Chain(2), times).speedup for m in (3, V))
    free = predict(read_any(pair.write(tmp_path / "log", 3)), rule, Chain(2), ConstantRatio(0.1)).speedup
    assert ends
    assert exact
    assert free
    assert ends.low <= exact.low
    assert ends.high >= exact.high
    assert ends.high - ends.low > free.high - free.low


def test_the_speed_up_of_a_head_holds_for_whatever_it_reads(tmp_path: Path) -> None:
    """The dearest call follows two accepted drafts, with a pass on three tokens; the cheapest none."""
    pair, rule, one = Pair(4), PATH_RULES["race"], Interval.exact(1.0)
    draft = {1: Interval.exact(0.1), 2: Interval.exact(0.1), 3: Interval.exact(20.0)}
    times = LatencyTable({1: one, 3: one}, draft, 1, {"draft": {"kind": "eagle3"}})
    prediction = predict(read_any(pair.write(tmp_path / "log", 3)), rule, Chain(2), times)
    assert prediction.certified
    assert prediction.speedup
    assert prediction.speedup.low <= prediction.certified.low / (1 + 20 + 0.1)
    assert prediction.speedup.high >= prediction.certified.high / (1 + 0.1 + 0.1)


def test_block_and_token_stay_exact_and_the_best_is_by_the_low_end(tmp_path: Path) -> None:
    trace = read_any(Pair(5).write(tmp_path / "log", 1))
    numbers = Trace.from_log_probabilities(
        [(trace.columns["log_target"][i : i + 12], trace.columns["log_draft"][i : i + 12]) for i in range(0, 48, 12)]
    )
    rules = [PATH_RULES[name] for name in ("token", "block", "race")]
    answer = plan(trace, rules=rules, shapes=[Chain(2)])
    assert [p.certified is None for p in answer.predictions] == [True, True, False]
    for of in ("token", "block"):
        assert (
            answer.of(of)[0].tokens_per_call
            == plan(numbers, rules=rules[:2], shapes=[Chain(2)]).of(of)[0].tokens_per_call
        )
    race = answer.of("race")[0].tokens_per_call
    assert race.low < answer.of("token")[0].tokens_per_call.best
    assert answer.best.rule.name != "race"


def test_the_best_is_by_low_ends_where_they_rank_otherwise(tmp_path: Path) -> None:
    """Rounding leaves open which of two tokens is the draft's first: argmax drafts may match all or none."""
    pair, p, q = Pair(6), np.full(V, 0.04 / (V - 1)), np.full(V, 0.2 / (V - 2))
    p[0], q[:2] = 0.96, 0.4
    pair.p, pair.q, pair.text = np.broadcast_to(p, pair.p.shape), np.broadcast_to(q, pair.q.shape), 0 * pair.text
    trace = read_any(pair.write(tmp_path / "log", 2, error=1e-3))
    answer = plan(trace, rules=[PATH_RULES[name] for name in ("token", "argmax")], shapes=[Chain(2)])
    token, argmax = (answer.of(name)[0].tokens_per_call for name in ("token", "argmax"))
    assert argmax.low < token.low <= token.best < argmax.best
    assert answer.best.rule.name == "token"


def test_laws_between_bounds_that_fall_are_laws(tmp_path: Path) -> None:
    """A stated error widens P(R <= k) more for larger k, so that its low ends fall in k (control)."""
    trace, rule = read_any(Pair(7).write(tmp_path / "log", 5, error=1e-3)), PATH_RULES["recursive"]
    assert all((end.law >= 0).all() and (end.law.sum(axis=1) <= 1).all() for end in ends_of(rule, trace, 4))
    read = zip(trace.lists, trace.columns["token"].tolist(), strict=True)
    lows = [[acceptance_given(rule, *lists, token, k).low for k in range(1, 5)] for lists, token in read]
    assert np.diff(lows, axis=1).min() < -1e-3


@pytest.mark.parametrize(
    ("rule", "shape", "message"),
    [
        ("race", Batch(2), "one candidate alone"),
        ("poisson", KAry((1, 2)), "not monotone"),
        ("poisson", BestTree(3), "no tree is searched for"),
    ],
)
def test_what_is_not_certified_is_refused(rule: str, shape: Any, message: str, tmp_path: Path) -> None:
    trace = read_any(Pair(1, texts=2).write(tmp_path / "log", 5))
    with pytest.raises(SettingError, match=message) as caught:
        predict(trace, PATH_RULES[rule], shape)
    assert "\n" not in str(caught.value)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Predict shows the certified rule by default, rules its acceptance; plan rests on exact predictions alone."""
    log = str(Pair(7, texts=9).write(tmp_path / "log", 5))
    assert main(["predict", log, "--k-max", "2", "--c", "0.1", "--out", str(tmp_path / "out"), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {p["rule"] for p in content["predictions"] if "certified" in p} == {"race"}
    assert any("not exact, but from lists" in note for note in content["notes"])
    assert main(["rules", log, "--candidates", "2", "--json"]) == 0
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)["rules"]}
    assert {name for name, row in rows.items() if row["acceptance"] is None} == {
        "race",
        "recursive-distinct",
        "kseq",
        "gumbel-list",
    }
    assert rows["poisson"]["acceptance"]["low"] < rows["poisson"]["acceptance"]["high"]
    assert main(["plan", log, "--c", "0.1", "--rule", "race"]) == 2
    assert "the trace has no race_g" in capsys.readouterr().err
    assert main(["tree", log]) == 2


# The log


def test_raw_log_probabilities_need_all_tokens(tmp_path: Path) -> None:
    """With all of them the settings are applied, and the prediction is that of the pmfs that were drawn from."""
    pair, hotter = Pair(6), Pair(6)
    for name in ("p", "q"):
        hot = getattr(pair, name) ** 2
        setattr(hotter, name, hot / hot.sum(axis=-1, keepdims=True))
    trace = read_any(pair.write(tmp_path / "log", V, sampling={"temperature": 0.5}))
    prediction = predict(trace, PATH_RULES["race"], Chain(2))
    assert certain(prediction).best == pytest.approx(hotter.tokens_per_call(PATH_RULES["race"], Chain(2)), abs=ROUNDING)
    assert certain(prediction).best != pytest.approx(pair.tokens_per_call(PATH_RULES["race"], Chain(2)), abs=ROUNDING)
    with pytest.raises(TextError, match=r"raw log-probabilities .* valid at temperature 1 without cuts"):
        read_any(pair.write(tmp_path / "log", 20, sampling={"temperature": 0.5}))
    assert len(read_any(pair.write(tmp_path / "log", 20, sampling={"temperature": 1.0}))) == 48


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary": None}, "line 1, token 1: vocabulary is None"),
        ({"token": [1]}, "of other lengths than 'target'"),
        ({"token": ["a"] * 12}, "line 1, token 1: its lists are no lists"),
        ({"target_top": [[[1, -0.1], [1, -3.0]]] * 12}, "line 1, token 1: its lists are no lists"),
        ({"target_top": [[[0, -1e-9]]] * 12}, r"line 1, token \d+: "),
        ({"draft_top": [7] * 12}, "line 1, token 1: its lists are no lists"),
        ({"error": 1}, "line 1, token 1: error is 1"),
        ({"sampling": {"heat": 1}}, "line 1: its sampling has unknown settings"),
        ({"sampling": {"temperature": -1}}, "line 1: temperature is -1"),
    ],
)
def test_bad_lists_are_named(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(json.dumps({**Pair(1).line(0, 5), **change}))
    with pytest.raises(TextError, match=message) as caught:
        read_any(tmp_path / "log")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({"token": [0, wrong]}, "line 1, token 2: ") for wrong in (7, -1, 1.5, None, "a")),
        *(({"token": wrong}, "of other lengths than 'target'") for wrong in ("ab", 5, [0])),
        ({"draft_top": [[[x, -1.0986122886681098] for x in (5, 7, 9)]] * 2}, "token 1: tokens has token 5"),
        ({"draft_top": [[[x, -1.0986122886681098] for x in (0, 0, 2)]] * 2}, "token 1: its lists are no lists"),
        ({"target": [-3.0, -1.0986122886681098]}, "token 1: its own log-probability is -3"),
    ],
)
def test_bad_full_lists_are_named_before_the_settings_are_applied(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    third = -1.0986122886681098
    tops = {f"{model}_top": [[[x, third] for x in range(3)]] * 2 for model in ("target", "draft")}
    line = {"target": [third] * 2, "draft": [third] * 2, "token": [0, 1], "vocabulary": 3, **tops}
    log = tmp_path / "log"
    log.write_text(json.dumps({**line, "sampling": {"temperature": 0.5}}))
    assert len(read_any(log)) == 2
    log.write_text(json.dumps({**line, "sampling": {"temperature": 0.5}, **change}))
    with pytest.raises(TextError, match=message):
        read_any(log)


def test_the_page_shows_a_line_that_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how_to" / "log_probabilities.md").read_text()
    (shown,) = (part.partition("```")[0] for part in page.split("```json\n") if '"target_top"' in part)
    (tmp_path / "log").write_text(" ".join(shown.split()))
    trace = read_any(tmp_path / "log")
    assert len(trace.lists) == 2
    trace.write(tmp_path / "trace.parquet")
    assert len(read_any(tmp_path).lists) == 2


def test_a_list_of_another_pass_and_a_missing_key(tmp_path: Path) -> None:
    line = Pair(1).line(0, V)
    (tmp_path / "log").write_text(json.dumps({**line, "target": [x - 0.01 for x in line["target"]]}))
    with pytest.raises(TextError, match="must agree within"):
        read_any(tmp_path / "log")
    del line["vocabulary"]
    (tmp_path / "log").write_text(json.dumps(line))
    with pytest.raises(TextError, match="line 1 has no 'vocabulary'"):
        read_any(tmp_path / "log")
