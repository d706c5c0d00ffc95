"""Drafts of all kinds for the built-in target, side by side, one thread: what a call gives, and what it takes.

Each draft is measured over the same prompts, with the latencies of its passes. A row is a draft and what is done with
it: its verification rule with the k of the largest predicted speed-up, the loop's time included. `_drafts_page.py`
makes a table and a picture of the results.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import torch
from _drafts_page import table
from _rows import print_machine

from spectheory.cli.options import LATENCY_FILE
from spectheory.cli.progress import progress
from spectheory.cost import LatencyTable
from spectheory.deployment import Draft
from spectheory.deployment.ranking import rank_drafts
from spectheory.distributions import Sampling
from spectheory.files import write_whole
from spectheory.measure import MeasureSettings, ModelPair, Progress, load_pair, measure
from spectheory.measure.machine import hardware, versions
from spectheory.measure.validation.run import context_of, kept_latencies
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prediction.ngrams import ngram_rules
from spectheory.prompts import Prompt, read_prompts
from spectheory.trace import Trace
from spectheory.verification import PATH_RULES

LONGEST = 8
"""Most drafts of a call; heads draft no more than they were trained for."""
RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Way:
    """One row: a built-in draft, the rule that verifies it, what it is, and its kind as in `_drafts_page.py`."""

    draft: str
    rule: str
    what: str
    kind: str


WAYS = (
    Way("draft", "block", "small model, trained on text", "model"),
    Way("distilled", "block", "small model, distilled", "model"),
    Way("eagle3", "block", "EAGLE-3 head", "head"),
    Way("mtp", "block", "MTP head", "head"),
    Way("dspark", "block", "DSpark head", "head"),
    Way("dflash", "block", "DFlash head, sampled drafts", "head"),
    Way("dflash", "argmax", "DFlash head, argmax drafts", "head"),
    Way("distilled", "lookup", "prompt lookup", "copy"),
    Way("distilled", "ngram-vllm:min=1,max=3", "n-grams of vLLM", "copy"),
    Way("distilled", "ngram-cache", "n-grams of llama.cpp", "copy"),
    Way("distilled", "suffix:max=8", "suffix decoding", "copy"),
)
NGRAMS = tuple(way.rule for way in WAYS if way.kind == "copy" and way.rule != "lookup")


def known(
    pair: ModelPair, prompts: tuple[Prompt, ...], how: MeasureSettings, folder: Path, longest: int
) -> tuple[Trace, LatencyTable]:
    """The trace of a pair and its latencies of calls of so many tokens, kept in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    context = context_of(pair, prompts, how, longest)
    with shown(f"{folder.name}: latencies") as show:
        path = folder / LATENCY_FILE
        latencies = kept_latencies(pair, context, longest, path, sampling=how.sampling, on_progress=show)
    with shown(f"{folder.name}: trace") as show:
        return measure(pair, prompts, how, folder / "trace.parquet", on_progress=show), latencies


@contextmanager
def shown(what: str) -> Iterator[Callable[[Progress], None]]:
    """A line of progress."""
    with progress() as bar:
        task = bar.add_task(what)
        yield lambda state: bar.update(task, completed=state.done, total=state.total)


def measured(name: str, prompts: tuple[Prompt, ...], how: MeasureSettings, folder: Path) -> Draft:
    """The draft with its trace, and latencies in CPU seconds, which other processes change little."""
    pair = load_pair(resolve(f"{PREFIX}target"), resolve(PREFIX + name), device="cpu")
    with mock.patch.object(time, "perf_counter", time.thread_time):
        return Draft(name, *known(pair, prompts, how, folder, LONGEST + 1))


def row(way: Way, draft: Draft) -> dict[str, Any]:
    """What the fastest chain of this way gives and takes."""
    known_rules = PATH_RULES | {rule.name: rule for rule in ngram_rules(draft.trace)}
    ranking = rank_drafts([draft.in_loop], rules=[known_rules[way.rule]], k_max=LONGEST)
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


def options_of(doc: str | None, first: int, results: str) -> argparse.ArgumentParser:
    """How much is decoded, and where it goes."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=first, help="take the first so many prompts")
    parser.add_argument("--tokens", type=int, default=96, help="most output tokens of a text")
    parser.add_argument("--seed", type=int, default=0, help="root seed")
    parser.add_argument("--out", type=Path, help="folder of what is kept while it runs; by default nothing is")
    parser.add_argument("--json", type=Path, default=RESULTS / results, help="where the results go")
    return parser


def save(path: Path, how: MeasureSettings, settings: dict[str, Any], **results: Any) -> None:
    """Write what was found, with the machine, versions and settings."""
    content = {"hardware": hardware(), "versions": versions(), "settings": {**asdict(how), **settings}, **results}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda partial: partial.write_text(json.dumps(content, indent=1) + "\n"))


def main() -> None:
    """Measure every draft, print the table, write the results."""
    options = options_of(__doc__, 48, "drafts.json").parse_args()
    print_machine()
    torch.set_num_threads(1)
    prompts = read_prompts(PROMPTS)[: options.first]
    how = MeasureSettings(Sampling(1.0), tokens=options.tokens, count=1, seed=options.seed, ngrams=NGRAMS)
    with TemporaryDirectory() as unkept:
        folder = options.out or Path(unkept)
        names = dict.fromkeys(way.draft for way in WAYS)
        drafts = {name: measured(name, prompts, how, folder / name) for name in names}
        rows = [row(way, drafts[way.draft]) for way in WAYS]
    save(options.json, how, {"prompts": len(prompts), "longest": LONGEST, "clock": "CPU seconds"}, drafts=rows)
    print(table(rows))


if __name__ == "__main__":
    main()
