"""onnxruntime-genai: its generator with a draft model, which takes and returns token ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spectheory.errors import SettingError
from spectheory.measure.engines import Job
from spectheory.measure.engines.inprocess import InProcess

_DRIVERS = Path(__file__).with_name("drivers")
"""Scripts for its interpreter."""


class _OnnxruntimeEngine(InProcess):
    """onnxruntime-genai on the CPU in float32, one request at a time.

    The first call verifies drafts behind the prompt. Accepted tokens past the end of a text are left out.
    """

    name = "onnxruntime"
    prefill_emits_token = False
    package = "onnxruntime-genai"
    remedy = (
        "pip install 'spectheory[onnxruntime]' into an environment of its own, and name its Python as --engine "
        "onnxruntime=PYTHON"
    )
    writes = _DRIVERS / "onnxruntime_model.py"
    runs = _DRIVERS / "onnxruntime_engine.py"

    def settings(self, job: Job) -> Mapping[str, Any]:
        """Search settings, by onnxruntime-genai's names."""
        sampling = job.sampling
        if sampling.min_p:
            raise SettingError("onnxruntime takes no min-p", limit="it has top-k and top-p", remedy="leave --min-p out")
        if sampling.temperature == 0:
            return {"search": {"do_sample": False}}
        cut = {"top_k": sampling.top_k or 0, "top_p": sampling.top_p or 1.0}
        return {"search": {"do_sample": True, "temperature": sampling.temperature, **cut}}


RUNS = _OnnxruntimeEngine
