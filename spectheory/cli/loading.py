"""The pair that the options name, loaded, and who reads the prompts; what the user should know of it is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from functools import partial
from typing import Any

from spectheory.checks import in_range
from spectheory.cli.console import remark, remarks
from spectheory.cli.inputs import MOST_WORKERS
from spectheory.cli.options import MeasuringOptions, PairOptions, SampledText
from spectheory.cli.progress import working
from spectheory.cost import LatencyTable
from spectheory.deployment import other_machine
from spectheory.distributions import Sampling
from spectheory.errors import SettingError
from spectheory.measure import MeasureSettings, Model, ModelPair
from spectheory.measure.forward import depth_of
from spectheory.measure.machine import use_threads
from spectheory.measure.runners import Runner, connected, dask_workers, devices_for, here, local_workers
from spectheory.pairs import PairSource
from spectheory.processes import processors


def earlier_threads(tables: Iterable[LatencyTable]) -> int | None:
    """Torch's threads in tables of this machine: times go together with those of the same threads alone."""
    machines = [table.provenance.get("hardware") for table in tables]
    here = [each for each in machines if isinstance(each, dict) and other_machine(each) is None]
    return here[0].get("threads") if here else None


def settings_of(text: SampledText, temperature: float = 1.0, **others: Any) -> MeasureSettings:
    """How the text is sampled and read."""
    made = MeasureSettings(
        sampling=Sampling(temperature, text.top_k, text.top_p, text.min_p),
        tokens=text.tokens,
        count=text.continuations,
        seed=text.seed,
        chat_template=text.chat_template,
        chunk=text.chunk,
        depth=text.depth,
        grown=text.grow,
    )
    return replace(made, **others)


def _source_of(options: PairOptions) -> PairSource:
    """What another process needs to load the same pair."""
    return PairSource(**{each.name: getattr(options, each.name) for each in fields(PairSource)})


def load_named(options: PairOptions, depth: int | None = None) -> ModelPair:
    """Choose torch's threads and load the pair; of a draft head, check the depth that is asked for."""
    with working("loading the models"):
        threads = use_threads(options.threads)
        pair = _source_of(options).load()
    for said in (threads, *pair.remarks, *_beyond_training(pair.draft, depth_of(pair.draft, depth))):
        remark(said)
    return pair


def _beyond_training(draft: Model, depth: int | None) -> Iterator[str]:
    """A remark about drafts that a head was not trained for."""
    if draft.head and depth and depth > draft.head.trained:
        yield f"{draft.name} was trained for {draft.head.trained} drafts in a call and is measured to {depth}"


def _runner_of(how: MeasuringOptions, pair: PairOptions, prompts: int) -> Runner:
    """The client itself, processes of its machine, or a Dask cluster."""
    in_range("--workers", how.workers, MOST_WORKERS)
    if how.scheduler is not None:
        return _cluster(how.scheduler, how, pair)
    return partial(here, remark=remark) if how.workers is None else _local(how.workers, pair, prompts)


def _cluster(address: str, how: MeasuringOptions, pair: PairOptions) -> Runner:
    if how.workers is not None:
        raise SettingError(
            "--workers and --scheduler are both given",
            limit="a Dask cluster has workers of its own",
            remedy="leave one out",
        )
    with working("connecting to the Dask scheduler"), connected(address):
        pass
    return dask_workers(_source_of(pair).absolute().load, address, threads=pair.threads)


def _local(asked: int, pair: PairOptions, prompts: int) -> Runner:
    if pair.device_map is not None:
        raise SettingError(
            "--workers and --device-map are both given",
            limit="each worker has both models on one device",
            remedy="leave one out",
        )
    workers, cores = min(asked, prompts), processors()
    threads = max(1, cores // workers)
    if pair.threads is not None and pair.threads > threads:
        raise SettingError(
            f"--threads is {pair.threads}",
            limit=f"each of {workers} workers has {threads} of {cores} cores",
            remedy="leave it out, or use fewer workers",
        )
    if workers < asked:
        remarks.print(f"{workers} workers are started, one for each prompt")
    if workers > cores:
        remarks.print(f"{workers} workers share {cores} cores")
    devices = devices_for(workers, pair.device)
    return local_workers(_source_of(pair).absolute().load, devices, threads=pair.threads)
