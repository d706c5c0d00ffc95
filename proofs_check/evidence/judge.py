"""The judge of one case: exactly on fractions, by certified intervals where logarithms enter, never by floats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from proofs_check.statement.arithmetic import Transcendental, enclosures, evaluated_in, interval, is_interval
from proofs_check.statement.claims import Assumption, AssumptionError, Case, Claim, ClaimError, Compared, further, shown
from proofs_check.statement.findings import Finding, Status
from proofs_check.statement.fractions import Fraction, is_exact, plain

DIGITS = (40, 160, 640)
"""Precisions tried one after the other, in decimal digits, until intervals decide."""

SLACK = Fraction(1, 10**30)
"""What intervals certify is left <= right + SLACK and |left - right| <= SLACK: equality of two logarithms has no
certificate, and at 40 digits rounding is far below this."""

ROUNDING = Fraction(1, 10**12)
"""What a double-precision calculator may be off, absolutely or relatively, whichever is more: the pmfs of the cases
have few tokens, so a sum loses some 1e-15; twelve digits leave room for ill-conditioned formulas alone."""

MOST_BITS = 10**6
"""Of a side's numerator and denominator: a claim is computed some thousand times."""


@dataclass(frozen=True)
class Judged:
    """One case: its status, and how much room an inequality leaves."""

    status: Status
    gap: float | None
    exact: bool


def judge(claim: Claim, case: Case) -> Judged:
    """Judge a claim at one case of fractions."""
    try:
        return _together([_exactly(each, claim, case) for each in claim.compare(case)], exact=True)
    except Transcendental:
        return _by_intervals(claim, case)


def judge_all(claim: Claim, cases: Iterable[Case]) -> Finding:
    """Judge a claim at every case that meets its assumptions; the first counterexample ends it."""
    seen, undecided, tight, at, by_intervals = 0, "", None, "", 0
    stopped: Assumption | None = None
    for case in cases:
        unmet = claim.unmet(case)
        if unmet is not None:
            stopped = further(claim, stopped, unmet)
            continue
        seen += 1
        judged = judge(claim, case)
        by_intervals += not judged.exact
        if judged.status == "refuted":
            return Finding("refuted", seen, judged.gap, shown(case))
        if judged.status == "undecided":
            undecided = undecided or shown(case)
        if judged.gap is not None and (tight is None or judged.gap < tight):
            tight, at = judged.gap, shown(case, brief=True)
    if not seen:
        raise AssumptionError(
            f"no case for {claim.says!r} meets the assumption {stopped.says if stopped else 'that there be a case'!r}",
            limit="needs at least one",
            remedy="choose other cases",
        )
    if undecided:
        return Finding("undecided", seen, tight, undecided, f"not decided at {DIGITS[-1]} digits")
    note = f"certified to {float(SLACK):.0e}" if by_intervals else ""
    return Finding("held", seen, tight, at, note)


def _together(verdicts: list[Judged], *, exact: bool) -> Judged:
    statuses = {verdict.status for verdict in verdicts}
    status: Status = "refuted" if "refuted" in statuses else "undecided" if "undecided" in statuses else "held"
    gaps = [verdict.gap for verdict in verdicts if verdict.gap is not None]
    return Judged(status, min(gaps) if gaps else None, exact)


def _exactly(compared: Compared, claim: Claim, case: Case) -> Judged:
    left, right = compared.left, compared.right
    if compared.relation == "==":
        ours, theirs = leaves(left), leaves(right)
        for value in (*ours, *theirs):
            _number(value, claim, case)
        return Judged("held" if outline(left) == outline(right) and ours == theirs else "refuted", None, True)
    _number(right, claim, case)
    if compared.relation == "~":
        off = abs(Fraction(left) - right) if math.isfinite(left) else math.inf
        return Judged("held" if off <= ROUNDING * max(1, abs(right)) else "refuted", None, True)
    _number(left, claim, case)
    return Judged("held" if left <= right else "refuted", _rounded_gap(right - left), True)


