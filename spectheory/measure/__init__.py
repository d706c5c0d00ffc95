"""Measure a pair with torch: load it, sample and read texts, time passes, and compare predictions with real decoders.

Importing this needs the extra ``models``; without it, :class:`spectheory.errors.MissingExtraError` names the extra.

What holds for every function of this package:

- `pair` holds target and draft over one tokenizer of V token ids. `sampling` sets temperature, top-k, top-p and min-p
  of both models. Logits are ``[..., V]`` in any floating precision, token ids are int64 ``[n]``, times seconds,
  entropies and log-probabilities nats.
- `tokens` is the largest number of output tokens of a text, `k` the number of drafts per call, `seed` the root of all
  randomness. `chunk` is the number of tokens read in one pass; it decides memory, and changes numbers by rounding
  alone.
- `stop_at_end` ends a text with its first end-of-text token, which belongs to it. `chat_template` puts prompts into the
  tokenizer's chat template. `on_progress` is called after each step, with the numbers of steps done and in all, or a
  :class:`Progress`.
- SettingError: a setting out of range. TextError: a prompt or text that is missing, impossible or too long for the
  models' window. ModelError: a model that cannot be used, or a device that runs out of memory. LogitsError: a row of
  logits without a pmf (a NaN, +inf, or nothing but -inf), with its index. TraceError: files of another run.
  OutputError: files that cannot be written, or that another run is writing. WorkerError: workers that die
  again and again, or a scheduler that is lost.
"""

from spectheory.measure import _extra  # noqa: F401  imported first: it names the extra that is missing
from spectheory.measure.assisted import (
    AssistedComparison,
    Generated,
    compare_with_assisted,
    count_assisted_calls,
    generate_plain,
)
from spectheory.measure.columns.statistics import position_statistics
from spectheory.measure.decoders import Decoded, HeaviestTree, Method, decode
from spectheory.measure.forward import teacher_forced
from spectheory.measure.job import MeasureSettings, fingerprint_of_run
from spectheory.measure.latency import Timing, differences, measure_latency
from spectheory.measure.load import load_pair
from spectheory.measure.pair import Model, ModelPair
from spectheory.measure.run import Progress, measure
from spectheory.measure.runners import dask_workers, local_workers
from spectheory.measure.sampling import sample_continuations

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
    "Timing",
    "compare_with_assisted",
    "count_assisted_calls",
    "dask_workers",
    "decode",
    "differences",
    "fingerprint_of_run",
    "generate_plain",
    "load_pair",
    "local_workers",
    "measure",
    "measure_latency",
    "position_statistics",
    "sample_continuations",
    "teacher_forced",
]
