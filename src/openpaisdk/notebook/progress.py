"""A submitted job as a notebook shows it: a link to click, and its state and log until it has ended."""

from __future__ import annotations

import html
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openpaisdk.job import Job, Outcome

COLOURS = {"WAITING": "#888", "RUNNING": "#06c", "SUCCEEDED": "#080", "FAILED": "#c00", "STOPPED": "#a60"}


class JobLink(str):
    """The address of a job's page, with the job itself at `.job`."""

    job: Job

    def __new__(cls, job: Job) -> JobLink:
        made = super().__new__(cls, job.link)
        made.job = job
        return made

    def _repr_html_(self) -> str:
        address, name = html.escape(self), html.escape(self.job.name)
        return f'<a href="{address}" target="_blank">{name}</a>'


def watch(job: Job | JobLink | str) -> Outcome:
    """Show a job until it ends, its state in one line that changes and its log below; how it ended.

    Takes a job, what `submit_notebook` returned, or the name of a job on the default cluster.
    """
    from openpaisdk.job import Job

    if isinstance(job, JobLink):
        job = job.job
    elif isinstance(job, str):
        job = Job.from_cluster(job)
    line = StateLine(job.name)
    for record in job.logs(lines=False):
        if record.kind == "log":
            stream = sys.stderr if record.stream == "stderr" else sys.stdout
            stream.write(record.text)
            stream.flush()
        else:
            line.show(record.state)
    found = job.wait()
    line.show(found.state)
    return found


class StateLine:
    """The job's name and state: one display that is updated in a notebook, lines elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = ""
        self._display: Any = None

    def show(self, state: str) -> None:
        if state == self.state:
            return
        self.state = state
        ipython = sys.modules.get("IPython")
        if ipython is None or ipython.get_ipython() is None:
            sys.stderr.write(f"{self!r}\n")
        elif self._display is None:
            self._display = ipython.display.display(self, display_id=True)
        else:
            self._display.update(self)

    def __repr__(self) -> str:
        return f"{self.name}  {self.state.lower()}"

    def _repr_html_(self) -> str:
        colour = COLOURS.get(self.state, "#888")
        state = html.escape(self.state.lower())
        return f"<b>{html.escape(self.name)}</b> <span style='color:{colour}'>{state}</span>"
