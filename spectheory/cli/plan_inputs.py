"""What ``spectheory plan`` reads: drafts that were measured, or the built-in ones, measured now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from spectheory.cli.console import ready_folder, remarks
from spectheory.cli.inputs import cache_folder
from spectheory.cli.options import (
    LATENCY_FILE,
    MeasuringOptions,
    PairOptions,
    PlanOptions,
    TextOptions,
    recorded_files,
)
from spectheory.cli.plan_costs import cost_of, costs_given
from spectheory.cli.readings import Counts
from spectheory.cost import ConstantRatio
from spectheory.deployment import Draft
from spectheory.errors import SettingError
from spectheory.pairs import PREFIX
from spectheory.prediction.recorded import drafts_of, free_part
from spectheory.trace import TRACE_FILE, Trace
from spectheory.trace.reading import Whole, evidence_file, read_files

BUILT_IN = ("distilled", "draft")


def sources(question: PlanOptions) -> list[tuple[str, Path]]:
    """Names of drafts, empty for that of the trace itself, and where they were measured; none for the built-in ones."""
    found = []
    for entry in question.traces or ():
        name, equals, folder = entry.partition("=")
        if not (name and equals and folder):
            raise SettingError(
                f"--trace is {entry!r}", limit="needs NAME=FOLDER of a measurement", remedy="write small=measured/small"
            )
        if not name.isprintable():
            raise SettingError(
                f"--trace is named {name!r}",
                limit="names are of characters that print",
                remedy="use letters and digits",
            )
        found.append((name, evidence_file(Path(folder))))
    if files := recorded_files(question):
        found.insert(0, ("", evidence_file(files[0])))
    return found


def counted(named: Sequence[tuple[str, Path]], question: PlanOptions) -> dict[str, tuple[Path, Counts]]:
    """The logs of counts by name, if all are such; traces and counts are not ranked together."""
    names = [name or path.name for name, path in named]
    held = [_counts(name, path, question) for name, path in named]
    found = {name: (path, each) for name, (_, path), each in zip(names, named, held, strict=True) if each is not None}
    if twice := [name for name in found if names.count(name) > 1]:
        raise SettingError(
            f"{twice[0]} names {names.count(twice[0])} logs",
            limit="each log has a name of its own",
            remedy="rename one: --trace NAME=LOG",
        )
    if found and len(found) < len(named):
        raise SettingError(
            f"{', '.join(found)} holds counts of an engine, the others traces",
            limit="traces are ranked with traces, and counts are read beside counts",
            remedy="name one kind",
        )
    return found


def _counts(name: str, path: Path, question: PlanOptions) -> Counts | None:
    found = _read(name, path, question)
    return None if isinstance(found, Trace) else found


def _read(name: str, path: Path, question: PlanOptions) -> Whole:
    """What a named file holds; the nameless one is TRACE, with the draft's log if there is one."""
    return read_files([path] if name else [path, *recorded_files(question)[1:]])


def draft_at(name: str, path: Path, question: PlanOptions) -> Draft:
    """One draft with its trace and costs; without a name that of the trace."""
    read = _read(name, path, question)
    assert isinstance(read, Trace), "counts are read elsewhere"
    whole = read.held() if question.stop else read
    trace = replace(whole, lists=())  # plans rest on exact predictions alone
    recorded = trace.provenance.get("draft")
    file = path.parent.name if path.name == TRACE_FILE else path.stem
    name = name or str(
        (recorded.get("name") if isinstance(recorded, dict) else None) or (file if trace.recorded else "draft")
    )
    if trace.recorded and not costs_given(question, path):
        free = free_part(trace)
        if dear := [each for each in drafts_of(trace) if each not in drafts_of(free)]:
            remarks.print(
                f"left out, as the costs of their passes are unknown: {', '.join(dear)}; give --c", markup=False
            )
        return Draft(name, free, ConstantRatio(0.0))
    return Draft(name, trace, cost_of(question, name, path, trace))


def built_in(question: PlanOptions) -> Iterator[Draft]:
    """The built-in drafts, measured here and now."""
    from spectheory.cli.measure import Session

    longest = max(question.k_max, question.nodes) + 1
    for name in BUILT_IN:
        session = Session.load(PairOptions(draft=f"{PREFIX}{name}"), TextOptions(), MeasuringOptions())
        session.require_room(longest)
        folder = question.out / name if question.out else cache_folder() / session.job.fingerprint
        trace = session.trace(ready_folder(folder) / TRACE_FILE)
        if question.hardware is None:
            session.latencies(folder / LATENCY_FILE, longest=longest)
        yield Draft(name, trace, cost_of(question, name, folder / TRACE_FILE, trace))
