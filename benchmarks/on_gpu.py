"""On an accelerator: is what our decoders output right there, do calls and speed-ups come as predicted, what it takes.

Parts: `texts` (races and greedy texts that ought to be the same), `calls` (counted against expected, speed-ups
against predicted), `columns` (of positions, against the CPU's and the device's bandwidth, and their share of a
measurement), `sampling` (prompts together against one by one), `latencies` and `latency_budget` (of a large pair with
random weights, with the decoding loop), `heads` (draft heads of it), `mixed` (the models on different devices),
`memory` (out of it), `workers` (one for each GPU, if there are several). Rounding may decide, above all in bfloat16,
so nothing is asserted: numbers say how many texts part and where. A part that fails leaves its error, and what is
finished is on disk. Runs where there is no GPU with ``--device cpu --sizes tiny``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from _gpu_pairs import SIZES, Sizes, columns, heads, latencies, latency_budget
from _gpu_texts import calls, memory, mixed, sampling, texts, workers

from spectheory.files import write_whole
from spectheory.measure.machine import hardware, versions

Part = Callable[[str, str, Sizes], dict[str, Any]]
PARTS: dict[str, Part] = {
    "texts": texts,
    "calls": calls,
    "columns": columns,
    "sampling": sampling,
    "latencies": latencies,
    "latency_budget": latency_budget,
    "heads": heads,
    "mixed": mixed,
    "memory": memory,
    "workers": workers,
}
LARGE = ("columns", "latencies", "latency_budget", "heads", "workers")
"""Parts that are run in one dtype alone, the narrowest asked for."""
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run the parts asked for; 0 if none failed."""
    asked = options(arguments)
    device = asked.device or "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        print("this machine has no cuda device; use --device cpu --sizes tiny")
        return 2 if asked.device else 0  # all benchmarks together go on to the next
    torch.set_num_threads(asked.threads)
    path = asked.out or RESULTS / f"on_{device}.json"
    found: dict[str, Any] = {
        "machine": machine(),
        "versions": versions(),
        "device": device,
        "sizes": asked.sizes,
        "parts": {},
    }
    started, failed = time.monotonic(), False
    for name in asked.parts:
        narrowest = min(asked.dtype, key=lambda dtype: getattr(torch, dtype).itemsize)
        for dtype in (narrowest,) if name in LARGE else asked.dtype:
            if time.monotonic() - started > asked.limit:
                result: dict[str, Any] = {"left_out": f"more than {asked.limit:g} s had passed"}
            else:
                result = guarded(lambda name=name, dtype=dtype: PARTS[name](device, dtype, SIZES[asked.sizes]))
            found["parts"].setdefault(name, {})[dtype] = result
            write_whole(path, lambda whole: whole.write_text(json.dumps(found, indent=1) + "\n"))
            failed |= "error" in result
            print(f"{name} {dtype}: {summary(result)}", flush=True)
    return int(failed)


def options(arguments: list[str] | None) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], help="cuda if absent")
    parser.add_argument("--dtype", nargs="+", default=["float32", "bfloat16"], choices=["float32", "bfloat16"])
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--sizes", default="quick", choices=list(SIZES), help="how much is run")
    parser.add_argument("--quick", dest="sizes", action="store_const", const="quick", help="the same as --sizes quick")
    parser.add_argument("--limit", type=float, default=440.0, help="seconds after which no part is begun")
    parser.add_argument("--threads", type=int, default=min(4, os.cpu_count() or 1), help="of the CPU")
    parser.add_argument("--out", type=Path, help="where the results go")
    return parser.parse_args(arguments)


def guarded(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a part found and how long it took, or its error."""
    started = time.monotonic()
    try:
        result = work()
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        result = {"error": f"{type(error).__name__}: {error}", "where": where}
        traceback.print_exc(file=sys.stderr)
    # The weights of a part make room for those of the next.
    gc.collect()
    if torch.cuda.is_available():
        with suppress(RuntimeError):
            torch.cuda.empty_cache()
    return {"seconds": round(time.monotonic() - started, 2), **result}


def machine() -> dict[str, Any]:
    """Processor, accelerator, its driver and CUDA."""
    found = {**hardware(), "cuda": torch.version.cuda}
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        asked = subprocess.run(query, capture_output=True, text=True, check=True, timeout=30)
        found["nvidia_smi"] = asked.stdout.strip().splitlines()
    return found


def summary(result: dict[str, Any]) -> str:
    """One line of the numbers of a part."""
    shown = {name: value for name, value in result.items() if not isinstance(value, (dict, list))}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


if __name__ == "__main__":
    sys.exit(main())
