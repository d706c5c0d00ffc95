"""Log-probabilities of OpenAI's completions (``echo``, ``logprobs``) and chat completions, from any server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spectheory.errors import TextError
from spectheory.trace.importers.base import Format
from spectheory.trace.importers.entries import Json, at
from spectheory.trace.importers.responses import OUTPUT, ids_at
from spectheory.trace.importers.scored import mostly, said, scores, strings_or_ids, top
from spectheory.trace.scored_text import ScoredText
from spectheory.trace.scores import Scores

NAME = "openai-logprobs"


def read_openai_logprobs(path: Path) -> Scores:
    """Read responses, a list of them or one a line.

    With ``echo`` the prompt is scored; a single generated token after it is left out, more of them are the output.
    Without, the generated tokens are the text. Their ids come from ``token_ids``, from strings as ``token_id:7``, or
    from a content of chat that has ids; otherwise texts are joined by strings, and lists of strings are left out: two
    tokens may share a string.
    """
    return scores(path, NAME, _text)


def _text(entry: Json) -> ScoredText:
    content = at(entry, "choices.0.logprobs.content")
    return _chat(entry, content) if content is not None else _completion(entry)


def _completion(entry: Json) -> ScoredText:
    given = at(entry, "choices.0.logprobs")
    tokens, logs = given["tokens"], list(given["token_logprobs"])
    prompt, generated = _counts(entry, len(logs))
    echoed = len(logs) > generated
    end = prompt if echoed and generated == 1 else len(logs)
    before, output = ids_at(entry, "choices.0.prompt_token_ids", "prompt_token_ids"), ids_at(entry, *OUTPUT)
    known = strings_or_ids(tokens[:end])
    if output and len(before) + len(output) >= end and "tokens" not in known:
        known["tokens"] = (before + output)[:end] if echoed else output
    text = ScoredText(
        log_probs=tuple(logs[:end]), prompt=_output_from(entry, echoed, generated, prompt), **known, **said(entry)
    )
    return text if echoed or not (before and output) else _with_prompt(text, before)


def _counts(entry: Json, scored: int) -> tuple[int, int]:
    """Tokens of the prompt and generated ones; all scored tokens are generated if they are as many."""
    generated = at(entry, "usage.completion_tokens")
    if generated is None:
        generated = 0 if at(entry, "choices.0.logprobs.token_logprobs")[:1] == [None] else scored
    return scored - generated, generated


def _output_from(entry: Json, echoed: bool, generated: int, prompt: int) -> int:
    """Leading tokens that are no output."""
    if (said_so := at(entry, "prompt_tokens")) is not None:
        return int(said_so)
    return prompt if echoed and generated > 1 else 0


def _with_prompt(text: ScoredText, before: tuple[int, ...]) -> ScoredText:
    """The text with its prompt, which was not scored, so that it can be held against one that was."""
    return ScoredText(
        text.id,
        (None,) * len(before) + text.log_probs,
        before + text.tokens,
        prompt=len(before),
        ended=text.ended,
        sampling=text.sampling,
        processed=text.processed,
        vocabulary=text.vocabulary,
        error=text.error,
    )


def _chat(entry: Json, content: Any) -> ScoredText:
    """A list of positions, with ids in the responses of some servers."""
    if at(entry, "timings.draft_n"):
        refuse_speculated(entry)
    ids = [each.get("id") for each in content]
    output = tuple(ids) if all(type(token) is int for token in ids) else ids_at(entry, *OUTPUT)
    known = {"tokens": output} if output else strings_or_ids([each["token"] for each in content])
    tops = ([(other.get("id"), other["logprob"]) for other in each.get("top_logprobs") or ()] for each in content)
    logs = tuple(each["logprob"] for each in content)
    return ScoredText(
        log_probs=logs, tops=mostly(map(top, tops)), prompt=at(entry, "prompt_tokens") or 0, **known, **said(entry)
    )


def refuse_speculated(entry: Json) -> None:
    """Refuse what llama.cpp returns beside drafts."""
    raise TextError(
        f"its {at(entry, 'timings.draft_n')} drafts leave tokens without log-probabilities",
        limit="llama.cpp writes 0 for every token of a call with drafts",
        remedy="score the text on a server without a draft model",
    )


OPENAI_LOGPROBS = Format(
    NAME,
    lambda head: b'"token_logprobs"' in head or (b'"logprobs"' in head and b'"content"' in head),
    read_openai_logprobs,
    title="OpenAI's `logprobs`: completions with echo, and chats",
    gives="with the log of the other model a trace: two numbers per token; lists where tokens have ids",
    lacks="how the text was drawn, unless it is added; lists of tokens that are known as strings alone",
)
