"""Messages name what their reader can use: arguments in Python, options on the command line, names that import."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spectheory
from spectheory.drafting import KAry
from spectheory.errors import ON_COMMAND_LINE, SpectheoryError
from spectheory.judging import judge
from spectheory.trace import Trace
from spectheory.trace.calls import CallLog, Request
from tests.api.test_public import PUBLIC, members
from tests.commands import refused
from tests.made_up import each, one_line

OPTION = re.compile(r"(?<![\w-])--[a-z]")
ROOT = Path(spectheory.__file__).parent
FOREIGN = {"run with --max-concurrency"}
"""Options of other tools."""
SHOW_OPTIONS = ("cli", "reports", "answers", "plots", "pages", "measure", "engines", "pairs")
"""Rooms that speak of commands, or of the programs they start."""
TRACE = Trace.from_log_probabilities([([-1.0] * 9, [-1.2] * 9)])
LOG = CallLog((Request("a", output=(3, 1), accepted=(1,), drafted=(1,)),), k=1, temperature=1.0)
P = [0.5, 0.5]
TWINS: list[tuple[str, Callable[[], Any], str]] = [
    ("bounds", lambda: spectheory.bounds(), "needs one of a trace, mu with mu2, target_pmf, rank_pmf, target_logprobs"),
    ("bounds --mu 1 --mu2 2 --nodes 0", lambda: spectheory.bounds(mu=1, mu2=2, nodes=0), "nodes is 0: must be in 1.."),
    ("bounds --mu 1", lambda: spectheory.bounds(mu=1), "mu2 is missing"),
    ("bounds --draft-nats 1", lambda: spectheory.bounds(draft_nats=1), "draft_nats is given without target_nats"),
    ("bounds --need 2", lambda: spectheory.bounds(need=2), "need is given without c"),
    ("bounds --mu 1 --mu2 2 --trees 3", lambda: spectheory.bounds(mu=1, mu2=2, trees=3), "trees is given without tar"),
    ("bounds --mu 1 --mu2 2 --chains 3", lambda: spectheory.bounds(mu=1, mu2=2, chains=3), "chains is given without a"),
    ("bounds --target-nats -1", lambda: spectheory.bounds(target_nats=-1), "target_nats is -1: must be >= 0"),
    (
        "bounds --target-nats 1 --nodes 2",
        lambda: spectheory.bounds(target_nats=1, nodes=2),
        "nodes is given with entropies or a speed-up",
    ),
    (
        "bounds --target-nats 2 --draft-nats 1",
        lambda: spectheory.bounds(target_nats=2, draft_nats=1),
        "draft_nats is 1, below target_nats 2",
    ),
    ("rules --target-pmf 0.5,0.5", lambda: spectheory.rules(target_pmf=P), "draft_pmf is missing"),
    (
        "rules --target-pmf 1,1 --draft-pmf 1,0",
        lambda: spectheory.rules(target_pmf=[1, 1], draft_pmf=P),
        "target_pmf",
    ),
    (
        "rules --target-pmf 0.5,0.5 --draft-pmf 0.5,0.5 --candidates 0",
        lambda: spectheory.rules(target_pmf=P, draft_pmf=P, candidates=0),
        "candidates is 0",
    ),
    ("tree --rank-pmf 0.5 --nodes 0", lambda: spectheory.tree(rank_pmf=[0.5], nodes=0), "nodes is 0"),
    (
        "tree --rank-pmf 0.5 --rule race",
        lambda: spectheory.tree(rank_pmf=[0.5], rule="race"),
        "rule is given without",
    ),
    ("tree TRACE --max-width 2", lambda: spectheory.tree(TRACE, max_width=2), "max_width is given with a trace"),
    ("predict TRACE --new-prompts 0", lambda: spectheory.plan(TRACE, new_prompts=0), "new_prompts is 0"),
    (
        "predict TRACE --passes-alone",
        lambda: spectheory.plan(TRACE, passes_alone=True),
        "passes_alone is given without",
    ),
    ("predict TRACE --rule grown", lambda: spectheory.plan(TRACE, rules="grown"), "measure with grow"),
    ("predict TRACE --rule suffix", lambda: spectheory.plan(TRACE, rules="suffix"), "measure with ngram"),
]
"""A command, the same question in Python, and a part of what Python says; the command says it with options."""


@each("command, ask, fragment", TWINS)
def test_python_names_arguments_and_the_command_line_options(
    command: str, ask: Callable[[], Any], fragment: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    TRACE.write(tmp_path / "trace.parquet")
    with pytest.raises(SpectheoryError) as caught:
        ask()
    assert fragment in one_line(caught)
    assert not OPTION.search(str(caught.value))
    line = refused([str(tmp_path) if word == "TRACE" else word for word in command.split()], capsys)
    assert OPTION.search(line)
    assert fragment in re.sub(r"--([a-z][a-z0-9-]*)", lambda option: option[1].replace("-", "_"), line)
    assert not ON_COMMAND_LINE.get()


PYTHON: list[tuple[Callable[[], Any], str]] = [
    (lambda: judge(LOG), "reread=functools.partial(spectheory.measure.judged.judged_trace, pair, log)"),
    (lambda: judge("nowhere"), "nowhere is missing: there is no such file; check the path"),
    (lambda: judge(LOG, TRACE, k=0), "k is 0: must be in 1.."),
    (lambda: judge(LOG, TRACE, temperature=-1), "temperature is -1: must be >= 0 and finite"),
    (lambda: judge(LOG, TRACE, top_p=2), "top-p is 2: must be in (0, 1]"),
    (lambda: judge(3, TRACE), "log is 3: needs a CallLog; spectheory.trace.read_evidence reads one"),
    (
        lambda: spectheory.predict(TRACE, "token", KAry((2, 2))),
        "judges one chain of drafts; use a chain, or",
    ),
    (lambda: spectheory.predict(TRACE, "kseq", KAry((2,))), "rule 'kseq' has no path form: texts are predicted by"),
    (lambda: spectheory.plan(TRACE, stops=["best"]), "stops best is given without costs"),
    (lambda: KAry((2, 0)), "branching is 0: must be >= 1; count from 1"),
    (lambda: Trace.from_logits(np.zeros((1, 2)), np.zeros((1, 2)), [1.5]), "pass ids and counts as integers"),
]
"""What Python says where no command asks the like."""


@each("ask, fragment", PYTHON)
def test_what_python_says(ask: Callable[[], Any], fragment: str) -> None:
    with pytest.raises(SpectheoryError) as caught:
        ask()
    assert fragment in one_line(caught)
    assert not OPTION.search(str(caught.value))


def words(tree: ast.AST) -> Iterator[str]:
    """The constant texts of an expression, but for what the command line alone is told."""
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    of_command = isinstance(tree, ast.Call) and getattr(tree.func, "id", "") == "argument"
    for node in tree.args[:1] if of_command else ast.iter_child_nodes(tree):  # type: ignore[attr-defined]
        yield from words(node)


def messages(source: str, *parts: str) -> Iterator[str]:
    """What the errors and checks of a file say, or these parts of it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and {"remedy", "limit"} & {keyword.arg for keyword in node.keywords}:
            for part in [keyword.value for keyword in node.keywords if keyword.arg in parts] if parts else [node]:
                yield from words(part)


