"""Old names of options, each with the words that say what to write instead."""

from __future__ import annotations

from spectheory.errors import SettingError

RENAMED = {
    ("validate", "--of"): "spectheory validations FOLDER... --out FOLDER",
    ("verify", "--deep"): "--full",
    ("verify", "--kind"): "--evidence",
    ("plan", "--draft"): "--trace NAME=FOLDER",
    ("plan", "--nodes"): "--nodes-max",
    ("plan", "--seed"): "spectheory measure --seed, then spectheory plan FOLDER",
    ("rules", "--k"): "--candidates",
    ("simulate", "--batch"): "--batch-size",
    ("simulate", "--results"): "--out FOLDER",
    ("rules", "--target"): "--target-pmf",
    ("rules", "--draft"): "--draft-pmf",
    ("bounds", "--target"): "--target-pmf",
    ("simulate", "--target"): "--target-pmf",
    ("simulate", "--draft"): "--draft-pmf",
}
"""By command and old name."""


def refuse_old_name(command: str, name: str) -> None:
    """Refuse an old name, and say what replaces it."""
    if new := RENAMED.get((command, name)):
        raise SettingError(
            f"{command} {name} has changed", limit=f"it is now {new}", remedy=f"see spectheory {command} --help"
        )
