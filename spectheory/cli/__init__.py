"""The command line, ``spectheory measure | predict | ... | simulate | figures``: all that prints or exits.

Bad input ends with one line on stderr and status 2; an interruption with status 130.
"""

from __future__ import annotations

import os
import sys

from spectheory.cli.interrupts import Interrupted
from spectheory.errors import SpectheoryError

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    try:
        from spectheory.cli.app import app

        if sys.stdout is None:
            return _fail("stdout is closed: answers go there; leave it open", 2)
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
        status = app(args=arguments, standalone_mode=False, prog_name="spectheory")
    except SpectheoryError as error:
        return _fail(str(error), 2)
    except Interrupted as interrupted:
        return _fail(f"interrupted; {interrupted}", INTERRUPTED)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except (OSError, UnicodeError) as error:
        return _fail(f"{error}: the file system refuses; choose another file or folder", 2)
    except Exception as error:
        if hasattr(error, "format_message"):
            return _fail(error.format_message(), getattr(error, "exit_code", 2))
        if os.environ.get("SPECTHEORY_DEBUG"):
            raise
        return _fail(
            f"unexpected {type(error).__name__}: {error} (SPECTHEORY_DEBUG=1 shows where; please report it)", 1
        )
    # The command-line library turns Ctrl-C into this status before it gets here.
    if status == INTERRUPTED:
        return _fail("interrupted; if files were written, the same command goes on from them", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _fail(message: str, status: int) -> int:
    print("spectheory:", " ".join(message.split()), file=sys.stderr)
    return status
