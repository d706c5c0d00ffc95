"""What an n-gram draft is: tokens copied by token ids alone, as one engine looks them up; and its replay on a text."""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spectheory.checks import real, whole
from spectheory.errors import SettingError

Ids = NDArray[np.int64]
LONGEST_COPY = 1024
"""Longest draft whose match a trace records."""
NOTHING = -1
"""Stands after an output that was served, where nothing followed."""
_MOST = 2**15
"""Largest value of a setting: engines hold them in 16 bits."""


class Request(NamedTuple):
    """A prompt ``[n]``, token ids that end a text, and those that top-p removes from logits that are all equal.

    `served` are the outputs that its server served before, each followed by :data:`NOTHING`.
    """

    prompt: Ids
    ends: Collection[int] = ()
    removed: Collection[int] = ()
    served: Ids = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class NgramDraft(ABC):
    """An engine's lookup with its settings: whole numbers, and shares and factors where the default is no whole number.

    `name` is what users write, `engine` the name in :mod:`spectheory.engines`, `source` where it is read. One that
    `remembers` drafts by what earlier calls did; the others by the text alone. Drafts are chains, or `trees`. `k` is
    the number of tokens that a call drafts at most where it is one of the settings; None where every call may ask for
    another number.
    """

    name: ClassVar[str]
    engine: ClassVar[str]
    source: ClassVar[str]
    remembers: ClassVar[bool] = False
    trees: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in fields(self):
            what, value = f"{field.name} of {self.name}", getattr(self, field.name)
            most = field.metadata.get("most", _MOST)
            if isinstance(field.default, float):
                limit, remedy = f"must be > 0 and <= {most}", "leave out the setting"
                real(what, value, lambda x, most=most: 0 < x <= most, limit=limit, remedy=remedy)  # type: ignore[misc]
            else:
                whole(what, value, least=field.metadata.get("least", 1), most=most, remedy="leave out the setting")
        if (self.k or 1) > LONGEST_COPY:
            raise SettingError(
                f"{self.name} drafts {self.k} tokens", limit=f"at most {LONGEST_COPY} are recorded", remedy="use fewer"
            )

    @property
    def k(self) -> int | None:
        """Most tokens of a call, where it is a setting."""
        return None

    @property
    def settings(self) -> dict[str, int | float]:
        """Its settings by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        written = ",".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.name}:{written}" if written else self.name

    @classmethod
    def read(cls, settings: str) -> Iterator[Self]:
        """One for each combination of settings, as ``min=1,max=3|5``."""
        known = {field.name: float if isinstance(field.default, float) else int for field in fields(cls)}
        values: dict[str, list[int | float]] = {}
        for part in filter(None, settings.split(",")):
            name, _, written = part.partition("=")
            try:
                values[name] = [known[name](each) for each in written.split("|")]
            except (KeyError, ValueError):
                raise SettingError(
                    f"{cls.name} is given {part!r}",
                    limit=f"its settings are {', '.join(known) or 'none'}, each a number",
                    remedy="write NAME=NUMBER, several numbers as 3|5",
                ) from None
        for combination in itertools.product(*values.values()):
            yield cls(**dict(zip(values, combination, strict=True)))

    def begin(self, request: Request, before: Any = None) -> Any:
        """The state before the first call of a request; `before` is that after the server's request before it.

        A state that remembers is a dataclass, and entries of its dictionaries are replaced, never changed.
        """
        return request

    @abstractmethod
    def draft(self, text: Ids, state: Any) -> Sequence[int] | Ids:
        """What a call drafts after a text ``[n]``, n >= 1; where `k` is None, the longest draft of any call."""

    def branches(self, text: Ids, state: Any) -> tuple[Sequence[int], Sequence[int]]:
        """The tokens of a draft, and of each the place of the token before it in the draft, -1 for the text."""
        tokens = [int(token) for token in self.draft(text, state)]
        return tokens, range(-1, len(tokens) - 1)

    def accept(self, state: Any, accepted: int) -> None:
        """Note how many tokens of a draft that was not empty were accepted; one that does not remember has no use."""
        return


def occurrences(text: Ids, n: int) -> Iterator[Ids]:
    """For lengths 1 to `n`, where the last tokens of a text stand earlier in it: the places after them, ascending.

    Ends with the longest suffix that stands earlier.

    Examples
    --------
    >>> [at.tolist() for at in occurrences(np.array([5, 1, 2, 7, 1, 2]), 3)]
    [[3], [3]]
    """
    at = (text[:-1] == text[-1]).nonzero()[0] + 1
    for length in range(1, min(n, len(text) - 1) + 1):
        if not len(at):
            return
        yield at
        at = at[at > length]
        at = at[text[at - 1 - length] == text[-1 - length]]


def _up_to_end(draft: Ids, ends: Collection[int]) -> Ids:
    """A draft up to its first token of `ends`."""
    last = np.isin(draft, list(ends)).nonzero()[0]
    return draft[: last[0] + 1] if len(last) else draft


def leading(draft: Ids, follows: Ids) -> int:
    """How many leading tokens are equal."""
    both = min(len(draft), len(follows))
    different = (draft[:both] != follows[:both]).nonzero()[0]
    return int(different[0]) if len(different) else both


def _followed(tokens: Sequence[int], above: Sequence[int], follows: Sequence[int]) -> int:
    """How deep a text goes in a tree of drafts.

    Examples
    --------
    >>> _followed([7, 8, 9], [-1, -1, 1], [8, 9, 7])
    2
    """
    places: dict[tuple[int, int], int] = {}
    for place, node in enumerate(zip(above, tokens, strict=True)):
        places.setdefault(node, place)  # of equal siblings the first is followed
    at, depth = -1, 0
    while depth < len(follows) and (at, follows[depth]) in places:
        at, depth = places[at, follows[depth]], depth + 1
    return depth


def replay(draft: NgramDraft, requests: Sequence[tuple[Request, Ids]], *, alone: bool = False) -> NDArray[np.int16]:
    """Accepted and drafted tokens ``[N, 2]`` of a call at every token of the outputs, which one server serves in order.

    Exact at every start for a draft that does not remember. One that does is replayed along the calls that its server
    makes, with the prompt's pass emitting the first token: these are exact. At other starts stands what one call there
    would do after the calls before it. With `alone` they are the calls of our decoders: each request has a server of
    its own, the first call carries the prompt and drafts, and nothing is drafted after an end.
    """
    rows: list[tuple[int, int]] = []
    state: Any = None
    for request, output in requests:
        text = np.concatenate([request.prompt, output])
        state = draft.begin(request._replace(served=request.served[:0]) if alone else request, None if alone else state)
        call = 0 if alone else 1
        for start in range(len(output)):
            at = len(request.prompt) + start
            made = start == call
            here = state if made or not draft.remembers else _forked(state)
            if draft.trees:
                tokens, above = draft.branches(text[:at], here)
                match, drafted = _followed(tokens, above, text[at:].tolist()), len(tokens)
            else:
                copied = np.asarray(draft.draft(text[:at], here), dtype=np.int64)[:LONGEST_COPY]
                copied = _up_to_end(copied, request.ends) if alone else copied
                match, drafted = leading(copied, text[at:]), len(copied)
            if made:
                call = start + match + 1
                if drafted:
                    draft.accept(here, match)
            rows.append((match, drafted))
    return np.array(rows, dtype=np.int16).reshape(-1, 2)


def _forked(state: Any) -> Any:
    """A state of its own for one call that is not made."""
    values = {each.name: getattr(state, each.name) for each in fields(state)}
    return replace(state, **{name: copy.copy(value) for name, value in values.items() if isinstance(value, dict)})
