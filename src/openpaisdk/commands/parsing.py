"""The parser of one command: argparse that raises our errors and gives help as data."""

from __future__ import annotations

import argparse

from openpaisdk.commands import SAME_AS, TABLE
from openpaisdk.commands.overview import FORMATS, terminal_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn


class HelpShown(Exception):
    """Help was asked for; carries its text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Knows its width: left to itself, argparse loads half of shutil to measure the terminal per argument."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=terminal_width() - 2)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        """`-i, --image IMAGE`, as Python 3.13 writes it, on every Python."""
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: Any) -> None:
        raise HelpShown(parser.format_help())


class CommandParser(argparse.ArgumentParser):
    """One command. `takes_command` splits at the first `--` and keeps what follows as `args.command`."""

    takes_command = False

    def error(self, message: str) -> NoReturn:
        from openpaisdk.errors import UsageError

        raise UsageError(f"{self.prog}: {self._said_better(message)}", hint=f"see {self.prog} -h")

    def _said_better(self, message: str) -> str:
        unknown = message.partition("unrecognized arguments: ")[2].split()
        if not unknown:
            option, mark, value = message.removeprefix("argument ").partition(": invalid int value: ")
            if not mark:
                option, mark, value = message.removeprefix("argument ").partition(": invalid float value: ")
            return f"{option}: expected a number, got {value}" if mark else message
        word = unknown[0].partition("=")[0]
        if not word.startswith("-"):
            return f"`{word}` is one word too many"
        from openpaisdk.config import nearest

        near = nearest(word, self._option_string_actions)
        return f"no option `{word}`" + (f"; did you mean `{near}`?" if near else "")

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        command: list[str] | None = None
        if self.takes_command and "--" in words:
            cut = list(words).index("--")
            words, command = words[:cut], list(words[cut + 1 :])
        args = self.parse_args(list(words))
        if self.takes_command:
            args.command = command
        return args


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """The options that every command takes."""
    common = parser.add_argument_group("on every command")
    common.add_argument(
        "-a",
        "--cluster-alias",
        metavar="ALIAS",
        help="which cluster; may be left out where only one is known",
    )
    common.add_argument("-o", "--output", choices=FORMATS, help="how the data is written to stdout (table)")
    common.add_argument("--debug", action="store_true", help="show the traceback of an error")
    common.add_argument("-h", "--help", action=_Help, nargs=0, help="show this help")


def build_parser(group: str, verb: str) -> tuple[CommandParser, Any]:
    """The parser of one command and the module that runs it; nothing else is loaded."""
    from importlib import import_module

    module_name, summary = TABLE[group][verb]
    module = import_module(module_name)
    parser = CommandParser(
        prog=f"opai {group} {verb}",
        description=summary[0].upper() + summary[1:] + ".",
        add_help=False,
        allow_abbrev=False,
        formatter_class=_Layout,
    )
    getattr(module, f"{_function(group, verb)}_arguments")(parser)
    parser.usage = parser.usage or _usage(parser)
    add_common_options(parser)
    return parser, getattr(module, f"{_function(group, verb)}_run")


def _usage(parser: CommandParser) -> str:
    """`opai job task -t ROLE [options] COMMAND`: what must be there, in one line."""
    words = [parser.prog]
    words += [
        f"{action.option_strings[0]} {action.metavar}"
        for action in parser._actions
        if action.required and action.option_strings
    ]
    words.append("[options]")
    for action in parser._get_positional_actions():
        name = str(action.metavar or "|".join(action.choices or (action.dest,)))
        shapes = {"?": "[{}]", "*": "[{}...]", "+": "{}...", argparse.REMAINDER: "[--] {}"}
        words.append(shapes.get(str(action.nargs), "{}").format(name))
    return " ".join(words)


def _function(group: str, verb: str) -> str:
    return SAME_AS.get((group, verb), verb).replace("-", "_")