LIBRARY = {
    path.relative_to(ROOT): path.read_text(encoding="utf-8")
    for path in sorted(ROOT.rglob("*.py"))
    if path.relative_to(ROOT).parts[0] not in SHOW_OPTIONS
}


def named_options(said: Iterable[str]) -> list[str]:
    return [text for text in said if OPTION.search(text) and text not in FOREIGN]


def test_no_error_of_the_library_names_an_option() -> None:
    assert {file: options for file, source in LIBRARY.items() if (options := named_options(messages(source)))} == {}


COMPOUND = re.compile(r"[a-z]+_[a-z_]+|[A-Z]+[a-z]+[A-Z]\w*")
MADE_OF_TWO = {name for module in PUBLIC for name, _ in members(import_module(module)) if COMPOUND.fullmatch(name)}
ALSO_WORDS = {"rank_pmf"}
"""Public names that are methods of rules too."""


def undotted(said: Iterable[str]) -> list[str]:
    """Messages that advise a public function or class by its bare name."""
    return [text for text in said if (MADE_OF_TWO - ALSO_WORDS) & set(re.findall(r"(?<![\w.'`])\w+(?=\W|$)", text))]


def unknown(said: Iterable[str]) -> list[str]:
    """Dotted names of the project that cannot be imported."""
    return [name for text in said for name in re.findall(r"spectheory(?:\.\w+)+", text) if not importable(name)]


def importable(name: str) -> bool:
    module, *rest = name.split(".")
    value: Any = import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        try:
            value = getattr(value, part, None) or import_module(module)
        except ImportError:
            return False
    return True


def test_names_in_remedies_can_be_imported() -> None:
    remedies = {file: list(messages(source, "remedy")) for file, source in LIBRARY.items()}
    assert {file: names for file, said in remedies.items() if (names := undotted(said) + unknown(said))} == {}


def test_such_messages_are_seen() -> None:
    """Negative control: an option, a bare name, and names of nothing; an option for the command line alone is fine."""
    said = """E("--k is 0", limit="", remedy=f"lower {argument('k', '--k-max')}")"""
    assert named_options(messages(said)) == ["--k is 0"]
    assert (
        undotted(["judge_it makes one", "spectheory.trace.read_any makes one", "read_any makes one"])[0][:4] == "read"
    )
    assert unknown(["use spectheory.nothing, spectheory.Trace.read or spectheory.trace.read_nothing"]) == [
        "spectheory.nothing",
        "spectheory.trace.read_nothing",
    ]
