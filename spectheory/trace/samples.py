"""What ships with the package to try it without models or an engine: a recorded trace, and logs of engines."""

from __future__ import annotations

import shutil
from pathlib import Path

from spectheory.errors import OutputError, reason_of

SAMPLES = Path(__file__).parents[1] / "samples"
"""Short logs: captures of engines, or lines made after the source of tools that were not run; ``pair/`` has the trace
and latencies of the built-in pair."""
BUILT_IN = "builtin:"
"""What names the recorded trace in place of a folder."""
PAIR = SAMPLES / "pair"


def sample_logs() -> tuple[Path, ...]:
    """The logs, by name.

    Examples
    --------
    >>> "vllm_metrics.txt" in [path.name for path in sample_logs()]
    True
    """
    return tuple(sorted(path for path in SAMPLES.iterdir() if path.is_file()))


def copy_samples(folder: Path) -> list[Path]:
    """Copy the logs and the recorded trace into a folder; files that are there already stay."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for log in sample_logs():
            if not (folder / log.name).exists():
                shutil.copyfile(log, folder / log.name)
        if not (folder / PAIR.name).exists():
            shutil.copytree(PAIR, folder / PAIR.name)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({reason_of(error)})", limit="needs a folder", remedy="name another one"
        ) from error
    return [*(folder / log.name for log in sample_logs()), folder / PAIR.name]
