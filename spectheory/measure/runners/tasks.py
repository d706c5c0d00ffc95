"""The tasks of a measurement, and doing them in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass

from torch import Tensor

from spectheory.measure.pair import ModelPair
from spectheory.measure.settings import MeasureSettings
from spectheory.measure.texts import Encoded, texts_of, trace_of
from spectheory.trace import Trace


@dataclass(frozen=True)
class Sample:
    """Sample the texts of a batch: prompts that are sampled together, always the same ones."""

    prompts: tuple[Encoded, ...]

    def __str__(self) -> str:
        first, last = (repr(each.prompt.id) for each in (self.prompts[0], self.prompts[-1]))
        return f"prompt {first}" if len(self.prompts) == 1 else f"the batch of prompts {first} to {last}"


@dataclass(frozen=True)
class Read:
    """Read the texts of one prompt with both models."""

    prompt: Encoded
    texts: tuple[Tensor, ...]

    @property
    def prompts(self) -> tuple[Encoded, ...]:
        """The one prompt."""
        return (self.prompt,)

    def __str__(self) -> str:
        return f"prompt {self.prompt.prompt.id!r}"


Task = Sample | Read
Texts = list[list[Tensor]]
"""Texts of each prompt of a batch, token ids ``[n]``."""
Done = Texts | Trace
"""What a task gives: sampled texts, or the trace of a prompt."""
Due = deque[Task]
"""Tasks that wait, the first to be done first; sampled texts put further ones in front."""
Runner = Callable[[ModelPair, MeasureSettings, Due], Generator[tuple[Task, Done], None, None]]
"""Does the tasks that are due, those that are added meanwhile too, and gives each with its result when it is finished,
in whatever order. Closing it ends the work at once.
"""


def workers_of(runner: Runner) -> int:
    """The most processes that a runner starts on one device, each with the pair; 0 if it starts none there."""
    return getattr(runner, "workers", 0)


def perform(
    pair: ModelPair, task: Task, settings: MeasureSettings, remark: Callable[[str], None] | None = None
) -> Done:
    """Do a task; `remark` takes what the user should know of it."""
    if isinstance(task, Sample):
        return texts_of(pair, task.prompts, settings, remark=remark)
    return trace_of(pair, task.prompt, task.texts, settings)


def here(
    pair: ModelPair, settings: MeasureSettings, due: Due, remark: Callable[[str], None] | None = None
) -> Generator[tuple[Task, Done], None, None]:
    """In this process, one after the other."""
    while due:
        task = due.popleft()
        yield task, perform(pair, task, settings, remark)
