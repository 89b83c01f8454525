"""Runs a notebook inside the job: cell by cell, the notebook so far always saved, a page of HTML at the end.

`python3 -m openpai.runtime.notebook_run NB.ipynb`; needs nbclient and ipykernel in the job's Python. The
program made of a notebook (`NB.py`) is run the same way and needs nothing.
"""

import os
import re
import runpy
import signal
import sys
import time

from . import stand_in
from .place import current

MISSING = """error: this job's Python ({}) cannot execute a notebook: {}
  add the packages (-p nbclient -p ipykernel -p nbconvert), choose an image with Jupyter, or --mode script
"""
COLOURS = re.compile("\x1b\\[[0-9;]*m")
# A cell may run for hours: what it has printed so far is saved at least this often.
SAVE_SECONDS = 5.0


def main(argv: "list[str]") -> int:
    path = argv[0]
    place = current()
    folder = place.output_dir or os.path.join(os.getcwd(), "output")
    added = stand_in.path_for(place.task_dir or os.getcwd())
    if added:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), added]))
        sys.path.append(added)
    if path.endswith(".py"):
        # As `python3 NB.py` would: its folder first, the words after it in sys.argv.
        sys.argv = list(argv)
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        runpy.run_path(path, run_name="__main__")
        return 0
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
        import nbformat
    except ImportError as error:
        sys.stderr.write(MISSING.format(sys.executable, error))
        return 126
    os.makedirs(folder, exist_ok=True)
    return Execution(nbformat.read(path, as_version=4), os.path.join(folder, os.path.basename(path))).run()


class Execution:
    """One notebook on its way through the kernel."""

    def __init__(self, notebook, target: str) -> None:  # type: ignore[no-untyped-def]
        self.notebook = notebook
        self.target = target
        self.total = sum(1 for cell in notebook.cells if cell.cell_type == "code")
        self.number = 0
        self.began = 0.0
        self.saved = 0.0

    def run(self) -> int:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError

        execution = self

        class Client(NotebookClient):  # type: ignore[misc]
            def output(self, outs, msg, display_id, cell_index):  # type: ignore[no-untyped-def]
                found = super().output(outs, msg, display_id, cell_index)
                execution.show(msg)
                return found

        client = Client(
            self.notebook,
            timeout=None,
            kernel_name="python3",
            resources={"metadata": {"path": os.getcwd()}},
            # Warnings of the kernel's own, such as that it talks over loopback, are not the notebook's.
            extra_arguments=["--log-level=40"],
            on_cell_execute=self.cell_begins,
            on_cell_executed=self.cell_ended,
        )
        code = 1
        try:
            client.execute()
            code = 0
        except CellExecutionError as error:
            sys.stderr.write(COLOURS.sub("", str(error)).rstrip() + "\n")
            self.complain("cell {} of {} failed".format(self.number, self.total))
        except DeadKernelError:
            self.complain("the kernel died in cell {} of {}".format(self.number, self.total))
        self.save()
        write_html(self.notebook, self.target)
        return code

    def cell_begins(self, cell, cell_index):  # type: ignore[no-untyped-def]
        # Stopped or preempted, what is done so far is kept; nbclient only ends the kernel.
        signal.signal(signal.SIGTERM, self.stopped)
        if cell.cell_type == "code":
            self.number += 1
            self.began = time.time()
            first = cell.source.strip().split("\n")[0]
            say("cell {}/{}  {}".format(self.number, self.total, first[:70]))

    def cell_ended(self, cell, cell_index, execute_reply):  # type: ignore[no-untyped-def]
        if execute_reply["content"]["status"] == "ok":
            say("cell {}/{}  done in {:.1f} s".format(self.number, self.total, time.time() - self.began))
        self.save()

    def show(self, message) -> None:  # type: ignore[no-untyped-def]
        """What the cell prints, as it prints it."""
        if message["msg_type"] == "stream":
            content = message["content"]
            stream = sys.stderr if content["name"] == "stderr" else sys.stdout
            stream.write(content["text"])
            stream.flush()
        elif message["msg_type"] in ("execute_result", "display_data"):
            text = message["content"]["data"].get("text/plain")
            if text:
                say(text)
        if time.time() - self.saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        import nbformat

        staging = "{}.{}.new".format(self.target, os.getpid())
        with open(staging, "w", encoding="utf-8") as file:
            nbformat.write(self.notebook, file)
        os.replace(staging, self.target)
        self.saved = time.time()

    def stopped(self, number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.save()
        self.complain("stopped in cell {} of {}".format(self.number, self.total))
        sys.exit(143)

    def complain(self, text: str) -> None:
        name = os.path.basename(self.target)
        sys.stderr.write("error: {}; {} so far is saved\n".format(text, name))
        sys.stderr.flush()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_html(notebook, target: str) -> None:  # type: ignore[no-untyped-def]
    try:
        from nbconvert import HTMLExporter
    except ImportError:
        sys.stderr.write("no page of HTML: nbconvert is not installed in this job's Python\n")
        return
    body, _ = HTMLExporter().from_notebook_node(notebook)
    with open(os.path.splitext(target)[0] + ".html", "w", encoding="utf-8") as file:
        file.write(body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
