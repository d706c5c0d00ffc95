"""The ledger is complete: every statement and every public calculator has its evidence, and all of it holds.

Each check comes with a negative control, a wrong variant that the same check must reject; one that accepted it would
fail here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from proofs_check import theorems
from proofs_check.agreement.path_cases import CHAINS, RANKED
from proofs_check.evidence.entries import Entry, Evidence
from proofs_check.evidence.simulated import ALARM, Parameters, instead, simulated, stated
from proofs_check.run import pages
from proofs_check.run.ledger import ledger
from proofs_check.run.verify import Key, check_one, keys_of
from proofs_check.statement.findings import KINDS, Effort, Finding
from simulations.experiments.tasks import Simulator, _registered, registered
from simulations.verdicts.predictions import Predicted, Side
from spectheory.errors import SettingError
from spectheory.verification import RULES, RankRule, Rule
from spectheory.verification.registry import BUILT_IN
from tests.made_up import each

ROOT = Path(__file__).parents[2]

PROVED = ("A1", "A2", "A3", "A4", "R1", "R4", "S1", "S2", "S3", "Y2", "Y6", "B7", "B7/regret")
"""Statements that must have a proof in checked steps."""

SIMULATED = (
    *("A1", "A2", "A3", "A4", "R1", "R2", "R3", "R3/product", "R5", "R6", "R7", "H", "H/distinct"),
    *("S1", "S3", "T1", "B2", "B2'", "B3'", "Y1", "Y3", "Y3/printed", "Y4", "Y5", "Y6", "§7", "B7"),
)
"""Statements whose algorithms have kernels: they must be simulated too."""

REFUTED = (
    *("A3/look-alike", "H/distinct", "H/truncated", "T1/mixture", "§7/product", "S4/greedy", "S4/more", "Y3/printed"),
    *("Y3/empty", "Y4/support", "B4/sampling", "B2'/dependent", "B1/leading", "B8/one-step", "B9/stretches"),
    *("C4/no-knee", "B7/in-law", "B7/tokens", "B7/by-depth", "B7/starts", "B7/lengths-free", "§7/first-draft"),
    *("§10/recut", "Y7/zero"),
)
"""False statements that must stand beside the true ones they resemble."""

PUBLIC = ("", "verification", "drafting", "limits", "cost", "truncated")
"""Packages whose every public name is backed by an entry."""


def statements() -> list[str]:
    """The ids of the theory page."""
    text = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8").replace("′", "'")
    ids = re.findall(r"\*\*(?:B3, )?([DARSTBYC]\d'?|§9)\*\*", text)
    return [*dict.fromkeys(ids), "§7", "H"]


def public_names() -> Iterator[str]:
    for package in PUBLIC:
        dotted = f"spectheory.{package}".rstrip(".")
        yield from (f"{dotted}.{name}" for name in importlib.import_module(dotted).__all__)


ENTRIES = list(ledger().values())
KEYS = keys_of(ENTRIES)


def _named(key: Key) -> str:
    return f"{key[0]}-{evidence_of(key).kind}-{key[1]}"


def evidence_of(key: Key) -> Evidence:
    return ledger()[key[0]].evidence[key[1]]


LIBRARY = [key for key in KEYS if evidence_of(key).checks_library]
"""The checks that compare the library's calculators with exact values: quick, so they run with every test."""


def test_the_library_is_compared_with_exact_values() -> None:
    assert len(LIBRARY) > 80, "the comparisons of the library with exact values"


@pytest.mark.parametrize(
    "key", [k if k in LIBRARY else pytest.param(k, marks=pytest.mark.evidence) for k in KEYS], ids=_named
)
def test_the_evidence_holds_and_its_control_is_rejected(key: Key) -> None:
    checked = check_one(key, Effort())
    assert checked.outcome in ("proved", "holds", "refuted"), checked.trouble


def test_every_statement_has_an_entry() -> None:
    assert len(statements()) > 35
    assert set(statements()) | {"B3"} | set(SIMULATED) | set(REFUTED) <= set(ledger())
    assert all(ledger()[name].refuted for name in REFUTED)


