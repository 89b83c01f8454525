"""Python's `logging` kept with its levels: one JSON object a line beside the task's stdout and stderr."""

import json
import logging


class RecordFile(logging.Handler):
    """Appends every record to a file; a record that cannot be written is dropped, the program goes on."""

    def __init__(self, path: str) -> None:
        logging.Handler.__init__(self)
        self._file = open(path, "a", encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = {
                "time": record.created,
                "level": record.levelname,
                "logger": record.name,
                "message": record.getMessage(),
                "source": "{}:{}".format(record.pathname, record.lineno),
            }
            if record.exc_info:
                line["exception"] = logging.Formatter().formatException(record.exc_info)
            self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._file.flush()
        except (OSError, ValueError, TypeError):
            self.handleError(record)

    def close(self) -> None:
        self._file.close()
        logging.Handler.close(self)


def capture(path: str, level: int = logging.NOTSET) -> RecordFile:
    """Starts keeping all records of at least this level, whatever the program's own logging shows."""
    kept = RecordFile(path)
    kept.setLevel(level)
    root = logging.getLogger()
    if not root.handlers:
        # Without this the root logger's own lowest level (WARNING) would hide what was asked for,
        # and adding our handler would silence logging's last resort on stderr.
        shown = logging.StreamHandler()
        shown.setLevel(root.level)
        root.addHandler(shown)
    else:
        for handler in root.handlers:
            if handler.level < root.level:
                handler.setLevel(root.level)
    if level < root.level:
        root.setLevel(max(level, 1))
    root.addHandler(kept)
    return kept
