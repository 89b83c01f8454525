"""How a transfer shows on a terminal: one line with what is done, the rate and the time left."""

from __future__ import annotations

import time

from openpaisdk.commands.wording import duration, file_size, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openpaisdk.commands.context import Context
    from openpaisdk.storage.trees import Progress

_EVERY_SECONDS = 0.1


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
    from openpaisdk.storage.trees import Progress

    begun = last = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY_SECONDS:
            return
        last = now
        context.status(progress_line(progress, now - begun))

    return Progress(show if context.terminal else None)


def progress_line(progress: Progress, seconds: float) -> str:
    """What is done of what, how fast, and how long it will still take."""
    share = progress.done_bytes / progress.bytes if progress.bytes else 1.0
    bar = ("#" * round(share * 20)).ljust(20, "-")
    rate = progress.done_bytes / seconds if seconds > 0 else 0.0
    left = (progress.bytes - progress.done_bytes) / rate if rate else None
    ending = f" · {duration(left)} left" if left is not None and share < 1 else ""
    return (
        f"[{bar}] {share:4.0%}  {progress.done_files}/{number(progress.files, 'file')}  "
        f"{file_size(progress.done_bytes)} of {file_size(progress.bytes)} · {file_size(rate)}/s{ending}"
    )


def outcome_words(outcome: dict[str, int]) -> str:
    """What a transfer did, for people."""
    skipped = f", {number(outcome['skipped'], 'file')} already there" if outcome["skipped"] else ""
    return f"{number(outcome['copied'], 'file')} copied{skipped} ({file_size(outcome['bytes'])} in all)"