@each("entry", ENTRIES)
def test_every_entry_has_evidence_of_every_kind_that_applies(entry: Entry) -> None:
    have = {evidence.kind for evidence in entry.evidence}
    assert have, "an entry without evidence"
    for kind in KINDS[1:5]:  # a proof in Coq is no duty
        assert (kind in have) != (kind in entry.without), f"{kind}: evidence, or the reason why there is none"
    assert all(reason.strip() for reason in entry.without.values())
    if entry.id in PROVED:
        assert "symbolic" in have
    if entry.id in SIMULATED:
        assert "simulation" in have
    if entry.refuted:
        assert have & {"exact", "certified"}, "a counterexample in exact arithmetic"
    for evidence in entry.evidence:
        assert evidence.says
        assert evidence.control.says
        assert bool(evidence.steps) == (evidence.kind == "symbolic")
        carrying = [step for step in evidence.steps if step.part == "argument"]
        assert 2 * len(carrying) >= len(evidence.steps), "a proof that says or cites more than it shows"


@each("name", list(public_names()))
def test_every_public_calculator_is_backed_by_an_entry(name: str) -> None:
    assert any(name in entry.calculators for entry in ENTRIES) or stated_by(name) in ledger()


def stated_by(name: str) -> str:
    """The statement that a rule names as its law."""
    module, _, attribute = name.rpartition(".")
    return str(getattr(getattr(importlib.import_module(module), attribute), "statement", ""))


@each("rule", BUILT_IN)
def test_every_rule_names_a_statement(rule: Rule) -> None:
    assert rule.statement in ledger()


@each("entry", ENTRIES)
def test_the_calculators_named_exist(entry: Entry) -> None:
    for name in entry.calculators:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


PAIR = {"target": [0.5, 0.3, 0.2], "draft": [0.2, 0.3, 0.5], "max_rank": 2}
RANKS = simulated("ranks", [("poisson", PAIR)], stated("R1"), wrong=("of R2", stated("R2", kind="race")))


def test_a_wrong_simulator_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the machinery: races over distinct tokens under the name of the Poisson race."""
    assert RANKS.check(Effort()).status == "held"
    assert RANKS.control.check(Effort()).status == "refuted"
    wrong = Simulator(registered("race").run, "wrong")
    monkeypatch.setitem(_registered, "poisson", wrong)
    finding = RANKS.check(Effort())
    assert (finding.status, finding.at) == (
        "refuted",
        "P(R = 2) of poisson(target = [0.5, 0.3, 0.2], draft = [0.2, 0.3, 0.5], max_rank = 2)",
    )
    assert "standard errors off, false alarm 1e-09" in finding.note
    assert RANKS.control.check(Effort()).status == "held"


def test_a_simulation_says_what_it_could_have_seen() -> None:
    """Two ranks, 200,000 trials, 1e-9 shared by two numbers: (6.2 + 2.3) standard errors, .0092 at P(R = 1) = .63."""
    finding = RANKS.check(Effort())
    assert (finding.cases, finding.gap) == (2, None)
    assert "200,000 trials each, false alarm 1e-09 in all; errors of 0.0073 to 0.0092 would be seen" in finding.note
    shifted = instead(stated("R1"), lambda _, said: said + 0.01)
    assert simulated("", [("poisson", PAIR)], shifted, wrong=("", shifted)).check(Effort()).status == "refuted"


def test_a_bound_is_refuted_on_its_side_alone() -> None:
    """0.01 beyond the acceptance is held on the one side and refuted on the other, at half the trials too."""

    def bound(side: Side, shift: float) -> str:
        def said(_: str, pair: Parameters) -> list[Predicted]:
            (acceptance, *_rest) = stated("R1")("poisson", pair)
            return [replace(acceptance, value=float(acceptance.value) + shift, side=side)]  # type: ignore[arg-type]

        return simulated("", [("poisson", PAIR)], said, wrong=("", said)).check(Effort()).status

    assert (bound("upper bound", 0.01), bound("lower bound", 0.01)) == ("held", "refuted")
    assert (bound("upper bound", -0.01), bound("lower bound", -0.01)) == ("refuted", "held")


def test_a_statement_that_says_nothing_of_a_setting_is_an_error() -> None:
    silent = simulated("", [("poisson", PAIR)], stated("Y1"), wrong=("", stated("Y1")))
    with pytest.raises(SettingError, match=r"nothing is said of poisson with \['draft', 'max_rank', 'target'\]"):
        silent.check(Effort())


def test_simulations_keep_to_their_share_of_false_alarms() -> None:
    """A thousandth of the suite's 1e-6 each: there is room for many times as many as there are."""
    made = [evidence for entry in ENTRIES for evidence in entry.evidence if evidence.kind == "simulation"]
    assert 2 * len(made) * ALARM < 1e-6


