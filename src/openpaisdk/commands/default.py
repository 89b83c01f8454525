"""`opai default add|list|remove`: values that need not be typed every time."""

from __future__ import annotations

from openpaisdk.commands.result import Column, Result, View

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from openpaisdk.commands.context import Context


def _known() -> str:
    from openpaisdk.config import KNOWN_DEFAULTS

    width = max(map(len, KNOWN_DEFAULTS))
    return "known names:\n" + "\n".join(
        f"  {name:<{width}}  {entry[2]}" for name, entry in KNOWN_DEFAULTS.items()
    )


def _user_wide(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-g",
        "--global",
        dest="user_wide",
        action="store_true",
        help="in your own file instead of the project's",
    )


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pairs", nargs="+", metavar="NAME=VALUE")
    _user_wide(parser)
    parser.epilog = _known()


def add_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import add_defaults

    changed = add_defaults(args.pairs, args.user_wide)
    for name, value in changed.items():
        context.say(f"{name} is now {value}")
    return Result(changed, View("nothing"))


def list_arguments(parser: ArgumentParser) -> None:
    parser.epilog = _known()


def list_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import list_defaults

    view = View(
        "table",
        columns=(Column("NAME", "name"), Column("VALUE", "value"), Column("FROM", "source")),
        name="name",
        empty="no defaults are set; `opai default add -h` lists the names there are",
    )
    return Result(list_defaults(), view)


def remove_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME")
    _user_wide(parser)


def remove_run(args: Namespace, context: Context) -> Result:
    from openpaisdk.config import known_default, remove_default
    from openpaisdk.errors import NotFoundError

    names = [known_default(name) for name in args.names]
    removed = [name for name in names if remove_default(name, args.user_wide)]
    for name in removed:
        context.say(f"{name} is no longer set")
    missing = [name for name in names if name not in removed]
    if missing:
        where = "your own defaults" if args.user_wide else "the project's defaults"
        hint = "look where it comes from with `opai default list`; your own file is changed with -g"
        raise NotFoundError(f"{', '.join(missing)} is not set in {where}", hint=hint)
    return Result(removed, View("nothing"))
