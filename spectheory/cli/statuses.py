"""Exit statuses: every command ends with one of these."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """How a command ended."""

    DONE = 0
    DISAGREEMENT = 1
    BAD_INPUT = 2
    INTERNAL_ERROR = 70
    INTERRUPTED = 130
    READER_LEFT = 141


MEANINGS = {
    Status.DONE: "done; if something was checked, it agrees",
    Status.DISAGREEMENT: "something that was checked disagrees: counts and theory, a claim that is refuted, or a "
    "draft whose tokens do not fit the target",
    Status.BAD_INPUT: "bad input, a file that cannot be read or written, a missing extra, or too little memory",
    Status.INTERNAL_ERROR: "internal error, a bug in spectheory",
    Status.INTERRUPTED: "interrupted by Ctrl-C (SIGINT) or a request to terminate (SIGTERM)",
    Status.READER_LEFT: "the program that reads the output through a pipe ended first",
}
"""What each status says; docs/commands.md has the same table."""
