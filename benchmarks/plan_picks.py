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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from _drafts_page import spread
from _rows import print_machine
from drafts import known as known_of
from drafts import options_of, save, shown
from numpy.typing import NDArray

from spectheory.answers import plain
from spectheory.answers.plan import CandidateJson
from spectheory.cli.options import PlanOptions
from spectheory.cost import LatencyTable
from spectheory.deployment import Candidate, Draft, Ranking
from spectheory.deployment.candidates import DO_NOT
from spectheory.deployment.ranking import rank_drafts
from spectheory.distributions import Sampling
from spectheory.drafting import Chain, KAry, Tree
from spectheory.intervals import Interval
from spectheory.measure import MeasureSettings, ModelPair, load_pair
from spectheory.measure.validation.answer import Evidence, RunSums
from spectheory.measure.validation.run import decoded_rounds
from spectheory.measure.validation.settings import PLAINLY, Setting
from spectheory.pairs import PREFIX, PROMPTS, resolve
from spectheory.prediction import predict
from spectheory.prediction.best_tree import BestTree, ShapeRequest
from spectheory.prediction.plan_answer import ranked_rules
from spectheory.prediction.shape_calls import calls_by_shape
from spectheory.prompts import Prompt, read_prompts
from spectheory.trace import Trace
from spectheory.verification import RankRule

CHAINS = {
    "token": range(1, 9),
    "block": range(1, 9),
    "race": range(1, 9),
    "argmax": range(1, 5),
    "lookup": (1, 2, 4, 8),
}
K_ARY = tuple(KAry(branching) for branching in ((2, 1), (2, 2), (2, 2, 1), (3, 2, 1), (4, 2, 1, 1)))
SEARCHED = tuple(BestTree(nodes, depth) for nodes in (4, 8, 16) for depth in (2, 3, 4) if depth < nodes)
RANKED, FINALISTS = 5, 6
"""Of the plan's ranking, and of the fastest measured, so many are tried."""


@dataclass(frozen=True)
class Searched(Setting):
    """A setting whose tree was searched for; the search is its name, as a tree's own is long or ambiguous."""

    wanted: ShapeRequest | None = None

    @property
    def name(self) -> str:
        """Rule and search."""
        return f"{self.rule}, {self.wanted}"


def tree_rules(trace: Trace, temperature: float) -> list[RankRule]:
    """Rules that trees are planned for; greedy traces rank no second choices."""
    return [rule for rule in ranked_rules(trace) if isinstance(rule, RankRule)] if temperature > 0 else []


def settings_tried(trace: Trace, ranking: Ranking, temperature: float) -> tuple[list[Setting], Setting]:
    """Every setting once, whatever it is called, and the plan's pick among them or plain decoding."""
    every: list[Setting] = [Setting(rule, Chain(k)) for rule, ks in CHAINS.items() for k in ks]
    for rule in tree_rules(trace, temperature):
        every += [Setting(rule.name, shape) for shape in K_ARY]
        every += [Searched(rule.name, one.shape, wanted=one.wanted) for one in calls_by_shape(trace, rule, SEARCHED)]
    ranked = [_setting_of(candidate) for candidate in ranking.candidates[:RANKED]]
    once: dict[tuple[str, Tree], Setting] = {}
    for setting in [*every, *ranked]:
        once.setdefault(_same(setting), setting)
    speculates = ranking.best.verdict != DO_NOT
    return list(once.values()), once[_same(ranked[0])] if speculates else PLAINLY


def _setting_of(candidate: Candidate) -> Setting:
    rule, shape = candidate.prediction.rule.name, candidate.prediction.shape
    return (
        Setting(rule, shape) if isinstance(shape, Chain) else Searched(rule, shape, wanted=candidate.prediction.wanted)
    )


def _same(setting: Setting) -> tuple[str, Tree]:
    """What settings have in common that decode alike."""
    return setting.rule, setting.drafts.tree()


def finalists(measured: Mapping[Setting, float], pick: Setting, most: int = FINALISTS) -> list[Setting]:
    """The settings of the largest speed-ups, the largest first, and the pick if it speculates and is not among them."""
    best = sorted(measured, key=lambda setting: -measured[setting])[:most]
    return best if pick in (PLAINLY, *best) else [*best, pick]


Floats = NDArray[np.float64]
MOST_LOST = 0.05
"""The pick may lose so much of the best's speed-up."""


