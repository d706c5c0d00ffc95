"""The options of the commands as dataclasses: each stands here once, whichever commands share it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from typer import Argument, Option

from spectheory.pairs import PREFIX

LATENCY_FILE = "latency.json"
"""Name of the latency table in the folder of a measurement, beside its trace."""
MOST_TEXTS = 1024
"""Continuations of one prompt, which are sampled together."""


@dataclass(frozen=True)
class PairOptions:
    """Which models, and how they are loaded."""

    target: Annotated[str, Option(help="Target model: local folder, hub id, or builtin:target.")] = f"{PREFIX}target"
    draft: Annotated[str, Option(help="Draft model: folder, hub id, builtin:draft, builtin:distilled.")] = (
        f"{PREFIX}distilled"
    )
    dtype: Annotated[str, Option(help="Weights: auto, float32, bfloat16 or float16.")] = "auto"
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 or mps; the best there is if absent.")] = None
    device_map: Annotated[str | None, Option(help="transformers device map, for example auto.")] = None
    threads: Annotated[int | None, Option(help="Torch's threads; as many as cores are free if absent.")] = None
    target_revision: Annotated[str | None, Option(help="Hub revision of the target.")] = None
    draft_revision: Annotated[str | None, Option(help="Hub revision of the draft.")] = None


@dataclass(frozen=True)
class TextOptions:
    """Which text the pair is measured on."""

    prompts: Annotated[Path | None, Option(help="Prompts as question.jsonl; the built-in ones if absent.")] = None
    tokens: Annotated[int, Option(help="Output tokens per continuation.")] = 128
    continuations: Annotated[int, Option(help="Continuations sampled per prompt.")] = 2
    temperature: Annotated[float, Option(help="Sampling temperature of both models; 0 is greedy.")] = 1.0
    top_k: Annotated[int | None, Option(help="Keep the k most probable tokens, with ties.")] = None
    top_p: Annotated[float | None, Option(help="Keep the smallest set of this probability.")] = None
    min_p: Annotated[float | None, Option(help="Keep tokens of at least this times the largest probability.")] = None
    seed: Annotated[int, Option(help="Root seed: the same seed gives the same numbers.")] = 0
    given_text: Annotated[bool, Option("--given-text", help="Take each prompt's `output` as text, sample none.")] = (
        False
    )
    chat_template: Annotated[bool, Option("--chat-template", help="Wrap prompts in the chat template.")] = False
    chunk: Annotated[int, Option(help="Positions whose logits are held at a time: bounds the memory.")] = 256


@dataclass(frozen=True)
class PredictOptions:
    """What is predicted, from what, and where it goes."""

    trace: Annotated[
        Path | None,
        Argument(
            help="A trace, the folder of one, or a log; if absent, the pair is measured.",
            show_default=False,
        ),
    ] = None
    logprobs: Annotated[Path | None, Option(help="The same as the trace, for a log of log-probabilities.")] = None
    k_max: Annotated[int, Option(help="Longest chain of drafts.")] = 16
    rule: Annotated[
        list[str] | None,
        Option(
            help="token, block, race, poisson, recursive, recursive-distinct (candidates that differ), topk, "
            "independent, argmax, greedy or lookup (copied from the text); repeatable. If absent: token, block, race "
            "and lookup with chains; race, "
            "recursive-distinct (recursive if the trace has no other) and topk with trees."
        ),
    ] = None
    shape: Annotated[
        list[str] | None,
        Option(
            help="chain, tree (the best found), batch, a k-ary shape as 2x2x1 or the paths of a tree as 1,2,1-1; "
            "repeatable. Other shapes than chains need a rule with ranks: race, poisson, recursive, "
            "recursive-distinct, topk."
        ),
    ] = None
    bias: Annotated[
        list[float] | None,
        Option(help="Share of over-acceptance in [0, 1]: tokens per call against the bias paid; repeatable."),
    ] = None
    c: Annotated[float | None, Option("--c", help="Draft step over target step, in place of latencies.")] = None
    latency: Annotated[Path | None, Option(help="A latency table of spectheory measure.")] = None
    passes_alone: Annotated[
        bool,
        Option("--passes-alone", help="Count the models' passes alone, not the time of our decoding loop around them."),
    ] = False
    prefill_token: Annotated[
        bool, Option("--prefill-token", help="The prompt's own pass emits a token, as a call of its own.")
    ] = False
    check: Annotated[bool, Option("--check", help="Count the calls of transformers' assisted generation.")] = False
    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False
    out: Annotated[Path | None, Option(help="Folder for figures and JSON (and the trace, if one is made).")] = None


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Give `command`, whose parameters may be option dataclasses, one flat parameter per option."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hints[name] for name in inspect.signature(command).parameters if is_dataclass(hints[name])}
    flat = [p for name, p in inspect.signature(command, eval_str=True).parameters.items() if name not in groups]
    for group in groups.values():
        kinds = get_type_hints(group, include_extras=True)
        flat += [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=kinds[f.name])
            for f in fields(group)
        ]

    def run(**values: Any) -> None:
        built = {name: group(**{f.name: values.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
        command(**built, **values)

    run.__doc__, run.__name__ = command.__doc__, command.__name__
    run.__annotations__ = {p.name: p.annotation for p in flat}
    run.__signature__ = inspect.Signature([p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in flat])  # type: ignore[attr-defined]
    return run


def _default(option: Field[Any]) -> Any:
    return inspect.Parameter.empty if option.default is MISSING else option.default
