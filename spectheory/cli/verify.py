"""``spectheory verify``: the ledger's evidence, run; or a claim of the user's own on trial."""

from __future__ import annotations

import json
import os
import runpy
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.cli.console import answers, progress, remarks
from spectheory.cli.inputs import in_range, one_source
from spectheory.cli.theory_options import VerifyOptions
from spectheory.errors import SettingError, load_extra

if TYPE_CHECKING:
    from proofs_check.claims import Claim
    from proofs_check.entries import Entry
    from proofs_check.findings import Effort
    from proofs_check.report import Report
    from proofs_check.verify import Checked

MOST_WORKERS = 1024
DETAILED = 4
"""Up to this many statements are shown with every check of theirs, without being named."""


def run_verify(question: VerifyOptions) -> int:
    """Run what was asked for and show it; 0 if everything came out as the ledger says, else 1."""
    for module in ("sympy", "z3", "mpmath", "hypothesis"):
        load_extra(module, extra="proofs")
    from proofs_check.findings import Effort

    if question.seed < 0:
        raise SettingError(f"--seed is {question.seed}", limit="must be >= 0", remedy="0 is the default")
    effort = Effort(question.deep, question.seed)
    if question.claim is not None:
        return _try_claims(question, effort)
    return _run_ledger(question, effort)


def _run_ledger(question: VerifyOptions, effort: Effort) -> int:
    from proofs_check.findings import KINDS
    from proofs_check.ledger import select
    from proofs_check.report import Report

    workers = question.workers if question.workers is not None else os.cpu_count() or 1
    in_range("--workers", workers, MOST_WORKERS)
    kind = next((each for each in KINDS if each == question.kind), None)
    if question.kind is not None and kind is None:
        raise SettingError(f"--kind is {question.kind!r}", limit=f"is one of {', '.join(KINDS)}", remedy="name one")
    entries = select(question.ids or [], question.paper)
    if kind is not None:
        entries = [entry for entry in entries if any(evidence.kind == kind for evidence in entry.evidence)]
        if not entries:
            raise SettingError(
                f"none of the statements asked for has {kind} evidence", limit="needs one", remedy="leave --kind out"
            )
    began = time.perf_counter()
    checks: list[Checked] = []
    try:
        _collect(question, effort, entries, workers, checks)
    finally:  # an interruption shows what is finished
        report = Report(entries, checks, effort, time.perf_counter() - began)
        if checks:
            _show(report, question)
    return 0 if report.as_expected else 1


def _collect(question: VerifyOptions, effort: Effort, entries: list[Entry], count: int, checks: list[Checked]) -> None:
    """Run the checks, each added to `checks`, and to the file if there is one, as it finishes."""
    from proofs_check.findings import KINDS
    from proofs_check.record import append, read_record, ready
    from proofs_check.verify import keys_of, verify, workers

    keys = keys_of(entries, next((each for each in KINDS if each == question.kind), None))
    known, remark = read_record(question.out, effort) if question.out else ({}, "")
    if question.out:
        ready(question.out)
    if remark:
        remarks.print(f"{question.out}: {remark}")
    with ExitStack() as stack:
        waiting = sum(key not in known for key in keys)
        pool = stack.enter_context(workers(min(count, waiting))) if min(count, waiting) > 1 else None
        bar = stack.enter_context(progress())
        task = bar.add_task("checking", total=len(keys))
        try:
            for checked in verify(keys, effort, executor=pool, known=known):
                checks.append(checked)
                if question.out and (checked.id, checked.place) not in known:
                    append(question.out, checked, effort)
                bar.update(task, advance=1, description=checked.id)
        except BaseException:
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)
            raise


def _show(report: Report, question: VerifyOptions) -> None:
    from proofs_check.report import as_dict, checks_table, facts, statements_table

    if question.json:
        print(json.dumps(as_dict(report), indent=2, allow_nan=False, default=str))
        return
    if question.ids or len(report.entries) <= DETAILED:
        for entry in report.entries:
            answers.print(checks_table(report, entry))
            for line in facts(entry):
                answers.print(line, style="dim", highlight=False, markup=False)
            answers.print()
    else:
        answers.print(statements_table(report))
    answers.print(report.headline, style="bold", highlight=False)
    for each in report.checks:
        if each.trouble:
            answers.print(f"{each.id}, {each.kind}: {each.outcome}: {each.trouble}", highlight=False, markup=False)


# A claim of the user's own


def _try_claims(question: VerifyOptions, effort: Effort) -> int:
    """Put every claim of a Python file on trial."""
    from proofs_check.trial import try_claim

    one_source({"--claim": True, "an id": bool(question.ids), "--paper": question.paper is not None})
    path = Path(str(question.claim))
    refuted = False
    found = []
    for claim in _claims(path):
        with remarks.status(f"trying {claim.says}"):
            trial = try_claim(claim, effort=effort)
        refuted = refuted or trial.counterexample is not None
        found.append(trial)
        if not question.json:
            answers.print(str(trial), highlight=False, markup=False)
    if question.json:
        print(json.dumps([trial.as_dict() for trial in found], indent=2, allow_nan=False))
    return int(refuted)


def _claims(path: Path) -> list[Claim]:
    """The claims a Python file defines.

    Raises
    ------
    SettingError
        If it cannot be run, or defines none.
    """
    from proofs_check.claims import Claim

    try:
        names = runpy.run_path(str(path))
    except OSError as error:
        raise SettingError(
            f"--claim {str(path)!r} cannot be read ({error.strerror or error})",
            limit="needs a Python file",
            remedy="check the path",
        ) from error
    except Exception as error:
        raise SettingError(
            f"--claim {str(path)!r} ends with {type(error).__name__}: {error}",
            limit="needs a Python file that runs",
            remedy=f"run it with python {path}",
        ) from error
    claims = [value for value in names.values() if isinstance(value, Claim)]
    if not claims:
        raise SettingError(
            f"--claim {str(path)!r} defines no claim",
            limit="needs one",
            remedy="claim = proofs_check.Claim(says, holds)",
        )
    return claims
