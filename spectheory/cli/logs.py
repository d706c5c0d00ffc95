"""``spectheory import`` and ``samples``: any engine's log as a trace, a call log or counters; logs to try it on."""

from __future__ import annotations

from spectheory.answers.counts import SamplesJson
from spectheory.cli.answer import show
from spectheory.cli.console import ready_folder
from spectheory.cli.options import ImportOptions, SamplesOptions
from spectheory.reports import Column, Report, Table, import_report
from spectheory.trace import TRACE_FILE
from spectheory.trace.calls import CALLS_FILE, CallLog
from spectheory.trace.counters import COUNTERS_FILE, Counters
from spectheory.trace.reading import format_of, read_files
from spectheory.trace.samples import BUILT_IN, copy_samples, sample_logs

FILES = {CallLog: CALLS_FILE, Counters: COUNTERS_FILE}
"""Where each kind of evidence is written; a trace otherwise."""


def run_import(question: ImportOptions) -> None:
    """Read the files, write what they hold, and say what follows from it."""
    formats = [format_of(path, question.format) for path in question.files]
    evidence = read_files(question.files, question.format)
    file = ready_folder(question.out) / FILES.get(type(evidence), TRACE_FILE)
    evidence.write(file)
    show(import_report(evidence, formats, file), question)


def run_samples(question: SamplesOptions) -> None:
    """List the samples, or write them into a folder."""
    rows = [{"name": log.name, "format": format_of(log).name} for log in sample_logs()]
    written = copy_samples(question.out) if question.out else []
    columns = [Column("log", kind="names", at="name"), Column("format", kind="names")]
    place = str(question.out) if question.out else "FOLDER"
    notes = [
        *([] if question.out else ["Write them to a folder: spectheory samples --out FOLDER"]),
        f"Then: spectheory import {place}/vllm_metrics.txt --out served/, and spectheory predict served/ --c 0.05",
        f"A recorded trace of the built-in pair: spectheory predict {BUILT_IN}",
    ]
    content = SamplesJson(logs={row["name"]: row["format"] for row in rows}, written=[str(path) for path in written])
    headline = f"{len(rows)} logs of engines, and a trace" + (f": written to {place}" if written else "")
    show(Report(content, [Table.of("", columns, rows)], headline, notes), question)
