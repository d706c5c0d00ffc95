"""Run prompts through an engine of this interpreter; a plain script, which needs nothing of this project.

Usage: ``python driver.py ENGINE.py``, a file with ``generator(job)``, which returns ``generate(prompt, seed)``. The job
is JSON on standard input; each finished prompt is a line of JSON on standard output. What an engine prints goes to
standard error, and so does the reason of a failure, as the last line.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time


def main() -> None:
    """Answer every prompt of the job."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        job = json.load(sys.stdin)
        generate = runpy.run_path(sys.argv[1])["generator"](job)
        for name, prompt, seed in job["prompts"]:
            start = time.perf_counter()
            answer = generate(prompt, seed)
            line = {"id": name, **answer, "seconds": time.perf_counter() - start}
            answers.write(json.dumps(line) + "\n")
            answers.flush()
    except Exception as error:  # an engine may fail in any way
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
