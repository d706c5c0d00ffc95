"""The command line, ``spectheory measure | predict | ... | simulate | figures``: all that prints or exits.

Every command ends with a status of :mod:`spectheory.cli.statuses`; all but a success and a disagreement come with one
line on stderr.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import TextIO

from spectheory.cli.encoding import HANDLER
from spectheory.cli.interrupts import Interrupted, handled, ignore_further, terminations_interrupt
from spectheory.cli.statuses import Status
from spectheory.errors import ON_COMMAND_LINE, SpectheoryError, out_of_memory
from spectheory.files import strip_control_characters

DEBUG = "SPECTHEORY_DEBUG"
"""Environment variable: where it is set, an internal error prints its traceback."""

atexit.register(gc.freeze)  # what compilers and models leave would take a second to look through


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status; without arguments those of the process, which then ends."""
    try:
        return copy_context().run(_main, arguments)
    except KeyboardInterrupt:  # between two lines of this file
        return Status.INTERRUPTED
    finally:
        if arguments is None:
            ignore_further()


def _main(arguments: list[str] | None) -> int:
    ON_COMMAND_LINE.set(True)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
    if sys.stdout is None:
        return _fail("stdout is closed: answers go there; leave it open", Status.BAD_INPUT)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors=HANDLER)  # type: ignore[union-attr]
    os.environ["MPLBACKEND"] = "Agg"  # files alone are drawn, whatever a notebook set
    try:
        with terminations_interrupt():
            from spectheory.cli.app import parser

            status = parser()(args=arguments, standalone_mode=False, prog_name="spectheory")
        sys.stdout.flush()
    except Interrupted as interrupted:
        handled()
        return _fail(f"interrupted; {interrupted}", Status.INTERRUPTED)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
    except (BrokenPipeError, SystemExit) as left:  # the command-line library makes the second of the first
        if getattr(left, "code", 1) == 0:  # it also ends so after a shell's completion
            sys.stdout.flush()
            return Status.DONE
        _drop(sys.stdout)
        return Status.READER_LEFT
    except Exception as error:
        return _failed(error)
    # The command-line library turns Ctrl-C into this status before it gets here.
    if status == Status.INTERRUPTED:
        handled()
        return _fail("interrupted; if files were written, the same command goes on from them", Status.INTERRUPTED)
    return status if isinstance(status, int) else Status.DONE


def _failed(error: Exception) -> int:
    """Say in one line what went wrong; anything that is not foreseen is a bug."""
    if isinstance(error, SpectheoryError):
        return _fail(str(error), Status.BAD_INPUT)
    if hasattr(error, "format_message"):  # of the command-line library
        if type(error).__name__ == "NoArgsIsHelpError":
            _say(error.format_message())
            return Status.BAD_INPUT
        return _fail(error.format_message(), Status.BAD_INPUT)
    if isinstance(error, OSError | UnicodeError):
        try:
            sys.stdout.flush()
        except OSError:
            _drop(sys.stdout)
        return _fail(f"{error}: the file system refuses; choose another file or folder", Status.BAD_INPUT)
    if out_of_memory(error):
        return _fail(f"memory is full ({error or 'out of memory'}): ask for less at once", Status.BAD_INPUT)
    if os.environ.get(DEBUG):
        traceback.print_exc()
    return _fail(
        f"internal error, a bug in spectheory: {type(error).__name__}: {error}; please report it with the traceback "
        f"that {DEBUG}=1 prints",
        Status.INTERNAL_ERROR,
    )


def _drop(stream: TextIO) -> None:
    """What is left for a stream goes nowhere: the interpreter would try once more to write it, and fail."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(message: str, status: Status) -> int:
    _say("spectheory: " + " ".join(message.split()))
    return status


def _say(line: str = "") -> None:
    """Write a line to stderr; where that is full or closed, the status alone tells."""
    try:
        if line:
            print(strip_control_characters(line), file=sys.stderr)
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)
