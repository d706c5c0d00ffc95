"""Engines, a folder each: its logs, what to paste into it, how it is run, and what is known of its faults.

A folder has some of these files; each is loaded when it is asked for, so that a log is read without torch:

- ``logs.py``: formats of its logs, in ``REQUESTS`` (calls of each request), ``SCORES`` (log-probabilities) and
  ``TOTALS``; ``METRICS``, what its ``/metrics`` are called.
- ``timed.py``: formats of timed runs, in ``TIMED``; files of its tools that say no time of a step, in ``UNTIMED``.
- ``settings.py``: ``ENGINE``, what its settings do, with the functions that make them.
- ``running.py``: ``RUNS``, the class that runs it on this machine; ``DIALECT``, how its server is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

FOLDERS = (
    "transformers",
    "vllm",
    "sglang",
    "llamacpp",
    "tensorrt",
    "openvino",
    "onnxruntime",
    "lmdeploy",
    "lmstudio",
    "ollama",
    "mlxlm",
)
"""Every engine, in the order of answers."""


def of_engines(part: Literal["logs", "timed", "settings", "running"], name: str) -> Iterator[Any]:
    """What the engines that have this file say under a name in it.

    Examples
    --------
    >>> [metrics.prefix for of_one in of_engines("logs", "METRICS") for metrics in of_one][:2]
    ['vllm:', 'sglang:']
    """
    for folder in FOLDERS:
        if find_spec(module := f"{__name__}.{folder}.{part}"):
            loaded = import_module(module)
            if hasattr(loaded, name):
                yield getattr(loaded, name)
