"""Write the numbers of docs/results.md and paper.md, from what the repository holds: data of runs, traces, the ledger.

Run as ``python benchmarks/_results_page.py``. Each block of a page stands between two marks and is written by the
function that :data:`BLOCKS` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import fsum, sqrt
from pathlib import Path
from typing import Any

import _blocks
import numpy as np
from _blocks import grid
from _engines_page import answers, rule_that_runs
from published import Held, facts, headline, held

from proofs_check.twins.block_values import block_masses, expected_calls, fewest_calls, texts, token_masses
from spectheory.cost import iid_tokens_per_call
from spectheory.judging.counting import Counting
from spectheory.judging.expected import ExpectedCounts
from spectheory.limits import least_tokens_per_call, most_tokens_per_call
from spectheory.prediction.paths import calls_of_texts
from spectheory.prediction.renewal import Renewal, Summed
from spectheory.prediction.trace_limits import least_calls
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (DOCS / "results.md", ROOT / "paper.md")
NAMED = ("§7", "§10", "B7", "B7/regret", "B7/longer", "§12/L", "B10", "C6", "§13")
"""Ids of the statements that the page is about, as far as the ledger has them."""
PAIRS = ("distilled", "draft")
KS = (1, 3, 5, 8)
BY_POSITION = ("token", "argmax", "race", "independent", "lookup")
Content = Mapping[str, Any]


# The ledger, as its page lists it


@cache
def entries() -> dict[str, list[str]]:
    """Id: link, statement, side, source and evidence of every row of docs/theorems.md."""
    rows = re.findall(r"^\| (\[(.+?)\]\(.+) \|$", (DOCS / "theorems.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {name: row.split(" | ") for row, name in rows}


def statements() -> str:
    """The rows of the statements of the page."""
    known = [entries()[name] for name in NAMED if name in entries()]
    return grid("| id | statement | side | source | evidence |", "|---|---|---|---|---|", known)


def ledger() -> str:
    """How many statements there are, and how many look like them and are false."""
    false = [row for row in entries().values() if row[2] == "false"]
    near = [name for name in entries() if name.startswith("B7/") and entries()[name][2] == "false"]
    still = [row for row in entries().values() if row[1].endswith(": not refuted")]
    return (
        f"The ledger has {len(entries())} statements. {len(entries()) - len(false) - len(still)} of them hold and have "
        f"a proof or a check, {len(still)} are open, and {len(false)} are false statements that look like true ones, "
        f"each with a counterexample; {len(near)} of these are about B7."
    )


def cost_optimal() -> str:
    """B10, if the ledger has it."""
    if "B10" not in entries():
        return "B10, the limit for drafts whose time counts, has no entry in the ledger of this version."
    link, title, side, _, evidence = entries()["B10"]
    return (
        f"{link} ({title}; {side}; {evidence}) is the limit where the time of drafting counts: what any policy can "
        "reach that decides after each draft whether to draft another one. The best policy reads the target's pmf "
        "before it drafts, which no engine can do, so B10 is a limit and no algorithm."
    )


# Counts of real decoding


def validations() -> list[Content]:
    """Every setting of the saved validations."""
    saved = [
        json.loads((DOCS / f"figures/validation/{name}/validation.json").read_text()) for name in (*PAIRS, "small")
    ]
    return [one for each in saved for at in each["temperatures"] for one in at["settings"]]


def decoded() -> str:
    """Calls counted against those expected of the same texts."""
    settings = validations()
    random, theirs = _deviations(settings), [one for one in settings if one["rule"] == "assisted"]
    certain = [one for one in settings if one["expected"]["deviation"] < _CERTAIN]
    equal = sum(abs(one["calls"] - one["expected"]["calls"]) < _CERTAIN for one in certain)
    return (
        f"{len(settings)} settings of model pair, rule, draft shape and temperature were decoded, "
        f"{sum(one['calls'] for one in settings):,} calls. In {len(certain)} settings nothing is random given the "
        f"text; the counted calls equal the expected ones in {equal} of them. In the other {len(random)} the "
        f"deviations have a root mean square of {sqrt(fsum(z * z for z in random) / len(random)):.2f} standard "
        f"deviations (1 is expected), and the largest is {max(map(abs, random)):.2f}. {len(theirs)} of the settings "
        "are assisted generation of transformers, whose code is not ours; the largest deviation there is "
        f"{max(map(abs, _deviations(theirs))):.2f}."
    )


_CERTAIN = 1e-3
"""Calls: less is no deviation of counts, which are whole."""


def _deviations(settings: Iterable[Content]) -> list[float]:
    """Counted less expected calls over the standard deviation, where calls are random."""
    return [one["expected"]["z"] for one in settings if one["expected"]["deviation"] >= _CERTAIN]


# The built-in pair


@cache
def pair(name: str) -> Trace:
    """The recorded trace of a draft of the built-in target."""
    return Trace.read(DOCS / "figures" / "pair" / name / "trace.parquet")


def tokens(trace: Trace, rule: str, k: int) -> float:
    """Tokens per call of chains of k drafts along the texts (§7)."""
    calls = calls_of_texts(PATH_RULES[rule].path_survival(trace.columns, k), trace.lengths).expected
    return float(trace.lengths.sum() / calls.sum())


def most_by_start(trace: Trace, k: int) -> float:
    """Tokens per call under L, which holds for a draft model as well."""
    survival = PATH_RULES["block"].path_survival(trace.columns, k)
    return float(trace.lengths.sum() / least_calls(survival, trace.lengths, [k])[k].sum())


def acceptance(trace: Trace) -> float:
    """Mean over the positions of the probability that token verification accepts the text's token."""
    return float(PATH_RULES["token"].path_survival(trace.columns, 1).mean())


