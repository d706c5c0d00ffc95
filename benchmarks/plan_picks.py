"""Does `spectheory plan` pick the best? Its pick against every setting, decoded on the built-in pairs, one thread.

For each pair a trace and a latency table, as `spectheory validate` keeps them, give the plan's pick. Then every setting
decodes the same prompts, interleaved; the fastest few and the pick decode them again with other randomness, several
times over, so that the best of many noisy measurements is not flattered. The ratio of the pick's speed-up to the best's
is of these last runs, with prompts left out on both sides together. The best is still the largest of a few estimates,
which makes the pick look worse, and the true best may have missed the finalists, which makes it look better: what bias
is left may have either sign. Where the pick is the best, the interval is [1, 1] by construction. The ratio by the
trace's tokens favours the pick, which was chosen on that trace. A stopped run goes on where it was, if it has the same
--out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from _machine import print_machine
from _picks_measured import MOST_LOST, Measured
from _picks_tried import finalists, settings_tried, tree_rules

from spectheory.cli.options import LATENCY_FILE, PlanOptions
from spectheory.cli.progress import progress
from spectheory.cost import LatencyTable
from spectheory.deployment import Draft, Ranking, rank_drafts
from spectheory.distributions import Sampling
from spectheory.files import write_whole
from spectheory.intervals import Interval
from spectheory.measure import MeasureSettings, ModelPair, Progress, load_pair, measure
from spectheory.measure.machine import hardware, versions
from spectheory.measure.validation.evidence import Evidence
from spectheory.measure.validation.latencies import context_of, kept_latencies
from spectheory.measure.validation.rounds import decoded_rounds
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prompts import Prompt, read_prompts
from spectheory.trace import Trace

PAIRS = ("target-distilled", "target-draft", "distilled-draft")
LONGEST = max(PlanOptions.k_max, PlanOptions.nodes) + 1
"""Most tokens of a call that plan compares."""
RESULTS = Path(__file__).parent / "results" / "plan_picks.json"


@dataclass(frozen=True)
class Work:
    """One pair: its models, prompts, how texts are made, and the folder of what is kept."""

    pair: ModelPair
    prompts: tuple[Prompt, ...]
    how: MeasureSettings
    folder: Path

    def known(self) -> tuple[Trace, LatencyTable]:
        """What plan reads."""
        context = context_of(self.pair, self.prompts, self.how, LONGEST)
        with _shown(f"{self.folder.name}: latencies") as show:
            path, sampling = self.folder / LATENCY_FILE, self.how.sampling
            latencies = kept_latencies(self.pair, context, LONGEST, path, sampling=sampling, on_progress=show)
        with _shown(f"{self.folder.name}: trace") as show:
            trace = measure(self.pair, self.prompts, self.how, self.folder / "trace.parquet", on_progress=show)
        return trace, latencies

    def decoded(
        self, known: tuple[Trace, LatencyTable], settings: Sequence[Setting], stage: str, seed: int
    ) -> Evidence:
        """Every prompt with every setting, and plainly."""
        how, file = replace(self.how, seed=seed), self.folder / f"{stage}.jsonl"
        with _shown(f"{self.folder.name}: {stage}") as show:
            rounds = decoded_rounds(self.pair, self.prompts, settings, how, file, on_progress=show)
        names = tuple(prompt.id for prompt in self.prompts)
        return Evidence(tuple(settings), names, rounds, *known)


def answer(work: Work, repeats: int) -> dict[str, Any]:
    """The plan's pick, every setting measured once, the fastest measured again, and how much the pick loses."""
    known, temperature, seed = work.known(), work.how.sampling.temperature, work.how.seed
    trace, latencies = known
    ranking = rank_drafts(
        [Draft(work.folder.name, trace, latencies).in_loop],
        tree_rules=tree_rules(trace, temperature),
        k_max=PlanOptions.k_max,
        nodes=PlanOptions.nodes,
    )
    settings, pick = settings_tried(trace, ranking, temperature)
    every = Measured([work.decoded(known, settings, "every", seed)])
    chosen = finalists({setting: float(every.speedup(setting)[0]) for setting in settings}, pick)
    final = Measured([work.decoded(known, chosen, f"final-{n}", seed + n) for n in range(1, repeats + 1)])
    return {
        "pair": work.folder.name,
        **work.pair.describe(),
        "context": latencies.context,
        "draft_step": latencies.ratio,
        "machine": {"every": every.machine, "final": final.machine},
        "plan": [candidate.as_dict() for candidate in ranking.candidates],
        "pick": pick.name,
        "predicted": _predicted(ranking, pick),
        "measured": final.against_best(final.speedup, pick),
        "with_tokens_of_trace": final.against_best(final.with_tokens_of_trace, pick),
        "final": [final.record(setting) for setting in (PLAINLY, *chosen)],
        "every": [every.record(setting) for setting in (PLAINLY, *settings)],
    }


