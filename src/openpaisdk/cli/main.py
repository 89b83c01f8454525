"""The entry point of `opai`: runs a command, shows its result, turns errors into sentences and exit codes."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from openpaisdk.commands.context import Context
    from openpaisdk.engine import Engine

INTERRUPTED = 130
PLAINER = {"·": "|", "…": "..."}


def main(argv: Sequence[str] | None = None, engine: Engine | None = None) -> int:
    """Runs one command line and returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in words[: words.index("--") if "--" in words else len(words)]
    _write_any_text()
    contexts: list[Context] = []
    try:
        code = _run(words, engine, contexts)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        if debug:
            raise
        for context in contexts:
            context.interrupted()
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`opai job list | head`); what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        for context in contexts:
            context.clear_status()
        if debug:
            raise
        return _explain(error)


def _run(words: list[str], engine: Engine | None, contexts: list[Context]) -> int:
    if words and words[0] == "__complete":
        from openpaisdk.cli.completion import complete

        for candidate in complete(words[1:], engine):
            sys.stdout.write(candidate + "\n")
        return 0
    if not words or words == ["-h"] or words == ["--help"]:
        from openpaisdk.commands.overview import main_help

        sys.stdout.write(main_help())
        return 0
    if engine is None:
        from openpaisdk.engine import Engine

        engine = Engine()
    open_cluster = engine.open_cluster

    def make_context(output: str) -> Context:
        from openpaisdk.commands.context import Context

        contexts.append(
            Context(
                talk=sys.stderr,
                log=(sys.stdout if output == "table" else sys.stderr, sys.stderr),
                open_cluster=open_cluster,
                terminal=sys.stderr.isatty(),
                rich_output=sys.stdout.isatty() and output == "table",
            )
        )
        return contexts[0]

    result, output = engine.run(words, make_context)
    from openpaisdk.cli.render import show

    show(result, output, contexts[0] if contexts else None)
    for context in contexts:
        context.clear_status()
    return result.exit_code


def _write_any_text() -> None:
    """A terminal that is not UTF-8 shows escapes where it lacks a letter, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if (getattr(stream, "encoding", None) or "utf-8").lower() not in ("utf-8", "utf8"):
            import codecs

            codecs.register_error("plainer", _plainer)
            stream.reconfigure(errors="plainer")  # type: ignore[union-attr]


def _plainer(error: UnicodeError) -> tuple[str, int]:
    """Our own marks have plain forms."""
    assert isinstance(error, UnicodeEncodeError)
    found = error.object[error.start : error.end]
    plain = (PLAINER.get(letter, letter) for letter in found)
    return "".join(text.encode("ascii", "backslashreplace").decode() for text in plain), error.end


def _explain(error: Exception) -> int:
    from openpaisdk.errors import OpenPAIError

    if isinstance(error, OpenPAIError):
        text, hint, code = error.message, error.hint, error.exit_code
        problems = [f"  {problem}" for problem in getattr(error, "problems", ()) if str(problem) != text]
    elif isinstance(error, OSError):
        named = f"{error.filename}: " if error.filename else "what was to be read or written: "
        text, hint, code, problems = f"{named}{error.strerror or error}", None, 1, []
    else:
        text = f"{type(error).__name__}: {error}"
        hint, code, problems = "this should not happen; --debug shows where", 1, []
    _complain([text, *problems], (hint or "").splitlines())
    return code


def _complain(said: list[str], hints: list[str]) -> None:
    """The error, its problems and its hints; on a terminal in colour, and no word cut at the edge."""
    lines = [f"error: {said[0]}", *said[1:], *(f"  {line}" for line in hints)]
    if sys.stderr.isatty():
        from openpaisdk.commands.overview import colourful, terminal_width
        from openpaisdk.commands.wording import wrapped

        lines = [wrapped(line, terminal_width()) for line in lines]
        if colourful():
            lines[0] = lines[0].replace("error:", "\x1b[31merror:\x1b[0m", 1)
    sys.stderr.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
