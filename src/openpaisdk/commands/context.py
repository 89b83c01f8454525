"""What a command may use while it runs: clusters, talk on stderr, the status line, a job's own output."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from openpaisdk.core import Cluster


class Context:
    """Silent by itself: `Engine` uses it as it is, the command line gives it somewhere to talk."""

    def __init__(
        self,
        *,
        talk: TextIO | None = None,
        log: tuple[TextIO, TextIO] | None = None,
        open_cluster: Callable[[str | None], Any] | None = None,
        terminal: bool = False,
        rich_output: bool = False,
    ) -> None:
        self.talk = talk
        self.log_streams = log
        self.terminal = terminal
        self.rich_output = rich_output
        self.alias: str | None = None
        self._open = open_cluster
        self._clusters: dict[str | None, Any] = {}
        self._status = ""
        self.note = ""
        self._interrupted = False
        self._mid_line = False
        self._last_stream = ""

    def cluster(self, alias: str | None = None) -> Cluster:
        """The cluster that was asked for with -a, or the default one; opened once."""
        return self._opened(alias or self.alias)

    def default_cluster(self) -> Cluster:
        """The cluster that is meant where none is asked for, whatever -a says."""
        return self._opened(None)

    def _opened(self, wanted: str | None) -> Cluster:
        if wanted not in self._clusters:
            self._clusters[wanted] = (self._open or self._open_default)(wanted)
        found: Cluster = self._clusters[wanted]
        return found

    def _open_default(self, alias: str | None) -> Any:
        from openpaisdk.core import Cluster

        return Cluster.open(alias, notice=self.say, on_local_start=self._local_started)

    def _local_started(self, ready: dict[str, Any]) -> None:
        from openpaisdk.commands.wording import capacity

        offers = capacity(ready)
        self.say("local cluster started" + (f" ({offers})" if offers else ""))

    def then(self, *commands: str) -> str:
        """What to do next, as the end of a line: the commands, for the same cluster where -a chose one."""
        alias = f" -a {self.alias}" if self.alias else ""
        return "".join(f" · {command}{alias}" for command in commands)

    def say(self, text: str) -> None:
        """A line for the person, never data."""
        if self.talk is not None:
            self.clear_status()
            self._end_line()
            if self.terminal:
                from openpaisdk.commands.overview import terminal_width
                from openpaisdk.commands.wording import wrapped

                text = wrapped(text, terminal_width())
            self.talk.write(text + "\n")
            self.talk.flush()

    def interrupted(self, text: str = "") -> None:
        """After Ctrl-C, once: the terminal has shown `^C`, so what is said next gets a new line."""
        if self._interrupted:
            return
        self._interrupted = True
        self._mid_line = self._mid_line or not self._status
        self.clear_status()
        self._end_line()
        if text:
            self.say(text)

    def status(self, text: str) -> None:
        """Show or change the one status line; only on a terminal."""
        if self.talk is None or not self.terminal or text == self._status:
            return
        from openpaisdk.commands.overview import terminal_width

        self._end_line()
        width = terminal_width() - 1
        self.talk.write("\r\x1b[2K" + (text if len(text) <= width else text[: width - 1] + "…"))
        self.talk.flush()
        self._status = text

    def clear_status(self) -> None:
        if self._status and self.talk is not None:
            self.talk.write("\r\x1b[2K")
            self.talk.flush()
        self._status = ""

    def write_log(self, text: str, stream: str = "stdout") -> None:
        """The job's own output, its stderr to ours; dropped where nobody listens."""
        if self.log_streams is None or not text:
            return
        self.clear_status()
        target = self.log_streams[1 if stream == "stderr" else 0]
        if stream != self._last_stream:
            self._end_line()  # on a screen both streams share the line
        target.write(text)
        target.flush()
        self._mid_line = not text.endswith("\n") and target.isatty()
        self._last_stream = stream

    def _end_line(self) -> None:
        """A job that printed no line break at last must not have our words on its line."""
        if self._mid_line and self.talk is not None and self.terminal:
            self.talk.write("\n")
        self._mid_line = False

    def ask_secret(self, prompt: str) -> str:
        """A password typed without echo; an error where nobody can type."""
        from openpaisdk.errors import UsageError

        if not sys.stdin.isatty():
            raise UsageError(
                f"{prompt} is needed and nobody can be asked",
                hint="set OPAI_PASSWD or OPAI_TOKEN, or pipe it in with --password-stdin or --token-stdin",
            )
        from getpass import getpass

        found = getpass(f"{prompt}: ")
        if not found:
            raise UsageError(f"no {prompt} was typed", hint="nothing was changed")
        return found

    def confirm(self, question: str, *, instead: str) -> None:
        """Ask before something that cannot be undone; with nobody to ask, refuse and say how to go on."""
        from openpaisdk.errors import UsageError

        if not sys.stdin.isatty() or self.talk is None:
            raise UsageError(f"{question} Nobody can be asked", hint=f"say it with {instead}")
        self.talk.write(f"{question} [y/N] ")
        self.talk.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise UsageError("nothing was done")
