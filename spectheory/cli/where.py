"""``spectheory predict --where``: where calls start and where they are lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spectheory.cli.answer import View, show
from spectheory.cli.console import remarks
from spectheory.cli.options import PairOptions, PredictOptions
from spectheory.cli.page import Page
from spectheory.errors import SettingError, TraceError
from spectheory.pages import Coloured
from spectheory.pairs import resolve
from spectheory.plots.where import write_where
from spectheory.prediction import Plan
from spectheory.prediction.over_prompts import few_prompts
from spectheory.prediction.where import settings_of, where
from spectheory.reports import Report
from spectheory.reports.additions import Records
from spectheory.reports.where import where_report
from spectheory.trace import SOURCES, Trace
from spectheory.trace.strings import TOKENIZER_FILE, TokenStrings


def show_where(
    question: PredictOptions,
    pair: PairOptions,
    trace: Trace,
    answer: Plan,
    report: Callable[..., Report],
    check: Callable[[], Records] | None,
) -> None:
    """The tables of the best settings of a plan; its own answer stays in the JSON."""
    strings = strings_of(trace, None if pair.target == PairOptions().target else pair.target)
    chosen = settings_of(answer, all_rules=bool(question.rule))
    found = [where(trace, *each, strings, prefill_emits_token=question.prefill_token) for each in chosen]
    few = few_prompts(answer.prompts)
    out = question.out
    if out and not question.report:
        remarks.print("one text with its lost calls in colour: --report FILE.html", markup=False)
    show(
        where_report(found, report(), few),
        as_json=question.json,
        file=out / "prediction.json" if out else None,
        figures=lambda: write_where(found, out) if out else [],
        last=None if check is None else lambda: where_report(found, report(check=check()), few),
        page=Page.asked(question.report, "Where calls are lost", lambda: [Coloured.of(found[-1], len(trace.texts))]),
        view=View.of(question),
    )


def strings_of(trace: Trace, target: str | None) -> TokenStrings | None:
    """The strings of the target's tokenizer: of the one that is named, or that the trace was measured with if it is
    still there; None where neither is known. Nothing is downloaded.
    """
    known = trace.provenance.get("tokenizer_size")
    ids = known if isinstance(known, int) else None
    if target is not None:
        if (file := _tokenizer(target)) is None:
            raise SettingError(
                f"--target {target} has no {TOKENIZER_FILE}",
                limit="a folder, or a model in the hub's cache; nothing is downloaded",
                remedy="name the folder of the target",
            )
        return TokenStrings.read(file, ids=ids)
    sources = trace.provenance.get(SOURCES)
    source = sources.get("target") if isinstance(sources, dict) else None
    file = _tokenizer(source) if isinstance(source, str) else None
    try:
        return TokenStrings.read(file, ids=ids) if file else None
    except TraceError as error:
        remarks.print(f"tokens are shown by their ids: {error}", markup=False)
        return None


def _tokenizer(source: str) -> Path | None:
    """The tokenizer's file of a folder, or of a model in the hub's cache."""
    folder = Path(resolve(source))
    if folder.is_dir():
        return folder / TOKENIZER_FILE if (folder / TOKENIZER_FILE).is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(source, TOKENIZER_FILE)
    except (ImportError, ValueError):  # without the extra models; or a path that is no longer there
        return None
    return Path(found) if isinstance(found, str) else None
