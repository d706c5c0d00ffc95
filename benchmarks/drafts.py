"""Drafts of all kinds for the built-in target, side by side, one thread: what a call gives, and what it takes.

Each draft is measured over the same prompts, with the latencies of its passes. A row is a draft and what is done with
it: its verification rule with the k of the largest predicted speed-up, the loop's time included. The table of
docs/built_in_pair.md is written from the results.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from _machine import print_machine

from spectheory.cli.options import LATENCY_FILE
from spectheory.deployment import Draft, rank_drafts
from spectheory.distributions import Sampling
from spectheory.files import write_whole
from spectheory.measure import MeasureSettings, load_pair, measure
from spectheory.measure.machine import hardware, versions
from spectheory.measure.validation.latencies import context_of, kept_latencies
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prompts import Prompt, read_prompts
from spectheory.verification import PATH_RULES

LONGEST = 8
"""Most drafts of a call; heads draft no more than they were trained for."""
RESULTS = Path(__file__).parent / "results" / "drafts.json"


@dataclass(frozen=True)
class Way:
    """One row: a built-in draft, the rule that verifies it, and what an engine needs for it."""

    draft: str
    rule: str
    what: str
    needs: str


SECOND = "a second model with the same tokenizer"
HEAD = "the target's hidden states, a trained head"
WAYS = (
    Way("draft", "block", "small model, trained on text", SECOND),
    Way("distilled", "block", "small model, distilled", f"{SECOND}, distillation"),
    Way("eagle3", "block", "EAGLE-3 head", HEAD),
    Way("dflash", "block", "DFlash head, sampled drafts", HEAD),
    Way("dflash", "argmax", "DFlash head, argmax drafts", HEAD),
    Way("distilled", "lookup", "prompt lookup", "nothing"),
)


def measured(name: str, prompts: tuple[Prompt, ...], how: MeasureSettings, folder: Path) -> Draft:
    """The draft with its trace and latencies, kept in the folder."""
    pair = load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + name), device="cpu")
    folder.mkdir(parents=True, exist_ok=True)
    trace = measure(pair, prompts, how, folder / "trace.parquet")
    longest = LONGEST + 1
    context = context_of(pair, prompts, how, longest)
    path = folder / LATENCY_FILE
    costs = kept_latencies(pair, context, longest, path, sampling=how.sampling, on_progress=lambda _: None)
    return Draft(name, trace, costs)


def row(way: Way, draft: Draft) -> dict[str, Any]:
    """What the fastest chain of this way gives and takes."""
    ranking = rank_drafts([draft.in_loop], rules=[PATH_RULES[way.rule]], k_max=LONGEST)
    best = ranking.best.prediction
    assert best.speedup is not None
    return {
        **asdict(way),
        "k": best.shape.nodes,
        "acceptance": best.acceptance.as_dict(),
        "tokens_per_call": best.tokens_per_call.as_dict(),
        "passes": len(best.shape.passes),
        "speedup": best.speedup.as_dict(),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown, the fastest first."""
    lines = [
        "| draft | verification | first draft accepted | best k | tokens per call | draft passes per call "
        "| predicted speed-up | needs |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for each in sorted(rows, key=lambda one: -one["speedup"]["best"]):
        cells = [each["what"], each["rule"], f"{each['acceptance']['best']:.3f}", str(each["k"])]
        cells += [_spread(each["tokens_per_call"]), str(each["passes"]), f"{_spread(each['speedup'])}x", each["needs"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(interval: dict[str, float]) -> str:
    return f"{interval['best']:.2f} [{interval['low']:.2f}, {interval['high']:.2f}]"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=48, help="take the first so many prompts")
    parser.add_argument("--tokens", type=int, default=96, help="most output tokens of a text")
    parser.add_argument("--seed", type=int, default=0, help="root seed")
    parser.add_argument("--out", type=Path, help="folder of traces and latencies; by default nothing is kept")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    return parser.parse_args()


def main() -> None:
    """Measure every draft, print the table, write the results."""
    options = _options()
    print_machine()
    torch.set_num_threads(1)
    prompts = read_prompts(PROMPTS)[: options.first]
    how = MeasureSettings(Sampling(1.0), tokens=options.tokens, count=1, seed=options.seed)
    with TemporaryDirectory() as unkept:
        folder = options.out or Path(unkept)
        drafts = {
            name: measured(name, prompts, how, folder / name) for name in dict.fromkeys(way.draft for way in WAYS)
        }
        rows = [row(way, drafts[way.draft]) for way in WAYS]
    settings = {**asdict(how), "prompts": len(prompts), "longest": LONGEST}
    content = {"hardware": hardware(), "versions": versions(), "settings": settings, "drafts": rows}
    write_whole(options.json, lambda partial: partial.write_text(json.dumps(content, indent=1) + "\n"))
    print(table(rows))


if __name__ == "__main__":
    main()
