"""Who reads the prompts: what ``--workers`` and ``--scheduler`` ask for, checked before anything is loaded."""

from __future__ import annotations

from functools import partial

from spectheory.checks import in_range
from spectheory.cli.console import remark, remarks
from spectheory.cli.inputs import MOST_WORKERS
from spectheory.cli.loading import source_of
from spectheory.cli.options import MeasuringOptions, PairOptions
from spectheory.cli.progress import working
from spectheory.errors import SettingError
from spectheory.measure.runners import Runner, connected, dask_workers, devices_for, here, local_workers
from spectheory.processes import processors


def runner_of(how: MeasuringOptions, pair: PairOptions, prompts: int) -> Runner:
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
    return dask_workers(source_of(pair).absolute().load, address, threads=pair.threads)


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
    return local_workers(source_of(pair).absolute().load, devices, threads=pair.threads)
