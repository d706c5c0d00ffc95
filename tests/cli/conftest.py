"""Questions to the theory's commands, which several files of this room ask."""

from tests.cli.simulate_cases import folder
from tests.cli.theory_cases import ask, read, trace_file

__all__ = ["ask", "folder", "read", "trace_file"]
