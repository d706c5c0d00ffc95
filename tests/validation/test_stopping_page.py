"""What docs/validating.md says of stopping rules is what the saved validations say."""

from __future__ import annotations

import copy
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "_stopping_page.py"))


def test_the_page_is_up_to_date() -> None:
    """To renew it: `python benchmarks/_stopping_page.py`, with folders of new validations as arguments."""
    page = (ROOT / "docs" / "validating.md").read_text()
    assert SCRIPT["renewed"](page) == page


def test_counts_agree_and_the_control_is_refuted() -> None:
    """Every draft; a changed count would be seen in the table."""
    answers = SCRIPT["kept"]()
    assert {answer["draft"] for answer in answers} == {"distilled", "eagle3", "dflash"}
    for answer in answers:
        assert (answer["disagreements"], answer["control_of_stopping"]["refuted"]) == (0, True)
        assert {row["temperature"] for row in answer["rows"]} == {0.0, 0.7, 1.0}
    changed = copy.deepcopy(answers)
    changed[0]["rows"][0]["calls"] += 1
    assert SCRIPT["table"](changed) != SCRIPT["table"](answers)
