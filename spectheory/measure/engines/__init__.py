"""Real engines, run on the prompts of a pair: a file per engine, and a line in :data:`ENGINES`."""

from __future__ import annotations

from importlib import import_module

from spectheory.errors import SettingError
from spectheory.measure.engines.base import Engine, Job, Models

__all__ = ["ENGINES", "Engine", "Job", "Models", "find_engine"]

ENGINES = {
    "vllm": "spectheory.measure.engines.vllm:VllmEngine",
    "llama.cpp": "spectheory.measure.engines.llamacpp:LlamaEngine",
    "openvino": "spectheory.measure.engines.openvino:OpenVinoEngine",
    "onnxruntime": "spectheory.measure.engines.onnxruntime:OnnxruntimeEngine",
}
"""Where each engine's class is; it is imported when asked for."""


def find_engine(named: str) -> Engine:
    """The engine of ``NAME`` or ``NAME=PROGRAM``, the program or Python that runs it."""
    name, _, program = named.partition("=")
    if name not in ENGINES:
        raise SettingError(
            f"engine {name!r} is unknown", limit=f"there are {', '.join(ENGINES)}", remedy="name one of them"
        )
    module, _, kind = ENGINES[name].partition(":")
    made: Engine = getattr(import_module(module), kind)(program or None)
    return made
