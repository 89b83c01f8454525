"""Executes a notebook inside the job: cell by cell, the notebook so far always saved, a page of HTML at the end.

`python3 -m openpai.runtime.notebook_run IN.ipynb OUT_FOLDER`; needs nbclient and ipykernel in the job's Python.
"""

import os
import sys
import time

MISSING = """error: this job's Python ({}) cannot execute a notebook: {}
  add the packages (-p nbclient -p ipykernel -p nbconvert), take an image with Jupyter, or submit with --mode script
"""


def main(argv: "list[str]") -> int:
    path, folder = argv
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError
    except ImportError as error:
        sys.stderr.write(MISSING.format(sys.executable, error))
        return 126
    notebook = nbformat.read(path, as_version=4)
    name = os.path.basename(path)
    target = os.path.join(folder, name)
    total = sum(1 for cell in notebook.cells if cell.cell_type == "code")
    seen = [0]
    began = [0.0]

    def save() -> None:
        staging = target + ".new"
        with open(staging, "w", encoding="utf-8") as file:
            nbformat.write(notebook, file)
        os.replace(staging, target)

    def on_cell_execute(cell, cell_index):  # type: ignore[no-untyped-def]
        if cell.cell_type == "code":
            seen[0] += 1
            began[0] = time.time()
            first = cell.source.strip().splitlines()[:1]
            _say("cell {}/{}  {}".format(seen[0], total, first[0][:70] if first else ""))

    def on_cell_executed(cell, cell_index, execute_reply):  # type: ignore[no-untyped-def]
        _show_outputs(cell)
        _say("cell {}/{}  done in {:.1f} s".format(seen[0], total, time.time() - began[0]))
        save()

    client = NotebookClient(
        notebook,
        timeout=None,
        kernel_name="python3",
        resources={"metadata": {"path": os.getcwd()}},
        on_cell_execute=on_cell_execute,
        on_cell_executed=on_cell_executed,
    )
    code = 0
    try:
        client.execute()
    except CellExecutionError as error:
        sys.stderr.write("{}\nerror: cell {} of {} failed; the notebook so far is saved\n".format(error, seen[0], name))
        code = 1
    except DeadKernelError:
        sys.stderr.write("error: the kernel died in cell {}; the notebook so far is saved\n".format(seen[0]))
        code = 1
    save()
    _write_html(notebook, target)
    return code


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _show_outputs(cell) -> None:  # type: ignore[no-untyped-def]
    for output in cell.get("outputs", []):
        if output.get("output_type") == "stream":
            stream = sys.stderr if output.get("name") == "stderr" else sys.stdout
            stream.write(output["text"])
            stream.flush()


def _write_html(notebook, target: str) -> None:  # type: ignore[no-untyped-def]
    try:
        from nbconvert import HTMLExporter
    except ImportError:
        sys.stderr.write("no HTML page: nbconvert is not installed in this job's Python\n")
        return
    body, _ = HTMLExporter().from_notebook_node(notebook)
    with open(os.path.splitext(target)[0] + ".html", "w", encoding="utf-8") as file:
        file.write(body)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
