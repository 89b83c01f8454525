"""The command dispatcher: words in, data out; the command line and Python code call the same thing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from openpaisdk.commands.context import Context
    from openpaisdk.commands.result import Result


class Engine:
    """`Engine().process(['job', 'list', '--name'])` returns what `opai job list --name -o json` prints.

    Errors are raised, nothing is printed. `open_cluster(alias)` may replace the way a cluster is found.
    """

    def __init__(
        self, *, open_cluster: Callable[[str | None], Any] | None = None, verbose: bool = False
    ) -> None:
        self.open_cluster = open_cluster
        self.verbose = verbose

    def process(self, argv: Sequence[str]) -> Any:
        """Run one command and return its data; a stream is returned as a list."""
        result = self.run(argv)[0]
        return list(result.data) if result.streams else result.data

    def run(
        self, argv: Sequence[str], make_context: Callable[[str], Context] | None = None
    ) -> tuple[Result, str]:
        """The result and the output format asked for; `make_context(format)` says where talk goes."""
        from openpaisdk.commands.result import Result

        options, group, verb, rest = self._command(argv)
        if verb is None:
            return Result(self._text(group, rest)), "table"
        from openpaisdk.commands.parsing import HelpShown, build_parser

        parser, run = build_parser(group, verb)
        try:
            args = parser.parse(options + rest)
        except HelpShown as shown:
            return Result(shown.text), "table"
        args.output = args.output or default_output()
        context = make_context(args.output) if make_context else self._quiet_context()
        context.alias = args.cluster_alias
        args.group, args.verb = group, verb
        return run(args, context), args.output

    def _quiet_context(self) -> Context:
        import sys

        from openpaisdk.commands.context import Context

        return Context(talk=sys.stderr if self.verbose else None, open_cluster=self.open_cluster)

    def _command(self, argv: Sequence[str]) -> tuple[list[str], str, str | None, list[str]]:
        from openpaisdk.commands import TABLE
        from openpaisdk.commands.overview import split_words

        if isinstance(argv, str):
            from openpaisdk.errors import UsageError

            hint = f"Engine().process({argv.split()!r})"
            raise UsageError(f"expected a list of words, got the text {argv!r}", hint=hint)
        options, names, rest = split_words([str(word) for word in argv])
        group = names[0] if names else ""
        if group and group not in TABLE:
            raise _unknown("group", group, "opai", TABLE)
        if len(names) < 2:
            return options, group, None, rest
        if names[1] not in TABLE[group]:
            raise _unknown("command", names[1], f"opai {group}", TABLE[group])
        return options, group, names[1], rest

    def _text(self, group: str, rest: list[str]) -> str:
        """Help or version, where no verb was named."""
        from openpaisdk.commands.overview import group_help, main_help

        if rest and rest[0] == "--version":
            from openpaisdk.version import __version__

            return f"opai {__version__}"
        if rest and rest[0] not in ("-h", "--help"):
            from openpaisdk.errors import UsageError

            where = f"opai {group}".strip()
            raise UsageError(f"`{rest[0]}` makes no sense before a command", hint=f"see {where} -h")
        return group_help(group) if group else main_help()


def default_output() -> str:
    """The format in force where none was asked for."""
    from openpaisdk.commands.overview import FORMATS
    from openpaisdk.config import setting

    found = setting("output") or FORMATS[0]
    if found not in FORMATS:
        from openpaisdk.errors import ConfigError

        raise ConfigError(f"the default `output` is {found!r}", hint=f"it can be {', '.join(FORMATS)}")
    return str(found)


def _unknown(kind: str, word: str, where: str, known: dict[str, Any]) -> Exception:
    from openpaisdk.config import nearest
    from openpaisdk.errors import UsageError

    near = nearest(word, known)
    hint = f"did you mean `{where} {near}`?" if near else f"there are: {', '.join(known)}"
    return UsageError(f"{where} has no {kind} `{word}`", hint=hint)
