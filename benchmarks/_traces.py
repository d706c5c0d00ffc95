"""Made-up traces: every column of a measurement, and of a head every column by start, each in its precision."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from spectheory.trace import COLUMNS, MEASURED, RECORDED_RANKS, SAMPLED_TEXT, START_RANKS, TextInfo, Trace
from spectheory.trace.columns import BY_START, DISTINCT_RANKS
from spectheory.verification.by_start import PREFIX

VOCABULARY = 151_936


def made_up(
    positions: int,
    rng: np.random.Generator,
    *,
    text: int,
    depth: int = 0,
    only: Collection[str] = (),
    ended: bool = False,
) -> Trace:
    """Texts of `text` tokens sampled from the target, two to a prompt; most of them `ended` by themselves, or none.

    Numbers never repeat; ids and ranks are those of a large vocabulary. With a `depth` the trace is a head's, whose
    drafts get worse with depth. Of the columns those in `only`, all of them by default.
    """
    log_target = _single(-rng.exponential(1.5, positions))
    steps = np.arange(max(depth, 1))
    ahead = log_target[np.minimum(np.add.outer(np.arange(positions), steps), positions - 1)]
    log_draft = np.minimum(0.0, ahead + rng.normal(-0.1, 0.4 + 0.1 * steps, ahead.shape))
    ratio = np.exp(ahead - log_draft)
    g = np.maximum(ratio - 1, 0.0) + rng.random(ratio.shape) * np.minimum(ratio, 1.0)
    ranks = {"rejection_rank": _law(rng, np.minimum(1.0, 1 / ratio)), "race_rank": _law(rng, 1 / (1 + g))}
    ranks["distinct_rank"] = _law(rng, np.minimum(1.0, 1 / ratio))[..., :DISTINCT_RANKS]
    starts = {
        "start_log_draft": log_draft,
        "start_draft_entropy": np.minimum(_single(rng.exponential(1.5, ratio.shape)), 20.0),
        "start_draft_top": np.maximum(np.exp(log_draft), rng.random(ratio.shape)),
        "start_draft_rank": _ranks(rng, 0.6 - 0.03 * steps, ratio.shape),
        "start_greedy_agreement": rng.random(ratio.shape) < 0.6 - 0.03 * steps,
        "start_total_variation": rng.random(ratio.shape),
        "start_race_g": g,
        **{PREFIX + name: law[..., :START_RANKS] for name, law in ranks.items()},
    }
    assert {*starts, "start_confidence"} == set(BY_START)
    firsts = {name.removeprefix(PREFIX): _single(values[:, 0]) for name, values in starts.items()}
    firsts |= {name: law[:, 0] for name, law in ranks.items()}
    others = {name: _filler(name, rng, positions) for name in MEASURED if name not in firsts}
    others["target_second_moment"] += others["target_entropy"] ** 2  # at least the square of the entropy
    others["lookup_drafted"] += others["lookup_match"]
    others |= {"token": rng.integers(VOCABULARY, size=positions), "target_rank": _ranks(rng, 0.7, (positions,))}
    columns = {**others, **firsts, **(starts if depth else {}), "log_target": log_target}
    texts = (
        TextInfo(f"t{i}", text, prompt=f"p{i // 2}", ended=ended and bool(i % 3)) for i in range(positions // text)
    )
    settings = {"sampling": {"temperature": 1.0}, **({"depth": depth} if depth else {})}
    kept = {name: values for name, values in columns.items() if not only or name in only}
    return Trace(kept, tuple(texts), {"origin": SAMPLED_TEXT, "settings": settings})


def _law(rng: np.random.Generator, first: Any) -> Any:
    others = rng.dirichlet(np.ones(RECORDED_RANKS), first.shape)[..., 1:]
    return np.concatenate([first[..., None], (1 - first)[..., None] * others], axis=-1)


def _ranks(rng: np.random.Generator, first: Any, shape: tuple[int, ...]) -> Any:
    """Rank 1 with probability `first`, else a rank whose logarithm is uniform."""
    return np.where(rng.random(shape) < first, 1, VOCABULARY ** rng.random(shape)).astype(np.int64)


def _single(values: Any) -> Any:
    """Numbers of single precision, as most columns of a measurement are."""
    return values.astype(np.float32).astype(np.float64) if values.dtype.kind == "f" else values


def _filler(name: str, rng: np.random.Generator, positions: int) -> Any:
    """Possible values of a column in the precision of a measurement."""
    column = COLUMNS[name]
    if column.kind == "integer":
        return rng.geometric(0.3, positions)
    values = rng.dirichlet(np.ones(9), positions)[:, : column.widths[1]] if column.widths else rng.random(positions)
    return _single(values if column.high > 0 else -values)
