"""The command line has one grammar: an option means the same in every command, has a group and shows its default."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from spectheory.cli import main
from spectheory.cli.app import app
from spectheory.cli.examples import EXAMPLES
from spectheory.cli.grammar import _group_of, _repeatable
from spectheory.cli.vocabulary import GROUPS
from spectheory.deployment import BATCHES
from spectheory.drafting import stopping
from spectheory.errors import SettingError
from spectheory.verification import PATH_RULES

PROGRAM: Any = get_command(app)
COMMANDS: dict[str, Any] = PROGRAM.commands
COMMANDS_PAGE = Path(__file__).parents[2] / "docs" / "commands.md"

SINGLE = {
    "tree": {"--rule", "--nodes"},
    "simulate": {"--rule", "--shape", "--k", "--bias"},
    "measure": {"--batch"},
    "judge": {"--k", "--stop", "--temperature", "--top-p"},
    "predict": {"--temperature", "--top-p", "--batch"},
    "validate": {"--top-p"},
    "bench": {"--engine", "--temperature"},
    "compare": {"--k", "--rule"},
    "gate": {"--rule"},
    "noise": {"--k", "--rule"},
    "watch": {"--k", "--rule"},
    "why": {"--k", "--rule"},
}
"""Commands about one setting, which take once what commands that compare settings repeat."""
OTHER_RULES = {("tree", "--rule"), ("validate", "--rule"), ("rules", "--rule")}
"""Trees need rules with ranks; a validation also decodes with transformers; `rules` also has rules for pmfs alone."""


def options(command: str) -> Iterator[Any]:
    yield from (each for each in COMMANDS[command].params if each.param_type_name == "option")


def uses(name: str) -> dict[str, Any]:
    """The option of this name in every command that takes it."""
    return {command: each for command in COMMANDS for each in options(command) if each.opts == [name]}


NAMES = sorted({each.opts[0] for command in COMMANDS for each in options(command)})


@pytest.mark.parametrize("name", NAMES)
def test_an_option_means_the_same_everywhere(name: str) -> None:
    same = {
        (each.help, each.metavar, each.rich_help_panel, each.is_flag)
        for command, each in uses(name).items()
        if (command, name) not in OTHER_RULES
    }
    assert len(same) <= 1
    assert len({(each.metavar, each.rich_help_panel) for each in uses(name).values()}) == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_option_is_repeatable_in_every_command_or_in_none(name: str) -> None:
    single = {command for command, each in uses(name).items() if not each.multiple}
    excepted = {command for command, names in SINGLE.items() if name in names}
    assert single == (excepted if name in _repeatable(PROGRAM) else set(uses(name)))


def test_an_option_that_others_repeat_is_refused_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", "trace", "--rule", "race", "--rule=topk"]) == 2
    assert "--rule is given 2 times: tree takes one value" in capsys.readouterr().err


def test_out_is_a_folder_everywhere() -> None:
    assert {each.metavar for each in uses("--out").values()} == {"FOLDER"}
    assert set(COMMANDS) - set(uses("--out")) == {"rules", "bounds", "tree", "gate", "noise", "doctor"}, (
        "these answer on stdout alone"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_group_a_metavar_and_help(command: str) -> None:
    for each in COMMANDS[command].params:
        assert _group_of(each) in ("Arguments", *GROUPS[:-1]), each.name
        assert each.is_flag or each.metavar if each.param_type_name == "option" else each.metavar
        assert each.help[0] + each.help[-1] == each.help.strip()[0] + ".", each.help


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_plain_and_fits(
    command: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert not re.search(r"<[a-zA-Z]\w*|list\[|if absent|\x1b|[{]r", out)
    starts = {len(match[1]) for match in re.finditer(r"^(  -\S+(?: [A-Z]\S*)?  +)\S", out, re.MULTILINE)}
    assert len(starts) == 1, "help stands in one column"


@pytest.mark.parametrize(
    ("command", "option", "shown"),
    [
        ("plan", "--batch", ", ".join(map(str, BATCHES))),
        ("plan", "--context", "1024"),
        ("validate", "--k", "1, 3, 5"),
        ("validate", "--temperature", "0, 0.7, 1"),
        ("bounds", "--nodes", "1, 8, 64"),
        ("simulate", "--max-rank", "8"),
        ("measure", "--tokens", "128"),
        ("validate", "--tokens", "128"),
        ("measure", "--seed", "0"),
        ("plan", "--overhead", "0"),
        ("predict", "--temperature", "1"),
        ("measure", "--threads", "as many as cores are free"),
    ],
)
def test_defaults_are_shown(
    command: str, option: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main([command, "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(rf"{option} [A-Z]+ [^\[]*\[default: {re.escape(shown)}\]", text)


def test_help_names_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    assert f"Verification rule: {', '.join(PATH_RULES)}, or module:Class" in text


def table() -> str:
    """All options as a table, in the groups' order."""
    rows = ["| option | meaning | commands |", "|---|---|---|"]
    for group in GROUPS:
        members = [each for command in COMMANDS for each in options(command) if each.rich_help_panel == group]
        for each in {each.opts[0]: each for each in reversed(members)}.values():
            written = each.opts[0] + ("" if each.is_flag else f" {each.metavar}")
            meaning = each.help.rstrip(".").replace("{rules}", "one that `spectheory predict --help` names")
            meaning = meaning.replace("{stops}", stopping.written())
            rows.append(f"| `{written}` | {meaning} | {', '.join(uses(each.opts[0]))} |")
    return "\n".join(rows) + "\n"