def _predicted(ranking: Ranking, pick: Setting) -> dict[str, Any]:
    return Interval.exact(1.0).as_dict() if pick == PLAINLY else ranking.best.speedup.as_dict()


def table(answers: Sequence[dict[str, Any]]) -> str:
    """A row for each pair, as Markdown."""
    lines = [
        "| pair | plan's pick | predicted | measured | best | measured | pick / best | by the trace's tokens |",
        f"|{8 * '---|'}",
    ]
    for found in answers:
        measured = {record["name"]: record["measured"] for record in found["final"]}
        ratios = [found[way]["pick_over_best"] for way in ("measured", "with_tokens_of_trace")]
        pick, best = found["pick"], found["measured"]["best"]
        cells = [found["pair"], pick, f"{found['predicted']['best']:.2f}", _spread(measured[pick])]
        cells += [best, _spread(measured[best]), *(_spread(ratio, 3) for ratio in ratios)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(interval: dict[str, float], digits: int = 2) -> str:
    return f"{interval['best']:.{digits}f} ({interval['low']:.{digits}f} to {interval['high']:.{digits}f})"


@contextmanager
def _shown(what: str) -> Iterator[Callable[[Progress], None]]:
    with progress() as bar:
        task = bar.add_task(what)
        yield lambda state: bar.update(task, completed=state.done, total=state.total)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=PAIRS, help="target and draft, of the built-in")
    parser.add_argument("--first", type=int, default=16, help="take the first so many prompts")
    parser.add_argument("--tokens", type=int, default=96, help="most output tokens of a text")
    parser.add_argument("--repeats", type=int, default=8, help="how often the finalists decode every prompt")
    parser.add_argument("--temperature", type=float, default=1.0, help="sampling temperature")
    parser.add_argument("--seed", type=int, default=0, help="root seed")
    parser.add_argument("--out", type=Path, help="folder of what is kept while it runs; by default nothing is")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the results go")
    return parser.parse_args()


def main() -> None:
    """Print a row per pair; write all of it where asked."""
    options = _options()
    print_machine()
    torch.set_num_threads(1)
    prompts = read_prompts(PROMPTS)[: options.first]
    how = MeasureSettings(Sampling(options.temperature), tokens=options.tokens, count=2, seed=options.seed)
    answers = []
    with TemporaryDirectory() as unkept:
        for name in options.pairs:
            target, draft = (resolve(f"{PREFIX}{model}") for model in name.split("-"))
            pair = load_pair(target, draft, device="cpu")
            folder = (options.out or Path(unkept)) / name
            folder.mkdir(parents=True, exist_ok=True)
            answers.append(answer(Work(pair, prompts, how, folder), options.repeats))
            print(table(answers[-1:]))
    content = {
        "hardware": hardware(),
        "versions": versions(),
        "settings": {**asdict(how), "prompts": len(prompts), "repeats": options.repeats},
        "most_lost": MOST_LOST,
        "pairs": answers,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    write_whole(options.json, lambda partial: partial.write_text(json.dumps(content, indent=1) + "\n"))
    print(table(answers))


if __name__ == "__main__":
    main()
