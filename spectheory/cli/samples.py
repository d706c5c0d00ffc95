"""``spectheory samples``: logs and a trace to try the commands on."""

from __future__ import annotations

from spectheory.answers.counts import SamplesJson
from spectheory.cli.answer import show
from spectheory.cli.options import SamplesOptions
from spectheory.reports import Column, Report, Table
from spectheory.trace.reading import format_of
from spectheory.trace.samples import BUILT_IN, copy_samples, sample_logs


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
    show(Report(content, [Table.of("", columns, rows)], headline, notes), as_json=question.json)
