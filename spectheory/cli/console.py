"""Where the command line writes: answers to stdout, everything else to stderr."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spectheory.errors import OutputError


class _Answers(Console):
    """Stdout; a reader that leaves ends the program as the shell expects."""

    def on_broken_pipe(self) -> None:
        """Leave it to the caller, who knows the exit status."""
        raise BrokenPipeError


answers = _Answers(soft_wrap=False)
remarks = Console(stderr=True, soft_wrap=True, highlight=False)


def progress() -> Progress:
    """A progress bar on stderr, where that is a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=remarks,
        transient=True,
        disable=not remarks.is_terminal,
    )


def ready_folder(folder: Path) -> Path:
    """Make `folder` and check that it can be written, before any work is done for it.

    Raises
    ------
    OutputError
        If it cannot.
    """
    probe = folder / ".spectheory-probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written ({error.strerror})",
            limit="needs a writable folder",
            remedy="choose another --out",
        ) from error
    return folder
