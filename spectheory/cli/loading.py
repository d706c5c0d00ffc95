"""The pair that the options name, loaded; what its user should know of it is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from spectheory.cli.console import remarks
from spectheory.cli.options import PairOptions, SampledText
from spectheory.cli.progress import working
from spectheory.cost import LatencyTable
from spectheory.deployment import other_machine
from spectheory.distributions import Sampling
from spectheory.measure import MeasureSettings, Model, ModelPair
from spectheory.measure.forward import depth_of
from spectheory.measure.machine import use_threads
from spectheory.pairs import PairSource


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


def source_of(options: PairOptions) -> PairSource:
    """What another process needs to load the same pair."""
    return PairSource(**{each.name: getattr(options, each.name) for each in fields(PairSource)})


def load_named(options: PairOptions, depth: int | None = None) -> ModelPair:
    """Choose torch's threads and load the pair; of a draft head, check the depth that is asked for."""
    with working("loading the models"):
        threads = use_threads(options.threads)
        pair = source_of(options).load()
    for said in (threads, *pair.remarks, *_beyond_training(pair.draft, depth_of(pair.draft, depth))):
        remarks.print(said, markup=False)
    return pair


def _beyond_training(draft: Model, depth: int | None) -> Iterator[str]:
    """A remark about drafts that a head was not trained for."""
    if draft.head and depth and depth > draft.head.trained:
        yield f"{draft.name} was trained for {draft.head.trained} drafts in a call and is measured to {depth}"
