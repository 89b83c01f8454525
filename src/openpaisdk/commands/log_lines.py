"""Pieces of a job's log as data, and as text on the screen."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def record(event: Any) -> dict[str, Any]:
    """A piece of log as data; the text of a whole line comes without its end."""
    return {"task": event.task, "stream": event.stream, "text": event.text}


def as_written(found: dict[str, Any]) -> str:
    """The text of a piece, untouched."""
    return str(found["text"])


def marker(count: int) -> Callable[[dict[str, Any]], str]:
    """The text of a line, marked with its task where there are several."""
    if count == 1:
        return lambda found: f"{found['text']}\n"
    return lambda found: f"{found['task']}  {found['text']}\n"
