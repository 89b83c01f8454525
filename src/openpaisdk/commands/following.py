"""Stays with a submitted job until it has ended: its output on the screen, its state in one changing line."""

from __future__ import annotations

from openpaisdk.commands.log_lines import as_written, marker, record
from openpaisdk.commands.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openpaisdk.commands.context import Context
    from openpaisdk.job import Job, Outcome

LOOK_SECONDS = 10.0


def see_to_the_end(job: Job, context: Context, *, show_log: bool) -> Outcome:
    """Follows or just waits; says how it ended. Ctrl-C leaves the job running and says so."""
    progress = Progress(job.name, context)
    try:
        if show_log:
            from openpaisdk.protocol import totals

            count = totals(job.spec)[1]
            write = as_written if count == 1 else marker(count)
            for event in job.logs(lines=count != 1):
                if event.kind == "log":
                    context.write_log(write(record(event)), event.stream)
                else:
                    progress.attempt(event.attempt or 0)
                    progress.state(str(event.state).lower())
        else:
            progress.state("waiting")
        found = _wait(job, progress)
    except KeyboardInterrupt:
        context.interrupted(goes_on(context, job.name))
        raise
    context.say(last_words(context, found))
    return found


def _wait(job: Job, progress: Progress) -> Outcome:
    """Wait for the end, telling of new attempts: a program that is killed is started again without end."""
    from openpaisdk.core import WaitTimeout

    while True:
        try:
            return job.wait(timeout=LOOK_SECONDS)
        except WaitTimeout:
            progress.attempt(int(job.detail()["jobStatus"].get("retries") or 0))


def goes_on(context: Context, *names: str) -> str:
    """After Ctrl-C: the jobs were only watched."""
    jobs = " ".join(names)
    watch = f"opai job logs -f {jobs}" if len(names) == 1 else f"opai job wait {jobs}"
    verb = "goes" if len(names) == 1 else "go"
    return f"{jobs} {verb} on{context.then(watch, f'opai job stop {jobs}')}"


def last_words(context: Context, found: Outcome) -> str:
    """`train-8f3a  succeeded in 4.2 s`, with the next step."""
    time = f" in {duration(found['seconds'])}" if found["seconds"] is not None else ""
    said = ended(context, found.name, found.state, found.exit_code, time)
    fetch = context.then(f"opai output download -j {found.name}")
    return said + fetch if found.state == "SUCCEEDED" else said


def ended(context: Context, name: str, state: str, exit_code: int | None, time: str = "") -> str:
    """How it ended, and where to look when it failed."""
    if state in ("SUCCEEDED", "STOPPED"):
        return f"{name}  {state.lower()}{time}"
    return f"{name}  failed with exit code {exit_code}{time}{context.then(f'opai job why {name}')}"


class Progress:
    """`train-8f3a  code 3 files, 12 kB · waiting · running`, on one line of a terminal."""

    def __init__(self, name: str, context: Context) -> None:
        self.name = name
        self.context = context
        self.steps = [context.note] if context.note else []
        self._attempt = 0

    def attempt(self, number: int) -> None:
        """Told when the job is started again, counted from 0."""
        if number > self._attempt:
            self._attempt = number
            why = self.context.then(f"opai job why {self.name}", f"opai job stop {self.name}")
            self.context.say(f"{self.name}  starts again, attempt {number + 1}{why}")

    def state(self, word: str) -> None:
        if not self.steps or self.steps[-1] != word:
            self.steps.append(word)
        self.context.status(f"{self.name}  {' · '.join(self.steps[-4:])}")
