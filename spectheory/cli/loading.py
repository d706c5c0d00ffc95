"""The pair that the options name, loaded; what its user should know of it is said."""

from __future__ import annotations

from dataclasses import asdict

from spectheory.cli.console import remarks
from spectheory.cli.options import PairOptions
from spectheory.cli.progress import working
from spectheory.measure import ModelPair, load_pair
from spectheory.measure.threads import use_threads
from spectheory.pairs import resolve


def load_named(options: PairOptions) -> ModelPair:
    """Choose torch's threads and load the pair.

    Raises
    ------
    SettingError
        If there are not so many cores.
    ModelError
        If the pair cannot be loaded.
    """
    named = {**asdict(options), "target": resolve(options.target), "draft": resolve(options.draft)}
    with working("loading the models"):
        threads = use_threads(named.pop("threads"))
        pair = load_pair(**named)
    for said in (threads, *pair.remarks):
        remarks.print(said, markup=False)
    return pair
