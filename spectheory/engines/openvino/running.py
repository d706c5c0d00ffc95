"""OpenVINO GenAI: its pipeline with a draft model, which takes and returns token ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from spectheory.measure.engines import Job
from spectheory.measure.engines.inprocess import InProcess

_DRIVERS = Path(__file__).with_name("drivers")
"""Scripts for its interpreter."""


class _OpenVinoEngine(InProcess):
    """OpenVINO GenAI on the CPU in float32, one request at a time, without prefix cache.

    The prompt's pass emits a token. Calls are counted by the tokens that each hands to its streamer: its counters
    (`m_batch_sizes`, accepted and drafted tokens) hold tokens that are not in the output at temperatures above 0.
    """

    name = "openvino"
    package = "openvino-genai"
    remedy = "pip install 'spectheory[openvino]', or name its Python as --engine openvino=PYTHON"
    writes = _DRIVERS / "openvino_model.py"
    runs = _DRIVERS / "openvino_engine.py"

    def settings(self, job: Job) -> Mapping[str, Any]:
        """Device, scheduler and generation settings, by OpenVINO's names."""
        return {
            "device": {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
            "scheduler": {"cache_size": 1, "enable_prefix_caching": False},  # GiB
            **asdict(job.sampling),
        }


RUNS = _OpenVinoEngine
