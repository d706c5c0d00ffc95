"""The options of ``spectheory validate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

TEMPERATURES = (0.0, 0.7, 1.0)


@dataclass(frozen=True)
class ValidateOptions:
    """What is validated, on which texts, and where it goes; several temperatures, and no text is given."""

    out: Annotated[Path, Option(help="Folder for the answer, the figure, and what is kept while it runs.")]
    of: Annotated[
        list[Path] | None,
        Option(
            help="The folder of a finished validation; repeatable. Nothing is decoded: one page and figures of all go "
            "to --out."
        ),
    ] = None
    rule: Annotated[
        list[str] | None,
        Option(
            help="A rule of spectheory predict, assisted (token verification by transformers) or assisted-filters (the "
            "same with transformers' own temperature, top-k, top-p and min-p); repeatable. If absent: token, block, "
            "race, argmax (greedy drafts), lookup and assisted with chains; race, "
            "recursive-distinct and topk with other shapes."
        ),
    ] = None
    shape: Annotated[
        list[str] | None,
        Option(
            help="chain or batch (of each --k), a k-ary shape as 2x2x1, or paths as 1,2,1-1; repeatable. If absent: "
            "chain, and 2x2x1 where a rule takes it."
        ),
    ] = None
    k: Annotated[list[int] | None, Option(help="Drafts of a chain or batch; repeatable. If absent: 1, 3, 5.")] = None
    temperature: Annotated[
        list[float] | None, Option(help="Sampling temperature; 0 is greedy; repeatable. If absent: 0, 0.7, 1.")
    ] = None
    top_k: Annotated[int | None, Option(help="Keep the k most probable tokens, with ties.")] = None
    top_p: Annotated[float | None, Option(help="Keep the smallest set of this probability.")] = None
    min_p: Annotated[float | None, Option(help="Keep tokens of at least this times the largest probability.")] = None
    prompts: Annotated[Path | None, Option(help="Prompts as question.jsonl; the built-in ones if absent.")] = None
    first: Annotated[int | None, Option(help="Take the first so many prompts.")] = None
    tokens: Annotated[int, Option(help="Most output tokens of a text.")] = 96
    continuations: Annotated[int, Option(help="Texts of the trace per prompt.")] = 2
    seed: Annotated[int, Option(help="Root seed: the same seed gives the same texts.")] = 0
    chat_template: Annotated[bool, Option("--chat-template", help="Wrap prompts in the chat template.")] = False
    chunk: Annotated[int, Option(help="Positions read at a time: bounds the memory.")] = 256
    json: Annotated[bool, Option("--json", help="One JSON object on stdout, nothing else.")] = False
