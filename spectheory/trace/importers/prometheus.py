"""A scrape of ``/metrics`` in Prometheus' text format: vLLM, llama.cpp, TensorRT-LLM and SGLang, by one parser."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as brief
from textwrap import shorten
from typing import Any, TypeAlias

from spectheory.engines import of_engines
from spectheory.errors import FOREIGN, TextError, argument
from spectheory.trace.calls import MOST_COUNTED
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import longest_of

_GAUGE_DIGITS = 2
"""Digits of a gauge that are taken as certain, as engines set them from rounded means too."""
_MODEL = "model_name"
NO_COUNTERS = "needs the counters of speculative decoding"
"""The limit of pages without them."""
SPECULATION = {
    "calls": "spec_decode_num_drafts_total",
    "drafted": "spec_decode_num_draft_tokens_total",
    "accepted": "spec_decode_num_accepted_tokens_total",
}
"""What most engines call the totals of speculation."""
POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
_RAY = re.compile(r"^ray_(vllm|sglang)[_:]")
"""How Ray renames the metrics of an engine that it serves."""
Reads: TypeAlias = Callable[[str], float | None]
"""The value of a metric by its name; None where a scrape has none."""


@dataclass(frozen=True)
class Metrics:
    """What an engine calls its metrics, and what it leaves open.

    `totals` has the metric of each total of :class:`Counters`, `position` the one with a label ``position`` from 0 on,
    `gauges` means of the last interval, `started` the time at which the counters were made. `needs` is a metric that
    a scrape must have to be of this kind. `derived` gives what follows from the totals and from further metrics, of
    which its second argument reads a total and its third a gauge.
    """

    engine: str
    prefix: str
    totals: Mapping[str, str] = field(default_factory=dict)
    position: str = ""
    gauges: Mapping[str, str] = field(default_factory=dict)
    started: str = ""
    remarks: tuple[str, ...] = ()
    needs: str = ""
    derived: Callable[[Mapping[str, Any], Reads, Reads], Mapping[str, Any]] | None = None


def _every_kind() -> tuple[Metrics, ...]:
    """Every engine whose scrape is read."""
    return tuple(each for of_one in of_engines("logs", "METRICS") for each in of_one)


def _read_prometheus(path: Path) -> Counters:
    return read_metrics(text_of(path), path)


def read_metrics(text: str, path: str | Path, model: str | None = None) -> Counters:
    """Counters of one model since the start of its server, from a page of ``/metrics``; its engines are summed.

    `path` says where the page is from, `model` whose lines are kept where it counts several models.

    Examples
    --------
    >>> names = {"drafts": 10, "draft_tokens": 20, "accepted_tokens": 9}
    >>> page = [f"vllm:spec_decode_num_{name}_total {value}{chr(10)}" for name, value in names.items()]
    >>> read_metrics("".join(page), "a page").length
    1.9
    """
    series = _series(text, path)
    if model is not None:
        series = _of_model(series, path, model)
    kinds = _every_kind()
    kind = next((each for each in kinds if _is_of(each, series)), kinds[0])
    metrics = {name.removeprefix(kind.prefix): samples for name, samples in series.items()}
    totals: dict[str, Any] = {name: _total(metrics, metric) for name, metric in kind.totals.items()}
    gauges = {name: _gauge(metrics, metric, path) for name, metric in kind.gauges.items()}
    missing = [kind.totals[name] for name in totals if name in SPECULATION and totals[name] is None]
    if missing or (not totals and None in gauges.values()):
        raise TextError(
            f"{path} has no {kind.prefix}{[*missing, *kind.gauges.values()][0]}",
            limit=NO_COUNTERS,
            remedy="scrape the server while it speculates, and the whole page",
        )
    _one_model(
        [samples for name, samples in metrics.items() if name in kind.totals.values() and name in SPECULATION.values()],
        path,
    )
    counts = _by_position(metrics.get(kind.position, ()), path) if kind.position else []
    whole: dict[str, Any] = {
        name: value if name == "seconds" or value is None else int(value) for name, value in totals.items()
    }
    calls, mean_length, whole["k"] = whole.get("calls"), gauges.get("mean_length"), len(counts) or None
    if kind.derived:
        whole |= kind.derived(whole, lambda name: _total(metrics, name), lambda name: _gauge(metrics, name, path))
    if mean_length is not None and (rate := gauges.get("rate")) is not None:
        whole["k"], _ = longest_of(mean_length, rate, _GAUGE_DIGITS)
    started = _total(metrics, kind.started)
    facts = {"started": started, "draft_share": gauges.get("draft_share")}
    return Counters(
        **whole,
        survival=tuple(count / calls for count in counts) if calls else (),
        mean_length=mean_length,
        cumulative=bool(totals),
        engine=kind.engine,
        remarks=kind.remarks,
        provenance={name: value for name, value in facts.items() if value is not None},
    )


def _is_of(kind: Metrics, series: Mapping[str, Any]) -> bool:
    """Whether a scrape has the metrics of an engine."""
    needed = kind.prefix + kind.needs
    return needed in series if kind.needs else any(name.startswith(kind.prefix) for name in series)


Samples = Sequence[tuple[Mapping[str, str], float]]


def _series(text: str, path: str | Path) -> dict[str, Samples]:
    """Labels and values of each metric."""
    from prometheus_client.parser import text_string_to_metric_families

    samples_of: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                name = _RAY.sub(r"\1:", sample.name)
                samples_of.setdefault(name, []).append((sample.labels, sample.value))
    except FOREIGN as error:
        raise TextError(
            f"{path} is no whole scrape ({shorten(str(error), 80) or type(error).__name__})",
            limit="needs Prometheus' text format",
            remedy="fetch /metrics again",
        ) from error
    return dict(samples_of)


def _of_model(series: Mapping[str, Samples], path: str | Path, model: str) -> dict[str, Samples]:
    """The samples of one model, and those that name none."""
    models = {labels[_MODEL] for samples in series.values() for labels, _ in samples if _MODEL in labels}
    if model not in models:
        raise TextError(
            f"{path} counts no model {model!r}",
            limit=f"it counts {', '.join(sorted(models)) or 'none by name'}",
            remedy="name one of them" if models else "leave it out",
        )
    return {
        name: [(labels, value) for labels, value in samples if labels.get(_MODEL, model) == model]
        for name, samples in series.items()
    }


def _total(metrics: Mapping[str, Samples], name: str) -> float | None:
    """The sum over all engines of a server."""
    return sum(_finite(value, name) for _, value in metrics[name]) if name in metrics else None


def _finite(value: float, name: str) -> float:
    if not 0 <= value <= MOST_COUNTED:
        raise TextError(
            f"{name} is {brief(value)}", limit="must be finite and not negative", remedy="fetch /metrics again"
        )
    return value


def _gauge(metrics: Mapping[str, Samples], name: str, path: str | Path) -> float | None:
    """A mean that all ranks of a server agree on."""
    values = {_finite(value, name) for _, value in metrics.get(name, ())}
    if len(values) > 1:
        raise TextError(
            f"{path} has {len(values)} values of {name}",
            limit="means of several engines have no weights",
            remedy="keep the lines of one engine",
        )
    return values.pop() if values else None


def _one_model(metrics: Sequence[Samples], path: str | Path) -> None:
    models = {labels.get(_MODEL, "") for samples in metrics for labels, _ in samples}
    if len(models) > 1:
        raise TextError(
            f"{path} counts {', '.join(sorted(models))}",
            limit="one model is read at a time",
            remedy=f"keep the lines of one {_MODEL}" + argument("", ", or watch one with --model"),
        )


def _by_position(samples: Samples, path: str | Path) -> list[float]:
    """Accepted tokens at the first, second, ... position."""
    counts: dict[int, float] = {}
    for labels, value in samples:
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


def _recognised(head: bytes) -> bool:
    prefixes = "|".join([*(re.escape(each.prefix) for each in _every_kind()), "ray_vllm", "ray_sglang"])
    return re.search(rf"^(?:# (?:HELP|TYPE) )?(?:{prefixes})[:\w]+".encode(), head, re.M) is not None


PROMETHEUS = Format(
    "prometheus",
    _recognised,
    _read_prometheus,
    title="a scrape of `/metrics`: vLLM (also behind Ray), LMDeploy, llama.cpp, TensorRT-LLM, SGLang; two scrapes "
    "give their difference",
    gives="calls, drafted and accepted tokens, survival by position (vLLM, LMDeploy, llama.cpp); calls and output "
    "tokens (SGLang from 0.5.23 on); drafted and accepted tokens (TensorRT-LLM); means of the last interval "
    "(TensorRT-LLM, older SGLang)",
    lacks="requests, texts, calls without drafts; survival by position (TensorRT-LLM, SGLang)",
)
