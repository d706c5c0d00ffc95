"""What the pages show of commands: blocks of ``console``, a line ``$ spectheory ...`` and what it prints.

``python -m tests.docs.outputs`` writes into the pages what is printed now.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

from spectheory.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_CONFIG = re.compile(r"^echo '(\{.*\})' > ([\w-]+)/config.json$", re.MULTILINE)
"""A line of a page that writes sizes of a model."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEAD = re.compile(r" \| head -n (\d+)$")


def prepare(folder: Path) -> None:
    """What a reader has beside the commands: the logs that ship, two measured pairs, and sizes of models."""
    written = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "how_to").glob("*.md")))
    for config, name in _CONFIG.findall(written):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text(config)
    (folder / "measured").symlink_to(ROOT / "docs" / "figures" / "pair")
    (folder / "steps.csv").symlink_to(ROOT / "docs" / "figures" / "budgets" / "steps.csv")
    printed("spectheory samples --out samples", folder)


def printed(command: str, folder: Path) -> str:
    """What a command prints in a folder; ``| head -n N`` takes the first lines."""
    head = _HEAD.search(command)
    program, *words = shlex.split(_HEAD.sub("", command))
    assert program == "spectheory", command
    here, out = Path.cwd(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())):
            status = main(words)
    finally:
        os.chdir(here)
    assert status in (0, 1), f"{command}: status {status}"
    out.seek(0)
    lines = [line.rstrip() for line in out.read().splitlines()]
    return "".join(f"{line}\n" for line in lines[: int(head[1]) if head else None])


def with_outputs(page: str, run: Callable[[str], str]) -> str:
    """The page with what each of its commands prints."""

    def block(match: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.*)$", match[1], re.MULTILINE)
        return "```console\n" + "".join(f"$ {command}\n{run(command)}" for command in commands) + "```"

    return _BLOCK.sub(block, page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        prepare(Path(made))
        known: dict[str, str] = {}

        def remembered(command: str) -> str:
            """Run a command once."""
            if command not in known:
                known[command] = printed(command, Path(made))
            return known[command]

        for path in PAGES:
            text = path.read_text(encoding="utf-8")
            path.write_text(with_outputs(text, remembered), encoding="utf-8")
