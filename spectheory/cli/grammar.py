"""How a command reads its options, and shows them in named groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand

from spectheory.cli.examples import EXAMPLES
from spectheory.cli.vocabulary import GROUPS, HELP
from spectheory.errors import SettingError

_UsageError: Any = BadParameter.__mro__[1]
"""What the command-line library raises for a line that it cannot read."""
WIDTH = 120
"""Help is not wider than this."""
NAMES = 26
"""Most columns that the names of options take beside their help."""


class Command(TyperCommand):
    """A command with grouped help that refuses ambiguous repetition."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line."""
        options = {written: each for each in self.get_params(ctx) for written in each.opts if written.startswith("-")}
        args = list(_plain(options, args))
        for each in options.values():
            self._refuse_twice(ctx, each, args)
        try:
            return super().parse_args(ctx, [*args])  # which it empties
        except BadParameter as error:
            raise _unread(error, args, str(self.name)) from error
        except _UsageError as error:
            raise self._misplaced(error, ctx) from error

    def _misplaced(self, error: Any, ctx: Any) -> Exception:
        """An option of other commands, or a second file; any other refusal as it is."""
        if "unexpected extra argument" in error.message:
            return SettingError(
                f"{self.name} is given {error.message.rpartition('(')[2].rstrip(').')} too",
                limit=f"that is more than it takes: see spectheory {self.name} -h",
                remedy="leave it out; spectheory import FILE FILE --out FOLDER joins logs, or two scrapes of a server",
            )
        if not hasattr(error, "possibilities"):
            return error
        option = error.option_name
        known = {each.name: _options(each) for each in ctx.find_root().command.commands.values()}
        others = [name for name, options in known.items() if option in options]
        near = [each for each in known[self.name] if each.startswith(option)] or list(error.possibilities or ())
        return SettingError(
            f"{self.name} has no {option}",
            limit=f"it is an option of {', '.join(others)}" if others else f"see spectheory {self.name} -h",
            remedy=f"write {' or '.join(near)}" if near else "leave it out" + ", or ask that command" * bool(others),
        )

    def _refuse_twice(self, ctx: Any, param: Any, args: list[str]) -> None:
        """Refuse an option given twice that other commands repeat: the last value alone would count."""
        given = sum(arg.split("=")[0] in param.opts for arg in args)
        if given > 1 and not getattr(param, "multiple", True) and param.opts[0] in _repeatable(ctx.find_root().command):
            raise SettingError(
                f"{param.opts[0]} is given {given} times",
                limit=f"{self.name} takes one value",
                remedy="leave the others out",
            )

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then every group with its options."""
        params = self.get_params(ctx)
        rows = {id(each): _row(each) for each in params}
        widest = min(NAMES, max(len(name) for name, _ in rows.values()))
        for group in ("Arguments", *GROUPS):
            members = [rows[id(each)] for each in params if _group_of(each) == group]
            if members:
                with formatter.section(group):
                    formatter.write_dl([(name.ljust(widest), text) for name, text in members], col_max=widest)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for line, meaning in EXAMPLES.get(str(self.name), ()):
                formatter.write(
                    f"{'':{formatter.current_indent}}{line}\n{'':{formatter.current_indent + 4}}{meaning}\n"
                )


_WORDS = ("RULE", "SHAPE", "STOP", "NAME", "TYPE", "KIND", "KEY")
"""What options take that are words of this program, by their metavars: case does not matter."""
_SHARES = ("SHARE", "RATE", "RATIO", "PROBABILITY")
"""What may be written in percent."""
_LENGTHS = ("TOKENS",)
"""What may be written in k, 1024 tokens."""
_LISTED = ("INT", "REAL", *_SHARES, *_LENGTHS)
"""What may be several numbers in one list, where the option may be given several times."""


def _plain(options: Mapping[str, Any], args: Iterable[str]) -> Iterator[str]:
    """A command line with values as they are read: 80% is 0.8, 4k tokens are 4096, a list of numbers is the option
    several times, and words of this program are in small letters; options are in the form ``--option=value``.
    """
    left = iter(args)
    for arg in left:
        name, equals, value = arg.partition("=")
        option = options.get(name)
        following = [] if option is None or option.is_flag or equals else [*islice(left, 1)]
        if option is None or option.is_flag or not (equals or following):
            yield arg
            continue
        value = value if equals else following[0]
        several = option.multiple and option.metavar in _LISTED
        for each in value.split(",") if several else [value]:
            yield f"{name}={_read(each, option.metavar)}"


def _read(value: str, metavar: str) -> str:
    if metavar in _WORDS:
        word, equals, rest = value.partition("=")  # as in NAME=PROGRAM
        return value if ":" in word else f"{word.casefold()}{equals}{rest}"
    number, unit = value[:-1].strip(), value[-1:].casefold()
    by = {"%": 0.01} if metavar in _SHARES else {"k": 1024} if metavar in _LENGTHS else {}
    try:
        return f"{float(number) * by[unit]:.12g}"
    except (KeyError, ValueError):
        return value


_NUMBERS = {"integer": "a whole number such as 1000", "number": "a number such as 0.8", "float": "a number such as 0.8"}
"""Words of the command-line library for what it could not read, and examples."""


def _unread(error: BadParameter, args: list[str], command: str) -> Exception:
    """What is no number, or missing, with an example; any other refusal as it is."""
    if type(error).__name__ == "MissingParameter" and command in EXAMPLES:
        said, example = error.format_message().rstrip("."), EXAMPLES[command][0][0]
        return SettingError(said[0].lower() + said[1:], limit="it has no default", remedy=f"write it as in {example}")
    needs = next((example for word, example in _NUMBERS.items() if word in error.message), None)
    if needs is None or error.param is None:
        return error
    name, metavar = error.param.opts[0], error.param.metavar
    known = [value for option, _, value in (arg.partition("=") for arg in args) if option in error.param.opts]
    units = "or percent, as 80%" if metavar in _SHARES else "or k, as 4k" if metavar in _LENGTHS else "without units"
    return SettingError(f"{name} is {' and '.join(known)}", limit=f"needs {needs}", remedy=f"write digits, {units}")


def _options(command: Any) -> list[str]:
    """The options of a command as they are written."""
    return [written for each in command.params if each.param_type_name == "option" for written in each.opts]


def _repeatable(app: Any) -> set[str]:
    """Options that a command of the program takes several times."""
    params = (each for command in app.commands.values() for each in command.params)
    return {each.opts[0] for each in params if getattr(each, "multiple", False)}


def _group_of(param: Any) -> str:
    """The heading under which a parameter stands."""
    return "Arguments" if param.param_type_name == "argument" else param.rich_help_panel or HELP


def _row(param: Any) -> tuple[str, str]:
    """A parameter as it is written, and its help with its default."""
    name, text = param.metavar, param.help or ""
    if param.param_type_name == "option":
        name = ", ".join(sorted(param.opts, key=len)) + ("" if param.is_flag else f" {param.metavar}")
        text += " Repeatable." if param.multiple else ""
    default = param.show_default if isinstance(param.show_default, str) else param.default
    if param.required:
        text += " [required]"
    elif default not in (None, "") and not isinstance(default, bool):
        text += f" [default: {default:g}]" if isinstance(default, float) else f" [default: {default}]"
    return name, text.format(**_names_of_rules()) if "{" in text else text


def _names_of_rules() -> dict[str, str]:
    """Names of rules, for the help that lists them."""
    from spectheory.drafting import stopping
    from spectheory.verification import registry as known
    from spectheory.verification.base import Rule

    every, trees = known.all_rules().values(), known.names(known.VALIDATED_TREE_RULES)
    return {
        "every": known.names(every, Rule),
        "rules": known.names(every),
        "stops": stopping.written(),
        "ranked": known.ranked_names(),
        "usual": f"{known.names(known.DEFAULT_RULES)}; with trees {trees}",
        "decoded": f"{known.names(known.VALIDATED_RULES)}, assisted; with trees {trees}",
        "first": known.VALIDATED_TREE_RULES[0].name,
    }
