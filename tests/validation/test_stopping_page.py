"""What docs/figures/stopping.md says of stopping rules is what the saved validations say."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "_stopping_page.py"))


def test_the_page_is_up_to_date() -> None:
    """To renew it: `python benchmarks/_stopping_page.py`, with folders of new validations as arguments."""
    page = (ROOT / "docs" / "figures" / "stopping.md").read_text()
    assert SCRIPT["renewed"](page) == page


def test_counts_agree_and_the_control_is_refuted() -> None:
    """Every draft; a changed count would be seen in the table."""
    answers = SCRIPT["kept"]()
    drafts = {"distilled", "eagle3", "dflash"}
    assert {answer["draft"] for answer in answers} == drafts
    for answer in answers:
        assert (answer["disagreements"], answer["control_of_stopping"]["refuted"]) == (0, True)
    of_draft = {name: [row for a in answers for row in a["rows"] if a["draft"] == name] for name in drafts}
    for rows in of_draft.values():
        assert {row["temperature"] for row in rows} == {0.0, 0.7, 1.0}
        greedy = [row for row in rows if row["temperature"] == 0]
        assert all(row["calls"] == row["expected"]["calls"] and row["fixed"]["p"] == 0 for row in greedy)
        assert all(
            row["drafted"]["certain"][0] <= row["drafted"]["counted"] <= row["drafted"]["certain"][1] + 1e-9
            for row in greedy
        )
    changed = copy.deepcopy(answers)
    changed[0]["rows"][0]["calls"] += 1
    assert SCRIPT["table"](changed) != SCRIPT["table"](answers)
