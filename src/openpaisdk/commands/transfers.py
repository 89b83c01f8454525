"""How a transfer shows on a terminal: one line with what is done, the rate and the time left."""

from __future__ import annotations

import time

from openpaisdk.commands.wording import duration, file_size, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openpaisdk.commands.context import Context
    from openpaisdk.storage.trees import Progress

_EVERY_SECONDS = 0.1
_BAR = 20
_SHORTEST_BAR = 5


class Transfer:
    """The progress of one transfer; Ctrl-C is answered with how to go on."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> Progress:
        return shown_progress(self._context)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self._context.say("stopped; the same command again goes on with what is missing")


def shown_progress(context: Context) -> Progress:
    """Progress that draws itself a few times a second; silent where nobody looks."""
    from openpaisdk.commands.overview import terminal_width
    from openpaisdk.storage.trees import Progress

    begun = last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY_SECONDS:
            return
        last = now
        context.status(progress_line(progress, now - begun, terminal_width() - 1))

    return Progress(show if context.terminal else None)


def progress_line(progress: Progress, seconds: float, width: int = 79) -> str:
    """What is done of what, how fast, and how long it will still take; in little room the bar goes first."""
    share = progress.done_bytes / progress.bytes if progress.bytes else 1.0
    rate = progress.done_bytes / seconds if seconds > 0 else 0.0
    left = (progress.bytes - progress.done_bytes) / rate if rate and share < 1 else None
    percent, speed = f"{share:4.0%}", f"{file_size(rate)}/s"
    files = f"{progress.done_files}/{number(progress.files, 'file')}"
    done = f"{file_size(progress.done_bytes)} of {file_size(progress.bytes)}"
    ending = f" · {duration(left)} left" if left is not None else ""
    figures = f"{percent}  {files}  {done} · {speed}{ending}"
    room = min(_BAR, width - len(figures) - len("[] "))
    if room >= _SHORTEST_BAR:
        return f"[{('#' * round(share * room)).ljust(room, '-')}] {figures}"
    shorter = (
        figures,
        f"{percent}  {done} · {speed}{ending}",
        f"{percent} · {speed}{ending}",
        f"{percent}{ending}",
    )
    return next((line for line in (text.strip() for text in shorter) if len(line) <= width), percent.strip())


def outcome_words(outcome: dict[str, int]) -> str:
    """What a transfer did, for people."""
    skipped = f", {number(outcome['skipped'], 'file')} already there" if outcome["skipped"] else ""
    return f"{number(outcome['copied'], 'file')} copied{skipped} ({file_size(outcome['bytes'])} in all)"
