"""A notebook as data: read it, put parameters in, choose the cells for a place, turn it into a script."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from openpaisdk.errors import NotFoundError, UsageError

PLACES = ("local", "interactive", "batch")


class Notebook:
    """One `.ipynb` file of format 4; cells keep everything that is in them."""

    def __init__(self, data: dict[str, Any], source: str = "<notebook>") -> None:
        self.data = data
        self.source = source

    @classmethod
    def read(cls, path: str | Path) -> Notebook:
        path = Path(path)
        if not path.exists():
            raise NotFoundError(f"no notebook {path}", hint="give the path of an .ipynb file")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} is not a notebook: {error}", hint="an .ipynb file is JSON text") from None
        if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
            raise UsageError(f"{path} is not a notebook: it has no cells", hint="an .ipynb file of format 4 is needed")
        if data.get("nbformat") != 4:
            raise UsageError(
                f"{path} has notebook format {data.get('nbformat')!r}, 4 is needed",
                hint="open it in Jupyter and save it again",
            )
        return cls(data, str(path))

    @property
    def cells(self) -> list[dict[str, Any]]:
        cells: list[dict[str, Any]] = self.data["cells"]
        return cells

    def require_python(self) -> None:
        """A kernel of another language cannot be a job of ours."""
        metadata = self.data.get("metadata", {})
        spec = metadata.get("kernelspec", {})
        language = spec.get("language") or metadata.get("language_info", {}).get("name") or "python"
        if str(language).lower() not in ("python", "ipython", "python3"):
            raise UsageError(
                f"{self.source} uses the kernel {spec.get('display_name', language)!r}, which is not Python",
                hint="choose a Python kernel in the notebook and save it",
            )

    def with_parameters(self, values: dict[str, Any]) -> Notebook:
        """A copy with the values in a new cell right after the one tagged `parameters`, or before the first code cell."""
        if not values:
            return self
        for name in values:
            if not name.isidentifier():
                raise UsageError(f"--param {name}: not a name that Python takes", hint="write it as --param lr=0.01")
        twin = Notebook(copy.deepcopy(self.data), self.source)
        twin.data["cells"] = [cell for cell in twin.cells if "injected-parameters" not in tags(cell)]
        injected = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {"tags": ["injected-parameters"]},
            "outputs": [],
            "source": "# Parameters\n" + "".join(f"{name} = {value!r}\n" for name, value in values.items()),
        }
        if (twin.data.get("nbformat_minor") or 0) >= 5:
            injected["id"] = "injected-parameters"
        twin.cells.insert(twin._place_for_parameters(), injected)
        return twin

    def _place_for_parameters(self) -> int:
        for number, cell in enumerate(self.cells):
            if "parameters" in tags(cell):
                return number + 1
        return next((number for number, cell in enumerate(self.cells) if cell.get("cell_type") == "code"), 0)

    def text(self) -> str:
        return json.dumps(self.data, indent=1, ensure_ascii=False) + "\n"

    def script(self) -> str:
        """The code cells as one Python program that needs no Jupyter."""
        parts = [f"# Made from {Path(self.source).name}\n"]
        unknown = []
        for number, cell in enumerate(self.cells, 1):
            if cell.get("cell_type") != "code" or not source(cell).strip():
                continue
            try:
                parts.append(f"\n# Cell {number}\n{as_python(source(cell))}\n")
            except UsageError as error:
                unknown.append(f"cell {number}: {error.message}")
        if unknown:
            raise UsageError(
                f"{self.source} cannot become a script: " + "; ".join(unknown),
                hint="take these lines out, mark the cell `%%only local`, or submit it with --mode batch",
            )
        return "".join(parts)


def source(cell: dict[str, Any]) -> str:
    text = cell.get("source", "")
    return "".join(text) if isinstance(text, list) else str(text)


def tags(cell: dict[str, Any]) -> list[str]:
    found: list[str] = cell.get("metadata", {}).get("tags", [])
    return found


# Magics that only shape how things look or how long they take; a script is right without them.
_DROPPED = {"matplotlib", "config", "load_ext", "reload_ext", "autoreload", "time", "timeit", "precision", "pylab"}
_SHELL_CELLS = {"bash": ["bash", "-e", "-c"], "sh": ["sh", "-e", "-c"], "script": ["bash", "-e", "-c"]}
_MAGIC = re.compile(r"^(?P<indent>\s*)(?P<mark>%{1,2}|!{1,2})\s*(?P<rest>.*)$")


def as_python(text: str) -> str:
    """One cell's source without Jupyter's own syntax."""
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.startswith("%%"):
        return _cell_magic(first[2:].split(), rest)
    return "\n".join(_line(line) for line in text.splitlines())


def _cell_magic(words: list[str], body: str) -> str:
    name = words[0] if words else ""
    if name == "only":
        places = only_places(words[1:])
        inner = "\n".join("    " + line for line in as_python(body).splitlines()) or "    pass"
        return (
            "from openpai.runtime.place import current as _place\n"
            f"if _place().kind in {places!r} or _place().role in {places!r}:\n{inner}"
        )
    if name in ("time", "timeit", "capture"):
        return as_python(body)
    if name in _SHELL_CELLS:
        return f"import subprocess as _subprocess\n_subprocess.run({[*_SHELL_CELLS[name], body]!r}, check=True)"
    raise UsageError(f"no Python for the cell magic `%%{name}`")


def _line(line: str) -> str:
    found = _MAGIC.match(line)
    if not found:
        return line
    indent, mark, rest = found["indent"], found["mark"], found["rest"].strip()
    if mark.startswith("!"):
        return f"{indent}import subprocess as _subprocess; _subprocess.run({rest!r}, shell=True, check=False)"
    name, _, arguments = rest.partition(" ")
    if name in ("time", "timeit") and arguments:
        return indent + arguments
    if name in _DROPPED:
        return f"{indent}pass  # %{rest}"
    if name in ("pip", "conda"):
        command = f"python3 -m pip {arguments}" if name == "pip" else f"conda {arguments}"
        return f"{indent}import subprocess as _subprocess; _subprocess.run({command!r}, shell=True, check=True)"
    if name == "opai":
        return f"{indent}from openpaisdk.engine import Engine as _Engine; _Engine().process({arguments.split()!r})"
    raise UsageError(f"no Python for the magic `%{name}`")


def only_places(words: list[str]) -> list[str]:
    """The places or task roles that a `%%only` line names."""
    if not words:
        raise UsageError("%%only needs a place", hint=f"one or more of {', '.join(PLACES)}, or the name of a task role")
    return [word.strip(",") for word in words]