def along_texts() -> str:
    """Tokens per call of the distilled draft by rule, with its limits."""
    trace, rate, rows = pair("distilled"), acceptance(pair("distilled")), []
    for k in KS:
        token, block = tokens(trace, "token", k), tokens(trace, "block", k)
        c6 = f"{least_tokens_per_call(rate, k):.2f} to {most_tokens_per_call(rate, k):.2f}"
        more = f"{100 * (block / token - 1):.1f}%"
        numbers = (tokens(trace, "race", k), token, block)
        limits = (f"{most_by_start(trace, k):.2f}", c6, f"{iid_tokens_per_call(rate, k):.2f}")
        rows.append([str(k), *(f"{number:.2f}" for number in numbers), more, *limits])
    head = "| k | race | token | block = B7 | token needs more calls | L | C6, token | i.i.d., token |"
    return grid(head, "|--:|--:|--:|--:|--:|--:|---|--:|", rows)


# In fractions


def smallest() -> str:
    """Two tokens: drafts accepted in one call, calls of four tokens."""
    p, q = (Fraction(1, 3), Fraction(2, 3)), (Fraction(2, 3), Fraction(1, 3))
    toy = texts(lambda _: p, lambda _: q, k=2, length=4)
    token, block = (
        sum(sum(depth.values()) for depth in masses(toy, ())[1:]) for masses in (token_masses, block_masses)
    )
    calls = [expected_calls(toy, masses)(()) for masses in (token_masses, block_masses)]
    found = Fraction(fewest_calls(toy)).limit_denominator(1000)
    return (
        f"An example: p = (1/3, 2/3) and q = (2/3, 1/3) at every position, k = 2. In the mean one call accepts {token} "
        f"drafts by token verification and {block} by block verification. Texts of four tokens take {calls[0]} and "
        f"{calls[1]} calls in the mean, and the linear programme over all policies finds {found}."
    )


# Readings


@cache
def shares(name: str, rule: str, k: int) -> tuple[float, ...]:
    """The shares of calls of k drafts that accept 1..k, as an engine of this rule counts them on a pair's texts."""
    trace = pair(name)
    survival = np.asarray(PATH_RULES[rule].path_survival(trace.columns, k), dtype=float)
    counts = ExpectedCounts(survival, trace.lengths, Counting(k, past_end=False)).low.expected.sum(axis=0)
    return tuple((counts[1:] / counts[0]).tolist())