def test_the_ledger_loads_without_a_compiler() -> None:
    """Kernels are compiled, and numba imported, when a simulation runs."""
    line = "import sys; from proofs_check.run.ledger import ledger; ledger(); print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False"


def _brought(line: ast.ImportFrom) -> dict[str, object]:
    """The functions that an import brings, by name."""
    source = vars(importlib.import_module(str(line.module)))
    names = [name for each in line.names if not each.asname for name in (source if each.name == "*" else [each.name])]
    return {name: source[name] for name in names if inspect.isfunction(source.get(name)) and name[0] != "_"}


def test_no_star_import_hides_another_function_of_the_same_name() -> None:
    for info in pkgutil.walk_packages(theorems.__path__, "proofs_check.theorems."):
        tree = ast.parse(inspect.getsource(importlib.import_module(info.name)))
        before: dict[str, object] = {}
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for line in (node for node in tree.body if isinstance(node, ast.ImportFrom)):
            brought = _brought(line)
            if line.names[0].name == "*":
                hidden = {name for name in brought if before.get(name, brought[name]) is not brought[name]}
                assert hidden <= defined, info
            before |= brought


def test_a_refuted_entry_is_named_after_the_true_one_it_resembles() -> None:
    assert all("/" in entry.id for entry in ENTRIES if entry.refuted)


def control_characters(entry: Entry) -> list[str]:
    """Texts of an entry with a character that does not print, as a tab in place of a backslash and a t."""
    texts = [entry.title, entry.plain, entry.latex, *entry.assumptions, *entry.without.values()]
    for evidence in entry.evidence:
        texts += [evidence.says, evidence.control.says, *(step.says for step in evidence.steps)]
    return [text for text in texts if not text.isprintable()]


@each("entry", ENTRIES)
def test_statements_have_no_control_characters(entry: Entry) -> None:
    assert control_characters(entry) == []


def test_a_control_character_would_be_seen() -> None:
    """Negative control: a tab."""
    assert control_characters(replace(ENTRIES[0], latex="\tau")) == ["\tau"]


def test_every_rule_has_its_algorithm_in_fractions() -> None:
    """One line for a rule in CHAINS, or in RANKED for a rule with ranks (``proofs_check/agreement/path_cases.py``)."""
    assert sorted(RULES.keys() - CHAINS.keys()) == [], "rules without an algorithm"
    assert sorted(CHAINS.keys() - RULES.keys()) == [], "algorithms without a rule"
    assert {name for name, rule in RULES.items() if isinstance(rule, RankRule)} == RANKED.keys()


@pytest.mark.evidence
def test_the_pages_of_theorems_are_up_to_date() -> None:
    """Written by ``python -m proofs_check.run.pages docs``."""
    assert _committed() == pages.pages()


def test_the_pages_of_theorems_are_up_to_date_but_for_counterexamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which take seconds to find."""

    def unseen(evidence: Evidence) -> Evidence:
        return replace(evidence, check=lambda _: Finding("refuted", 1, at="somewhere"))

    quick = {entry.id: replace(entry, evidence=tuple(map(unseen, entry.evidence))) for entry in ENTRIES}
    monkeypatch.setattr(pages, "ledger", lambda: quick)
    counterexample = r"(?<=  - Counterexample: `).*(?=`\.\n)"
    assert pages.pages() == {name: re.sub(counterexample, "somewhere", page) for name, page in _committed().items()}


def _committed() -> dict[str, str]:
    docs = ROOT / "docs"
    pages = [docs / "theorems.md", *(docs / "theorems").iterdir()]
    return {path.relative_to(docs).as_posix(): path.read_text(encoding="utf-8") for path in pages}


def test_the_readme_counts_the_statements() -> None:
    checks = sum(len(entry.evidence) for entry in ENTRIES)
    false = sum(entry.refuted for entry in ENTRIES)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(ENTRIES)} statements, {checks} checks" in readme
    still = sum(entry.title.endswith(": not refuted") for entry in ENTRIES)
    unproved = f"{still} {'is' if still == 1 else 'are'} open"
    holds = f"{len(ENTRIES) - false - still} hold, each with its proof or test, and {unproved}"
    assert f"{holds}; {false} similar ones are false" in readme
