"""Running the ledger: every piece of evidence and its negative control, on as many workers as there are.

The outcome does not depend on the number of workers: each check draws its cases from the effort's seed. (Hypothesis
also looks at the constants of the modules that are loaded, so a run inside another program may draw other cases.)
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

from proofs_check.evidence.entries import Entry, Evidence
from proofs_check.evidence.formal import missing
from proofs_check.run import PRELOADED
from proofs_check.run.ledger import ledger
from proofs_check.statement.findings import Effort, Finding, Kind
from simulations.experiments.collect import process_pool
from spectheory.processes import prepare

Outcome = Literal["proved", "holds", "refuted", "undecided", "failed"]

Key = tuple[str, int]
"""A check: the id of its entry and its place among the evidence."""


@dataclass(frozen=True)
class Checked:
    """One piece of evidence that was run, with the findings of the statement and of its control; None if it broke.

    `expected` is what the finding must be; the control must be the other. `seconds` is the wall-clock time of both.
    """

    id: str
    place: int
    kind: Kind
    finding: Finding | None
    control: Finding | None
    expected: Literal["held", "refuted"]
    seconds: float
    error: str = ""

    @property
    def outcome(self) -> Outcome:
        """Proved (by steps), holds (in every case), refuted (as stated), undecided, or failed."""
        if self.finding is None or self.control is None:
            return "failed"
        wanted_control = "refuted" if self.expected == "held" else "held"
        if self.finding.status == wanted_control or self.control.status == self.expected:
            return "failed"
        if "undecided" in (self.finding.status, self.control.status):
            return "undecided"
        if self.expected == "refuted":
            return "refuted"
        return "proved" if self.kind in ("formal", "symbolic") else "holds"

    @property
    def trouble(self) -> str:
        """What went wrong, in words; empty if nothing did."""
        if self.error:
            return self.error
        if self.finding is None or self.control is None:
            return "not run"
        if self.outcome == "undecided":
            return self.finding.note or self.finding.at or "the negative control is undecided"
        if self.outcome != "failed":
            return ""
        if self.finding.status != self.expected:
            outcome = "no counterexample was found" if self.expected == "refuted" else "a counterexample was found"
            return f"{outcome}: {self.finding.at} {self.finding.note}".strip()
        return "the negative control is not told from the statement: this check proves nothing"


def check_one(key: Key, effort: Effort) -> Checked:
    """Run one check and its negative control."""
    name, place = key
    entry = ledger()[name]
    evidence = entry.evidence[place]
    expected: Literal["held", "refuted"] = "refuted" if entry.refuted else "held"
    began = time.perf_counter()
    try:
        finding, control = evidence.check(effort), evidence.control.check(effort)
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return Checked(name, place, evidence.kind, None, None, expected, time.perf_counter() - began, message)
    return Checked(name, place, evidence.kind, finding, control, expected, time.perf_counter() - began)


def keys_of(entries: Iterable[Entry], kind: Kind | None = None) -> list[Key]:
    """The checks of some entries, of one kind or of all; those in Coq where it is installed."""
    left_out = "formal" if missing() else None
    return [
        (entry.id, i)
        for entry in entries
        for i, evidence in enumerate(entry.evidence)
        if kind in (None, evidence.kind) and evidence.kind != left_out
    ]


def evidence_of(key: Key) -> Evidence:
    """The evidence a key names."""
    return ledger()[key[0]].evidence[key[1]]


def verify(
    keys: Sequence[Key],
    effort: Effort,
    *,
    processes: int | None = None,
    known: Mapping[Key, Checked] | None = None,
    pools: Callable[[int], AbstractContextManager[Executor]] | None = None,
) -> Iterator[Checked]:
    """Run checks and yield each as it finishes; those `known` come first and are not run again.

    Without a number of processes they run here, one after the other, in order. Checks that a dying worker takes with it
    are run again in a fresh pool, and then each in a process of its own.
    """
    done = known or {}
    yield from (done[key] for key in keys if key in done)
    waiting = [key for key in keys if key not in done]
    if processes is None:
        yield from (check_one(key, effort) for key in waiting)
        return
    for _ in range(2):
        lost: list[Key] = []
        if waiting:
            yield from _shared(waiting, effort, processes, pools or workers, lost)
        waiting = lost
    yield from (_alone(key, effort) for key in waiting)


@contextmanager
def workers(count: int) -> Iterator[Executor]:
    """A pool of fresh processes, which share nothing with this one but its files, and do not outlive it."""
    others = set(multiprocessing.active_children())
    prepare(PRELOADED)
    pool = process_pool(count)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    pool.shutdown()


def _shared(
    keys: Sequence[Key],
    effort: Effort,
    processes: int,
    pools: Callable[[int], AbstractContextManager[Executor]],
    lost: list[Key],
) -> Iterator[Checked]:
    """Run checks in a pool; those that a dying worker leaves undone are added to `lost`."""
    with pools(min(processes, len(keys))) as pool:
        futures = {pool.submit(check_one, key, effort): key for key in keys}
        for future in as_completed(futures):
            try:
                checked = future.result()
            except BrokenExecutor:
                lost.append(futures[future])
                continue
            yield checked


def _alone(key: Key, effort: Effort) -> Checked:
    """A check in a process of its own: if that dies, this one lives."""
    try:
        with workers(1) as pool:
            return pool.submit(check_one, key, effort).result()
    except BrokenExecutor:
        expected: Literal["held", "refuted"] = "refuted" if ledger()[key[0]].refuted else "held"
        message = "the process that ran it died, three times"
        return Checked(*key, evidence_of(key).kind, None, None, expected, 0.0, message)
