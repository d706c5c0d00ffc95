"""What vLLM's offline example prints of ``llm.get_metrics()``, and the list itself as Python shows it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.counters import Counters
from spectheory.trace.importers.base import Format, text_of
from spectheory.trace.importers.rounded import shares_of
from spectheory.trace.importers.vllm_log import NO_DRAFTS, PAST_END

PRINTED = {"calls": "num_drafts", "drafted": "num_draft_tokens", "accepted": "num_accepted_tokens"}
SHARE_DIGITS = 2


def read_vllm_offline(path: Path) -> Counters:
    """Totals of a run of ``LLM.generate``."""
    text = text_of(path)
    totals: dict[str, Any] = {name: _total(text, printed, path) for name, printed in PRINTED.items()}
    tokens = re.search(r"total_num_output_tokens: (\d+)", text)
    vector = re.search(r"num_accepted_tokens_per_pos['\"],[^)]*?values=\[([\d, ]*)\]", text)
    calls = totals["calls"]
    if vector and calls:
        survival, rounding = tuple(int(count) / calls for count in vector[1].split(",") if count.strip()), 0.0
    else:
        shares = [float(share) for share in re.findall(r"acceptance at token \d+: ([\d.]+)", text)]
        survival, rounding = shares_of(shares, SHARE_DIGITS, calls, totals["accepted"])
    even = calls and totals["drafted"] % calls == 0
    return Counters(
        **totals,
        survival=survival,
        k=len(survival) or (totals["drafted"] // calls if even else None),
        tokens=int(tokens[1]) if tokens else None,
        rounding=rounding,
        engine="vllm",
        remarks=(PAST_END, NO_DRAFTS),
    )


def _total(text: str, name: str, path: Path) -> int:
    """The value after ``name:``, or of ``Counter(name='vllm:spec_decode_NAME', value=...)``."""
    forms = (rf"\b{name}: (\d+)", rf"spec_decode_{name}['\"],[^)]*?value=(\d+)")
    found = [match[1] for form in forms for match in re.finditer(form, text)]
    if len(found) != 1:
        raise TextError(
            f"{path} has {name} {len(found)} times",
            limit="needs the print of one run",
            remedy="keep the lines of one run in a file",
        )
    return int(found[0])


def _recognised(head: bytes) -> bool:
    return re.search(rb"\bnum_drafts: \d", head) is not None or b"Counter(name='vllm:spec_decode" in head


VLLM_OFFLINE = Format(
    "vllm-offline",
    _recognised,
    read_vllm_offline,
    title="vLLM's `llm.get_metrics()`, as its example prints it or as Python shows it",
    gives="calls, drafted and accepted tokens, output tokens, survival by position where it is printed",
    lacks="requests, texts; calls without drafts",
)
