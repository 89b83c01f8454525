"""`Runtime`: Python callbacks for what happens to a task, the same everywhere, harmless outside a job."""

import os
import signal
import sys
import time

from .checkpoints import Checkpoints
from .place import PLACES, Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = ("start", "main", "end", "exception", "exit", "preempt", "checkpoint")


class Runtime:
    """Registers callbacks with `on` and runs the program with `run`.

    start       before main, instead of the pre-commands of the job
    main        what `run(args)` calls; its result is `run`'s result
    end         after main succeeded, instead of the post-commands of the job
    exception   with the exception, when main raised; then the exception goes on
    exit        with the exit code, zero or not, last of all
    preempt     with the seconds left, when the task is asked to end (SIGTERM); then the task ends with 143
    checkpoint  when asked for from outside: `opai job signal JOB checkpoint`

    Outside a job `run` calls main and nothing else.
    """

    def __init__(self, environ: "dict[str, str] | None" = None) -> None:
        self._environ = dict(os.environ) if environ is None else environ
        self.place = Place(self._environ)
        self._callbacks: "dict[str, list[Callable[..., object]]]" = {}

    @classmethod
    def from_env(cls, environ: "dict[str, str] | None" = None) -> "Runtime":
        return cls(environ)

    def on(self, event: str, role=None, index=None, place=None, when=None):  # type: ignore[no-untyped-def]
        """Decorator: calls the function at `event`, only in this role, index or place, or `when(runtime)`."""
        if event not in EVENTS:
            raise ValueError("unknown event {!r}; the events are: {}".format(event, ", ".join(EVENTS)))
        _require_known(index, place)

        def register(function):  # type: ignore[no-untyped-def]
            if self._applies(role, index, place, when):
                if event == "main" and self._callbacks.get("main"):
                    raise ValueError("main is registered twice: {}".format(function.__name__))
                self._callbacks.setdefault(event, []).append(function)
            return function

        return register

    def run(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        """Calls the callbacks in their order around main and returns main's result."""
        mains = self._callbacks.get("main")
        if not mains:
            raise RuntimeError(
                "nothing to run: no function is registered with @app.on('main') for this place"
            )
        if not self.place.in_job:
            return mains[0](*args, **kwargs)
        self._watch_signals()
        code = 0
        try:
            if not self._call("start"):
                self._generated("pre.sh")
            result = mains[0](*args, **kwargs)
            if not self._call("end"):
                self._generated("post.sh")
            return result
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
            raise
        except BaseException as error:
            code = 130 if isinstance(error, KeyboardInterrupt) else 1
            self._call("exception", error)
            raise
        finally:
            self._call("exit", code)
            self._unregister()

    # What callbacks use.

    @property
    def checkpoints(self) -> Checkpoints:
        """The published checkpoints of this task; a retried or preempted task finds the same ones.

        Outside a job they are below the current folder, so that no other program takes them for its own.
        """
        root = self.place.output_dir or os.getcwd()
        return Checkpoints(
            os.path.join(root, ".checkpoints", "{}-{}".format(self.place.role or "local", self.place.index))
        )

    def keep_alive(self, seconds: float) -> None:
        """For an `exception` callback: keeps the task so that people can look at it with `opai job exec`."""
        sys.stderr.write(
            "kept for {:g} s for debugging: opai job exec {} bash\n".format(seconds, self.place.job)
        )
        sys.stderr.flush()
        time.sleep(seconds)

    @staticmethod
    def capture_logging(level: int = 0, path: "str | None" = None) -> "str | None":
        """Keeps `logging` records with their levels in `logging.jsonl` beside the task's log.

        Returns the file, or nothing outside a job.
        """
        from . import records

        folder = os.environ.get("PAI_SDK_TASK_DIR")
        if path is None:
            if not folder:
                return None
            path = os.path.join(folder, "logging.jsonl")
        records.capture(path, level)
        return path

    # How it works.

    def _applies(self, role, index, place, when) -> bool:  # type: ignore[no-untyped-def]
        if role is not None and self.place.role not in _as_list(role):
            return False
        if index is not None and self.place.index not in _as_list(index):
            return False
        if place is not None and self.place.kind not in _as_list(place):
            return False
        return when is None or bool(when(self))

    def _call(self, event: str, *args: object) -> bool:
        callbacks = self._callbacks.get(event, [])
        for callback in callbacks:
            if event in ("start", "end"):
                callback(*args)
                continue
            try:
                callback(*args)
            except Exception:  # noqa: BLE001 - one that fails must not hide how the program ended
                import traceback

                sys.stderr.write(
                    "the {} callback {} failed:\n{}".format(event, callback.__name__, traceback.format_exc())
                )
        return bool(callbacks)

    def _generated(self, name: str) -> None:
        """Runs the job's own pre- or post-commands where the job left them to the runtime."""
        script = os.path.join(self.place.task_dir, name)
        if self.place.task_dir and os.path.exists(script):
            import subprocess

            subprocess.check_call(["/bin/sh", "-e", script])

    def _watch_signals(self) -> None:
        if self._callbacks.get("preempt"):
            signal.signal(signal.SIGTERM, self._preempted)
        if self._callbacks.get("checkpoint") and hasattr(signal, "SIGUSR1"):
            signal.signal(signal.SIGUSR1, lambda number, frame: self._call("checkpoint"))
            self._register()

    def _preempted(self, number: int, frame: object) -> None:
        # A second SIGTERM while the callback runs would start it again.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._call("preempt", float(self._environ.get("PAI_SDK_GRACE_SECONDS", "30")))
        sys.exit(143)

    def _registration(self) -> str:
        return os.path.join(self.place.task_dir, "checkpoint.pid") if self.place.task_dir else ""

    def _register(self) -> None:
        """Tells the cluster which process wants `opai job signal`; others would be killed by the signal."""
        if self._registration():
            with open(self._registration() + ".new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(self._registration() + ".new", self._registration())

    def _unregister(self) -> None:
        if self._registration() and os.path.exists(self._registration()):
            os.unlink(self._registration())


def _require_known(index: object, place: object) -> None:
    """A condition that can never hold is a mistake."""
    for wanted in _as_list(index):
        if wanted is not None and not (hasattr(wanted, "__index__") and int(wanted) >= 0):
            raise ValueError(
                "index {!r} is not that of a task; indexes are numbers: 0, 1, 2 ...".format(wanted)
            )
    for wanted in _as_list(place):
        if wanted is not None and wanted not in PLACES:
            raise ValueError("unknown place {!r}; the places are: {}".format(wanted, ", ".join(PLACES)))


def _as_list(value: object) -> "list[object]":
    return list(value) if isinstance(value, (list, tuple, set)) else [value]