def misses(rule: str, ran: int, asked: Sequence[int], reading: Callable[[tuple[float, ...]], Any]) -> list[float]:
    """Relative misses of a reading of the counts at k = `ran`, at other k, on both pairs."""
    found = []
    for name in PAIRS:
        read = reading(shares(name, rule, ran))
        found += [read.tokens(k) / (1 + fsum(shares(name, rule, k))) - 1 for k in asked]
    return found


def readings() -> str:
    """Largest misses of both readings, from k = 8 to shorter chains and from k = 3 to longer ones."""
    asked = ((8, (1, 2, 3, 5)), (3, (5, 8)))
    rows = [
        [rule, *(_reach(misses(rule, *one, reading)) for one in asked for reading in (Renewal, Summed))]
        for rule in (*BY_POSITION, "block")
    ]
    head = "| rule | 8 to 1, 2, 3, 5: renewal | sum | 3 to 5, 8: renewal | sum |"
    return grid(head, "|---|--:|--:|--:|--:|", rows)


def _reach(values: Sequence[float]) -> str:
    return f"{100 * min(values):+.2f}% to {100 * max(values):+.2f}%"


def published() -> str:
    """What was predicted of published curves, and how many values lie in the range of C6."""
    sources = ("inferencex", "inferencex_later", "specdecode_bench")
    beyond, between = (
        [held(facts(), source, given, asked) for source in sources]
        for given, asked in (((1, 2, 3), (4, 5, 6, 7, 8)), ((1, 8), (2, 3, 4, 5, 6, 7)))
    )
    return (
        f"{headline(facts())} In the range of C6 lie {_inside(beyond)} values at k = 4 to 8, given those at k = 1, 2 "
        f"and 3, and {_inside(between)} values at k = 2 to 7, given those at k = 1 and 8."
    )


def _inside(rows: Sequence[Held]) -> str:
    return f"{sum(row.inside for row in rows)} of {sum(row.values for row in rows)}"


# Engines


def engines() -> str:
    """Each engine's counts and output against what was expected."""
    rows = [_engine(engine) for answer in answers() for engine in answer["engines"]]
    head = "| engine | temperature 0: counted = expected | temperature 1, sampled drafts | text at temperature 1 |"
    return grid(head, "|---|--:|---|---|", rows)


def _engine(engine: Content) -> list[str]:
    drafting = [run for run in engine["runs"] if run["k"]]
    greedy = [run for run in drafting if run["temperature"] == 0]
    sampled = [run for run in drafting if run["temperature"] == 1 and run["drafts"] != "argmax"]
    right = all(run["output"]["right"] for run in drafting if run["temperature"] == 1)
    return [
        f"{engine['engine']} {engine['version']}",
        f"{_equal(greedy)} of {len(greedy)}",
        rule_that_runs(sampled),
        "right" if right else "WRONG with a draft",
    ]


def _equal(runs: Iterable[Content]) -> int:
    """Runs that counted the very number of calls that is expected."""
    calls = [run["counts"]["calls"] for run in runs if "counts" in run]
    return sum(each["expected"]["low"] == each["counted"] == each["expected"]["high"] for each in calls)


# The paper


def in_short() -> str:
    """What the paper says of the evidence."""
    settings = validations()
    runs = [run for answer in answers() for engine in answer["engines"] for run in engine["runs"] if run["k"]]
    greedy = [run for run in runs if run["temperature"] == 0]
    false = sum(row[2] == "false" for row in entries().values())
    return (
        f"The ledger has {len(entries())} statements, of which {false} are false look-alikes with a counterexample. "
        f"Predicted calls were compared with counted ones in {len(settings)} settings of three model pairs; the "
        f"largest deviation is {max(map(abs, _deviations(settings))):.2f} standard deviations. In {_equal(greedy)} of "
        f"{len(greedy)} runs of engines at temperature 0 the counted calls equal the expected ones. {headline(facts())}"
    )


BLOCKS: Mapping[str, Callable[[], str]] = {
    "statements": statements,
    "ledger": ledger,
    "smallest": smallest,
    "decoded": decoded,
    "along-texts": along_texts,
    "cost-optimal": cost_optimal,
    "readings": readings,
    "published": published,
    "engines": engines,
    "in-short": in_short,
}


def renewed(page: str) -> str:
    """The page with its numbers written again."""
    return _blocks.renewed(page, "_results_page", BLOCKS)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
