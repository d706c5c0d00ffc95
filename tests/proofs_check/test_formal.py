"""The definitions of the proofs in Coq compute what the enumeration in fractions does, and no proof has a gap."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from proofs_check.evidence.formal import SOURCES, ask, files, missing
from proofs_check.run.ledger import ledger
from proofs_check.run.report import Report, formal_line
from proofs_check.run.verify import keys_of
from proofs_check.statement.findings import Effort
from proofs_check.twins.block_values import (
    MassesOf,
    Prefix,
    Problem,
    block_masses,
    drop,
    expected_calls,
    texts,
    token_masses,
)
from spectheory.cli import main

needs_coq = pytest.mark.skipif(bool(missing()), reason=missing() or "Coq is here")

Table = dict[Prefix, tuple[Fraction, ...]]

PRELUDE = """\
From Coq Require Import ZArith QArith Qcanon.
Set Printing Depth 100000.
Definition mem := (fun (t : seq (seq nat * seq Qc)) (w : seq nat) (z : nat) =>
  nth (frac 0 1) (head [::] [seq r.2 | r <- t & r.1 == w]) z).
Definition both (x : Qc) : seq Z := [:: Qnum x; Zpos (Qden x)].
Open Scope Z_scope.
"""
"""A model from a table of its pmfs by text, after which there is nothing."""


def drawn(seed: int, tokens: int, length: int) -> tuple[Table, Table]:
    """Random pmfs of target and draft after every text of fewer tokens, zeros included."""
    rng = random.Random(seed)

    def pmf() -> tuple[Fraction, ...]:
        weights = [rng.choice((0, 1, 1, 2, 3)) for _ in range(tokens - 1)] + [1]
        return tuple(Fraction(each, sum(weights)) for each in weights)

    every = [text for n in range(length) for text in product(range(tokens), repeat=n)]
    return {text: pmf() for text in every}, {text: pmf() for text in every}


def written(table: Table) -> str:
    """A table of pmfs as Coq reads it."""
    rows = (
        f"([:: {'; '.join(f'{z}%nat' for z in text)}], "
        f"[:: {'; '.join(f'frac {each.numerator} {each.denominator}' for each in pmf)}])"
        for text, pmf in table.items()
    )
    return f"[:: {'; '.join(rows)}]".replace("[:: ]", "[::]")


def in_coq(p: str, q: str, tokens: int, k: int, length: int) -> dict[str, list[Fraction]]:
    """V and D of block and token verification at every text of fewer tokens, by the definitions of the proofs."""
    listed = "; ".join(f"{z}%nat" for z in range(tokens))
    at = "[seq w <- runs voc N | leq (size w) N]"
    lines = [
        f"Definition voc := [:: {listed}]. Definition N := {length - 1}%nat.",
        f"Definition P := @texts nat_eqType (mem {p}) (mem {q}) (fun=> {k}%nat) {length}%nat.",
        *(f'Goal True. idtac "{name}". Abort. Eval vm_compute in flatten [seq both ({of} w) | w <- {at}].'
          for name, of in (("block V", "value voc P (block P)"), ("block D", "saving voc P (block P)"),
                           ("token V", "value voc P (token P)"), ("token D", "saving voc P (token P)")))
    ]  # fmt: skip
    said = ask(PRELUDE + "\n".join(lines), imports="Definitions Fractions Toys")
    parts = re.split(r"(block V|block D|token V|token D)\n", said)[1:]
    numbers = {
        name: list(map(int, re.findall(r"-?\d+", part))) for name, part in zip(parts[::2], parts[1::2], strict=True)
    }
    return {name: list(map(Fraction, each[::2], each[1::2])) for name, each in numbers.items()}


def enumerated(given: Problem, length: int) -> dict[str, list[Fraction]]:
    """The same by proofs_check's enumeration, over runs in the order of the Coq list."""

    def runs(most: int) -> list[Prefix]:
        longer = [(z, *x) for z in range(given.tokens) for x in runs(most - 1)] if most else []
        return [(), *longer]

    every = runs(length - 1)
    rules: tuple[tuple[str, MassesOf], ...] = (("block", block_masses), ("token", token_masses))
    out: dict[str, list[Fraction]] = {}
    for name, of in rules:
        value: Callable[[Prefix], Fraction] = expected_calls(given, of)
        out |= {f"{name} V": list(map(value, every)), f"{name} D": list(map(drop(given, value), every))}
    return out


@needs_coq
@pytest.mark.evidence
@pytest.mark.parametrize(("seed", "tokens", "k", "length"), [(1, 2, 2, 4), (2, 3, 1, 3), (3, 3, 2, 3), (4, 2, 3, 3)])
def test_the_definitions_in_coq_are_those_of_the_enumeration(seed: int, tokens: int, k: int, length: int) -> None:
    p, q = drawn(seed, tokens, length + k + 1)
    computed = in_coq(written(p), written(q), tokens, k, length)
    expected = enumerated(texts(p.__getitem__, q.__getitem__, k, length), length)
    assert computed == expected
    other, _ = drawn(seed + 100, tokens, length + k + 1)
    assert computed != enumerated(texts(p.__getitem__, other.__getitem__, k, length), length), "another draft"


def test_without_coq_these_checks_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = list(ledger().values())
    proofs = sum(each.kind == "formal" for entry in entries for each in entry.evidence)
    for module in ("evidence.formal", "run.verify", "run.report"):
        monkeypatch.setattr(f"proofs_check.{module}.missing", lambda: "coqc is not installed")
    keys = keys_of(entries)
    assert len(keys) == sum(len(entry.evidence) for entry in entries) - proofs
    said = formal_line(Report(entries, keys, (), Effort(), 0.0))
    assert said == f"Formal: not run here, coqc is not installed; {proofs} checks left out"
    assert main(["verify", "--evidence", "formal"]) == 2
    assert "coqc is not installed; apt-get install coq" in " ".join(capsys.readouterr().err.split())


def test_no_file_has_a_gap_and_every_file_is_listed() -> None:
    assert sorted(files()) == sorted(path.stem for path in SOURCES.glob("*.v"))
    for name in files():
        text = (SOURCES / f"{name}.v").read_text(encoding="utf-8")
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", text), name


def test_every_statement_is_asked_for_its_axioms() -> None:
    text = (SOURCES / "Statements.v").read_text(encoding="utf-8")
    assert re.findall(r"^Theorem (\w+)", text, re.MULTILINE) == re.findall(
        r"^Print Assumptions (\w+)", text, re.MULTILINE
    )


def test_the_page_names_every_statement_and_every_wrong_variant() -> None:
    page = (SOURCES.parents[1] / "docs" / "formal.md").read_text(encoding="utf-8")
    for file in ("Statements", "WrongVariants"):
        names = re.findall(r"^Theorem (\w+)", (SOURCES / f"{file}.v").read_text(encoding="utf-8"), re.MULTILINE)
        assert names
        assert [name for name in names if f"`{name}`" not in page] == []
