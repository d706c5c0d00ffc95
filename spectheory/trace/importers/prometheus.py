"""A scrape of ``/metrics`` in Prometheus' text format: vLLM, llama.cpp, TensorRT-LLM and SGLang, by one parser."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as brief
from textwrap import shorten
from typing import Any

from spectheory.errors import FOREIGN, TextError
from spectheory.trace.calls import MOST_COUNTED
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import longest_of
from spectheory.trace.importers.vllm_log import NO_DRAFTS, PAST_END

GAUGE_DIGITS = 2
"""Digits of a gauge that are taken as certain, as engines set them from rounded means too."""
MODEL = "model_name"


@dataclass(frozen=True)
class Dialect:
    """What an engine calls its metrics, and what it leaves open.

    `totals` has the metric of each total of :class:`Counters`, `position` the one with a label ``position`` from 0 on,
    `gauges` means of the last interval, `started` the time at which the counters were made. `needs` is a metric that
    a scrape must have to be of this dialect.
    """

    engine: str
    prefix: str
    totals: Mapping[str, str] = field(default_factory=dict)
    position: str = ""
    gauges: Mapping[str, str] = field(default_factory=dict)
    started: str = ""
    remarks: tuple[str, ...] = ()
    needs: str = ""


_SPEC = {
    "calls": "spec_decode_num_drafts_total",
    "drafted": "spec_decode_num_draft_tokens_total",
    "accepted": "spec_decode_num_accepted_tokens_total",
}
_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
_SGLANG_CALLS, _SGLANG_REQUESTS, _SGLANG_K = "spec_verify_calls_total", "num_requests_total", "spec_num_steps"
_RAY = re.compile(r"^ray_(vllm|sglang)[_:]")
"""How Ray renames the metrics of an engine that it serves."""
DIALECTS = (
    Dialect(
        "vllm",
        "vllm:",
        {**_SPEC, "tokens": "generation_tokens_total"},
        _POSITION,
        started="spec_decode_num_drafts_created",
        remarks=(PAST_END, NO_DRAFTS),
    ),
    Dialect(
        "llama.cpp",
        "llamacpp:",
        {**_SPEC, "tokens": "tokens_predicted_total", "seconds": "tokens_predicted_seconds_total"},
        _POSITION,
        remarks=("llama.cpp does not count calls without drafts.",),
    ),
    Dialect(
        "tensorrt-llm",
        "trtllm_",
        {name: _SPEC[name] for name in ("drafted", "accepted")},
        gauges={"mean_length": "spec_decode_acceptance_length", "draft_share": "spec_decode_draft_overhead"},
        remarks=("Tokens per call is a gauge of the last iterations; the totals have no number of calls.",),
    ),
    Dialect("lmdeploy", "lmdeploy:", {**_SPEC, "tokens": "generation_tokens_total"}, _POSITION, remarks=(PAST_END,)),
    Dialect(
        "sglang",
        "sglang:",
        {"calls": _SGLANG_CALLS, "tokens": "generation_tokens_total"},
        remarks=(
            "SGLang counts calls and output tokens: accepted tokens are tokens less calls less one for each request, "
            "which the prompt's own pass emits.",
            "The cut last call of a text makes tokens per call too low, by less than one call in a request.",
        ),
        needs=_SGLANG_CALLS,
    ),
    Dialect(
        "sglang",
        "sglang:",
        gauges={"mean_length": "spec_accept_length", "rate": "spec_accept_rate"},
        remarks=(
            "Gauges of the last interval: no counts, no survival, no noise.",
            "SGLang's mean counts the prompt's token and the cut last call: biased by about one token per request.",
        ),
    ),
)
"""Every engine whose scrape is read."""


def read_prometheus(path: Path) -> Counters:
    """Counters of one model since the start of its server; several engines of it are summed."""
    series = _series(path)
    dialect = next((each for each in DIALECTS if _speaks(each, series)), DIALECTS[0])
    own = {name.removeprefix(dialect.prefix): found for name, found in series.items()}
    totals: dict[str, Any] = {name: _total(own, metric) for name, metric in dialect.totals.items()}
    gauges = {name: _gauge(own, metric, path) for name, metric in dialect.gauges.items()}
    missing = [dialect.totals[name] for name in totals if name in _SPEC and totals[name] is None]
    if missing or (not totals and None in gauges.values()):
        raise TextError(
            f"{path} has no {dialect.prefix}{[*missing, *dialect.gauges.values()][0]}",
            limit="needs the counters of speculative decoding",
            remedy="scrape the server while it speculates, and the whole page",
        )
    _one_model(
        [found for name, found in own.items() if name in dialect.totals.values() and name in _SPEC.values()], path
    )
    counts = _by_position(own.get(dialect.position, ()), path) if dialect.position else []
    whole: dict[str, Any] = {
        name: value if name == "seconds" or value is None else int(value) for name, value in totals.items()
    }
    calls, mean_length, k = whole.get("calls"), gauges.get("mean_length"), len(counts) or None
    if dialect.needs == _SGLANG_CALLS:
        k = int(steps) if (steps := _gauge(own, _SGLANG_K, path)) else None
        whole["accepted"] = max((whole["tokens"] or 0) - (calls or 0) - int(_total(own, _SGLANG_REQUESTS) or 0), 0)
    if mean_length is not None and (rate := gauges.get("rate")) is not None:
        k, _ = longest_of(mean_length, rate, GAUGE_DIGITS)
    started = _total(own, dialect.started)
    facts = {"started": started, "draft_share": gauges.get("draft_share")}
    return Counters(
        **whole,
        survival=tuple(count / calls for count in counts) if calls else (),
        k=k,
        mean_length=mean_length,
        cumulative=bool(totals),
        engine=dialect.engine,
        remarks=dialect.remarks,
        provenance={name: value for name, value in facts.items() if value is not None},
    )


def _speaks(dialect: Dialect, series: Mapping[str, Any]) -> bool:
    """Whether a scrape is of a dialect."""
    needed = dialect.prefix + dialect.needs
    return needed in series if dialect.needs else any(name.startswith(dialect.prefix) for name in series)


Found = Sequence[tuple[Mapping[str, str], float]]


def _series(path: Path) -> dict[str, Found]:
    """Labels and values of each metric."""
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    try:
        for family in text_string_to_metric_families(text_of(path)):
            for sample in family.samples:
                name = _RAY.sub(r"\1:", sample.name)
                found.setdefault(name, []).append((sample.labels, sample.value))
    except FOREIGN as error:
        raise TextError(
            f"{path} is no whole scrape ({shorten(str(error), 80) or type(error).__name__})",
            limit="needs Prometheus' text format",
            remedy="fetch /metrics again",
        ) from error
    return dict(found)


def _total(own: Mapping[str, Found], name: str) -> float | None:
    """The sum over all engines of a server."""
    return sum(_finite(value, name) for _, value in own[name]) if name in own else None


def _finite(value: float, name: str) -> float:
    if not 0 <= value <= MOST_COUNTED:
        raise TextError(
            f"{name} is {brief(value)}", limit="must be finite and not negative", remedy="fetch /metrics again"
        )
    return value


def _gauge(own: Mapping[str, Found], name: str, path: Path) -> float | None:
    """A mean that all ranks of a server agree on."""
    values = {_finite(value, name) for _, value in own.get(name, ())}
    if len(values) > 1:
        raise TextError(
            f"{path} has {len(values)} values of {name}",
            limit="means of several engines have no weights",
            remedy="keep the lines of one engine",
        )
    return values.pop() if values else None


def _one_model(metrics: Sequence[Found], path: Path) -> None:
    models = {labels.get(MODEL, "") for found in metrics for labels, _ in found}
    if len(models) > 1:
        raise TextError(
            f"{path} counts {', '.join(sorted(models))}",
            limit="one model is read at a time",
            remedy=f"keep the lines of one {MODEL}",
        )


def _by_position(found: Found, path: Path) -> list[float]:
    """Accepted tokens at the first, second, ... position."""
    counts: dict[int, float] = {}
    for labels, value in found:
        position = labels.get("position", "")
        if not re.fullmatch("[0-9]{1,4}", position):
            raise TextError(
                f"{path} counts at position {brief(position)}",
                limit="needs 0, 1, ...",
                remedy="fetch /metrics again",
            )
        counts[int(position)] = counts.get(int(position), 0.0) + _finite(value, "a position's count")
    if sorted(counts) != list(range(len(counts))):
        raise TextError(
            f"{path} counts at positions {', '.join(map(str, sorted(counts)))}",
            limit="needs all from 0 on",
            remedy="fetch the whole page",
        )
    return [counts[i] for i in range(len(counts))]


_LINE = re.compile(
    rb"^(?:# (?:HELP|TYPE) )?(?:"
    + b"|".join(each.prefix.encode() for each in DIALECTS)
    + rb"|ray_vllm|ray_sglang)[:\w]+",
    re.M,
)
PROMETHEUS = Format(
    "prometheus",
    lambda head: _LINE.search(head) is not None,
    read_prometheus,
    title="a scrape of `/metrics`: vLLM (also behind Ray), LMDeploy, llama.cpp, TensorRT-LLM, SGLang; two scrapes "
    "give their difference",
    gives="calls, drafted and accepted tokens, survival by position (vLLM, LMDeploy, llama.cpp); calls and output "
    "tokens (SGLang from 0.5.23 on); drafted and accepted tokens (TensorRT-LLM); means of the last interval "
    "(TensorRT-LLM, older SGLang)",
    lacks="requests, texts, calls without drafts; survival by position (TensorRT-LLM, SGLang)",
)
