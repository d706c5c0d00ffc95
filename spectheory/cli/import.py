"""``spectheory import``: any engine's log as a trace, a call log or counters."""

from __future__ import annotations

from spectheory.cli.answer import show
from spectheory.cli.console import ready_folder
from spectheory.cli.options import ImportOptions
from spectheory.reports import import_report
from spectheory.trace import TRACE_FILE
from spectheory.trace.calls import CALLS_FILE, CallLog
from spectheory.trace.counters import COUNTERS_FILE, Counters
from spectheory.trace.reading import format_of, read_files

FILES = {CallLog: CALLS_FILE, Counters: COUNTERS_FILE}
"""Where each kind of evidence is written; a trace otherwise."""


def run_import(question: ImportOptions) -> None:
    """Read the files, write what they hold, and say what follows from it."""
    formats = [format_of(path, question.format) for path in question.files]
    evidence = read_files(question.files, question.format)
    file = ready_folder(question.out) / FILES.get(type(evidence), TRACE_FILE)
    evidence.write(file)
    show(import_report(evidence, formats, file), as_json=question.json)
