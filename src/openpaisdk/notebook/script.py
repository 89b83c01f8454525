"""A notebook as one Python program: only what Jupyter adds to the language is rewritten."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from openpaisdk.errors import UsageError
from openpaisdk.notebook.document import source
from openpaisdk.runtime.only import places

if TYPE_CHECKING:
    from openpaisdk.notebook.document import Notebook

# Magics that only shape how things look or how long they take; a script is right without them.
_DROPPED = {"matplotlib", "config", "load_ext", "reload_ext", "autoreload", "precision", "pylab"}
_SHELL_CELLS = {"bash": "bash", "sh": "sh"}
_LINE = re.compile(r"^(?P<indent>\s*)(?:(?P<target>[\w., ]+?)\s*=\s*)?(?P<mark>%|!!?)\s*(?P<rest>.*)$")


def script(notebook: Notebook) -> str:
    """The code cells one after the other; an error names every cell that has no meaning outside Jupyter."""
    parts = [f"# Made from {Path(notebook.source).name}\n"]
    refused = []
    for number, cell in enumerate(notebook.cells, 1):
        if cell.get("cell_type") != "code" or not source(cell).strip():
            continue
        try:
            parts.append(f"\n# Cell {number}\n{as_python(source(cell))}\n")
        except UsageError as error:
            refused.append(f"cell {number}: {error.message}")
    if refused:
        raise UsageError(
            f"{notebook.source} cannot become a script: " + "; ".join(refused),
            hint="take these lines out, mark the cell `%%only local`, or submit it with --mode batch",
        )
    return "".join(parts)


def as_python(text: str) -> str:
    """One cell's source without Jupyter's own syntax."""
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.startswith("%%"):
        return _cell_magic(first[2:].split(), rest)
    lines = text.rstrip().split("\n")
    # Only a line that Python itself does not take is Jupyter's: `% b` may go on with the line before it.
    while (problem := _problem("\n".join(lines))) is not None:
        number = min(problem.lineno or 1, len(lines)) - 1
        rewritten = _line(lines[number])
        if rewritten is None or rewritten == lines[number]:
            raise UsageError(f"line {number + 1} is not Python: {problem.msg}")
        lines[number] = rewritten
    return "\n".join(lines)


def _problem(text: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<cell>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except ValueError as error:
        raise UsageError(f"it is not Python: {error}") from None
    return None


def _cell_magic(words: list[str], body: str) -> str:
    name = words[0] if words else ""
    if name == "only":
        try:
            wanted = places(words[1:])
        except ValueError as error:
            raise UsageError(str(error)) from None
        if wanted == ["local"]:
            return "# only local"
        return (
            "from openpai.runtime.only import applies as _applies\n"
            f"if _applies({wanted!r}):\n{_indented(as_python(body))}"
        )
    if name in ("time", "timeit", "capture"):
        return as_python(body)
    if name in _SHELL_CELLS:
        command = [_SHELL_CELLS[name], "-e", "-c", body]
        return f"import subprocess as _subprocess\n_subprocess.run({command!r}, check=True)"
    if name == "writefile" and len(words) > 1:
        mode = "a" if "-a" in words else "w"
        return f"with open({words[-1]!r}, {mode!r}) as _file:\n    _ = _file.write({body!r})"
    raise UsageError(f"no Python for the cell magic `%%{name}`")


def _indented(text: str) -> str:
    """Four spaces before every line that does not begin inside a string."""
    inside: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno is not None:
            inside.update(range(node.lineno + 1, node.end_lineno + 1))
    lines = text.split("\n") if text.strip() else ["pass"]
    return "\n".join(line if number in inside else f"    {line}" for number, line in enumerate(lines, 1))


def _line(line: str) -> str | None:
    """The line in Python, or None where it is not Jupyter's either."""
    if line.rstrip().endswith("?"):
        return f"pass  # {line.strip()}"
    found = _LINE.match(line)
    if not found:
        return None
    indent, target, rest = found["indent"], found["target"], found["rest"].strip()
    imported = f"{indent}import subprocess as _subprocess; "
    if found["mark"].startswith("!"):
        if target:
            return f"{imported}{target} = _subprocess.getoutput({rest!r}).splitlines()"
        return f"{imported}_subprocess.run({rest!r}, shell=True, check=False)"
    name, _, arguments = rest.partition(" ")
    if name in ("time", "timeit") and arguments:
        return f"{indent}{target} = {arguments}" if target else indent + arguments
    if name in ("pip", "conda") and not target:
        command = f"python3 -m pip {arguments}" if name == "pip" else f"conda {arguments}"
        return f"{imported}_subprocess.run({command!r}, shell=True, check=True)"
    if name == "opai":
        kept = f"{target} = " if target else ""
        called = f"{kept}_Engine().process({arguments.split()!r})"
        return f"{indent}from openpaisdk.engine import Engine as _Engine; {called}"
    if name in _DROPPED and not target:
        return f"{indent}pass  # %{rest}"
    raise UsageError(f"no Python for the magic `%{name}`")
