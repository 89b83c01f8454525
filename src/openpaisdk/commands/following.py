"""Stays with a submitted job until it has ended: its output on the screen, its state in one changing line."""

from __future__ import annotations

from openpaisdk.commands import TABLE
from openpaisdk.commands.job_logs import as_written, marker, record
from openpaisdk.commands.wording import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from openpaisdk.commands.context import Context
    from openpaisdk.job import Job, Outcome


def see_to_the_end(job: Job, context: Context, *, show_log: bool) -> Outcome:
    """Follows or just waits; says how it ended. Ctrl-C leaves the job running and says so."""
    progress = _Progress(job.name, context)
    try:
        if show_log:
            from openpaisdk.protocol import totals

            count = totals(job.spec)[1]
            write = as_written if count == 1 else marker(count)
            for event in job.logs(lines=count != 1):
                if event.kind == "log":
                    context.write_log(write(record(event)), event.stream)
                else:
                    progress.state(str(event.state).lower())
        else:
            progress.state("waiting")
        found = job.wait()
    except KeyboardInterrupt:
        context.say(f"{job.name} goes on · opai job logs -f {job.name} · opai job stop {job.name}")
        raise
    context.say(last_words(found))
    return found


def last_words(found: Outcome) -> str:
    """`train-8f3a  succeeded in 4.2 s`, with the next step where it did not."""
    time = f" in {duration(found['seconds'])}" if found["seconds"] is not None else ""
    if found.state == "SUCCEEDED":
        fetch = f" · opai output download -j {found.name}" if "output" in TABLE else ""
        return f"{found.name}  succeeded{time}{fetch}"
    if found.state == "STOPPED":
        return f"{found.name}  stopped{time}"
    return f"{found.name}  failed with exit code {found.exit_code}{time} · opai job why {found.name}"


class _Progress:
    """`train-8f3a  code 3 files, 12 kB · waiting · running`, on one line of a terminal."""

    def __init__(self, name: str, context: Context) -> None:
        self.name = name
        self.context = context
        self.steps = [context.note] if context.note else []

    def state(self, word: str) -> None:
        if not self.steps or self.steps[-1] != word:
            self.steps.append(word)
        self.context.status(f"{self.name}  {' · '.join(self.steps[-4:])}")
