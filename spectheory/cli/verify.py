"""``spectheory verify``: the ledger's evidence, run; or a claim of the user's own on trial."""

from __future__ import annotations

import os
import runpy
import sys
import time
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from spectheory.checks import in_range, one_source
from spectheory.cli.answer import print_json
from spectheory.cli.console import answers, ready_folder, remark, remarks
from spectheory.cli.inputs import MOST_WORKERS
from spectheory.cli.options import VerifyOptions
from spectheory.cli.progress import progress, working
from spectheory.cli.statuses import Status
from spectheory.errors import SettingError, SpectheoryError, load_extra
from spectheory.files import read_text
from spectheory.processes import prepare
from spectheory.store import Store

if TYPE_CHECKING:
    from proofs_check.run.report import Report
    from proofs_check.run.verify import Checked, Key
    from proofs_check.statement.claims import Claim
    from proofs_check.statement.findings import Effort, Kind

RECORD = "checks.jsonl"
"""Finished checks, in the folder of --out."""
DETAILED = 4
"""Up to this many statements are shown with every check of theirs, without being named."""


def run_verify(question: VerifyOptions) -> int:
    """Run what was asked for and show it; the status says whether everything came out as the ledger says."""
    for module in ("sympy", "z3", "mpmath", "gmpy2", "hypothesis"):
        load_extra(module, extra="proofs")
    from proofs_check.statement.findings import Effort

    effort = Effort(question.full, question.seed)
    if question.claim is not None:
        return _try_claims(question, effort)
    return _run_ledger(question, effort)


def _run_ledger(question: VerifyOptions, effort: Effort) -> int:
    from proofs_check.run import PRELOADED

    prepare(PRELOADED)  # beside this process, which loads the same
    from proofs_check.run.ledger import select
    from proofs_check.run.report import Report
    from proofs_check.run.verify import keys_of

    workers = question.workers if question.workers is not None else os.cpu_count() or 1
    in_range("--workers", workers, MOST_WORKERS)
    kind = _kind(question.evidence)
    entries = select(question.ids or [], question.paper)
    if kind is not None:
        entries = [entry for entry in entries if any(evidence.kind == kind for evidence in entry.evidence)]
        if not entries:
            raise SettingError(
                f"none of the statements asked for has {kind} evidence",
                limit="needs one",
                remedy="leave --evidence out",
            )
    keys = keys_of(entries, kind)
    if kind == "formal" and not keys:
        from proofs_check.evidence.formal import missing

        packages = "coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra"
        raise SettingError(f"--evidence is {kind!r}", limit=missing(), remedy=f"apt-get install {packages}")
    record = ready_folder(question.out) / RECORD if question.out else None
    began = time.perf_counter()
    checks: list[Checked] = []
    try:
        _collect(record, effort, keys, workers, checks)
    finally:  # an interruption shows what is finished
        report = Report(entries, keys, checks, effort, time.perf_counter() - began)
        if checks:
            _show(report, question)
    return Status.DONE if report.as_expected else Status.DISAGREEMENT


def _kind(name: str | None) -> Kind | None:
    """The kind of evidence, by its own name or as the tables say it."""
    from proofs_check.run.report import WORDS
    from proofs_check.statement.findings import KINDS

    known = next((kind for kind in KINDS if name in (kind, WORDS[kind])), None)
    if name is not None and known is None:
        raise SettingError(f"--evidence is {name!r}", limit=f"is one of {', '.join(KINDS)}", remedy="name one")
    return known


def _collect(path: Path | None, effort: Effort, keys: list[Key], count: int, checks: list[Checked]) -> None:
    """Run the checks, each added to `checks`, and to the file if there is one, as it finishes."""
    from proofs_check.run.record import CHECKS, finished, keep
    from proofs_check.run.verify import verify

    with Store(path, CHECKS, {}) if path else nullcontext() as store:
        known, said = finished(store, effort) if store else ({}, "")
        if said:
            remarks.print(f"{path}: {said}")
        waiting = sum(key not in known for key in keys)
        with progress() as bar:
            task = bar.add_task("checking", total=len(keys))
            for checked in verify(keys, effort, processes=max(1, min(count, waiting)), known=known):
                checks.append(checked)
                if store and (checked.id, checked.place) not in known:
                    keep(store, checked, effort)
                bar.update(task, advance=1, description=checked.id)


def _show(report: Report, question: VerifyOptions) -> None:
    from proofs_check.run.report import as_dict, checks_table, facts, formal_line, statements_table, steps_line

    if question.json:
        print_json(as_dict(report), default=str)
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
    for line in (steps_line(report), formal_line(report)):
        if line:
            answers.print(line, highlight=False)
    for each in report.checks:
        if each.trouble:
            answers.print(f"{each.id}, {each.kind}: {each.outcome}: {each.trouble}", highlight=False, markup=False)


# A claim of the user's own


def _try_claims(question: VerifyOptions, effort: Effort) -> int:
    """Put every claim of a Python file on trial."""
    from proofs_check.run.trial import Trial, try_claim

    given = {
        "an id": question.ids,
        "--paper": question.paper,
        "--evidence": question.evidence,
        "--workers": question.workers,
    }
    one_source({"--claim": True, "--out": question.out is not None, **{k: v is not None for k, v in given.items()}})
    trials: list[Trial] = []
    refused: list[tuple[Claim, SpectheoryError]] = []
    try:
        with redirect_stdout(sys.stderr):  # what the file prints is no part of the answer
            for claim in _claims(Path(str(question.claim))):
                with working(f"trying {claim.says}"):
                    try:
                        trials.append(try_claim(claim, effort=effort))
                    except SpectheoryError as error:  # the claims after it are tried
                        refused.append((claim, error))
    finally:  # an interruption leaves the others their answers
        if question.json and trials:
            others = [{"claim": claim.says, "why": str(reason)} for claim, reason in refused]
            print_json({"claims": [trial.as_dict() for trial in trials], "refused": others})
        elif trials:
            answers.print("\n".join(map(str, trials)), highlight=False, markup=False)
    for _, reason in refused[:-1]:
        remark(str(reason))
    if refused:
        raise refused[-1][1]
    return Status.DISAGREEMENT if any(trial.verdict == "refuted" for trial in trials) else Status.DONE


def _claims(path: Path) -> list[Claim]:
    """The claims a Python file defines."""
    from proofs_check.statement.claims import Claim

    try:
        read_text(path)  # which refuses an endless one
        names = runpy.run_path(str(path))
    except OSError as error:
        raise SettingError(
            f"--claim {str(path)!r} cannot be read ({error.strerror or error})",
            limit="needs a Python file",
            remedy="check the path",
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SettingError(
            f"--claim {str(path)!r} ends with {type(error).__name__}: {error}",
            limit="needs a Python file that runs",
            remedy=f"run it with python {path}",
        ) from error
    items = [item for value in names.values() for item in (value if isinstance(value, list | tuple) else [value])]
    claims = list({id(item): item for item in items if isinstance(item, Claim)}.values())
    if not claims:
        raise SettingError(
            f"--claim {str(path)!r} defines no claim",
            limit="needs one",
            remedy="claim = proofs_check.Claim(says, holds)",
        )
    return claims