def _rounded_gap(gap: Fraction) -> float:
    """A gap as a float; infinite beyond the largest one."""
    try:
        return float(gap)
    except OverflowError:
        return math.inf if gap > 0 else -math.inf


def _number(value: Any, claim: Claim, case: Case) -> None:
    if is_interval(value):
        raise Transcendental("an interval among fractions")
    if not is_exact(value):
        value = plain(value)
        raise ClaimError(
            f"claim {claim.says!r} compares {value!r} ({type(value).__name__}) at {shown(case)}",
            limit="fractions give fractions",
            remedy="no floats, no numpy, no integer over integer (an empty sum is one): use Fraction",
        )
    if max(abs(value.numerator), value.denominator).bit_length() > MOST_BITS:
        raise ClaimError(
            f"claim {claim.says!r} compares a number of more than {MOST_BITS:,} bits at {shown(case)}",
            limit="needs numbers that are soon computed",
            remedy="mend its function",
        )


def _by_intervals(claim: Claim, case: Case) -> Judged:
    iv = enclosures()
    before = iv.dps
    try:
        for digits in DIGITS:
            iv.dps = digits
            with evaluated_in("interval"):
                compared = claim.compare({name: interval(value) for name, value in case.items()})
            try:
                judged = _together([_enclosed(each) for each in compared], exact=False)
            except TypeError as error:
                raise ClaimError(
                    f"claim {claim.says!r} compares what is no interval at {shown(case)} ({error})",
                    limit="logarithms of fractions give intervals",
                    remedy="use proofs_check.statement.arithmetic, no floats and no numpy",
                ) from error
            if judged.status != "undecided":
                break
        return judged
    finally:
        iv.dps = before


def _enclosed(compared: Compared) -> Judged:
    """Compare by intervals: certain up to SLACK, certainly wrong beyond doubt, or undecided."""
    iv = enclosures()
    if compared.relation == "~":
        return _rounded(compared)
    slack = iv.mpf(SLACK.numerator) / iv.mpf(SLACK.denominator)
    left, right = leaves(compared.left), leaves(compared.right)
    if outline(compared.left) != outline(compared.right):
        return Judged("refuted", None, False)
    gaps = [iv.mpf(b) - iv.mpf(a) for a, b in zip(left, right, strict=True)]
    if compared.relation == "==":
        if all((-slack).b <= gap.a and gap.b <= slack.a for gap in gaps):
            return Judged("held", None, False)
        return Judged("refuted" if any(gap.a > 0 or gap.b < 0 for gap in gaps) else "undecided", None, False)
    (gap,) = gaps
    middle = float(gap.mid.a)
    if gap.a >= (-slack).b:
        return Judged("held", middle, False)
    return Judged("refuted" if gap.b < 0 else "undecided", middle, False)


def _rounded(compared: Compared) -> Judged:
    """A float against an interval: within ROUNDING of all of it, of none of it, or undecided."""
    iv = enclosures()
    exact = iv.mpf(compared.right)
    if not math.isfinite(compared.left):
        return Judged("refuted", None, False)
    off = abs(iv.mpf(Fraction(compared.left)) - exact)
    room = (
        iv.mpf(ROUNDING.numerator) / iv.mpf(ROUNDING.denominator) * iv.mpf([max(1, abs(exact).a), max(1, abs(exact).b)])
    )
    return Judged("held" if off.b <= room.a else "refuted" if off.a > room.b else "undecided", None, False)


def outline(value: Any) -> Any:
    """The keys and lengths of a value, its numbers left out."""
    if isinstance(value, Mapping):
        return {key: outline(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return tuple(outline(item) for item in value)
    return None


def leaves(value: Any) -> list[Any]:
    """The numbers of a number, a tuple or a dictionary of numbers, in order."""
    if isinstance(value, Mapping):
        return [leaf for key in sorted(value, key=repr) for leaf in leaves(value[key])]
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]