class Measured:
    """Speed-ups over plain decoding of settings that have decoded the same prompts once or several times."""

    def __init__(self, decoded: Sequence[Evidence]) -> None:
        self.first, self.settings = decoded[0], decoded[0].settings
        self._timed = {
            setting: _added([evidence.timed(setting) for evidence in decoded]) for setting in (PLAINLY, *self.settings)
        }

    def speedup(self, setting: Setting) -> Floats:
        """Tokens per second of decoding over those of plain decoding, then without each of the prompts."""
        here, plain = self._timed[setting], self._timed[PLAINLY]
        return here.tokens * plain.seconds / (here.seconds * plain.tokens)

    def with_tokens_of_trace(self, setting: Setting) -> Floats:
        """The same from tokens per call of the trace and measured time per call.

        It varies less, and favours the pick, which was chosen on that trace.
        """
        here, plain = self._timed[setting], self._timed[PLAINLY]
        known = 1.0 if setting == PLAINLY else self.first.of_trace(setting).tokens_per_call
        return known * (plain.seconds * here.calls / (here.seconds * plain.calls))

    def against_best(self, speedup: Callable[[Setting], Floats], pick: Setting) -> dict[str, Any]:
        """The setting of the largest speed-up, and the pick's over it, with prompts left out on both sides together."""
        best = max((PLAINLY, *self.settings), key=lambda setting: float(speedup(setting)[0]))
        ratio = self.first.interval(speedup(pick) / speedup(best))
        return {"best": best.name, "pick_over_best": ratio.as_dict(), "within": ratio.best >= 1 - MOST_LOST}

    @property
    def machine(self) -> float:
        """A plain step while decoding over that of the latency table: 1 if the machine was as quiet."""
        plain = self._timed[PLAINLY]
        return float(plain.verifying[0] / plain.calls[0] / self.first.table.target_step().best)

    def record(self, setting: Setting) -> dict[str, Any]:
        """What is known of a setting: measured in both ways, and predicted as by the plan."""
        here, plain, interval = self._timed[setting], self._timed[PLAINLY], self.first.interval
        call = here.per_call(plain.verifying / plain.calls)
        numbers = {
            "name": setting.name,
            "tokens": int(here.tokens[0]),
            "measured": interval(self.speedup(setting)).as_dict(),
            "tokens_per_call": float(here.tokens[0] / here.calls[0]),
            "plain_steps_per_call": {
                part: float(getattr(call, part)[0]) for part in ("drafting", "verifying", "overhead")
            },
        }
        if setting == PLAINLY:
            return numbers
        looped = self.first.table.looped  # as plan reads it
        predicted = predict(self.first.trace, setting.path_rule, setting.drafts, looped).speedup
        return {
            **numbers,
            "with_tokens_of_trace": interval(self.with_tokens_of_trace(setting)).as_dict(),
            "predicted": predicted.as_dict() if predicted else None,
        }


def _added(parts: Sequence[RunSums]) -> RunSums:
    return RunSums(*(sum(getattr(part, one.name) for part in parts) for one in fields(RunSums)))


PAIRS = ("target-distilled", "target-draft", "distilled-draft")
LONGEST = max(PlanOptions.k_max, PlanOptions.nodes) + 1
"""Most tokens of a call that plan compares."""


@dataclass(frozen=True)
class Work:
    """One pair: its models, prompts, how texts are made, and the folder of what is kept."""

    pair: ModelPair
    prompts: tuple[Prompt, ...]
    how: MeasureSettings
    folder: Path

    def decoded(
        self, known: tuple[Trace, LatencyTable], settings: Sequence[Setting], stage: str, seed: int
    ) -> Evidence:
        """Every prompt with every setting, and plainly."""
        how, file = replace(self.how, seed=seed), self.folder / f"{stage}.jsonl"
        with shown(f"{self.folder.name}: {stage}") as show:
            rounds = decoded_rounds(self.pair, self.prompts, settings, how, file, on_progress=show)
        names = tuple(prompt.id for prompt in self.prompts)
        return Evidence(tuple(settings), names, rounds, *known)


def answer(work: Work, repeats: int) -> dict[str, Any]:
    """The plan's pick, every setting measured once, the fastest measured again, and how much the pick loses."""
    temperature, seed = work.how.sampling.temperature, work.how.seed
    known = trace, latencies = known_of(work.pair, work.prompts, work.how, work.folder, LONGEST)
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
        "plan": plain([CandidateJson.view(candidate) for candidate in ranking.candidates]),
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
    for pair_answer in answers:
        measured = {record["name"]: record["measured"] for record in pair_answer["final"]}
        ratios = [pair_answer[way]["pick_over_best"] for way in ("measured", "with_tokens_of_trace")]
        pick, best = pair_answer["pick"], pair_answer["measured"]["best"]
        cells = [pair_answer["pair"], pick, f"{pair_answer['predicted']['best']:.2f}", spread(measured[pick])]
        cells += [best, spread(measured[best]), *(spread(ratio, 3) for ratio in ratios)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print a row per pair; write all of it where asked."""
    parser = options_of(__doc__, 16, "plan_picks.json")
    parser.add_argument("--pairs", nargs="+", choices=PAIRS, default=PAIRS, help="target and draft, of the built-in")
    parser.add_argument("--repeats", type=int, default=8, help="how often the finalists decode every prompt")
    parser.add_argument("--temperature", type=float, default=1.0, help="sampling temperature")
    options = parser.parse_args()
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
            answers.append(answer(Work(pair, prompts, how, folder), options.repeats))
            print(table(answers[-1:]))
    settings = {"prompts": len(prompts), "repeats": options.repeats}
    save(options.json, how, settings, most_lost=MOST_LOST, pairs=answers)
    print(table(answers))


if __name__ == "__main__":
    main()
