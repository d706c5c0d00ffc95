"""Measure a pair with torch: load it, sample and read texts, time it, and hold predictions against a real decoder.

Importing this needs the extra ``models``; without it, :class:`spectheory.errors.MissingExtraError` names it.
"""

from spectheory.measure import _extra  # noqa: F401  first, so that what is missing is named
from spectheory.measure.assisted import Generated, count_assisted_calls, generate_plain
from spectheory.measure.comparison import AssistedComparison, compare_with_assisted, predict_calls
from spectheory.measure.decoders import Decoded, HeaviestTree, Method, decode
from spectheory.measure.forward import teacher_forced
from spectheory.measure.kept_latencies import differences
from spectheory.measure.latency import measure_latency
from spectheory.measure.load import load_pair
from spectheory.measure.loop_time import with_loop
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.run import MeasureSettings, Progress, fingerprint_of_run, measure
from spectheory.measure.sampling import sample_continuations
from spectheory.measure.statistics import position_statistics

__all__ = [
    "AssistedComparison",
    "Decoded",
    "Generated",
    "HeaviestTree",
    "MeasureSettings",
    "Method",
    "Model",
    "ModelPair",
    "Progress",
    "compare_with_assisted",
    "count_assisted_calls",
    "decode",
    "differences",
    "fingerprint_of_run",
    "generate_plain",
    "load_pair",
    "measure",
    "measure_latency",
    "position_statistics",
    "predict_calls",
    "sample_continuations",
    "teacher_forced",
    "with_loop",
]