def test_the_documented_table_is_that_of_the_options() -> None:
    assert table() in COMMANDS_PAGE.with_name("options.md").read_text(encoding="utf-8")


def refused(page: str) -> list[str]:
    """Command lines in the page's blocks that the commands do not take as they are printed."""
    blocks = "".join(re.findall(r"^```[^\n]*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
    lines = re.findall(r"^(?:\S*/)?spectheory (\w.*)", blocks, re.MULTILINE)
    return [line for line in lines if not taken(*shlex.split(line.partition(" > ")[0], comments=True))]


def taken(command: str, *words: str) -> bool:
    """Whether the command reads these words. What the command-line library raises has a message; some have ours."""
    try:
        return command in COMMANDS and bool(COMMANDS[command].make_context(command, list(words)))
    except SettingError:
        return False
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return False


def test_command_lines_of_the_pages_are_taken() -> None:
    """Controls: an option without its value, an option that is missing, a command that does not exist."""
    root = COMMANDS_PAGE.parents[1]
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    assert [line for page in pages for line in refused(page.read_text(encoding="utf-8"))] == []
    wrong = ["predict trace --k-max", "validate --k 3", "prophesy trace"]
    assert refused("".join(f"```\nspectheory {line}\n```\n" for line in wrong)) == wrong


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("predict --acceptance 80%", "acceptance", 0.8),
        ("predict --acceptance=62.5%", "acceptance", 0.625),
        ("plan trace --c 5%", "c", 0.05),
        ("plan trace --context 4k --context 1.5K", "context", [4096, 1536]),
        ("plan trace --batch 32,128 --batch 1", "batch", [32, 128, 1]),
        ("measure --out a --temperature 0,.7,1", "temperature", [0.0, 0.7, 1.0]),
        ("plan trace --rule BLOCK --rule My:Rule", "rule", ["block", "My:Rule"]),
        ("plan trace --weights FP8", "weights", "fp8"),
        ("validate --out a --engine VLLM=/opt/A/python", "engine", ["vllm=/opt/A/python"]),
        ("predict trace --shape 1,2,1-1", "shape", ["1,2,1-1"]),
        ("measure --out A", "out", Path("A")),
        ("measure --out a --target-revision V1", "target_revision", "V1"),
    ],
)
def test_values_are_read_as_people_write_them(line: str, name: str, value: object) -> None:
    """The last three are left as they are."""
    command, *words = shlex.split(line)
    assert COMMANDS[command].make_context(command, words).params[name] == value


@pytest.mark.parametrize("line", ["plan t --batch 4k", "plan t --overhead 1%", "judge l --k 1,2", "plan t --c k"])
def test_units_stand_where_they_mean_one_thing(line: str) -> None:
    assert not taken(*line.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_three_examples_that_the_command_takes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(EXAMPLES[command]) == 3
    assert all(taken(*shlex.split(line)[1:]) for line, _ in EXAMPLES[command])
    assert {shlex.split(line)[1] for line, _ in EXAMPLES[command]} == {command}
    assert main([command, "--help"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(EXAMPLES[command][-1][1])


@pytest.mark.parametrize(
    ("typed", "completed"), [("spectheory pred", "predict"), ("spectheory plan --expl", "--explain")]
)
def test_shells_complete_commands_and_options(typed: str, completed: str) -> None:
    """As bash asks, and with status 0."""
    asked = {"_SPECTHEORY_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    command = [sys.executable, "-m", "spectheory"]
    ran = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [completed]
    assert "--install-completion" in COMMANDS_PAGE.read_text(encoding="utf-8")
